/* State of the search for link-disjoint in-trees, shared by its source files.  The terms are explained in
 * disjoint.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/internal/arrays.h"
#include "disjoint/disjoint.h"

enum { DISJOINT_OK, DISJOINT_NO_MEMORY };
enum { DISJOINT_NONE = 255, DISJOINT_UNREACHED = 65535, DISJOINT_MOST_TREES = 8, EVERY_TREE = 255 };

typedef struct {
    const disjoint_request *net;
    /* [S, K, S]: by destination, tree and switch, the index of the next channel among the switch's channels, 255:
     * none */
    uint8_t *next;
    /* [S, S]: switch order chosen for each pair of switches; 255: no switch order allows the paths between them in the
     * first trees.  NULL if the request does not set `shared`. */
    uint8_t *order;
    /* true: for every two switches, their switch order in `order` must allow the paths between them in all trees.  The
     * value is false while the first trees are computed; afterwards it is the value of `shared` in the request */
    bool shared;
    /* [C] each: utilisation (flow times inverse capacity) of each channel; load[0]: by the first trees only, load[1]:
     * by all trees together */
    double *load[2];
    /* [S, K, S]: by destination, tree and source, the switch orders, as bits, that allow the whole path from the source
     * to the destination */
    uint8_t *mask;
    /* [S, K, S]: by destination, tree and source, the hops of the path from the source to the destination */
    uint16_t *depth;
    /* [S, S, K]: by destination, source and tree: the other trees, as bits, whose path shares a link with the path
     * in this tree */
    uint8_t *conflict;
    /* [C], by link: number of the call of ibn_disjoint_mark_paths that last wrote the link's element of `mark`.  If
     * this is not the last call (`now`), the element of `mark` is out of date */
    uint32_t *stamp;
    /* [C], by link: the trees, as bits, whose path uses the link.  The paths are those of the last call of
     * ibn_disjoint_mark_paths */
    uint8_t *mark;
    /* [C], by link into the current destination: 1 if the tree that is being computed copies the branch of this link
     * from the first tree.  The branch of a link is all switches whose paths enter the destination by this link */
    uint8_t *kept;
    /* number of the last call of ibn_disjoint_mark_paths, for comparison with the elements of `stamp` */
    uint32_t now;
    uint64_t random; /* state of the random generator */
    /* [S]: number of end ports whose traffic each switch forwards in the tree that is being computed */
    double *forwarded;
    int32_t *shuffled; /* [S]: all switches, as destinations, in random order */
    /* [S]: all switches in the random order in which they take turns to get a next hop in one tree (not CDG edges) */
    int32_t *turn;
    /* [S]: the current destination, followed by the switches that reach the destination, nearest first */
    int32_t *queue;
    /* [S + 1]: element h is the number of switches that are at most h hops from the current destination */
    int32_t *count;
    array_list arrays; /* list of the arrays above that the search has allocated; they are freed together */
} disjoint_job;

/* Return the index in arrays [S, K, S] at which the entries of a destination's tree begin. */
static inline int64_t disjoint_row(const disjoint_job *job, int32_t d, int32_t tree)
{
    return ((int64_t)d * job->net->trees + tree) * job->net->switches;
}

/* Return the number of trees of destination d: K if switch d has end ports, otherwise 1. */
static inline int32_t disjoint_trees_of(const disjoint_job *job, int32_t d)
{
    return job->net->weight[d] > 0 ? job->net->trees : 1;
}

/* Return whether traffic between two switches counts: at least one of the switches must have end ports. */
static inline bool disjoint_counts(const disjoint_job *job, int32_t a, int32_t b)
{
    return job->net->weight[a] > 0 || job->net->weight[b] > 0;
}

/* Return the channel by which a switch sends in a tree.  The caller makes sure that the switch has a path in the
 * tree. */
static inline int32_t disjoint_hop(const disjoint_job *job, const uint8_t *next, int32_t s)
{
    return job->net->first[s] + next[s];
}

/* Return the switch orders, as bits, that allow the path which begins with channel c and then follows a tree to
 * destination d.  The entries of the tree begin at index `row`. */
static inline uint8_t disjoint_mask_over(const disjoint_job *job, int32_t d, int64_t row, int32_t c)
{
    const int32_t w = job->net->dst[c];
    if (w == d)
        return 255;
    return (uint8_t)(job->mask[row + w] & job->net->allowed[job->net->slot[c] + job->next[row + w]]);
}

/* Return x raised to the power of 4. */
static inline double disjoint_power4(double x)
{
    return x * x * x * x;
}

void ibn_disjoint_mark_paths(disjoint_job *job, int32_t d, int32_t s, uint32_t trees);
uint8_t ibn_disjoint_marked(disjoint_job *job, int32_t d, int64_t row, int32_t from, int32_t to);
void ibn_disjoint_set_conflict(disjoint_job *job, int32_t d, int32_t s, int32_t tree, uint8_t hit);
void ibn_disjoint_fill_conflicts(disjoint_job *job, int32_t d);
int32_t ibn_disjoint_most(const uint8_t *conflict, int32_t trees, int32_t wanted);
void ibn_disjoint_trace_tree(disjoint_job *job, int32_t d, int32_t tree);
void ibn_disjoint_add_load(disjoint_job *job, int32_t d, int32_t tree, double sign);
void ibn_disjoint_by_distance(disjoint_job *job, int32_t d);
void ibn_disjoint_copy_first(const disjoint_request *net, uint8_t *next, int32_t d, int32_t tree, int32_t s);

/* Return the switch orders, as bits, that allow the reply path from d to s.  A reply uses the tree towards s that has
 * the same number as the tree of its request. */
static inline uint8_t disjoint_mask_back(const disjoint_job *job, int32_t d, int32_t tree, int32_t s)
{
    return job->mask[disjoint_row(job, s, job->net->weight[s] > 0 ? tree : 0) + d];
}

/* Return whether a path must not be used, because no suitable switch order allows the path.  `mask` has the switch
 * orders that allow the path, as bits.  With job->shared, the switch order chosen for the two switches must be in
 * `mask`.  Otherwise some switch order in `mask` must also allow the reply path. */
static inline bool disjoint_is_wrong(const disjoint_job *job, int32_t d, int32_t tree, int32_t s, uint8_t mask)
{
    if (!disjoint_counts(job, d, s))
        return false;
    if (!job->shared)
        return !(mask & disjoint_mask_back(job, d, tree, s));
    const uint8_t order = job->order[(int64_t)d * job->net->switches + s];
    return order != DISJOINT_NONE && !(mask >> order & 1);
}

/* Return the highest load of a channel by the first trees of all destinations, or `least` if no load is higher. */
static inline double disjoint_highest_load(const disjoint_job *job, double least)
{
    double highest = least;
    for (int32_t c = 0; c < job->net->channels; c++)
        if (job->load[0][c] > highest)
            highest = job->load[0][c];
    return highest;
}

void ibn_disjoint_first_trees(disjoint_job *job);
void ibn_disjoint_choose_orders(disjoint_job *job);
void ibn_disjoint_state_orders(const disjoint_job *job, uint8_t *order);
void ibn_disjoint_branch_trees(disjoint_job *job);
int ibn_disjoint_balance_first(disjoint_job *job);
int ibn_disjoint_local_search(disjoint_job *job);
