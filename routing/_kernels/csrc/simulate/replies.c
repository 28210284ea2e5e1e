/* Endpoints that answer each request with a reply, directly or through a third CA, from queues of limited size.
 *
 * A CA has an input queue for requests and one for forwarded requests, and an output queue for each type of message
 * that it sends.  It takes a message from an input queue when the output queue has room for the message that follows.
 * A message that finds its input queue full stays in the buffer of its VC, and so do all packets behind it.  Replies
 * are taken at once.  If message types share a VL, they can wait for each other in a cycle: a message-dependent
 * deadlock (Pinkston, section 13.3.2).
 *
 * Two remedies act at the first message of an input queue that has waited for a time.  Back-off (SGI Origin 2000)
 * answers a request with the order that the requester itself sends it to the third CA.  A rescue (mDisha) needs the
 * token, of which the network has one.  The message and those that follow from it travel on a VL of their own.
 *
 * The first `requests` flows send requests.  Each further flow is an outlet: it sends messages of one queue of one CA. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/message_queue.h"
#include "simulate/internal/queue.h"

#include <stdlib.h>

/* Types of messages.  Output queue q holds messages of type q + 1, except that queue RESCUED holds one message of any
 * type.  Input queue q holds messages of type q. */
enum { REQUEST, FORWARD, REPLY, BACKOFF };
enum { FORWARDS, REPLIES, RESCUED, OUT_QUEUES };
enum { IN_QUEUES = 2 };

/* The tag of a packet is the flow of the request to which it belongs.  The bits from this number on are its type. */
#define TYPE_BITS 28
#define REQUEST_MASK ((1 << TYPE_BITS) - 1)

/* Values of timer events: a reply has arrived, the first messages of input queues are checked, the token arrives. */
enum { AT_REPLY, AT_CHECK, AT_TOKEN };

/* State of a CA that handles messages. */
typedef struct {
    ibn_message_queue in[IN_QUEUES], /* messages that have been taken from the network */
        out[OUT_QUEUES],         /* messages that have not left the CA */
        again;                   /* requests that the CA has to send to the third CA itself */
    int32_t first, last,         /* first outlet of the CA, and the outlet after its last one */
        order,                   /* number of CAs of which the token visits this CA last, from the first one */
        serving,                 /* 1: the queues are being served, else 0 */
        checked,                 /* 1: a timer will check the first messages, else 0 */
        wants_token;             /* 1: the CA waits for the token, else 0 */
} endpoint;

/* Flow that sends the messages of an output queue. */
typedef struct {
    int32_t queue, /* number of the output queue */
        sl,        /* SL of the messages */
        offered;   /* packet that waits at the CA's port, or IBN_NONE */
} outlet;

typedef struct {
    int64_t requests,   /* number of flows that send requests */
        bytes,          /* size of a message other than a request in bytes */
        in_room,        /* size of an input queue in messages */
        out_room,       /* size of an output queue in messages */
        most,           /* largest number of requests of a flow without a reply; 0: no limit */
        chain,          /* 1: requests are forwarded to a third CA, 0: they are answered directly */
        backoff,        /* time in ticks after which a request is answered by a back-off; 0: never */
        detect,         /* time in ticks after which a message may be rescued; 0: never */
        step,           /* time in ticks that the token takes from CA to CA */
        token_free,     /* tick at which the token was released; -1: a CA holds the token */
        answered, backed_off, rescued; /* numbers of replies, back-offs and rescues */
    int32_t *lid,       /* [requests] LID of the CA that sends a flow's requests */
        *outstanding,   /* [requests] number of requests of each flow that have no reply yet */
        *ca_lid,        /* [cas] LID of each CA with outlets, in the order of the token */
        cas,            /* number of CAs with outlets */
        token_at;       /* number of the CA that released the token */
    outlet *outlet;     /* [flows - requests] */
    endpoint *endpoint; /* [devices] state of each CA */
} replies;

/* Return the number of the output queue for what follows a message of an input queue. */
static int follows(const replies *state, int in)
{
    return in == REQUEST && state->chain ? FORWARDS : REPLIES;
}

