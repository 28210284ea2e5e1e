#ifndef IBNUE_UP_DOWN_H
#define IBNUE_UP_DOWN_H

#include <stdint.h>

/*
 * Find an order of the switches in which no turn in use leads down and up again.
 *
 * A turn s -> t -> u leads down and up if t comes after s and after u.
 *
 * first: int32 [S + 1], channels of each switch; src, dst: int32 [C]; into: int32 [C], into_first: int32 [S + 1], channels
 * into each switch.
 * waits: uint16 [slots]; the turn from channel c into the k-th of the switch behind it is in use if waits[slot[c] + k] is
 * not 0. slot: int32 [C].
 * position: int32 [S], is set to the place of each switch.
 * *placed: number of switches that found one; fewer than S: there is no such order.
 */
int ibn_up_down(int32_t switches, const int32_t *first, const int32_t *src, const int32_t *dst, const int32_t *into,
                const int32_t *into_first, const int32_t *slot, const uint16_t *waits, int32_t *position, int32_t *placed);

#endif
