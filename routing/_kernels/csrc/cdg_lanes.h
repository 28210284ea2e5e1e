#ifndef IBNUE_CDG_LANES_H
#define IBNUE_CDG_LANES_H

#include "cdg.h"

#include <stdint.h>

/* What must be known besides where the VL hangs on the ports of a switch. */
typedef struct {
    int32_t ports;              /* P */
    int32_t vls;                /* V, highest VL in the tables + 1, at most 15 */
    int32_t senders;            /* N */
    int32_t repliers;           /* R, 0: replies do not count */
    const uint8_t *sl2vl;       /* [S, P, P, 16] by switch, in-port, out-port, SL; 15 and over: dropped */
    const uint8_t *xport;       /* [X], out-port */
    const uint8_t *xin;         /* [X], in-port of the next switch */
    const int32_t *sender_switch;   /* [N]: all ports at which traffic enters; port 0 is the switch itself */
    const uint8_t *sender_port;     /* [N] */
    const int32_t *sender_lid;      /* [N]: where SLs hang on the sender's LID: one entry for each of its LIDs */
    const int32_t *replier;         /* [R], LIDs that send replies */
} cdg_lanes;

/*
 * As ibn_cdg_trace, where the VL may change on the way.  A sender or replier that stands for several of its switch
 * has to be a CA or router, if any of them is.
 *
 * dep: uint16 [2, slots, V], zeroed by the caller: on the way to CAs and routers, and on the way to switches: for each
 * turn and each VL before it, the VLs after it.
 * counts: int64 [5]: the first three of ibn_cdg_trace; mask of the VLs in use; pairs (switch, LID) that are delivered
 * by their route, but that some sender at the switch sends on an SL that is dropped on the way.
 */
int ibn_cdg_trace_lanes(const cdg_tables *tables, const cdg_lanes *lanes, uint8_t *hops, uint16_t *dep,
                        int64_t *counts);

#endif
