/* Flows: when the next message of a CA is due, and where it goes.
 *
 * Message n of a flow draws numbers 4n to 4n+3 of a stream that belongs to the CA's channel and the flow's place there,
 * so that no CA's traffic depends on another's. */
#ifndef IBNUE_INTERNAL_SIM_FLOW_H
#define IBNUE_INTERNAL_SIM_FLOW_H

#include <math.h>

#include "sim.h"

#define IBN_FLOW_NUMBERS 17
#define IBN_FLOW_REALS 6

/* From a row of numbers and one of reals, as the wrapper lays them out. */
static inline void ibn_flow_set(ibn_flow *flow, const int64_t *n, const double *r)
{
    flow->channel = (int32_t)n[0];
    flow->index = (int32_t)n[1];
    flow->process = (int32_t)n[2];
    flow->pattern = (int32_t)n[3];
    flow->list = (int32_t)n[4];
    flow->count = (int32_t)n[5];
    flow->self = (int32_t)n[6];
    flow->hot_list = (int32_t)n[7];
    flow->hot_count = (int32_t)n[8];
    flow->bytes = (int32_t)n[9];
    flow->mtu = (int32_t)n[10];
    flow->sl_row = n[11];
    flow->start = n[12];
    flow->stop = n[13];
    flow->messages = n[14];
    flow->slot = n[15];
    flow->mean = r[0];
    flow->factor = r[1];
    flow->burst = r[2];
    flow->gap = r[3];
    flow->hot = r[4];
}

static inline double ibn_fraction(uint64_t number)
{
    return (double)(number >> 11) * 0x1p-53;
}

static inline int32_t ibn_pick(const int32_t *lists, int32_t list, int32_t count, uint64_t number)
{
    return lists[list + (int32_t)(((number >> 32) * (uint64_t)count) >> 32)];
}

/* The LID that message n goes to. */
static inline int32_t ibn_flow_destination(const ibn_flow *flow, const int32_t *lists, int64_t n)
{
    uint64_t number = ibn_number(flow->key, 4 * (uint64_t)n + 1);
    int32_t others = flow->count - (flow->self >= 0), step;
    if (flow->pattern == PATTERN_HOTSPOT && ibn_fraction(ibn_number(flow->key, 4 * (uint64_t)n + 2)) < flow->hot)
        return ibn_pick(lists, flow->hot_list, flow->hot_count, number);
    if (flow->pattern == PATTERN_CYCLE)
        step = (int32_t)(n % others);
    else
        step = (int32_t)(((number >> 32) * (uint64_t)others) >> 32);
    if (flow->self >= 0)
        step = (flow->self + 1 + step) % flow->count;
    return lists[flow->list + step];
}

/* When message n is due, given when the one before it was. */
static inline void ibn_flow_due(ibn_flow *flow, const int64_t *trace, int64_t n)
{
    double u = ibn_fraction(ibn_number(flow->key, 4 * (uint64_t)n));
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
        if (n == 0 || ibn_fraction(ibn_number(flow->key, 4 * (uint64_t)n + 3)) * flow->burst < 1.0)
            flow->clock += -log(1.0 - u) * flow->gap;
        flow->due = flow->start + (int64_t)ceil(flow->clock);
        break;
    case PROCESS_TRACE:
        if (n < flow->messages)
            flow->due = trace[3 * (flow->list + n)];
        break;
    default:
        flow->due = flow->start;
    }
}

/* The next message: where it goes, and when the one after it is due. */
static inline void ibn_flow_begin(ibn_flow *flow, const int32_t *lists, const int64_t *trace, int64_t now)
{
    int64_t n = flow->made++;
    if (flow->process == PROCESS_TRACE) {
        flow->lid = (int32_t)trace[3 * (flow->list + n) + 1];
        flow->left = (int32_t)trace[3 * (flow->list + n) + 2];
    } else {
        flow->lid = ibn_flow_destination(flow, lists, n);
        flow->left = flow->bytes;
    }
    flow->born = flow->process == PROCESS_PERSISTENT ? now : flow->due;
    ibn_flow_due(flow, trace, n + 1);
}

/* The stream of a flow's random numbers. */
static inline uint64_t ibn_flow_key(uint64_t seed, const ibn_flow *flow)
{
    return ibn_key(seed, 1, (uint64_t)flow->channel << 20 | (uint64_t)flow->index);
}

#endif
