/* Mechanisms are optional parts of a simulation, which act at hooks.
 *
 * A mechanism is one C file that defines its hooks with IBN_MECHANISM.  A simulation attaches mechanisms by their
 * names.  Some hooks have a bit IBN_HOOK_... in sim->hooks.  The bit is set if an attached mechanism defines the hook.
 * The simulation calls such a hook only if its bit is set.
 *
 * Much of the simulation is compiled twice: as fast code (the parameter plain is 1) and as general code (plain is 0).
 * sim->plain selects the code.  The fast code is used only if no attached mechanism defines one of the hooks `queued`,
 * `room`, `arrived`, `vl` and `output`.  The fast code does not keep the fields `held`, `flying` and `returning` of
 * ibn_vc up to date.  A mechanism that reads these fields during a run sets sim->plain to 0 in its hook `attach`. */
#pragma once

#include "simulate/internal/sim.h"

typedef struct ibn_mechanism ibn_mechanism;

/* A mechanism that is attached to a simulation, with its state. */
struct ibn_attached {
    const ibn_mechanism *kind; /* definition of the mechanism */
    void *state;               /* [kind->bytes] state of the mechanism; all bytes are 0 at the start */
    /* [packets_made] a number that the mechanism keeps for each packet; NULL: the mechanism keeps no such numbers */
    int32_t *tag;
    int32_t index;             /* index of the mechanism in sim->attached */
};

/* Definition of a mechanism by its hooks.  Any hook except `attach` may be NULL.
 *
 * The events of a tick are handled in any order.  So the hooks gate, made, output, vl, sent, delivered and lost are
 * called in any order within a tick, and their effect must not depend on the order. */
struct ibn_mechanism {
    const char *name; /* name by which a simulation attaches the mechanism, at most 15 letters */
    int64_t bytes;    /* size of the mechanism's state in bytes */
    int32_t tags;     /* 1: the mechanism keeps a number (tag) for each packet, else 0 */
    /* Hook: set up the state, before any flow starts.  `numbers` has the `count` settings that the mechanism's Python
     * class returns (Mechanism.numbers).  Return 1 if memory runs out, else 0. */
    int (*attach)(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count);
    /* Hook: free the memory to which the state points. */
    void (*detach)(ibn_sim *sim, ibn_attached *self);
    /* Hook: return whether a flow may now create its next packet, whose destination is flow->lid.  If not, the
     * mechanism has to let the flow try again later, by ibn_simulate_retry or ibn_simulate_prepare.  The hook is called
     * neither for packets that mechanisms create, such as replies, nor for packets that are sent again. */
    int (*gate)(ibn_sim *sim, ibn_attached *self, int32_t flow);
    /* Hook: a flow has created a packet, which waits at the port of its CA. */
    void (*made)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* Hook: return the channel for which a switch queues a packet.  `usual` is the channel that the tables name, or
     * IBN_NONE if the out-port of the tables has no link.  The switch looks up the VL for the out-port of the tables.
     * So all channels that the hook may return must give the packet the same VL. */
    int32_t (*output)(ibn_sim *sim, ibn_attached *self, int32_t packet, int32_t usual);
    /* Hook: return the VL on which a packet is queued for a channel.  `usual` is the VL that the tables name.  The hook
     * is called once each time that a packet is queued. */
    int32_t (*vl)(ibn_sim *sim, ibn_attached *self, int32_t packet, int32_t channel, int32_t usual);
    /* Hook: return the number of blocks that must stay free in the buffer of a VC if a packet is sent to this buffer.
     * The packet is not sent if fewer blocks would stay free.  Arbitration calls the hook for the first packets of
     * queues, any number of times. */
    int32_t (*room)(const ibn_sim *sim, const ibn_attached *self, int32_t packet, int32_t vc);
    /* Hook: return whether a CA takes a packet whose tail has arrived.  If not, the packet stays in the buffer of its
     * VC, and the mechanism later calls ibn_simulate_take. */
    int (*arrived)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* Hook: the hook `arrived` has left packets in a CA's buffer of VC `vc`.  Return the VC on which the CA has to send
     * a packet before it can take these packets.  Return IBN_NONE if the CA does not have to send a packet. */
    int32_t (*waits_for)(const ibn_sim *sim, const ibn_attached *self, int32_t vc);
    /* Hook: a packet begins to leave its source CA.  The hook may queue another packet at the port of the CA. */
    void (*sent)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* Hook: a packet has been queued at a switch for a VC.  The hook is called when all packets of the tick have been
     * queued.  The calls are in the order of VC and input. */
    void (*queued)(ibn_sim *sim, ibn_attached *self, int32_t packet, int32_t vc);
    /* Hook: a packet has reached its destination CA completely. */
    void (*delivered)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* Hook: a packet has been lost. */
    void (*lost)(ibn_sim *sim, ibn_attached *self, int32_t packet);
    /* Hook: the tick has come for which the mechanism has called ibn_simulate_timer. */
    void (*timer)(ibn_sim *sim, ibn_attached *self, int32_t subject, int32_t value);
    /* Hook: carry out a command between two ticks.  `numbers` has the `count` arguments of the command, which come from
     * the mechanism's Python class. */
    void (*command)(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count);
    /* Hook: write the mechanism's results, such as counters, to `numbers`, which has room for `most` numbers.  Return
     * the number of results, which may be larger than `most`. */
    int64_t (*read)(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers);
};

