/* Remedies of message-dependent deadlocks between endpoints: back-off, and rescues with a token.  A remedy acts on the
 * first message of an input queue, if this message has waited for some time.  See replies.c. */
#include "simulate/internal/replies.h"

/* Set a timer for the first tick at which a stuck message of a CA has waited long enough for a remedy. */
void ibn_simulate_check_messages_later(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    ibn_replies *state = self->state;
    ibn_endpoint *one = &state->endpoint[device];
    int64_t due = INT64_MAX, wait = state->backoff + state->detect;
    for (int in = 0; in < IN_QUEUES && wait; in++)
        if (ibn_message_is_stuck(state, one, in) && one->in[in].since + wait < due)
            due = one->in[in].since + wait;
    if (due == INT64_MAX || one->checked)
        return;
    one->checked = 1;
    ibn_simulate_timer(sim, self, due > sim->now ? due : sim->now + 1, device, AT_CHECK);
}

/* Set a timer for the first tick, later than now, at which the released token reaches a CA. */
static void await_token(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    const ibn_replies *state = self->state;
    int32_t ahead = (state->endpoint[device].order - state->token_at + state->cas) % state->cas;
    int64_t lap = state->cas * state->step, due = state->token_free + ahead * state->step;
    if (due <= sim->now)
        due += ((sim->now - due) / lap + 1) * lap;
    ibn_simulate_timer(sim, self, due, device, AT_TOKEN);
}

/* Release the token at a CA.  From this CA the token travels to the other CAs in their order.  For each CA that wants
 * the token, a timer is set for the tick at which the token would reach this CA. */
void ibn_simulate_release_token(ibn_sim *sim, ibn_attached *self, int32_t device)
{
    ibn_replies *state = self->state;
    state->token_at = state->endpoint[device].order;
    state->token_free = sim->now;
    for (int32_t d = 0; d < sim->devices; d++)
        if (state->endpoint[d].wants_token)
            await_token(sim, self, d);
}

/* Answer the first request in the input queue of a CA by a back-off, if this request has been stuck long enough and the
 * output queue of replies has room.  Normally, the CA forwards a request to a third CA.  A back-off orders the
 * requester to send the request to the third CA itself. */
static void back_off(ibn_sim *sim, ibn_replies *state, ibn_endpoint *one)
{
    if (!ibn_message_is_stuck(state, one, REQUEST) || one->in[REQUEST].since + state->backoff > sim->now
        || !ibn_message_has_room(&one->out[REPLIES]))
        return;
    int32_t request = ibn_message_pop(sim, &one->in[REQUEST]).tag & REQUEST_MASK;
    ibn_message_push(sim, &one->out[REPLIES], (ibn_message){request | BACKOFF << TYPE_BITS, state->lid[request]});
    state->backed_off++;
}

/* Return the number of an input queue of a CA, if the first message of this queue has been stuck long enough to be
 * rescued.  Return -1 if no input queue has such a message. */
static int queue_to_rescue(const ibn_sim *sim, const ibn_replies *state, const ibn_endpoint *one)
{
    for (int in = IN_QUEUES - 1; in >= 0; in--)
        if (ibn_message_is_stuck(state, one, in) && one->in[in].since + state->detect <= sim->now)
            return in;
    return -1;
}

/* Let a CA that the token has reached rescue a message.  Nothing happens if the token is not at this CA, because some
 * CA has captured it after the timer for this event was set. */
static void token(ibn_sim *sim, ibn_replies *state, ibn_endpoint *one)
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
    ibn_message_push(sim, &one->out[RESCUED], ibn_message_pop_next(sim, state, one, in));
}

/* Let the remedy of a CA act, because a message has waited long enough (AT_CHECK) or because the token reaches the CA
 * (AT_TOKEN). */
void ibn_simulate_remedy_messages(ibn_sim *sim, ibn_attached *self, int32_t device, int32_t value)
{
    ibn_replies *state = self->state;
    ibn_endpoint *one = &state->endpoint[device];
    if (value == AT_TOKEN) {
        token(sim, state, one);
        return;
    }
    one->checked = 0;
    if (state->backoff) {
        back_off(sim, state, one);
    } else if (!one->wants_token && queue_to_rescue(sim, state, one) >= 0) {
        one->wants_token = 1;
        if (state->token_free >= 0)
            await_token(sim, self, device);
    }
}
