/* Drop packets that exceed the head-of-queue lifetime or the switch lifetime, and stall VLs that drop too many packets
 * in a row. */
#include "simulate/internal/queue.h"

#define NEVER INT64_MAX

/* Return the earliest tick at which the first packet in a queue of a VC exceeds its head-of-queue lifetime or its
 * switch lifetime. */
static int64_t deadline(const ibn_sim *sim, int32_t c, int32_t l)
{
    const ibn_channel *channel = &sim->channel[c];
    const ibn_fifo *queue = &sim->queue[channel->queues + (l - c * sim->vls) * channel->inputs];
    int64_t at = NEVER, lifetime = sim->lifetime[channel->src], hoq = sim->hoq[c];
    for (int32_t input = 0; input < channel->inputs; input++) {
        if (queue[input].head == IBN_NONE)
            continue;
        const ibn_packet *packet = &sim->packet[queue[input].head];
        if (hoq && packet->headed + hoq < at)
            at = packet->headed + hoq;
        if (lifetime && packet->ready + lifetime < at)
            at = packet->ready + lifetime;
    }
    return at;
}

/* Schedule a check of VC l for the tick at which one of its packets may become too old, unless a check at this tick or
 * at an earlier tick is pending. */
void ibn_simulate_arm(ibn_sim *sim, int32_t l)
{
    ibn_watch *watch = &sim->watch[l];
    if (!sim->vc[l].waiting || (watch->check && !sim->options.single_fifo))
        return;
    int64_t at = deadline(sim, l / sim->vls, l);
    at = at > sim->now ? at : sim->now + 1;
    if (watch->check && watch->check <= at)
        return;
    watch->check = at;
    ibn_simulate_at(sim, at, EV_HEAD, l, 0);
}

/* Drop the first packet in the queue of an input, and return the credits of its buffer space. */
void ibn_simulate_drop(ibn_sim *sim, int32_t c, int32_t l, int32_t input)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t vl = l - c * sim->vls, p = ibn_simulate_queue(sim, channel, vl, input)->head;
    ibn_simulate_dequeue(sim, l, vl, input, p, channel, 0);
    const ibn_packet *packet = &sim->packet[p];
    sim->counters[c].discards++;
    if (!channel->vls)
        channel->wait += sim->now > channel->busy ? sim->now - channel->busy : 0;
    sim->vc[packet->vc].held = (int32_t)((uint32_t)sim->vc[packet->vc].held - (uint32_t)packet->blocks);
    if (sim->options.single_fifo)
        ibn_simulate_at(sim, packet->tail > sim->now ? packet->tail : sim->now + 1, EV_EXPOSE, packet->vc, 0);
    ibn_simulate_lose(sim, p);
    /* The channel is arbitrated again.  The next packet may be smaller than the dropped packet, so that the credits of
     * the VC suffice for the next packet. */
    ibn_simulate_touch(sim, c);
}

/* Return the first input that has packets queued for VC l, or IBN_NONE if there is no such input. */
static int32_t some_input(const ibn_sim *sim, int32_t l)
{
    for (int32_t w = 0; w < sim->words; w++) {
        uint64_t word = ibn_simulate_mask(sim, l)[w];
        if (word)
            return w * 64 + __builtin_ctzll(word);
    }
    return IBN_NONE;
}

/* Stall VC l, because too many packets in a row were dropped at the heads of its queues.  For a limited time, all
 * packets for this VC are dropped. */
static void stall(ibn_sim *sim, int32_t c, int32_t l)
{
    int64_t until = sim->now + sim->options.stall_multiple * sim->hoq[c];
    sim->vc[l].stalled = 1;
    sim->vc[l].dropped_in_row = 0;
    ibn_simulate_note(sim, LOG_STALLED, l, until, 0, 0);
    while (sim->vc[l].waiting) {
        sim->counters[c].stalled++;
        ibn_simulate_drop(sim, c, l, some_input(sim, l));
    }
    ibn_simulate_at(sim, until, EV_UNSTALL, l, 0);
}

/* End the stall of VC l, so that packets for this VC are queued again. */
void ibn_simulate_unstall(ibn_sim *sim, int32_t l)
{
    sim->vc[l].stalled = 0;
    ibn_simulate_note(sim, LOG_UNSTALLED, l, 0, 0, 0);
}

/* Drop packets from the front of the queue of an input, as long as the first packet has exceeded the switch
 * lifetime. */
static void drop_aged(ibn_sim *sim, int32_t c, int32_t l, int32_t input, const ibn_fifo *queue)
{
    int64_t lifetime = sim->lifetime[sim->channel[c].src];
    while (lifetime && queue->head != IBN_NONE && sim->packet[queue->head].ready + lifetime <= sim->now) {
        sim->counters[c].lifetime++;
        ibn_simulate_drop(sim, c, l, input);
    }
}

/* Drop the first packet of the queue of an input if the packet has exceeded the head-of-queue lifetime.  Return 1 if
 * the VC has to be stalled now, else 0. */
static int drop_head(ibn_sim *sim, int32_t c, int32_t l, int32_t input, const ibn_fifo *queue)
{
    ibn_vc *vc = &sim->vc[l];
    if (!sim->hoq[c] || queue->head == IBN_NONE || sim->packet[queue->head].headed + sim->hoq[c] > sim->now)
        return 0;
    vc->dropped_in_row += vc->dropped_in_row < UINT16_MAX;
    ibn_simulate_note(sim, LOG_HOQ_DROP, l, sim->packet[queue->head].lid, input, vc->dropped_in_row);
    sim->counters[c].hoq++;
    ibn_simulate_drop(sim, c, l, input);
    return sim->stall_count[c] && vc->dropped_in_row >= sim->stall_count[c];
}

/* Drop the packets that are too old at the heads of the queues of a VC, and schedule the next check. */
void ibn_simulate_head(ibn_sim *sim, int32_t l)
{
    int32_t c = l / sim->vls;
    const ibn_channel *channel = &sim->channel[c];
    const ibn_fifo *queue = &sim->queue[channel->queues + (l - c * sim->vls) * channel->inputs];
    if (sim->watch[l].check != sim->now)
        return;
    sim->watch[l].check = 0;
    for (int32_t input = 0; input < channel->inputs; input++) {
        drop_aged(sim, c, l, input, &queue[input]);
        if (drop_head(sim, c, l, input, &queue[input])) {
            stall(sim, c, l);
            break;
        }
    }
    ibn_simulate_arm(sim, l);
}
