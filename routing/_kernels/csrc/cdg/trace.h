#ifndef IBNUE_CDG_H
#define IBNUE_CDG_H

#include <stdint.h>

/* A fabric and its tables: the input of the kernels that collect channel dependencies.
 *
 * The channels out of switch s are numbered from 0, in the order of their out-ports.  Two pseudo-channels follow:
 * number outdegree(s) means "the packet is dropped", and number outdegree(s) + 1 means "the packet returns to this
 * switch over a loop-back cable".  With pseudo-channels each LFT entry leads to some channel, so that routes are
 * followed without branches.
 *
 * Channels and pseudo-channels together are the X = C + 2 S extended channels.  Those of switch s begin at index
 * xfirst[s].
 *
 * A dependency of extended channel x is on a channel out of switch xdst[x].  For that switch's channel number k it
 * has index dep_first[x] + k in arrays [slots].  Pseudo-channels have no dependencies; indices 0 to 255 receive what
 * is written for them, and are ignored. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    int32_t sl_rows; /* rows of sl: one for each source switch (S) or source LID (L); 0: sl is [L] */
    int32_t spread;  /* 0: all requests and replies to one LID use one VL; else: they may use several */
    int32_t threads;
    const uint8_t *lft;        /* [S, L]: out-port of each switch towards each LID */
    const uint8_t *exit;       /* [S, 256]: number of the extended channel at each port, counted within its switch */
    const int32_t *xfirst;     /* [S + 1]: first extended channel of each switch */
    const int32_t *xdst;       /* [X]: switch where each extended channel ends; S: the packet is dropped */
    const int32_t *dep_first;  /* [X]: index of the first dependency of each extended channel; 0 for pseudo-channels */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID, -1: none */
    const uint8_t *lid_port;   /* [L]: port by which each LID is delivered, 0: the switch itself */
    const int32_t *part;       /* [S]: number of the connected component that has the switch */
    const uint8_t *sl;         /* SLs of requests; for the shape see sl_rows */
    const uint16_t *vl_bit;    /* [16]: 1 << VL of each SL, 0 if packets with the SL are dropped */
    /* [S]: whether a CA or router is attached to the switch; NULL: switches are senders too */
    const uint8_t *has_endport;
} cdg_tables;

/* Follow every route and collect the channel dependencies.  If has_endport is given, traffic between switches is
 * left out.  In that case only routes from CAs and routers to the LIDs of switches (port 0 in lid_port) are
 * followed; hops may be NULL, and counts are meaningless.
 *
 * hops: uint8 [S, L], hops between switches, 255 where the packet is not delivered.
 * dep: uint32 [2, slots], must be zero on entry; row 0: dependencies on routes to CAs and routers, row 1: on routes
 * to switches.  Each element holds VLs as bits: in its low half those on which requests have the dependency, in its
 * high half those on which requests or replies have it.
 * counts: int64 [4]: pairs (switch, LID) of one connected component that are not delivered; undelivered pairs across
 * two components; pairs of either kind whose route ends in a forwarding loop; SLs in use, as bits. */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);

#endif
