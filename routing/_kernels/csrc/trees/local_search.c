/* One move of the local search in passes.c: a switch gets another next hop towards one destination, if the selected
 * rule for paths (such as shortest paths) allows the new path. */
#include "trees/internal/passes.h"

/* Return whether switch u may take channel c as its next hop, while all other next hops stay.  The answer depends on
 * the selected rule for paths: shortest paths, the up/down rule, or allowed turns. */
static int allowed(const job_t *job, const uint8_t *next, int32_t target, int32_t u, int32_t c)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], v = net->dst[c];
    if (job->options->allowed)
        return ibn_trees_turns_allow_change(job, next, target, u, c);
    if (!job->options->position) {
        const uint16_t *distance = job->distance + (int64_t)job->root_row[root] * net->switches;
        return ibn_trees_is_allowed(job, distance, c, ibn_trees_least_rank(job, distance, u));
    }
    const int32_t *position = job->options->position + (int64_t)job->targets->layer[target] * net->switches;
    if (position[v] < position[u])
        return position[net->dst[ibn_trees_next_channel(job, next, u)]] < position[u]
               && (v == root || next[v] != NO_CHANNEL);
    return v == root
           || (next[v] != NO_CHANNEL && position[net->dst[ibn_trees_next_channel(job, next, v)]] > position[v]);
}

/* Give switch u another next hop towards one destination, if this lowers the sum of all channel costs.  Returns whether
 * the next hop was changed. */
int ibn_trees_move_next_hop(const job_t *job, load_account *account, int32_t target, int32_t u)
{
    const ibn_network *net = job->net;
    uint8_t *next = job->next + (int64_t)target * net->switches, kept = next[u];
    double flow = ibn_trees_flow_through(job, account->queue, next, target, u);
    if (flow == 0.0)
        return 0;
    double before = account->potential;
    int32_t taken = ibn_trees_lmc_siblings(job, target, u, net->first[u] + kept);
    ibn_trees_account_add_path(job, account, next, u, target, -flow);
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        next[u] = kept;
        if (c - net->first[u] == kept || !allowed(job, next, target, u, c)
            || ibn_trees_lmc_siblings(job, target, u, c) > taken)
            continue;
        next[u] = (uint8_t)(c - net->first[u]);
        ibn_trees_account_add_path(job, account, next, u, target, flow);
        if (account->potential < before - 1e-9)
            return 1;
        ibn_trees_account_add_path(job, account, next, u, target, -flow);
    }
    next[u] = kept;
    ibn_trees_account_add_path(job, account, next, u, target, flow);
    return 0;
}
