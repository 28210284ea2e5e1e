#pragma once

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* The routes towards one LID, given by the next switch of each switch.  Two special values stand for a next switch: S
 * means that the switch drops the packet, and S + 1 that the switch delivers the packet.
 *
 * LIDs are processed in blocks of 64, so that memory is read in sequence.  The LFTs have one row for each switch, but
 * the arrays of a block have one row for each LID.  So the entries of a block are first copied to rows by LID.  In the
 * end, the hops to the LIDs of the block are copied to an array with one row for each switch. */
typedef struct {
    const cdg_tables *t;
    /* number of array elements from the beginning of one row of a block to the beginning of the next row */
    int64_t stride;
    /* [block, stride]: for each LID of the block and each switch, the number of the channel by which the switch sends
     * (see trace.h) */
    uint8_t *number;
    /* [block, stride]: for each LID of the block and each switch, the hops from the switch; 255: the packet is not
     * delivered */
    uint8_t *far;
    /* [S + 2]: next switch of each switch, or S (dropped) or S + 1 (delivered).  In each array of S + 2 elements,
     * element S stands for "dropped" and element S + 1 for "delivered". */
    int32_t *next;
    /* [S + 2]: number of neighbours that send to each switch and are not in `queue` yet.  After ibn_cdg_forest_grow,
     * the number of a switch is nonzero exactly if the switch is on a forwarding loop */
    int32_t *degree;
    /* [S + 1]: sorted switches, each after all switches upstream of it; the last element is only scratch */
    int32_t *queue;
    int32_t sorted; /* number of switches in `queue`; it is S if there are no forwarding loops */
    int16_t *hop;   /* [S + 2]: hops from each switch to the LID; 255: dropped, 256: in a forwarding loop */
    /* numbers of pairs (switch, LID) whose packets are not delivered, for the LIDs of this thread: counts[0] to
     * counts[2] of ibn_cdg_trace (trace.h) */
    int64_t counts[3];
} cdg_forest;

/* ibn_cdg_forest_wanted: return whether the routes to LID `lid` have to be followed.
 * ibn_cdg_forest_any_wanted: return whether the routes to any of the LIDs `lid` to `lid` + `count` - 1 have to be
 * followed.
 *
 * If has_endport (see trace.h) is NULL, all routes have to be followed.  Otherwise, the dependencies of the routes to
 * CAs and routers are known already, so only the routes to LIDs of switches have to be followed. */
bool ibn_cdg_forest_wanted(const cdg_tables *tables, int32_t lid);
bool ibn_cdg_forest_any_wanted(const cdg_tables *tables, int32_t lid, int32_t count);

int ibn_cdg_forest_prepare(cdg_forest *forest, const cdg_tables *tables);
void ibn_cdg_forest_dispose(cdg_forest *forest);
void ibn_cdg_forest_load(cdg_forest *forest, int32_t lid, int32_t count);
void ibn_cdg_forest_grow(cdg_forest *forest, int32_t lid, int32_t i);
void ibn_cdg_forest_store(cdg_forest *forest, int32_t lid, int32_t count, uint8_t *hops);
