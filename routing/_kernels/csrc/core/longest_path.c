/* Find the number of hops of the longest path in forwarding trees. */
#include "core/longest_path.h"

#include <stdlib.h>

#define NO_CHANNEL 255

/* Return the number of hops of the longest path in one tree.  The path from each switch is followed only up to a switch
 * from which the number of hops is already known. */
static int32_t deepest(int32_t switches, const int32_t *first, const int32_t *dst, const uint8_t *next, int32_t *hops,
                       int32_t *path)
{
    int32_t most = 0;
    for (int32_t s = 0; s < switches; s++)
        hops[s] = next[s] == NO_CHANNEL ? 0 : -1;
    for (int32_t s = 0; s < switches; s++) {
        int32_t u = s, length = 0;
        for (; hops[u] < 0; u = dst[first[u] + next[u]])
            path[length++] = u;
        for (int32_t known = hops[u]; length > 0;)
            hops[path[--length]] = ++known;
        most = hops[s] > most ? hops[s] : most;
    }
    return most;
}

/* Set *longest to the number of hops of the longest path in any of several forwarding trees.
 *
 * next: uint8 [trees, S], index of each switch's next channel among the channels out of the switch; 255: the path ends
 * at this switch.
 *
 * Takes O(trees S) time.  Returns 0, or 1 if memory is exhausted. */
int ibn_core_digraph_longest_path(int32_t switches, const int32_t *first, const int32_t *dst, int32_t trees,
                                  const uint8_t *next, int32_t *longest)
{
    int32_t *hops = malloc(((size_t)switches + 1) * sizeof *hops);
    int32_t *path = malloc(((size_t)switches + 1) * sizeof *path);
    int failed = !hops || !path;
    *longest = 0;
    for (int32_t tree = 0; tree < trees && !failed; tree++) {
        int32_t most = deepest(switches, first, dst, next + (int64_t)tree * switches, hops, path);
        *longest = most > *longest ? most : *longest;
    }
    free(hops);
    free(path);
    return failed;
}
