/* Balance trees by local search.  A step takes the bundle with the highest utilisation.  In one tree over this bundle,
 * it moves one switch, with all switches upstream, to another next hop.  The highest utilisation on the new path must
 * be below the utilisation of the bundle.  Of all moves in the examined trees, the step takes the move with the lowest
 * utilisation on the new path.  The search ends at a bundle without such a move, or at the limit of visits. */
#include "trees/grid_balance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Utilisation a counts as lower than utilisation b only if a is below this multiple of b, because of rounding
 * errors. */
#define NOT_LOWER (1 - 1e-9)

/* Limits of the trees over a bundle that a step examines, tried in this order.  A step examines the trees with the
 * largest flows.  If no move of these trees is useful, the next limit applies. */
static const int32_t WIDTHS[] = {4, 32, INT32_MAX};

typedef struct {
    double flow; /* traffic of the tree on the bundle, rounded */
    int32_t tree;
} use_t;

typedef struct {
    double worst, flow; /* highest utilisation on the new path, and the flow that moves; both rounded */
    int32_t tree, at, bundle;
} move_t;

typedef struct {
    const ibn_grid_trees *trees;
    use_t *uses;     /* [T], trees that use the bundle of the present step, sorted by flow, the largest flow first */
    uint8_t *inside; /* [S], whether each switch sends through a given switch: UNKNOWN, YES or NO */
    int32_t *walked; /* [S], scratch: switches on a path */
    int64_t visits;  /* number of switches that may still be visited */
} job_t;

enum { UNKNOWN, YES, NO };

/* Round to nine decimals.  Sums of flows differ in their last bits, depending on the order of the additions. */
static double rounded(double value)
{
    return rint(value * 1e9) / 1e9;
}

static int by_flow(const void *a, const void *b)
{
    const use_t *one = a, *other = b;
    if (one->flow != other->flow)
        return one->flow > other->flow ? -1 : 1;
    return one->tree < other->tree ? -1 : 1;
}

static int32_t next_bundle(const ibn_grid_trees *t, int32_t tree, int32_t at)
{
    return t->first[at] + t->hop[(int64_t)tree * t->switches + at];
}

/* Set `inside` for all switches with a path: whether their path in a tree leads through switch `goal`. */
static void mark(job_t *job, int32_t tree, int32_t goal)
{
    const ibn_grid_trees *t = job->trees;
    const int32_t *hops = t->hops + (int64_t)tree * t->switches;
    memset(job->inside, UNKNOWN, (size_t)t->switches);
    job->inside[t->root[tree]] = NO;
    job->inside[goal] = YES;
    for (int32_t start = 0; start < t->switches; start++) {
        int32_t count = 0, at = start;
        if (hops[start] < 0) {
            job->inside[start] = NO;
            continue;
        }
        for (; job->inside[at] == UNKNOWN; at = t->dst[next_bundle(t, tree, at)])
            job->walked[count++] = at;
        for (int32_t i = 0; i < count; i++)
            job->inside[job->walked[i]] = job->inside[at];
    }
    job->visits -= t->switches;
}

/* Return the highest utilisation on the new path of a switch, if the flow of the switch moves to another bundle.  The
 * result is infinite if the path leads over the bundle `hot` or back to the switch, or if the utilisation is at least
 * `limit`. */
static double utilisation_after(job_t *job, const move_t *move, double flow, int32_t hot, double limit)
{
    const ibn_grid_trees *t = job->trees;
    double worst = 0;
    for (int32_t bundle = move->bundle;; bundle = next_bundle(t, move->tree, t->dst[bundle])) {
        double utilisation = (t->load[bundle] + flow) * t->inverse_capacity[bundle];
        job->visits--;
        worst = utilisation > worst ? utilisation : worst;
        if (worst >= limit || bundle == hot || t->dst[bundle] == move->at)
            return INFINITY;
        if (t->dst[bundle] == t->root[move->tree])
            return worst;
    }
}

/* Find the best move of the switches that send over the bundle `hot` in a tree.  Store the move in `best` if it is
 * better than the move in `best`. */
