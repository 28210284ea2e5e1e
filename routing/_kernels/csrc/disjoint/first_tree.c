/* Compute the first tree of each destination, which has shortest paths with a balanced load.  Also choose for each pair
 * of switches a switch order that allows the paths between them.  Switch orders are explained in disjoint.h. */
#include <string.h>

#include "core/internal/random.h"
#include "disjoint/internal/disjoint_job.h"

enum { PASSES = 3, REFRESH = 16 };
static const double NO_COMMON_ORDER = 1e6;

static double power16(double x)
{
    return disjoint_power4(disjoint_power4(x));
}

/* Return the cost that a path would have with an additional flow `flow`.  The path begins with channel c and then
 * follows a tree to destination d.  The entries of the tree begin at index `row` of job->next.  `highest` is the
 * highest utilisation of a channel. */
static double path_cost(const disjoint_job *job, int32_t d, int64_t row, int32_t c, double flow, double highest)
{
    const disjoint_request *net = job->net;
    double cost = 0;
    for (;;) {
        cost += power16((job->load[0][c] + flow * net->inverse_capacity[c]) / highest);
        const int32_t v = net->dst[c];
        if (v == d)
            return cost;
        c = disjoint_hop(job, job->next + row, v);
    }
}

/* Attach a switch to the first tree of a destination.  The switch takes the cheapest channel with which a shortest path
 * begins.  `highest` is the highest utilisation of a channel. */
static void attach(disjoint_job *job, int32_t d, int32_t s, double highest)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, 0);
    const uint16_t *hops = net->distance + (int64_t)d * net->switches;
    const uint8_t back = job->mask[disjoint_row(job, s, 0) + d];
    const double flow = (net->weight[s] > 0 ? net->weight[s] : 1) * net->weight[d];
    double least = 0;
    int32_t best = -1;
    for (int32_t c = net->first[s]; c < net->first[s + 1]; c++) {
        if (hops[net->dst[c]] != hops[s] - 1)
            continue;
        /* To concentrate the traffic on few channels, the switch sends to the neighbour that already forwards the most
         * traffic in this tree. */
        double cost =
            net->concentrate ? 1 / (1 + job->forwarded[net->dst[c]]) : path_cost(job, d, row, c, flow, highest);
        if (disjoint_counts(job, s, d) && !(disjoint_mask_over(job, d, row, c) & back))
            cost += NO_COMMON_ORDER;
        if (best < 0 || cost < least) {
            least = cost;
            best = c;
        }
    }
    job->next[row + s] = (uint8_t)(best - net->first[s]);
    job->mask[row + s] = disjoint_mask_over(job, d, row, best);
    job->depth[row + s] = hops[s];
    for (int32_t v = s; v != d;) {
        const int32_t c = disjoint_hop(job, job->next + row, v);
        job->load[0][c] += net->weight[s] * net->weight[d] * net->inverse_capacity[c];
        v = net->dst[c];
        job->forwarded[v] += net->weight[s];
    }
}

/* Copy the first trees that the caller has given as `initial` in the request. */
static void copy_initial(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    for (int32_t d = 0; d < net->switches; d++) {
        memcpy(job->next + disjoint_row(job, d, 0), net->initial + (int64_t)d * net->switches, (size_t)net->switches);
        ibn_disjoint_trace_tree(job, d, 0);
    }
}

/* Compute the first trees of all destinations, in several passes.  The second and later passes remove each tree and
 * compute it again.  Only in these passes, the loads of all trees are known, and also the switch orders that allow the
 * reply paths. */
void ibn_disjoint_first_trees(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    double highest = 1;
    /* A path that has not been computed yet must not exclude any switch order.  So all bits are set: 255 means that all
     * switch orders allow the path. */
    memset(job->mask, 255, (size_t)net->switches * (size_t)net->switches * (size_t)net->trees);
    if (net->initial)
        copy_initial(job);
    for (int32_t pass = 0; pass < PASSES && !net->initial; pass++) {
        ibn_core_shuffle(job->shuffled, net->switches, &job->random);
        for (int32_t i = 0; i < net->switches; i++) {
            const int32_t d = job->shuffled[i];
            if (i % REFRESH == 0)
                highest = disjoint_highest_load(job, 1);
            if (pass > 0)
                ibn_disjoint_add_load(job, d, 0, -1);
            ibn_disjoint_by_distance(job, d);
            memset(job->forwarded, 0, (size_t)net->switches * sizeof *job->forwarded);
            for (int32_t q = 1; q < job->count[net->switches]; q++)
                attach(job, d, job->queue[q], highest);
        }
    }
}

