/* Order the switches such that every switch, except the first of each connected part, has a neighbour before it.  In
 * such an order, Up*-down* routing connects all switches of a part. */
#include "trees/switch_order.h"

#include <stdlib.h>

#include "core/internal/heap.h"

static int by_key(const void *a, const void *b)
{
    return ibn_core_heap_before(*(const heap_entry *)a, *(const heap_entry *)b) ? -1 : 1;
}

typedef struct {
    const int32_t *first, *dst;
    const double *key;
    double pull;
    /* position: [S], position of each switch, -1: not placed yet.
     * neighbours: [S], number of channels from placed switches to each switch.
     * number: number of placed switches. */
    int32_t *position, *neighbours, number;
    heap_entry *start; /* [S] switches, sorted by key */
    ibn_heap heap;
} growth_t;

static void grow(growth_t *g, int32_t from)
{
    ibn_core_heap_push(&g->heap, g->key[from], from);
    while (g->heap.size > 0) {
        int32_t u = ibn_core_heap_pop(&g->heap).of;
        if (g->position[u] >= 0)
            continue;
        g->position[u] = g->number++;
        for (int32_t c = g->first[u]; c < g->first[u + 1]; c++) {
            int32_t v = g->dst[c];
            if (g->position[v] < 0)
                ibn_core_heap_push(&g->heap, g->key[v] - g->pull * ++g->neighbours[v], v);
        }
    }
}

/* Order the switches by their keys, such that every switch, except the first of each connected part, has a neighbour
 * before it.  The switch with the smallest key is placed first.  Each further switch is a neighbour of a placed switch.
 * Of all such neighbours, the switch with the smallest value of key - pull * n is placed next.  Here, n is the number
 * of channels from placed switches to the neighbour.  In each further connected part, the switch with the smallest key
 * is placed first.
 *
 * key: double [S], key of each switch; switches with small keys come early.
 * pull: amount by which each channel from a placed switch lowers the key of a neighbour.
 * position: int32 [S], output: position of each switch.
 *
 * Takes O(C log C) time.  Returns 0, or 1 if memory is exhausted. */
int ibn_trees_grow_order(int32_t switches, const int32_t *first, const int32_t *dst, const double *key, double pull,
                         int32_t *position)
{
    size_t room = (size_t)switches + 1, channels = (size_t)first[switches] + 1;
    growth_t g = {.first = first, .dst = dst, .key = key, .pull = pull, .position = position};
    g.start = malloc(room * sizeof *g.start);
    g.neighbours = calloc(room, sizeof *g.neighbours);
    g.heap.entry = malloc((channels + room) * sizeof *g.heap.entry);
    int failed = !g.start || !g.neighbours || !g.heap.entry;
    for (int32_t u = 0; u < switches && !failed; u++) {
        g.start[u] = (heap_entry){.key = key[u], .of = u};
        position[u] = -1;
    }
    if (!failed)
        qsort(g.start, (size_t)switches, sizeof *g.start, by_key);
    for (int32_t s = 0; s < switches && !failed; s++)
        if (position[g.start[s].of] < 0)
            grow(&g, g.start[s].of);
    free(g.start);
    free(g.neighbours);
    free(g.heap.entry);
    return failed;
}
