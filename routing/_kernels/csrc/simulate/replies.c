/* Endpoints that answer each request with a reply, directly or through a third CA, from queues of limited size.
 *
 * A CA has an input queue for requests, an input queue for forwarded requests, and an output queue for each type of
 * message that it sends.  Each message of an input queue causes another message.  The CA takes a message from an input
 * queue only if the output queue has room for the caused message.  A message that finds its input queue full stays in
 * the buffer of its VC, and so do all packets that come later on this VC.  Replies are taken at once.  If message types
 * share a VL, they can wait for each other in a cycle: a message-dependent deadlock (Pinkston, section 13.3.2).
 *
 * Two remedies act on the first message of an input queue, if it has waited for some time (message_remedies.c).
 * Back-off (SGI Origin 2000) answers a request with an order: the requester has to send the request to the third CA
 * itself.  A rescue (mDisha) needs the token; the network has a single token.  The rescued message and the messages
 * that follow from this message travel on a separate VL.
 *
 * The first `requests` flows send requests.  Each further flow is an outlet: it sends the messages of one output queue
 * of one CA. */
#include "simulate/internal/flow.h"
#include "simulate/internal/queue.h"
#include "simulate/internal/replies.h"

#include <stdlib.h>

/* Set up the queues of a CA.  Flow f is the first outlet of this CA.  Return 1 if memory runs out, else 0. */
static int make_endpoint(const ibn_replies *state, ibn_endpoint *one, int32_t order, int32_t f)
{
    one->first = one->last = f;
    one->order = order;
    int failed = ibn_message_new_queue(&one->again, state->backoff ? state->requests * state->most : 0);
    for (int i = 0; i < IN_QUEUES; i++)
        failed |= ibn_message_new_queue(&one->in[i], state->in_room);
    for (int i = 0; i < OUT_QUEUES; i++)
        failed |= ibn_message_new_queue(&one->out[i], i == RESCUED ? 1 : state->out_room);
    return failed;
}

/* Read the settings.  For each flow of requests, also read the LID of its sender.  For each outlet, also read its
 * output queue, its SL and the LID of its CA. */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    ibn_replies *state = self->state;
    const int64_t *rest = numbers + 9;
    int64_t *settings[] = {&state->requests, &state->bytes, &state->in_room, &state->out_room, &state->most,
                           &state->chain,    &state->backoff, &state->detect, &state->step};
    for (int i = 0; i < 9; i++)
        *settings[i] = numbers[i];
    size_t outlets = (size_t)(sim->flows - state->requests);
    state->lid = calloc((size_t)state->requests + 1, sizeof *state->lid);
    state->outstanding = calloc((size_t)state->requests + 1, sizeof *state->outstanding);
    state->ca_lid = calloc(outlets + 1, sizeof *state->ca_lid);
    state->outlet = calloc(outlets + 1, sizeof *state->outlet);
    state->endpoint = calloc((size_t)sim->devices, sizeof *state->endpoint);
    if (!state->lid || !state->outstanding || !state->ca_lid || !state->outlet || !state->endpoint)
        return 1;
    for (int64_t f = 0; f < state->requests; f++)
        state->lid[f] = (int32_t)*rest++;
    for (int32_t f = (int32_t)state->requests; f < sim->flows; f++, rest += 3) {
        ibn_endpoint *one = &state->endpoint[sim->channel[sim->flow[f].channel].src];
        state->outlet[f - state->requests] = (ibn_outlet){(int32_t)rest[0], (int32_t)rest[1], IBN_NONE};
        if (!one->last) {
            state->ca_lid[state->cas] = (int32_t)rest[2];
            if (make_endpoint(state, one, state->cas++, f))
                return 1;
        }
        one->last = f + 1;
    }
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    ibn_replies *state = self->state;
    for (int32_t d = 0; state->endpoint && d < sim->devices; d++) {
        for (int i = 0; i < IN_QUEUES; i++)
            free(state->endpoint[d].in[i].at);
        for (int i = 0; i < OUT_QUEUES; i++)
            free(state->endpoint[d].out[i].at);
        free(state->endpoint[d].again.at);
    }
    free(state->lid);
    free(state->outstanding);
    free(state->ca_lid);
    free(state->outlet);
    free(state->endpoint);
}

static int gate(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    (void)sim;
    const ibn_replies *state = self->state;
    return !state->most || f >= state->requests || state->outstanding[f] < state->most;
}

static void made(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    ibn_replies *state = self->state;
    int32_t f = sim->packet[p].flow;
    self->tag[p] = f;
    if (f < state->requests)
        state->outstanding[f]++;
}

/* If no message of an outlet waits at the CA's port, move the first message of the outlet's queue to the port.  The
 * message then waits at the port until it is sent. */
