/* Drops for age: head-of-queue lifetime, VL stall, switch lifetime. */
#include "internal/sim.h"

#define NEVER INT64_MAX

/* When the head of a lane, or the oldest of its inputs' heads, is too old. */
static int64_t deadline(const ibn_sim *sim, int32_t c, int32_t l)
{
    const ibn_channel *channel = &sim->channel[c];
    int64_t at = sim->hoq[c] ? sim->lane[l].head + sim->hoq[c] : NEVER, lifetime = sim->lifetime[channel->src];
    if (!lifetime)
        return at;
    const ibn_fifo *queue = &sim->queue[channel->queues + (l - c * sim->vls) * channel->inputs];
    for (int32_t input = 0; input < channel->inputs; input++) {
        if (queue[input].head != IBN_NONE && sim->packet[queue[input].head].ready + lifetime < at)
            at = sim->packet[queue[input].head].ready + lifetime;
    }
    return at;
}

/* Look at a lane again when its head may be too old. */
void ibn_sim_arm(ibn_sim *sim, int32_t l)
{
    int32_t c = l / sim->vls;
    if (sim->watch[l].timed || !sim->lane[l].waiting || !(sim->hoq[c] || sim->lifetime[sim->channel[c].src]))
        return;
    int64_t at = deadline(sim, c, l);
    if (at == NEVER)
        return;
    sim->watch[l].timed = 1;
    ibn_at(sim, at > sim->now ? at : sim->now + 1, EV_HEAD, l, 0);
}

/* Drop the packet in front of an input. */
static void drop(ibn_sim *sim, int32_t c, int32_t l, int32_t input)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t p = ibn_sim_dequeue(sim, c, l - c * sim->vls, input);
    const ibn_packet *packet = &sim->packet[p];
    sim->counters[c].discards++;
    if (!channel->waiting) {
        int64_t from = channel->since > channel->busy ? channel->since : channel->busy;
        sim->counters[c].wait += sim->now > from ? sim->now - from : 0;
    }
    sim->lane[packet->lane].held -= packet->blocks;
    if (sim->options.single_fifo)
        ibn_at(sim, packet->tail > sim->now ? packet->tail : sim->now + 1, EV_EXPOSE, packet->lane, 0);
    ibn_sim_lose(sim, p);
}

static int32_t some_input(const ibn_sim *sim, int32_t l)
{
    for (int32_t w = 0; w < sim->words; w++) {
        uint64_t word = sim->mask[(int64_t)l * sim->words + w];
        if (word)
            return w * 64 + __builtin_ctzll(word);
    }
    return IBN_NONE;
}

/* Too many heads in a row were dropped: all that want this lane are dropped for a while. */
static void stall(ibn_sim *sim, int32_t c, int32_t l)
{
    int64_t until = sim->now + sim->options.stall_multiple * sim->hoq[c];
    sim->watch[l].stalled = 1;
    sim->watch[l].dropped_in_row = 0;
    ibn_sim_note(sim, LOG_STALLED, l, until, 0, 0);
    while (sim->lane[l].waiting) {
        sim->counters[c].stalled++;
        drop(sim, c, l, some_input(sim, l));
    }
    ibn_at(sim, until, EV_UNSTALL, l, 0);
}

void ibn_sim_unstall(ibn_sim *sim, int32_t l)
{
    sim->watch[l].stalled = 0;
    ibn_sim_note(sim, LOG_UNSTALLED, l, 0, 0, 0);
}

/* Drop those heads of the inputs that have been in the switch for too long. */
static void drop_aged(ibn_sim *sim, int32_t c, int32_t l)
{
    const ibn_channel *channel = &sim->channel[c];
    int64_t lifetime = sim->lifetime[channel->src];
    const ibn_fifo *queue = &sim->queue[channel->queues + (l - c * sim->vls) * channel->inputs];
    for (int32_t input = 0; lifetime && input < channel->inputs; input++) {
        while (queue[input].head != IBN_NONE && sim->packet[queue[input].head].ready + lifetime <= sim->now) {
            sim->counters[c].lifetime++;
            drop(sim, c, l, input);
        }
    }
}

/* A lane's head may have waited too long. */
void ibn_sim_head(ibn_sim *sim, int32_t l)
{
    int32_t c = l / sim->vls, input;
    ibn_lane *lane = &sim->lane[l];
    ibn_watch *watch = &sim->watch[l];
    watch->timed = 0;
    drop_aged(sim, c, l);
    if (lane->waiting && sim->hoq[c] && lane->head + sim->hoq[c] <= sim->now &&
        (input = ibn_sim_choose_input(sim, c, l, l - c * sim->vls)) != IBN_NONE) {
        int32_t lid = sim->packet[sim->queue[sim->channel[c].queues + (l - c * sim->vls) * sim->channel[c].inputs + input].head].lid;
        ibn_sim_note(sim, LOG_HOQ_DROP, l, lid, input, ++watch->dropped_in_row);
        sim->counters[c].hoq++;
        drop(sim, c, l, input);
        lane->head = sim->now;
        if (sim->stall_count[c] && watch->dropped_in_row >= sim->stall_count[c])
            stall(sim, c, l);
    }
    ibn_sim_arm(sim, l);
}
