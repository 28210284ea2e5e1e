/* Mechanisms: optional parts of a simulation, which act at hooks.
 *
 * A mechanism is one C file that defines its hooks with IBN_MECHANISM.  A simulation attaches mechanisms by name.  A
 * hook that no attached mechanism has costs one test of sim->hooks, or nothing: the code for plain = 1 has no hook. */
#ifndef IBNUE_INTERNAL_SIM_MECHANISM_H
#define IBNUE_INTERNAL_SIM_MECHANISM_H

#include "simulate/internal/sim.h"

typedef struct ibn_mechanism ibn_mechanism;

/* A mechanism that is attached to a simulation. */
struct ibn_attached {
    const ibn_mechanism *kind; /* the mechanism */
    void *state;               /* its state, [kind->bytes], zero at first */
    int32_t *tag;              /* [packets_made] number that the mechanism keeps for each packet; NULL without tags */
    int32_t index;             /* number of the mechanism in sim->attached */
};

/* Hooks of a mechanism.  A hook may be NULL, except attach.
 *
 * The events of a tick are handled in any order, so the hooks gate, made, sent, delivered and lost are called in any
 * order within a tick.  Their effect must not depend on the order. */
struct ibn_mechanism {
    const char *name; /* name by which a simulation attaches the mechanism, at most 15 letters */
    int64_t bytes;    /* size of the state */
    int32_t tags;     /* 1: the mechanism keeps a number for each packet, else 0 */
    /* Set up the state from the numbers of the wrapper, before any flow starts.  Return 1 if memory runs out. */
    int (*attach)(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count);
    /* Free the memory to which the state points. */
    void (*detach)(ibn_sim *sim, ibn_attached *self);
    /* Return whether a flow may make its next packet, for flow->lid, now.  If not, the mechanism later calls
     * ibn_simulate_retry. */
    int (*gate)(ibn_sim *sim, ibn_attached *self, int32_t flow);
    /* A flow has made a packet, which waits at the port of its CA. */
    void (*made)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* A packet begins to leave its CA. */
    void (*sent)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* A packet has been queued at a switch for a VC.  The hook is called when all packets of the tick have been queued,
     * in order of VC and input. */
    void (*queued)(ibn_sim *sim, ibn_attached *self, int32_t packet, int32_t vc);
    /* A packet has reached its CA completely. */
    void (*delivered)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* A packet has been lost. */
    void (*lost)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* A tick for which the mechanism has called ibn_simulate_timer has come. */
    void (*timer)(ibn_sim *sim, ibn_attached *self, int32_t subject, int32_t value);
    /* Carry out a command of the wrapper, between two ticks. */
    void (*command)(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count);
    /* Write up to `most` numbers for the wrapper.  Return how many numbers there are. */
    int64_t (*read)(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers);
};

/* Define a mechanism: IBN_MECHANISM(hold) = {.name = "hold", ...};
 *
 * The linker collects all mechanisms in one section, so there is no list of mechanisms to extend. */
#define IBN_MECHANISM(word)                                                                                            \
    static const ibn_mechanism word##_mechanism;                                                                       \
    static const ibn_mechanism *const word##_listed __attribute__((used, section("ibn_mechanisms")))                   \
        = &word##_mechanism;                                                                                           \
    static const ibn_mechanism word##_mechanism

/* Number of the lowest bit of an event's subject that belongs to the number of its mechanism. */
#define IBN_TIMER_BITS 26

/* Call the timer hook of a mechanism at a later tick.  `subject` is below 2^26.  Timers of one tick are sorted by
 * mechanism, subject and value. */
static inline void ibn_simulate_timer(ibn_sim *sim, const ibn_attached *self, int64_t time, int32_t subject,
                                      int32_t value)
{
    ibn_simulate_at(sim, time, EV_TIMER, self->index << IBN_TIMER_BITS | subject, value);
}

/* Let a flow that a gate has stopped try to make its packet again, in the next tick. */
static inline void ibn_simulate_retry(ibn_sim *sim, int32_t flow)
{
    ibn_simulate_at(sim, sim->now + 1, EV_INJECT, flow, 0);
}

#pragma GCC visibility push(hidden)
void ibn_simulate_call_queued(ibn_sim *sim);
int ibn_simulate_resolve_mechanisms(ibn_sim *sim, const ibn_simulate_options *options);
int ibn_simulate_attach(ibn_sim *sim, const ibn_simulate_options *options);
void ibn_simulate_detach(ibn_sim *sim);
int ibn_simulate_more_tags(ibn_sim *sim);
int ibn_simulate_gate(ibn_sim *sim, int32_t flow);
void ibn_simulate_on_made(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_sent(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_queued(ibn_sim *sim, int32_t packet, int32_t vc);
void ibn_simulate_on_delivered(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_lost(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_timer(ibn_sim *sim, int32_t subject, int32_t value);
#pragma GCC visibility pop

#endif
