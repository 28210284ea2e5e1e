#ifndef IBNUE_ASSIGN_VLS_H
#define IBNUE_ASSIGN_VLS_H

#include <stdint.h>

/*
 * A fabric with its tables, and groups of paths that need a VL.  A dependency of channel c is on a channel out of
 * switch dst[c]; for the k-th of these channels it has index slot[c] + k in arrays [slots].
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;               /* V, number of VLs */
    const int32_t *first;      /* [S + 1]: the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;        /* [C]: switch that sends */
    const int32_t *dst;        /* [C]: switch that receives */
    const int32_t *into;       /* [C]: channels sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *at_port;    /* [S, 256]: channel out of each port, -1: none */
    const int32_t *slot;       /* [C]: index of the first CDG edge of each channel */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID */
    const uint8_t *lft;        /* [S, L]: out-port of each switch towards each LID */
    const uint8_t *open;       /* [V]: whether paths may be assigned to each VL */
    int32_t groups;            /* G, number of groups of paths */
    const int32_t *path_first; /* [G + 1]: first path of each group; all paths of a group use one VL */
    const int32_t *path_from;  /* [paths]: first switch of each path */
    const int32_t *path_to;    /* [paths]: destination LID of each path */
    const uint8_t *start;      /* [G]: VL that is tried first for each group */
} vl_requests;

/* Assign a VL to the groups of paths, one group after the other.  The VLs are tried in turn, beginning with the group's
 * start VL. The group gets the first VL whose CDG stays acyclic with the group's paths.
 *
 * dependencies: uint16 [slots], VLs on which each dependency is in use, as bits; the dependencies of the assigned
 * groups are added.
 * order: int32 [V, C], a topological order of these dependencies; updated.
 * budget: number of channels that cycle searches may visit; receives the number that is left.  Once the budget is
 * spent, no further group is assigned.
 * vl: uint8 [G], VL of each group.  It is 255 if the group fits on no VL, or if one of its paths does not reach its
 * destination. */
int ibn_layering_assign_vls(const vl_requests *paths, uint16_t *dependencies, int32_t *order, int64_t *budget,
                            uint8_t *vl);

#endif
