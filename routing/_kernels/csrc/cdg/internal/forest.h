#ifndef IBNUE_CDG_FOREST_H
#define IBNUE_CDG_FOREST_H

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* The routes towards one LID, given by the next switch of each switch.  Instead of a next switch, S means that the
 * switch drops the packet, and S + 1 that it delivers the packet.  LIDs are processed in blocks of 64.  The LFT entries
 * of a block are first copied from rows by switch to rows by LID, and its hops are copied back in the end, so that
 * memory is read in sequence. */
typedef struct {
    const cdg_tables *t;
    int64_t stride; /* distance of two rows of a block in memory, in entries */
    /* [block, stride]: for each LID of the block and each switch, the number (see trace.h) of the channel by which the
     * switch sends */
    uint8_t *number;
    uint8_t *far;  /* [block, stride]: hops from each switch, 255 where the packet is not delivered */
    int32_t *next; /* [S + 2]: next switch, or S (dropped) or S + 1 (delivered) */
    /* [S + 2]: scratch; after ibn_cdg_forest_grow, nonzero exactly for switches on a forwarding loop */
    int32_t *degree;
    int32_t *queue;    /* [S + 1]: switches, each after all switches upstream of it */
    int32_t sorted;    /* length of the queue, which is S if there are no forwarding loops */
    int16_t *hop;      /* [S + 2]: hops to the LID; 255: dropped, 256: in a forwarding loop */
    int64_t counts[3]; /* results: the first three elements of the array `counts` of ibn_cdg_trace */
} cdg_forest;

/* Return whether the routes to a LID, or to any LID of a block, have to be followed.  Without has_endport (see
 * trace.h) all routes have to be followed, otherwise only the routes to LIDs of switches. */
bool ibn_cdg_forest_wanted(const cdg_tables *tables, int32_t lid);
bool ibn_cdg_forest_any_wanted(const cdg_tables *tables, int32_t lid, int32_t count);

int ibn_cdg_forest_prepare(cdg_forest *forest, const cdg_tables *tables);
void ibn_cdg_forest_dispose(cdg_forest *forest);
void ibn_cdg_forest_load(cdg_forest *forest, int32_t lid, int32_t count);
void ibn_cdg_forest_grow(cdg_forest *forest, int32_t lid, int32_t i);
void ibn_cdg_forest_store(cdg_forest *forest, int32_t lid, int32_t count, uint8_t *hops);

#endif
