#ifndef IBNUE_MIRROR_H
#define IBNUE_MIRROR_H
#include <stdint.h>
int ibn_mirror(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
               const double *slowness, const double *sources, int32_t passes, uint64_t seed, uint8_t *next,
               double *load, double *worst);
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t targets;
    const int32_t *first;
    const int32_t *dst;
    const int32_t *trunk;
    const int32_t *trunk_first;
    const double *slowness;
    const double *sources;
    const int32_t *root;
    const double *share;
    const int32_t *at_first;
    const int32_t *at;
} ibn_trunked;
int ibn_spread(const ibn_trunked *fabric, const uint8_t *hop, uint8_t *next, double *load);
#endif