/* Return the LID of the third CA for a request that a CA has received: the next CA that has not sent the request. */
static int32_t third_lid(const replies *state, const endpoint *forwarder, int32_t request)
{
    int32_t n = (forwarder->order + 1) % state->cas;
    return state->ca_lid[state->ca_lid[n] == state->lid[request] ? (n + 1) % state->cas : n];
}

/* Return the message that follows a request or a forwarded request at a CA. */
static ibn_message next_message(const replies *state, const endpoint *one, int in, ibn_message before)
{
    int32_t request = before.tag & REQUEST_MASK;
    if (follows(state, in) == FORWARDS)
        return (ibn_message){request | FORWARD << TYPE_BITS, third_lid(state, one, request)};
    return (ibn_message){request | REPLY << TYPE_BITS, state->lid[request]};
}

/* Remove the first message of an input queue, and return the message that follows it. */
static ibn_message next_of(const ibn_sim *sim, const replies *state, endpoint *one, int in)
{
    return next_message(state, one, in, ibn_message_pop(sim, &one->in[in]));
}

/* Set up the queues of a CA, whose first outlet is flow f. */
static int make_endpoint(const replies *state, endpoint *one, int32_t order, int32_t f)
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

/* Read the settings, the LID of each flow of requests, and queue, SL and LID of the CA of each outlet. */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    replies *state = self->state;
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
        endpoint *one = &state->endpoint[sim->channel[sim->flow[f].channel].src];
        state->outlet[f - state->requests] = (outlet){(int32_t)rest[0], (int32_t)rest[1], IBN_NONE};
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
    replies *state = self->state;
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
    const replies *state = self->state;
    return !state->most || f >= state->requests || state->outstanding[f] < state->most;
}

static void made(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    replies *state = self->state;
    int32_t f = sim->packet[p].flow;
    self->tag[p] = f;
    if (f < state->requests)
        state->outstanding[f]++;
}

/* Let the first message of an outlet's queue wait at the CA's port, if no other message of the outlet waits there. */
static void offer(ibn_sim *sim, ibn_attached *self, endpoint *one, int32_t f)
{
    replies *state = self->state;
    outlet *by = &state->outlet[f - state->requests];
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
    ibn_simulate_enqueue(sim, p, flow->channel, sim->ca_sl2vl[packet->sl], flow->index, 0);
}

/* Return whether a CA takes a packet now: replies always, other messages if their input queue has room. */
static int takes(const replies *state, const ibn_attached *self, const endpoint *one, const ibn_sim *sim, int32_t p)
{
    int32_t type = self->tag[p] >> TYPE_BITS, f = sim->packet[p].flow;
    return type >= REPLY || (f >= state->requests && state->outlet[f - state->requests].queue == RESCUED)
           || ibn_message_has_room(&one->in[type]);
}

