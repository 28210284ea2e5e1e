#pragma once

#include <stdint.h>

/* Fabric on which tables are repaired, and the traffic for which credit loops are avoided.  Channels of lost cables
 * keep their numbers, but are not marked in `alive`.  A CDG edge from channel c leads to a channel out of switch
 * dst[c].  In arrays [slots], the edge to channel number k (from 0) out of this switch has index slot[c] + k. */
typedef struct {
    int32_t switches;     /* S: number of switches */
    int32_t lids;         /* L: number of LIDs */
    int32_t channels;     /* C: number of channels */
    int32_t slots;        /* number of possible CDG edges: arrays [slots] have one element for each */
    int32_t vls;          /* V: number of VLs; 0: credit loops need not be avoided */
    int32_t sl_by_switch; /* shape of the array `sl`; 0: [L], by LID; 1: [S, L], by source switch and LID */
    int32_t replies;      /* whether requests and replies together must be free of credit loops; otherwise only
                           * requests must be */
    /* 1: switch-to-switch traffic may close credit loops.  So packets to the LID of a switch are checked only if they
     * come from a switch with end ports.  0: all packets are checked */
    int32_t endports_only;
    /* whether the packets of one subtree may be split over several SLs; used only if SLs depend on the source switch
     * (sl_by_switch) and `replies` is 0 */
    int32_t by_parts;
    /* whether the search for balance may move packets to another VL, by a change of their SLs.  On this VL, the
     * previous paths of the packets (by `preferred`) and their new paths together must close no CDG cycle */
    int32_t prepares_sls;
    /* whether `load` on entry includes the flow on broken paths; if so, the kernel subtracts this flow from the
     * channels of the previous paths (by `preferred`) */
    int32_t withdraw;
    /* whether monotone paths are tried before all other paths.  The channels of a monotone path follow the current
     * topological order.  In ibn_repair_rebalance: whether the new paths must be monotone */
    int32_t monotone_first;
    int32_t most_failed;  /* once more than this number of columns have failed, all further columns fail; 0: no limit */
    const int32_t *first; /* [S + 1], the channels out of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;   /* [C], switch where each channel begins */
    const int32_t *dst;   /* [C], switch where each channel ends */
    const uint8_t *port;  /* [C], out-port of each channel */
    const int32_t *into;  /* [C], all channels, sorted by the switch where they end */
    const int32_t *into_first; /* [S + 1], index in `into` of the first channel that enters each switch */
    const int32_t *at_port;    /* [S, 256], channel that leaves by each port, -1: none */
    const int32_t *slot;       /* [C], index of the first CDG edge of each channel */
    const uint8_t *alive;      /* [C], 1: the channel can be used, 0: its cable is lost */
    /* [S], number of the connected part to which each switch belongs when lost channels are left out */
    const int32_t *part;
    const int32_t *lid_switch;    /* [L], switch that delivers each LID, -1: none */
    const uint8_t *lid_port;      /* [L], port by which the LID's switch delivers it, 0: the LID is the switch's own */
    const int32_t *lids_at_first; /* [S + 1], index of each switch's first LID in `lids_at` */
    const int32_t *lids_at;       /* LIDs sorted by the switch that delivers them */
    const uint8_t *has_endport;   /* [S], whether the switch has CAs or routers */
    /* [16], for each SL: the VL of its packets, as bits (one bit is set); 0: packets with this SL are dropped */
    const uint16_t *vl_bit;
    /* [S, L], out-ports of the previous tables (the preferred entries), which are tried before other out-ports; 255:
     * none */
    const uint8_t *preferred;
    /* [V], for each VL a service level (SL) whose packets use this VL; 255: no packets may move to this VL */
    const uint8_t *sl_of_vl;
    /* [C], inverse capacity of each channel; the utilisation is load times inverse capacity */
    const int64_t *inverse_capacity;
    /* [L], weight of each LID; the flow from a switch to a LID is sources[switch] * weight[LID] */
    const int64_t *weight;
    const int64_t *sources; /* [S], flow that each switch sends per unit of a LID's weight */
    /* [slots], for each possible CDG edge: VLs, as bits, on which new paths must not use the edge; NULL: all VLs may
     * be used */
    const uint16_t *forbidden;
} repair_fabric;

