#pragma once

#include "cdg/trace.h"

#include <stdint.h>

/* Further input for the collection of dependencies if the VL of a packet depends on in-port, out-port and SL at each
 * switch. */
typedef struct {
    int32_t ports;                /* P: number of ports of a switch */
    int32_t vls;                  /* V: 1 + the highest VL in the tables, at most 15 */
    int32_t senders;              /* N: number of senders of requests (see ibn_cdg_trace_vls) */
    int32_t repliers;             /* R: number of senders of replies; 0: replies are left out */
    const uint8_t *sl2vl;         /* [S, P, P, 16]: VL by switch, in-port, out-port, SL; 15 and more: dropped */
    const uint8_t *xport;         /* [X]: out-port of each extended channel */
    const uint8_t *xin;           /* [X]: in-port of each extended channel at the switch where the channel ends */
    const int32_t *sender_switch; /* [N]: switch at which the packets of each sender enter the fabric */
    /* [N]: port by which the packets of each sender enter their first switch; 0: the switch sends the packets itself */
    const uint8_t *sender_port;
    /* [N]: LID of each sender; used only if SLs depend on the source LID.  In this case, each LID is a sender of its
     * own. */
    const int32_t *sender_lid;
    /* [R]: LID of each sender of replies */
    const int32_t *replier;
} cdg_vl_assignment;

/* Follow every route and collect the channel dependencies, as ibn_cdg_trace does, for packets whose VL may change from
 * hop to hop.  One sender may stand for several ports of a switch, if the packets of all these ports have equal SLs and
 * equal VLs.  If one of these ports belongs to a CA or router, the sender's port must also belong to a CA or router.
 *
 * dep: uint16 [2, slots, V], must be zero on entry, output.  Row 0 is for routes to CAs and routers, row 1 for routes
 * to switches.  An element is for one dependency and one VL on the first channel of the dependency.  The bits of the
 * element are the VLs on the second channel.
 * hops: as for ibn_cdg_trace.
 * counts: int64 [5], output.  counts[0] to counts[2]: undelivered pairs (switch, LID), as for ibn_cdg_trace.
 * counts[3]: VLs in use, as bits.  counts[4]: pairs (switch, LID) with a complete route on which packets of some sender
 * at the switch are dropped because of their SL.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_trace_vls(const cdg_tables *tables, const cdg_vl_assignment *per_vl, uint8_t *hops, uint16_t *dep,
                      int64_t *counts);