/* Define a mechanism, for instance IBN_MECHANISM(hold) = {.name = "hold", ...};
 *
 * The linker collects all mechanisms in one section.  So a new mechanism needs no entry in any list. */
#define IBN_MECHANISM(word)                                                                                            \
    static const ibn_mechanism word##_mechanism;                                                                       \
    static const ibn_mechanism *const word##_listed __attribute__((used, section("ibn_mechanisms")))                   \
        = &word##_mechanism;                                                                                           \
    static const ibn_mechanism word##_mechanism

/* Number of low bits in the subject of a timer event.  The mechanism chooses the value of these bits.  The higher bits
 * hold the number of the mechanism. */
#define IBN_TIMER_BITS 26

/* Schedule a call of a mechanism's timer hook for a later tick.  The argument `subject` must be below 2^26.  Timers of
 * one tick are sorted by mechanism, subject and value. */
static inline void ibn_simulate_timer(ibn_sim *sim, const ibn_attached *self, int64_t time, int32_t subject,
                                      int32_t value)
{
    ibn_simulate_at(sim, time, EV_TIMER, self->index << IBN_TIMER_BITS | subject, value);
}

/* Let a flow try again, in the next tick, to create its packet.  The gate hook has stopped the flow in this tick. */
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
int ibn_simulate_on_arrived(ibn_sim *sim, int32_t packet);
int32_t ibn_simulate_waits_for(const ibn_sim *sim, int32_t vc);
void ibn_simulate_take(ibn_sim *sim, int32_t packet);
int32_t ibn_simulate_room(const ibn_sim *sim, int32_t packet, int32_t vc);
int32_t ibn_simulate_other_output(ibn_sim *sim, int32_t packet, int32_t usual);
int32_t ibn_simulate_other_vl(ibn_sim *sim, int32_t packet, int32_t channel, int32_t usual);
void ibn_simulate_on_sent(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_queued(ibn_sim *sim, int32_t packet, int32_t vc);
void ibn_simulate_on_delivered(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_lost(ibn_sim *sim, int32_t packet);
void ibn_simulate_on_timer(ibn_sim *sim, int32_t subject, int32_t value);
#pragma GCC visibility pop

/* Return the VL on which packet p is queued for channel c.  `usual` is the VL that the tables name. */
static inline int32_t ibn_simulate_choose_vl(ibn_sim *sim, int32_t p, int32_t c, int32_t usual)
{
    return sim->hooks & IBN_HOOK_VL ? ibn_simulate_other_vl(sim, p, c, usual) : usual;
}
