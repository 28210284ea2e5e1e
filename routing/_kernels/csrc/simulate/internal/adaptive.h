/* Adaptive switches: the second model of switches.  docs/simulation.md explains it.
 *
 * In the first model, switches have output queues, and the tables select the output queue of each packet.  In the
 * second model, packets stay in a queue at their input, and a head packet takes one of several channels.
 *
 * The second model uses the clock, events, packets, flows, channels, credits and counters of struct ibn_sim.  It is a
 * mechanism that replaces three parts of the first model: the handling of arriving packets, arbitration, and the
 * wait-for graph.  sim->adaptive is the state of the second model; NULL: the simulation uses the first model.
 *
 * Only the head packet of a queue can leave.  A packet becomes the head packet when the previous packet has left
 * completely, or when it arrives at an empty queue.  sim->watch[l].hidden is the queue of VC l.
 *
 * Each switch also has two spare buffers, each of which holds one packet and belongs to no VC.  Only the scheme
 * CONCURRENT uses spare buffer 1.  A block is 64 bytes. */
#pragma once

#include "simulate/internal/mechanism.h"

/* Schemes: methods that handle deadlock.  The Python class Scheme (adaptive.py) has the same numbers. */
enum {
    SCHEME_NONE,       /* deadlock is not handled */
    SCHEME_ESCAPE,     /* packets may always change to escape VLs, whose tables have no credit loop */
    SCHEME_TOKEN,      /* the one packet that holds the token moves through spare buffers */
    SCHEME_BUBBLE,     /* pings find a cycle of waiting packets, and one of these packets moves to a spare buffer */
    SCHEME_GROUPS,     /* packets keep their VL, and take any port of a proven port group */
    SCHEME_RELAY,      /* a CA receives a suspect for another CA, and sends it again */
    SCHEME_CONCURRENT, /* all suspects move through spare buffers at the same time */
    SCHEME_DEFLECT     /* a suspect takes any free channel to another switch */
};
/* Further kinds of events.  A slot of the timing wheel has no room for more kinds, so each of these kinds reuses the
 * number of a kind that only switches with output queues use.  No simulation has switches of both models. */
enum {
    /* Kind of event: a spare buffer is free again.  Subject: the switch.  Value: number of the buffer. */
    EV_SPARE = EV_PAUSE,
    /* Kind of event: the token reaches a switch (subject: the switch), or a ping arrives (subject: the channel by which
     * the ping arrives, value: number of the ping). */
    EV_SIGNAL = EV_CONTROL,
    /* Kind of event: the mark of a channel may have expired.  Subject: the channel. */
    EV_EXPIRE = EV_CLCM
};
enum { SPARE_FREE, SPARE_TAKEN, SPARE_READY, SPARE_LEAVING };
enum { IBN_SPARES = 2 }; /* number of spare buffers of a switch */

/* A mark reserves the next free room on a channel for one packet.  A ping sets the mark at the sender of the
 * channel. */
typedef struct {
    int64_t ping, /* identifier of the ping that has set the mark */
        until,    /* tick at which the mark expires; -1: there is no mark */
        packet;   /* serial number of the packet for which the mark reserves room */
    int32_t from, /* VC whose queue holds the packet for which the mark reserves room */
        /* 1: the ping that has set this mark has found a cycle, so no other ping may replace the mark; else 0 */
        locked;
} ibn_mark;

/* State of the input queue of one VC, without the packets in the queue. */
typedef struct {
    int64_t since,     /* tick at which the head packet reached the head of the queue */
        next_ping,     /* earliest tick at which this queue may send another ping */
        check,         /* tick of the next check whether the head packet has to be lost; IBN_NEVER: none is pending */
        /* serial number of the head packet if this packet is a suspect, which may take a path that other packets may
         * not take; -1: no suspect */
        suspect;
} ibn_input;

/* State of one device: a switch, a CA or a router. */
typedef struct {
    int32_t turn;        /* number of the input VC (of a switch) or flow (of a CA) with which the next round robin
                          * begins */
    uint32_t sends;      /* number of packets sent since the start (unsigned, because it may wrap around) */
    int32_t flows_first, /* for CAs: index in `by_device` of the CA's first flow */
        flows;           /* for CAs: number of flows */
    int32_t spare[IBN_SPARES],   /* for switches: the packet in each spare buffer, or IBN_NONE */
        spare_state[IBN_SPARES]; /* for switches: state of each spare buffer, one of SPARE_... */
    ibn_fifo relay;      /* for CAs: packets for other CAs that this CA has to send again (scheme RELAY) */
} ibn_device;

/* A ping: a message that follows packets which wait for each other, from channel to channel.  It ends, or it returns to
 * a channel that it has visited before. */
typedef struct {
    /* identifier: random rank x 2^32 + the VC that sent the ping; a larger identifier prevails over a smaller one */
    int64_t id;
    int64_t culprit; /* serial number of the packet at which the ping found a cycle */
    int32_t step,    /* number of random numbers that the ping has drawn so far */
        phase,       /* 0: the ping searches for a cycle, 1: it locks the marks of the cycle that it has found */
        closer,      /* VC of the packet at which the ping found a cycle */
        next;        /* next ping in the list of unused pings, or IBN_NONE */
} ibn_ping;

