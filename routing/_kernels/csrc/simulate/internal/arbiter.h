/* Choices of a packet that a channel can send.  Each kind of choice has a file: arbiter_inputs.c, arbiter_tables.c and
 * arbiter_crossbar.c.  The file arbiter.c selects the kind, and sends the packet. */
#pragma once

#include "simulate/internal/crossbar.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

/* A queued packet that channel c may send next, with ARBITER_CROSSBAR. */
typedef struct {
    int32_t p,     /* the packet; IBN_NONE: there is no such packet */
        vl, input, /* VL on which the packet leaves, and its input */
        turn;      /* a number that is smaller for packets that are served earlier */
} ibn_candidate;

/* Return whether the crossbar allows an input to send to channel c now.  If not, record that channel c waits for the
 * input. */
static inline int ibn_simulate_crossbar_allows(ibn_sim *sim, int32_t c, int32_t input)
{
    int64_t time = ibn_simulate_input_free_at(sim, c, input);
    if (time > sim->now)
        ibn_simulate_await_input(sim, c, time);
    return time <= sim->now;
}

/* Return whether mechanisms allow packet p to be sent on VC l now.  The credits of the VC have to suffice for the
 * packet and for the blocks that the mechanisms require to stay free. */
static inline int ibn_simulate_mechanisms_allow(const ibn_sim *sim, int32_t p, int32_t l)
{
    return !(sim->hooks & IBN_HOOK_ROOM)
           || sim->packet[p].blocks + ibn_simulate_room(sim, p, l) <= ibn_simulate_credits(&sim->vc[l]);
}

#pragma GCC visibility push(hidden)
int32_t ibn_simulate_input_that_fits(ibn_sim *sim, int32_t c, int32_t vl);
int ibn_simulate_choose_by_tables(ibn_sim *sim, int32_t c, int32_t *input);
ibn_candidate ibn_simulate_choose_by_crossbar_input(ibn_sim *sim, int32_t c);
void ibn_simulate_end_turn(ibn_sim *sim, ibn_channel *channel, const ibn_candidate *sent);
#pragma GCC visibility pop
