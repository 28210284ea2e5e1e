#pragma once

#include <stdint.h>

/* A fabric with its tables, and groups of paths that need a VL.  A dependency leads from a channel c to a channel out
 * of switch dst[c].  The dependency on channel number k (from 0 on) out of this switch has index slot[c] + k in an
 * array with the shape [slots]. */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;               /* V, number of VLs */
    const int32_t *first;      /* [S + 1]: the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const int32_t *into;       /* [C]: channels sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *at_port;    /* [S, 256]: channel that leaves by each port, -1: none */
    const int32_t *slot;       /* [C]: index, in arrays [slots], of each channel's first dependency */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID */
    const uint8_t *lft;        /* [S, L]: out-port of each switch towards each LID */
    const uint8_t *open;       /* [V]: 1 if paths may be assigned to the VL, else 0 */
    int32_t groups;            /* G, number of groups of paths */
    const int32_t *path_first; /* [G + 1]: index of the first path of each group; all paths of a group get one VL */
    const int32_t *path_from;  /* [paths]: switch where each path begins */
    const int32_t *path_to;    /* [paths]: destination LID of each path */
    const uint8_t *start;      /* [G]: VL that is tried first for each group */
    int32_t most_failed;       /* the assignment ends as soon as more than this number of groups have got no VL */
} vl_requests;

/* Assign a VL to each group of paths, one group after the other.  For each group, the VLs are tried in cyclic order
 * from the group's start VL on.  The group gets the first VL whose CDG stays acyclic with the dependencies of the
 * group's paths.
 *
 * dependencies: uint16 [slots], VLs, as bits, on which each dependency is in use; the dependencies of the assigned
 * groups are added.
 * order: int32 [V, C], position of each channel in a topological order of these dependencies on each VL; updated.
 * budget: number of channels that cycle searches may visit; receives the number that is left.  When none is left, no
 * further group is assigned.
 * vl: uint8 [G], output: VL of each group.  The VL is 255 if the group fits on no VL, or if one of its paths does not
 * reach its destination.  The VL is also 255 if more than `most_failed` groups before the group got no VL.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_layering_assign_vls(const vl_requests *paths, uint16_t *dependencies, int32_t *order, int64_t *budget,
                            uint8_t *vl);
