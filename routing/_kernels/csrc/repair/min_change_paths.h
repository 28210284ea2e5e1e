#pragma once

#include <stdint.h>

/* LFT columns with missing entries: the fabric, and for each LID the switches whose entry is missing. */
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t columns;           /* N: number of columns, one for each LID to be repaired */
    const int32_t *first;      /* [S + 1]: channels out of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const uint8_t *port;       /* [C]: out-port of each channel */
    const int32_t *into;       /* [C]: channels sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *at_port;    /* [S, 256]: channel that leaves by each port; -1: none */
    const int32_t *target;     /* [N]: switch that delivers each LID (the target) */
    const uint8_t *missing;    /* [N, S]: 1 if the switch's entry towards the LID is missing, else 0 */
} missing_entries;

/* Fill missing entries while changing as few other entries as possible.  A missing entry gets the path on which the
 * fewest other entries change.  Among paths with equally many changes, the path with the fewest hops is taken.  Among
 * paths with equally many hops, the path with the lexicographically lowest channel numbers is taken.  In each step, the
 * missing entry with the best path by these rules is filled.
 *
 * entry: uint8 [N, S], out-ports by LID and switch, 255 where missing; the filled entries are written to this array.
 * An entry stays missing if no path leads from its switch to the target. */
int ibn_repair_min_change_paths(const missing_entries *given, uint8_t *entry);
