/* Sort distinct 64-bit keys in place.  Most calls sort the keys of a few channels.  For so few keys, qsort() would
 * spend most of its time on calls of the comparison function. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#define IBN_FEW_KEYS 24
/* Smallest number of keys for which qsort() is used instead of the sort in this file.  For so many keys, qsort() is as
 * fast.  The time of the sort in this file can grow quadratically, unlike the time of qsort(). */
#define IBN_MANY_KEYS 4096

static inline int ibn_core_ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline void ibn_core_insert_keys(int64_t *keys, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        int64_t key = keys[i];
        int32_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

static inline int64_t ibn_core_middle_key(int64_t a, int64_t b, int64_t c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

static inline void ibn_core_sort_keys(int64_t *keys, int32_t count)
{
    if (count >= IBN_MANY_KEYS) {
        qsort(keys, (size_t)count, sizeof *keys, ibn_core_ascending);
        return;
    }
    while (count > IBN_FEW_KEYS) {
        int64_t middle = ibn_core_middle_key(keys[0], keys[count / 2], keys[count - 1]);
        int32_t i = 0, j = count - 1;
        while (i <= j) {
            while (keys[i] < middle)
                i++;
            while (keys[j] > middle)
                j--;
            if (i > j)
                break;
            int64_t key = keys[i];
            keys[i++] = keys[j];
            keys[j--] = key;
        }
        /* The keys up to index j are now at most as large as the keys from index i on.  Sort the part with fewer keys
         * by recursion, and the other part by this loop.  So the recursion depth is at most logarithmic. */
        if (j + 1 < count - i) {
            ibn_core_sort_keys(keys, j + 1);
            keys += i;
            count -= i;
        } else {
            ibn_core_sort_keys(keys + i, count - i);
            count = j + 1;
        }
    }
    ibn_core_insert_keys(keys, count);
}
