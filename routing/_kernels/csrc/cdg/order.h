#pragma once

#include <stdint.h>

/* Dependencies between channels in the format of ibn_cdg_trace.  Channel c ends at switch d = dst[c].  Channel c can
 * depend on the channels out of this switch, which are first[d] to first[d + 1] - 1.  The dependency of channel c on
 * the k-th channel out of switch d has index slot[c] + k in `dep`. */
typedef struct {
    int32_t channels;
    int32_t threads;
    const int32_t *first; /* [S + 1]: first channel out of each switch */
    const int32_t *dst;   /* [C]: switch where each channel ends */
    const int32_t *slot;  /* [C]: index, in `dep`, of each channel's first dependency */
    const uint32_t *dep;  /* [slots]: VLs, as bits, on which each dependency is used */
} cdg_dependencies;

/* Compute a topological order of the channels for each of `count` VLs.  The graph of a VL has the dependencies for
 * which the VL's bit is set in `dep`.
 *
 * bits: uint8 [count], number of the bit that stands for each VL in `dep`.
 * order: int32 [count, C], output: position of each channel, -1 if the channel has no position.
 * ordered: int32 [count], output: number of channels with a position.  The number equals C if and only if the graph of
 * the VL is acyclic.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered);
