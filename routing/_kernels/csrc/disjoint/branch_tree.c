/* Compute all trees of each destination except the first tree, which exists already.  The switches whose paths enter
 * the destination by the same link are a branch of a tree.  Each further tree copies some branches of the first tree.
 * All other switches are attached to the copied branches, the nearest switches first. */
#include <string.h>

#include "core/internal/random.h"
#include "disjoint/internal/disjoint_job.h"

static const double SHARED_LINK = 10, WRONG_ORDER = 15;

/* Return the cost of a path from switch s.  The path begins with channel c, and then follows a tree.  The cost is the
 * sum of three parts:
 *   the cost of the loads on the channels,
 *   SHARED_LINK for each earlier tree in which the path of s shares a link with this path,
 *   WRONG_ORDER if no suitable switch order allows the path (disjoint_is_wrong).
 *
 * A path with the cost WRONG_ORDER may be chosen here.  If no suitable switch order allows it in the end either, the
 * path of the first tree replaces it.  The caller has marked the links of the paths of s in the earlier trees.
 * `highest` is the highest utilisation of a channel, by which utilisations are divided. */
static double join_cost(disjoint_job *job, int32_t d, int32_t tree, int32_t s, int32_t c, double highest)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const double flow = (net->weight[s] > 0 ? net->weight[s] : 1) * net->weight[d];
    uint8_t hit = job->stamp[net->link[c]] == job->now ? job->mark[net->link[c]] : 0;
    hit |= ibn_disjoint_marked(job, d, row, net->dst[c], d);
    double cost = disjoint_is_wrong(job, d, tree, s, disjoint_mask_over(job, d, row, c)) ? WRONG_ORDER : 0;
    for (; hit; hit &= (uint8_t)(hit - 1))
        cost += SHARED_LINK;
    for (int32_t e = c;;) {
        cost += disjoint_power4((job->load[1][e] + flow * net->inverse_capacity[e]) / highest);
        const int32_t v = net->dst[e];
        if (v == d)
            return cost;
        e = disjoint_hop(job, job->next + row, v);
    }
}

static void set_entry(disjoint_job *job, int32_t d, int64_t row, int32_t s, int32_t c)
{
    job->next[row + s] = (uint8_t)(c - job->net->first[s]);
    job->depth[row + s] = (uint16_t)(job->depth[row + job->net->dst[c]] + 1);
    job->mask[row + s] = disjoint_mask_over(job, d, row, c);
}

/* Attach switch s to the tree by the cheapest possible channel.  A channel to a neighbour is possible if the
 * neighbour's path has `level` - 1 hops.  A channel to the destination itself is possible if the tree copies the first
 * tree's branch that enters the destination by the link of this channel.  Returns whether the switch was attached.
 * `highest` is the highest utilisation of a channel. */
static bool join(disjoint_job *job, int32_t d, int32_t tree, int32_t s, int32_t level, double highest)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    double least = 0;
    int32_t best = -1;
    for (int32_t c = net->first[s]; c < net->first[s + 1]; c++) {
        const int32_t w = net->dst[c];
        if (w == d ? !job->kept[net->link[c]] : job->depth[row + w] != level - 1)
            continue;
        if (best < 0)
            ibn_disjoint_mark_paths(job, d, s, (1u << tree) - 1);
        const double cost = join_cost(job, d, tree, s, c, highest);
        if (best < 0 || cost < least) {
            least = cost;
            best = c;
        }
    }
    if (best >= 0)
        set_entry(job, d, row, s, best);
    return best >= 0;
}

/* Copy some branches from the first tree to another tree.  A branch is all switches whose paths enter the destination
 * by one link.  The branches whose links are marked in job->kept are copied.  Returns the number of switches that are
 * on no copied branch. */
static int32_t keep_branches(disjoint_job *job, int32_t d, int32_t tree)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree), base = disjoint_row(job, d, 0);
    const int32_t reached = job->count[net->switches];
    int32_t left = 0;
    memset(job->depth + row, 0xFF, (size_t)net->switches * sizeof *job->depth);
    job->depth[row + d] = 0;
    job->mask[row + d] = 255;
    for (int32_t q = 1; q < reached; q++) {
        /* The nearest switches are visited first.  Therefore it is already known whether the next switch on the path of
         * a visited switch is on a copied branch. */
        const int32_t s = job->queue[q], c = disjoint_hop(job, job->next + base, s), w = net->dst[c];
        const bool keeps = w == d ? job->kept[net->link[c]] : job->depth[row + w] != DISJOINT_UNREACHED;
        if (keeps)
            set_entry(job, d, row, s, c);
        left += !keeps;
    }
    return left;
}

