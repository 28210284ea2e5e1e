/* Flows: when the next message of a CA is due, where it goes, its packets.
 *
 * Message n of a flow draws numbers 4n to 4n+3 of a stream that belongs to the CA's channel and the flow's place there,
 * so that no CA's traffic depends on another's. */
#include "internal/sim_queue.h"

#include <math.h>

#define BLOCK 64

static double fraction(uint64_t number)
{
    return (double)(number >> 11) * 0x1p-53;
}

static int32_t pick(const ibn_sim *sim, int32_t list, int32_t count, uint64_t number)
{
    return sim->lists[list + (int32_t)(((number >> 32) * (uint64_t)count) >> 32)];
}

/* The LID that message n goes to. */
static int32_t destination(const ibn_sim *sim, const ibn_flow *flow, int64_t n)
{
    uint64_t number = ibn_number(flow->key, 4 * (uint64_t)n + 1);
    int32_t others = flow->count - (flow->self >= 0), step;
    if (flow->pattern == PATTERN_HOTSPOT && fraction(ibn_number(flow->key, 4 * (uint64_t)n + 2)) < flow->hot)
        return pick(sim, flow->hot_list, flow->hot_count, number);
    if (flow->pattern == PATTERN_CYCLE)
        step = (int32_t)(n % others);
    else
        step = (int32_t)(((number >> 32) * (uint64_t)others) >> 32);
    if (flow->self >= 0)
        step = (flow->self + 1 + step) % flow->count;
    return sim->lists[flow->list + step];
}

/* When message n is due, given when the one before it was. */
static void next_due(const ibn_sim *sim, ibn_flow *flow, int64_t n)
{
    double u = fraction(ibn_number(flow->key, 4 * (uint64_t)n));
    switch (flow->process) {
    case PROCESS_POISSON:
        flow->clock += -log(1.0 - u) * flow->mean;
        flow->due = flow->start + (int64_t)ceil(flow->clock);
        break;
    case PROCESS_BERNOULLI:
        flow->slots += 1 + (int64_t)floor(log(1.0 - u) * flow->factor);
        flow->due = flow->start + (flow->slots - 1) * flow->slot;
        break;
    case PROCESS_BURSTY:
        flow->clock += flow->mean;
        if (n == 0 || fraction(ibn_number(flow->key, 4 * (uint64_t)n + 3)) * flow->burst < 1.0)
            flow->clock += -log(1.0 - u) * flow->gap;
        flow->due = flow->start + (int64_t)ceil(flow->clock);
        break;
    case PROCESS_TRACE:
        if (n < flow->messages)
            flow->due = sim->trace[3 * (flow->list + n)];
        break;
    default:
        flow->due = flow->start;
    }
}

static void begin_message(ibn_sim *sim, ibn_flow *flow)
{
    int64_t n = flow->made++;
    if (flow->process == PROCESS_TRACE) {
        flow->lid = (int32_t)sim->trace[3 * (flow->list + n) + 1];
        flow->left = (int32_t)sim->trace[3 * (flow->list + n) + 2];
    } else {
        flow->lid = destination(sim, flow, n);
        flow->left = flow->bytes;
    }
    flow->born = flow->process == PROCESS_PERSISTENT ? sim->now : flow->due;
    next_due(sim, flow, n + 1);
}

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
        begin_message(sim, flow);
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
        flow->key = ibn_key(sim->options.seed, 1, (uint64_t)flow->channel << 20 | (uint64_t)flow->index);
        flow->head = IBN_NONE;
        next_due(sim, flow, 0);
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
