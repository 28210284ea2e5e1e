#include "core/digraph.h"

#include <stdlib.h>

enum { OK, NO_MEMORY };

int ibn_core_digraph_sort(int32_t n, const int32_t *first, const int32_t *to, int32_t *place, int32_t *placed)
{
    int32_t *in_degree = calloc((size_t)n + 1, sizeof *in_degree), *queue = malloc(((size_t)n + 1) * sizeof *queue);
    int32_t tail = 0;
    int code = in_degree && queue ? OK : NO_MEMORY;
    if (code == OK) {
        for (int32_t e = 0; e < first[n]; e++)
            in_degree[to[e]]++;
        for (int32_t v = 0; v < n; v++) {
            place[v] = -1;
            queue[tail] = v;
            tail += in_degree[v] == 0;
        }
        for (int32_t head = 0; head < tail; head++) {
            place[queue[head]] = head;
            for (int32_t e = first[queue[head]]; e < first[queue[head] + 1]; e++) {
                queue[tail] = to[e];
                tail += --in_degree[to[e]] == 0;
            }
        }
    }
    *placed = tail;
    free(in_degree);
    free(queue);
    return code;
}

typedef struct {
    const int32_t *first, *to;
    uint8_t *alive; /* [n]: 1: the vertex may lie on a cycle, and no search has started from it yet; 0: searches leave
                     * the vertex out */
    /* distance: [n], number of vertices on the path from the start to each vertex; 0: not visited.
     * parent: [n], preceding vertex on this path.
     * queue: [n], the vertices to be visited. */
    int32_t *distance, *parent, *queue;
} search;

/* Search breadth-first for a cycle through vertex `start` that has fewer than `below` vertices.  Only vertices in
 * `alive` are visited.  Vertices from which earlier searches started are not in `alive`, because their shortest cycles
 * are known.  Returns the last vertex of the cycle, or -1 if there is no such cycle.  *length receives the number of
 * vertices of the cycle. */
static int32_t close_from(search *s, int32_t start, int32_t below, int32_t *length)
{
    int32_t tail = 1, found = -1;
    s->queue[0] = start;
    s->distance[start] = 1;
    for (int32_t head = 0; head < tail && found < 0; head++) {
        const int32_t v = s->queue[head], depth = s->distance[v];
        if (depth >= below)
            break;
        for (int32_t e = s->first[v]; e < s->first[v + 1]; e++) {
            const int32_t n = s->to[e];
            if (n == start) {
                found = v;
                *length = depth;
                break;
            }
            if (s->alive[n] && s->distance[n] == 0 && depth + 1 < below) {
                s->distance[n] = depth + 1;
                s->parent[n] = v;
                s->queue[tail++] = n;
            }
        }
    }
    for (int32_t i = 0; i < tail; i++)
        s->distance[s->queue[i]] = 0;
    return found;
}

/* Remove from `alive` every vertex without a successor in `alive`, until each remaining vertex has such a successor.
 * The removed vertices cannot lie on a cycle. */
static void strip_ends(search *s, int32_t n)
{
    for (int changed = 1; changed;) {
        changed = 0;
        for (int32_t v = n - 1; v >= 0; v--) {
            if (!s->alive[v])
                continue;
            int32_t e = s->first[v];
            while (e < s->first[v + 1] && !s->alive[s->to[e]])
                e++;
            if (e == s->first[v + 1])
                s->alive[v] = 0, changed = 1;
        }
    }
}

/* Find a shortest cycle among the vertices in `alive`.  *length receives its number of vertices, or 0 if there is no
 * cycle.  The search ends as soon as it finds a cycle of at most `enough` vertices. */
static void find_shortest(search *s, int32_t n, int32_t enough, int32_t *cycle, int32_t *length)
{
    int32_t below = n + 1;
    for (int32_t start = 0; start < n && below > enough; start++) {
        if (!s->alive[start])
            continue;
        int32_t last = close_from(s, start, below, length);
        s->alive[start] = 0;
        if (last < 0)
            continue;
        below = *length;
        for (int32_t i = below - 1; i > 0; i--, last = s->parent[last])
            cycle[i] = last;
        cycle[0] = start;
    }
    *length = below <= n ? below : 0;
}

int ibn_core_digraph_find_cycle(int32_t n, const int32_t *first, const int32_t *to, int32_t enough, int32_t *cycle,
                                int32_t *length)
{
    size_t size = ((size_t)n + 1) * sizeof(int32_t);
    search s = {first, to, malloc((size_t)n + 1), calloc(1, size), malloc(size), malloc(size)};
    int32_t placed;
    int code = s.alive && s.distance && s.parent && s.queue ? OK : NO_MEMORY;
    *length = 0;
    if (code == OK)
        code = ibn_core_digraph_sort(n, first, to, s.queue, &placed);
    if (code == OK) {
        for (int32_t v = 0; v < n; v++)
            s.alive[v] = s.queue[v] < 0;
        strip_ends(&s, n);
        find_shortest(&s, n, enough, cycle, length);
    }
    free(s.alive);
    free(s.distance);
    free(s.parent);
    free(s.queue);
    return code;
}
