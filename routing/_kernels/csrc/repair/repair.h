#ifndef IBNUE_REPAIR_H
#define IBNUE_REPAIR_H

#include <stdint.h>

/* Fabric on which tables are repaired, and the traffic for which credit loops are avoided.  Channels of lost cables
 * keep their numbers; `alive` marks the other channels.  A CDG edge from channel c leads to a channel out of switch
 * dst[c].  In arrays [slots], the edge to the k-th channel out of this switch has index slot[c] + k. */
typedef struct {
    int32_t switches;      /* S: number of switches */
    int32_t lids;          /* L: number of LIDs */
    int32_t channels;      /* C: number of channels */
    int32_t slots;         /* length of arrays by CDG edge */
    int32_t vls;           /* V: number of VLs; 0: credit loops are allowed */
    int32_t sl_by_switch;  /* shape of `sl`: 0: [L], by LID; 1: [S, L], by source switch and LID */
    int32_t replies;       /* whether replies must be free of credit loops too */
    int32_t endports_only; /* whether packets from switches without end ports to LIDs of switches are ignored */
    int32_t by_parts;      /* whether parts of a subtree may take different SLs; needs sl_by_switch */
    /* whether `load` still includes the flow on broken paths; the kernel then subtracts this flow along the entries of
     * `preferred` */
    int32_t withdraw;
    int32_t monotone_first;       /* whether paths that follow the topological order are tried before others */
    const int32_t *first;         /* [S + 1], the channels out of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;           /* [C], switch where each channel begins */
    const int32_t *dst;           /* [C], switch where each channel ends */
    const uint8_t *port;          /* [C], out-port of each channel */
    const int32_t *into;          /* [C], all channels, sorted by the switch where they end */
    const int32_t *into_first;    /* [S + 1], index in `into` of the first channel that enters each switch */
    const int32_t *at_port;       /* [S, 256], channel at each out-port, -1: none */
    const int32_t *slot;          /* [C], index of the first CDG edge of each channel */
    const uint8_t *alive;         /* [C], 0: the channel is lost */
    /* [S], number of the connected component to which each switch belongs, without the lost channels */
    const int32_t *part;
    const int32_t *lid_switch;    /* [L], switch that delivers each LID, -1: none */
    const uint8_t *lid_port;      /* [L], port by which that switch delivers each LID, 0: the LID is the switch's own */
    const int32_t *lids_at_first; /* [S + 1], index of each switch's first LID in `lids_at` */
    const int32_t *lids_at;       /* LIDs sorted by the switch that delivers them */
    const uint8_t *has_endport;   /* [S], whether the switch has CAs or routers */
    const uint16_t *vl_bit;       /* [16], 1 << VL of each SL, 0: packets with this SL are dropped */
    const uint8_t *preferred;     /* [S, L], out-ports of the previous tables, which are tried first; 255: none */
    const uint8_t *level;         /* [V], an SL that maps to each VL, 255: no path may move to this VL */
    const int64_t *inverse_capacity; /* [C], inverse capacity: load times inverse capacity is the utilisation */
    /* [L], weight of each LID: the flow from a switch to a LID is sources[switch] * weight[LID] */
    const int64_t *weight;
    const int64_t *sources; /* [S], flow that each switch sends per unit of a LID's weight */
    const uint16_t *forbidden; /* [slots], VLs on which new paths must not use each CDG edge, as bits */
} repair_fabric;

/* Fill the missing entries of LFTs.  An entry is missing if it is 255 although the switch can reach the LID.
 *
 * treatment: uint8 [L], treatment of each column. 0: fill the missing entries. 1: skip the column. 2: first remove
 * all CDG edges that no path uses, on the VLs of all columns with this treatment; then fill the missing entries.  If
 * such a column fails, all its entries are removed and it is rebuilt.  If the rebuild fails too, the column of
 * another LID is copied.
 * lft: uint8 [S, L], filled in place.  A column that fails keeps its entries (treatment 0) or is empty (treatment
 * 2).
 * sl: uint8 [L] or [S, L].  If a path would close a cycle on its own VLs, its packets may get another SL, provided
 * that SLs depend on the source and replies do not count.  A copied column also takes the SLs of the other LID.
 * dependencies: uint16 [slots], VLs on which each CDG edge may be used, as bits; the edges of new paths are added.
 * order: int32 [V, C], position of each channel in a topological order of these CDG edges; updated.
 * load: int64 [C], flow on each channel; updated.  With `withdraw`, the flow of subtrees that lost their path is
 * first subtracted from their previous paths.
 * done: uint8 [L], outcome of each column. 0: nothing was missing. 1: repaired. 2: failed. 3: copied from another
 * LID.
 * counts: int64 [5]: entries that were missing; entries filled; valid entries that were changed; channels that cycle
 * searches visited; subtrees whose parts moved to several VLs.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_repair_columns(const repair_fabric *fabric, const uint8_t *treatment, uint8_t *lft, uint8_t *sl,
                       uint16_t *dependencies, int32_t *order, int64_t *load, uint8_t *done, int64_t *counts);

/* Move entries of complete LFTs off the channels with the highest utilisation (load times inverse capacity).
 * Afterwards, give back the value in fabric->preferred to each entry whose move turned out to be needless.
 *
 * lft, sl, dependencies, order, load: as for the function ibn_repair_columns, above.  An entry counts as changed if it
 * differs from fabric->preferred; where fabric->preferred is 255, it never counts.
 * goal: utilisation up to which a channel may stay loaded.
 * budget: number of further entries that may differ from fabric->preferred.
 * work: work limit, in hops followed along paths and channels visited by cycle searches.
 * counts: int64 [3]: further entries that differ (less those that were restored), steps of work, moves.
 *
 * Return 0, or 1 if memory ran out. */
int ibn_repair_rebalance(const repair_fabric *fabric, uint8_t *lft, uint8_t *sl, uint16_t *dependencies, int32_t *order,
                         int64_t *load, int64_t goal, int64_t budget, int64_t work, int64_t *counts);

#endif
