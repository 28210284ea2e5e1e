/* State of a simulation with adaptive routing.  docs/simulation.md explains the model.
 *
 * A virtual channel (VC) is one VL of one channel: the sender's credits, and a queue of packets at the receiver.  In
 * names, a VC is `vc` or `l`.  Only the head packet of a queue can continue, on any of several VCs.  A packet becomes
 * the head packet at the tick at which the previous packet has left completely.  Each switch also has one spare buffer,
 * which holds one packet and belongs to no VC.  A block is 64 bytes. */
#ifndef IBNUE_INTERNAL_ADAPTIVE_H
#define IBNUE_INTERNAL_ADAPTIVE_H

#include <stddef.h>

#include "simulate/adaptive.h"
#include "simulate/internal/flow.h"

enum { SCHEME_NONE, SCHEME_ESCAPE, SCHEME_TOKEN, SCHEME_BUBBLE, SCHEME_GROUPS };
enum {
    AV_CREDIT,  /* credits reach the sender of a VC; subject: VC, value: blocks */
    AV_ARRIVE,  /* the head of a packet can be forwarded; subject: packet */
    AV_DELIVER, /* the tail of a packet has reached its CA; subject: packet */
    AV_FREE,    /* a channel has finished sending a packet; subject: channel */
    AV_SHOW,    /* the next packet of a queue becomes the head packet; subject: VC */
    AV_SPARE,   /* a spare buffer is free again; subject: switch */
    AV_INJECT,  /* a flow can send its next packet; subject: flow */
    AV_LATER,   /* first of the kinds of events that are handled after all other events of a tick, in sorted order */
    AV_TOKEN = AV_LATER, /* the token reaches a switch; subject: switch */
    AV_EXPIRE,           /* the mark of a channel may have expired; subject: channel */
    AV_PING,             /* a ping arrives; subject: channel by which it arrives, value: ping */
    AV_SAMPLE            /* blocked queues send pings (scheme BUBBLE) */
};
enum { SPARE_FREE, SPARE_TAKEN, SPARE_READY, SPARE_LEAVING };

/* number of slots of the timing wheel; an event that is due more ticks ahead stays in its slot for several turns */
#define AV_SLOTS 4096

/* An event that is due at a later tick. */
typedef struct {
    int64_t time; /* tick at which the event is due; while the events of one tick are sorted, the last sort key */
    int32_t kind, /* kind of the event: AV_... */
        subject,  /* VC, packet, channel, switch or flow to which the event belongs, depending on the kind */
        value,    /* blocks of credit or number of a ping, depending on the kind */
        next;     /* next event in the same slot of the timing wheel, or in the free list; IBN_NONE: none */
} ibn_adaptive_event;

/* A mark: a reservation that a ping sets at the sender of a channel.  The next free room on the channel is reserved for
 * one packet. */
typedef struct {
    int64_t ping, /* ID of the ping that set the mark */
        until,    /* tick at which the mark expires; -1: there is no mark */
        packet;   /* serial number of the packet for which the room is reserved */
    int32_t from, /* VC whose queue holds this packet */
        /* 1: the search message (ping) that set this mark has found a cycle, so no other ping may replace the mark;
         * else 0 */
        locked;
} ibn_mark;

/* State of one virtual channel (VC). */
typedef struct {
    int32_t credits, /* blocks that the sender may send */
        held,        /* blocks in the receiver's buffer that have not begun to leave */
        flying,      /* blocks on the way to the buffer */
        returning,   /* blocks that have left the buffer, but whose credit has not reached the sender */
        buffer;      /* size of the buffer in blocks, which is the sum of `credits`, `held`, `flying` and `returning` */
    int32_t vl,      /* VL of this VC */
        channel;     /* channel of this VC */
    ibn_fifo queue;  /* packets in the receiver's buffer */
    int64_t since;   /* tick since which the head packet is at the head of the queue */
    int32_t leaving; /* 1: the tail of the previous packet has not left yet, so the queue has no head packet; else 0 */
    int64_t next_ping; /* earliest tick at which this queue may send another ping */
} ibn_adaptive_vc;

/* State of one channel: one direction of a link. */
typedef struct {
    int64_t busy,    /* tick from which on the channel can send again */
        cost,        /* ticks per byte x 2^IBN_COST_BITS */
        bytes,       /* bytes sent since the start */
        packets,     /* packets sent since the start */
        saved;       /* number of sent packets that held the token and were sent without credit */
    int32_t carry,   /* fraction of a tick that remained after the last packet, x 2^IBN_COST_BITS */
        wire,        /* delay of the cable in ticks, from one end to the other */
        hop,         /* ticks from sending a packet's head until the next device can forward it */
        src,         /* device that sends */
        dst,         /* device that receives */
        dst_port,    /* port number at the receiving device */
        reverse,     /* channel of the opposite direction */
        to_switch,   /* 1: the receiver is a switch, 0: a CA or router */
        from_switch; /* 1: the sender is a switch, 0: a CA or router */
    ibn_mark mark;   /* reservation of the next free room */
} ibn_adaptive_channel;

