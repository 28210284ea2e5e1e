#ifndef IBNUE_MIXED_H
#define IBNUE_MIXED_H

#include <stdint.h>

/* A fabric whose tables are being replaced.  Any switch may forward a packet by its old or by its new LFT entry.
 * Channels, extended channels and the numbers of dependencies (slots) are described in cdg/trace.h. */
typedef struct {
    int32_t switches; /* S: number of switches */
    int32_t columns;  /* K: number of LIDs whose entries are given */
    int32_t slots;
    int32_t threads;
    const uint8_t *before; /* [K, S]: old out-port of each switch towards each LID */
    const uint8_t *after;  /* [K, S]: new out-port of each switch towards each LID */
    const uint8_t *exit;   /* [S, 256]: number of the channel at each port, counted within its switch, see cdg_tables */
    const int32_t *xfirst; /* [S + 1]: first extended channel of each switch, see cdg_tables */
    const int32_t *xdst;   /* [X]: switch where each extended channel ends (cdg_tables in cdg/trace.h) */
    const int32_t *dep_first; /* [X]: index of the first dependency of each extended channel, see cdg_tables */
} transition_tables;

/* Further input if the VL of a packet may change from hop to hop. */
typedef struct {
    int32_t ports;               /* P: number of ports of a switch */
    int32_t vls;                 /* V: highest VL in the old or new tables + 1, at most 15 */
    int32_t entries;             /* N: number of ports at which packets enter */
    const uint8_t *sl2vl_before; /* [S, P, P, 16]: old VL by switch, in-port, out-port, SL */
    /* [S, P, P, 16]: new VL by switch, in-port, out-port, SL; may be the address of sl2vl_before */
    const uint8_t *sl2vl_after;
    const uint8_t *xport;        /* [X]: out-port of each extended channel */
    const uint8_t *xin;          /* [X]: in-port of each extended channel at the switch where it ends */
    const int32_t *entry_switch; /* [N]: switch at which each port's packets enter */
    const uint8_t *entry_port;   /* [N]: in-port at which each port's packets enter */
} transition_vls;

/* Collect the dependencies that can arise while some switches have old and others new entries, if packets keep their
 * VL along a path.
 *
 * enter: uint32 [K, S], VLs, as bits, of the packets that enter at each switch towards each LID; all 32 bits may be
 * used.
 * dep: uint32 [slots], changed in place: the VLs of the packets that may have each dependency are added, as bits.
 * loops: uint8 [K], 1 if old and new entries for a LID, mixed, can form a forwarding loop. */
int ibn_transition_trace(const transition_tables *tables, const uint32_t *enter, uint32_t *dep, uint8_t *loops);

/* Collect the dependencies that can arise while some switches have old and others new entries, if packets may change
 * their VL from hop to hop.
 *
 * enter: uint16 [K, N], SLs, as bits, of the packets that enter at each port towards each LID.
 * dep: uint16 [slots, V], changed in place: for each dependency and each VL on its first channel, the VLs on its
 * second channel are added, as bits.
 * loops: see ibn_transition_trace. */
int ibn_transition_trace_vls(const transition_tables *tables, const transition_vls *vls, const uint16_t *enter,
                             uint16_t *dep, uint8_t *loops);

/* Input for LFT columns that are to be admitted one by one: the channels, and an acyclic CDG with its topological
 * orders.  Packets must keep their VL along a path. */
typedef struct {
    int32_t channels; /* C: number of channels */
    int32_t vls;      /* V, at most 32: number of VLs; bits V and above of `enter` and `dep` are unused */
    /* the channels of the fabric, as in acyclic_net (core/internal/acyclic.h) */
    const int32_t *first, *src, *dst, *into, *into_first;
    const int32_t *order; /* [V, C]: a topological order of the dependencies in `dep` for each VL */
    const uint32_t *dep;  /* [slots]: VLs of the existing dependencies, as bits; acyclic on every VL */
} transition_net;

/* Decide which LFT columns can change without a credit loop.  Columns are decided one after the other.  A column is
 * admitted if its old and new entries, in any mixture, keep the CDG of every VL acyclic.  This CDG includes the
 * existing dependencies and those of the columns admitted before.
 *
 * enter: see ibn_transition_trace.
 * round: uint8 [K, S], the round in which each changed entry is written, from 1 on, 0 for the other entries; or NULL
 * if entries are written in any order.
 * admitted: uint8 [K], output: 1 for admitted columns. */
int ibn_transition_admit(const transition_tables *tables, const transition_net *net, const uint32_t *enter,
                         const uint8_t *round, uint8_t *admitted);

/* Compute rounds of writing in which old and new entries, mixed, never form a forwarding loop.  The core of a column
 * consists of the switches on loops of old and new entries, and of the switches on paths between such loops.  A changed
 * switch in the core is written in a later round than all changed switches of the core on its new path.  Any other
 * changed switch is written no earlier than the changed switches on its new path.
 *
 * outward: nonzero to write every changed switch in a later round than all changed switches on its new path.
 * round: uint8 [K, S], output, see ibn_transition_admit.
 * most: uint8 [K], output: the last round of each column. */
int ibn_transition_rounds(const transition_tables *tables, int32_t outward, uint8_t *round, uint8_t *most);

#endif
