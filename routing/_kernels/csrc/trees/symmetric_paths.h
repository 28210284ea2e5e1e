#ifndef IBNUE_SYMMETRIC_PATHS_H
#define IBNUE_SYMMETRIC_PATHS_H
#include <stdint.h>
/* Compute mirrored paths between switches: see symmetric_paths.c. */
int ibn_trees_symmetric_paths(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                              const double *inverse_capacity, const double *sources, int32_t passes, uint64_t seed,
                              uint8_t *next, double *load, double *worst);
/* A fabric with bundles of parallel channels, and the LIDs that its switches deliver. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t channels;               /* C, number of channels */
    int32_t targets;                /* D, number of destination LIDs */
    const int32_t *first;           /* [S + 1], where the channels of each switch begin */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *trunk;           /* [C], bundle of parallel channels that each channel belongs to */
    const int32_t *trunk_first;     /* [S + 1], where the bundles of each switch begin */
    const double *inverse_capacity; /* [C], inverse capacity */
    const double *sources;          /* [S], flow from each switch to every end port */
    const int32_t *root;            /* [D], switch that delivers each LID */
    const double *share;            /* [D], part of the flow that goes to the LID */
    const int32_t *at_first;        /* [S + 1], where the targets of each switch begin in at */
    const int32_t *at;              /* [D], targets sorted by the switch that delivers them */
} ibn_link_bundles;
/* Choose among parallel channels for every LID: see spread_parallel.c. */
int ibn_trees_spread_parallel(const ibn_link_bundles *fabric, const uint8_t *hop, uint8_t *next, double *load);
#endif
