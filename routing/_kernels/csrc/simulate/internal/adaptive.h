/* State of a simulation with adaptive routing; docs/simulation.md has the model.
 *
 * A virtual channel (VC) is one VL of one channel: the sender's credits, and a queue of packets at the receiver.  The
 * first packet of a queue may continue on any of several VCs.  Identifiers call a VC `vc` or `l`.  Each switch has
 * one spare buffer, which holds one packet and belongs to no VC.  A block is 64 bytes. */
#ifndef IBNUE_INTERNAL_ADAPTIVE_H
#define IBNUE_INTERNAL_ADAPTIVE_H

#include <stddef.h>

#include "simulate/adaptive.h"
#include "simulate/internal/flow.h"

enum { SCHEME_NONE, SCHEME_ESCAPE, SCHEME_TOKEN, SCHEME_BUBBLE };
enum {
    AV_CREDIT,  /* subject: VC, value: blocks of credit that reach its sender */
    AV_ARRIVE,  /* subject: packet whose head may be forwarded */
    AV_DELIVER, /* subject: packet whose tail has reached a CA */
    AV_FREE,    /* subject: channel that has finished sending a packet */
    AV_SHOW,    /* subject: VC whose first packet has left, so that the next one is exposed */
    AV_SPARE,   /* subject: switch whose spare buffer is free again */
    AV_INJECT,  /* subject: flow whose next message is due or whose window is open again */
    AV_LATER,   /* kinds from here on are handled after the others of the tick, sorted by kind, subject and ping */
    AV_TOKEN = AV_LATER, /* subject: switch that the token reaches */
    AV_EXPIRE,           /* subject: channel whose mark may have expired */
    AV_PING,             /* subject: channel by which a ping arrives, value: ping */
    AV_SAMPLE            /* scheme BUBBLE: blocked queues send pings */
};
enum { SPARE_FREE, SPARE_TAKEN, SPARE_READY, SPARE_LEAVING };

#define AV_SLOTS 4096 /* slots of the timing wheel; an event further ahead stays in its slot for several turns */

typedef struct {
    int64_t time;
    int32_t kind, subject, value, next; /* next: in its slot or in the free list */
} ibn_adaptive_event;

/* A reservation that a ping leaves at the sender of a channel: the next free room on it is for one packet. */
typedef struct {
    int64_t ping, until, packet; /* ID of the ping; tick of expiry; serial number of the packet */
    int32_t from, locked;        /* VC that holds the packet; whether pings of higher rank may not replace the mark */
} ibn_mark;

typedef struct {
    /* Blocks: that the sender may send; in the buffer; on the way to it; freed, but the credit has not reached the
     * sender; and the sum of the four. */
    int32_t credits, held, flying, returning, buffer;
    int32_t vl, channel;
    ibn_fifo queue;
    int64_t since;     /* tick since which the first packet has been exposed */
    int32_t leaving;   /* the packet before it has not left completely, so no packet is exposed */
    int64_t next_ping; /* earliest tick at which this queue may send another ping */
} ibn_adaptive_vc;

typedef struct {
    /* busy: it can send from this tick on; cost: ticks per byte x 2^IBN_COST_BITS; bytes, packets: sent; saved: of
     * these, packets that held the token and were sent without credit */
    int64_t busy, cost, bytes, packets, saved;
    /* carry: fraction of a tick left over, x 2^IBN_COST_BITS; wire, hop: ticks to its other end, and until a head can
     * be forwarded there; src, dst: devices; reverse: the channel of the opposite direction */
    int32_t carry, wire, hop, src, dst, dst_port, reverse, to_switch, from_switch;
    ibn_mark mark;
} ibn_adaptive_channel;

typedef struct {
    int32_t turn, touched;      /* next input (switch) or flow (CA) in round robin; whether it is in sim->touched */
    uint32_t sends;             /* packets sent; unsigned, since it may wrap around */
    int32_t flows_first, flows; /* of a CA: first place in sim->by_device, number */
    int32_t spare, spare_state; /* packet in the spare buffer, or IBN_NONE; SPARE_... */
} ibn_adaptive_device;

typedef struct {
    int64_t id;      /* random rank x 2^32 + the VC that sent it */
    int64_t culprit; /* serial number of the packet that closes the cycle */
    /* step: random numbers drawn; phase: 0 while it traces a cycle, 1 while it locks one; closer: VC whose packet
     * closes the cycle; next: in the free list */
    int32_t step, phase, closer, next;
} ibn_ping;

