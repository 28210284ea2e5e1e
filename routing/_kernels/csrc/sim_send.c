/* A channel that is free sends a packet: credits, counters, and what follows from it. */
#include "internal/sim_queue.h"

/* The buffer that a packet leaves, and its credits; or the flow that it comes from. */
static void leave(ibn_sim *sim, ibn_packet *packet, int64_t end)
{
    if (packet->lane == IBN_NONE) {
        packet->entered = sim->now;
        sim->injected++;
        sim->injected_bytes += packet->bytes;
        sim->flow[packet->flow].sent_packets++;
        sim->flow[packet->flow].sent_bytes += packet->bytes;
        return;
    }
    sim->lane[packet->lane].held -= packet->blocks;
    ibn_give_back(sim, packet->channel, packet->lane, packet->blocks, end);
    if (sim->options.single_fifo)
        ibn_at(sim, end, EV_EXPOSE, packet->lane, 0);
}

static void send(ibn_sim *sim, int32_t c, int vl, int32_t input)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl, p = ibn_dequeue(sim, c, vl, input), flow = sim->packet[p].flow;
    ibn_lane *lane = &sim->lane[l];
    ibn_packet *packet = &sim->packet[p];
    int64_t work = packet->bytes * channel->cost + channel->carry, ready = channel->since;
    int64_t length = work >> IBN_COST_BITS, end = sim->now + (length ? length : 1);
    channel->carry = work & ((1 << IBN_COST_BITS) - 1);
    if (packet->tail > end)
        end = packet->tail; /* it cannot leave before it has come */
    channel->wait += sim->now - (ready > channel->busy ? ready : channel->busy);
    channel->bytes += packet->bytes;
    channel->packets++;
    channel->busy = end;
    lane->fctbs += (uint32_t)packet->blocks;
    lane->flying += packet->blocks;
    lane->sent = end;
    lane->pass -= lane->pass > 0;
    lane->dropped_in_row = 0;
    lane->next_input = input + 1 < channel->inputs ? input + 1 : 0;
    sim->hops++;
    sim->last_move = sim->now;
    int from_source = packet->lane == IBN_NONE;
    leave(sim, packet, end);
    packet->lane = l;
    packet->channel = c;
    packet->tail = end + channel->wire;
    if (channel->to_switch)
        ibn_at(sim, sim->now + channel->wire + channel->delay, EV_ARRIVE, p, 0);
    else
        ibn_at(sim, packet->tail, EV_DELIVER, p, 0);
    if (from_source) {
        sim->flow[flow].head = IBN_NONE;
        ibn_sim_prepare(sim, flow);
    }
}

static inline void arbitrate(ibn_sim *sim, int32_t c)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t input;
    if (!channel->vls || channel->busy > sim->now)
        return;
    int vl = ibn_sim_choose_vl(sim, c, &input);
    if (vl == IBN_NONE)
        return;
    send(sim, c, vl, input);
    if (channel->waiting && !channel->called) {
        channel->called = 1;
        ibn_at(sim, channel->busy, EV_FREE, c, 0);
    }
}

/* Large networks do not fit the caches: ask for what a channel will touch. */
static inline void fetch(const ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    if (channel->vls) {
        int64_t l = (int64_t)c * sim->vls + __builtin_ctz(channel->vls);
        __builtin_prefetch(&sim->lane[l]);
        __builtin_prefetch(&sim->mask[l * sim->words]);
    }
}

/* Look at every channel that was touched. */
void ibn_sim_arbitrate(ibn_sim *sim)
{
    for (int32_t i = 0; i < sim->touches; i++) {
        if (i + 2 < sim->touches)
            fetch(sim, sim->touched[i + 2]);
        sim->channel[sim->touched[i]].touched = 0;
        arbitrate(sim, sim->touched[i]);
    }
    sim->touches = 0;
}
