#ifndef IBNUE_CDG_H
#define IBNUE_CDG_H

#include <stdint.h>

/*
 * A fabric and its tables, as input of the dependency kernels.
 *
 * The channels of switch s are numbered from 0 in the order of their out-ports.  Two pseudo-channels follow: number
 * outdegree(s) is "dropped", and number outdegree(s) + 1 is "returns to the same switch over a loop-back cable".
 * Concatenated they are the X = C + 2 S extended channels; those of s begin at xfirst[s].  xdst is the switch that each
 * leads to, S where the packet is dropped.
 *
 * The dependency of x on channel number k of switch xdst[x] has slot dep_first[x] + k.  Slots 0 to 255 absorb the
 * writes of pseudo-channels, which have no dependencies.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    int32_t sl_rows; /* number of rows of sl, by source switch (S) or source LID (L); 0: sl is [L] */
    int32_t spread;  /* 0: all requests and replies towards one LID use the same VL */
    int32_t threads;
    const uint8_t *lft;         /* [S, L] */
    const uint8_t *exit;        /* [S, 256]: number of the channel out of each port */
    const int32_t *xfirst;      /* [S + 1] */
    const int32_t *xdst;        /* [X]: switch that each extended channel leads to; S: dropped */
    const int32_t *dep_first;   /* [X]: first slot of each extended channel; 0 for pseudo-channels */
    const int32_t *lid_switch;  /* [L]: switch that delivers each LID, -1: none */
    const uint8_t *lid_port;    /* [L]: port by which the switch delivers it, 0: the switch itself */
    const int32_t *part;        /* [S]: number of the connected component */
    const uint8_t *sl;          /* SL of a request; for its shape see sl_rows */
    const uint16_t *vl_bit;     /* [16]: 1 << VL of each SL, 0 where the SL is dropped */
    const uint8_t *has_endport; /* [S]: whether a CA or router there sends; NULL: count switch-to-switch traffic too */
} cdg_tables;

/*
 * Follow every route and collect the channel dependencies.
 *
 * If has_endport is given, only the routes to the LIDs of switches (port 0 in lid_port) are followed, and the packets
 * of switches to these LIDs, requests and replies, add no dependencies; hops may be NULL then, and counts are
 * meaningless.
 *
 * hops: uint8 [S, L], switch-to-switch hops, 255 where the packet is not delivered.
 * dep: uint32 [2, slots], zeroed by the caller; row 0: routes to CAs and routers, row 1: routes to switches.  Low half:
 * VLs on which requests have the dependency; high half: VLs on which requests or replies have it.
 * counts: int64 [4]: pairs (switch, LID) of one connected component that are not delivered; undelivered pairs across
 * two components; pairs of either kind whose route ends in a forwarding loop; mask of the SLs in use.
 */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);

#endif
