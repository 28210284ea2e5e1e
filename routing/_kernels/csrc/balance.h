#ifndef IBNUE_BALANCE_H
#define IBNUE_BALANCE_H
#include <stdint.h>
typedef struct {
    int32_t switches;
    int32_t channels;
    const int32_t *first;
    const int32_t *dst;
    const int32_t *src;
    const int32_t *into;
    const int32_t *into_first;
    const double *slowness;
    const double *sources;
} ibn_network;
typedef struct {
    int32_t count;
    int32_t families;
    const int32_t *family_first;
    const int32_t *root;
    const double *share;
    const int32_t *layer;
} ibn_targets;
typedef struct {
    int32_t passes;
    int32_t threads;
    int32_t bisection;
    double hop_cost;
    uint64_t seed;
    const int32_t *position;
    const int32_t *rank;
} ibn_balance_options;
int ibn_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                uint8_t *next, double *load, double *worst);
#endif
