/* State of a simulation with adaptive routing. docs/simulation.md explains the model.
 *
 * A virtual channel (VC) is one VL of one channel.  It consists of the credits of the sender and of a queue of packets
 * at the receiver.  In names, a VC is `vc` or `l`.
 *
 * Only the head packet of a queue can leave, and it may leave on one of several VCs.  A packet becomes the head packet
 * at the tick at which the previous packet has left completely.
 *
 * Each switch also has spare buffers, each of which holds one packet and belongs to no VC.  Schemes use spare buffer 0
 * only, except for recovery paths (scheme CONCURRENT).  A block is 64 bytes. */
#ifndef IBNUE_INTERNAL_ADAPTIVE_H
#define IBNUE_INTERNAL_ADAPTIVE_H

#include <stddef.h>

#include "simulate/adaptive.h"
#include "simulate/internal/flow.h"

enum {
    SCHEME_NONE,
    SCHEME_ESCAPE,
    SCHEME_TOKEN,
    SCHEME_BUBBLE,
    SCHEME_GROUPS,
    SCHEME_RELAY,
    SCHEME_CONCURRENT,
    SCHEME_DEFLECT
};
enum {
    AV_CREDIT,  /* Kind of event: credits reach the sender of a VC.  Subject: the VC.  Value: number of blocks. */
    AV_ARRIVE,  /* Kind of event: the head of a packet can be forwarded.  Subject: the packet. */
    AV_DELIVER, /* Kind of event: the tail of a packet has reached its CA.  Subject: the packet. */
    AV_FREE,    /* Kind of event: a channel has finished sending a packet.  Subject: the channel. */
    AV_SHOW,    /* Kind of event: the next packet of a queue becomes the head packet.  Subject: the VC. */
    AV_SPARE,   /* Kind of event: a spare buffer is free again.  Subject: the switch.  Value: number of the buffer. */
    AV_INJECT,  /* Kind of event: a flow can send its next packet.  Subject: the flow. */
    /* From this kind on, the events of a tick are sorted, and handled after the events of all kinds before. */
    AV_LATER,
    AV_TOKEN = AV_LATER, /* Kind of event: the token reaches a switch.  Subject: the switch. */
    AV_EXPIRE,           /* Kind of event: the mark of a channel may have expired.  Subject: the channel. */
    /* Kind of event: a ping arrives.  Subject: the channel by which the ping arrives.  Value: number of the ping. */
    AV_PING,
    /* Kind of event: search for head packets that have waited too long.  Their queues send pings (scheme BUBBLE), or
     * they become suspects (schemes RELAY, CONCURRENT and DEFLECT). */
    AV_SAMPLE
};
enum { SPARE_FREE, SPARE_TAKEN, SPARE_READY, SPARE_LEAVING };
enum { IBN_SPARES = 2 }; /* number of spare buffers of a switch */

/* number of slots of the timing wheel; an event that is due later than this number of ticks stays in its slot until
 * the wheel has come around several times */
#define AV_SLOTS 4096

/* An event that is due at a later tick of the simulation. */
typedef struct {
    int64_t time; /* tick at which the event is due; while the events of one tick are sorted: the last sort key */
    int32_t kind, /* kind of the event, one of AV_... */
        subject,  /* VC, packet, channel, switch or flow that the event concerns, depending on `kind` */
        value,    /* number of blocks, or number of a ping, depending on `kind` */
        /* next event in the list of events in one slot of the timing wheel, or in the list of unused events; IBN_NONE:
         * none */
        next;
} ibn_adaptive_event;

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

/* State of one virtual channel (VC), which is one VL of one channel. */
typedef struct {
    int32_t credits, /* number of blocks that the sender may send */
        held,        /* number of blocks in the receiver's buffer that have not begun to leave */
        flying,      /* number of blocks that were sent and have not reached the buffer yet */
        returning,   /* number of blocks that have left the buffer, but whose credits have not reached the sender yet */
        buffer;      /* size of the buffer in blocks; it is the sum of `credits`, `held`, `flying` and `returning` */
    int32_t vl,      /* VL of this VC */
        channel;     /* channel of this VC */
    ibn_fifo queue;  /* packets in the receiver's buffer */
    int64_t since;   /* tick at which the head packet reached the head of the queue */
    int32_t leaving; /* 1: the tail of the previous packet has not left yet, so there is no head packet; else 0 */
    int64_t next_ping; /* earliest tick at which this queue may send another ping */
    /* serial number of the head packet that has waited too long, so that it may take an exceptional path; -1: none */
    int64_t suspect;
} ibn_adaptive_vc;

