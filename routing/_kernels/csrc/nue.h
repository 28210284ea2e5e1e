#ifndef IBNUE_NUE_H
#define IBNUE_NUE_H
#include <stdint.h>
#include "balance.h"
typedef struct {
    int32_t layers;
    int32_t passes;
    int32_t full_passes;
    int32_t threads;
    int32_t started;
    double hop_cost;
    uint64_t seed;
    const int32_t *parent;
    const double *rank;
    const int32_t *reverse;
} ibn_nue_options;
int ibn_nue(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
            int32_t *layer, int32_t *escaped, double *load, double *worst);
#endif
