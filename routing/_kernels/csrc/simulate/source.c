/* Traffic sources: put the next packet of each flow into the queue at the port of its CA. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

/* Let packet p wait at the port of its CA, in the queue of its flow. */
static inline void offer(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    const ibn_flow *flow = &sim->flow[packet->flow];
    if (sim->adaptive) {
        ibn_simulate_adaptive_offer(sim, p);
        return;
    }
    int32_t vl = ibn_simulate_choose_vl(sim, p, flow->channel, sim->ca_sl2vl[packet->sl]);
    ibn_simulate_enqueue(sim, p, flow->channel, vl, flow->index, 0);
}

void ibn_simulate_offer(ibn_sim *sim, int32_t p)
{
    offer(sim, p);
}

/* Put the next packet of flow f into the queue at the port of its CA.  If the next message of the flow is not due yet,
 * schedule an event for its due time instead. */
void ibn_simulate_prepare(ibn_sim *sim, int32_t f)
{
    ibn_flow *flow = &sim->flow[f];
    int next = ibn_simulate_flow_next(flow, sim->lists, sim->trace, sim->now);
    if (next == FLOW_LATER)
        ibn_simulate_at(sim, flow->due, EV_INJECT, f, 0);
    if (next != FLOW_NOW || (sim->hooks & IBN_HOOK_GATE && !ibn_simulate_gate(sim, f)))
        return;
    int32_t p = ibn_simulate_new_packet(sim);
    if (p == IBN_NONE)
        return;
    ibn_packet *packet = &sim->packet[p];
    ibn_simulate_flow_cut(flow, f, packet, p, sim->now);
    packet->ready = sim->now;
    packet->sl = sim->sl[flow->sl_row * sim->lids + flow->lid];
    if (sim->hooks & IBN_HOOK_MADE)
        ibn_simulate_on_made(sim, p);
    offer(sim, p);
}

/* Start all flows of a simulation. */
void ibn_simulate_start_flows(ibn_sim *sim)
{
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_simulate_flow_start(&sim->flow[f], sim->options.seed, sim->trace);
        ibn_simulate_prepare(sim, f);
    }
}

void ibn_simulate_stop_flow(ibn_sim *sim, int32_t f, int64_t at)
{
    sim->flow[f].stop = at;
}
