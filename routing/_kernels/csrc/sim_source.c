/* Flows: the next packet in front of a CA's port. */
#include "internal/sim_flow.h"
#include "internal/sim_queue.h"

#define BLOCK 64

/* Put the next packet of a flow in front of its CA's port, or come back when its next message is due. */
void ibn_sim_prepare(ibn_sim *sim, int32_t f)
{
    ibn_flow *flow = &sim->flow[f];
    if (flow->head != IBN_NONE)
        return;
    if (!flow->left) {
        if (flow->made >= flow->messages || flow->due >= flow->stop)
            return;
        if (flow->due > sim->now) {
            if (!flow->called)
                ibn_at(sim, flow->due, EV_INJECT, f, 0);
            flow->called = 1;
            return;
        }
        if (sim->now >= flow->stop && flow->process == PROCESS_PERSISTENT)
            return;
        ibn_flow_begin(flow, sim->lists, sim->trace, sim->now);
    }
    int32_t p = ibn_new_packet(sim);
    if (p == IBN_NONE)
        return;
    ibn_packet *packet = &sim->packet[p];
    packet->bytes = (uint16_t)(flow->left < flow->mtu ? flow->left : flow->mtu);
    packet->blocks = (uint16_t)((packet->bytes + BLOCK - 1) / BLOCK);
    flow->left -= packet->bytes;
    packet->last = flow->left == 0;
    packet->born = flow->born;
    packet->ready = packet->tail = packet->entered = sim->now;
    packet->flow = f;
    packet->channel = packet->lane = IBN_NONE;
    packet->lid = (uint16_t)flow->lid;
    packet->sl = sim->sl[flow->sl_row * sim->lids + flow->lid];
    flow->head = p;
    ibn_enqueue(sim, p, flow->channel, sim->ca_sl2vl[packet->sl], flow->index, 0);
}

/* When every flow begins. */
void ibn_sim_start_flows(ibn_sim *sim)
{
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_flow *flow = &sim->flow[f];
        flow->key = ibn_flow_key(sim->options.seed, flow);
        flow->head = IBN_NONE;
        ibn_flow_due(flow, sim->trace, 0);
        ibn_sim_prepare(sim, f);
    }
}

/* Has any CA a packet that it could not send yet? */
int ibn_sim_wants_to_send(const ibn_sim *sim)
{
    for (int32_t f = 0; f < sim->flows; f++)
        if (sim->flow[f].head != IBN_NONE)
            return 1;
    return 0;
}

void ibn_sim_stop_flow(ibn_sim *sim, int32_t f, int64_t at)
{
    sim->flow[f].stop = at;
}
