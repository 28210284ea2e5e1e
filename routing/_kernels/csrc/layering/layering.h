#ifndef IBNUE_LAYERING_H
#define IBNUE_LAYERING_H
#include <stdint.h>
/* Paths to be put into layers, and how. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *src;             /* [C], switch that sends */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *into;            /* [C], channels sorted by the switch that they enter */
    const int32_t *into_first;      /* [S + 1], where the channels into each switch begin in into */
    const double *inverse_capacity; /* [C], inverse capacity */
    const double *sources;          /* [S], flow from each switch to every end port */
    int32_t targets;                /* D, number of destination LIDs */
    const int32_t *root;            /* [D], switch that delivers each target */
    const double *share;            /* [D], part of the flow that goes to the target */
    const int32_t *at_first;        /* [S + 1], where the targets of each switch begin in at */
    const int32_t *at;              /* [D], targets sorted by the switch that delivers them */
    const uint8_t *counted;         /* [S], a path counts if the switch at one of its ends is marked */
    const uint32_t *avoid;          /* [CDG edges], mask of the layers that a first round avoids; NULL: no such round */
    const int32_t *order;           /* [orders, C], initial order of the channels in the first layers */
    int32_t orders;                 /* number of rows in `order` */
    const int32_t *region;          /* [S], layer at which the search for paths to a switch begins; NULL: 0 */
    int64_t budget;                 /* channels that searches may visit for the paths that count */
    int64_t spare;                  /* further channels that they may visit for the other paths */
    int32_t most;                   /* most layers that may be used, up to 32 */
    int32_t have;                   /* layers over which the load is spread */
    int32_t mutual;                 /* 1: all paths between two switches, in both directions, get one layer */
    int32_t rechoose;               /* whether a path that fits nowhere may take another first hop */
    int32_t unload_rounds;          /* rounds in which next hops move off the channels at the peak */
} ibn_path_set;
/* Counts of the result. */
typedef struct {
    int32_t needed;         /* layers that the paths that count need */
    int32_t used;           /* layers over which the paths are spread */
    int64_t left;           /* paths that count and found no layer; with mutual, pairs of switches */
    int64_t left_uncounted; /* other paths that found no layer */
    int64_t rechosen;       /* paths that took another first hop */
    int64_t unloaded;       /* next hops that were moved off the channels at the peak */
    int64_t visited;        /* channels that searches for cycles visited */
} ibn_layers;
int ibn_layering_assign(const ibn_path_set *paths, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result);
#endif
