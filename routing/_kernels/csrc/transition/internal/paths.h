#pragma once

#include "transition/transition.h"

#include <stdbool.h>
#include <stdint.h>

/* The old and the new next hops of all switches towards one LID.  x[0] and next[0] belong to the old LFT entries, x[1]
 * and next[1] to the new entries.  If both entries of a switch are equal, x[1] is -1 for this switch. */
typedef struct {
    const transition_tables *t;
    int32_t *x[2];    /* [S]: extended channel to which the entry leads (see cdg/trace.h), -1: none */
    int32_t *next[2]; /* [S]: switch at the end of the extended channel in `x`, -1: none */
    int32_t
        /* [S]: scratch; after ibn_transition_read_column, nonzero for switches that are on a forwarding loop or
         * downstream of a forwarding loop */
        *degree;
    /* [S]: switches in topological order, each after all switches that may send to it.  Switches that are on a
     * forwarding loop or downstream of a forwarding loop are left out. */
    int32_t *queue;
    int32_t sorted; /* number of switches in `queue`; it is S if there are no forwarding loops */
    /* whether a packet may return to a switch, either on a forwarding loop or over a cable from a switch to itself */
    bool loops;
} transition_paths;

int ibn_transition_prepare_paths(transition_paths *paths, const transition_tables *tables);
void ibn_transition_dispose_paths(transition_paths *paths);
void ibn_transition_read_column(transition_paths *paths, int32_t column);

/* Compute the VLs of the packets that may pass each switch, if every switch may use its old or its new entry.
 *
 * enter: uint32 [S], VLs, as bits, of the packets that enter the fabric at each switch.
 * flow: uint32 [S], output: VLs, as bits, of the packets that may pass each switch. */
void ibn_transition_spread_flow(const transition_paths *paths, const uint32_t *enter, uint32_t *flow);
