/* Congestion management by requests and grants between adapters (Chrysos, Chen, Minkenberg, Kachris, Katevenis,
 * "End-to-End Congestion Management for Non-Blocking, Multi-Stage Switching Fabrics using Commodity Switches").
 *
 * A flow leads from an input adapter to an output adapter.  The input adapter requests grants for segments, and sends a
 * segment for each grant.  The output adapter grants all requested segments of a flow together.  Before this, it waits
 * until its reassembly buffer has room for the largest possible request.  After this, it grants nothing for a while
 * (implicit rate regulation).  With the option reserve-fabric-buffers, a grant also reserves room in the buffer of the
 * last switch.  The segments of a flow use all paths of the flow in turn.
 *
 * Control data are requests, grants and acknowledgements.  Control data in band travel with segments, or in small
 * segments of their own.  With control data in band, a flow without grants may send one unsolicited segment.  Control
 * data out of band arrive after a fixed delay and use no bandwidth.  Section numbers in comments refer to the
 * publication above.
 *
 * In one tick, an adapter receives at most one segment, and this segment changes the state of this adapter only.  So
 * the order of the hooks within a tick has no effect. */
#include <stdlib.h>
#include <string.h>

#include "simulate/internal/flow.h"
#include "simulate/internal/queue.h"
#include "simulate/internal/request_grant.h"

#define STREAM_OF_PATHS 21

static void timer_at(ibn_sim *sim, ibn_attached *self, int64_t time, int32_t subject, int kind, int32_t value)
{
    ibn_simulate_timer(sim, self, time > sim->now ? time : sim->now + 1, subject, kind << GRANT_KIND_BITS | value);
}

/* Return the flow in the direction opposite to flow f. */
static int32_t opposite(const request_grant *state, int32_t f)
{
    int32_t adapters = (int32_t)state->adapters;
    return f % adapters * adapters + f / adapters;
}

/* Return whether the next segment of a flow carries data.  This requires a grant, with one exception.  With control
 * data in band, a flow may send one segment without a grant if it has no open request and no unacknowledged segment
 * (section 3.2 of the publication "End-to-End Congestion Management"). */
static int may_send_data(const request_grant *state, const grant_flow *flow)
{
    return flow->granted > 0
           || (state->in_band && flow->sending != IBN_NONE && !flow->pending && !flow->unacknowledged);
}

/* Let the next segment of a flow wait at the port of its adapter, if the flow has something to send.  If a segment
 * waits there already, its size is updated. */
static void update(ibn_sim *sim, request_grant *state, int32_t f)
{
    grant_flow *flow = &state->flow[f];
    int32_t bytes = 0, p = sim->flow[f].head;
    if (may_send_data(state, flow))
        bytes = ibn_grant_next_bytes(state, flow);
    else if (flow->grants_to_send || flow->ack_to_send)
        bytes = (int32_t)state->control_bytes;
    if (!bytes)
        return;
    int is_new = p == IBN_NONE;
    if (is_new && (p = ibn_simulate_new_packet(sim)) == IBN_NONE)
        return;
    ibn_packet *packet = &sim->packet[p];
    packet->bytes = (uint16_t)bytes;
    packet->blocks = (uint16_t)((bytes + IBN_BLOCK - 1) / IBN_BLOCK);
    if (!is_new)
        return;
    sim->flow[f].head = p;
    packet->born = packet->tail = packet->ready = sim->now;
    packet->flow = f;
    packet->channel = packet->vc = IBN_NONE;
    packet->lid = (uint16_t)state->lid[f % state->adapters];
    packet->sl = 0;
    packet->last = 1;
    ibn_simulate_enqueue(sim, p, sim->flow[f].channel, 0, sim->flow[f].index, 0);
}

/* Record that the sender of flow f has received grants for `segments` segments. */
static void receive_grant(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t segments)
{
    request_grant *state = self->state;
    grant_flow *flow = &state->flow[f];
    flow->granted += segments;
    flow->pending -= segments;
    state->adapter[f / state->adapters].held += segments;
    update(sim, state, f);
}

