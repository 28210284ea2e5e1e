#pragma once

#include <stdint.h>

/* A fabric and its tables: the input of the kernels that collect channel dependencies.
 *
 * The channels out of switch s are numbered from 0, in the order of their out-ports.  Two placeholders have the next
 * numbers.  Number outdegree(s) stands for a packet that is dropped.  Number outdegree(s) + 1 stands for a packet that
 * returns to switch s over a loop-back cable.  So each LFT entry leads to a channel or a placeholder, and a route can
 * be followed without branches in the code.
 *
 * Channels and placeholders together are the X = C + 2 S extended channels.  The extended channels of switch s begin at
 * index xfirst[s].
 *
 * A dependency leads from an extended channel x to a channel out of the switch xdst[x], where x ends.  The dependency
 * on channel number k of this switch has index dep_first[x] + k in the arrays [slots].  Placeholders have no
 * dependencies, but the kernels handle placeholders like channels.  Therefore dep_first[x] is 0 for a placeholder x,
 * and elements 0 to 255 of the arrays [slots] receive values without a meaning. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    /* number of rows of `sl`.  S: one row for each source switch.  L: one row for each source LID.  0: SLs depend only
     * on the destination LID, and the shape of `sl` is [L]. */
    int32_t sl_rows;
    int32_t spread; /* 0: all packets use one VL; nonzero: packets may use several VLs */
    int32_t threads;
    const uint8_t *lft;    /* [S, L]: out-port of each switch towards each LID */
    /* [S, 256]: by switch and out-port, the number of the port's channel or placeholder at the switch (see above) */
    const uint8_t *exit;
    const int32_t *xfirst; /* [S + 1]: first extended channel of each switch */
    const int32_t *xdst;   /* [X]: switch where each extended channel ends; S: the packet is dropped */
    const int32_t *dep_first;  /* [X]: index of the first dependency of each extended channel; 0 for placeholders */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID; -1: no switch does */
    const uint8_t *lid_port;   /* [L]: out-port by which the switch delivers each LID; 0: the LID is the switch's own */
    const int32_t *part;       /* [S]: number of the connected part to which each switch belongs */
    const uint8_t *sl;         /* SLs of requests, in the shape that sl_rows gives */
    /* [16]: the VL of each SL, as a set of one VL (bits); 0: packets with this SL are dropped */
    const uint16_t *vl_bit;
    /* [S]: whether a CA or router is attached to each switch.  NULL: all routes are followed, also the routes of
     * packets that switches send */
    const uint8_t *has_endport;
} cdg_tables;

/* Follow every route and collect the channel dependencies.  If has_endport is not NULL, only routes from CAs and
 * routers to the LIDs of switches (port 0 in lid_port) are followed.  In this case, `hops` may be NULL, and `counts`
 * are meaningless.
 *
 * hops: uint8 [S, L], output: hops from each switch to the switch that delivers each LID, 255 where the packet is not
 * delivered.
 * dep: uint32 [2, slots], must be zero on entry, output.  Row 0 is for routes to CAs and routers, row 1 for routes to
 * switches.  The low half of an element has the VLs, as bits, on which requests have the dependency.  The high half has
 * the VLs on which requests or replies have the dependency.
 * counts: int64 [4], output.  The first three elements count pairs of a switch and a LID, if packets from the switch to
 * the LID are not delivered.  counts[0]: the switch and the LID are in one connected part.  counts[1]: the switch and
 * the LID are in different parts.  counts[2]: the route ends in a forwarding loop (the pair is also in counts[0] or
 * counts[1]).  counts[3]: SLs in use, as bits.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);
