/* Up/down rule: paths lead up and then down in a given switch order, with one next hop for each switch.
 *
 * A switch that receives traffic on a channel down must forward the traffic down.  The switches choose their next hops
 * one after the other, in the switch order.  All switches that could send traffic down to a switch have lower
 * positions, so they choose before this switch.  Therefore each switch knows whether traffic comes down to it.
 *
 * A switch to which no traffic comes down may send up even if it has a path down.  If only one switch has no channel
 * up, every connected pair of switches has a path. */
#include <stdlib.h>
#include <string.h>

#include "trees/internal/load_account.h"

/* Compute for every switch the cost of the cheapest path that leads down only, or INFINITY if there is no such path. */
static void survey_down(const job_t *job, load_account *account, const int32_t *sequence, const int32_t *position,
                        int32_t root)
{
    const ibn_network *net = job->net;
    for (int32_t u = 0; u < net->switches; u++)
        account->estimate[u] = INFINITY;
    account->estimate[root] = 0.0;
    for (int32_t i = position[root]; i >= 0; i--) {
        int32_t v = sequence[i];
        if (account->estimate[v] == INFINITY)
            continue;
        for (int32_t k = net->into_first[v]; k < net->into_first[v + 1]; k++) {
            int32_t c = net->into[k], u = net->src[c];
            double cost = account->weight[c] + account->estimate[v];
            if (position[u] < i && cost < account->estimate[u])
                account->estimate[u] = cost;
        }
    }
}

/* Choose next hops from switch u on, such that all channels of the path from u to the root lead down.  Stop at the
 * first switch that already has a next hop. */
static void go_down(const job_t *job, load_account *account, uint8_t *next, const int32_t *position, int32_t u,
                    int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    while (u != root && next[u] == NO_CHANNEL) {
        candidate_t best = ibn_trees_candidate_none();
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
            int32_t v = net->dst[c];
            if (position[v] < position[u] || account->estimate[v] == INFINITY)
                continue;
            int decided = v == root || next[v] != NO_CHANNEL;
            double rest = decided ? ibn_trees_path_cost(job, account, next, v, root) : account->estimate[v];
            double cost = account->weight[c] + rest;
            ibn_trees_candidate_consider(&best, c, cost + SIBLING_COST * ibn_trees_lmc_siblings(job, target, u, c), cost);
        }
        ibn_trees_set_next_hop(job, account, next, u, best);
        u = net->dst[best.channel];
    }
}

/* Return the best channel up from switch u to a switch that has a path to the root. */
static candidate_t choose_up(const job_t *job, const load_account *account, const uint8_t *next,
                             const int32_t *position, int32_t u, int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    candidate_t best = ibn_trees_candidate_none();
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (position[v] > position[u] || (v != root && next[v] == NO_CHANNEL))
            continue;
        double cost = account->weight[c] + ibn_trees_path_cost(job, account, next, v, root);
        ibn_trees_candidate_consider(&best, c, cost + SIBLING_COST * ibn_trees_lmc_siblings(job, target, u, c), cost);
    }
    return best;
}

/* Compute the tree of one destination by the up/down rule. */
void ibn_trees_grow_updown(const job_t *job, load_account *account, int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    int64_t row = (int64_t)job->targets->layer[target] * net->switches;
    const int32_t *position = job->options->position + row, *sequence = job->sequence + row;
    uint8_t *next = job->next + (int64_t)target * net->switches;
    double share = job->targets->share[target];
    memset(next, NO_CHANNEL, (size_t)net->switches);
    memset(account->carries, 0, (size_t)net->switches);
    survey_down(job, account, sequence, position, root);
    for (int32_t i = 0; i < net->switches; i++) {
        int32_t u = sequence[i];
        if (u == root)
            continue;
        if (next[u] == NO_CHANNEL) {
            candidate_t up = choose_up(job, account, next, position, u, target);
            if (account->estimate[u] < INFINITY && account->estimate[u] <= up.cost)
                go_down(job, account, next, position, u, target);
            else if (up.channel >= 0)
                ibn_trees_set_next_hop(job, account, next, u, up);
            else
                continue;
        }
        if (net->sources[u] * share > 0.0)
            ibn_trees_account_add_path(job, account, next, u, target, net->sources[u] * share);
    }
}

/* Fill job->sequence: for each switch order, the switches sorted by their positions.  Returns 1 if memory is exhausted,
 * otherwise 0. */
int ibn_trees_prepare_updown(job_t *job)
{
    int64_t switches = job->net->switches, layers = 0;
    for (int32_t t = 0; t < job->targets->count; t++)
        layers = job->targets->layer[t] >= layers ? job->targets->layer[t] + 1 : layers;
    job->sequence = malloc(((size_t)(layers * switches) + 1) * sizeof *job->sequence);
    if (!job->sequence)
        return 1;
    for (int64_t i = 0; i < layers * switches; i++)
        job->sequence[i - i % switches + job->options->position[i]] = (int32_t)(i % switches);
    return 0;
}