/* A device that has to be served in this tick. */
typedef struct {
    uint64_t number; /* scheme CONCURRENT: random number of the device in this tick; devices with smaller numbers are
                      * served earlier */
    int32_t device;  /* the device */
} ibn_turn;

/* State of the adaptive switches of a simulation. */
struct ibn_adaptive {
    /* The fields from `scheme` to `recovery_rank` are settings.  The method Adaptive.numbers (adaptive.py) passes their
     * values in this order. */
    int64_t scheme,   /* scheme against deadlock, one of SCHEME_... */
        /* number of VLs for adaptive routing: VLs 0 to adaptive_vls - 1; all other VLs are escape VLs */
        adaptive_vls,
        ca_vls,       /* number of VLs on which CAs send: VLs 0 to ca_vls - 1 */
        stay,         /* 1: a packet on an escape VL stays on escape VLs, 0: it may leave them */
        detect,       /* number of ticks at the head of a queue after which a packet may be in a deadlock */
        repeat,       /* smallest number of ticks between two pings from one queue */
        lasts,        /* number of ticks after which a mark expires */
        hold,         /* number of ticks after which a locked mark (of a cycle that was found) expires */
        /* ticks between two searches for packets that have waited `detect` ticks at the head of a queue; schemes
         * BUBBLE, RELAY, CONCURRENT and DEFLECT only */
        sample,
        step,         /* ticks that the token takes from one switch to the next */
        columns;      /* number of destinations that `choice` distinguishes: all switches, or all LIDs */
    /* [switches][lids] SL towards each LID, for packets that enter the fabric at each switch, or that change to the
     * escape VLs at this switch */
    uint8_t *enter_sl;
    /* [switches] in-port by which SL2VL finds the VL of packets that change to the escape VLs at each switch */
    int32_t *enter_port,
        *lid_column,  /* [lids] number of the destination (below `columns`) to which each LID belongs, or -1 */
        *lid_channel, /* [lids] channel from the last switch to the end port that owns each LID, or -1 */
        /* [switches x columns + 1] index in `choice` of the first channel for each pair of switch and destination; the
         * pair has the number switch x columns + destination */
        *choice_first,
        *choice, /* channels by which packets may leave a switch, grouped by switch and destination */
        /* [2][switches][switches] next channel of a packet on a recovery path, or -1.  The indexes are the spare buffer
         * that holds the packet, the switch of this buffer, and the last switch of the path.  Scheme CONCURRENT only */
        *recovery_next,
        /* [switches] position of each switch in an order of the switches.  On a recovery path, a channel to a switch
         * with a higher position leads to spare buffer 1 of that switch.  Any other channel leads to spare buffer 0.
         * Scheme CONCURRENT only */
        *recovery_rank;

    ibn_input *input;     /* [vcs] state of the queue of each VC */
    ibn_mark *mark;       /* [channels] mark that reserves the next free room on each channel */
    int64_t *saved;       /* [channels] number of packets that were sent without credits */
    ibn_device *device;   /* [devices] state of each device */
    int32_t *by_device;   /* [flows] all flows, sorted by the CA that sends them */
    ibn_turn *turns;      /* [devices] list of the devices that have to be served in this tick; the first `turns_taken`
                           * elements are in use */
    int32_t turns_taken;  /* number of devices in the list `turns` */
    uint8_t *touched;     /* [devices] 1: the device is in the list `turns`, else 0 */
    int32_t *order;       /* [256 x vls] input VCs of the switch that is being served, in the order of service */
    int64_t *rank;        /* [256 x vls] sort key of each VC in `order`, smallest first */
    ibn_ping *ping;       /* [pings_made] pings that have not ended yet, and unused pings */
    int32_t pings_made,   /* number of pings for which memory is allocated */
        ping_free;        /* first unused ping, or IBN_NONE */
    int32_t holder;       /* packet that holds the token, or IBN_NONE */
    int32_t links_down;   /* number of channels whose link is down */
    int64_t escapes,      /* number of packets sent on escape VLs */
        seized,           /* number of times that a packet has taken the token */
        pings,            /* number of pings that were sent */
        loops,            /* number of cycles that pings have found */
        /* number of packets that were moved to a spare buffer, so that the other packets of a cycle could advance */
        bubbles,
        relayed,  /* number of packets that CAs have received in order to send them again (scheme RELAY) */
        diverted, /* number of packets that have entered the recovery path (scheme CONCURRENT) */
        /* number of times that a packet was sent away from its destination (scheme DEFLECT) */
        deflected;
};