/* Take the first packet that waits in the buffer of one of a CA's VCs.  Return whether a packet was taken. */
static int take_waiting(ibn_sim *sim, const ibn_attached *self, int32_t device)
{
    const replies *state = self->state;
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

/* Return whether the first message of an input queue waits because the output queue has no room. */
static int is_stuck(const replies *state, const endpoint *one, int in)
{
    return one->in[in].count && !ibn_message_has_room(&one->out[follows(state, in)]);
}

/* Set a timer for the first tick at which a stuck message of a CA has waited long enough for a remedy. */
static void check_later(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    replies *state = self->state;
    endpoint *one = &state->endpoint[device];
    int64_t due = INT64_MAX, wait = state->backoff + state->detect;
    for (int in = 0; in < IN_QUEUES && wait; in++)
        if (is_stuck(state, one, in) && one->in[in].since + wait < due)
            due = one->in[in].since + wait;
    if (due == INT64_MAX || one->checked)
        return;
    one->checked = 1;
    ibn_simulate_timer(sim, self, due > sim->now ? due : sim->now + 1, device, AT_CHECK);
}

/* Move messages from the input queues of a CA to its output queues while these have room.  Take packets that wait in
 * the CA's buffers, if the queues now allow it.  Repeat this until no packet can be taken. */
static void serve(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    replies *state = self->state;
    endpoint *one = &state->endpoint[device];
    if (one->serving)
        return;
    one->serving = 1;
    do {
        while (one->again.count && ibn_message_has_room(&one->out[FORWARDS]))
            ibn_message_push(sim, &one->out[FORWARDS], ibn_message_pop(sim, &one->again));
        for (int in = IN_QUEUES - 1; in >= 0; in--)
            while (one->in[in].count && !is_stuck(state, one, in))
                ibn_message_push(sim, &one->out[follows(state, in)], next_of(sim, state, one, in));
        for (int32_t f = one->first; f < one->last; f++)
            offer(sim, self, one, f);
    } while (take_waiting(sim, self, device));
    one->serving = 0;
    check_later(sim, self, device);
}

/* Leave a packet in the buffer if packets before it wait there, or if its input queue is full. */
static int arrived(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    const replies *state = self->state;
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

/* Set a timer for the first tick, later than now, at which the released token reaches a CA. */
static void await_token(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    const replies *state = self->state;
    int32_t ahead = (state->endpoint[device].order - state->token_at + state->cas) % state->cas;
    int64_t lap = state->cas * state->step, due = state->token_free + ahead * state->step;
    if (due <= sim->now)
        due += ((sim->now - due) / lap + 1) * lap;
    ibn_simulate_timer(sim, self, due, device, AT_TOKEN);
}

/* Release the token at a CA, from which it moves to the next CAs. */
static void release_token(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    replies *state = self->state;
    state->token_at = state->endpoint[device].order;
    state->token_free = sim->now;
    for (int32_t d = 0; d < sim->devices; d++)
        if (state->endpoint[d].wants_token)
            await_token(sim, self, d);
}

/* Hook: handle a message that a CA has received. */
static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    replies *state = self->state;
    int32_t device = sim->far_end[sim->packet[p].channel].device, f = sim->packet[p].flow;
    int32_t type = self->tag[p] >> TYPE_BITS, request = self->tag[p] & REQUEST_MASK;
    endpoint *one = &state->endpoint[device];
    int rescued = f >= state->requests && state->outlet[f - state->requests].queue == RESCUED;
    ibn_message got = {self->tag[p], 0};
    if (type == REPLY) {
        state->answered++;
        ibn_simulate_timer(sim, self, sim->now + 1, request, AT_REPLY);
        if (rescued)
            release_token(sim, self, device);
    } else if (type == BACKOFF) {
        const endpoint *forwarder = &state->endpoint[sim->channel[sim->flow[f].channel].src];
        ibn_message order = {request | FORWARD << TYPE_BITS, third_lid(state, forwarder, request)};
        ibn_message_push(sim, &one->again, order);
    } else if (rescued) {
        ibn_message_push(sim, &one->out[RESCUED], next_message(state, one, type, got));
    } else {
        ibn_message_push(sim, &one->in[type], got);
    }
    serve(sim, self, device);
}

/* Hook: a packet begins to leave its CA.  If it is a message of an output queue, the queue has room again. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    replies *state = self->state;
    int32_t f = sim->packet[p].flow, device = sim->channel[sim->packet[p].channel].src;
    if (f < state->requests)
        return;
    outlet *by = &state->outlet[f - state->requests];
    /* A message that is sent again after a loss has left the output queue before. */
    if (by->offered == p) {
        by->offered = IBN_NONE;
        state->endpoint[device].out[by->queue].offered--;
    }
    serve(sim, self, device);
}

/* Answer the first request of a CA, which is stuck, by a back-off, if the output queue of replies has room. */
static void back_off(ibn_sim *sim, replies *state, endpoint *one)
{
    if (!is_stuck(state, one, REQUEST) || one->in[REQUEST].since + state->backoff > sim->now
        || !ibn_message_has_room(&one->out[REPLIES]))
        return;
    int32_t request = ibn_message_pop(sim, &one->in[REQUEST]).tag & REQUEST_MASK;
    ibn_message_push(sim, &one->out[REPLIES], (ibn_message){request | BACKOFF << TYPE_BITS, state->lid[request]});
    state->backed_off++;
}