/* State of one device. */
typedef struct {
    int32_t turn,        /* the input (of a switch) or flow (of a CA) that round robin serves first the next time */
        touched;         /* 1: the device is in sim->touched, else 0 */
    uint32_t sends;      /* packets sent since the start (unsigned, because the number may wrap around) */
    int32_t flows_first, /* used for CAs: position of its first flow in sim->by_device */
        flows;           /* used for CAs: number of its flows */
    int32_t spare,       /* used for switches: packet in the spare buffer, or IBN_NONE */
        spare_state;     /* used for switches: state of the spare buffer, SPARE_... */
} ibn_adaptive_device;

/* A ping.  It follows waiting packets from channel to channel, until it returns to a channel on its path or ends. */
typedef struct {
    int64_t id;      /* random rank x 2^32 + the VC that sent the ping; in a conflict the larger ID wins */
    int64_t culprit; /* serial number of the packet whose wait closes the cycle */
    int32_t step,    /* number of random numbers that the ping has drawn */
        phase,       /* 0: the ping searches for a cycle, 1: it locks the marks of a cycle */
        closer,      /* VC with the packet whose wait closes the cycle */
        next;        /* next ping in the free list, or IBN_NONE */
} ibn_ping;

/* State of a simulation with adaptive routing. */
struct ibn_adaptive {
    int32_t devices, /* number of devices: switches first, then CAs and routers */
        switches,    /* number of switches */
        channels,    /* number of channels */
        vls,         /* number of VLs */
        lids,        /* number of LIDs, including LID 0 */
        sl2vl_ports, /* ports of a switch in `sl2vl`; 0: one SL2VL table for all switches */
        flows;       /* number of flows */
    int64_t now,     /* present tick */
        vcs;         /* number of VCs: channels x vls */
    /* the options; the arrays in them are not used, because the fields below have copies */
    ibn_simulate_adaptive_options options;
    ibn_adaptive_channel *channel; /* [channels] state of each channel */
    ibn_adaptive_vc *vc;           /* [vcs] state of each VC */
    ibn_adaptive_device *device;   /* [devices] state of each device */
    int32_t *out_first; /* [devices + 1] the channels that device d sends by are out_first[d] to out_first[d + 1] - 1 */
    int32_t *at_port;   /* [devices][256] channel that leaves by a port */
    uint8_t *lft,       /* [switches][lids] out-port of the escape path to a LID */
        *sl2vl,         /* [16] or [switches][in-port][out-port][16] VL of an SL */
        *enter_sl,      /* [switches][lids] SL of a packet that enters the escape VLs at a switch */
        *enter_port;    /* [switches] in-port for `sl2vl` of a packet that enters the escape VLs at a switch */
    int32_t *choice_first,     /* [switches x columns + 1] start in `choice` for each switch and destination */
        *choice,               /* channels by which packets may leave a switch, by switch and destination */
        *lid_column,           /* [lids] destination to which a LID belongs, or -1 */
        *lid_channel,          /* [lids] channel from the last switch to the owner of a LID, or -1 */
        *lid_switch;           /* [lids] switch that delivers to a LID, or -1 */
    ibn_flow *flow;            /* [flows] state of each flow */
    int32_t *by_device;        /* [flows] flows, grouped by the CA that sends them */
    int32_t *lists;            /* destination LIDs of all flows */
    int64_t *trace;            /* [][3] tick, LID and bytes of each message of flows with PROCESS_TRACE */
    ibn_adaptive_event *event; /* [events_made] events, scheduled or free */
    int32_t events_made,       /* number of allocated events */
        event_free,            /* first event of the free list, or IBN_NONE */
        slot[AV_SLOTS];        /* first event of each slot of the timing wheel, or IBN_NONE */
    int64_t pending,           /* number of scheduled events */
        moving,                /* number of pending events that move data */
        crediting;             /* number of AV_CREDIT events among `moving` */
    ibn_adaptive_event *later; /* [later_room] events of the present tick with kinds from AV_LATER on, to be sorted */
    int32_t later_count,       /* number of events in `later` */
        later_room;            /* number of events for which `later` has room */
    int32_t *touched,          /* [devices] devices to serve in this tick */
        touches;               /* number of devices in `touched` */
    int32_t *order;            /* [256 x vls] input VCs of a switch in the order of service */
    int64_t *rank;             /* [256 x vls] sort key of each VC in `order`, smallest first */
    ibn_packet *packet;        /* [packets_made] packets, in use or free */
    int32_t packets_made,      /* number of allocated packets */
        packet_free;           /* first packet of the free list, or IBN_NONE */
    ibn_ping *ping;            /* [pings_made] pings, in use or free */
    int32_t pings_made,        /* number of allocated pings */
        ping_free;             /* first ping of the free list, or IBN_NONE */
    int32_t holder;            /* packet that holds the token, or IBN_NONE */
    int failed;                /* 1: memory has run out; else 0 */
    int64_t injected,          /* packets sent by CAs since the start */
        delivered,             /* packets delivered to CAs */
        injected_bytes,        /* bytes sent by CAs */
        delivered_bytes,       /* bytes delivered to CAs */
        hops,                  /* packets sent by all channels */
        handled,               /* events handled */
        last_move;             /* tick at which a packet was last sent */
    int64_t escapes,           /* packets sent on escape VCs */
        seized,                /* times that a packet took the token */
        pings,                 /* pings sent */
        loops,                 /* cycles that pings have found */
        /* number of packets moved to a spare buffer, so that the other packets of a cycle can move */
        bubbles;
    int64_t latencies[2][IBN_LATENCY_BUCKETS]; /* latencies counted by bucket: of packets, and of messages */
};

