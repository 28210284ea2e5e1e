/* State of the balancing kernel, shared by its source files.  The struct job_t has the request and the trees.  The
 * struct load_account has the loads and scratch memory. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "core/internal/heap.h"
#include "trees/balance.h"

#define NO_CHANNEL 255

/* The cost of a path is computed from the present costs of its first WALKED channels and the stored cost of the rest
 * of the path.  Stored costs may be outdated.
 *
 * On a three-level tree, a path from the neighbour of a leaf has at most three hops, so no stored cost is used.
 * Measurements showed that outdated costs do harm on such a tree.  On longer paths, outdated costs did no harm.
 * Without stored costs, half of the engine's time would be spent on following paths. */
#define WALKED 3

typedef struct {
    const ibn_network *net;
    const ibn_targets *targets;
    const ibn_balance_options *options;
    uint8_t *next; /* [D, S] by destination and switch: index of the chosen next channel among the switch's channels */
    uint16_t *distance; /* [roots, S] hops from each switch to each root; used only by the rule of shortest paths */
    /* [roots, S] for each root: the switches from which the root can be reached, sorted by hops; -1 after the last
     * one */
    int32_t *by_distance;
    /* [S] by switch: its row in `distance` and `by_distance`; -1: the switch is not a root, because it delivers no
     * destination */
    int32_t *root_row;
    /* [layers, S] for each switch order: the switches, sorted by their positions; used only by the up/down rule */
    int32_t *sequence;
    /* [C + 1] for each channel: number of the first CDG edge (turn) from the channel to a next channel; used only by
     * the rule of allowed turns */
    int32_t *turn_first;
    /* [S] root of the spanning tree to which each switch belongs; used only by the rule of allowed turns */
    int32_t *part;
    int32_t *lmc_group_of; /* [D] number of each destination's LMC group (all LIDs of one end port) */
    int32_t *order;        /* [F] LMC groups in the order of the present pass */
    /* pass: number of the present pass.
     * block: index at which the present block of LMC groups begins in the queue of each load account (see passes.h).
     * squarings: number of times that the utilisation of a channel is squared to get the channel's cost. */
    int32_t pass, block, squarings;
    int has_transit; /* whether the fabric has inner switches: switches without sending end ports */
    /* A channel is close to the peak if its utilisation is at least `near_peak` times the peak utilisation.  Passes
     * after the first pass recompute only trees that use such a channel or an escape tree; 0: they recompute all trees
     * with flow */
    double near_peak;
} job_t;

typedef struct {
    double *load;   /* [C] flow on each channel */
    double *weight; /* [C] cost of each channel: (utilisation / highest utilisation)^(2^squarings) + cost of a hop */
    double inverse_peak; /* 1 / max(1, highest utilisation of a channel) at the last merge of the two accounts */
    /* total change of all channel costs by this account since the last merge of the two accounts; it shows whether a
     * new tree is better than the old tree */
    double potential;
    /* [S] cost of each switch's path at the time when the path was chosen, or when flow was last added to the path */
    double *cost;
    double *estimate; /* [S] estimated cost of the cheapest path, for switches that have no next hop yet */
    uint8_t *carries; /* [S] whether flow to the destination of the present tree leaves each switch */
    double *through;  /* [S] flow to one destination through each switch */
    uint8_t *before;  /* [S] copy of a destination's tree, made before the tree was removed */
    /* [S] scratch arrays.
     *
     * queue: switches to be visited.
     * children: number of each switch's children in a tree.
     * level: all switches at one number of hops from the root (not a level of a tree topology). */
    int32_t *queue, *children, *level;
    /* [C] heap of the channels by which switches may join a tree; used only by the rule of allowed turns.  The key of a
     * channel is the cost of the path that begins with this channel */
    ibn_heap offers;
    /* [S] channel that each switch has to take, -1: the switch may choose; used only by the rule of allowed turns */
    int32_t *fixed;
    /* [S] for each switch above the present root in the spanning tree: the channel of this tree that leads down
     * towards the present root; -1: any other switch */
    int32_t *down;
    uint64_t random; /* state of the random generator */
} load_account;

/* Return the cost of a channel if it has a given load.  The cost is close to the cost of a hop unless the utilisation
 * is close to the peak, which is the highest utilisation. */
static inline double ibn_trees_channel_weight(const job_t *job, const load_account *account, int32_t channel,
                                              double load)
{
    double x = load * job->net->inverse_capacity[channel] * account->inverse_peak;
    for (int32_t i = 0; i < job->squarings; i++)
        x *= x;
    return x + job->options->hop_cost;
}

/* Return the highest utilisation of all channels. */
static inline double ibn_trees_peak_utilisation(const ibn_network *net, const double *load)
{
    double peak = 0.0;
    for (int32_t c = 0; c < net->channels; c++)
        peak = fmax(peak, load[c] * net->inverse_capacity[c]);
    return peak;
}

/* Add flow to a channel, and update the cost of the channel.  Add the change of this cost to account->potential, which
 * is the total change of all channel costs since the last merge of the two accounts. */
static inline void ibn_trees_account_add(const job_t *job, load_account *account, int32_t channel, double flow)
{
    account->load[channel] += flow;
    double weight = ibn_trees_channel_weight(job, account, channel, account->load[channel]);
    account->potential += weight - account->weight[channel];
    account->weight[channel] = weight;
}

/* Return the channel by which switch u sends in a tree. */
static inline int32_t ibn_trees_next_channel(const job_t *job, const uint8_t *next, int32_t u)
{
    return job->net->first[u] + next[u];
}

/* Return the cost of the present path of switch `from`.  For bisection traffic, a channel costs nothing if other paths
 * of the destination's tree already use it. */