/* State of one channel: one direction of a link. */
typedef struct {
    int64_t busy,    /* tick from which on the channel can send again */
        cost,        /* ticks that a byte takes on the channel, x 2^IBN_COST_BITS */
        bytes,       /* number of bytes sent since the start */
        packets,     /* number of packets sent since the start */
        saved;       /* number of packets that were sent without credits because they held the token */
    int32_t carry,   /* fraction of a tick that remained after the last packet, x 2^IBN_COST_BITS */
        wire,        /* delay of the cable in ticks, from one end to the other */
        hop,         /* ticks from the beginning of sending a packet until the next device can forward it */
        src,         /* device that sends */
        dst,         /* device that receives */
        dst_port,    /* port number at the receiving device */
        reverse,     /* channel of the same link in the opposite direction */
        to_switch,   /* 1: the receiver is a switch, 0: a CA or router */
        from_switch; /* 1: the sender is a switch, 0: a CA or router */
    ibn_mark mark;   /* mark that reserves the next free room on the channel */
} ibn_adaptive_channel;

/* State of one device: a switch, a CA or a router. */
typedef struct {
    int32_t turn,        /* the input (of a switch) or flow (of a CA) with which round robin begins the next time */
        touched;         /* 1: the device is listed in sim->touched, else 0 */
    uint32_t sends;      /* number of packets sent since the start (unsigned, because it may wrap around) */
    int32_t flows_first, /* for CAs: index in sim->by_device of the CA's first flow */
        flows;           /* for CAs: number of flows */
    int32_t spare[IBN_SPARES],   /* for switches: the packet in each spare buffer, or IBN_NONE */
        spare_state[IBN_SPARES]; /* for switches: state of each spare buffer, one of SPARE_... */
    ibn_fifo relay;      /* for CAs: packets that the CA has to send again */
} ibn_adaptive_device;

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
    uint64_t number; /* random number of the device in this tick; a device with a smaller number is served earlier */
    int32_t device;  /* the device */
} ibn_turn;

