#ifndef IBNUE_LAYERING_H
#define IBNUE_LAYERING_H
#include <stdint.h>
/* The fabric, its destinations, and rules for the assignment of paths to layers (VLs). */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;             /* [C], switch that sends */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *into;            /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;      /* [S + 1], index in `into` of the first channel that enters each switch */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse capacity */
    const double *sources;          /* [S], flow from each switch to every end port */
    int32_t targets;                /* D, number of destination LIDs */
    const int32_t *root;            /* [D], switch that delivers each target */
    const double *share;            /* [D], part of the flow to an end port that goes to this LID of the end port */
    const int32_t *at_first;        /* [S + 1], index in `at` of each switch's first target */
    const int32_t *at;              /* [D], targets sorted by the switch that delivers them */
    /* [S], 1: paths from or to the switch are counted paths, which must all get a layer; others may fail to get one */
    const uint8_t *counted;
    /* [CDG edges]: for each edge the layers, as bits, that must not use it in a first round of assignment; NULL: there
     * is no such round */
    const uint32_t *avoid;
    /* [orders, C]: initial topological orders of the first layers, as the position of each channel */
    const int32_t *order;
    int32_t orders; /* number of rows in `order` */
    /* [S]: number of the layer that is tried first for the paths to each switch; NULL: always layer 0 */
    const int32_t *region;
    int64_t budget;        /* number of channels that cycle searches may visit for counted paths (see `counted`) */
    int64_t spare;         /* number of further channels that cycle searches may visit for paths that are not counted */
    int32_t most;          /* largest allowed number of layers, up to 32 */
    int32_t have;          /* number of layers over which the load is spread */
    int32_t mutual;        /* 1: all paths between two switches, in both directions, are put into one layer */
    int32_t rechoose;      /* whether a path that fits into no layer may get another first hop */
    int32_t unload_rounds; /* number of rounds in which next hops move off the channels with the peak utilisation */
} ibn_path_set;
/* Statistics of the assignment. */
typedef struct {
    int32_t needed; /* number of layers that the counted paths need */
    int32_t used;   /* number of layers over which the paths are spread in the end */
    /* number of counted paths that fit into no layer; with `mutual`, number of such pairs of switches */
    int64_t left;
    int64_t left_uncounted; /* number of paths that are not counted and fit into no layer */
    int64_t rechosen;       /* number of paths that got another first hop */
    int64_t unloaded;       /* number of next hops that were moved off the channels with the peak utilisation */
    int64_t visited;        /* number of channels that cycle searches visited */
} ibn_layers;
int ibn_layering_assign(const ibn_path_set *paths, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result);
#endif
