/* Balance trees by local search.  Each step takes the bundle with the highest utilisation, and examines trees whose
 * paths use this bundle.  In one of these trees, the step gives one switch another next hop.  The paths of all switches
 * upstream of this switch then avoid the bundle too.  The highest utilisation on the new path must be below the
 * utilisation of the bundle.  Of all moves in the examined trees, the step takes the move whose new path has the lowest
 * peak utilisation.  The search ends if no move is found for the bundle, or at the limit of visited switches. */
#include "trees/grid_balance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Utilisation a counts as lower than utilisation b only if a is below this multiple of b, because of rounding
 * errors. */
#define NOT_LOWER (1 - 1e-9)

/* A step examines trees whose paths use a given bundle, the trees with the largest flows on the bundle first.  It
 * examines WIDTHS[0] trees.  If they have no useful move, it continues until WIDTHS[1] trees are examined, and so
 * on. */
static const int32_t WIDTHS[] = {4, 32, INT32_MAX};

typedef struct {
    double flow; /* flow of the tree on the bundle, rounded to nine decimals */
    int32_t tree;
} use_t;

typedef struct {
    /* worst: highest utilisation on the new path; flow: the flow that moves; both rounded to nine decimals */
    double worst, flow;
    int32_t tree, at, bundle;
} move_t;

typedef struct {
    const ibn_grid_trees *trees;
    use_t *uses; /* [T], trees that use the bundle of the present step */
    /* [S, T] by switch and tree: `hop` [T, S] transposed, so that the trees over a bundle are found quickly */
    uint8_t *out;
    /* [S], result of the last call of mark(job, tree, goal).  YES: the path of the switch in this tree leads through
     * switch `goal`.  NO: it does not.  (UNKNOWN occurs only while the function runs.) */
    uint8_t *inside;
    int32_t *walked; /* [S], scratch: switches on a path */
    int32_t classes; /* K, number of different inverse capacities */
    int32_t *class;  /* [N], class of each bundle: index of its inverse capacity in `inverse` */
    double *inverse; /* [K], inverse capacity of the bundles of each class */
    /* [S, K] by switch and class, for the tree of the last call of the function mark: the highest load of the bundles
     * of this class on the path of the switch */
    double *peak;
    int64_t visits; /* number of switches that may still be visited */
} job_t;

enum { UNKNOWN, YES, NO };

/* Round a sum of flows to nine decimals, so that equal sums compare as equal.  The last bits of such a sum depend on
 * the order of the additions. */
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

/* Compute which paths in a tree lead through switch `goal`, and the highest loads on the paths.  `inside` becomes YES
 * for each switch whose path leads through `goal`, and NO for all other switches.  `peak` receives the highest load of
 * each class of bundles on each path.  Of paths through `goal`, only the bundles before `goal` count. */
static void mark(job_t *job, int32_t tree, int32_t goal)
{
    const ibn_grid_trees *t = job->trees;
    const int32_t *hops = t->hops + (int64_t)tree * t->switches, classes = job->classes;
    memset(job->inside, UNKNOWN, (size_t)t->switches);
    for (int32_t k = 0; k < classes; k++)
        job->peak[(int64_t)t->root[tree] * classes + k] = job->peak[(int64_t)goal * classes + k] = -INFINITY;
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
        while (count) {
            const int32_t before = job->walked[--count], bundle = next_bundle(t, tree, before);
            const double *from = job->peak + (int64_t)at * classes, load = t->load[bundle];
            double *peak = job->peak + (int64_t)before * classes;
            for (int32_t k = 0; k < classes; k++)
                peak[k] = k == job->class[bundle] && load > from[k] ? load : from[k];
            job->inside[before] = job->inside[at];
            at = before;
        }
    }
    job->visits -= t->switches;
}

/* Return the highest utilisation on the path that begins with a given bundle, if `flow` is added to the path. */
static double utilisation_after(const job_t *job, int32_t bundle, double flow)
{
    const ibn_grid_trees *t = job->trees;
    double worst = (t->load[bundle] + flow) * t->inverse_capacity[bundle];
    for (int32_t k = 0; k < job->classes; k++) {
        double utilisation = (job->peak[(int64_t)t->dst[bundle] * job->classes + k] + flow) * job->inverse[k];
        worst = utilisation > worst ? utilisation : worst;
    }
    return worst;
}

