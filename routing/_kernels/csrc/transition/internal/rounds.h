#ifndef IBNUE_MIXED_ROUNDS_H
#define IBNUE_MIXED_ROUNDS_H

#include "transition/internal/paths.h"

/* Channel dependencies while one LFT column is written in rounds.
 *
 * Each round begins when all switches have acknowledged the writes of the round before.  A round does not wait until
 * packets have left the fabric: a packet on a channel may stay there during all later rounds.  A packet that reaches
 * a switch after the switch's entry was written finds only the new entry. */
typedef struct {
    const transition_tables *t;
    uint32_t *here; /* [S]: VLs, as bits, of the packets that may have reached each switch so far */
    /* [S]: VLs, as bits, of the packets that may have used the old entry (index 0) or the new entry (index 1) */
    uint32_t *flow[2];
} transition_round;

/* A dependency of extended channel x on extended channel y, with the VLs, as bits, of the packets that may have it. */
typedef struct {
    int32_t x, y;
    uint32_t vls;
} round_dependency;

int ibn_transition_round_prepare(transition_round *stage, const transition_tables *tables);
void ibn_transition_round_dispose(transition_round *stage);

/* Write the dependencies of one LFT column to `dependency` (room for 4 S), and return their number.
 *
 * enter: uint32 [S], VLs, as bits, of the packets that enter at each switch.
 * round: uint8 [S], round in which the switch's entry is written, 0 if it does not change. */
int32_t ibn_transition_round_dependencies(transition_round *stage, const transition_paths *paths, const uint32_t *enter,
                                          const uint8_t *round, round_dependency *dependency);

#endif