static void examine(job_t *job, int32_t tree, int32_t hot, double limit, move_t *best)
{
    const ibn_grid_trees *t = job->trees;
    const int64_t row = (int64_t)tree * t->switches;
    mark(job, tree, t->src[hot]);
    for (int32_t at = 0; at < t->switches; at++) {
        double flow = t->flow[row + at];
        if (job->inside[at] != YES || flow <= 0)
            continue;
        for (int32_t bundle = t->first[at]; bundle < t->first[at + 1]; bundle++) {
            move_t move = {.flow = rounded(flow), .tree = tree, .at = at, .bundle = bundle};
            int32_t onward = t->hops[row + t->dst[bundle]];
            if (onward < 0 || onward + 1 > t->hops[row + at] + t->longer || bundle == next_bundle(t, tree, at))
                continue;
            move.worst = rounded(utilisation_after(job, &move, flow, hot, limit));
            if (move.worst < best->worst || (move.worst == best->worst && move.flow < best->flow))
                *best = move;
        }
    }
}

/* Add `amount` to the flows and loads on the path of a switch.  The flow of the switch itself stays. */
static void add_flow(const ibn_grid_trees *t, int32_t tree, int32_t start, double amount)
{
    for (int32_t at = start; at != t->root[tree];) {
        int32_t bundle = next_bundle(t, tree, at);
        if (at != start)
            t->flow[(int64_t)tree * t->switches + at] += amount;
        t->load[bundle] += amount;
        at = t->dst[bundle];
    }
}

static void apply(job_t *job, const move_t *move)
{
    const ibn_grid_trees *t = job->trees;
    const int64_t row = (int64_t)move->tree * t->switches;
    const double flow = t->flow[row + move->at];
    const int32_t longer = t->hops[row + t->dst[move->bundle]] + 1 - t->hops[row + move->at];
    add_flow(t, move->tree, move->at, -flow);
    t->hop[row + move->at] = (uint8_t)(move->bundle - t->first[move->at]);
    add_flow(t, move->tree, move->at, flow);
    mark(job, move->tree, move->at);
    for (int32_t at = 0; at < t->switches; at++)
        if (job->inside[at] == YES) {
            t->hops[row + at] += longer;
            t->regular[row + at] = 0;
        }
}

/* List the trees with traffic over a bundle, and return their number. */
static int32_t list_uses(job_t *job, int32_t bundle)
{
    const ibn_grid_trees *t = job->trees;
    const int32_t at = t->src[bundle];
    int32_t count = 0;
    for (int32_t tree = 0; tree < t->trees; tree++) {
        int64_t place = (int64_t)tree * t->switches + at;
        if (t->first[at] + t->hop[place] == bundle && t->flow[place] > 0)
            job->uses[count++] = (use_t){.flow = rounded(t->flow[place]), .tree = tree};
    }
    qsort(job->uses, (size_t)count, sizeof(use_t), by_flow);
    return count;
}

/* Move paths away from the bundle with the highest utilisation.  Return whether a move was found. */
static int step(job_t *job)
{
    const ibn_grid_trees *t = job->trees;
    int32_t hot = 0;
    for (int32_t bundle = 1; bundle < t->bundles; bundle++)
        if (t->load[bundle] * t->inverse_capacity[bundle] > t->load[hot] * t->inverse_capacity[hot])
            hot = bundle;
    const double limit = t->load[hot] * t->inverse_capacity[hot] * NOT_LOWER;
    const int32_t count = list_uses(job, hot);
    move_t best = {.worst = INFINITY, .flow = INFINITY};
    job->visits -= t->trees;
    for (int32_t width = 0, i = 0; i < count; width++) {
        for (; i < count && i < WIDTHS[width]; i++)
            examine(job, job->uses[i].tree, hot, limit, &best);
        if (best.worst < INFINITY) {
            apply(job, &best);
            return 1;
        }
    }
    return 0;
}

/* Move paths until no move lowers the utilisation of the bundle with the highest utilisation, or until *visits switches
 * were visited.  A single step may exceed this number.  Set *visits to the number of visited switches. */
int ibn_trees_balance_grid(const ibn_grid_trees *trees, int64_t *visits)
{
    job_t job = {.trees = trees, .visits = *visits};
    job.uses = malloc((size_t)trees->trees * sizeof *job.uses + 1);
    job.inside = malloc((size_t)trees->switches + 1);
    job.walked = malloc((size_t)trees->switches * sizeof *job.walked + 1);
    int failed = !job.uses || !job.inside || !job.walked;
    while (!failed && trees->bundles > 0 && job.visits > 0 && step(&job))
        ;
    *visits -= job.visits;
    free(job.uses);
    free(job.inside);
    free(job.walked);
    return failed;
}
