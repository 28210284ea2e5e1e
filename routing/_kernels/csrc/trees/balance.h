#ifndef IBNUE_BALANCE_H
#define IBNUE_BALANCE_H
#include <stdint.h>
/* Switches and channels of a fabric, and the flow that its switches send. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *src;             /* [C], switch that sends */
    const int32_t *into;            /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;      /* [S + 1], index in `into` of the first channel that enters each switch */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse_capacity */
    const double *sources;          /* [S], flow from each switch to every LMC group of destinations */
} ibn_network;
/* Destinations (LIDs), grouped by port: all LIDs of one port are an LMC group. */
typedef struct {
    int32_t count;                  /* D, number of destination LIDs */
    int32_t lmc_groups;             /* F, number of LMC groups: one for each port that owns LIDs */
    const int32_t *lmc_group_first; /* [F + 1], first destination of each LMC group */
    const int32_t *root;            /* [D], switch that delivers each destination */
    /* [D], part of the flow to the port that goes to this LID of the port; 0: hardly any traffic goes there */
    const double *share;
    /* [D], row of `position` that holds the switch order for each destination; used by the up/down rule only */
    const int32_t *layer;
} ibn_targets;
typedef struct {
    int32_t passes;  /* number of refinement passes after the first pass */
    int32_t threads; /* number of threads, which does not change the result */
    /* whether to balance for bisection traffic.  In that case a channel that a destination's tree uses already costs
     * nothing for further switches of the tree. */
    int32_t bisection;
    /* cost of each hop, added to the cost of the load; the channel with the peak utilisation costs 1 */
    double hop_cost;
    uint64_t seed; /* random seed for the order of LMC groups and switches */
    /* [layers, S], position of each switch in an order; if given, the up/down rule is used; NULL: the rule of shortest
     * paths */
    const int32_t *position;
    const uint8_t
        /* [CDG edges], whether a path may use each edge; if given, the rule of allowed turns is used; NULL: another
         * rule */
        *allowed;
    const int32_t
        /* [S], channel of each switch to its parent in a spanning tree of allowed edges, -1: root; needed with
         * `allowed` */
        *spanning;
    const int32_t *reverse; /* [C], channel of the same cable in the other direction; needed with `allowed` */
    /* [C], rank of each channel: the rule of shortest paths allows only channels of the lowest rank; NULL: all
     * channels */
    const int32_t *rank;
    /* number of hops from the destination at which ranks begin to apply; switches nearer to the destination may use any
     * channel */
    int32_t rank_from;
} ibn_balance_options;
/* Compute balanced trees: see balance.c. */
int ibn_trees_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                      uint8_t *next, double *load, double *worst);
#endif