/* Choose a switch order that allows the paths between switches a and b in the first trees, in both directions.
 *
 * Each switch order allows paths with some number of different first channels from a to b, and from b to a (`degree`).
 * The switch order is chosen for which the smaller of these two numbers is largest.  Of equally good switch orders, the
 * first one at or after number `rotate` is chosen; number 0 follows after the last number.  Returns DISJOINT_NONE if no
 * switch order allows both paths. */
static uint8_t choose(const disjoint_job *job, int32_t a, int32_t b, int32_t rotate)
{
    const disjoint_request *net = job->net;
    const int64_t pair = (int64_t)a * net->switches + b, back = (int64_t)b * net->switches + a;
    const int64_t size = (int64_t)net->switches * net->switches;
    const uint8_t mask = job->mask[disjoint_row(job, a, 0) + b] & job->mask[disjoint_row(job, b, 0) + a];
    int32_t best = DISJOINT_NONE, most = -1;
    for (int32_t i = 0; i < net->orders; i++) {
        const int32_t order = (i + rotate) % net->orders;
        const uint8_t *degree = net->degree + order * size;
        const int32_t both = degree[pair] < degree[back] ? degree[pair] : degree[back];
        if (mask >> order & 1 && both > most) {
            most = both;
            best = order;
        }
    }
    return (uint8_t)best;
}

/* Choose a switch order for each pair of switches between which traffic counts.  If the request does not set `shared`,
 * nothing is done, because a pair of switches may then have a different switch order in each tree. */
void ibn_disjoint_choose_orders(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    const int64_t switches = net->switches;
    int32_t rotate = 0;
    job->shared = net->shared;
    if (!net->shared)
        return;
    memset(job->order, DISJOINT_NONE, (size_t)switches * (size_t)switches);
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = 0; b < a; b++) {
            if (!disjoint_counts(job, a, b) || net->distance[a * switches + b] == DISJOINT_UNREACHED)
                continue;
            job->order[a * switches + b] = job->order[b * switches + a] = choose(job, a, b, rotate++);
        }
}

/* Return a switch order from the set `mask` (bits), or DISJOINT_NONE if the set is empty.  The first order in the set
 * at or after number `rotate` is returned; after the last number, the search continues at 0. */
static uint8_t pick(const disjoint_request *net, uint8_t mask, int32_t rotate)
{
    for (int32_t i = 0; i < net->orders; i++)
        if (mask >> (i + rotate) % net->orders & 1)
            return (uint8_t)((i + rotate) % net->orders);
    return DISJOINT_NONE;
}

/* Fill the array `order` of disjoint_trees with the switch order of each pair of switches in each tree. */
void ibn_disjoint_state_orders(const disjoint_job *job, uint8_t *order)
{
    const disjoint_request *net = job->net;
    const int64_t switches = net->switches;
    memset(order, DISJOINT_NONE, (size_t)(switches * switches * net->trees));
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = 0; b < a; b++)
            for (int32_t tree = 0; tree < net->trees && disjoint_counts(job, a, b); tree++) {
                if (net->distance[a * switches + b] == DISJOINT_UNREACHED)
                    break;
                const int32_t to_a = net->weight[a] > 0 ? tree : 0, to_b = net->weight[b] > 0 ? tree : 0;
                const uint8_t both =
                    job->mask[disjoint_row(job, a, to_a) + b] & job->mask[disjoint_row(job, b, to_b) + a];
                const uint8_t found = net->shared ? job->order[a * switches + b] : pick(net, both, a + b + tree);
                order[disjoint_row(job, a, tree) + b] = order[disjoint_row(job, b, tree) + a] = found;
            }
}
