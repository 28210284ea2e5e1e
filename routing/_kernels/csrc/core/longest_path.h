#pragma once
#include <stdint.h>
int ibn_core_digraph_longest_path(int32_t switches, const int32_t *first, const int32_t *dst, int32_t trees,
                                  const uint8_t *next, int32_t *longest);
