/* A packet at a switch: looked up, queued for its output, taken out again; and what a CA receives. */
#include "internal/sim.h"

#define NO_VL 15

/* The buffer of a lane has blocks to offer again from that time on. */
void ibn_sim_give_back(ibn_sim *sim, int32_t c, int32_t lane, int32_t blocks, int64_t when)
{
    sim->lane[lane].returning += blocks;
    if (sim->options.fcp_period)
        ibn_at(sim, when > sim->now ? when : sim->now + 1, EV_FREED, lane, blocks);
    else
        ibn_at(sim, when + sim->channel[c].wire, EV_CREDIT, lane, blocks);
}

/* A packet that has left every queue and buffer is gone. */
void ibn_sim_lose(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    int64_t when = packet->tail > sim->now ? packet->tail : sim->now;
    ibn_sim_give_back(sim, packet->channel, packet->lane, packet->blocks, when);
    sim->dropped++;
    sim->dropped_bytes += packet->bytes;
    sim->flow[packet->flow].dropped++;
    ibn_free_packet(sim, p);
}

void ibn_sim_enqueue(ibn_sim *sim, int32_t p, int32_t c, int32_t vl, int32_t input)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl;
    ibn_lane *lane = &sim->lane[l];
    ibn_fifo *queue = &sim->queue[channel->queues + vl * channel->inputs + input];
    ibn_packet *packet = &sim->packet[p];
    packet->next = IBN_NONE;
    packet->headed = sim->now;
    if (queue->head == IBN_NONE) {
        queue->head = p;
        sim->mask[(int64_t)l * sim->words + (input >> 6)] |= 1ull << (input & 63);
    } else {
        sim->packet[queue->tail].next = p;
    }
    queue->tail = p;
    if (!lane->waiting++) {
        lane->since = sim->now;
        channel->vls |= (uint16_t)(1u << vl);
        if (channel->ages)
            ibn_sim_arm(sim, l);
    }
    if (!channel->waiting++)
        channel->since = sim->now;
    if (channel->busy <= sim->now) {
        ibn_touch(sim, c);
    } else if (!channel->called) {
        channel->called = 1;
        ibn_at(sim, channel->busy, EV_FREE, c, 0);
    }
}

int32_t ibn_sim_dequeue(ibn_sim *sim, int32_t c, int32_t vl, int32_t input)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl;
    ibn_lane *lane = &sim->lane[l];
    ibn_fifo *queue = &sim->queue[channel->queues + vl * channel->inputs + input];
    int32_t p = queue->head;
    queue->head = sim->packet[p].next;
    if (queue->head == IBN_NONE)
        sim->mask[(int64_t)l * sim->words + (input >> 6)] &= ~(1ull << (input & 63));
    else
        sim->packet[queue->head].headed = sim->now;
    lane->next_input = input + 1 < channel->inputs ? input + 1 : 0;
    if (!--lane->waiting)
        channel->vls &= (uint16_t)~(1u << vl);
    channel->waiting--;
    return p;
}

/* Put a packet into the queue of its output; 0 if it had nowhere to go. */
static int forward(ibn_sim *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    const ibn_channel *from = &sim->channel[packet->channel];
    int32_t device = from->dst;
    int port = sim->lft[(int64_t)device * sim->lids + packet->lid];
    int32_t out = sim->at_port[device * 256 + port];
    int32_t l = packet->lane;
    if (out == IBN_NONE || out == from->reverse) {
        sim->counters[packet->channel].relay++;
        sim->lane[l].held -= packet->blocks;
        ibn_sim_lose(sim, p);
        return 0;
    }
    int vl;
    if (sim->sl2vl_ports) {
        int64_t row = ((int64_t)device * sim->sl2vl_ports + from->dst_port) * sim->sl2vl_ports + port;
        vl = sim->sl2vl[row * 16 + packet->sl];
    } else {
        vl = sim->sl2vl[packet->sl];
    }
    if (vl >= sim->vls || vl == NO_VL) {
        sim->counters[out].discards++;
        sim->lane[l].held -= packet->blocks;
        ibn_sim_lose(sim, p);
        return 0;
    }
    if (sim->lane[out * sim->vls + vl].stalled) {
        sim->counters[out].discards++;
        sim->counters[out].stalled++;
        sim->lane[l].held -= packet->blocks;
        ibn_sim_lose(sim, p);
        return 0;
    }
    ibn_sim_enqueue(sim, p, out, vl, from->in_index);
    return 1;
}

void ibn_sim_arrive(ibn_sim *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    int32_t l = packet->lane;
    ibn_lane *lane = &sim->lane[l];
    lane->flying -= packet->blocks;
    if (lane->held + packet->blocks > lane->buffer + lane->reserve) {
        sim->counters[packet->channel].overrun++;
        ibn_sim_note(sim, LOG_OVERRUN, l, packet->lid, packet->blocks, 0);
        ibn_sim_lose(sim, p);
        return;
    }
    lane->held += packet->blocks;
    packet->ready = sim->now;
    if (sim->options.single_fifo) {
        ibn_watch *watch = &sim->watch[l];
        packet->next = IBN_NONE;
        if (watch->hidden.head == IBN_NONE)
            watch->hidden.head = p;
        else
            sim->packet[watch->hidden.tail].next = p;
        watch->hidden.tail = p;
        if (!watch->busy_input)
            ibn_sim_expose(sim, l);
        return;
    }
    forward(sim, p);
}

/* Single FIFO: the packet in front, if there is one, is shown to its output. */
void ibn_sim_expose(ibn_sim *sim, int32_t l)
{
    ibn_watch *watch = &sim->watch[l];
    watch->busy_input = 0;
    while (!watch->busy_input && watch->hidden.head != IBN_NONE) {
        int32_t p = watch->hidden.head;
        watch->hidden.head = sim->packet[p].next;
        watch->busy_input = (uint8_t)forward(sim, p);
    }
}

void ibn_sim_deliver(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    ibn_lane *lane = &sim->lane[packet->lane];
    ibn_flow *flow = &sim->flow[packet->flow];
    int64_t latency = sim->now - packet->born;
    lane->flying -= packet->blocks;
    lane->fccl += (uint32_t)packet->blocks;
    if (lane->waiting && sim->channel[packet->channel].busy <= sim->now)
        ibn_touch(sim, packet->channel);
    if (sim->lid_device[packet->lid] != sim->channel[packet->channel].dst) {
        sim->counters[packet->channel].relay++; /* tables changed, and it has come to somebody else */
        sim->dropped++;
        sim->dropped_bytes += packet->bytes;
        flow->dropped++;
        ibn_free_packet(sim, p);
        return;
    }
    flow->packets++;
    flow->bytes_got += packet->bytes;
    flow->messages_got += packet->last;
    flow->latency += latency;
    flow->network += sim->now - packet->entered;
    if (latency > flow->worst)
        flow->worst = latency;
    sim->delivered++;
    sim->delivered_bytes += packet->bytes;
    ibn_free_packet(sim, p);
}
