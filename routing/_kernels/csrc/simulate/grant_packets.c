/* Packets of the mechanism `request-grant`: arrivals at adapters, virtual output queues, segments, and reassembly. */
#include <math.h>
#include <stdlib.h>

#include "simulate/internal/flow.h"
#include "simulate/internal/request_grant.h"

#define STREAM_OF_ARRIVALS 20
#define FIRST_ROOM 1024

/* Double the length of an array of `made` elements, and return the new length, or 0 if memory runs out. */
static int32_t grow(ibn_sim *sim, void **array, int32_t made, size_t width)
{
    int32_t wanted = made ? 2 * made : FIRST_ROOM;
    void *larger = wanted >> GRANT_KIND_BITS ? NULL : realloc(*array, (size_t)wanted * width);
    if (!larger) {
        sim->failed = 1;
        return 0;
    }
    *array = larger;
    return wanted;
}

static int32_t new_packet(ibn_sim *sim, request_grant *state)
{
    if (state->packet_free == IBN_NONE) {
        int32_t made = grow(sim, (void **)&state->packets, state->packets_made, sizeof *state->packets);
        for (int32_t p = made - 1; p >= state->packets_made; p--)
            ibn_grant_free_packet(state, p);
        if (!made)
            return IBN_NONE;
        state->packets_made = made;
    }
    int32_t p = state->packet_free;
    state->packet_free = state->packets[p].next;
    return p;
}

void ibn_grant_free_packet(request_grant *state, int32_t p)
{
    state->packets[p].next = state->packet_free;
    state->packet_free = p;
}

/* Take a segment from the free list and clear it.  Return IBN_NONE if memory runs out. */
int32_t ibn_grant_new_segment(ibn_sim *sim, request_grant *state)
{
    if (state->segment_free == IBN_NONE) {
        int32_t made = grow(sim, (void **)&state->segments, state->segments_made, sizeof *state->segments);
        if (!made)
            return IBN_NONE;
        for (int32_t s = made - 1; s >= state->segments_made; s--) {
            state->segments[s].next = state->segment_free;
            state->segment_free = s;
        }
        state->segments_made = made;
    }
    int32_t s = state->segment_free;
    state->segment_free = state->segments[s].next;
    state->segments[s] = (grant_segment){.first = IBN_NONE, .next = IBN_NONE};
    return s;
}

/* Draw the next random number of an adapter, from 0 to below 1. */
static double draw(const ibn_sim *sim, grant_adapter *adapter, int32_t i)
{
    uint64_t key = ibn_simulate_key(sim->options.seed, STREAM_OF_ARRIVALS, (uint64_t)i);
    return ibn_simulate_fraction(ibn_simulate_number(key, (uint64_t)adapter->draws++));
}

/* Begin a burst at an adapter: draw its number of packets, its destination, and the gap between the last burst and this
 * one. */
