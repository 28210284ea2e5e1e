/* Traffic of simulations: due times and destinations of messages, their packets, and
 * statistics of deliveries.
 *
 * Message n of a flow uses the numbers 4n to 4n + 3 of a stream of random numbers.  The stream is determined by the
 * channel of the CA and by the number of the flow among the flows of this channel.  So the traffic of one CA does not
 * depend on the flows of other CAs. */
#pragma once

#include <math.h>

#include "simulate/internal/sim.h"

#define IBN_FLOW_NUMBERS 17
#define IBN_FLOW_REALS 6
#define IBN_BLOCK 64 /* size of a block in bytes */

enum { FLOW_NOTHING, FLOW_LATER, FLOW_NOW };

/* Set the fields of a flow from row f of the arrays that Python passes.  FLOW_NUMBERS and FLOW_REALS of
 * simulation_arrays.py name the columns of the arrays. */
static inline void ibn_simulate_flow_set(ibn_flow *flow, const ibn_sim_traffic *traffic, int64_t f)
{
    const int64_t *n = traffic->numbers + f * IBN_FLOW_NUMBERS;
    const double *r = traffic->reals + f * IBN_FLOW_REALS;
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
    flow->window = n[16];
    flow->mean = r[0];
    flow->factor = r[1];
    flow->burst = r[2];
    flow->gap = r[3];
    flow->hot = r[4];
}

/* Convert a random 64-bit number to a fraction of at least 0 and below 1. */
static inline double ibn_simulate_fraction(uint64_t number)
{
    return (double)(number >> 11) * 0x1p-53;
}

/* Return a random LID of a list in `lists`.  The list has `count` LIDs and begins at index `list`.  The upper half of
 * the random number `number` selects the LID. */
static inline int32_t ibn_simulate_pick(const int32_t *lists, int32_t list, int32_t count, uint64_t number)
{
    return lists[list + (int32_t)(((number >> 32) * (uint64_t)count) >> 32)];
}

/* Choose the destination LID of message n of a flow. */
static inline int32_t ibn_simulate_flow_destination(const ibn_flow *flow, const int32_t *lists, int64_t n)
{
    uint64_t number = ibn_simulate_number(flow->key, 4 * (uint64_t)n + 1);
    int32_t others = flow->count - (flow->self >= 0), step;
    if (flow->pattern == PATTERN_HOTSPOT
        && ibn_simulate_fraction(ibn_simulate_number(flow->key, 4 * (uint64_t)n + 2)) < flow->hot)
        return ibn_simulate_pick(lists, flow->hot_list, flow->hot_count, number);
    if (flow->pattern == PATTERN_CYCLE)
        step = (int32_t)(n % others);
    else
        step = (int32_t)(((number >> 32) * (uint64_t)others) >> 32);
    if (flow->self >= 0)
        step = (flow->self + 1 + step) % flow->count;
    return lists[flow->list + step];
}

/* Set flow->due to the tick at which message n of the flow is due.  On entry, flow->due must be the due time of message
 * n - 1. */