static void offer(ibn_sim *sim, ibn_attached *self, ibn_endpoint *one, int32_t f)
{
    ibn_replies *state = self->state;
    ibn_outlet *by = &state->outlet[f - state->requests];
    ibn_flow *flow = &sim->flow[f];
    int32_t p;
    if (!one->out[by->queue].count || flow->head != IBN_NONE || (p = ibn_simulate_new_packet(sim)) == IBN_NONE)
        return;
    ibn_message first = ibn_message_pop(sim, &one->out[by->queue]);
    one->out[by->queue].offered++;
    ibn_packet *packet = &sim->packet[p];
    packet->bytes = (uint16_t)state->bytes;
    packet->blocks = (uint16_t)((state->bytes + IBN_BLOCK - 1) / IBN_BLOCK);
    packet->born = packet->tail = packet->ready = sim->now;
    packet->flow = f;
    packet->channel = packet->vc = IBN_NONE;
    packet->lid = (uint16_t)first.lid;
    packet->sl = (uint8_t)by->sl;
    packet->last = 1;
    flow->head = by->offered = p;
    if (sim->hooks & IBN_HOOK_MADE)
        ibn_simulate_on_made(sim, p);
    self->tag[p] = first.tag;
    ibn_simulate_offer(sim, p);
}

/* Return whether a CA takes a packet now.  A CA always takes replies, back-off orders and rescued messages.  It takes a
 * request or a forwarded request if the input queue for such messages has room. */
static int takes(const ibn_replies *state, const ibn_attached *self, const ibn_endpoint *one, const ibn_sim *sim,
                 int32_t p)
{
    int32_t type = self->tag[p] >> TYPE_BITS, f = sim->packet[p].flow;
    return type >= REPLY || (f >= state->requests && state->outlet[f - state->requests].queue == RESCUED)
           || ibn_message_has_room(&one->in[type]);
}

/* Take the first packet that waits in the buffer of one of a CA's VCs.  Return whether a packet was taken. */
static int take_waiting(ibn_sim *sim, const ibn_attached *self, int32_t device)
{
    const ibn_replies *state = self->state;
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t into = sim->channel[sim->out_channel[i]].reverse;
        for (int32_t l = into * sim->vls; l < (into + 1) * sim->vls; l++) {
            int32_t p = sim->watch[l].hidden.head;
            if (p == IBN_NONE || !takes(state, self, &state->endpoint[device], sim, p))
                continue;
            sim->watch[l].hidden.head = sim->packet[p].next;
            ibn_simulate_take(sim, p);
            return 1;
        }
    }
    return 0;
}

/* Move messages from the input queues of a CA to its output queues while the output queues have room.  Take packets
 * that wait in the CA's buffers, if the queues now allow it.  Repeat this until no packet can be taken. */
static void serve(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    ibn_replies *state = self->state;
    ibn_endpoint *one = &state->endpoint[device];
    if (one->serving)
        return;
    one->serving = 1;
    do {
        while (one->again.count && ibn_message_has_room(&one->out[FORWARDS]))
            ibn_message_push(sim, &one->out[FORWARDS], ibn_message_pop(sim, &one->again));
        for (int in = IN_QUEUES - 1; in >= 0; in--)
            while (one->in[in].count && !ibn_message_is_stuck(state, one, in))
                ibn_message_push(sim, &one->out[ibn_message_follows(state, in)],
                                 ibn_message_pop_next(sim, state, one, in));
        for (int32_t f = one->first; f < one->last; f++)
            offer(sim, self, one, f);
    } while (take_waiting(sim, self, device));
    one->serving = 0;
    ibn_simulate_check_messages_later(sim, self, device);
}

/* Hook: return 1 if a CA takes an arrived packet, else 0.  A packet that the CA does not take stays in the buffer of
 * its VC.  The CA does not take a packet if other packets wait in this buffer already, or if the input queue of the
 * packet is full. */
static int arrived(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    const ibn_replies *state = self->state;
    int32_t l = sim->packet[p].vc;
    ibn_fifo *waiting = &sim->watch[l].hidden;
    if (waiting->head == IBN_NONE && takes(state, self, &state->endpoint[sim->far_end[l / sim->vls].device], sim, p))
        return 1;
    sim->packet[p].next = IBN_NONE;
    if (waiting->head == IBN_NONE)
        waiting->head = p;
    else
        sim->packet[waiting->tail].next = p;
    waiting->tail = p;
    return 0;
}

