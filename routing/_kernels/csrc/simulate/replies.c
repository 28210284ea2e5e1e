/* Endpoints that answer each request with a reply, from queues of limited size.
 *
 * A CA stores requests in an input queue.  It takes a request from there when its output queue has room for the reply.
 * A request that finds the input queue full stays in the buffer of its VC, and so do all packets behind it.  Replies
 * are taken at once.  If replies share the VL of requests, requests and replies can wait for each other in a cycle: a
 * message-dependent deadlock (Pinkston, section 13.3.2).
 *
 * The first `requests` flows send requests.  Each further flow sends the replies of one CA. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

#include <stdlib.h>

/* A queue of messages (requests or replies).  Each element is the flow of the request to which the message belongs. */
typedef struct {
    int32_t *flow, /* [room] ring buffer of flows */
        room,      /* largest number of messages in the queue */
        first,     /* index in `flow` of the first message */
        count;     /* number of messages in the queue */
} message_queue;

/* State of a CA that answers requests with replies. */
typedef struct {
    message_queue in, /* requests that have been taken from the network */
        out;          /* replies that have not left the CA */
    int32_t reply,    /* flow that sends the CA's replies */
        offered,      /* packet with the first reply in `out`, if it waits at the CA's port, or IBN_NONE */
        serving;      /* 1: the queues are being served, else 0 */
} endpoint;

typedef struct {
    int64_t requests,   /* number of flows that send requests */
        bytes,          /* size of a reply in bytes */
        sl,             /* SL of replies */
        in_room,        /* size of an input queue in requests */
        out_room,       /* size of an output queue in replies */
        most,           /* largest number of requests of a flow without a reply; 0: no limit */
        answered;       /* number of replies that have arrived */
    int32_t *lid,       /* [requests] LID of the CA that sends a flow's requests */
        *outstanding;   /* [requests] number of requests of each flow that have no reply yet */
    endpoint *endpoint; /* [devices] state of each CA */
} replies;

static void push(message_queue *queue, int32_t flow)
{
    queue->flow[(queue->first + queue->count++) % queue->room] = flow;
}

static int32_t pop(message_queue *queue)
{
    int32_t flow = queue->flow[queue->first];
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
    return flow;
}

/* Read the settings, and the LID of each flow of requests. */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    replies *state = self->state;
    state->requests = numbers[0];
    state->bytes = numbers[1];
    state->sl = numbers[2];
    state->in_room = numbers[3];
    state->out_room = numbers[4];
    state->most = numbers[5];
    state->lid = calloc((size_t)state->requests + 1, sizeof *state->lid);
    state->outstanding = calloc((size_t)state->requests + 1, sizeof *state->outstanding);
    state->endpoint = calloc((size_t)sim->devices, sizeof *state->endpoint);
    if (!state->lid || !state->outstanding || !state->endpoint)
        return 1;
    for (int64_t f = 0; f < state->requests; f++)
        state->lid[f] = (int32_t)numbers[6 + f];
    for (int32_t f = (int32_t)state->requests; f < sim->flows; f++) {
        endpoint *one = &state->endpoint[sim->channel[sim->flow[f].channel].src];
        one->reply = f;
        one->offered = IBN_NONE;
        one->in = (message_queue){malloc((size_t)state->in_room * sizeof(int32_t)), (int32_t)state->in_room, 0, 0};
        one->out = (message_queue){malloc((size_t)state->out_room * sizeof(int32_t)), (int32_t)state->out_room, 0, 0};
        if (!one->in.flow || !one->out.flow)
            return 1;
    }
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    replies *state = self->state;
    for (int32_t d = 0; state->endpoint && d < sim->devices; d++) {
        free(state->endpoint[d].in.flow);
        free(state->endpoint[d].out.flow);
    }
    free(state->lid);
    free(state->outstanding);
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

/* Let the first reply of a CA wait at its port, if no other reply waits there. */
static void offer_reply(ibn_sim *sim, ibn_attached *self, endpoint *one)
{
    replies *state = self->state;
    ibn_flow *flow = &sim->flow[one->reply];
    int32_t p;
    if (!one->out.count || flow->head != IBN_NONE || (p = ibn_simulate_new_packet(sim)) == IBN_NONE)
        return;
    int32_t request = one->out.flow[one->out.first];
    ibn_packet *packet = &sim->packet[p];
    packet->bytes = (uint16_t)state->bytes;
    packet->blocks = (uint16_t)((state->bytes + IBN_BLOCK - 1) / IBN_BLOCK);
    packet->born = packet->tail = packet->ready = sim->now;
    packet->flow = one->reply;
    packet->channel = packet->vc = IBN_NONE;
    packet->lid = (uint16_t)state->lid[request];
    packet->sl = (uint8_t)state->sl;
    packet->last = 1;
    flow->head = one->offered = p;
    if (sim->hooks & IBN_HOOK_MADE)
        ibn_simulate_on_made(sim, p);
    self->tag[p] = request;
    ibn_simulate_enqueue(sim, p, flow->channel, sim->ca_sl2vl[packet->sl], flow->index, 0);
}

