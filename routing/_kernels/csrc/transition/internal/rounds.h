#pragma once

#include "transition/internal/paths.h"

/* Channel dependencies while one LFT column is written in rounds.
 *
 * A round begins when all switches have acknowledged the writes of the previous round.  A round does not wait until
 * packets have left the fabric: a packet on a channel may stay there during all later rounds.  A packet that reaches a
 * switch after the switch's entry was written can use only the new entry. */
typedef struct {
    const transition_tables *t;
    uint32_t *here; /* [S]: VLs, as bits, of the packets that may have reached each switch up to the current round */
    /* [S]: VLs, as bits, of the packets that may have used each switch's old entry (flow[0]) or new entry (flow[1]) */
    uint32_t *flow[2];
} transition_round;

/* A dependency of extended channel x on extended channel y.  The field `vls` has the VLs, as bits, of the packets that
 * may have this dependency. */
typedef struct {
    int32_t x, y;
    uint32_t vls;
} round_dependency;

int ibn_transition_round_prepare(transition_round *stage, const transition_tables *tables);
void ibn_transition_round_dispose(transition_round *stage);

/* List the dependencies that packets can have while one LFT column is written in rounds.  The list is stored in
 * `dependency`, which has room for 4 S dependencies.  Returns the number of dependencies.
 *
 * enter: uint32 [S], VLs, as bits, of the packets that enter the fabric at each switch.
 * round: uint8 [S], number (1 or more) of the round in which the entry of each switch is written; 0: the entry does not
 * change. */
int32_t ibn_transition_round_dependencies(transition_round *stage, const transition_paths *paths, const uint32_t *enter,
                                          const uint8_t *round, round_dependency *dependency);
