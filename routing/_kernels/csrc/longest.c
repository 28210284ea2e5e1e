/* Hops of the longest way in a set of trees. */
#include "longest.h"

#include <stdlib.h>

#define NO_CHANNEL 255

/* Hops from every switch, each walked only as far as the next one whose hops are known. */
static int32_t deepest(int32_t switches, const int32_t *first, const int32_t *dst, const uint8_t *next, int32_t *hops,
                       int32_t *way)
{
    int32_t most = 0;
    for (int32_t s = 0; s < switches; s++)
        hops[s] = next[s] == NO_CHANNEL ? 0 : -1;
    for (int32_t s = 0; s < switches; s++) {
        int32_t u = s, length = 0;
        for (; hops[u] < 0; u = dst[first[u] + next[u]])
            way[length++] = u;
        for (int32_t known = hops[u]; length > 0;)
            hops[way[--length]] = ++known;
        most = hops[s] > most ? hops[s] : most;
    }
    return most;
}

/* next: uint8 [trees, S], index of each switch's channel among its own, 255 where a way ends.  O(trees S). */
int ibn_longest_way(int32_t switches, const int32_t *first, const int32_t *dst, int32_t trees, const uint8_t *next,
                    int32_t *longest)
{
    int32_t *hops = malloc(((size_t)switches + 1) * sizeof *hops);
    int32_t *way = malloc(((size_t)switches + 1) * sizeof *way);
    int failed = !hops || !way;
    *longest = 0;
    for (int32_t tree = 0; tree < trees && !failed; tree++) {
        int32_t most = deepest(switches, first, dst, next + (int64_t)tree * switches, hops, way);
        *longest = most > *longest ? most : *longest;
    }
    free(hops);
    free(way);
    return failed;
}