/* State of a simulation with adaptive routing. */
struct ibn_adaptive {
    int32_t devices, /* number of devices: the switches come first, followed by CAs and routers */
        switches,    /* number of switches */
        channels,    /* number of channels */
        vls,         /* number of VLs */
        lids,        /* number of LIDs, including LID 0 */
        sl2vl_ports, /* number of ports of a switch for which `sl2vl` has rows; 0: all switches have one table */
        flows;       /* number of flows */
    int64_t now,     /* present tick */
        vcs;         /* number of VCs: channels x vls */
    /* the options of the caller; their arrays are not used, because the fields below have copies of them */
    ibn_simulate_adaptive_options options;
    ibn_adaptive_channel *channel; /* [channels] state of each channel */
    ibn_adaptive_vc *vc;           /* [vcs] state of each VC */
    ibn_adaptive_device *device;   /* [devices] state of each device */
    int32_t *out_first; /* [devices + 1] the channels out of device d are out_first[d] to out_first[d + 1] - 1 */
    int32_t *at_port;   /* [devices][256] channel that leaves each device by each port */
    uint8_t *lft,       /* [switches][lids] out-port of the escape path to each LID */
        *sl2vl,         /* [16] or [switches][in-port][out-port][16] VL of packets with each SL */
        *enter_sl,      /* [switches][lids] SL of a packet that enters the escape VLs at each switch */
        /* [switches] in-port under which `sl2vl` is read for a packet that enters the escape VLs at each switch */
        *enter_port;
    /* [switches x columns + 1] index in `choice` of the first channel for each pair of switch and destination */
    int32_t *choice_first,
        *choice,        /* channels by which packets may leave a switch, grouped by switch and destination */
        *lid_column,    /* [lids] number of the destination (below options.columns) to which each LID belongs, or -1 */
        *lid_channel,   /* [lids] channel from the last switch to the end port that owns each LID, or -1 */
        *lid_switch,    /* [lids] switch that delivers each LID, or -1 */
        *recovery_next,     /* [2][switches][switches] channel of the recovery path; see ibn_simulate_adaptive_options */
        *recovery_rank;     /* [switches] position of each switch in the order of the recovery path */
    ibn_flow *flow;     /* [flows] state of each flow */
    int32_t *by_device; /* [flows] all flows, sorted by the CA that sends them */
    int32_t *lists;     /* destination LIDs of all flows, one flow after the other */
    int64_t *trace; /* [][3] tick, LID and size in bytes of each message, for flows with the process PROCESS_TRACE */
    ibn_adaptive_event *event; /* [events_made] scheduled and unused events */
    int32_t events_made,       /* number of events for which memory is allocated */
        event_free,            /* first unused event, or IBN_NONE */
        slot[AV_SLOTS];        /* first event in each slot of the timing wheel, or IBN_NONE */
    int64_t pending,           /* number of scheduled events */
        moving,                /* number of pending events of the kinds that move data */
        crediting;             /* number of pending AV_CREDIT events, which are included in `moving` */
    /* [later_room] events of the present tick of the kinds from AV_LATER on, which are sorted */
    ibn_adaptive_event *later;
    int32_t later_count,  /* number of events in `later` */
        later_room;       /* number of events for which `later` has room */
    int32_t *touched,     /* [devices] devices that have to be served in this tick */
        touches;          /* number of devices in `touched` */
    ibn_turn *turns;      /* [devices] the devices of `touched` while they are being sorted (scheme CONCURRENT) */
    int32_t *order;       /* [256 x vls] input VCs of the switch that is being served, in the order of service */
    int64_t *rank;        /* [256 x vls] sort key of each VC in `order`, smallest first */
    ibn_packet *packet;   /* [packets_made] packets of the simulation, and unused packets */
    int32_t packets_made, /* number of packets for which memory is allocated */
        packet_free;      /* first unused packet, or IBN_NONE */
    ibn_ping *ping;       /* [pings_made] pings on the way, and unused pings */
    int32_t pings_made,   /* number of pings for which memory is allocated */
        ping_free;        /* first unused ping, or IBN_NONE */
    int32_t holder;       /* packet that holds the token, or IBN_NONE */
    int failed;           /* 1: memory has run out; else 0 */
    int64_t injected,     /* number of packets that CAs have sent since the start */
        delivered,        /* number of packets that were delivered to CAs */
        injected_bytes,   /* number of bytes that CAs have sent */
        delivered_bytes,  /* number of bytes that were delivered to CAs */
        hops,             /* number of packets sent by all channels, each packet counted once for each channel */
        handled,          /* number of events that were handled */
        last_move;        /* tick at which a packet was last sent */
    int64_t escapes,      /* number of packets sent on escape VLs */
        seized,           /* number of times that a packet has taken the token */
        pings,            /* number of pings that were sent */
        loops,            /* number of cycles that pings have found */
        /* number of packets that were moved to a spare buffer, so that the other packets of a cycle could advance */
        bubbles,
        relayed,  /* number of packets that a CA has received in order to send them again */
        diverted, /* number of packets that have entered the recovery path (scheme CONCURRENT) */
        /* number of times that a packet was sent away from its destination (scheme DEFLECT) */
        deflected;
    /* [2][buckets] number of packets, and number of messages, with a latency in each bucket */
    int64_t latencies[2][IBN_LATENCY_BUCKETS];
};

