/* Rule of shortest paths: a switch may use every channel to a switch that is one hop nearer to the root.  If channels
 * have ranks, the switch may use only the channels with the lowest rank among these channels. */
#include <stdlib.h>
#include <string.h>

#include "trees/internal/load_account.h"
#include "core/internal/random.h"
#include "core/parallel.h"

#define UNREACHED (UINT16_MAX - 1)

/* Estimate the cost of the cheapest path of every switch by the present costs of channels, nearest switches first.  The
 * estimates are used for switches that have no next hop yet. */
static void estimate(const job_t *job, load_account *account, const uint16_t *distance, const int32_t *nearest)
{
    const ibn_network *net = job->net;
    account->estimate[nearest[0]] = 0.0;
    for (int32_t i = 1; i < net->switches && nearest[i] >= 0; i++) {
        int32_t u = nearest[i];
        double least = INFINITY;
        int32_t rank = ibn_trees_least_rank(job, distance, u);
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++)
            if (ibn_trees_is_allowed(job, distance, c, rank))
                least = fmin(least, account->weight[c] + account->estimate[net->dst[c]]);
        account->estimate[u] = least;
    }
}

/* Choose the next hop of a switch among its allowed channels. */
static void choose(const job_t *job, load_account *account, uint8_t *next, const uint16_t *distance, int32_t u,
                   int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    int idle = job->targets->share[target] == 0.0;
    candidate_t best = ibn_trees_candidate_none();
    int32_t rank = ibn_trees_least_rank(job, distance, u), known = -1;
    double rest = 0.0;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (!ibn_trees_is_allowed(job, distance, c, rank))
            continue;
        /* Parallel channels often have consecutive numbers.  As all of them end at the same switch, the cost of this
         * switch's path is computed only once for them. */
        if (v != known && !idle)
            rest = v != root && next[v] == NO_CHANNEL ? account->estimate[v]
                                                      : ibn_trees_path_cost(job, account, next, v, root);
        known = v;
        double cost = idle ? 0.0 : account->weight[c] + rest;
        ibn_trees_candidate_consider(&best, c, ibn_trees_lmc_siblings(job, target, u, c), cost);
    }
    ibn_trees_set_next_hop(job, account, next, u, best);
}

/* Lower the estimated path costs of the switches upstream that can send through switch `from`, because `from` belongs
 * to the tree now.  For bisection traffic, channels that the tree already uses cost nothing.  So a path through `from`
 * costs only as much as its channels before `from`. */
static void update_upstream(const job_t *job, load_account *account, const uint8_t *next, const uint16_t *distance,
                            int32_t from)
{
    const ibn_network *net = job->net;
    int32_t tail = 0;
    account->estimate[from] = 0.0;
    account->queue[tail++] = from;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = account->queue[head];
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t c = net->into[i], u = net->src[c];
            double cost = account->weight[c] + account->estimate[v];
            if (next[u] != NO_CHANNEL || cost >= account->estimate[u]
                || !ibn_trees_is_allowed(job, distance, c, ibn_trees_least_rank(job, distance, u)))
                continue;
            account->estimate[u] = cost;
            if (net->sources[u] == 0.0 && tail < net->switches)
                account->queue[tail++] = u;
        }
    }
}

/* Compute the tree of one destination.
 *
 * Each switch chooses its channel towards the destination.  Switches near the root choose before switches farther away.
 * Switches at equal distance choose in random order, so that no switch always chooses first.
 *
 * Bisection traffic is an exception: there, a switch without end ports chooses when the first flow reaches it.  A channel
 * that already belongs to the tree costs nothing, and at that time more channels belong to the tree.
 *
 * If a destination has no flow, each switch takes its first allowed channel, so that the trees of all such destinations
 * at one switch have equal dependencies. */
void ibn_trees_grow_shortest(const job_t *job, load_account *account, int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], reached = 1;
    int64_t row = (int64_t)job->root_row[root] * net->switches;
    const uint16_t *distance = job->distance + row;
    const int32_t *nearest = job->by_distance + row;
    uint8_t *next = job->next + (int64_t)target * net->switches;
    double share = job->targets->share[target];
    int transit_last = job->options->bisection && job->has_transit;
    memset(next, NO_CHANNEL, (size_t)net->switches);
    memset(account->carries, 0, (size_t)net->switches);
    if (transit_last && share > 0.0)
        estimate(job, account, distance, nearest);
    while (share > 0.0 && reached < net->switches && nearest[reached] >= 0) {
        int32_t count = 0;
        uint16_t here = distance[nearest[reached]];
        for (; reached < net->switches && nearest[reached] >= 0 && distance[nearest[reached]] == here; reached++)
            if (!transit_last || net->sources[nearest[reached]] > 0.0)
                account->level[count++] = nearest[reached];
        ibn_core_shuffle(account->level, count, &account->random);
        for (int32_t i = 0; i < count; i++) {
            int32_t from = account->level[i];
            for (int32_t u = from; u != root && next[u] == NO_CHANNEL;
                 u = net->dst[ibn_trees_next_channel(job, next, u)])
                choose(job, account, next, distance, u, target);
            if (net->sources[from] > 0.0)
                ibn_trees_account_add_path(job, account, next, from, target, net->sources[from] * share);
            if (transit_last)
                for (int32_t u = from; u != root; u = net->dst[ibn_trees_next_channel(job, next, u)])
                    update_upstream(job, account, next, distance, u);
        }
    }
    for (int32_t i = 1; i < net->switches && nearest[i] >= 0; i++)
        if (next[nearest[i]] == NO_CHANNEL)
            choose(job, account, next, distance, nearest[i], target);
}

/* Compute the hops from all switches to one root, and sort the switches by hops. */
static void survey(void *context, int32_t root)
{
    job_t *job = context;
    const ibn_network *net = job->net;
    if (job->root_row[root] < 0)
        return;
    int64_t row = (int64_t)job->root_row[root] * net->switches;
    uint16_t *distance = job->distance + row;
    int32_t *nearest = job->by_distance + row, tail = 0;
    for (int32_t u = 0; u < net->switches; u++)
        distance[u] = UNREACHED;
    distance[root] = 0;
    nearest[tail++] = root;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = nearest[head];
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t u = net->src[net->into[i]];
            if (distance[u] == UNREACHED) {
                distance[u] = (uint16_t)(distance[v] + 1);
                nearest[tail++] = u;
            }
        }
    }
    while (tail < net->switches)
        nearest[tail++] = -1;
}

/* Compute the hops to all roots, once for all passes and for all LIDs of a switch.  Returns 1 if memory is exhausted,
 * otherwise 0. */
int ibn_trees_prepare_shortest(job_t *job)
{
    const ibn_network *net = job->net;
    size_t rows = 0, switches = (size_t)net->switches;
    for (size_t s = 0; s < switches; s++)
        job->has_transit |= net->sources[s] == 0.0;
    job->root_row = malloc((switches + 1) * sizeof *job->root_row);
    if (!job->root_row)
        return 1;
    for (size_t s = 0; s < switches; s++)
        job->root_row[s] = -1;
    for (int32_t t = 0; t < job->targets->count; t++)
        if (job->root_row[job->targets->root[t]] < 0)
            job->root_row[job->targets->root[t]] = (int32_t)rows++;
    job->distance = malloc((rows * switches + 1) * sizeof *job->distance);
    job->by_distance = malloc((rows * switches + 1) * sizeof *job->by_distance);
    if (!job->distance || !job->by_distance)
        return 1;
    return ibn_core_parallel(job->options->threads, net->switches, survey, job);
}
