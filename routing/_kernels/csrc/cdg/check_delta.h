#ifndef IBNUE_RECHECK_H
#define IBNUE_RECHECK_H

#include <stdint.h>

/*
 * Tables, the tables before them, and the topological order to be checked.
 *
 * The dependency of channel c on the k-th channel of switch dst[c] has slot slot[c] + k.
 */
typedef struct {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    int32_t vls;                  /* V */
    int32_t sl_by_switch;         /* whether sl and sl_was are [S, L], by source switch; else [L] */
    int32_t replies;              /* whether replies are checked, too */
    int32_t endports_only;        /* whether switch-to-switch traffic is left out */
    int32_t turns_climb;          /* whether all dependencies in `dependencies` are known to follow the order */
    const int32_t *first;         /* [S + 1] */
    const int32_t *src;           /* [C] */
    const int32_t *dst;           /* [C] */
    const uint8_t *port;          /* [C] */
    const int32_t *into;          /* [C]: channels sorted by dst */
    const int32_t *into_first;    /* [S + 1] */
    const int32_t *at_port;       /* [S, 256]: channel out of each port, -1: none */
    const int32_t *slot;          /* [C]: first slot of each channel */
    const int32_t *lid_switch;    /* [L]: switch that delivers each LID, -1: none */
    const uint8_t *lid_port;      /* [L]: port by which it does, 0: the switch itself */
    const int32_t *lids_at_first; /* [S + 1]: index of each switch's first LID in lids_at */
    const int32_t *lids_at;       /* LIDs by the switch that delivers them */
    const uint8_t *has_endport;   /* [S]: whether a CA or router is attached */
    const uint16_t *vl_bit;       /* [16]: 1 << VL of each SL */
    const uint8_t *lft;           /* [S, L]: out-ports */
    const uint8_t *was;           /* [S, L]: out-ports before, 255 where the entry is no longer valid */
    const uint8_t *sl;            /* SLs; for the shape see sl_by_switch */
    const uint8_t *sl_was;        /* SLs before */
    const int32_t *order;         /* [V, C]: position of each channel in each VL's order */
} delta_tables;

/*
 * Check the packets whose route or VL has changed: each must arrive and use channels in increasing order.  Check also,
 * unless turns_climb is set, that the dependencies of all other packets follow the order.
 *
 * dependencies: uint16 [slots], VLs on which unchanged traffic may have each dependency; those of changed packets are
 * added.
 * hops: uint8 [S, L], hops before; updated.
 * counts: int64 [3]: packets walked; packets that do not arrive or violate the order; dependencies that violate it.
 */
int ibn_cdg_check_delta(const delta_tables *tables, uint16_t *dependencies, uint8_t *hops, int64_t *counts);

/*
 * Return the number of dependencies that violate the order, each counted once for every VL.
 *
 * dependencies: uint16 [slots], VLs on which each dependency may occur; order: int32 [vls, C].
 */
int64_t ibn_cdg_dependencies_against(int32_t channels, int32_t vls, const int32_t *first, const int32_t *dst,
                                     const int32_t *slot, const uint16_t *dependencies, const int32_t *order);

#endif
