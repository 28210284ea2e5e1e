#ifndef IBNUE_NUE_H
#define IBNUE_NUE_H
#include <stdint.h>
#include "trees/balance.h"
/* Options of the Nue kernel. */
typedef struct {
    int32_t layers;
    int32_t passes;         /* refinement passes after the first, or after the given trees */
    int32_t full_passes;    /* passes, the first included, that compute every tree */
    int32_t threads;        /* number of threads, which does not change the result */
    int32_t started;        /* whether next holds trees to begin with */
    double hop_cost;        /* cost of each hop in addition to that of the load; the channel at the peak costs 1 */
    uint64_t seed;          /* random seed of the order of families and switches */
    const int32_t *parent;  /* [layers, S], escape tree: channel towards its root, -1 at the root */
    const double *rank;     /* [layers, C], initial order of the channels: paths use smaller ranks first */
    const int32_t *reverse; /* [C], channel in the opposite direction */
} ibn_nue_options;
/* Compute trees with acyclic dependencies in every layer: see nue.c. */
int ibn_nue_route(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
                  int32_t *layer, int32_t *escaped, double *load, double *worst);
#endif