#pragma GCC visibility push(hidden)
/* Functions of adaptive_events.c, which store events, packets and pings. */
int ibn_simulate_adaptive_more(void **array, int32_t made, size_t size);
void ibn_simulate_adaptive_at(ibn_adaptive *sim, int64_t time, int kind, int32_t subject, int32_t value);
int32_t ibn_simulate_adaptive_new_packet(ibn_adaptive *sim);
void ibn_simulate_adaptive_free_packet(ibn_adaptive *sim, int32_t p);
int32_t ibn_simulate_adaptive_new_ping(ibn_adaptive *sim);
void ibn_simulate_adaptive_free_ping(ibn_adaptive *sim, int32_t ping);
/* Functions of adaptive_choose.c, which choose the VC on which a packet leaves a switch. */
int32_t ibn_simulate_adaptive_better(const ibn_adaptive *sim, int32_t best, int32_t c, int32_t vls, int32_t p);
int32_t ibn_simulate_adaptive_first_vl(const ibn_adaptive *sim, int32_t p);
int32_t ibn_simulate_adaptive_choose(const ibn_adaptive *sim, int32_t p, int32_t from);
int32_t ibn_simulate_adaptive_choose_saved(const ibn_adaptive *sim, int32_t p, int32_t s);
int32_t ibn_simulate_adaptive_escape(const ibn_adaptive *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl);
int ibn_simulate_adaptive_only_escape(const ibn_adaptive *sim, int32_t from);
int ibn_simulate_adaptive_marked(const ibn_adaptive *sim, int32_t c);
int ibn_simulate_adaptive_for_other(const ibn_adaptive *sim, int32_t c, int32_t p);
int ibn_simulate_adaptive_is_relayed(const ibn_adaptive *sim, int32_t p);
/* Functions of adaptive_move.c, which move packets. */
void ibn_simulate_adaptive_send(ibn_adaptive *sim, int32_t p, int32_t from, int32_t c, int32_t l);
void ibn_simulate_adaptive_serve(ibn_adaptive *sim, int32_t d);
void ibn_simulate_adaptive_arrive(ibn_adaptive *sim, int32_t p);
void ibn_simulate_adaptive_deliver(ibn_adaptive *sim, int32_t p);
void ibn_simulate_adaptive_show(ibn_adaptive *sim, int32_t l);
void ibn_simulate_adaptive_prepare(ibn_adaptive *sim, int32_t f);
void ibn_simulate_adaptive_take(ibn_adaptive *sim, int32_t l, int64_t end);
int64_t ibn_simulate_adaptive_end(ibn_adaptive_channel *channel, const ibn_packet *packet, int64_t now);
/* Functions of adaptive_recover.c, which resolve deadlocks. */
void ibn_simulate_adaptive_token(ibn_adaptive *sim, int32_t s);
void ibn_simulate_adaptive_ping(ibn_adaptive *sim, int32_t c, int32_t ping);
void ibn_simulate_adaptive_sample(ibn_adaptive *sim);
void ibn_simulate_adaptive_mark_suspects(ibn_adaptive *sim);
/* Functions of adaptive_concurrent.c, which move packets to their destination on a recovery path. */
int ibn_simulate_adaptive_spare_after(const ibn_adaptive *sim, int32_t c);
int32_t ibn_simulate_adaptive_recovery_ahead(const ibn_adaptive *sim, int32_t p, int32_t s, int32_t k);
int ibn_simulate_adaptive_send_on_recovery(ibn_adaptive *sim, int32_t s, int32_t p, int32_t from);
/* Functions of adaptive_deflect.c, which send packets away from their destination. */
int32_t ibn_simulate_adaptive_deflect(ibn_adaptive *sim, int32_t p, int32_t from, int32_t s);
#pragma GCC visibility pop

/* Mark device d, so that it is served after all events of this tick. */
static inline void ibn_simulate_adaptive_touch(ibn_adaptive *sim, int32_t d)
{
    if (!sim->device[d].touched) {
        sim->device[d].touched = 1;
        sim->touched[sim->touches++] = d;
    }
}

/* Return the switch at which the queue of VC l is, which is the receiver of the VC. */
static inline int32_t ibn_simulate_adaptive_at_switch(const ibn_adaptive *sim, int32_t l)
{
    return sim->channel[sim->vc[l].channel].dst;
}

/* Return the head packet of VC l, which is the only packet of its queue that can leave.  Return IBN_NONE if there is no
 * head packet. */
static inline int32_t ibn_simulate_adaptive_shown(const ibn_adaptive *sim, int32_t l)
{
    return sim->vc[l].leaving ? IBN_NONE : sim->vc[l].queue.head;
}

/* Return the number of the spare buffer of switch s that holds packet p, which must be in one of them. */
static inline int ibn_simulate_adaptive_spare_of(const ibn_adaptive *sim, int32_t s, int32_t p)
{
    return sim->device[s].spare[0] == p ? 0 : 1;
}

/* Return the serial number of packet p, which no other packet of the simulation has.  For IBN_NONE, return -1. */
static inline int64_t ibn_simulate_adaptive_serial(const ibn_adaptive *sim, int32_t p)
{
    return p == IBN_NONE ? -1 : sim->packet[p].headed;
}

/* Return the channels by which packet p may continue from switch s to another switch.  *count receives the number of
 * these channels. */
static inline const int32_t *ibn_simulate_adaptive_choices(const ibn_adaptive *sim, int32_t s, int32_t p,
                                                           int32_t *count)
{
    int64_t row = (int64_t)s * sim->options.columns + sim->lid_column[sim->packet[p].lid];
    *count = sim->choice_first[row + 1] - sim->choice_first[row];
    return sim->choice + sim->choice_first[row];
}

/* Return whether packet p, the head packet of VC `from`, has waited so long that it may take an exceptional path. */
static inline int ibn_simulate_adaptive_is_suspect(const ibn_adaptive *sim, int32_t p, int32_t from)
{
    return from != IBN_NONE && sim->vc[from].suspect == ibn_simulate_adaptive_serial(sim, p);
}

#endif
