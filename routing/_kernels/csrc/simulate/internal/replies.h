/* State of endpoints that answer requests, which replies.c explains. */
#pragma once

#include "simulate/internal/mechanism.h"
#include "simulate/internal/message_queue.h"

/* Types of messages. */
enum { REQUEST, FORWARD, REPLY, BACKOFF };
/* Numbers of output queues.  Queue FORWARDS holds messages of type FORWARD, and queue REPLIES holds messages of types
 * REPLY and BACKOFF.  Queue RESCUED holds one rescued message. */
enum { FORWARDS, REPLIES, RESCUED, OUT_QUEUES };
/* Number of input queues.  Queue 0 holds messages of type REQUEST, and queue 1 holds messages of type FORWARD. */
enum { IN_QUEUES = 2 };

/* Number of low bits of a packet's tag.  These bits hold the flow number of the request to which the packet belongs.
 * The higher bits hold the type of the message. */
#define TYPE_BITS 28
#define REQUEST_MASK ((1 << TYPE_BITS) - 1)

/* Values of timer events.  AT_REPLY: a reply has arrived at a CA.  AT_CHECK: the first messages of a CA's input queues
 * have to be checked.  AT_TOKEN: the token arrives at a CA. */
enum { AT_REPLY, AT_CHECK, AT_TOKEN };

/* State of a CA that handles messages. */
typedef struct {
    ibn_message_queue in[IN_QUEUES], /* input queues: messages that the CA has received, but not handled yet */
        out[OUT_QUEUES],         /* output queues: messages that have not left the CA */
        again;                   /* requests of this CA that another CA has answered by a back-off; so this CA itself
                                  * has to send them to the third CA (see ibn_message_third_lid) */
    int32_t first, last,         /* flow number of the CA's first outlet, and flow number of its last outlet + 1 */
        order,                   /* position of the CA, from 0 on, in the order in which the token visits the CAs */
        serving,                 /* 1: the queues are being served now, so that a further request to serve them is
                                  * ignored; else 0 */
        checked,                 /* 1: a timer will check the first messages of the input queues, else 0 */
        wants_token;             /* 1: the CA waits for the token, else 0 */
} ibn_endpoint;

/* Outlet: a flow that sends the messages of one output queue of a CA. */
typedef struct {
    int32_t queue, /* number of the output queue */
        sl,        /* SL of the messages */
        offered;   /* packet that waits at the CA's port, or IBN_NONE */
} ibn_outlet;

typedef struct {
    int64_t requests,   /* number of flows that send requests */
        bytes,          /* size in bytes of each message that is not a request */
        in_room,        /* size of an input queue in messages */
        out_room,       /* size of an output queue in messages */
        most,           /* number of requests without a reply at which a flow sends no further request; 0: no limit */
        chain,          /* 1: requests are forwarded to a third CA, 0: requests are answered directly */
        backoff,        /* time in ticks after which a stuck request is answered by a back-off, so that the requester
                         * sends the request to the third CA itself; 0: never */
        detect,         /* time in ticks after which a message may be rescued; 0: never */
        step,           /* time in ticks that the token takes from CA to CA */
        token_free,     /* tick at which the token was released; -1: a CA holds the token */
        /* Numbers of replies that have arrived, of requests that a back-off answered, and of messages rescued. */
        answered, backed_off, rescued;
    int32_t *lid,       /* [requests] LID of the CA that sends a flow's requests */
        *outstanding,   /* [requests] number of requests of each flow that have no reply yet */
        *ca_lid,        /* [cas] LID of each CA that has outlets (see ibn_outlet), in the order of the token */
        cas,            /* number of CAs that have outlets (see ibn_outlet) */
        token_at;       /* position of the CA that released the token, in the order of the token */
    ibn_outlet *outlet;     /* [flows - requests] state of each outlet; outlet i is flow `requests` + i */
    ibn_endpoint *endpoint; /* [devices] state of each CA */
} ibn_replies;

/* Return the number of the output queue for the message that a message of input queue `in` causes, such as a reply. */
static inline int ibn_message_follows(const ibn_replies *state, int in)
{
    return in == REQUEST && state->chain ? FORWARDS : REPLIES;
}

/* Return the LID of the third CA for a request that a CA (`forwarder`) has received.  The token visits the CAs in a
 * fixed order.  The third CA is the next CA after the forwarder in this order.  If the next CA has sent the request,
 * the third CA is the CA after that one. */
static inline int32_t ibn_message_third_lid(const ibn_replies *state, const ibn_endpoint *forwarder, int32_t request)
{
    int32_t n = (forwarder->order + 1) % state->cas;
    return state->ca_lid[state->ca_lid[n] == state->lid[request] ? (n + 1) % state->cas : n];
}

/* Return the message that a CA has to send because of message `before`, which comes from input queue `in`. */
static inline ibn_message ibn_message_next(const ibn_replies *state, const ibn_endpoint *one, int in,
                                           ibn_message before)
{
    int32_t request = before.tag & REQUEST_MASK;
    if (ibn_message_follows(state, in) == FORWARDS)
        return (ibn_message){request | FORWARD << TYPE_BITS, ibn_message_third_lid(state, one, request)};
    return (ibn_message){request | REPLY << TYPE_BITS, state->lid[request]};
}

/* Remove the first message of an input queue, and return the message that the CA has to send because of it. */
static inline ibn_message ibn_message_pop_next(const ibn_sim *sim, const ibn_replies *state, ibn_endpoint *one, int in)
{
    return ibn_message_next(state, one, in, ibn_message_pop(sim, &one->in[in]));
}

/* Return whether the first message of an input queue is stuck: the message causes another message, such as a reply, and
 * the output queue for the other message has no room. */
static inline int ibn_message_is_stuck(const ibn_replies *state, const ibn_endpoint *one, int in)
{
    return one->in[in].count && !ibn_message_has_room(&one->out[ibn_message_follows(state, in)]);
}

#pragma GCC visibility push(hidden)
/* Functions of message_remedies.c. */
void ibn_simulate_check_messages_later(ibn_sim *sim, ibn_attached *self, int32_t device);
void ibn_simulate_release_token(ibn_sim *sim, ibn_attached *self, int32_t device);
void ibn_simulate_remedy_messages(ibn_sim *sim, ibn_attached *self, int32_t device, int32_t value);
#pragma GCC visibility pop