#pragma GCC visibility push(hidden)
/* Functions of adaptive_events.c.  They store events, packets and pings. */
int ibn_simulate_adaptive_more(void **array, int32_t made, size_t size);
void ibn_simulate_adaptive_at(ibn_adaptive *sim, int64_t time, int kind, int32_t subject, int32_t value);
int32_t ibn_simulate_adaptive_new_packet(ibn_adaptive *sim);
void ibn_simulate_adaptive_free_packet(ibn_adaptive *sim, int32_t p);
int32_t ibn_simulate_adaptive_new_ping(ibn_adaptive *sim);
void ibn_simulate_adaptive_free_ping(ibn_adaptive *sim, int32_t ping);
/* Functions of adaptive_choose.c.  They choose the VC on which a packet continues. */
int32_t ibn_simulate_adaptive_better(const ibn_adaptive *sim, int32_t best, int32_t c, int32_t vls, int32_t p);
int32_t ibn_simulate_adaptive_first_vl(const ibn_adaptive *sim, int32_t p);
int32_t ibn_simulate_adaptive_choose(const ibn_adaptive *sim, int32_t p, int32_t from);
int32_t ibn_simulate_adaptive_choose_saved(const ibn_adaptive *sim, int32_t p, int32_t s);
int32_t ibn_simulate_adaptive_escape(const ibn_adaptive *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl);
int ibn_simulate_adaptive_only_escape(const ibn_adaptive *sim, int32_t from);
int ibn_simulate_adaptive_marked(const ibn_adaptive *sim, int32_t c);
int ibn_simulate_adaptive_for_other(const ibn_adaptive *sim, int32_t c, int32_t p);
/* Functions of adaptive_move.c.  They move packets. */
void ibn_simulate_adaptive_serve(ibn_adaptive *sim, int32_t d);
void ibn_simulate_adaptive_arrive(ibn_adaptive *sim, int32_t p);
void ibn_simulate_adaptive_deliver(ibn_adaptive *sim, int32_t p);
void ibn_simulate_adaptive_show(ibn_adaptive *sim, int32_t l);
void ibn_simulate_adaptive_prepare(ibn_adaptive *sim, int32_t f);
void ibn_simulate_adaptive_take(ibn_adaptive *sim, int32_t l, int64_t end);
int64_t ibn_simulate_adaptive_end(ibn_adaptive_channel *channel, const ibn_packet *packet, int64_t now);
/* Functions of adaptive_recover.c.  They resolve deadlocks. */
void ibn_simulate_adaptive_token(ibn_adaptive *sim, int32_t s);
void ibn_simulate_adaptive_ping(ibn_adaptive *sim, int32_t c, int32_t ping);
void ibn_simulate_adaptive_sample(ibn_adaptive *sim);
#pragma GCC visibility pop

/* Mark a device, so that it is served after all events of this tick. */
static inline void ibn_simulate_adaptive_touch(ibn_adaptive *sim, int32_t d)
{
    if (!sim->device[d].touched) {
        sim->device[d].touched = 1;
        sim->touched[sim->touches++] = d;
    }
}

/* Return the switch that has the queue of a VC, which is the receiver of the VC. */
static inline int32_t ibn_simulate_adaptive_at_switch(const ibn_adaptive *sim, int32_t l)
{
    return sim->channel[sim->vc[l].channel].dst;
}

/* Return the head packet of a VC, which is the only packet of its queue that can be forwarded.  Return IBN_NONE if
 * there is none. */
static inline int32_t ibn_simulate_adaptive_shown(const ibn_adaptive *sim, int32_t l)
{
    return sim->vc[l].leaving ? IBN_NONE : sim->vc[l].queue.head;
}

/* Return the serial number of a packet, which is unique in the simulation.  For IBN_NONE, return -1. */
static inline int64_t ibn_simulate_adaptive_serial(const ibn_adaptive *sim, int32_t p)
{
    return p == IBN_NONE ? -1 : sim->packet[p].headed;
}

/* Return the channels by which packet p may continue from switch s to another switch.
 *
 * Their number is stored in *count. */
static inline const int32_t *ibn_simulate_adaptive_choices(const ibn_adaptive *sim, int32_t s, int32_t p,
                                                           int32_t *count)
{
    int64_t row = (int64_t)s * sim->options.columns + sim->lid_column[sim->packet[p].lid];
    *count = sim->choice_first[row + 1] - sim->choice_first[row];
    return sim->choice + sim->choice_first[row];
}

#endif
