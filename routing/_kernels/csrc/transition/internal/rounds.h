#ifndef IBNUE_MIXED_ROUNDS_H
#define IBNUE_MIXED_ROUNDS_H

#include "transition/internal/paths.h"

/* Channel dependencies while one LFT column is written in rounds.  Each round begins when all switches have
 * acknowledged the round before.  The rounds do not wait until packets have left the fabric.  So a packet on a
 * channel may stay there in all later rounds.  A packet that reaches a switch after the switch's round finds only
 * the new entry. */
typedef struct {
    const transition_tables *t;
    uint32_t *here;    /* [S]: VLs of the packets that may have reached each switch so far, as bits */
    uint32_t *flow[2]; /* [S]: VLs of the packets that may have used the old (0) or new (1) entry, as bits */
} transition_round;

/* A dependency of extended channel x on extended channel y, and the VLs that use it, as bits. */
typedef struct {
    int32_t x, y;
    uint32_t vls;
} round_dependency;

int ibn_round_prepare(transition_round *stage, const transition_tables *tables);
void ibn_round_dispose(transition_round *stage);

/* Write the dependencies of one LFT column to `dependency` (at most 4 S), and return their number.  enter: uint32
 * [S], VLs of the packets that enter at each switch, as bits; round: uint8 [S], round of each entry that changes, 0
 * for the others. */
int32_t ibn_round_dependencies(transition_round *stage, const transition_paths *paths, const uint32_t *enter,
                               const uint8_t *round, round_dependency *dependency);

#endif
