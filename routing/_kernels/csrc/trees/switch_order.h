#pragma once
#include <stdint.h>
int ibn_trees_grow_order(int32_t switches, const int32_t *first, const int32_t *dst, const double *key, double pull,
                         int32_t *position);
int ibn_trees_mean_distance(int32_t switches, const int32_t *first, const int32_t *dst, int32_t layers,
                            const int64_t *weight, int32_t threads, double *mean);
