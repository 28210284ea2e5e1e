/* Compute paths of least weight, one destination after the other.  The weight of a channel is (initial weight + flow to
 * the destinations routed so far) * inverse capacity. */
#include "trees/weighted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal/heap.h"

#define NO_CHANNEL 255

typedef struct {
    const ibn_network *net;
    /* weight: [C], weight of each channel.
     * cost: [S], weight of each switch's path to the root.
     * through: [S], flow through each switch. */
    double *weight, *cost, *through;
    /* [C + S] heap of switches, ordered by the weight of their paths; a switch may be in the heap several times */
    ibn_heap heap;
    /* settled: [S], switches whose path is final, the switch with the lightest path first; count: number of these
     * switches */
    int32_t *settled, count;
} job_t;

/* Find the paths of least weight to the root (Dijkstra's algorithm, backwards from the root).  Of several paths with
 * equal weight, the path that was found first is kept. */
static void grow(job_t *job, int32_t root, uint8_t *next)
{
    const ibn_network *net = job->net;
    memset(next, NO_CHANNEL, (size_t)net->switches);
    for (int32_t u = 0; u < net->switches; u++)
        job->cost[u] = INFINITY;
    job->cost[root] = 0.0;
    job->heap.size = job->count = 0;
    ibn_core_heap_push(&job->heap, 0.0, root);
    while (job->heap.size > 0) {
        heap_entry nearest = ibn_core_heap_pop(&job->heap);
        if (nearest.key > job->cost[nearest.of])
            continue;
        job->settled[job->count++] = nearest.of;
        for (int32_t i = net->into_first[nearest.of]; i < net->into_first[nearest.of + 1]; i++) {
            int32_t c = net->into[i], u = net->src[c];
            double cost = nearest.key + job->weight[c];
            if (cost >= job->cost[u])
                continue;
            job->cost[u] = cost;
            next[u] = (uint8_t)(c - net->first[u]);
            ibn_core_heap_push(&job->heap, cost, u);
        }
    }
}

/* Add the flow of a tree to the loads and to the weights of its channels.  The farthest switches are visited first, so
 * the flow through a switch is complete when the switch is visited.  `share` is the part of the flow to an end port
 * that goes to the tree's LID. */
static void add_flow(job_t *job, const uint8_t *next, double share, double *load)
{
    const ibn_network *net = job->net;
    for (int32_t u = 0; u < net->switches; u++)
        job->through[u] = net->sources[u] * share;
    for (int32_t i = job->count - 1; i > 0; i--) {
        int32_t u = job->settled[i], c = net->first[u] + next[u];
        job->through[net->dst[c]] += job->through[u];
        load[c] += job->through[u];
        job->weight[c] += job->through[u] * net->inverse_capacity[c];
    }
}

/* Compute the trees of all destinations.
 *
 * next: uint8 [D, S], output: by destination and switch, the index of the next channel among the switch's channels
 * (255: none).
 * load: double [C], output: flow on each channel.
 *
 * first_weight: initial weight of every channel, in units of flow.
 *
 * Weights are positive, so a switch gets its final path before all switches whose path leads through it.  Returns 0, or
 * 1 if memory is exhausted. */
int ibn_trees_weighted(const ibn_network *network, const ibn_targets *targets, double first_weight, uint8_t *next,
                       double *load)
{
    size_t switches = (size_t)network->switches + 1, channels = (size_t)network->channels + 1;
    job_t job = {.net = network};
    job.weight = malloc(channels * sizeof *job.weight);
    job.cost = malloc(switches * sizeof *job.cost);
    job.through = malloc(switches * sizeof *job.through);
    job.heap.entry = malloc((channels + switches) * sizeof *job.heap.entry);
    job.settled = malloc(switches * sizeof *job.settled);
    int failed = !job.weight || !job.cost || !job.through || !job.heap.entry || !job.settled;
    memset(load, 0, (size_t)network->channels * sizeof *load);
    for (int32_t c = 0; c < network->channels && !failed; c++)
        job.weight[c] = first_weight * network->inverse_capacity[c];
    for (int32_t t = 0; t < targets->count && !failed; t++) {
        grow(&job, targets->root[t], next + (int64_t)t * network->switches);
        add_flow(&job, next + (int64_t)t * network->switches, targets->share[t], load);
    }
    free(job.weight);
    free(job.cost);
    free(job.through);
    free(job.heap.entry);
    free(job.settled);
    return failed;
}
