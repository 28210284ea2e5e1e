/* Repair a topological order of channels after a new edge has violated the order (D. J. Pearce, P. H. J. Kelly, "A
 * Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", Journal of Experimental Algorithmics 11, 2007).
 *
 * Two searches collect the channels to be moved.  Each channel is stored as a key: its position in the upper 32 bits,
 * its number in the lower 32 bits. */
#pragma once

#include <stdint.h>

#include "core/internal/sort_keys.h"

static inline int64_t ibn_core_order_key(const int32_t *place, int32_t channel)
{
    return (int64_t)place[channel] << 32 | channel;
}

/* Exchange the positions of some channels such that the channels in `before` come ahead of the channels in `behind`.
 *
 * `before` has channels from which the new edge can be reached.  `behind` has channels that can be reached from the new
 * edge.  All other channels keep their positions.  The order of the channels within `before` and within `behind` does
 * not change.
 *
 * place: [C], position of each channel, updated.
 * behind_count: number of channels in `behind`.  before_count: number of channels in `before`.
 * scratch: has room for all moved channels. */
static inline void ibn_core_order_repair(int32_t *place, int64_t *behind, int32_t behind_count, int64_t *before,
                                         int32_t before_count, int64_t *scratch)
{
    int32_t at = 0;
    ibn_core_sort_keys(behind, behind_count);
    ibn_core_sort_keys(before, before_count);
    for (int32_t i = 0, j = 0; i < behind_count || j < before_count;)
        scratch[at++] = j == before_count || (i < behind_count && behind[i] < before[j]) ? behind[i++] : before[j++];
    at = 0;
    for (int32_t i = 0; i < before_count; i++)
        place[before[i] & 0xFFFFFFFF] = (int32_t)(scratch[at++] >> 32);
    for (int32_t i = 0; i < behind_count; i++)
        place[behind[i] & 0xFFFFFFFF] = (int32_t)(scratch[at++] >> 32);
}