#pragma GCC visibility push(hidden)
/* Functions of adaptive_choose.c, which choose the VC on which a packet leaves a switch. */
int32_t ibn_simulate_adaptive_better(const ibn_sim *sim, int32_t best, int32_t c, int32_t vls, int32_t p);
int32_t ibn_simulate_adaptive_first_vl(const ibn_sim *sim, int32_t p);
int32_t ibn_simulate_adaptive_choose(const ibn_sim *sim, int32_t p, int32_t from);
int32_t ibn_simulate_adaptive_choose_saved(const ibn_sim *sim, int32_t p, int32_t s);
int32_t ibn_simulate_adaptive_escape(const ibn_sim *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl);
int ibn_simulate_adaptive_only_escape(const ibn_sim *sim, int32_t from);
int ibn_simulate_adaptive_marked(const ibn_sim *sim, int32_t c);
int ibn_simulate_adaptive_for_other(const ibn_sim *sim, int32_t c, int32_t p);
int ibn_simulate_adaptive_is_relayed(const ibn_sim *sim, int32_t p);
/* Functions of adaptive_move.c, which move packets. */
void ibn_simulate_adaptive_send(ibn_sim *sim, int32_t p, int32_t from, int32_t c, int32_t l);
void ibn_simulate_adaptive_take(ibn_sim *sim, int32_t l, int64_t end);
void ibn_simulate_adaptive_leave(ibn_sim *sim, int32_t p, int32_t from, int32_t d, int64_t end);
/* Functions of adaptive_lose.c, which lose packets that are too old, or that can leave only by links that are down. */
void ibn_simulate_adaptive_schedule_check(ibn_sim *sim, int32_t l);
void ibn_simulate_adaptive_arm_spare(ibn_sim *sim, int32_t s, int32_t k);
void ibn_simulate_adaptive_check(ibn_sim *sim, int32_t l);
int ibn_simulate_adaptive_is_cut(const ibn_sim *sim, int32_t s, int32_t p, int32_t from);
/* Functions of adaptive_recover.c, which resolve deadlocks. */
void ibn_simulate_adaptive_signal(ibn_sim *sim, int32_t subject, int32_t ping);
void ibn_simulate_adaptive_sample(ibn_sim *sim);
/* Functions of adaptive_concurrent.c, which move packets to their destinations on recovery paths: from one spare buffer
 * to the next one. */
int ibn_simulate_adaptive_spare_after(const ibn_sim *sim, int32_t c);
int32_t ibn_simulate_adaptive_recovery_ahead(const ibn_sim *sim, int32_t p, int32_t s, int32_t k);
int ibn_simulate_adaptive_send_on_recovery(ibn_sim *sim, int32_t s, int32_t p, int32_t from);
/* Choose the VC on which packet p leaves its switch away from its destination: see adaptive_deflect.c. */
int32_t ibn_simulate_adaptive_deflect(ibn_sim *sim, int32_t p, int32_t from, int32_t s);
#pragma GCC visibility pop

/* Add device d to the list of devices that are served after all events of this tick. */
static inline void ibn_simulate_adaptive_touch(ibn_sim *sim, int32_t d)
{
    ibn_adaptive *model = sim->adaptive;
    if (!model->touched[d]) {
        model->touched[d] = 1;
        model->turns[model->turns_taken++].device = d;
    }
}

/* Return the channel of VC l. */
static inline const ibn_channel *ibn_simulate_channel_of(const ibn_sim *sim, int32_t l)
{
    return &sim->channel[l / sim->vls];
}

/* Return the head packet of VC l, which is the only packet of its queue that can leave.  Return IBN_NONE if there is no
 * head packet. */
static inline int32_t ibn_simulate_adaptive_shown(const ibn_sim *sim, int32_t l)
{
    return sim->watch[l].busy_input ? IBN_NONE : sim->watch[l].hidden.head;
}

/* Schedule a check whether the head packet of VC l has to be lost, if packets can be lost at all. */
static inline void ibn_simulate_adaptive_arm(ibn_sim *sim, int32_t l)
{
    if (sim->aging || sim->adaptive->links_down)
        ibn_simulate_adaptive_schedule_check(sim, l);
}

/* Return the number of the spare buffer of switch s that holds packet p, which must be in a spare buffer of the switch.
 */
static inline int ibn_simulate_adaptive_spare_of(const ibn_sim *sim, int32_t s, int32_t p)
{
    return sim->adaptive->device[s].spare[0] == p ? 0 : 1;
}

/* Return the serial number of packet p, which no other packet of the simulation has.  For IBN_NONE, return -1. */
static inline int64_t ibn_simulate_adaptive_serial(const ibn_sim *sim, int32_t p)
{
    return p == IBN_NONE ? -1 : sim->packet[p].headed;
}

/* Return the channels by which packet p may continue from switch s to another switch.  *count receives the number of
 * these channels. */
static inline const int32_t *ibn_simulate_adaptive_choices(const ibn_sim *sim, int32_t s, int32_t p, int32_t *count)
{
    const ibn_adaptive *model = sim->adaptive;
    int64_t row = s * model->columns + model->lid_column[sim->packet[p].lid];
    *count = model->choice_first[row + 1] - model->choice_first[row];
    return model->choice + model->choice_first[row];
}

/* Return whether packet p, the head packet of VC `from`, is a suspect: after a long wait, this packet may take a path
 * that other packets may not take. */
static inline int ibn_simulate_adaptive_is_suspect(const ibn_sim *sim, int32_t p, int32_t from)
{
    return from != IBN_NONE && sim->adaptive->input[from].suspect == ibn_simulate_adaptive_serial(sim, p);
}
