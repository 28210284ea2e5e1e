/* Queues of messages in a CA. */
#pragma once

#include <stdlib.h>

#include "simulate/internal/sim.h"

/* Message between CAs. */
typedef struct {
    int32_t tag, /* low TYPE_BITS bits (see replies.h): number of the flow that sent the request to which the message
                  * belongs; higher bits: type of the message */
        lid;     /* LID of the destination */
} ibn_message;

/* Queue of messages. */
typedef struct {
    ibn_message *at; /* [room] ring buffer */
    int32_t room,    /* largest number of messages in the queue */
        first,       /* index in `at` of the first message */
        count,       /* number of messages in the queue */
        offered;     /* number of messages that wait at the CA's port; they are not in the array `at` any more, but
                      * still use room of the queue */
    int64_t since;   /* tick at which the message that is first now became the first one */
} ibn_message_queue;

/* Make an empty queue with room for `room` messages.  Return 1 if memory runs out, else 0. */
static inline int ibn_message_new_queue(ibn_message_queue *queue, int64_t room)
{
    *queue = (ibn_message_queue){malloc((size_t)(room + !room) * sizeof(ibn_message)), (int32_t)room, 0, 0, 0, 0};
    return !queue->at;
}

/* Put a message at the end of a queue. */
static inline void ibn_message_push(const ibn_sim *sim, ibn_message_queue *queue, ibn_message one)
{
    if (!queue->count)
        queue->since = sim->now;
    queue->at[(queue->first + queue->count++) % queue->room] = one;
}

/* Remove the first message of a queue, and return this message. */
static inline ibn_message ibn_message_pop(const ibn_sim *sim, ibn_message_queue *queue)
{
    ibn_message one = queue->at[queue->first];
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
    queue->since = sim->now;
    return one;
}

/* Return whether a further message fits into a queue. */
static inline int ibn_message_has_room(const ibn_message_queue *queue)
{
    return queue->count + queue->offered < queue->room;
}