/* Examine the moves in one tree: other next hops for each switch whose path leads over the bundle `hot`.  If the best
 * of these moves is better than `best`, replace `best`.  The utilisation on the new path must be below `limit`. */
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
            if (onward < 0 || onward + 1 > t->hops[row + at] + t->longer || job->inside[t->dst[bundle]] == YES)
                continue;
            job->visits--;
            const double worst = utilisation_after(job, bundle, flow);
            move.worst = worst < limit ? rounded(worst) : INFINITY;
            if (move.worst < best->worst || (move.worst == best->worst && move.flow < best->flow))
                *best = move;
        }
    }
}

/* Add `amount` to the load of each bundle on the path of a switch, and to the flow of each later switch on this path.
 * The flow of the first switch itself does not change. */
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
    job->out[(int64_t)move->at * t->trees + move->tree] = t->hop[row + move->at];
    add_flow(t, move->tree, move->at, flow);
    mark(job, move->tree, move->at);
    for (int32_t at = 0; at < t->switches; at++)
        if (job->inside[at] == YES) {
            t->hops[row + at] += longer;
            t->regular[row + at] = 0;
        }
}

/* Move the WIDTHS[0] largest flows to the beginning of `uses`, the largest flow first.  The other flows are not
 * sorted. */
static void begin_sort(job_t *job, int32_t count)
{
    for (int32_t i = 0; i < WIDTHS[0] && i < count; i++)
        for (int32_t k = i + 1; k < count; k++)
            if (by_flow(&job->uses[k], &job->uses[i]) < 0) {
                const use_t moved = job->uses[i];
                job->uses[i] = job->uses[k];
                job->uses[k] = moved;
            }
}

/* List the trees with traffic over a bundle, and return their number. */
static int32_t list_uses(job_t *job, int32_t bundle)
{
    const ibn_grid_trees *t = job->trees;
    const int32_t at = t->src[bundle];
    int32_t count = 0;
    const uint8_t *out = job->out + (int64_t)at * t->trees;
    for (int32_t tree = 0; tree < t->trees; tree++) {
        double flow = out[tree] == bundle - t->first[at] ? t->flow[(int64_t)tree * t->switches + at] : 0;
        if (flow > 0)
            job->uses[count++] = (use_t){.flow = rounded(flow), .tree = tree};
    }
    begin_sort(job, count);
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
        if (width == 1)
            qsort(job->uses + i, (size_t)(count - i), sizeof(use_t), by_flow);
        for (; i < count && i < WIDTHS[width]; i++)
            examine(job, job->uses[i].tree, hot, limit, &best);
        if (best.worst < INFINITY) {
            apply(job, &best);
            return 1;
        }
    }
    return 0;
}

/* Sort the bundles into classes by their inverse capacity, and transpose `hop`. */
static void prepare(job_t *job)
{
    const ibn_grid_trees *t = job->trees;
    for (int32_t bundle = 0; bundle < t->bundles; bundle++) {
        int32_t k = 0;
        while (k < job->classes && job->inverse[k] != t->inverse_capacity[bundle])
            k++;
        job->inverse[k] = t->inverse_capacity[bundle];
        job->class[bundle] = k;
        job->classes += k == job->classes;
    }
    for (int32_t tree = 0; tree < t->trees; tree++)
        for (int32_t s = 0; s < t->switches; s++)
            job->out[(int64_t)s * t->trees + tree] = t->hop[(int64_t)tree * t->switches + s];
}

/* Move paths until no move lowers the utilisation of the bundle with the highest utilisation, or until *visits switches
 * were visited.  A single step may exceed this number.  Set *visits to the number of visited switches. */
int ibn_trees_balance_grid(const ibn_grid_trees *t, int64_t *visits)
{
    const size_t switches = (size_t)t->switches, trees = (size_t)t->trees, bundles = (size_t)t->bundles;
    job_t job = {.trees = t, .visits = *visits};
    job.uses = malloc(trees * sizeof *job.uses + 1);
    job.out = malloc(trees * switches + 1);
    job.inside = malloc(switches + 1);
    job.walked = malloc(switches * sizeof *job.walked + 1);
    job.class = malloc(bundles * sizeof *job.class + 1);
    job.inverse = malloc(bundles * sizeof *job.inverse + 1);
    int failed = !job.uses || !job.out || !job.inside || !job.walked || !job.class || !job.inverse;
    if (!failed)
        prepare(&job);
    job.peak = malloc(switches * (size_t)job.classes * sizeof *job.peak + 1);
    failed = failed || !job.peak;
    while (!failed && bundles > 0 && job.visits > 0 && step(&job))
        ;
    *visits -= job.visits;
    free(job.uses);
    free(job.out);
    free(job.inside);
    free(job.walked);
    free(job.class);
    free(job.inverse);
    free(job.peak);
    return failed;
}