/* Hook: handle a message that a CA has received. */
static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    ibn_replies *state = self->state;
    int32_t device = sim->far_end[sim->packet[p].channel].device, f = sim->packet[p].flow;
    int32_t type = self->tag[p] >> TYPE_BITS, request = self->tag[p] & REQUEST_MASK;
    ibn_endpoint *one = &state->endpoint[device];
    int rescued = f >= state->requests && state->outlet[f - state->requests].queue == RESCUED;
    ibn_message got = {self->tag[p], 0};
    if (type == REPLY) {
        state->answered++;
        ibn_simulate_timer(sim, self, sim->now + 1, request, AT_REPLY);
        if (rescued)
            ibn_simulate_release_token(sim, self, device);
    } else if (type == BACKOFF) {
        const ibn_endpoint *forwarder = &state->endpoint[sim->channel[sim->flow[f].channel].src];
        ibn_message order = {request | FORWARD << TYPE_BITS, ibn_message_third_lid(state, forwarder, request)};
        ibn_message_push(sim, &one->again, order);
    } else if (rescued) {
        ibn_message_push(sim, &one->out[RESCUED], ibn_message_next(state, one, type, got));
    } else {
        ibn_message_push(sim, &one->in[type], got);
    }
    serve(sim, self, device);
}

/* Hook: a packet begins to leave its CA.  If the packet is from an output queue, this queue gets room for a message. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    ibn_replies *state = self->state;
    int32_t f = sim->packet[p].flow, device = sim->channel[sim->packet[p].channel].src;
    if (f < state->requests)
        return;
    ibn_outlet *by = &state->outlet[f - state->requests];
    /* A message that is sent again after a loss makes no room, because it left the output queue the first time. */
    if (by->offered == p) {
        by->offered = IBN_NONE;
        state->endpoint[device].out[by->queue].offered--;
    }
    serve(sim, self, device);
}

/* Hook: handle an event of one of three kinds, which `value` selects.  With AT_REPLY, a reply to flow `subject` has
 * arrived, so the flow may send a further request.  With AT_CHECK, a remedy of CA `subject` is due.  With AT_TOKEN, the
 * token reaches CA `subject`. */
static void timer(ibn_sim *sim, ibn_attached *self, int32_t subject, int32_t value)
{
    ibn_replies *state = self->state;
    if (value == AT_REPLY) {
        state->outstanding[subject]--;
        /* Only a flow that a mechanism has stopped continues here.  A flow that waits for its window continues in
         * another event, one tick after a delivery has opened the window. */
        if (sim->flow[subject].gated)
            ibn_simulate_prepare(sim, subject);
        return;
    }
    ibn_simulate_remedy_messages(sim, self, subject, value);
    serve(sim, self, subject);
}

/* Return the VC for which the next packet of a flow is queued at the port of its CA. */
static int32_t vc_at_port(const ibn_sim *sim, const ibn_flow *flow)
{
    const ibn_channel *channel = &sim->channel[flow->channel];
    int32_t vl = 0;
    while (vl < sim->vls - 1 && ibn_simulate_queue(sim, channel, vl, flow->index)->head != flow->head)
        vl++;
    return flow->channel * sim->vls + vl;
}

/* Hook: return the VC for which packets in a CA's buffer of VC l wait.  VC l leads to this CA.  Return IBN_NONE if
 * these packets wait for no VC, or if a rescue will move them.
 *
 * The packets wait until an outlet of an output queue can send.  An output queue may have two outlets: the first on a
 * shared VL, and the last on the VL of the message type.  If both outlets have a message, return the VC of the last
 * outlet. */
static int32_t waits_for(const ibn_sim *sim, const ibn_attached *self, int32_t l)
{
    const ibn_replies *state = self->state;
    const ibn_endpoint *one = &state->endpoint[sim->far_end[l / sim->vls].device];
    int32_t p = sim->watch[l].hidden.head, found = IBN_NONE;
    if (p == IBN_NONE || state->detect)
        return IBN_NONE;
    int type = self->tag[p] >> TYPE_BITS, queue = state->backoff ? REPLIES : ibn_message_follows(state, type);
    for (int32_t f = one->first; f < one->last; f++) {
        const ibn_flow *flow = &sim->flow[f];
        if (state->outlet[f - state->requests].queue != queue || flow->head == IBN_NONE)
            continue;
        found = vc_at_port(sim, flow);
        if (sim->packet[flow->head].blocks <= ibn_simulate_credits(&sim->vc[found]) + sim->vc[found].returning)
            return IBN_NONE;
    }
    return found;
}

static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const ibn_replies *state = self->state;
    int64_t counts[] = {state->answered, state->backed_off, state->rescued};
    for (int64_t i = 0; i < 3 && i < most; i++)
        numbers[i] = counts[i];
    return 3;
}

IBN_MECHANISM(replies) = {
    .name = "replies", .bytes = sizeof(ibn_replies), .tags = 1, .attach = attach, .detach = detach, .gate = gate,
    .made = made, .sent = sent, .arrived = arrived, .waits_for = waits_for, .delivered = delivered, .timer = timer,
    .read = read,
};
