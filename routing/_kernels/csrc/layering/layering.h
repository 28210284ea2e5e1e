#pragma once
#include <stdint.h>
/* The fabric, its destinations, and rules for the assignment of paths to layers.  A layer is a VL with its CDG. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;             /* [C], switch where each channel begins */
    const int32_t *dst;             /* [C], switch where each channel ends */
    const int32_t *into;            /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;      /* [S + 1], index in `into` of the first channel that enters each switch */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse capacity */
    const double *sources;          /* [S], flow that each switch sends to one end port */
    int32_t targets;                /* D, number of destination LIDs */
    const int32_t *root;            /* [D], switch that delivers each target */
    const double *share;            /* [D], part of the flow to an end port that goes to this LID of the end port */
    const int32_t *at_first;        /* [S + 1], index in `at` of each switch's first target */
    const int32_t *at;              /* [D], targets sorted by the switch that delivers them */
    /* [S], 1: each path that begins or ends at this switch is a counted path.  A counted path must get a layer; any
     * other path may stay without a layer */
    const uint8_t *counted;
    /* [CDG edges]: for each edge, the layers, as bits, that must not use the edge in a first attempt to place the
     * counted paths.  A second attempt has no such restriction, and places the counted paths that fitted into no layer
     * before.  NULL: there is no first attempt */
    const uint32_t *avoid;
    /* [orders, C]: position of each channel in the initial topological order of each of the first `orders` layers */
    const int32_t *order;
    int32_t orders; /* number of layers that have an initial order in `order` */
    /* [S]: number of the layer that is tried first for the paths to each switch; NULL: layer 0 is tried first */
    const int32_t *region;
    /* number of channels that cycle searches may visit while counted paths are placed (see `counted`) */
    int64_t budget;
    /* number of further channels that cycle searches may visit while the uncounted paths are placed */
    int64_t spare;
    int32_t most; /* largest allowed number of layers, up to 32 */
    int32_t have; /* smallest number of layers over which the load is spread in the end */
    /* 1: all paths between two switches, in both directions, are put into one layer; 0: each path gets its layer
     * separately */
    int32_t mutual;
    int32_t rechoose; /* 1: a path that fits into no layer may get another first hop */
    /* largest number of rounds in which next hops are moved.  Each round moves a next hop off each channel that has the
     * peak utilisation */
    int32_t unload_rounds;
} ibn_path_set;
/* Statistics of an assignment of paths to layers. */
typedef struct {
    int32_t needed; /* number of layers that the counted paths need (`counted` in ibn_path_set) */
    int32_t used;   /* number of layers over which the paths are spread in the end */
    /* number of counted paths that fit into no layer; if `mutual` is set, number of pairs of switches with counted
     * paths that fit into no layer */
    int64_t left;
    /* number of paths that are not counted paths and fit into no layer; if `mutual` is set, number of pairs of switches
     * without counted paths whose paths fit into no layer */
    int64_t left_uncounted;
    /* number of paths that got another first hop; if `mutual` is set, number of pairs of switches with such paths */
    int64_t rechosen;
    int64_t unloaded; /* number of next hops that were moved off the channels with the peak utilisation */
    int64_t visited;  /* number of channels that cycle searches have visited */
} ibn_layers;
int ibn_layering_assign(const ibn_path_set *paths, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result);
