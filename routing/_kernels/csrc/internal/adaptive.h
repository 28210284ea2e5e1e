/* State of a simulation with adaptive routing; docs/simulation.md has the model.
 *
 * A lane is one VL of one channel: its sender's credits, and at its receiver a queue of packets, of which the first
 * may go on by any of several lanes.  A switch has room for one packet beside its lanes, the spare. */
#ifndef IBNUE_INTERNAL_ADAPTIVE_H
#define IBNUE_INTERNAL_ADAPTIVE_H

#include <stddef.h>

#include "../sim_adaptive.h"
#include "sim_flow.h"

enum { SCHEME_NONE, SCHEME_ESCAPE, SCHEME_TOKEN, SCHEME_BUBBLE };
enum {
    AV_CREDIT,  /* subject: lane, value: blocks, which have come back to the sender */
    AV_ARRIVE,  /* subject: packet, whose head may go on */
    AV_DELIVER, /* subject: packet, whose tail has reached a CA */
    AV_FREE,    /* subject: channel, which has sent its packet */
    AV_SHOW,    /* subject: lane, whose first packet has left: the next one shows */
    AV_SPARE,   /* subject: switch, whose spare is free again */
    AV_INJECT,  /* subject: flow, whose next message is due or whose window is open again */
    AV_LATER,   /* from here on: after the others of the tick, by kind, subject and value */
    AV_TOKEN = AV_LATER, /* subject: switch that the token comes to */
    AV_EXPIRE,           /* subject: channel whose mark may be over */
    AV_PING,             /* subject: channel that a ping comes by, value: ping */
    AV_SAMPLE
};
enum { SPARE_FREE, SPARE_TAKEN, SPARE_READY, SPARE_LEAVING };

#define AV_SLOTS 4096 /* ticks that the wheel holds; an event beyond stays in its slot for more turns */

typedef struct {
    int64_t time;
    int32_t kind, subject, value, next;
} ibn_av_event;

/* What a ping leaves behind at the sender of a channel: the next room on it is for this packet, of this queue. */
typedef struct {
    int64_t ping, until, packet; /* the packet's serial number */
    int32_t from, locked; /* locked: no ping of a higher rank takes it over */
} ibn_mark;

typedef struct {
    int32_t credits, held, flying, returning, buffer; /* blocks */
    int32_t vl, channel;
    ibn_fifo queue;
    int64_t since;     /* the first packet shows since then */
    int32_t leaving;   /* the packet before it is still on its way out, so that none shows */
    int64_t next_ping; /* of its own */
} ibn_av_lane;

typedef struct {
    int64_t busy, cost, bytes, packets, saved; /* saved: packets that went from spare to spare */
    int32_t carry, wire, hop, src, dst, dst_port, reverse, to_switch, from_switch;
    ibn_mark mark;
} ibn_av_channel;

typedef struct {
    int32_t turn, touched;
    uint32_t sends; /* may go round: there is no end to how many a switch sends */
    int32_t flows_first, flows; /* of a CA */
    int32_t spare, spare_state; /* the packet there */
} ibn_av_device;

typedef struct {
    int64_t id; /* its rank, then the lane that it began at */
    int64_t culprit; /* serial number of the packet that closes the circle */
    int32_t step, phase, closer, next;
} ibn_ping;

struct ibn_adaptive {
    int32_t devices, switches, channels, vls, lids, sl2vl_ports, flows;
    int64_t now, lanes;
    ibn_adaptive_options options;
    ibn_av_channel *channel;
    ibn_av_lane *lane;
    ibn_av_device *device;
    int32_t *out_first; /* channels of device d are those from out_first[d] on */
    int32_t *at_port;
    uint8_t *lft, *sl2vl, *enter_sl, *enter_port;
    int32_t *way_first, *way, *lid_channel, *lid_switch;
    ibn_flow *flow;
    int32_t *by_device; /* flows, those of a CA together */
    int32_t *lists;
    int64_t *trace;
    ibn_av_event *event;
    int32_t events_made, event_free, slot[AV_SLOTS];
    int64_t pending, moving;
    ibn_av_event *later;
    int32_t later_count, later_room;
    int32_t *touched, touches;
    int32_t *order; /* lanes into a switch as they are served, and by what */
    int64_t *rank;
    ibn_packet *packet;
    int32_t packets_made, packet_free;
    ibn_ping *ping;
    int32_t pings_made, ping_free;
    int32_t holder; /* of the token: a packet */
    int failed;
    int64_t injected, delivered, injected_bytes, delivered_bytes, hops, handled, last_move;
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
int64_t ibn_av_end(ibn_av_channel *channel, const ibn_packet *packet, int64_t now);
/* adaptive_recover.c */
void ibn_av_token(ibn_adaptive *sim, int32_t s);
void ibn_av_ping(ibn_adaptive *sim, int32_t c, int32_t ping);
void ibn_av_sample(ibn_adaptive *sim);
#pragma GCC visibility pop

/* A device is served when everything of this tick has happened. */
static inline void ibn_av_touch(ibn_adaptive *sim, int32_t d)
{
    if (!sim->device[d].touched) {
        sim->device[d].touched = 1;
        sim->touched[sim->touches++] = d;
    }
}

/* The switch that a lane leads to, whose queue is there. */
static inline int32_t ibn_av_at_switch(const ibn_adaptive *sim, int32_t l)
{
    return sim->channel[sim->lane[l].channel].dst;
}

/* The packet that shows in a lane's queue, or IBN_NONE. */
static inline int32_t ibn_av_shown(const ibn_adaptive *sim, int32_t l)
{
    return sim->lane[l].leaving ? IBN_NONE : sim->lane[l].queue.head;
}

/* What tells a packet from all others that ever were. */
static inline int64_t ibn_av_serial(const ibn_adaptive *sim, int32_t p)
{
    return p == IBN_NONE ? -1 : sim->packet[p].headed;
}

/* Channels by which a packet at a switch may go on to another. */
static inline const int32_t *ibn_av_ways(const ibn_adaptive *sim, int32_t s, int32_t p, int32_t *count)
{
    int64_t row = (int64_t)s * sim->switches + sim->lid_switch[sim->packet[p].lid];
    *count = sim->way_first[row + 1] - sim->way_first[row];
    return sim->way + sim->way_first[row];
}

#endif