/* Fill the missing entries of LFTs.  An entry is missing if it is 255 although the switch can reach the LID.  New paths
 * close no CDG cycle, unless fabric->vls is 0.
 *
 * treatment: uint8 [L], what to do with each LFT column.
 *   0: fill the missing entries.
 *   1: skip the column.
 *   2: fill the missing entries.  If this fails, remove all entries of the column, and compute them from scratch.  If
 *      this fails too, copy the column of another LID.  Before the first column is repaired, CDG edges that no path
 *      uses are removed, on the VLs of the packets to all LIDs with treatment 2.
 * lft: uint8 [S, L], changed in place.  If the repair of a column fails, the column keeps its entries (treatment 0), or
 * is empty (treatment 2).
 * pages: uint8 [pages], 1 for each page in which an entry may be missing.  A page is `page` consecutive entries of
 * `lft`.
 * sl: uint8 [L] or [S, L], changed in place.  If a path would close a cycle on the VLs of its packets, the packets may
 * get another SL.  Such a change is made only if SLs depend on the source switch and fabric->replies is 0.  A copied
 * column takes the SLs of the LID from which it is copied.
 * dependencies: uint16 [slots], VLs, as bits, on which each CDG edge may be used; the edges of new paths are added.
 * order: int32 [V, C], position of each channel in a topological order of these CDG edges on each VL; updated.
 * load: int64 [C], flow on each channel; updated.  If fabric->withdraw is set, the flow of switches that have lost
 * their path is subtracted from the channels of their previous paths.
 * done: uint8 [L], output, outcome for each column.
 *   0: no entry was missing.
 *   1: repaired.
 *   2: failed, or skipped although entries are missing.
 *   3: copied from another LID.
 * counts: int64 [5], output, five numbers: missing entries; filled entries; valid entries that were changed; channels
 * that cycle searches visited; subtrees whose packets were split over several VLs.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_repair_columns(const repair_fabric *fabric, const uint8_t *treatment, uint8_t *lft, const uint8_t *pages,
                       int64_t page, uint8_t *sl, uint16_t *dependencies, int32_t *order, int64_t *load, uint8_t *done,
                       int64_t *counts);

/* Move entries of complete LFTs off the channels with the highest utilisation (load times inverse capacity).  If a move
 * turns out to be needless in the end, its entry gets the value in fabric->preferred again.
 *
 * lft: uint8 [S, L], changed in place.  An entry counts as changed if it differs from fabric->preferred, and if
 * fabric->preferred is not 255 there.
 * sl: uint8 [L] or [S, L], SL by LID, or by source switch and LID; changed in place.
 * dependencies: uint16 [slots], VLs, as bits, on which each CDG edge may be used; the edges of new paths are added.
 * order: int32 [V, C], position of each channel in a topological order of these CDG edges on each VL; updated.
 * load: int64 [C], flow on each channel; updated.
 * written: uint8 [pages], 1 for each page of `lft` that may differ from fabric->preferred.  A page is `page`
 * consecutive entries.  The kernel sets 1 for each page in which it sets an entry.
 * goal: a channel is relieved only while its utilisation is above this value.
 * budget: largest increase of the number of changed entries.
 * work: work limit, in hops followed along paths and channels visited by cycle searches.
 * overshoot: percentage for an additional first pass.  A move of this pass may raise the utilisation of other channels
 * above the utilisation of the channel that it relieves, by up to this percentage.  0: there is no such pass.
 * restored: largest number of changed entries that get the value in fabric->preferred again after each pass of moves.
 * page: number of entries in a page; see `written`.
 * counts: int64 [3], output: increase of the number of changed entries; work done; number of moves.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_repair_rebalance(const repair_fabric *fabric, uint8_t *lft, uint8_t *written, uint8_t *sl,
                         uint16_t *dependencies, int32_t *order, int64_t *load, int64_t goal, int64_t budget,
                         int64_t work, int32_t overshoot, int64_t restored, int64_t page, int64_t *counts);