static void begin_burst(const ibn_sim *sim, request_grant *state, grant_adapter *adapter, int32_t i)
{
    const int64_t *load = state->load + i * state->adapters;
    double mean = (double)state->burst * 0x1p-20, u = draw(sim, adapter, i);
    adapter->burst = mean > 1.0 ? 1 + (int32_t)(log(1.0 - u) / log(1.0 - 1.0 / mean)) : 1;
    double wanted = draw(sim, adapter, i) * (double)load[state->adapters - 1];
    int32_t low = 0, high = (int32_t)state->adapters - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if ((double)load[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    adapter->target = low;
    adapter->clock += -log(1.0 - draw(sim, adapter, i)) * adapter->gap;
}

/* Schedule the next arrival of a packet at adapter i.  The adapter gets packets from outside of the simulated network
 * by an external line, which carries a byte in each tick.  A packet has arrived when its last byte has arrived. */
void ibn_grant_schedule_arrival(ibn_sim *sim, ibn_attached *self, int32_t i)
{
    request_grant *state = self->state;
    grant_adapter *adapter = &state->adapter[i];
    if (!adapter->burst)
        begin_burst(sim, state, adapter, i);
    adapter->burst--;
    adapter->size = (int32_t)state->small;
    if (state->large_share && draw(sim, adapter, i) * 0x1p30 < (double)state->large_share)
        adapter->size = (int32_t)state->large;
    adapter->clock += adapter->size;
    ibn_simulate_timer(sim, self, (int64_t)ceil(adapter->clock), i, GRANT_ARRIVAL << GRANT_KIND_BITS);
}

/* Store the packet that arrives at adapter i in the VOQ of its destination.  Return the packet's flow, or IBN_NONE if
 * memory runs out. */
int32_t ibn_grant_store_arrival(ibn_sim *sim, request_grant *state, int32_t i)
{
    grant_adapter *adapter = &state->adapter[i];
    int32_t f = i * (int32_t)state->adapters + adapter->target, p = new_packet(sim, state);
    if (p == IBN_NONE)
        return IBN_NONE;
    grant_flow *flow = &state->flow[f];
    state->packets[p] = (grant_packet){
        .born = sim->now, .bytes = adapter->size, .unsent = adapter->size, .next = IBN_NONE};
    if (flow->oldest == IBN_NONE)
        flow->oldest = p;
    else
        state->packets[flow->newest].next = p;
    flow->newest = p;
    flow->sending = flow->sending == IBN_NONE ? p : flow->sending;
    flow->asking = flow->asking == IBN_NONE ? p : flow->asking;
    state->adapter[adapter->target].offered++;
    state->adapter[adapter->target].offered_bytes += adapter->size;
    return f;
}

/* Return the size in bytes of the next segment of a VOQ that is not empty.  A segment may carry bytes of several
 * packets.  All these packets belong to one request, because the segment uses a grant for this request. */
int32_t ibn_grant_next_bytes(const request_grant *state, const grant_flow *flow)
{
    int64_t bytes = 0;
    for (int32_t p = flow->sending; p != IBN_NONE && bytes < state->segment; p = state->packets[p].next) {
        bytes += state->packets[p].unsent;
        if (state->packets[p].request_end)
            break;
    }
    return (int32_t)(bytes < state->segment ? bytes : state->segment);
}

/* Move the next `bytes` bytes of a flow's VOQ to a segment.  Return the packet to which the last of these bytes
 * belongs. */
int32_t ibn_grant_fill(request_grant *state, grant_flow *flow, grant_segment *segment, int32_t bytes)
{
    int32_t last = flow->sending;
    segment->first = flow->sending;
    while (bytes > 0) {
        last = flow->sending;
        grant_packet *packet = &state->packets[last];
        int32_t part = bytes < packet->unsent ? bytes : packet->unsent;
        packet->unsent -= part;
        packet->underway++;
        segment->count++;
        bytes -= part;
        if (!packet->unsent)
            flow->sending = packet->next;
    }
    return last;
}

/* Request grants for the next packets of a flow, as many as the limit of the flow allows.  Return the number of
 * segments for which grants are requested.
 *
 * A request is for whole packets, so that the grant reserves space for all segments of each packet. */
int32_t ibn_grant_request(request_grant *state, grant_flow *flow)
{
    int64_t bytes = 0, segments = 0;
    int32_t last = IBN_NONE, p = flow->asking;
    for (; p != IBN_NONE; p = state->packets[p].next) {
        int64_t wanted = (bytes + state->packets[p].unsent + state->segment - 1) / state->segment;
        if (flow->pending + wanted > state->most)
            break;
        bytes += state->packets[p].unsent;
        segments = wanted;
        last = p;
    }
    if (last == IBN_NONE)
        return 0;
    state->packets[last].request_end = 1;
    flow->asking = p;
    flow->pending += (int32_t)segments;
    return (int32_t)segments;
}

/* Remove the oldest packet of a flow if all bytes of the packet have arrived at the output adapter.  Return this
 * packet, or IBN_NONE. */
int32_t ibn_grant_take_complete(request_grant *state, grant_flow *flow)
{
    int32_t p = flow->oldest;
    if (p == IBN_NONE || state->packets[p].unsent || state->packets[p].underway)
        return IBN_NONE;
    flow->oldest = state->packets[p].next;
    if (flow->oldest == IBN_NONE)
        flow->newest = IBN_NONE;
    return p;
}
