/* Compute paths of least weight, one destination after the other.  The weight of a channel is (initial weight + flow
 * towards earlier destinations) * inverse capacity. */
#include "trees/weighted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_CHANNEL 255

typedef struct {
    double cost;
    int32_t of;
} entry_t;

typedef struct {
    const ibn_network *net;
    /* weight: [C], weight of each channel; cost: [S], weight of each switch's path to the root; through: [S], flow
     * through each switch */
    double *weight, *cost, *through;
    entry_t *heap; /* [C + S] binary heap of switches by cost; it may contain a switch several times */
    /* size: number of heap entries; settled: [S], switches with a final path, nearest first; count: their number */
    int32_t size, *settled, count;
} job_t;

/* Return whether one heap entry comes before another. */
static int before(entry_t a, entry_t b)
{
    return a.cost != b.cost ? a.cost < b.cost : a.of < b.of;
}

static void push(job_t *job, entry_t entry)
{
    int32_t at = job->size++;
    for (; at > 0 && before(entry, job->heap[(at - 1) / 2]); at = (at - 1) / 2)
        job->heap[at] = job->heap[(at - 1) / 2];
    job->heap[at] = entry;
}

static entry_t pop(job_t *job)
{
    entry_t least = job->heap[0], last = job->heap[--job->size];
    int32_t at = 0;
    for (int32_t child = 1; child < job->size; child = 2 * at + 1) {
        if (child + 1 < job->size && before(job->heap[child + 1], job->heap[child]))
            child++;
        if (!before(job->heap[child], last))
            break;
        job->heap[at] = job->heap[child];
        at = child;
    }
    job->heap[at] = last;
    return least;
}

/* Run Dijkstra's algorithm backwards from the root.  Among paths of equal weight, the one that was found first is
 * kept. */
static void grow(job_t *job, int32_t root, uint8_t *next)
{
    const ibn_network *net = job->net;
    memset(next, NO_CHANNEL, (size_t)net->switches);
    for (int32_t u = 0; u < net->switches; u++)
        job->cost[u] = INFINITY;
    job->cost[root] = 0.0;
    job->size = job->count = 0;
    push(job, (entry_t){.cost = 0.0, .of = root});
    while (job->size > 0) {
        entry_t nearest = pop(job);
        if (nearest.cost > job->cost[nearest.of])
            continue;
        job->settled[job->count++] = nearest.of;
        for (int32_t i = net->into_first[nearest.of]; i < net->into_first[nearest.of + 1]; i++) {
            int32_t c = net->into[i], u = net->src[c];
            double cost = nearest.cost + job->weight[c];
            if (cost >= job->cost[u])
                continue;
            job->cost[u] = cost;
            next[u] = (uint8_t)(c - net->first[u]);
            push(job, (entry_t){.cost = cost, .of = u});
        }
    }
}

/* Add the flow of a tree to the loads and to the weights.  The farthest switches come first. */
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
 * load: double [C], output: flow on each channel.  Weights are positive, so a switch gets its final path before all
 * switches whose path leads through it. */
int ibn_trees_weighted(const ibn_network *network, const ibn_targets *targets, double first_weight, uint8_t *next,
                       double *load)
{
    size_t switches = (size_t)network->switches + 1, channels = (size_t)network->channels + 1;
    job_t job = {.net = network};
    job.weight = malloc(channels * sizeof *job.weight);
    job.cost = malloc(switches * sizeof *job.cost);
    job.through = malloc(switches * sizeof *job.through);
    job.heap = malloc((channels + switches) * sizeof *job.heap);
    job.settled = malloc(switches * sizeof *job.settled);
    int failed = !job.weight || !job.cost || !job.through || !job.heap || !job.settled;
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
    free(job.heap);
    free(job.settled);
    return failed;
}