/* Return the input queue of a CA whose first message has been stuck long enough to be rescued, or -1. */
static int queue_to_rescue(const ibn_sim *sim, const replies *state, const endpoint *one)
{
    for (int in = IN_QUEUES - 1; in >= 0; in--)
        if (is_stuck(state, one, in) && one->in[in].since + state->detect <= sim->now)
            return in;
    return -1;
}

/* Let a CA that the token has reached rescue a message, unless the token has been captured since. */
static void token(ibn_sim *sim, replies *state, endpoint *one)
{
    int32_t ahead = (one->order - state->token_at + state->cas) % state->cas;
    int64_t since = sim->now - state->token_free - ahead * state->step;
    if (!one->wants_token || state->token_free < 0 || since < 0 || since % (state->cas * state->step))
        return;
    int in = queue_to_rescue(sim, state, one);
    one->wants_token = 0;
    if (in < 0)
        return;
    state->token_free = -1;
    state->rescued++;
    ibn_message_push(sim, &one->out[RESCUED], next_of(sim, state, one, in));
}

/* Hook: a reply to flow `subject` has arrived, so that the flow may send a further request.  Or the remedy of CA
 * `subject` is due, or the token reaches this CA. */
static void timer(ibn_sim *sim, ibn_attached *self, int32_t subject, int32_t value)
{
    replies *state = self->state;
    if (value == AT_REPLY) {
        state->outstanding[subject]--;
        /* A flow that waits for its window instead continues one tick after the delivery that opens the window. */
        if (sim->flow[subject].gated)
            ibn_simulate_prepare(sim, subject);
        return;
    }
    endpoint *one = &state->endpoint[subject];
    if (value == AT_TOKEN) {
        token(sim, state, one);
    } else {
        one->checked = 0;
        if (state->backoff)
            back_off(sim, state, one);
        else if (!one->wants_token && queue_to_rescue(sim, state, one) >= 0) {
            one->wants_token = 1;
            if (state->token_free >= 0)
                await_token(sim, self, subject);
        }
    }
    serve(sim, self, subject);
}

/* Hook: return the VC for which packets in the buffer of a CA's VC l wait, or IBN_NONE if a remedy will act.  They wait
 * until an outlet of an output queue can send.  The last outlet of a queue has a VL of its own, if any outlet has. */
static int32_t waits_for(const ibn_sim *sim, const ibn_attached *self, int32_t l)
{
    const replies *state = self->state;
    const endpoint *one = &state->endpoint[sim->far_end[l / sim->vls].device];
    int32_t p = sim->watch[l].hidden.head, found = IBN_NONE;
    if (p == IBN_NONE || state->detect)
        return IBN_NONE;
    int type = self->tag[p] >> TYPE_BITS, queue = state->backoff ? REPLIES : follows(state, type);
    for (int32_t f = one->first; f < one->last; f++) {
        const ibn_flow *flow = &sim->flow[f];
        if (state->outlet[f - state->requests].queue != queue || flow->head == IBN_NONE)
            continue;
        const ibn_packet *packet = &sim->packet[flow->head];
        found = flow->channel * sim->vls + sim->ca_sl2vl[packet->sl];
        if (packet->blocks <= ibn_simulate_credits(&sim->vc[found]) + sim->vc[found].returning)
            return IBN_NONE;
    }
    return found;
}

static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const replies *state = self->state;
    int64_t counts[] = {state->answered, state->backed_off, state->rescued};
    for (int64_t i = 0; i < 3 && i < most; i++)
        numbers[i] = counts[i];
    return 3;
}

IBN_MECHANISM(replies) = {
    .name = "replies", .bytes = sizeof(replies), .tags = 1, .attach = attach, .detach = detach, .gate = gate,
    .made = made, .sent = sent, .arrived = arrived, .waits_for = waits_for, .delivered = delivered, .timer = timer,
    .read = read,
};
