/* State of the mechanism `request-grant`: adapters at the edge of a switching fabric.
 *
 * Each CA of the simulation is an adapter with two ports.  The adapter sends by the first port and receives by the
 * second port.  The flow from adapter i to adapter o has the number i x adapters + o.  Adapter i is the input of this
 * flow, and adapter o its output.  The packets of a flow wait in a virtual output queue (VOQ) at adapter i.  Packets
 * cross the fabric in segments, which are the packets of the simulation.  An unsolicited segment is sent without a
 * grant.  Each flow has a virtual time, which each grant advances by the number of granted segments.  An output next
 * grants the request of the flow with the smallest virtual time, so that flows that always have requests get equal
 * numbers of segments.  The opposite flow of the flow from adapter i to adapter o is the flow from adapter o to
 * adapter i. */
#pragma once

#include "simulate/internal/mechanism.h"

enum { GRANT_ARRIVAL, GRANT_REQUEST, GRANT_GRANT, GRANT_IDLE_END, GRANT_DEPARTURE, GRANT_BLOCK, GRANT_UNBLOCK };
/* Number of low bits in the value of a timer event.  These bits hold a number, such as a number of segments.  The
 * higher bits hold the kind of the event, one of GRANT_... */
#define GRANT_KIND_BITS 28

/* A packet that has arrived at an adapter by its external line, and that has not left by the external line of another
 * adapter yet. */
typedef struct {
    int64_t born;        /* tick at which the last byte of the packet has reached its first adapter */
    int32_t bytes,       /* size of the packet in bytes */
        unsent,          /* number of bytes of the packet that are not in a segment yet */
        underway,        /* number of segments in the fabric that carry bytes of the packet */
        granted,         /* number of segments that were sent with a grant, and whose last byte belongs to the packet */
        next;            /* next packet of the flow, or next unused packet; IBN_NONE: none */
    uint8_t unsolicited, /* 1: a segment that was sent without a grant ends with a byte of this packet, else 0 */
        request_end;     /* 1: this packet is the last one of a request, so that the next packet begins a new segment;
                          * else 0 */
} grant_packet;

/* A segment in the fabric. */
typedef struct {
    int32_t first,   /* first packet of which the segment carries bytes, IBN_NONE if it only carries control data */
        count,       /* number of packets of which the segment carries bytes */
        request,     /* number of segments of the same flow for which this segment requests grants */
        grant,       /* number of segments of the flow in the opposite direction that this segment grants */
        next;        /* next segment in the free list, or IBN_NONE */
    uint8_t granted, /* 1: the segment uses a grant, 0: it was sent without a grant */
        ack;         /* 1: the segment acknowledges a segment that came from the opposite direction without a grant,
                      * else 0 */
} grant_segment;

/* State of the flow from one adapter to another.  IBN_NONE stands for "no packet". */
typedef struct {
    int32_t oldest,     /* first packet of which some bytes have not arrived at the output yet */
        newest,         /* last packet that has arrived at the input */
        sending,        /* first packet whose bytes are not all in segments yet */
        asking,         /* first packet for which the input has not requested a grant yet */
        pending,        /* number of segments for which the input has requested grants that it has not received yet */
        granted,        /* number of grants that the sender has received and not used yet */
        unacknowledged, /* number of segments sent without a grant and not acknowledged yet */
        requests,       /* number of segments whose requests have reached the output, but that are not granted yet */
        grants_to_send, /* number of grants for the flow in the opposite direction that the next segment will carry */
        ack_to_send;    /* 1: the next segment will acknowledge a segment that came without a grant from the opposite
                         * direction, else 0 */
    uint32_t path,      /* the next segment takes the path with the number `path` modulo the number of paths */
        path_step;      /* number that is added to `path` after each segment.  This number is odd, and the number of
                         * paths is a power of two.  So all paths are used. */
    /* virtual time of the flow: an output serves the flow with the smallest virtual time first.  Each grant advances
     * the virtual time by the number of granted segments */
    int64_t turn;
} grant_flow;