static inline void ibn_simulate_flow_due(ibn_flow *flow, const int64_t *trace, int64_t n)
{
    double u = ibn_simulate_fraction(ibn_simulate_number(flow->key, 4 * (uint64_t)n));
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
        if (n == 0 || ibn_simulate_fraction(ibn_simulate_number(flow->key, 4 * (uint64_t)n + 3)) * flow->burst < 1.0)
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

/* Begin the next message of a flow: set the destination and size of the message, and the due time of the message after
 * it. */
static inline void ibn_simulate_flow_begin(ibn_flow *flow, const int32_t *lists, const int64_t *trace, int64_t now)
{
    int64_t n = flow->made++;
    if (flow->process == PROCESS_TRACE) {
        flow->lid = (int32_t)trace[3 * (flow->list + n) + 1];
        flow->left = (int32_t)trace[3 * (flow->list + n) + 2];
    } else {
        flow->lid = ibn_simulate_flow_destination(flow, lists, n);
        flow->left = flow->bytes;
    }
    flow->born = flow->process == PROCESS_PERSISTENT ? now : flow->due;
    ibn_simulate_flow_due(flow, trace, n + 1);
}

/* Prepare a flow for its first message. */
static inline void ibn_simulate_flow_start(ibn_flow *flow, uint64_t seed, const int64_t *trace)
{
    flow->key = ibn_simulate_key(seed, 1, (uint64_t)flow->channel << 20 | (uint64_t)flow->index);
    flow->head = IBN_NONE;
    ibn_simulate_flow_due(flow, trace, 0);
}

/* Decide what a flow does next, and begin its next message if this message is due.
 *
 * FLOW_NOW: the caller has to create a packet of the message now, by ibn_simulate_flow_cut.
 * FLOW_LATER: the caller has to schedule an injection event for tick flow->due.
 * FLOW_NOTHING: the caller has to do nothing.  A packet is already at the port of the CA, an event is
 * pending, no message is left, or as many packets of the flow are in flight as its window allows. */
static inline int ibn_simulate_flow_next(ibn_flow *flow, const int32_t *lists, const int64_t *trace, int64_t now)
{
    if (flow->head != IBN_NONE)
        return FLOW_NOTHING;
    if (flow->sent_packets - flow->packets - flow->dropped >= flow->window) {
        flow->shut = 1;
        return FLOW_NOTHING;
    }
    if (flow->left)
        return FLOW_NOW;
    if (flow->made >= flow->messages || flow->due >= flow->stop)
        return FLOW_NOTHING;
    if (flow->due > now) {
        int called = flow->called;
        flow->called = 1;
        return called ? FLOW_NOTHING : FLOW_LATER;
    }
    if (now >= flow->stop && flow->process == PROCESS_PERSISTENT)
        return FLOW_NOTHING;
    ibn_simulate_flow_begin(flow, lists, trace, now);
    return FLOW_NOW;
}

/* Create packet p from the next bytes of the present message of flow f.  From then on, the packet waits at the port of
 * the CA. */
static inline void ibn_simulate_flow_cut(ibn_flow *flow, int32_t f, ibn_packet *packet, int32_t p, int64_t now)
{
    packet->bytes = (uint16_t)(flow->left < flow->mtu ? flow->left : flow->mtu);
    packet->blocks = (uint16_t)((packet->bytes + IBN_BLOCK - 1) / IBN_BLOCK);
    flow->left -= packet->bytes;
    packet->last = flow->left == 0;
    packet->born = flow->born;
    packet->tail = now;
    packet->flow = f;
    packet->channel = packet->vc = IBN_NONE;
    packet->lid = (uint16_t)flow->lid;
    flow->head = p;
}

/* Count a packet that begins to leave its source CA, in the statistics of its flow. */
static inline void ibn_simulate_flow_sent(ibn_flow *flow, ibn_packet *packet, int64_t now)
{
    packet->entered = now;
    flow->sent_packets++;
    flow->sent_bytes += packet->bytes;
}

/* Return the bucket of a histogram to which a latency belongs.  Each latency below 64 ticks has its own bucket.  From
 * 64 ticks on, the range from each power of two to the next one has 32 buckets of equal width.  The width of such a
 * bucket is at most 3.2 % of a latency in the bucket. */
static inline int32_t ibn_simulate_latency_bucket(int64_t latency)
{
    if (latency < 64)
        return (int32_t)(latency > 0 ? latency : 0);
    int power = 63 - __builtin_clzll((uint64_t)latency);
    return 64 + (power - 6) * 32 + (int32_t)(latency >> (power - 5) & 31);
}

/* Count a packet whose tail has reached its destination CA, and its latency, in the statistics of its flow. */
static inline void ibn_simulate_flow_got(ibn_flow *flow, const ibn_packet *packet, int64_t now,
                                         int64_t latencies[2][IBN_LATENCY_BUCKETS])
{
    int64_t latency = now - packet->born;
    int32_t bucket = ibn_simulate_latency_bucket(latency);
    latencies[0][bucket]++;
    latencies[1][bucket] += packet->last;
    flow->packets++;
    flow->bytes_got += packet->bytes;
    flow->messages_got += packet->last;
    flow->latency += latency;
    flow->network += now - packet->entered;
    if (latency > flow->worst)
        flow->worst = latency;
}

/* Return 1 if a flow was stopped because its window was full, else 0.  The caller calls this function after a packet of
 * the flow was delivered or lost, so the window has room again.  If the result is 1, the caller schedules an injection
 * event for the next tick. */
static inline int ibn_simulate_flow_opens(ibn_flow *flow)
{
    int shut = flow->shut;
    flow->shut = 0;
    return shut;
}

/* Return the number of flows whose next packet waits at the port of the CA. */
static inline int64_t ibn_simulate_flow_pressing(const ibn_flow *flow, int32_t flows)
{
    int64_t count = 0;
    for (int32_t f = 0; f < flows; f++)
        count += flow[f].head != IBN_NONE;
    return count;
}