struct ibn_adaptive {
    int32_t devices, switches, channels, vls, lids, sl2vl_ports, flows;
    int64_t now, vcs;             /* present tick; number of VCs: channels x vls */
    ibn_adaptive_options options; /* its arrays are copied to the fields below */
    ibn_adaptive_channel *channel;
    ibn_adaptive_vc *vc;
    ibn_adaptive_device *device;
    int32_t *out_first; /* channels of device d are those from out_first[d] on */
    int32_t *at_port;   /* [devices][256] channel of a port */
    uint8_t *lft, *sl2vl, *enter_sl, *enter_port;
    int32_t *way_first, *way, *lid_channel, *lid_switch;
    ibn_flow *flow;
    int32_t *by_device; /* flows, grouped by CA */
    int32_t *lists;
    int64_t *trace;
    ibn_adaptive_event *event;
    int32_t events_made, event_free, slot[AV_SLOTS]; /* allocated; free list; first event of each slot, or IBN_NONE */
    int64_t pending, moving;                         /* scheduled events: all; those that move data */
    ibn_adaptive_event *later;                       /* events of this tick with kinds from AV_LATER on */
    int32_t later_count, later_room;
    int32_t *touched, touches; /* devices to serve in this tick */
    int32_t *order;            /* input VCs of a switch in the order of service */
    int64_t *rank;             /* key of each VC in `order` */
    ibn_packet *packet;
    int32_t packets_made, packet_free;
    ibn_ping *ping;
    int32_t pings_made, ping_free;
    int32_t holder; /* packet that holds the token, or IBN_NONE */
    int failed;     /* out of memory */
    int64_t injected, delivered, injected_bytes, delivered_bytes, hops, handled, last_move;
    /* hops on escape VCs; times a packet took the token; pings sent; cycles that pings found; packets moved to a spare
     * buffer to make a bubble */
    int64_t escapes, seized, pings, loops, bubbles;
};

#pragma GCC visibility push(hidden)
/* adaptive_events.c */
int ibn_av_more(void **array, int32_t made, size_t size);
void ibn_av_at(ibn_adaptive *sim, int64_t time, int kind, int32_t subject, int32_t value);
int32_t ibn_av_new_packet(ibn_adaptive *sim);
void ibn_av_free_packet(ibn_adaptive *sim, int32_t p);
int32_t ibn_av_new_ping(ibn_adaptive *sim);
void ibn_av_free_ping(ibn_adaptive *sim, int32_t ping);
/* adaptive_choose.c */
int32_t ibn_av_better(const ibn_adaptive *sim, int32_t best, int32_t c, int32_t vls, int32_t p);
int32_t ibn_av_choose(const ibn_adaptive *sim, int32_t p, int32_t from);
int32_t ibn_av_choose_saved(const ibn_adaptive *sim, int32_t p, int32_t s);
int32_t ibn_av_escape(const ibn_adaptive *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl);
int ibn_av_only_escape(const ibn_adaptive *sim, int32_t from);
int ibn_av_marked(const ibn_adaptive *sim, int32_t c);
int ibn_av_for_other(const ibn_adaptive *sim, int32_t c, int32_t p);
/* adaptive_move.c */
void ibn_av_serve(ibn_adaptive *sim, int32_t d);
void ibn_av_arrive(ibn_adaptive *sim, int32_t p);
void ibn_av_deliver(ibn_adaptive *sim, int32_t p);
void ibn_av_show(ibn_adaptive *sim, int32_t l);
void ibn_av_prepare(ibn_adaptive *sim, int32_t f);
void ibn_av_take(ibn_adaptive *sim, int32_t l, int64_t end);
int64_t ibn_av_end(ibn_adaptive_channel *channel, const ibn_packet *packet, int64_t now);
/* adaptive_recover.c */
void ibn_av_token(ibn_adaptive *sim, int32_t s);
void ibn_av_ping(ibn_adaptive *sim, int32_t c, int32_t ping);
void ibn_av_sample(ibn_adaptive *sim);
#pragma GCC visibility pop

/* Mark a device to be served after all events of this tick. */
static inline void ibn_av_touch(ibn_adaptive *sim, int32_t d)
{
    if (!sim->device[d].touched) {
        sim->device[d].touched = 1;
        sim->touched[sim->touches++] = d;
    }
}

/* Return the switch at the end of a VC, which has its queue. */
static inline int32_t ibn_av_at_switch(const ibn_adaptive *sim, int32_t l)
{
    return sim->channel[sim->vc[l].channel].dst;
}

/* Return the exposed packet of a VC: the first of its queue if the packet before it has left, else IBN_NONE. */
static inline int32_t ibn_av_shown(const ibn_adaptive *sim, int32_t l)
{
    return sim->vc[l].leaving ? IBN_NONE : sim->vc[l].queue.head;
}

/* Return the serial number of a packet, which no other packet of the run has; -1 for IBN_NONE. */
static inline int64_t ibn_av_serial(const ibn_adaptive *sim, int32_t p)
{
    return p == IBN_NONE ? -1 : sim->packet[p].headed;
}

/* Return the channels on shortest paths by which a packet at switch s may continue to another switch. */
static inline const int32_t *ibn_av_ways(const ibn_adaptive *sim, int32_t s, int32_t p, int32_t *count)
{
    int64_t row = (int64_t)s * sim->switches + sim->lid_switch[sim->packet[p].lid];
    *count = sim->way_first[row + 1] - sim->way_first[row];
    return sim->way + sim->way_first[row];
}

#endif
