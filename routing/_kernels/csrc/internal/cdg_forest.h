#ifndef IBNUE_CDG_FOREST_H
#define IBNUE_CDG_FOREST_H

#include "cdg.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The routes towards one LID: a pointer from each switch to the next.  Two more rows stand for the end of a way: S
 * where a packet is dropped, S + 1 where it is delivered.
 *
 * Blocks of LIDs are turned from the rows of the LFT, which hold one switch each, into rows of one LID each and back.
 */
typedef struct {
    const cdg_tables *t;
    int64_t stride;
    uint8_t *number;    /* [block, stride]: number of the channel that each switch takes */
    uint8_t *far;       /* [block, stride]: hops */
    int32_t *next;      /* [S + 2] */
    int32_t *degree;    /* [S + 2]: scratch; not 0 for switches on a circle, once the forest has grown */
    int32_t *queue;     /* [S + 1]: switches, each after all that send through it */
    int32_t sorted;     /* how many are in the queue: S but for circles */
    int16_t *hop;       /* [S + 2] */
    int64_t counts[3];  /* the first three of ibn_cdg_trace */
} cdg_forest;

/* Whether the routes to a LID, or to any in a block, are to be followed: see has_endport. */
bool ibn_forest_wanted(const cdg_tables *tables, int32_t lid);
bool ibn_forest_any_wanted(const cdg_tables *tables, int32_t lid, int32_t count);

int ibn_forest_prepare(cdg_forest *forest, const cdg_tables *tables);
void ibn_forest_dispose(cdg_forest *forest);
void ibn_forest_load(cdg_forest *forest, int32_t lid, int32_t count);
void ibn_forest_grow(cdg_forest *forest, int32_t lid, int32_t i);
void ibn_forest_store(cdg_forest *forest, int32_t lid, int32_t count, uint8_t *hops);

#endif
