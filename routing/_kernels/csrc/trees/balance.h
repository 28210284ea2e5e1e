#ifndef IBNUE_BALANCE_H
#define IBNUE_BALANCE_H
#include <stdint.h>
/* Channels of a fabric, and the flow that its switches send. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *src;             /* [C], switch that sends */
    const int32_t *into;            /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;      /* [S + 1], where the channels into each switch begin in into */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse_capacity */
    const double *sources;          /* [S], flow from each switch to every family */
} ibn_network;
/* Destinations (LIDs), grouped into families: the LIDs of one port. */
typedef struct {
    int32_t count;               /* D, number of destination LIDs */
    int32_t families;            /* F, number of families: ports that own LIDs */
    const int32_t *family_first; /* [F + 1], where the destinations of each family begin */
    const int32_t *root;         /* [D], switch that delivers each destination */
    const double *share;         /* [D], part of the flow to the family that goes to this LID; 0: hardly any traffic */
    const int32_t *layer;        /* [D], row of position for each destination; up/down rule only */
} ibn_targets;
typedef struct {
    int32_t passes;          /* refinement passes after the first */
    int32_t threads;         /* does not change the result */
    int32_t bisection;       /* whether channels that a destination's tree uses already cost nothing more */
    double hop_cost;         /* cost of each hop beside the load; 1 is the cost of the channel at the peak */
    uint64_t seed;           /* of the random order of families and switches */
    const int32_t *position; /* [layers, S], order of the switches: up/down rule; NULL: shortest paths */
    const uint8_t
        *allowed; /* [CDG edges], whether a path may take each edge: rule of allowed turns; NULL: other rules */
    const int32_t
        *spanning; /* [S], channel to the parent in a spanning tree of allowed edges, -1: its root; with allowed */
    const int32_t *reverse; /* [C], channel of the same cable in the other direction; with allowed */
    const int32_t *rank;    /* [C], shortest paths use only channels of the lowest rank; NULL: all */
    int32_t rank_from;      /* hops to the destination from which on ranks count; nearer switches use any channel */
} ibn_balance_options;
/* Compute balanced trees: see balance.c. */
int ibn_trees_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                      uint8_t *next, double *load, double *worst);
#endif
