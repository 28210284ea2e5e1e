#ifndef IBNUE_FEWEST_H
#define IBNUE_FEWEST_H

#include <stdint.h>

/* LFT columns with missing entries, one column for each LID. */
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t columns;           /* N, number of columns (LIDs) */
    const int32_t *first;      /* [S + 1]: first channel out of each switch */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const uint8_t *port;       /* [C]: out-port of each channel */
    const int32_t *into;       /* [C]: channels sorted by dst */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel that enters each switch */
    const int32_t *at_port;    /* [S, 256]: channel out of each port, -1: none */
    const int32_t *target;     /* [N]: switch that delivers each LID */
    const uint8_t *missing;    /* [N, S]: whether the entry is missing */
} missing_entries;

/* Fill missing entries while changing as few other entries as possible.  A missing entry gets the path on which the
 * fewest entries change.  Among paths with equally many changes, the one with the fewest hops is taken; among these,
 * the one with the lowest channel numbers (in lexicographic order).  In each column, the switch with the best path by
 * these rules is filled next. entry: uint8 [N, S], out-ports; the filled entries are written to it.  An entry stays
 * missing if no path leads from its switch to the target. */
int ibn_repair_min_change_paths(const missing_entries *given, uint8_t *entry);

#endif
