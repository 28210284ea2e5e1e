#ifndef IBNUE_FIT_WAYS_H
#define IBNUE_FIT_WAYS_H

#include <stdint.h>

/*
 * Ways that look for a VL.  The turn from channel c into the k-th channel of the switch behind it has slot slot[c] + k.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;               /* V */
    const int32_t *first;      /* [S + 1] */
    const int32_t *src;        /* [C] */
    const int32_t *dst;        /* [C] */
    const int32_t *into;       /* [C] */
    const int32_t *into_first; /* [S + 1] */
    const int32_t *at_port;    /* [S, 256] */
    const int32_t *slot;       /* [C] */
    const int32_t *lid_switch; /* [L] */
    const uint8_t *lft;        /* [S, L] */
    const uint8_t *open;       /* [V], whether a VL may be given */
    int32_t groups;            /* G */
    const int32_t *way_first;  /* [G + 1], the ways of each group: they ride one VL */
    const int32_t *way_from;   /* switch at which each way begins */
    const int32_t *way_to;     /* LID to which it leads */
    const uint8_t *start;      /* [G], the VL that is tried first */
} ways_to_fit;

/*
 * Give each group, in turn, the first VL from its start on that closes no cycle with what is on it.
 *
 * waits: uint16 [slots], VLs on which each turn is taken; what is placed goes in.
 * order: int32 [V, C], a topological order of that; kept one.
 * budget: channels that searches for cycles may come by; what is left of it then.  Once it is used up no more is placed.
 * lane: uint8 [G], 255 where no VL takes the group, or one of its ways does not arrive.
 */
int ibn_fit_ways(const ways_to_fit *ways, uint16_t *waits, int32_t *order, int64_t *budget, uint8_t *lane);

#endif
