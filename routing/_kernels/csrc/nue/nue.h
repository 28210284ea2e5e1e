#pragma once
#include <stdint.h>
#include "trees/balance.h"
/* Options of the Nue kernel: passes, costs, and the escape tree and initial channel order of each layer. */
typedef struct {
    int32_t layers;
    int32_t passes; /* number of refinement passes, which follow the first pass or the initial trees */
    /* number of passes, including the first pass, that compute every tree; later passes recompute only trees that use a
     * channel close to the peak utilisation */
    int32_t full_passes;
    int32_t threads; /* number of threads, which does not change the result */
    int32_t started; /* 1: the array `next` holds initial trees on entry; 0: the first pass computes all trees */
    /* constant part of the cost of each channel, which makes short paths cheaper.  For comparison: the load of the
     * channel with the peak utilisation costs 1 */
    double hop_cost;
    uint64_t seed; /* seed of the random generator, which shuffles LMC groups and switches */
    /* [layers, S], channel from each switch to its parent in the escape tree of each layer, -1 at the root */
    const int32_t *parent;
    /* [layers, C], rank of each channel in the initial order of each layer; along a path, the ranks of the channels
     * should increase */
    const double *rank;
    const int32_t *reverse; /* [C], channel of the same link in the opposite direction */
} ibn_nue_options;
/* Compute trees with acyclic dependencies in every layer: see nue.c. */
int ibn_nue_route(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
                  int32_t *layer, int32_t *escaped, double *load, double *worst);
