#include "cdg/order.h"
#include "core/parallel.h"

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

/* Sort the channels topologically by the dependencies of one VL (Kahn's algorithm).  A channel is queued as soon as all
 * channels that depend on this channel have positions.  Returns the number of channels that got a position.
 *
 * bit: number of the bit that stands for the VL in g->dep.
 * order: int32 [C], output: position of each channel, -1 if the channel got no position.
 * dependencies, queue: int32 [C] each, scratch. */
static int32_t sort(const cdg_dependencies *g, uint32_t bit, int32_t *order, int32_t *dependencies, int32_t *queue)
{
    int32_t tail = 0, head = 0;
    memset(dependencies, 0, g->channels * sizeof *dependencies);
    for (int32_t c = 0; c < g->channels; c++) {
        const int32_t from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
        const uint32_t *dep = g->dep + g->slot[c];
        for (int32_t n = from; n < to; n++)
            dependencies[n] += dep[n - from] >> bit & 1;
    }
    for (int32_t c = 0; c < g->channels; c++) {
        order[c] = -1;
        queue[tail] = c;
        tail += dependencies[c] == 0;
    }
    for (; head < tail; head++) {
        const int32_t c = queue[head], from = g->first[g->dst[c]], to = g->first[g->dst[c] + 1];
        const uint32_t *dep = g->dep + g->slot[c];
        order[c] = head;
        for (int32_t n = from; n < to; n++) {
            int32_t on = dep[n - from] >> bit & 1;
            dependencies[n] -= on;
            queue[tail] = n;
            tail += on & (dependencies[n] == 0);
        }
    }
    return tail;
}

static void run(void *context, int32_t i)
{
    job *j = context;
    size_t channels = j->g->channels;
    int32_t *dependencies = malloc((channels + 1) * sizeof *dependencies),
            *queue = malloc((channels + 1) * sizeof *queue);
    if (dependencies && queue)
        j->ordered[i] = sort(j->g, j->bits[i], j->order + i * channels, dependencies, queue);
    else
        atomic_store(&j->failed, NO_MEMORY);
    free(dependencies);
    free(queue);
}

int ibn_cdg_order(const cdg_dependencies *graph, int32_t count, const uint8_t *bits, int32_t *order, int32_t *ordered)
{
    job j = {.g = graph, .bits = bits, .order = order, .ordered = ordered};
    int code = ibn_core_parallel(graph->threads, count, run, &j);
    return code ? code : atomic_load(&j.failed);
}
