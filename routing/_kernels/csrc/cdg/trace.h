#ifndef IBNUE_CDG_H
#define IBNUE_CDG_H

#include <stdint.h>

/* A fabric and its tables: the input of the kernels that collect channel dependencies.
 *
 * The channels of switch s are numbered from 0 in the order of their out-ports.  Two pseudo-channels follow: number
 * outdegree(s) means "dropped", and number outdegree(s) + 1 means "returns to the same switch over a loop-back
 * cable". With them, each LFT entry leads to a channel, and routes are followed without branches.  All these numbers
 * together are the X = C + 2 S extended channels; those of switch s begin at xfirst[s].
 *
 * The dependency of extended channel x on channel number k of switch xdst[x] has index dep_first[x] + k in arrays
 * [slots].  Indices 0 to 255 receive the writes of pseudo-channels, which have no dependencies; they are ignored. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    int32_t sl_rows; /* rows of sl: one for each source switch (S) or source LID (L); 0: sl is [L] */
    int32_t spread;  /* 0: all requests and replies to one LID use the same VL */
    int32_t threads;
    const uint8_t *lft;         /* [S, L]: out-port of each switch towards each LID */
    const uint8_t *exit;        /* [S, 256]: number of the channel at each port */
    const int32_t *xfirst;      /* [S + 1]: first extended channel of each switch */
    const int32_t *xdst;        /* [X]: switch where each extended channel ends; S: dropped */
    const int32_t *dep_first;   /* [X]: index of the first dependency of each extended channel; 0 for pseudo-channels */
    const int32_t *lid_switch;  /* [L]: switch that delivers each LID, -1: none */
    const uint8_t *lid_port;    /* [L]: port by which the switch delivers it, 0: the switch itself */
    const int32_t *part;        /* [S]: number of the connected component that has the switch */
    const uint8_t *sl;          /* SLs of requests; for the shape see sl_rows */
    const uint16_t *vl_bit;     /* [16]: 1 << VL of each SL, 0 where the SL is dropped */
    const uint8_t *has_endport; /* [S]: whether a CA or router sends there; NULL: switches send too */
} cdg_tables;

/* Follow every route and collect the channel dependencies.
 *
 * If has_endport is given, traffic between switches is left out.  Then only the routes to the LIDs of switches (port
 * 0 in lid_port) are followed, from CAs and routers; hops may be NULL, and counts are meaningless.
 *
 * hops: uint8 [S, L], hops between switches, 255 where the packet is not delivered.
 * dep: uint32 [2, slots], zeroed by the caller; row 0: routes to CAs and routers, row 1: routes to switches.  Each
 * element holds VLs as bits.  Low half: VLs on which requests have the dependency; high half: on which requests or
 * replies have it.
 * counts: int64 [4]: pairs (switch, LID) of one connected component that are not delivered; undelivered pairs across
 * two components; pairs of either kind whose route ends in a forwarding loop; SLs in use, as bits. */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);

#endif
