#ifndef IBNUE_MIXED_ROUNDS_H
#define IBNUE_MIXED_ROUNDS_H

#include "mixed_ways.h"

/* What waits for what while one column is written in rounds, each when all switches have acknowledged the one before,
 * without waiting for packets to leave: what has got to a channel stays there for all rounds to come, but a packet that
 * comes to a switch after its round finds the new entry only. */
typedef struct {
    const mixed_tables *t;
    uint32_t *here;     /* [S], what may have come to each switch so far */
    uint32_t *flow[2];  /* [S], what may have taken the channel of each way so far */
} mixed_stage;

/* From one extended channel to the next, and who takes it. */
typedef struct {
    int32_t x, y;
    uint32_t lanes;
} mixed_turn;

int ibn_stage_prepare(mixed_stage *stage, const mixed_tables *tables);
void ibn_stage_dispose(mixed_stage *stage);

/* Lists at most 4 S turns and returns how many.  enter: uint32 [S]; round: uint8 [S], 0 where nothing changes. */
int32_t ibn_stage_turns(mixed_stage *stage, const mixed_ways *ways, const uint32_t *enter, const uint8_t *round,
                        mixed_turn *turn);

#endif
