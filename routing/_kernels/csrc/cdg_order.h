#ifndef IBNUE_CDG_ORDER_H
#define IBNUE_CDG_ORDER_H

#include <stdint.h>

/*
 * Dependencies between channels as cdg_trace leaves them, without the channels that are none: those that may follow
 * channel c are follow_first[d] .. follow_first[d + 1] of d = dst[c], with their slots from slot[c] on.
 */
typedef struct {
    int32_t channels;
    int32_t threads;
    const int32_t *first;   /* [S + 1], channels out of each switch */
    const int32_t *dst;     /* [C] */
    const int32_t *slot;    /* [C] */
    const uint32_t *dep;    /* [slots] */
} cdg_dependencies;

/*
 * A topological order of the channels for each of `count` bits of the dependencies.
 *
 * bits: uint8 [count].  order: int32 [count, C], the place of each channel.  ordered: int32 [count], how many channels
 * have one: C if and only if there is no cycle (then their order is complete, else the rest is -1).
 */
int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered);

#endif
