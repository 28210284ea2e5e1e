#include "cdg_order.h"
#include "parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };

typedef struct {
    const cdg_dependencies *g;
    const uint8_t *bits;
    int32_t *order, *ordered;
    atomic_int failed;
} job;

/* Kahn's algorithm; a queue, so that the order does not hang on anything but the graph. */
static int32_t sort(const cdg_dependencies *g, uint32_t bit, int32_t *order, int32_t *waits, int32_t *queue)
{
    int32_t tail = 0, head = 0;
    memset(waits, 0, g->channels * sizeof *waits);
    for (int32_t c = 0; c < g->channels; c++) {
        const int32_t from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
        const uint32_t *dep = g->dep + g->slot[c];
        for (int32_t n = from; n < to; n++)
            waits[n] += dep[n - from] >> bit & 1;
    }
    for (int32_t c = 0; c < g->channels; c++) {
        order[c] = -1;
        queue[tail] = c;
        tail += waits[c] == 0;
    }
    for (; head < tail; head++) {
        const int32_t c = queue[head], from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
        const uint32_t *dep = g->dep + g->slot[c];
        order[c] = head;
        for (int32_t n = from; n < to; n++) {
            int32_t on = dep[n - from] >> bit & 1;
            waits[n] -= on;
            queue[tail] = n;
            tail += on & (waits[n] == 0);
        }
    }
    return tail;
}

static void run(void *context, int32_t i)
{
    job *j = context;
    size_t channels = j->g->channels;
    int32_t *waits = malloc((channels + 1) * sizeof *waits), *queue = malloc((channels + 1) * sizeof *queue);
    if (waits && queue)
        j->ordered[i] = sort(j->g, j->bits[i], j->order + i * channels, waits, queue);
    else
        atomic_store(&j->failed, NO_MEMORY);
    free(waits);
    free(queue);
}

int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered)
{
    job j = {.g = graph, .bits = bits, .order = order, .ordered = ordered};
    int code = ibn_parallel(graph->threads, count, run, &j);
    return code ? code : atomic_load(&j.failed);
}

typedef struct {
    int32_t *distance, *parent, *queue;
} search;

/*
 * Breadth first from `start` among channels that are not below it and lie on the way of a cycle (`alive`), to a depth
 * under `below`; returns the last channel of the shortest cycle, or -1.
 */
static int32_t close_from(const cdg_dependencies *g, uint32_t bit, const uint8_t *alive, int32_t start, int32_t below,
                          search *s, int32_t *length)
{
    int32_t tail = 1, found = -1;
    s->queue[0] = start;
    s->distance[start] = 1;
    for (int32_t head = 0; head < tail && found < 0; head++) {
        const int32_t c = s->queue[head], from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
        const uint32_t *dep = g->dep + g->slot[c];
        if (s->distance[c] >= below)
            break;
        for (int32_t n = from; n < to && found < 0; n++) {
            if (!(dep[n - from] >> bit & 1) || n < start || !alive[n])
                continue;
            if (n == start) {
                found = c;
                *length = s->distance[c];
            } else if (s->distance[n] == 0) {
                s->distance[n] = s->distance[c] + 1;
                s->parent[n] = c;
                s->queue[tail++] = n;
            }
        }
    }
    for (int32_t i = 0; i < tail; i++)
        s->distance[s->queue[i]] = 0;
    return found;
}

/* Leave out what no cycle follows: channels whose dependencies all lead to channels that are out already. */
static void mark_alive(const cdg_dependencies *g, uint32_t bit, const int32_t *order, uint8_t *alive)
{
    int changed = 1;
    for (int32_t c = 0; c < g->channels; c++)
        alive[c] = order[c] < 0;
    while (changed) {
        changed = 0;
        for (int32_t c = 0; c < g->channels; c++) {
            const int32_t from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
            const uint32_t *dep = g->dep + g->slot[c];
            int32_t n = from;
            if (!alive[c])
                continue;
            while (n < to && !(alive[n] && dep[n - from] >> bit & 1))
                n++;
            if (n == to)
                alive[c] = 0, changed = 1;
        }
    }
}

int ibn_cdg_cycle(const cdg_dependencies *g, int32_t bit, const int32_t *order, int32_t below, int32_t *cycle,
              int32_t *length)
{
    size_t channels = g->channels + 1;
    uint8_t *alive = malloc(channels);
    search s = {calloc(channels, 4), malloc(channels * 4), malloc(channels * 4)};
    int code = alive && s.distance && s.parent && s.queue ? OK : NO_MEMORY;
    *length = 0;
    if (code == OK)
        mark_alive(g, bit, order, alive);
    for (int32_t start = 0; code == OK && start < g->channels && below > 2; start++) {
        int32_t found_length = 0;
        int32_t last = alive[start] ? close_from(g, bit, alive, start, below, &s, &found_length) : -1;
        if (last < 0)
            continue;
        *length = below = found_length;
        for (int32_t i = found_length - 1; i > 0; i--, last = s.parent[last])
            cycle[i] = last;
        cycle[0] = start;
    }
    free(alive);
    free(s.distance);
    free(s.parent);
    free(s.queue);
    return code;
}