/* Return the input adapter of the flow that output o serves next, or IBN_NONE if no flow has requests to output o.  The
 * flow with the smallest virtual time (field `turn`) is next.  A grant advances the virtual time of its flow by the
 * number of granted segments.  So flows that always have requests get equal numbers of segments. */
static int32_t input_to_grant(const request_grant *state, int32_t o)
{
    int32_t best = IBN_NONE;
    int64_t least = 0;
    for (int32_t w = 0; w < state->mask_words; w++) {
        for (uint64_t word = state->asks[o * state->mask_words + w]; word; word &= word - 1) {
            int32_t i = w * 64 + __builtin_ctzll(word);
            int64_t time = state->flow[i * state->adapters + o].turn;
            if (best == IBN_NONE || time < least) {
                best = i;
                least = time;
            }
        }
    }
    return best;
}

/* Let output o grant all segments that one flow has requested (section 3.3 of the publication "End-to-End Congestion
 * Management").  Nothing is granted before the pause after the last grant has ended, and the buffers of the output have
 * room for the largest possible request. */
static void arbitrate(ibn_sim *sim, ibn_attached *self, int32_t o)
{
    request_grant *state = self->state;
    grant_adapter *adapter = &state->adapter[o];
    if (sim->now < adapter->idle_until || adapter->room < state->most
        || (state->reserve && adapter->fabric_room < state->most))
        return;
    int32_t i = input_to_grant(state, o);
    if (i == IBN_NONE)
        return;
    int32_t f = i * (int32_t)state->adapters + o;
    grant_flow *flow = &state->flow[f];
    int32_t segments = flow->requests;
    flow->requests = 0;
    state->asks[o * state->mask_words + (i >> 6)] &= ~(1ull << (i & 63));
    adapter->room -= segments;
    adapter->fabric_room -= state->reserve ? segments : 0;
    adapter->turn = flow->turn;
    flow->turn += segments;
    int64_t idle = (segments * state->grant_cost + (1 << IBN_COST_BITS) - 1) >> IBN_COST_BITS;
    adapter->idle_until = sim->now + (idle > 0 ? idle : 1);
    timer_at(sim, self, adapter->idle_until, o, GRANT_IDLE_END, 0);
    if (!state->in_band) {
        timer_at(sim, self, sim->now + state->control_delay, f, GRANT_GRANT, segments);
        return;
    }
    int32_t back = opposite(state, f);
    state->flow[back].grants_to_send += segments;
    update(sim, state, back);
}

static void receive_request(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t segments)
{
    request_grant *state = self->state;
    grant_flow *flow = &state->flow[f];
    int32_t i = f / (int32_t)state->adapters, o = f % (int32_t)state->adapters;
    if (!flow->requests && flow->turn < state->adapter[o].turn)
        flow->turn = state->adapter[o].turn;
    flow->requests += segments;
    state->asks[o * state->mask_words + (i >> 6)] |= 1ull << (i & 63);
    arbitrate(sim, self, o);
}

/* Send the request of flow f to its output without using a segment (out of band). */
static void request_out_of_band(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    request_grant *state = self->state;
    int32_t segments = ibn_grant_request(state, &state->flow[f]);
    if (segments)
        timer_at(sim, self, sim->now + state->control_delay, f, GRANT_REQUEST, segments);
}

