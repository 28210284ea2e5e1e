#ifndef IBNUE_CDG_H
#define IBNUE_CDG_H

#include <stdint.h>

/*
 * A fabric and its tables, as the dependency kernels see them.
 *
 * Every switch s has its channels, numbered from 0 in the order of their out-ports, and behind them two that are none:
 * number outdegree(s) is "dropped" and number outdegree(s) + 1 "comes back to the same switch by a loop-back cable".
 * Laid end to end they are the X = C + 2 S extended channels, those of s beginning at xfirst[s].  xdst is the switch
 * behind each: S where the packet is dropped.
 *
 * A dependency of x on number k of the switch behind x has slot dep_first[x] + k.  Slots 0 to 255 are for what is no
 * dependency at all.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t slots;
    int32_t sl_rows;            /* 0: sl is [L]; S: [S, L]; L: [L, L] */
    int32_t spread;             /* 0: sources never differ in VL towards one LID, nor do their replies */
    int32_t threads;
    const uint8_t *lft;         /* [S, L] */
    const uint8_t *exit;        /* [S, 256], number of the channel behind each port */
    const int32_t *xfirst;      /* [S + 1] */
    const int32_t *xdst;        /* [X] */
    const int32_t *dep_first;   /* [X] */
    const int32_t *lid_switch;  /* [L], -1: nowhere */
    const uint8_t *lid_port;    /* [L] */
    const int32_t *part;        /* [S], connected part */
    const uint8_t *sl;
    const uint16_t *vl_bit;     /* [16], 1 << VL of each SL; 0 where the SL is dropped */
    const uint8_t *has_endport; /* [S], whether a CA or router sends there; NULL: switches send to switches too */
} cdg_tables;

/*
 * Follow every route and collect what waits for what.
 *
 * Where has_endport is given, only the routes to the LIDs of switches (port 0 in lid_port) are followed, and what a
 * switch sends there, request or reply, makes nothing wait; hops may be NULL then, and counts mean nothing.
 *
 * hops: uint8 [S, L], switch-to-switch hops, 255 where nothing is delivered.
 * dep: uint32 [2, slots], zeroed by the caller: on the way to CAs and routers, and on the way to switches; low half: VLs
 * on which requests take the turn, high half: VLs on which requests or replies do.
 * counts: int64 [4]: pairs (switch, LID) that are not delivered though they are in one connected part; those in two
 * parts; pairs, of either sort, whose route runs in a circle; mask of the SLs in use.
 */
int ibn_cdg_trace(const cdg_tables *tables, uint8_t *hops, uint32_t *dep, int64_t *counts);

#endif
