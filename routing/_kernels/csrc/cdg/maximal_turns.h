#pragma once
#include <stdint.h>
/* Select each CDG edge of a sequence that closes no cycle with the edges selected before: see maximal_turns.c. */
int ibn_cdg_maximal_turns(int32_t switches, int32_t channels, const int32_t *first, const int32_t *src,
                          const int32_t *dst, const int32_t *into, const int32_t *into_first, int32_t *order,
                          const int32_t *sequence, int32_t count, uint8_t *allowed);
