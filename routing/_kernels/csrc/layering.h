#ifndef IBNUE_LAYERING_H
#define IBNUE_LAYERING_H
#include <stdint.h>
typedef struct {
    int32_t switches;
    int32_t channels;
    const int32_t *first;
    const int32_t *src;
    const int32_t *dst;
    const int32_t *into;
    const int32_t *into_first;
    const double *slowness;
    const double *sources;
    int32_t targets;
    const int32_t *root;
    const double *share;
    const int32_t *at_first;
    const int32_t *at;
    const uint8_t *counted;
    const uint32_t *avoid;
    const int32_t *order;
    int32_t orders;
    const int32_t *region;
    int64_t budget;
    int64_t spare;
    int32_t most;
    int32_t have;
    int32_t mutual;
    int32_t rechoose;
    int32_t easing;
} ibn_ways;
typedef struct {
    int32_t needed;
    int32_t used;
    int64_t left;
    int64_t left_uncounted;
    int64_t rechosen;
    int64_t eased;
    int64_t visited;
} ibn_layers;
int ibn_layering(const ibn_ways *ways, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result);
#endif
