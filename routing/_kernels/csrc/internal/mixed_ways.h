#ifndef IBNUE_MIXED_WAYS_H
#define IBNUE_MIXED_WAYS_H

#include "../mixed.h"

#include <stdbool.h>
#include <stdint.h>

/* The ways from each switch towards one LID: by the entry before and, where it differs, by the one after. */
typedef struct {
    const mixed_tables *t;
    int32_t *x[2];      /* [S]: extended channel that is taken, -1: none */
    int32_t *next[2];   /* [S]: switch behind it */
    int32_t *degree;    /* [S]: scratch; not 0 for switches on a circle or behind one, once the ways are read */
    int32_t *queue;     /* [S]: switches, each after all that send to it */
    int32_t sorted;     /* how many are in the queue: S but for circles */
    bool circles;       /* whether a packet may come back to a switch, also by a cable from a switch to itself */
} mixed_ways;

int ibn_mixed_prepare(mixed_ways *ways, const mixed_tables *tables);
void ibn_mixed_dispose(mixed_ways *ways);
void ibn_mixed_read(mixed_ways *ways, int32_t column);

/* What passes each switch (uint32 [S]), if this enters there (uint32 [S]). */
void ibn_mixed_spread(const mixed_ways *ways, const uint32_t *enter, uint32_t *flow);

#endif
