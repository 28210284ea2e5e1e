#ifndef IBNUE_ASSIGN_VLS_H
#define IBNUE_ASSIGN_VLS_H

#include <stdint.h>

/*
 * Paths that need a VL.  The dependency of channel c on the k-th channel of switch dst[c] has slot slot[c] + k.
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
    const int32_t *into_first; /* [S + 1]: where the channels into each switch begin in into */
    const int32_t *at_port;    /* [S, 256]: channel out of each port, -1: none */
    const int32_t *slot;       /* [C]: index of the first CDG edge of each channel */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID */
    const uint8_t *lft;        /* [S, L]: out-ports */
    const uint8_t *open;       /* [V]: whether a VL may be assigned */
    int32_t groups;            /* G, number of groups of paths */
    const int32_t *path_first; /* [G + 1]: first path of each group; all paths of a group use one VL */
    const int32_t *path_from;  /* [paths]: first switch of each path */
    const int32_t *path_to;    /* [paths]: destination LID of each path */
    const uint8_t *start;      /* [G]: VL that each group tries first */
} vl_requests;

/*
 * Assign a VL to one group after the other.  It is the first VL, counted from the start VL of the group, whose CDG
 * stays acyclic with the paths of the group.
 *
 * dependencies: uint16 [slots], mask of the VLs on which each dependency is in use; those of the placed groups
 * are added.
 * order: int32 [V, C], a topological order of these dependencies; updated.
 * budget: channels that cycle searches may visit; receives the remaining number.  No group is placed once it is spent.
 * vl: uint8 [G], VL of each group, 255 if no VL takes the group or one of its paths does not reach its destination.
 */
int ibn_layering_assign_vls(const vl_requests *paths, uint16_t *dependencies, int32_t *order, int64_t *budget,
                            uint8_t *vl);

#endif