/* State of one adapter. */
typedef struct {
    int64_t draws,      /* number of random numbers that the adapter has drawn */
        line_free,      /* first tick at which the external line out of the adapter is free */
        idle_until,     /* tick from which on the adapter may grant the next request */
        /* virtual time that the flow granted last by this output had before that grant.  A flow that sends requests
         * again after a pause gets at least this virtual time */
        turn,
        offered,        /* number of packets to this adapter that adapters have received from outside of the network */
        offered_bytes,  /* number of bytes of the packets counted in `offered` */
        departed,       /* number of packets that have left this adapter by its external line */
        departed_bytes, /* number of bytes of the packets counted in `departed` */
        delay,          /* ticks from arrival to departure, summed over the packets in `departed` */
        worst,          /* largest number of ticks from arrival to departure of a packet in `departed` */
        held;           /* number of received grants that the adapter has not used yet, for all its VOQs */
    double clock,       /* arrival time of the next packet in ticks, with fractions of a tick */
        gap;            /* mean number of ticks between two bursts of arrivals */
    int32_t burst,      /* number of packets of the current burst that follow after the next packet */
        target,         /* adapter to which the packets of the current burst go */
        size,           /* size of the next packet in bytes */
        room,           /* free room in the reassembly buffer, in segments */
        fabric_room;    /* free room in the fabric-output buffer in front of this adapter, in segments */
} grant_adapter;

/* State of the mechanism.  The Python class of the mechanism sets the fields up to `blocked`, in this order. */
typedef struct {
    int64_t adapters,  /* number of adapters */
        paths,         /* number of paths between two adapters, one for each LID of an adapter */
        /* 1: a grant also reserves space in the fabric-output buffer, 0: it does not */
        reserve,
        in_band,       /* 1: control data travels in segments, 0: it arrives after control_delay and takes no
                        * bandwidth */
        control_delay, /* ticks from one adapter to another for control data that does not travel in segments */
        segment,       /* size of the largest segment in bytes */
        control_bytes, /* size in bytes of a segment without data */
        most,          /* largest number of segments that a flow may have requested without having their grants yet */
        reassembly,    /* size of a reassembly buffer in segments */
        fabric_buffer, /* size of a fabric-output buffer in segments */
        grant_cost,    /* ticks that an output waits after a grant, for each granted segment, x 2^IBN_COST_BITS */
        small,         /* size of a small packet in bytes */
        large,         /* size of a large packet in bytes */
        large_share,   /* fraction of large packets, multiplied by 2^30 */
        burst,         /* mean number of packets of a burst, multiplied by 2^20 */
        block_from,    /* tick from which on the blocked channels send no packet */
        block_until,   /* tick at which the blocked channels continue */
        blocked;       /* number of channels in the list `blocks` */
    int64_t *lid,      /* [adapters] first LID of each adapter */
        *blocks,       /* [blocked] blocked channels, which send no packet from tick block_from to tick block_until */
        *load;         /* [adapters][adapters] cumulative loads: element [i][o] is the load that adapter i offers to
                        * adapters 0 to o together */
    grant_adapter *adapter;    /* [adapters] state of each adapter */
    grant_flow *flow;          /* [adapters x adapters] state of the flow from each adapter to each adapter */
    uint64_t *asks;            /* [adapters][mask_words] for each adapter A, a mask of the adapters that have requested
                                * grants from A: bit i stands for adapter i */
    int64_t mask_words;        /* number of 64-bit words in a mask with one bit for each adapter */
    grant_packet *packets;     /* [packets_made] packets, in use or free */
    grant_segment *segments;   /* [segments_made] segments, in use or free */
    int32_t packets_made, /* number of packets for which memory is allocated */
        packet_free,      /* first unused packet, or IBN_NONE */
        segments_made,    /* number of segments for which memory is allocated */
        segment_free;     /* first unused segment, or IBN_NONE */
} request_grant;

#define GRANT_SETTINGS 18

#pragma GCC visibility push(hidden)
/* Functions of grant_packets.c: arrival of packets, segments, and reassembly. */
int32_t ibn_grant_new_segment(ibn_sim *sim, request_grant *state);
void ibn_grant_free_packet(request_grant *state, int32_t p);
void ibn_grant_schedule_arrival(ibn_sim *sim, ibn_attached *self, int32_t i);
int32_t ibn_grant_store_arrival(ibn_sim *sim, request_grant *state, int32_t i);
int32_t ibn_grant_next_bytes(const request_grant *state, const grant_flow *flow);
int32_t ibn_grant_fill(request_grant *state, grant_flow *flow, grant_segment *segment, int32_t bytes);
int32_t ibn_grant_request(request_grant *state, grant_flow *flow);
int32_t ibn_grant_take_complete(request_grant *state, grant_flow *flow);
#pragma GCC visibility pop
