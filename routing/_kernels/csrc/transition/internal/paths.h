#ifndef IBNUE_TRANSITION_PATHS_H
#define IBNUE_TRANSITION_PATHS_H

#include "transition/transition.h"

#include <stdbool.h>
#include <stdint.h>

/* The next hops of each switch towards one LID.  In arrays [2], index 0 stands for the old entry and index 1 for the
 * new entry.  If both entries are equal, index 1 is unused. */
typedef struct {
    const transition_tables *t;
    int32_t *x[2];    /* [S]: extended channel (see cdg/trace.h) to which the entry leads, -1: none */
    int32_t *next[2]; /* [S]: switch where the extended channel of the switch's entry ends */
    int32_t
        /* [S]: scratch; after ibn_transition_read_column, nonzero for switches on a forwarding loop or downstream of
         * one */
        *degree;
    int32_t *queue; /* [S]: switches in topological order: each after all switches that send to it */
    int32_t sorted; /* length of the queue: S if there are no forwarding loops */
    bool loops;     /* whether a packet may return to a switch, including over a cable from a switch to itself */
} transition_paths;

int ibn_transition_prepare_paths(transition_paths *paths, const transition_tables *tables);
void ibn_transition_dispose_paths(transition_paths *paths);
void ibn_transition_read_column(transition_paths *paths, int32_t column);

/* Compute the VLs of the packets that pass each switch.
 *
 * enter: uint32 [S], VLs, as bits, of the packets that enter the fabric at each switch.
 * flow: uint32 [S], output: VLs, as bits, of the packets that pass each switch. */
void ibn_transition_spread_flow(const transition_paths *paths, const uint32_t *enter, uint32_t *flow);

#endif
