#ifndef IBNUE_CDG_ORDER_H
#define IBNUE_CDG_ORDER_H

#include <stdint.h>

/* Dependencies between channels as ibn_cdg_trace returns them.  Channel c can depend on the channels first[d] ..
 * first[d + 1] - 1 of switch d = dst[c]; these dependencies have the indices slot[c], slot[c] + 1, ... in dep. */
typedef struct {
    int32_t channels;
    int32_t threads;
    const int32_t *first; /* [S + 1]: first channel out of each switch */
    const int32_t *dst;   /* [C]: switch where each channel ends */
    const int32_t *slot;  /* [C]: index of the first dependency of each channel */
    const uint32_t *dep;  /* [slots]: VLs on which each dependency is used, as bits */
} cdg_dependencies;

/* Compute a topological order of the channels for each of `count` VLs.  The graph of a VL has the dependencies in
 * which the VL's bit is set.
 *
 * bits: uint8 [count], number of each VL's bit.
 * order: int32 [count, C], position of each channel, -1 if it has none.
 * ordered: int32 [count], number of channels with a position; it is C if and only if the graph of that VL is
 * acyclic. */
int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered);

#endif