/* Compute one tree of a destination.  The caller has filled job->queue and job->count by ibn_disjoint_by_distance.
 * `highest` is the highest utilisation of a channel. */
static void grow(disjoint_job *job, int32_t d, int32_t tree, double highest)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree), base = disjoint_row(job, d, 0);
    const int32_t reached = job->count[net->switches];
    int32_t left = keep_branches(job, d, tree);
    for (int32_t level = 1; level <= net->most_hops && left > 0; level++) {
        ibn_core_shuffle(job->turn, net->switches, &job->random);
        for (int32_t i = 0; i < net->switches; i++) {
            const int32_t s = job->turn[i];
            if (s != d && net->distance[(int64_t)d * net->switches + s] != DISJOINT_UNREACHED
                && job->depth[row + s] == DISJOINT_UNREACHED)
                left -= join(job, d, tree, s, level, highest);
        }
    }
    for (int32_t q = 1; q < reached && left > 0; q++) {
        const int32_t s = job->queue[q];
        if (job->depth[row + s] == DISJOINT_UNREACHED)
            set_entry(job, d, row, s, disjoint_hop(job, job->next + base, s));
    }
}

/* Choose which branches of the first tree another tree copies, and mark the links of these branches in job->kept.  A
 * branch is all switches whose paths enter destination d by one link, so to choose a branch is to choose this link.
 *
 * `into` lists all links into the destination in random order.  Each tree chooses the next few links of this list,
 * which begins again after its end.  So each link is chosen by about as many trees as every other link, and two trees
 * have few chosen links in common. */
static void choose_kept(const disjoint_job *job, int32_t d, int32_t tree, const int32_t *into)
{
    const disjoint_request *net = job->net;
    const int32_t degree = net->first[d + 1] - net->first[d], others = net->trees - 1;
    /* `times` is the mean number of trees that choose one link.  It is in percent, so that whole numbers suffice.  If
     * fewer link-disjoint paths are wanted than there are trees, several trees may choose the same link.  Otherwise no
     * two trees should choose the same link.  Then `times` is 99 percent, so that all trees together choose slightly
     * fewer links than `into` has. */
    const int64_t times = net->wanted < net->trees ? 100 * (int64_t)(net->trees - net->wanted) : 99;
    int64_t from = (tree - 1) * degree * times / (100 * (int64_t)others);
    int64_t to = tree * degree * times / (100 * (int64_t)others);
    if (to <= from) {
        from = tree - 1;
        to = tree;
    }
    for (int32_t i = 0; i < degree; i++)
        job->kept[into[i]] = 0;
    for (int64_t i = from; i < to && degree > 0; i++)
        job->kept[into[i % degree]] = 1;
}

/* Compute all trees except the first tree, for each destination with end ports. */
void ibn_disjoint_branch_trees(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    ibn_core_shuffle(job->shuffled, net->switches, &job->random);
    for (int32_t i = 0; i < net->switches; i++) {
        const int32_t d = job->shuffled[i], degree = net->first[d + 1] - net->first[d];
        if (!(net->weight[d] > 0))
            continue;
        int32_t into[DISJOINT_NONE];
        double highest = 1;
        for (int32_t k = 0; k < degree; k++)
            into[k] = net->link[net->first[d] + k];
        ibn_core_shuffle(into, degree, &job->random);
        for (int32_t c = 0; c < net->channels; c++)
            if (job->load[1][c] > highest)
                highest = job->load[1][c];
        ibn_disjoint_by_distance(job, d);
        for (int32_t tree = 1; tree < net->trees; tree++) {
            choose_kept(job, d, tree, into);
            grow(job, d, tree, highest);
            ibn_disjoint_add_load(job, d, tree, 1);
        }
        ibn_disjoint_fill_conflicts(job, d);
    }
}
