#ifndef IBNUE_CDG_ORDER_H
#define IBNUE_CDG_ORDER_H

#include <stdint.h>

/*
 * Dependencies between channels as ibn_cdg_trace returns them, without the pseudo-channels.  Channel c can depend on
 * the channels first[d] .. first[d + 1] - 1 of switch d = dst[c]; their slots begin at slot[c].
 */
typedef struct {
    int32_t channels;
    int32_t threads;
    const int32_t *first; /* [S + 1], channels out of each switch */
    const int32_t *dst;   /* [C]: switch that each channel leads to */
    const int32_t *slot;  /* [C]: first slot of each channel */
    const uint32_t *dep;  /* [slots]: mask of the bits (VLs) that have each dependency */
} cdg_dependencies;

/*
 * Compute a topological order of the channels for each of `count` bits of the dependencies.
 *
 * bits: uint8 [count].  order: int32 [count, C], the position of each channel, -1 if it has none.  ordered: int32
 * [count], how many channels have a position: C if and only if the graph of that bit is acyclic.
 */
int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered);

#endif
