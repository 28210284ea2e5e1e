#pragma once

#include <stdint.h>

/* Find an order of the switches in which no dependency in use leads down and then up.  The dependency of a
 * channel s -> t on a channel t -> u leads down and then up if switch t comes after s and after u.
 *
 * first: int32 [S + 1], first channel out of each switch.
 * src, dst: int32 [C], switches at the ends of each channel.
 * into: int32 [C], channels sorted by the switch that they enter.
 * into_first: int32 [S + 1], index in `into` of the first channel that enters each switch.
 * slot: int32 [C], index of the first dependency of each channel.
 * dependencies: uint16 [slots], nonzero for dependencies in use.  Index slot[c] + k belongs to the dependency of
 * channel c on the k-th channel (k = 0, 1, ...) out of the switch where c ends.
 * position: int32 [S], output: position of each switch in the order.
 * placed: output: number of switches that have a position.  If it is less than S, no such order exists.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_updown_order(int32_t switches, const int32_t *first, const int32_t *src, const int32_t *dst,
                           const int32_t *into, const int32_t *into_first, const int32_t *slot,
                           const uint16_t *dependencies, int32_t *position, int32_t *placed);