/* Hook: a segment begins to leave its adapter.  Fill the segment with data and control data, and select its path. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    request_grant *state = self->state;
    ibn_packet *packet = &sim->packet[p];
    int32_t f = packet->flow, s = ibn_grant_new_segment(sim, state);
    if (s == IBN_NONE)
        return;
    grant_flow *flow = &state->flow[f];
    grant_segment *segment = &state->segments[s];
    self->tag[p] = s;
    if (may_send_data(state, flow)) {
        int32_t last = ibn_grant_fill(state, flow, segment, packet->bytes);
        segment->granted = flow->granted > 0;
        if (segment->granted) {
            flow->granted--;
            state->adapter[f / state->adapters].held--;
            state->packets[last].granted++;
        } else {
            flow->unacknowledged++;
            flow->asking = flow->sending;
            state->packets[last].unsolicited = 1;
        }
        if (state->in_band)
            segment->request = ibn_grant_request(state, flow);
    }
    segment->grant = flow->grants_to_send;
    segment->ack = (uint8_t)flow->ack_to_send;
    flow->grants_to_send = flow->ack_to_send = 0;
    packet->lid = (uint16_t)(state->lid[f % state->adapters] + flow->path % state->paths);
    flow->path += flow->path_step;
    update(sim, state, f);
}

/* Let a packet depart by the external line.  Its segments leave the reassembly buffer. */
static void depart(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t p)
{
    request_grant *state = self->state;
    grant_packet *packet = &state->packets[p];
    int32_t o = f % (int32_t)state->adapters;
    grant_adapter *adapter = &state->adapter[o];
    int64_t delay = sim->now - packet->born;
    adapter->departed++;
    adapter->departed_bytes += packet->bytes;
    adapter->delay += delay;
    adapter->worst = delay > adapter->worst ? delay : adapter->worst;
    adapter->room += packet->granted;
    if (packet->unsolicited) {
        int32_t back = opposite(state, f);
        state->flow[back].ack_to_send = 1;
        update(sim, state, back);
    }
    ibn_grant_free_packet(state, p);
    arbitrate(sim, self, o);
}

/* Hook: a segment has reached its adapter.  Reassemble the packets of the segment, and read its control data. */
static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    request_grant *state = self->state;
    int32_t f = sim->packet[p].flow, s = self->tag[p], o = f % (int32_t)state->adapters, back = opposite(state, f);
    grant_segment segment = state->segments[s];
    grant_adapter *adapter = &state->adapter[o];
    state->segments[s].next = state->segment_free;
    state->segment_free = s;
    for (int32_t n = 0, at = segment.first; n < segment.count; n++, at = state->packets[at].next)
        state->packets[at].underway--;
    adapter->fabric_room += segment.granted && state->reserve;
    if (segment.request)
        receive_request(sim, self, f, segment.request);
    state->flow[back].unacknowledged -= segment.ack;
    if (segment.grant)
        receive_grant(sim, self, back, segment.grant);
    else if (segment.ack)
        update(sim, state, back);
    /* The packets of a flow depart in the order of their arrival, each as soon as the external line is free. */
    for (int32_t done; (done = ibn_grant_take_complete(state, &state->flow[f])) != IBN_NONE;) {
        int64_t at = adapter->line_free > sim->now ? adapter->line_free : sim->now;
        adapter->line_free = at + state->packets[done].bytes;
        if (at > sim->now)
            timer_at(sim, self, at, f, GRANT_DEPARTURE, done);
        else
            depart(sim, self, f, done);
    }
    arbitrate(sim, self, o);
}

static void arrival(ibn_sim *sim, ibn_attached *self, int32_t i)
{
    request_grant *state = self->state;
    int32_t f = ibn_grant_store_arrival(sim, state, i);
    if (f == IBN_NONE)
        return;
    if (!state->in_band)
        request_out_of_band(sim, self, f);
    update(sim, state, f);
    ibn_grant_schedule_arrival(sim, self, i);
}

static void timer(ibn_sim *sim, ibn_attached *self, int32_t subject, int32_t value)
{
    const request_grant *state = self->state;
    int32_t data = value & ((1 << GRANT_KIND_BITS) - 1);
    switch (value >> GRANT_KIND_BITS) {
    case GRANT_ARRIVAL:
        arrival(sim, self, subject);
        break;
    case GRANT_REQUEST:
        receive_request(sim, self, subject, data);
        break;
    case GRANT_GRANT:
        receive_grant(sim, self, subject, data);
        request_out_of_band(sim, self, subject);
        break;
    case GRANT_IDLE_END:
        arbitrate(sim, self, subject);
        break;
    case GRANT_DEPARTURE:
        depart(sim, self, subject, data);
        break;
    case GRANT_BLOCK:
        if (sim->channel[subject].busy < state->block_until)
            sim->channel[subject].busy = state->block_until;
        break;
    default:
        ibn_simulate_touch(sim, subject);
    }
}

/* Read the arrays of the settings: the first LID of each adapter, the blocked channels, and the load from each adapter
 * to each adapter (as a fraction x 2^30).  Compute the start state of each adapter from the settings. */
