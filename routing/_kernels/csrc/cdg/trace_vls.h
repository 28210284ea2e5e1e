#ifndef IBNUE_CDG_TRACE_VLS_H
#define IBNUE_CDG_TRACE_VLS_H

#include "cdg/trace.h"

#include <stdint.h>

/* Further input of the dependency kernel if the VL depends on the in-port and out-port of a switch as well as on the
 * SL. */
typedef struct {
    int32_t ports;        /* P: number of ports of a switch */
    int32_t vls;          /* V: highest VL in the tables + 1, at most 15 */
    int32_t senders;      /* N: number of senders of requests */
    int32_t repliers;     /* R: number of senders of replies; 0: replies are left out */
    const uint8_t *sl2vl; /* [S, P, P, 16]: VL by switch, in-port, out-port, SL; 15 and more: dropped */
    const uint8_t *xport; /* [X]: out-port of each extended channel */
    const uint8_t *xin; /* [S, P, P, 16]: VL by switch, in-port, out-port and SL; 15 and more: the packet is dropped */
    const int32_t *sender_switch; /* [N]: switches at which packets enter */
    const uint8_t *sender_port;   /* [X]: in-port of each extended channel at the switch where it ends */
    /* [N]: LIDs of the senders; used if SLs depend on the sender's LID, with one sender for each LID */
    const int32_t *sender_lid;
    /* [N]: LIDs of the senders; used if SLs depend on the sender's LID, where each LID has one sender */
    const int32_t *replier;
} cdg_vl_assignment;

/* Follow every route and collect the channel dependencies, like ibn_cdg_trace, if the VL of a packet may change from
 * hop to hop.  One sender may stand for several ports of its switch whose packets use equal SLs.  It must be a CA or
 * router if any of these ports is one.
 *
 * dep: uint16 [2, slots, V], must be zero on entry; row 0: routes to CAs and routers, row 1: routes to switches.
 * For each dependency and each VL on its first channel, dep holds the VLs on its second channel, as bits.
 * counts: int64 [5]: the first three of ibn_cdg_trace; VLs in use, as bits; pairs (switch, LID) with a complete
 * route on which packets of some sender at the switch are dropped because of their SL. */
int ibn_cdg_trace_vls(const cdg_tables *tables, const cdg_vl_assignment *per_vl, uint8_t *hops, uint16_t *dep,
                      int64_t *counts);

#endif
