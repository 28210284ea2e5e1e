#ifndef IBNUE_CDG_H
#define IBNUE_CDG_H

#include <stdint.h>

/* A fabric and its tables: the input of the kernels that collect channel dependencies.
 *
 * The channels out of switch s are numbered from 0, in the order of their out-ports.  Two placeholders have the next
 * numbers.  Number outdegree(s) means that the packet is dropped.  Number outdegree(s) + 1 means that the packet
 * returns to this switch over a loop-back cable.  So each LFT entry leads to some channel, and routes are followed
 * without branches.
 *
 * Channels and placeholders together are the X = C + 2 S extended channels.  The extended channels of switch s begin
 * at index xfirst[s].
 *
 * A dependency of extended channel x is on a channel out of switch xdst[x].  The dependency on this switch's channel
 * number k has index dep_first[x] + k in arrays [slots].  Placeholders have no dependencies.  Values that are written
 * for placeholders go to the indices 0 to 255, which are ignored. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    /* rows of `sl`; S: one row for each source switch, L: one row for each source LID, 0: the shape of `sl` is [L] */
    int32_t sl_rows;
    int32_t spread; /* 0: all requests and replies to one LID use one VL; nonzero: they may use several VLs */
    int32_t threads;
    const uint8_t *lft;    /* [S, L]: out-port of each switch towards each LID */
    const uint8_t *exit;   /* [S, 256]: for each port, the index of its extended channel at the switch */
    const int32_t *xfirst; /* [S + 1]: first extended channel of each switch */
    const int32_t *xdst;   /* [X]: switch where each extended channel ends; S: the packet is dropped */
    const int32_t *dep_first;  /* [X]: index of the first dependency of each extended channel; 0 for placeholders */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID; -1: no switch does */
    const uint8_t *lid_port;   /* [L]: port by which its switch delivers each LID; 0: the LID is the switch's own */
    const int32_t *part;       /* [S]: number of the connected part to which each switch belongs */
    const uint8_t *sl;         /* SLs of requests, in the shape that sl_rows gives */
    /* [16]: for each SL a set with one bit: the VL of the SL; 0: packets with this SL are dropped */
    const uint16_t *vl_bit;
    /* [S]: whether a CA or router is attached to the switch; NULL: switches count as senders too */
    const uint8_t *has_endport;
} cdg_tables;

/* Follow every route and collect the channel dependencies.  If has_endport is given, traffic between switches is left
 * out.  In that case, only routes from CAs and routers to the LIDs of switches (port 0 in lid_port) are followed.
 * `hops` may be NULL in that case, and `counts` are meaningless.
 *
 * hops: uint8 [S, L], output: hops from each switch to the switch that delivers each LID, 255 where the packet is not
 * delivered.
 * dep: uint32 [2, slots], must be zero on entry, output.  Row 0 is for routes to CAs and routers, row 1 for routes to
 * switches.  The low half of an element has the VLs, as bits, on which requests have the dependency.  The high half has
 * the VLs on which requests or replies have the dependency.
 * counts: int64 [4], output: undelivered pairs (switch, LID) of one connected part; undelivered pairs across two
 * connected parts; pairs of either kind whose route ends in a forwarding loop; SLs in use, as bits.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);

#endif