static void read_settings(request_grant *state, const int64_t *numbers)
{
    int64_t n = state->adapters;
    const int64_t *at = numbers + GRANT_SETTINGS;
    memcpy(state->lid, at, (size_t)n * sizeof *at);
    memcpy(state->blocks, at + n, (size_t)state->blocked * sizeof *at);
    memcpy(state->load, at + n + state->blocked, (size_t)(n * n) * sizeof *at);
    double mean = (double)state->small
                  + (double)(state->large - state->small) * (double)state->large_share * 0x1p-30;
    for (int64_t i = 0; i < n; i++) {
        int64_t *load = state->load + i * n;
        for (int64_t o = 1; o < n; o++)
            load[o] += load[o - 1];
        double share = (double)load[n - 1] * 0x1p-30, burst = (double)state->burst * 0x1p-20;
        grant_adapter *adapter = &state->adapter[i];
        adapter->gap = share > 0 && share < 1 ? burst * mean * (1 - share) / share : 0;
        adapter->room = (int32_t)state->reassembly;
        adapter->fabric_room = (int32_t)state->fabric_buffer;
    }
}

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    request_grant *state = self->state;
    memcpy(state, numbers, GRANT_SETTINGS * sizeof *numbers);
    int64_t n = state->adapters;
    state->mask_words = (n + 63) / 64;
    state->lid = calloc((size_t)n, sizeof *state->lid);
    state->blocks = calloc((size_t)state->blocked + 1, sizeof *state->blocks);
    state->load = calloc((size_t)(n * n), sizeof *state->load);
    state->adapter = calloc((size_t)n, sizeof *state->adapter);
    state->flow = calloc((size_t)(n * n), sizeof *state->flow);
    state->asks = calloc((size_t)(n * state->mask_words), sizeof *state->asks);
    if (!state->lid || !state->blocks || !state->load || !state->adapter || !state->flow || !state->asks)
        return 1;
    state->packet_free = state->segment_free = IBN_NONE;
    read_settings(state, numbers);
    for (int64_t f = 0; f < n * n; f++) {
        grant_flow *flow = &state->flow[f];
        flow->oldest = flow->newest = flow->sending = flow->asking = IBN_NONE;
        /* Each flow uses its paths in a random order of its own.  With the same order, flows that are delayed together
         * on one path would also use the next paths together, and would overload one path after the other. */
        uint64_t order = ibn_simulate_key(sim->options.seed, STREAM_OF_PATHS, (uint64_t)f);
        flow->path = (uint32_t)order;
        flow->path_step = (uint32_t)(order >> 32) | 1;
    }
    for (int32_t i = 0; i < n; i++)
        if (state->load[i * n + n - 1])
            ibn_grant_schedule_arrival(sim, self, i);
    for (int64_t k = 0; k < state->blocked; k++) {
        timer_at(sim, self, state->block_from, (int32_t)state->blocks[k], GRANT_BLOCK, 0);
        timer_at(sim, self, state->block_until, (int32_t)state->blocks[k], GRANT_UNBLOCK, 0);
    }
    return sim->failed;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    request_grant *state = self->state;
    void *parts[] = {state->lid,  state->blocks, state->load,    state->adapter,
                     state->flow, state->asks,   state->packets, state->segments};
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}

/* Write the counters of each adapter to `numbers`.  Return how many numbers there are. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const request_grant *state = self->state;
    int64_t width = 9, count = width * state->adapters;
    for (int64_t i = 0; i < state->adapters && count <= most; i++) {
        const grant_adapter *a = &state->adapter[i];
        int64_t row[] = {a->offered, a->offered_bytes, a->departed, a->departed_bytes, a->delay,
                         a->worst,   a->held,          a->room,     a->fabric_room};
        memcpy(numbers + width * i, row, sizeof row);
    }
    return count;
}

IBN_MECHANISM(request_grant) = {
    .name = "request-grant", .bytes = sizeof(request_grant), .tags = 1, .attach = attach, .detach = detach,
    .sent = sent, .delivered = delivered, .timer = timer, .read = read,
};
