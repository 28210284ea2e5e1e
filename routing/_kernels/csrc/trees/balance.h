#pragma once
#include <stdint.h>
/* Switches and channels of a fabric, and the flow that each switch sends. */
typedef struct {
    int32_t switches;          /* S, number of switches */
    int32_t channels;          /* C, number of channels */
    const int32_t *first;      /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;        /* [C], switch where each channel ends */
    const int32_t *src;        /* [C], switch where each channel begins */
    const int32_t *into;       /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1], index in `into` of the first channel that enters each switch */
    /* [C], inverse capacity of each channel; the utilisation is load times inverse_capacity */
    const double *inverse_capacity;
    const double *sources; /* [S], flow that each switch sends to every end port (LMC group) */
} ibn_network;
/* Destinations (LIDs), sorted by end port.  All LIDs of one end port are an LMC group. */
typedef struct {
    int32_t count;                  /* D, number of destination LIDs */
    int32_t lmc_groups;             /* F, number of LMC groups, one for each end port */
    const int32_t *lmc_group_first; /* [F + 1], index of each LMC group's first destination */
    const int32_t *root;            /* [D], switch that delivers each destination */
    /* [D], part of the flow to an end port that goes to each of its LIDs; 0: a LID of a switch, whose traffic is
     * neglected */
    const double *share;
    /* [D], number of the switch order in which the paths to each destination lead up and then down: a row of `position`
     * in ibn_balance_options; used only by the up/down rule */
    const int32_t *layer;
} ibn_targets;
typedef struct {
    int32_t passes;  /* number of further passes after the first pass */
    int32_t threads; /* number of threads; the result does not depend on this number */
    /* 1: balance for permutations and bisections, 0: balance for all-to-all traffic.  With 1, a channel that already
     * carries flow to a destination has no cost for the switches that join the destination's tree later */
    int32_t bisection;
    /* cost of each hop, in addition to the cost of the load; the cost of the load is 1 at the peak utilisation */
    double hop_cost;
    uint64_t seed; /* seed of the random generator, which shuffles LMC groups and switches */
    /* [layers, S], for each switch order of the up/down rule: position of each switch; NULL: another rule is used */
    const int32_t *position;
    const uint8_t
        /* [CDG edges], 1 if a path may use the edge, for the rule of allowed turns; NULL: another rule is used */
        *allowed;
    const int32_t
        /* [S], channel from each switch to its parent in a spanning tree, -1: root.  All turns between channels of the
         * tree are allowed, except turns back over the same link.  Needed only for the rule of allowed turns */
        *spanning;
    const int32_t *reverse; /* [C], channel of the same link in the opposite direction; for the rule of allowed turns */
    /* [C], rank of each channel, for the rule of shortest paths: of the channels on shortest paths, a switch may use
     * only the channels with the lowest rank; NULL: a switch may use all channels on shortest paths */
    const int32_t *rank;
    /* `rank` applies at switches that are at least this number of hops from the destination; nearer switches may use
     * any channel on a shortest path */
    int32_t rank_from;
} ibn_balance_options;
/* Compute balanced trees for all destinations: see balance.c. */
int ibn_trees_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                      uint8_t *next, double *load, double *worst);
