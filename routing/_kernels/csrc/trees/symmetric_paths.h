#pragma once
#include <stdint.h>
/* Compute paths between switches, such that each reply path is the path of the request in reverse: see
 * symmetric_paths.c. */
int ibn_trees_symmetric_paths(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                              const double *inverse_capacity, const double *sources, int32_t passes, uint64_t seed,
                              uint8_t *next, double *load, double *worst);
/* A fabric with bundles of parallel channels, and the LIDs that its switches deliver. */
typedef struct {
    int32_t switches;            /* S, number of switches */
    int32_t channels;            /* C, number of channels */
    int32_t targets;             /* D, number of destination LIDs */
    const int32_t *first;        /* [S + 1], first channel out of each switch */
    const int32_t *dst;          /* [C], switch where each channel ends */
    const int32_t *bundle;       /* [C], number of the bundle to which each channel belongs; a bundle is all parallel
                                  * channels from one switch to another */
    const int32_t *bundle_first; /* [S + 1], first bundle out of each switch */
    const double *inverse_capacity; /* [C], inverse capacity of each channel */
    const double *sources;          /* [S], flow that each switch sends to every end port */
    const int32_t *root;            /* [D], switch that delivers each LID */
    const double *share;            /* [D], part of the flow to an end port that goes to each of its LIDs */
    const int32_t *at_first;        /* [S + 1], index in `at` of each switch's first LID */
    const int32_t *at;              /* [D], LIDs sorted by the switch that delivers them */
} ibn_link_bundles;
/* Choose one of several parallel channels for every LID: see spread_parallel.c. */
int ibn_trees_spread_parallel(const ibn_link_bundles *fabric, const uint8_t *hop, uint8_t *next, double *load);
