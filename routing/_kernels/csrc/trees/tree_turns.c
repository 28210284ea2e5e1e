/* Rule of allowed turns: each path uses only allowed CDG edges (turns), with one next hop for each switch.
 *
 * The tree is grown from its root.  A switch joins the tree by a channel to a switch v that is in the tree.  The turn
 * from this channel to the next channel of v must be allowed.  The switch with the cheapest path joins first (E. W.
 * Dijkstra, 1959).
 *
 * A next hop that is cheap for one switch may leave another switch without any allowed channel.  In this case, the
 * second switch has to use its path in a spanning tree.  All switches on this path get the next hops of the spanning
 * tree, and the rest of the tree is grown again.  All turns of the spanning tree must be allowed, so that every
 * connected pair of switches has a path. */
#include <stdlib.h>
#include <string.h>

#include "trees/internal/passes.h"

/* Largest number of attempts to grow a tree.  If some switch has no allowed channel even in the last attempt, all
 * switches take the next hops of the spanning tree. */
#define MOST_GROWTHS 24

/* Return the cost of the path of a switch if it begins with channel c. */
static double cost_over(const job_t *job, const load_account *account, const uint8_t *next, int32_t target, int32_t c)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    double siblings = SIBLING_COST * ibn_trees_lmc_siblings(job, target, net->src[c], c);
    return account->weight[c] + ibn_trees_path_cost(job, account, next, net->dst[c], root) + siblings;
}

/* Add to the heap `offers` all channels into switch v by which other switches may join the tree. */
static void offer_into(const job_t *job, load_account *account, const uint8_t *next, int32_t target, int32_t v)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
        int32_t c = net->into[i], u = net->src[c];
        if (u != root && next[u] == NO_CHANNEL && (v == root || ibn_trees_turn_is_allowed(job, c, next[v])))
            ibn_core_heap_push(&account->offers, cost_over(job, account, next, target, c), c);
    }
}

/* Add the flow of switch u itself to the channels of its path. */
static void add_own(const job_t *job, load_account *account, const uint8_t *next, int32_t target, int32_t u)
{
    double flow = job->net->sources[u] * job->targets->share[target];
    if (flow > 0.0)
        ibn_trees_account_add_path(job, account, next, u, target, flow);
}

/* Grow the tree from its root, and from the switches whose next hops are fixed. */
static void grow(const job_t *job, load_account *account, uint8_t *next, int32_t target)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target];
    memset(account->carries, 0, (size_t)net->switches);
    account->offers.size = 0;
    for (int32_t u = 0; u < net->switches; u++)
        next[u] = account->fixed[u] < 0 ? NO_CHANNEL : (uint8_t)(account->fixed[u] - net->first[u]);
    for (int32_t u = 0; u < net->switches; u++)
        if (next[u] != NO_CHANNEL) {
            account->cost[u] = 0.0;
            for (int32_t v = u; v != root; v = net->dst[ibn_trees_next_channel(job, next, v)])
                account->cost[u] += account->weight[ibn_trees_next_channel(job, next, v)];
            add_own(job, account, next, target, u);
        }
    offer_into(job, account, next, target, root);
    for (int32_t u = 0; u < net->switches; u++)
        if (account->fixed[u] >= 0)
            offer_into(job, account, next, target, u);
    while (account->offers.size > 0) {
        heap_entry offer = ibn_core_heap_pop(&account->offers);
        int32_t c = offer.of, u = net->src[c];
        if (next[u] != NO_CHANNEL)
            continue;
        /* Since channel c was added to the heap, the cost of the path that begins with c may have risen, because flow
         * was added to this path. */
        double cost = cost_over(job, account, next, target, c);
        if (cost > offer.key && account->offers.size > 0 && cost > account->offers.entry[0].key) {
            ibn_core_heap_push(&account->offers, cost, c);
            continue;
        }
        ibn_trees_set_next_hop(job, account, next, u, (candidate_t){.channel = c, .cost = cost});
        add_own(job, account, next, target, u);
        offer_into(job, account, next, target, u);
    }
}

/* Prescribe the next channel of each switch on the path of switch u along the spanning tree to the root.  The next
 * growth of the tree has to take these channels, which are stored in `fixed`. */
static void fix_path(const job_t *job, load_account *account, int32_t target, int32_t u)
{
    int32_t root = job->targets->root[target];
    while (u != root && account->fixed[u] < 0) {
        account->fixed[u] = account->down[u] >= 0 ? account->down[u] : job->options->spanning[u];
        u = job->net->dst[account->fixed[u]];
    }
}

/* Compute the tree of one destination.  Each path in the tree uses only allowed CDG edges (turns). */
void ibn_trees_grow_turns(const job_t *job, load_account *account, int32_t target)
{
    const ibn_network *net = job->net;
    const int32_t *spanning = job->options->spanning;
    int32_t root = job->targets->root[target], stuck = 1;
    uint8_t *next = job->next + (int64_t)target * net->switches;
    for (int32_t u = 0; u < net->switches; u++)
        account->fixed[u] = account->down[u] = -1;
    for (int32_t u = root; spanning[u] >= 0; u = net->dst[spanning[u]])
        account->down[net->dst[spanning[u]]] = job->options->reverse[spanning[u]];
    for (int32_t growths = 1; stuck; growths++) {
        grow(job, account, next, target);
        stuck = 0;
        for (int32_t u = 0; u < net->switches; u++)
            if (next[u] == NO_CHANNEL && u != root && job->part[u] == job->part[root]) {
                stuck = 1;
                fix_path(job, account, target, u);
            }
        if (!stuck)
            break;
        if (growths == MOST_GROWTHS)
            for (int32_t u = 0; u < net->switches; u++)
                if (job->part[u] == job->part[root])
                    fix_path(job, account, target, u);
        ibn_trees_account_move_tree(job, account, next, target, -1.0);
    }
}

/* Return whether the allowed turns let switch u take channel c as its next hop while all other next hops stay.  No
 * forwarding loop can arise, because the allowed turns have no cycle. */
int ibn_trees_turns_allow_change(const job_t *job, const uint8_t *next, int32_t target, int32_t u, int32_t c)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], v = net->dst[c];
    if (v != root && (next[v] == NO_CHANNEL || !ibn_trees_turn_is_allowed(job, c, next[v])))
        return 0;
    for (int32_t i = net->into_first[u]; i < net->into_first[u + 1]; i++) {
        int32_t e = net->into[i], w = net->src[e];
        if (w != root && next[w] != NO_CHANNEL && ibn_trees_next_channel(job, next, w) == e
            && !ibn_trees_turn_is_allowed(job, e, (uint8_t)(c - net->first[u])))
            return 0;
    }
    return 1;
}

/* Number the turns (pairs of consecutive channels).  Find for each switch the root of the spanning tree of its part of
 * the fabric.  Returns 1 if memory is exhausted, otherwise 0. */
int ibn_trees_prepare_turns(job_t *job)
{
    const ibn_network *net = job->net;
    job->turn_first = malloc(((size_t)net->channels + 1) * sizeof *job->turn_first);
    job->part = malloc(((size_t)net->switches + 1) * sizeof *job->part);
    if (!job->turn_first || !job->part)
        return 1;
    int32_t turns = 0;
    for (int32_t c = 0; c < net->channels; c++) {
        job->turn_first[c] = turns;
        turns += net->first[net->dst[c] + 1] - net->first[net->dst[c]];
    }
    for (int32_t u = 0; u < net->switches; u++) {
        int32_t top = u;
        while (job->options->spanning[top] >= 0)
            top = net->dst[job->options->spanning[top]];
        job->part[u] = top;
    }
    return 0;
}
