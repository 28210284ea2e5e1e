#ifndef IBNUE_RECHECK_H
#define IBNUE_RECHECK_H

#include <stdint.h>

/*
 * Tables, what they were, and an order that everything is said to climb in.
 *
 * The turn from channel c into the k-th channel of the switch behind it has slot slot[c] + k.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;                /* V */
    int32_t sl_by_switch;       /* 0: sl and sl_was are [L]; 1: [S, L] */
    int32_t replies;            /* whether replies count, too */
    int32_t endports_only;      /* whether what switches send to switches does not */
    int32_t turns_climb;        /* whether all turns are known to climb that others may take */
    const int32_t *first;       /* [S + 1] */
    const int32_t *src;         /* [C] */
    const int32_t *dst;         /* [C] */
    const uint8_t *port;        /* [C] */
    const int32_t *into;        /* [C] */
    const int32_t *into_first;  /* [S + 1] */
    const int32_t *at_port;     /* [S, 256] */
    const int32_t *slot;        /* [C] */
    const int32_t *lid_switch;  /* [L] */
    const uint8_t *lid_port;    /* [L] */
    const int32_t *lids_at_first; /* [S + 1] */
    const int32_t *lids_at;     /* LIDs that each switch delivers */
    const uint8_t *has_endport; /* [S] */
    const uint16_t *vl_bit;     /* [16] */
    const uint8_t *lft;         /* [S, L] */
    const uint8_t *was;         /* [S, L], 255 where an entry no longer holds */
    const uint8_t *sl;
    const uint8_t *sl_was;
    const int32_t *order;       /* [V, C] */
} recheck_tables;

/*
 * Walk every packet whose way, or VL, is not what it was, and see that it arrives and climbs; see that all turns climb that
 * others may take, unless that is known.
 *
 * waits: uint16 [slots], VLs on which turns may be taken by what is as it was; those of the others go in.
 * hops: uint8 [S, L], as they were; brought up to date.
 * counts: int64 [3]: packets walked; those that do not arrive, or do not climb; turns that do not climb.
 */
int ibn_recheck(const recheck_tables *tables, uint16_t *waits, uint8_t *hops, int64_t *counts);

/*
 * How many turns that may be taken do not climb, each counted once for every VL.
 *
 * waits: uint16 [slots], VLs on which each turn may be taken; order: int32 [vls, C].
 */
int64_t ibn_turns_against(int32_t channels, int32_t vls, const int32_t *first, const int32_t *dst, const int32_t *slot,
                          const uint16_t *waits, const int32_t *order);

#endif