/* Take the first packet that waits in the buffer of one of a CA's VCs.  Return whether a packet was taken. */
static int take_waiting(ibn_sim *sim, const replies *state, int32_t device)
{
    const endpoint *one = &state->endpoint[device];
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t into = sim->channel[sim->out_channel[i]].reverse;
        for (int32_t l = into * sim->vls; l < (into + 1) * sim->vls; l++) {
            int32_t p = sim->watch[l].hidden.head;
            if (p == IBN_NONE || (sim->packet[p].flow < state->requests && one->in.count == one->in.room))
                continue;
            sim->watch[l].hidden.head = sim->packet[p].next;
            ibn_simulate_take(sim, p);
            return 1;
        }
    }
    return 0;
}

/* Move requests of a CA's input queue to its output queue, as replies, while the output queue has room.  Take a packet
 * that waits in the CA's buffers, if the queues now allow it.  Repeat this until no packet can be taken. */
static void serve(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    replies *state = self->state;
    endpoint *one = &state->endpoint[device];
    if (one->serving)
        return;
    one->serving = 1;
    do {
        while (one->in.count && one->out.count < one->out.room)
            push(&one->out, pop(&one->in));
        offer_reply(sim, self, one);
    } while (take_waiting(sim, state, device));
    one->serving = 0;
}

/* Leave a packet in the buffer if packets before it wait there, or if it is a request and the input queue is full. */
static int arrived(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    const replies *state = self->state;
    int32_t l = sim->packet[p].vc;
    const endpoint *one = &state->endpoint[sim->far_end[l / sim->vls].device];
    ibn_fifo *waiting = &sim->watch[l].hidden;
    if (waiting->head == IBN_NONE && (sim->packet[p].flow >= state->requests || one->in.count < one->in.room))
        return 1;
    sim->packet[p].next = IBN_NONE;
    if (waiting->head == IBN_NONE)
        waiting->head = p;
    else
        sim->packet[waiting->tail].next = p;
    waiting->tail = p;
    return 0;
}

static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    replies *state = self->state;
    int32_t device = sim->far_end[sim->packet[p].channel].device;
    if (sim->packet[p].flow < state->requests) {
        push(&state->endpoint[device].in, self->tag[p]);
    } else {
        state->answered++;
        ibn_simulate_timer(sim, self, sim->now + 1, self->tag[p], 0);
    }
    serve(sim, self, device);
}

/* Hook: a packet begins to leave its CA.  If the packet is a reply, remove the reply from the output queue. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    replies *state = self->state;
    int32_t device = sim->channel[sim->packet[p].channel].src;
    endpoint *one = &state->endpoint[device];
    if (sim->packet[p].flow < state->requests || one->reply != sim->packet[p].flow)
        return;
    /* A reply that is sent again after a loss has left the output queue before. */
    if (one->offered == p) {
        one->offered = IBN_NONE;
        pop(&one->out);
    }
    serve(sim, self, device);
}

/* Hook: a reply to flow f has arrived, so that the flow may send a further request. */
static void timer(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t value)
{
    (void)value;
    ((replies *)self->state)->outstanding[f]--;
    ibn_simulate_prepare(sim, f);
}

/* Hook: return the VC for which packets in the buffer of a CA's VC l wait.  They wait until the CA can send its first
 * reply. */
static int32_t waits_for(const ibn_sim *sim, const ibn_attached *self, int32_t l)
{
    const replies *state = self->state;
    const ibn_flow *flow = &sim->flow[state->endpoint[sim->far_end[l / sim->vls].device].reply];
    if (sim->watch[l].hidden.head == IBN_NONE || flow->head == IBN_NONE)
        return IBN_NONE;
    const ibn_packet *packet = &sim->packet[flow->head];
    int32_t out = flow->channel * sim->vls + sim->ca_sl2vl[packet->sl];
    return packet->blocks <= ibn_simulate_credits(&sim->vc[out]) + sim->vc[out].returning ? IBN_NONE : out;
}

static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    if (most)
        *numbers = ((const replies *)self->state)->answered;
    return 1;
}

IBN_MECHANISM(replies) = {
    .name = "replies", .bytes = sizeof(replies), .tags = 1, .attach = attach, .detach = detach, .gate = gate,
    .made = made, .sent = sent, .arrived = arrived, .waits_for = waits_for, .delivered = delivered, .timer = timer,
    .read = read,
};