static inline double ibn_trees_path_cost(const job_t *job, const load_account *account, const uint8_t *next,
                                         int32_t from, int32_t root)
{
    double cost = 0.0;
    int bisection = job->options->bisection;
    for (int32_t hops = 0; from != root && !(bisection && account->carries[from]); hops++) {
        int32_t c = ibn_trees_next_channel(job, next, from);
        if (hops == WALKED && !bisection)
            return cost + account->cost[from];
        cost += account->weight[c];
        from = job->net->dst[c];
    }
    return cost;
}

/* Add flow to the channels of the path of switch `from`, and store the new path costs of all switches on the path. */
static inline void ibn_trees_account_add_path(const job_t *job, load_account *account, const uint8_t *next,
                                              int32_t from, int32_t target, double flow)
{
    int32_t root = job->targets->root[target], hops = 0, *path = account->queue;
    while (from != root) {
        int32_t c = ibn_trees_next_channel(job, next, from);
        account->carries[from] = 1;
        ibn_trees_account_add(job, account, c, flow);
        path[hops++] = c;
        from = job->net->dst[c];
    }
    for (double cost = 0.0; hops-- > 0;) {
        cost += account->weight[path[hops]];
        account->cost[job->net->src[path[hops]]] = cost;
    }
}

/* Count the other LIDs of the destination's end port whose next hop at switch u is the switch where channel c ends. */
static inline int32_t ibn_trees_lmc_siblings(const job_t *job, int32_t target, int32_t u, int32_t c)
{
    const ibn_network *net = job->net;
    const int32_t *group = job->targets->lmc_group_first + job->lmc_group_of[target];
    int32_t taken = 0;
    for (int32_t other = group[0]; other < group[1]; other++) {
        uint8_t index = other == target ? NO_CHANNEL : job->next[(int64_t)other * net->switches + u];
        taken += index != NO_CHANNEL && net->dst[net->first[u] + index] == net->dst[c];
    }
    return taken;
}

/* Cost that is added to a next hop for each other LID of the destination's end port whose path already uses this next
 * hop.  The rule of shortest paths does not add this cost. */
#define SIBLING_COST 0.1

/* A possible next hop of a switch.  The next hop with the lowest `rank` is the best one.  Of next hops with equal
 * ranks, the next hop with the lowest `cost` is the best one.
 *
 * rank: with the rule of shortest paths, the number of other LIDs of the destination's end port that have this next
 * hop; with the up/down rule, `cost` plus SIBLING_COST for each of these LIDs.  (This is not the rank of a channel in
 * ibn_balance_options.)
 * cost: cost of the path that begins with this next hop. */
typedef struct {
    int32_t channel;
    double rank, cost;
} candidate_t;

/* Make channel choice.channel the next hop of switch u, and store the cost of u's path. */
static inline void ibn_trees_set_next_hop(const job_t *job, load_account *account, uint8_t *next, int32_t u,
                                          candidate_t choice)
{
    next[u] = (uint8_t)(choice.channel - job->net->first[u]);
    account->cost[u] = choice.cost;
}

/* Compare a next hop, given by its channel, rank and cost, with `best`, the best next hop so far.  If the given next
 * hop is better, it replaces `best`. */
static inline void ibn_trees_candidate_consider(candidate_t *best, int32_t channel, double rank, double cost)
{
    if (best->channel < 0 || rank < best->rank || (rank == best->rank && cost < best->cost))
        *best = (candidate_t){.channel = channel, .rank = rank, .cost = cost};
}

/* Return a next hop that is worse than any other, as the start value of a comparison. */
static inline candidate_t ibn_trees_candidate_none(void)
{
    return (candidate_t){.channel = -1, .rank = 0.0, .cost = INFINITY};
}

/* Return the lowest rank (see ibn_balance_options) of those channels of switch u that lead one hop nearer to the root.
 * The rule of shortest paths allows only channels of this rank.  Return INT32_MAX if ranks do not apply at switch u. */
static inline int32_t ibn_trees_least_rank(const job_t *job, const uint16_t *distance, int32_t u)
{
    const ibn_network *net = job->net;
    const int32_t *rank = job->options->rank;
    int32_t least = INT32_MAX;
    if (!rank || distance[u] < job->options->rank_from)
        return INT32_MAX;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++)
        if (distance[net->dst[c]] + 1 == distance[u] && rank[c] < least)
            least = rank[c];
    return least;
}

/* Return whether the rule of shortest paths allows channel c.  `least` is the result of ibn_trees_least_rank for the
 * channel's first switch. */
static inline int ibn_trees_is_allowed(const job_t *job, const uint16_t *distance, int32_t c, int32_t least)
{
    const ibn_network *net = job->net;
    return distance[net->dst[c]] + 1 == distance[net->src[c]] && (least == INT32_MAX || job->options->rank[c] == least);
}

/* Return whether a path may continue from channel c to the channel with a given index among the channels of the next
 * switch. */
static inline int ibn_trees_turn_is_allowed(const job_t *job, int32_t c, uint8_t index)
{
    return job->options->allowed[job->turn_first[c] + index];
}

void ibn_trees_grow_turns(const job_t *job, load_account *account, int32_t target);
int ibn_trees_prepare_turns(job_t *job);
int ibn_trees_turns_allow_change(const job_t *job, const uint8_t *next, int32_t target, int32_t u, int32_t c);
void ibn_trees_grow_shortest(const job_t *job, load_account *account, int32_t target);
int ibn_trees_prepare_shortest(job_t *job);
void ibn_trees_grow_updown(const job_t *job, load_account *account, int32_t target);
int ibn_trees_prepare_updown(job_t *job);
int ibn_trees_move_next_hop(const job_t *job, load_account *account, int32_t target, int32_t u);
