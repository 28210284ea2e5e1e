#pragma once

#include <stdint.h>

/* Input of a check of changed tables: the new tables, the previous tables, and the topological orders to be checked.
 * Channel c ends at switch dst[c].  The dependency of channel c on the k-th channel out of this switch has index
 * slot[c] + k in arrays [slots]. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;           /* V: number of VLs */
    int32_t sl_by_switch;  /* shape of sl and sl_was; 1: [S, L], by source switch and LID; 0: [L], by LID */
    int32_t replies;       /* whether replies are checked too */
    int32_t endports_only; /* whether switch-to-switch traffic is left out */
    /* whether the caller knows already that the dependencies of the previous tables follow the topological orders */
    int32_t known_increasing;
    const int32_t *first;         /* [S + 1]: first channel out of each switch */
    const int32_t *src;           /* [C]: switch where each channel begins */
    const int32_t *dst;           /* [C]: switch where each channel ends */
    const uint8_t *port;          /* [C]: out-port of each channel */
    const int32_t *into;          /* [C]: channels sorted by the switch that they enter */
    const int32_t *into_first;    /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *at_port;       /* [S, 256]: channel that leaves by each port, -1: none */
    const int32_t *slot;          /* [C]: index, in arrays [slots], of each channel's first dependency */
    const int32_t *lid_switch;    /* [L]: switch that delivers each LID, -1: none */
    /* [L]: out-port by which the switch delivers each LID, 0: the LID is the switch's own */
    const uint8_t *lid_port;
    const int32_t *lids_at_first; /* [S + 1]: index of each switch's first LID in lids_at */
    const int32_t *lids_at;       /* all LIDs, sorted by the switch that delivers them */
    const uint8_t *has_endport;   /* [S]: whether a CA or router is attached to the switch */
    /* [16]: VL of each SL, as bits (1 << VL); 0: packets with this SL are dropped */
    const uint16_t *vl_bit;
    const uint8_t *lft; /* [S, L]: new out-port of each switch towards each LID */
    /* [S, L]: previous out-port of each switch towards each LID; 255: the previous entry became invalid */
    const uint8_t *was;
    /* The array `lft` is divided into pages of `page` entries each.  pages[i] is 0 if no entry of page i has changed or
     * is missing.  Entries of such pages are not compared.  If the pointer is NULL, all entries and SLs are compared.
     * If an SL has changed, the pointer must be NULL */
    const uint8_t *pages;
    int64_t page;
    const uint8_t *sl;     /* new SLs, [S, L] or [L]: see sl_by_switch */
    const uint8_t *sl_was; /* previous SLs, in the shape of the array `sl` */
    const int32_t *order;  /* [V, C]: position of each channel in the topological order of each VL */
} delta_tables;

/* Check the changed packets: packets whose route or SL has changed.  Each changed packet must arrive, and must use
 * channels in topological order.  Unless known_increasing is set, also check that the dependencies of all other packets
 * follow the order.
 *
 * dependencies: uint16 [slots], changed in place: VLs, as bits, on which packets may have each dependency.  On entry,
 * the array has the dependencies of the previous tables.  The dependencies of changed packets are added.
 * hops: uint8 [S, L], changed in place: hops from each switch to the switch that delivers each LID.  On entry, the
 * array has the hops by the previous tables.  Changed packets get new hops, or 255 if the packet fails the check.
 * counts: int64 [3], output.  counts[0]: number of changed packets (pairs of switch and LID).  counts[1]: changed
 * packets that fail the check.  counts[2]: dependencies of other packets that violate the order; 0 if known_increasing
 * is set.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_check_delta(const delta_tables *tables, uint16_t *dependencies, uint8_t *hops, int64_t *counts);

/* Return the number of dependencies that violate the topological orders.  A dependency is counted once for each VL on
 * which it violates the order.
 *
 * dependencies: uint16 [slots], VLs, as bits, on which each dependency may occur.
 * order: int32 [vls, C], position of each channel in the topological order of each VL. */
int64_t ibn_cdg_dependencies_against(int32_t channels, int32_t vls, const int32_t *first, const int32_t *dst,
                                     const int32_t *slot, const uint16_t *dependencies, const int32_t *order);
