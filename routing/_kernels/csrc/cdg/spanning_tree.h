#pragma once

#include <stdint.h>

/* A fabric, and the acyclic channel dependency graph of its unicast packets on one VL.  Channel c ends at switch
 * dst[c].  The dependency of channel c on the k-th channel out of this switch has index slot[c] + k in `used`. */
typedef struct {
    int32_t switches;
    int32_t channels;
    const int32_t *first;      /* [S + 1]: first channel out of each switch */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const int32_t *reverse;    /* [C]: channel of the same link in the opposite direction */
    const int32_t *into;       /* [C]: channels sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *slot;       /* [C]: index, in `used`, of each channel's first dependency */
    const uint8_t *used;       /* [slots]: 1 if unicast packets have the dependency, else 0 */
    /* [C]: position of each channel in a topological order of the dependencies of unicast packets */
    const int32_t *order;
} cdg_unicast;

/* Compute a tree of links from switch `root` for multicast packets.  The dependencies of these packets close no cycle
 * with the dependencies of unicast packets.  Any member of a multicast group may send.  So a packet may enter a switch
 * by any link of the tree, and leave the switch by any other link of the tree.
 *
 * up: int32 [S], output: channel from each switch to its parent in the tree; -1 for the root and for switches that were
 * not reached.
 * reached: int32 [1], output: number of switches in the tree.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_grow_tree(const cdg_unicast *unicast, int32_t root, int32_t *up, int32_t *reached);
