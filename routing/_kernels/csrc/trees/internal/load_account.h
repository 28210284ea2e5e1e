/* State of the balancing kernel, shared by its source files: the job, and a load account with its scratch memory. */
#ifndef IBNUE_LOAD_ACCOUNT_H
#define IBNUE_LOAD_ACCOUNT_H

#include <math.h>
#include <stdint.h>

#include "core/internal/heap.h"
#include "trees/balance.h"

#define NO_CHANNEL 255

/* Number of hops whose costs are added up each time the cost of a path is needed.  For hops after these, the cost that
 * was stored last is used.  On a three-level tree, three hops reach the end of every path; measurements showed that
 * outdated costs do harm there.  On longer paths, outdated costs did no harm, and following the whole paths would take
 * half of the time. */
#define WALKED 3

typedef struct {
    const ibn_network *net;
    const ibn_targets *targets;
    const ibn_balance_options *options;
    uint8_t *next;      /* [D, S] index of the chosen next channel among the switch's channels */
    uint16_t *distance; /* [roots, S] hops from each switch to each root; used by the rule of shortest paths only */
    /* [roots, S] switches, the nearest to the root first; -1 after the last switch that is connected */
    int32_t *by_distance;
    int32_t *root_row;   /* [S] row of a root in `distance` and `by_distance`, -1: not a root */
    int32_t *sequence;   /* [layers, S] switches, sorted by position; used by the up/down rule only */
    int32_t *turn_first; /* [C + 1] number of each channel's first CDG edge; used by the rule of allowed turns only */
    /* [S] root of the spanning tree to which each switch belongs; used by the rule of allowed turns only */
    int32_t *part;
    int32_t *lmc_group_of; /* [D] LMC group (all LIDs of one port) of each destination */
    int32_t *order;        /* [F] LMC groups (all LIDs of one port each) in the order of this pass */
    /* block: index in `order` at which the current block begins; squarings: see `weight` in load_account */
    int32_t pass, block, squarings;
    int has_transit; /* whether the fabric has switches without end ports */
    /* later passes recompute only trees that use a channel whose utilisation, relative to the peak, is at least this
     * value */
    double near_peak;
} job_t;

typedef struct {
    double *load;        /* [C] flow on each channel */
    double *weight;      /* [C] cost of each channel: (utilisation / highest utilisation)^(2^squarings) + hop cost */
    double inverse_peak; /* 1 / highest utilisation, as computed at the last merge */
    double potential;    /* change of the sum of all channel weights since the last merge */
    double *cost; /* [S] cost of each switch's path, as of the time when it was chosen or flow was last added to it */
    double *estimate; /* [S] estimated cost of the cheapest path of a switch that has no next hop yet */
    uint8_t *carries; /* [S] whether flow to the current destination leaves the switch */
    double *through;  /* [S] flow to a destination through each switch */
    uint8_t *before;  /* [S] copy of a destination's tree, made before the tree was removed */
    /* [S] scratch arrays. queue: switches to be visited; children: number of children in a tree; level: switches at
     * one distance */
    int32_t *queue, *children, *level;
    ibn_heap offers; /* [C] channels by which switches may join a tree, by the cost of their paths; used by the rule of
                      * allowed turns only */
    /* [S] channel that each switch must take, or -1: it may choose; used by the rule of allowed turns only */
    int32_t *fixed;
    int32_t *down;   /* [S] next channel of each switch along the spanning tree towards the current root, or -1 */
    uint64_t random; /* state of the random generator */
} load_account;

/* Return the weight of a channel with a given load.  It is little more than the hop cost unless the utilisation is
 * close to the peak. */
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

/* Add flow to a channel, and update its weight and the account's sum of weights (`potential`). */
static inline void ibn_trees_account_add(const job_t *job, load_account *account, int32_t channel, double flow)
{
    account->load[channel] += flow;
    double weight = ibn_trees_channel_weight(job, account, channel, account->load[channel]);
    account->potential += weight - account->weight[channel];
    account->weight[channel] = weight;
}

/* Return the channel by which a switch sends in a tree. */
static inline int32_t ibn_trees_next_channel(const job_t *job, const uint8_t *next, int32_t u)
{
    return job->net->first[u] + next[u];
}

/* Return the cost of the present path of switch `from`.  For bisection traffic, channels that the destination's tree
 * uses already cost nothing. */
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

/* Add flow to the channels of the path of switch `from`, and store the new costs of the paths of all switches on it. */
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

/* Count the other LIDs of the destination's port whose next hop at switch `u` is the switch where channel `c` ends. */
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

/* A candidate for a next hop.  A candidate is better if fewer other LIDs of the port use it (`taken`); among equals,
 * the candidate with the cheaper path is better. */
typedef struct {
    int32_t channel, taken;
    double cost;
} candidate_t;

/* Set the next hop of a switch, and store the cost of the path. */
static inline void ibn_trees_set_next_hop(const job_t *job, load_account *account, uint8_t *next, int32_t u,
                                          candidate_t choice)
{
    next[u] = (uint8_t)(choice.channel - job->net->first[u]);
    account->cost[u] = choice.cost;
}

/* Replace the best candidate for a next hop by another candidate if that one is better. */
static inline void ibn_trees_candidate_consider(candidate_t *best, int32_t channel, int32_t taken, double cost)
{
    if (best->channel < 0 || taken < best->taken || (taken == best->taken && cost < best->cost))
        *best = (candidate_t){.channel = channel, .taken = taken, .cost = cost};
}

/* Return a candidate that is worse than any other, as a start value for comparisons. */
static inline candidate_t ibn_trees_candidate_none(void)
{
    return (candidate_t){.channel = -1, .taken = 0, .cost = INFINITY};
}

/* Return the lowest rank among the channels of a switch that lead one hop nearer to the root.  The rule of shortest
 * paths allows only channels of this rank.  INT32_MAX: it allows all of them. */
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

/* Return whether the rule of shortest paths allows a channel.  `least` is the result of ibn_trees_least_rank for its
 * switch. */
static inline int ibn_trees_is_allowed(const job_t *job, const uint16_t *distance, int32_t c, int32_t least)
{
    const ibn_network *net = job->net;
    return distance[net->dst[c]] + 1 == distance[net->src[c]] && (least == INT32_MAX || job->options->rank[c] == least);
}

/* Return whether a path may continue from channel c to the channel with the given index at the next switch. */
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

#endif
