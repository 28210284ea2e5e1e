#ifndef IBNUE_NUE_H
#define IBNUE_NUE_H
#include <stdint.h>
#include "trees/balance.h"
/* Options of the Nue kernel. */
typedef struct {
    int32_t layers;
    int32_t passes; /* number of refinement passes, after the first pass or after the given trees */
    /* number of passes, including the first, that compute every tree; later passes recompute only trees close to the
     * peak */
    int32_t full_passes;
    int32_t threads; /* number of threads, which does not change the result */
    int32_t started; /* 1: `next` holds initial trees, 0: the first pass computes all trees */
    /* cost of each hop, added to the cost of the load; the channel with the peak utilisation costs 1 */
    double hop_cost;
    uint64_t seed;          /* random seed for the order of LMC groups and switches */
    const int32_t *parent;  /* [layers, S], channel of each switch to its parent in the escape tree, -1 at the root */
    const double *rank;     /* [layers, C], initial order of the channels: paths prefer channels of lower ranks */
    const int32_t *reverse; /* [C], channel of the same cable in the opposite direction */
} ibn_nue_options;
/* Compute trees with acyclic dependencies in every layer: see nue.c. */
int ibn_nue_route(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
                  int32_t *layer, int32_t *escaped, double *load, double *worst);
#endif
