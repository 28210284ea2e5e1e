#ifndef IBNUE_REPAIR_H
#define IBNUE_REPAIR_H

#include <stdint.h>

/*
 * Fabric on which tables are repaired, and the traffic that counts.
 *
 * Channels of lost cables keep their numbers; `alive` marks the others.  The CDG edge from channel c to the k-th
 * channel of switch dst[c] has slot slot[c] + k.
 */
typedef struct {
    int32_t switches;      /* S */
    int32_t lids;          /* L */
    int32_t channels;      /* C */
    int32_t slots;         /* number of CDG edge slots */
    int32_t vls;           /* V; 0: credit loops are allowed */
    int32_t sl_by_switch;  /* 0: sl is [L], by LID; 1: [S, L], by source switch and LID */
    int32_t replies;       /* whether replies must be free of credit loops, too */
    int32_t endports_only; /* whether traffic from switches without end ports to LIDs of switches is ignored */
    int32_t by_parts;      /* whether parts of a subtree may change SLs separately; needs sl_by_switch */
    int32_t withdraw;     /* whether `load` still includes the flow of broken paths, along the entries of `preferred` */
    int32_t climb_first;  /* whether paths along the topological order are tried before others */
    const int32_t *first; /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;   /* [C], switch that sends on each channel */
    const int32_t *dst;   /* [C], switch that receives */
    const uint8_t *port;  /* [C], out-port at src */
    const int32_t *into;  /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;    /* [S + 1], where the channels into each switch begin in into */
    const int32_t *at_port;       /* [S, 256], channel behind each out-port, -1: none */
    const int32_t *slot;          /* [C], slot of the first CDG edge of each channel */
    const uint8_t *alive;         /* [C], 0: the channel is lost */
    const int32_t *part;          /* [S], connected part over the channels that are alive */
    const int32_t *lid_switch;    /* [L], switch that delivers each LID, -1: none */
    const uint8_t *lid_port;      /* [L], port of that switch, 0: the switch itself */
    const int32_t *lids_at_first; /* [S + 1], where the LIDs of each switch begin in lids_at */
    const int32_t *lids_at;       /* LIDs sorted by the switch that delivers them */
    const uint8_t *has_endport;   /* [S], whether the switch has CAs or routers */
    const uint16_t *vl_bit;       /* [16], 1 << VL of each SL, 0: packets are dropped */
    const uint8_t *preferred;     /* [S, L], out-ports that are tried first: the previous tables, 255: none */
    const uint8_t *level;         /* [V], an SL that uses each VL, 255: no path may move to the VL */
    const int64_t *slowness;      /* [C], inverse capacity: utilisation is load times slowness */
    const int64_t *weight;        /* [L], the flow from a switch to a LID is sources times weight */
    const int64_t *sources;       /* [S] */
} repair_fabric;

/*
 * Fill the missing entries of LFTs: entries of 255 at switches of the connected part that delivers the LID.
 *
 * treatment: uint8 [L], treatment of each column.  0: fill the missing entries.  1: skip the column.  2: as 0, but
 * first drop the unused CDG edges on the VLs of all such columns.  If a column fails even so, all its entries are
 * removed and it is rebuilt; if that fails, too, it copies the paths of another LID.
 * lft: uint8 [S, L], filled in place.  A column that fails is as it was, or empty (2).
 * sl: uint8 [L] or [S, L].  A path that fits on no VL of its own may get another SL, if SLs depend on the source and
 * replies do not count.  A copied column also takes the SLs of the other LID.
 * dependencies: uint16 [slots], mask of the VLs on which each CDG edge may be used; the edges of new paths are added.
 * order: int32 [V, C], position of each channel in a topological order of these CDG edges; kept up to date.
 * load: int64 [C], flow on each channel, kept up to date.  With `withdraw`, the flow of subtrees that lost their
 * path is first taken off their previous paths.
 * done: uint8 [L], outcome of each column.  0: nothing was missing.  1: repaired.  2: failed.  3: repaired with the
 * paths of another LID.
 * counts: int64 [5]: entries that were missing; entries filled; valid entries that were changed; channels that
 * searches for cycles visited; subtrees that moved to other VLs part by part.
 *
 * Return 0, or 1 if memory ran out.
 */
int ibn_repair_columns(const repair_fabric *fabric, const uint8_t *treatment, uint8_t *lft, uint8_t *sl,
                       uint16_t *dependencies, int32_t *order, int64_t *load, uint8_t *done, int64_t *counts);

/*
 * Move entries of complete LFTs off the channels with the highest utilisation (load times slowness).
 *
 * lft, sl, dependencies, order, load: as for ibn_repair_columns.  Changed entries are counted against
 * fabric->preferred, 255: not counted.
 * goal: channels with at most this utilisation are not relieved.
 * budget: further entries that may differ from fabric->preferred.
 * work: work limit, in steps along paths and channels visited by searches.
 * counts: int64 [3]: entries of the budget that were spent, steps, moves.
 *
 * Return 0, or 1 if memory ran out.
 */
int ibn_repair_rebalance(const repair_fabric *fabric, uint8_t *lft, uint8_t *sl, uint16_t *dependencies, int32_t *order,
                         int64_t *load, int64_t goal, int64_t budget, int64_t work, int64_t *counts);

#endif
