/* Seeded pseudorandom generator (SplitMix64) with the same output on every machine. */
#pragma once

#include <stdint.h>

static inline uint64_t ibn_core_draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline void ibn_core_shuffle(int32_t *items, int32_t count, uint64_t *state)
{
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t j = (int32_t)(((ibn_core_draw(state) >> 32) * (uint64_t)(i + 1)) >> 32);
        int32_t kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}
