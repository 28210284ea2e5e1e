#ifndef IBNUE_REPAIR_H
#define IBNUE_REPAIR_H

#include <stdint.h>

/*
 * Channels, some of which are dead, and who sends what on which VL.
 *
 * The turn from channel c into the k-th channel of the switch behind it has slot slot[c] + k.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t slots;
    int32_t vls;                /* V; 0: credit loops are of no concern */
    int32_t sl_by_switch;       /* 0: sl is [L]; 1: [S, L] */
    int32_t replies;            /* whether replies count, too */
    int32_t endports_only;      /* whether what switches send to switches does not */
    int32_t by_parts;           /* whether each part of a tree may change its SL by itself, if SLs go by switch */
    int32_t climb_first;        /* whether ways that climb in the order go before shorter ones */
    const int32_t *first;       /* [S + 1] */
    const int32_t *src;         /* [C] */
    const int32_t *dst;         /* [C] */
    const uint8_t *port;        /* [C] */
    const int32_t *into;        /* [C] */
    const int32_t *into_first;  /* [S + 1] */
    const int32_t *at_port;     /* [S, 256] */
    const int32_t *slot;        /* [C] */
    const uint8_t *alive;       /* [C] */
    const int32_t *part;        /* [S], connected part over the channels that are alive */
    const int32_t *lid_switch;  /* [L] */
    const uint8_t *lid_port;    /* [L] */
    const int32_t *lids_at_first; /* [S + 1] */
    const int32_t *lids_at;     /* LIDs that each switch delivers */
    const uint8_t *has_endport; /* [S] */
    const uint16_t *vl_bit;     /* [16] */
    const uint8_t *wish;        /* [S, L], entries to be preferred */
    const uint8_t *level;       /* [V], an SL that rides each VL, 255: none is to be given away */
    const int64_t *slowness;    /* [C], what a unit of flow weighs on each channel */
    const int64_t *weight;      /* [L], what a source sends to each LID */
    const int64_t *sources;     /* [S] */
} repair_fabric;

/*
 * Fill the holes of tables: entries of 255 at switches of the part that delivers the LID.
 *
 * lay: uint8 [L]: 0: mend the column, 1: lay it anew as a whole, whatever it was, if that can be done, 2: leave it alone;
 * 3: as 0, where what nobody takes any more on the VLs of such columns is let go of first; those that find no way even so
 * are taken out, and laid from nothing, or take the ways of another LID.
 * lft: uint8 [S, L], holes are filled in place; columns that cannot be mended are left as they were,
 * or without any entry (3).
 * sl: uint8 [L] or [S, L]; where a way fits on no VL of its own it may take another, unless replies count.
 * waits: uint16 [slots], VLs on which each turn may be taken already; what is added goes in.
 * order: int32 [V, C], a topological order of that; kept one.
 * load: int64 [C], flow on each channel; kept up to date.
 * done: uint8 [L]: 0: there was no hole, 1: mended, 2: laid anew, 3: neither could be done;
 * 4: mended with the ways of another LID.
 * counts: int64 [5]: holes; holes filled; entries that held and were changed; channels that searches for cycles came by;
 * trees that went over to other VLs part by part.
 */
int ibn_repair(const repair_fabric *fabric, const uint8_t *lay, uint8_t *lft, uint8_t *sl, uint16_t *waits, int32_t *order,
               int64_t *load, uint8_t *done, int64_t *counts);

#endif
