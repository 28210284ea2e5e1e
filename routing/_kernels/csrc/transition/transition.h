#pragma once

#include <stdint.h>

/* A fabric whose tables are being replaced.  At any time, each switch may forward a packet by its old or by its new LFT
 * entry.  Channels, the X extended channels and slots are explained in cdg/trace.h. */
typedef struct {
    int32_t switches; /* S: number of switches */
    int32_t columns;  /* K: number of LIDs whose old and new entries are given */
    int32_t slots;
    int32_t threads;
    const uint8_t *before; /* [K, S]: old out-port of each switch towards each LID */
    const uint8_t *after;  /* [K, S]: new out-port of each switch towards each LID */
    /* [S, 256]: by port, the number of the port's extended channel at the switch: see cdg/trace.h */
    const uint8_t *exit;
    const int32_t *xfirst; /* [S + 1]: first extended channel of each switch (see cdg/trace.h) */
    const int32_t *xdst;   /* [X]: switch where each extended channel ends */
    const int32_t *dep_first; /* [X]: index, in arrays [slots], of each extended channel's first dependency */
} transition_tables;

/* Further input for packets whose VL may change from hop to hop. */
typedef struct {
    int32_t ports;               /* P: number of ports of a switch */
    int32_t vls;                 /* V: 1 + the highest VL in the old and new tables, at most 15 */
    int32_t entries;             /* N: number of ports at which packets enter the fabric (not LFT entries) */
    const uint8_t *sl2vl_before; /* [S, P, P, 16]: VL by the old tables, by switch, in-port, out-port and SL */
    /* [S, P, P, 16]: VL by the new tables, by switch, in-port, out-port and SL; may be the array sl2vl_before */
    const uint8_t *sl2vl_after;
    const uint8_t *xport;        /* [X]: out-port of each extended channel */
    const uint8_t *xin;          /* [X]: in-port of each extended channel at the switch where it ends */
    const int32_t *entry_switch; /* [N]: switch at which the packets from each port enter */
    const uint8_t *entry_port;   /* [N]: in-port by which the packets from each port enter */
} transition_vls;

/* Collect the dependencies that packets can have while some switches use old and other switches use new entries.  The
 * packets keep their VL along a path.  Entries towards K LIDs are given.
 *
 * enter: uint32 [K, S], VLs, as bits, of the packets to each LID that enter at each switch.  The function handles each
 * of the 32 bits separately.  So bits 16 to 31 can stand for the VLs of other traffic, such as replies.
 * dep: uint32 [slots], changed in place: the VLs, as bits, of the packets that can have each dependency are added.
 * loops: uint8 [K], output: 1 if old and new entries for a LID can together form a forwarding loop, else 0.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_transition_trace(const transition_tables *tables, const uint32_t *enter, uint32_t *dep, uint8_t *loops);

/* Collect the dependencies that packets can have while some switches use old and other switches use new entries.  The
 * VL of a packet may change from hop to hop.  Entries towards K LIDs are given, and packets enter at N ports.
 *
 * enter: uint16 [K, N], SLs, as bits, of the packets to each LID that enter at each port.
 * dep: uint16 [slots, V], changed in place.  For each dependency and each VL on its first channel, the VLs on its
 * second channel are added, as bits.
 * loops: uint8 [K], output: 1 if old and new entries for a LID can together form a forwarding loop, else 0.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_transition_trace_vls(const transition_tables *tables, const transition_vls *vls, const uint16_t *enter,
                             uint16_t *dep, uint8_t *loops);

/* Input of ibn_transition_admit: the channels, and for each VL an acyclic CDG with a topological order.  The function
 * adds LFT columns to these CDGs one by one.  A column that would close a cycle is left out.  Packets must keep their
 * VL along a path. */
typedef struct {
    int32_t channels; /* C: number of channels */
    int32_t vls;      /* V: number of VLs, at most 32; the arrays `enter` and `dep` use only bits 0 to V - 1 */
    /* the channels of the fabric: the struct acyclic_net (core/internal/acyclic.h) explains these arrays */
    const int32_t *first, *src, *dst, *into, *into_first;
    /* [V, C]: for each VL, the position of each channel in a topological order of the dependencies that `dep` has on
     * this VL */
    const int32_t *order;
    /* [slots]: VLs, as bits, of the dependencies that exist already; they close no cycle on any VL */
    const uint32_t *dep;
} transition_net;

/* Decide which LFT columns can change without a credit loop.  Columns are decided one after the other.  A column is
 * admitted if the CDG of every VL stays acyclic with all dependencies that packets can have while the column is
 * written.  The CDG also has the dependencies that exist already, and the dependencies of columns admitted earlier.
 *
 * enter: uint32 [K, S], VLs, as bits, of the packets to each of K LIDs that enter at each switch.
 * round: uint8 [K, S], number (1 or more) of the round in which each changed entry is written, 0 for unchanged entries.
 * NULL: entries are written in any order.
 * admitted: uint8 [K], output: 1 for admitted columns, else 0.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_transition_admit(const transition_tables *tables, const transition_net *net, const uint32_t *enter,
                         const uint8_t *round, uint8_t *admitted);

/* Compute the rounds in which K LFT columns are written, such that old and new entries never form a forwarding loop.
 *
 * The core of a column has two kinds of switches: switches on forwarding loops of old and new entries, and switches on
 * paths from one such loop to another.  A changed switch is a switch whose old and new entry differ.
 *
 * The new path from a changed switch v may lead through another changed switch w.  Then v is never written in an
 * earlier round than w.  If both switches are in the core, v is written in a later round than w.
 *
 * outward: if nonzero, v is written in a later round than w even if the switches are outside the core.
 * round: uint8 [K, S], output: number (1 or more) of the round in which each changed entry is written, 0 for unchanged
 * entries.
 * most: uint8 [K], output: number of the last round of each column.  The value is 255 if the column needs 255 or more
 * rounds, or if the new entries alone have a forwarding loop.  In this case, the rules above may be broken.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_transition_rounds(const transition_tables *tables, int32_t outward, uint8_t *round, uint8_t *most);
