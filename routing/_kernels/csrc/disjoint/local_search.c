/* Local search over trees: in each move, a switch of a tree gets a new next hop that lowers the cost.  The paths of all
 * switches upstream of this switch change with it.  In this file, the load of a channel is its utilisation: flow times
 * inverse capacity. */
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"
#include "disjoint/internal/disjoint_job.h"

enum { RIGID_SWEEPS = 2, IDLE_PASSES = 25, SMOOTH_BEFORE = 12 };
static const double WRONG_ORDER = 1000, MISSING_PATH = 100, HOP_OVER = 1e5, BALANCE = 5, TIE = 1e-9;

typedef struct {
    disjoint_job *job;
    /* head: [S], first child of each switch in the current tree; sibling: [S], for each switch the next switch with the
     * same parent; -1: none */
    int32_t *head, *sibling;
    /* [S]: the switch that is moved, followed by all switches upstream in the tree; each switch comes after its
     * parent */
    int32_t *subtree;
    /* below: [S], hops to the moved switch; parent: [S], index of the parent in `subtree`.  Both arrays are in the
     * order of `subtree`. */
    int32_t *below, *parent;
    uint32_t *member; /* [S]: by switch, the number of the last move that had the switch in `subtree` */
    uint32_t move;    /* number of the current move, for comparison with the elements of `member` */
    /* size: number of switches in `subtree`; deepest: hops from the farthest switch of `subtree` to the moved switch */
    int32_t size, deepest;
    double flow; /* flow that all switches in `subtree` together send to the destination */
    /* Properties of the paths that the switches of the subtree would have after the move.  Both arrays are [candidates,
     * S]: by candidate next hop of the moved switch, and by index of the switch in `subtree`.
     *
     * mask: the switch orders that allow the path, as bits.
     * hit: the other trees with which the path would share a link, as bits. */
    uint8_t *mask, *hit;
    /* [S, K]: scratch of the function follow_first_if_wrong: by destination and tree, whether the function has replaced
     * a path in this tree */
    uint8_t *changed;
    /* [candidates]: cost of each candidate next hop of the moved switch; negative: the next hop is not possible */
    double *cost;
    /* [2]: reference values, by which loads are divided before costs are computed.  A reference value is a weighted
     * mean of the highest load and the mean load of all channels.  Element 0 is for loads by the first trees only,
     * element 1 for loads by all trees together */
    double typical[2];
    /* weight of the cost of load: this cost is multiplied by `scale` before it is added to the other costs of a next
     * hop */
    double scale;
    /* highest load of a channel by the first trees of all destinations.  The value is set only while
     * ibn_disjoint_balance_first runs; in the local search over all trees it is 0 */
    double highest;
    /* whether loads below the highest load have a cost too; used only while the first trees are balanced */
    bool smooth;
    /* limit for moves in the first tree of a destination; 0: no limit.  After such a move, no channel of the new path
     * may have a load above the limit.  Only loads by the first trees of all destinations together count. */
    double cap;
} search_job;

static void link_children(search_job *search, int32_t d, const uint8_t *next)
{
    const disjoint_request *net = search->job->net;
    for (int32_t s = 0; s < net->switches; s++)
        search->head[s] = -1;
    for (int32_t s = 0; s < net->switches; s++)
        if (s != d && next[s] != DISJOINT_NONE) {
            const int32_t w = net->dst[net->first[s] + next[s]];
            search->sibling[s] = search->head[w];
            search->head[w] = s;
        }
}

static void collect_subtree(search_job *search, int32_t d, int32_t s)
{
    const disjoint_request *net = search->job->net;
    search->move++;
    search->subtree[0] = s;
    search->below[0] = 0;
    search->parent[0] = -1;
    search->member[s] = search->move;
    search->size = 1;
    search->flow = 0;
    for (int32_t q = 0; q < search->size; q++) {
        search->flow += net->weight[search->subtree[q]] * net->weight[d];
        for (int32_t v = search->head[search->subtree[q]]; v >= 0; v = search->sibling[v]) {
            search->subtree[search->size] = v;
            search->below[search->size] = search->below[q] + 1;
            search->parent[search->size++] = q;
            search->member[v] = search->move;
        }
    }
    search->deepest = search->below[search->size - 1];
}

/* Add (sign 1) or remove (sign -1) the flow of the current subtree on all channels of the path from switch s to
 * destination d. */
static void add_flow(search_job *search, int32_t d, int32_t tree, int32_t s, double sign)
{
    disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    const uint8_t *next = job->next + disjoint_row(job, d, tree);
    for (int32_t v = s; v != d;) {
        const int32_t c = disjoint_hop(job, next, v);
        const double load = sign * search->flow * net->inverse_capacity[c];
        if (tree == 0)
            job->load[0][c] += load;
        job->load[1][c] += load;
        v = net->dst[c];
    }
}

/* Return the cost of the load of one channel.  `load` is this load divided by the highest load of all channels.  With
 * `smooth`, the cost is the 16th power of `load`, so lower loads have a cost too.  Without `smooth`, a load below the
 * highest load costs nothing, so flows may move freely between channels with such loads. */
static double peak_cost(double load, bool smooth)
{
    if (smooth)
        return disjoint_power4(disjoint_power4(load));
    return load > 1 - TIE ? load : 0;
}

/* Return whether a move would raise the load of some channel above the limit `cap`.  The move sends the flow of the
 * subtree (search->flow) over channel c.  From the end of channel c, the flow follows the first tree of destination d.
 * The entries of this tree begin at index `row` of job->next. */
static bool exceeds_cap(const search_job *search, int32_t d, int64_t row, int32_t c)
{
    const disjoint_job *job = search->job;
    while (search->cap > 0) {
        if (job->load[0][c] + search->flow * job->net->inverse_capacity[c] > search->cap * (1 + TIE))
            return true;
        const int32_t v = job->net->dst[c];
        if (v == d)
            return false;
        c = disjoint_hop(job, job->next + row, v);
    }
    return false;
}

static double load_cost(const search_job *search, int32_t d, int32_t tree, int64_t row, int32_t c)
{
    const disjoint_job *job = search->job;
    double cost = 0;
    for (;;) {
        const double flow = search->flow * job->net->inverse_capacity[c],
                     all = (job->load[1][c] + flow) / search->typical[1];
        cost += search->highest > 0 ? peak_cost((job->load[0][c] + flow) / search->highest, search->smooth)
                                    : all * all * disjoint_power4(all) + 1;
        if (tree == 0 && !(search->highest > 0)) {
            const double first = (job->load[0][c] + flow) / search->typical[0], two = first * first;
            cost += 3 * two * disjoint_power4(two);
        }
        const int32_t v = job->net->dst[c];
        if (v == d)
            return cost;
        c = disjoint_hop(job, job->next + row, v);
    }
}

/* Consider the move of a switch to next hop c.  Fill `mask`: for each switch of the subtree, the switch orders that
 * allow its path after the move.  Returns the number of these paths that must not be used (disjoint_is_wrong). */
static int32_t fill_masks(search_job *search, int32_t d, int32_t tree, int32_t c, uint8_t *mask)
{
    const disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const int32_t index = c - net->first[net->src[c]];
    int32_t wrong = 0;
    mask[0] = disjoint_mask_over(job, d, row, c);
    for (int32_t q = 0; q < search->size; q++) {
        const int32_t u = search->subtree[q], parent = search->parent[q];
        if (q > 0) {
            const int32_t last = disjoint_hop(job, job->next + row, u);
            const int32_t turn = parent == 0 ? index : job->next[row + search->subtree[parent]];
            mask[q] = mask[parent] & net->allowed[net->slot[last] + turn];
        }
        wrong += disjoint_is_wrong(job, d, tree, u, mask[q]);
    }
    return wrong;
}

/* Compute the cost of each possible next hop of the moved switch.  The costs of missing link-disjoint paths (see the
 * function missing_cost) are not included.  In the local search over all trees, rule_out and rate_missing add them
 * later.  Returns the number of possible next hops. */
static int32_t rate(search_job *search, int32_t d, int32_t tree)
{
    const disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const int32_t s = search->subtree[0], old = job->next[row + s];
    const uint16_t *hops = net->distance + (int64_t)d * net->switches, *depth = job->depth + row;
    const int32_t old_depth = depth[net->dst[net->first[s] + old]];
    int32_t possible = 0, wrong_now = 0;
    for (int32_t q = 0; q < search->size && tree == 0; q++)
        wrong_now += disjoint_is_wrong(job, d, 0, search->subtree[q], job->mask[row + search->subtree[q]]);
    for (int32_t a = 0; a < net->first[s + 1] - net->first[s]; a++) {
        const int32_t c = net->first[s] + a, w = net->dst[c], longest = depth[w] + 1 + search->deepest;
        search->cost[a] = -1;
        if (search->member[w] == search->move || (tree == 0 && hops[w] != hops[s] - 1)
            || (longest > net->most_hops && depth[w] >= old_depth && a != old))
            continue;
        const int32_t wrong = fill_masks(search, d, tree, c, search->mask + (int64_t)a * net->switches);
        /* A move in a first tree must not raise the number of paths that must not be used (disjoint_is_wrong).  If such
         * a path occurs in another tree, the path of the first tree replaces it later. */
        if (tree == 0 && a != old && (wrong > wrong_now || exceeds_cap(search, d, row, c)))
            continue;
        search->cost[a] = WRONG_ORDER * wrong + (longest > net->most_hops ? HOP_OVER * (longest - net->most_hops) : 0)
                          + load_cost(search, d, tree, row, c) * (search->flow > 1 ? search->flow : 1) * search->scale;
        possible++;
    }
    return possible;
}

/* Switch s should have `wanted` link-disjoint paths to the destination.  Return the cost of the missing paths:
 * MISSING_PATH for each path that the trees do not provide.  The cost is 0 if no path is missing, or if the switch has
 * no end ports.
 *
 * conflict: uint8 [K], by tree.  Bit j of conflict[k] is set if the paths of switch s in the trees j and k share a
 * link. */
static double missing_cost(const disjoint_request *net, int32_t s, const uint8_t *conflict)
{
    return net->weight[s] > 0 ? MISSING_PATH * (net->wanted - ibn_disjoint_most(conflict, net->trees, net->wanted)) : 0;
}

/* Exclude next hops of the moved switch that cannot become the cheapest one.
 *
 * First complete the cost of the present next hop (number `old`): add missing_cost for each switch of the subtree.
 * Then exclude every next hop that costs more than the present one even without missing_cost.  The function
 * rate_missing adds missing_cost to the remaining next hops later.  This cost is never negative, so an excluded next
 * hop could not become the cheapest one.  Returns the number of next hops that remain possible, including the present
 * one. */
static int32_t rule_out(search_job *search, int32_t d, int32_t old)
{
    const disjoint_request *net = search->job->net;
    const int32_t s = search->subtree[0];
    int32_t left = 0;
    for (int32_t q = 0; q < search->size; q++) {
        const int64_t pair = (int64_t)d * net->switches + search->subtree[q];
        search->cost[old] += missing_cost(net, search->subtree[q], search->job->conflict + pair * net->trees);
    }
    for (int32_t a = 0; a < net->first[s + 1] - net->first[s]; a++) {
        if (search->cost[a] > search->cost[old] + TIE)
            search->cost[a] = -1;
        left += search->cost[a] >= 0;
    }
    return left;
}

/* Complete the costs of the possible next hops of the moved switch: add missing_cost for each switch of the subtree,
 * with the paths that the switches would have after the move.  The cost of the present next hop (number `old`) is
 * complete already. */
static void rate_missing(search_job *search, int32_t d, int32_t tree, int32_t old)
{
    disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const int32_t s = search->subtree[0], candidates = net->first[s + 1] - net->first[s], k = net->trees;
    uint8_t others[DISJOINT_MOST_TREES], conflict[DISJOINT_MOST_TREES];
    for (int32_t q = 0; q < search->size; q++) {
        const int32_t u = search->subtree[q];
        ibn_disjoint_mark_paths(job, d, u, EVERY_TREE & ~(1u << tree));
        const uint8_t near = ibn_disjoint_marked(job, d, row, u, s);
        for (int32_t j = 0; j < k; j++)
            others[j] = job->conflict[((int64_t)d * net->switches + u) * k + j] & (uint8_t)~(1u << tree);
        for (int32_t a = 0; a < candidates; a++) {
            if (search->cost[a] < 0 || a == old)
                continue;
            const int32_t c = net->first[s] + a, e = net->link[c];
            uint8_t hit = near | ibn_disjoint_marked(job, d, row, net->dst[c], d);
            if (job->stamp[e] == job->now)
                hit |= job->mark[e];
            search->hit[(int64_t)a * net->switches + q] = hit;
            for (int32_t j = 0; j < k; j++)
                conflict[j] = others[j] | (uint8_t)((hit >> j & 1u) << tree);
            conflict[tree] = hit;
            search->cost[a] += missing_cost(net, u, conflict);
        }
    }
}

/* Make the a-th channel of the moved switch its next hop.  Update the hops, switch orders and link conflicts of all
 * switches in the subtree. */
static void apply(search_job *search, int32_t d, int32_t tree, int32_t a)
{
    disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const int32_t s = search->subtree[0], c = net->first[s] + a;
    int32_t *from = &search->head[net->dst[disjoint_hop(job, job->next + row, s)]];
    while (*from != s)
        from = &search->sibling[*from];
    *from = search->sibling[s];
    search->sibling[s] = search->head[net->dst[c]];
    search->head[net->dst[c]] = s;
    job->next[row + s] = (uint8_t)a;
    for (int32_t q = 0; q < search->size; q++) {
        const int32_t u = search->subtree[q];
        job->depth[row + u] = (uint16_t)(job->depth[row + net->dst[c]] + 1 + search->below[q]);
        job->mask[row + u] = search->mask[(int64_t)a * net->switches + q];
        ibn_disjoint_set_conflict(job, d, u, tree, search->hit[(int64_t)a * net->switches + q]);
    }
}

/* Return the index of the cheapest next hop of the moved switch.  Random numbers decide between equally cheap next
 * hops.  `old` is the index of the present next hop. */
static int32_t cheapest(search_job *search, int32_t old)
{
    disjoint_job *job = search->job;
    const int32_t s = search->subtree[0];
    int32_t best = old;
    for (int32_t a = 0; a < job->net->first[s + 1] - job->net->first[s]; a++) {
        const double gain = search->cost[best] - search->cost[a];
        if (search->cost[a] >= 0 && (gain > TIE || (gain > -TIE && ibn_core_draw(&job->random) & 1)))
            best = a;
    }
    return best;
}

/* Give switch s its cheapest next hop in a tree.  The loads of all channels on the old and the new path are updated. */
static void improve(search_job *search, int32_t d, int32_t tree, int32_t s)
{
    const int32_t old = search->job->next[disjoint_row(search->job, d, tree) + s];
    const bool peaks_only = search->highest > 0;
    int32_t best = old;
    collect_subtree(search, d, s);
    add_flow(search, d, tree, s, -1);
    if (rate(search, d, tree) > 1 && (peaks_only || rule_out(search, d, old) > 1)) {
        if (!peaks_only)
            rate_missing(search, d, tree, old);
        best = cheapest(search, old);
    }
    if (best != old)
        apply(search, d, tree, best);
    add_flow(search, d, tree, s, 1);
}

/* Choose the switch order of each pair of switches again.  A switch order is possible if it allows the paths between
 * both switches in the first trees.  Of the possible switch orders, the order that allows their paths in the most trees
 * is chosen. */
static void choose_orders_again(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    const int64_t switches = net->switches;
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = 0; b < a; b++) {
            const uint8_t old = job->order[a * switches + b];
            int32_t allowed[8] = {0}, best = old;
            if (old == DISJOINT_NONE)
                continue;
            for (int32_t reverse = 0; reverse < 2; reverse++)
                for (int32_t tree = 0; tree < disjoint_trees_of(job, reverse ? a : b); tree++) {
                    const uint8_t mask = job->mask[disjoint_row(job, reverse ? a : b, tree) + (reverse ? b : a)];
                    for (int32_t order = 0; order < net->orders; order++)
                        allowed[order] += (mask >> order & 1) + (tree == 0 ? 100 * (mask >> order & 1) : 0);
                }
            for (int32_t order = 0; order < net->orders; order++)
                if (allowed[order] >= 200 && allowed[order] > allowed[best])
                    best = order;
            job->order[a * switches + b] = job->order[b * switches + a] = (uint8_t)best;
        }
}

/* Return whether the path from s to d in a tree should be replaced.  This is the case if this path must not be used
 * (disjoint_is_wrong), and the path from s to d in the first tree may be used. */
static bool can_follow_first(const disjoint_job *job, int32_t d, int32_t tree, int32_t s)
{
    const int64_t row = disjoint_row(job, d, 0);
    return disjoint_is_wrong(job, d, tree, s, job->mask[disjoint_row(job, d, tree) + s])
           && !disjoint_is_wrong(job, d, 0, s, job->mask[row + s]);
}

/* Replace the path from s to d in one tree by the path from s to d in the first tree.  If the request does not set
 * `shared` and switch s has end ports, also replace the reply path: the path from d to s in the tree with the same
 * number.  Switch orders and loads are not updated. */
static void copy_both(disjoint_job *job, int32_t d, int32_t tree, int32_t s, uint8_t *changed)
{
    ibn_disjoint_copy_first(job->net, job->next, d, tree, s);
    changed[(int64_t)d * job->net->trees + tree] = 1;
    if (job->net->weight[s] > 0 && !job->net->shared) {
        ibn_disjoint_copy_first(job->net, job->next, s, tree, d);
        changed[(int64_t)s * job->net->trees + tree] = 1;
    }
}

/* Replace each path that must not be used (disjoint_is_wrong) by the path between the same switches in the first tree.
 * Returns the number of replaced paths. changed: [S, K], scratch. */
static int64_t follow_first_if_wrong(disjoint_job *job, uint8_t *changed)
{
    const disjoint_request *net = job->net;
    int64_t found = 0;
    memset(changed, 0, (size_t)net->switches * (size_t)net->trees);
    for (int32_t d = 0; d < net->switches; d++)
        for (int32_t tree = 1; tree < disjoint_trees_of(job, d); tree++)
            for (int32_t s = 0; s < net->switches; s++)
                if (s != d && net->distance[(int64_t)d * net->switches + s] != DISJOINT_UNREACHED
                    && can_follow_first(job, d, tree, s)) {
                    found++;
                    copy_both(job, d, tree, s, changed);
                }
    for (int32_t d = 0; d < net->switches; d++) {
        int32_t here = 0;
        for (int32_t tree = 1; tree < net->trees; tree++)
            if (changed[(int64_t)d * net->trees + tree]) {
                ibn_disjoint_trace_tree(job, d, tree);
                here++;
            }
        if (here > 0)
            ibn_disjoint_fill_conflicts(job, d);
    }
    return found;
}

/* Compute the loads on all channels from all trees. */
static void count_load(disjoint_job *job)
{
    const disjoint_request *net = job->net;
    memset(job->load[0], 0, (size_t)net->channels * sizeof *job->load[0]);
    memset(job->load[1], 0, (size_t)net->channels * sizeof *job->load[1]);
    for (int32_t d = 0; d < net->switches; d++)
        for (int32_t tree = 0; tree < disjoint_trees_of(job, d); tree++)
            /* Trees that have not been computed yet have no entries, and so add no load. */
            ibn_disjoint_add_load(job, d, tree, 1);
}

static void set_scale(search_job *search)
{
    const disjoint_request *net = search->job->net;
    double ends = 0;
    for (int32_t s = 0; s < net->switches; s++)
        ends += net->weight[s];
    for (int32_t i = 0; i < 2; i++) {
        double highest = 0, sum = 0;
        for (int32_t c = 0; c < net->channels; c++) {
            sum += search->job->load[i][c];
            if (search->job->load[i][c] > highest)
                highest = search->job->load[i][c];
        }
        search->typical[i] = sum > 0 ? 0.4 * highest + 0.6 * sum / net->channels : 1;
    }
    search->scale = ends > 0 ? BALANCE * (net->switches / ends) * (net->switches / ends) : 1;
}

/* Visit the trees `first` to `last` - 1 of each destination with end ports.  In each of these trees, give every switch
 * its cheapest next hop. */
static void sweep(search_job *search, int32_t first, int32_t last)
{
    disjoint_job *job = search->job;
    const disjoint_request *net = job->net;
    ibn_core_shuffle(job->shuffled, net->switches, &job->random);
    for (int32_t i = 0; i < net->switches; i++) {
        const int32_t d = job->shuffled[i];
        for (int32_t tree = first; net->weight[d] > 0 && tree < last; tree++) {
            const uint8_t *next = job->next + disjoint_row(job, d, tree);
            link_children(search, d, next);
            ibn_core_shuffle(job->turn, net->switches, &job->random);
            for (int32_t q = 0; q < net->switches; q++)
                if (job->turn[q] != d && next[job->turn[q]] != DISJOINT_NONE)
                    improve(search, d, tree, job->turn[q]);
        }
    }
}

static int prepare(search_job *search)
{
    const disjoint_request *net = search->job->net;
    const size_t switches = (size_t)net->switches + 1;
    size_t most = 1;
    for (int32_t s = 0; s < net->switches; s++)
        if ((size_t)(net->first[s + 1] - net->first[s]) > most)
            most = (size_t)(net->first[s + 1] - net->first[s]);
    int32_t *scratch = malloc(5 * switches * sizeof *scratch);
    search->head = scratch;
    search->member = calloc(switches, sizeof *search->member);
    search->mask = malloc(most * switches);
    search->hit = malloc(most * switches);
    search->changed = malloc(switches * (size_t)net->trees);
    search->cost = malloc(most * sizeof *search->cost);
    if (!scratch || !search->member || !search->mask || !search->hit || !search->changed || !search->cost)
        return DISJOINT_NO_MEMORY;
    search->sibling = scratch + switches;
    search->subtree = scratch + 2 * switches;
    search->below = scratch + 3 * switches;
    search->parent = scratch + 4 * switches;
    return DISJOINT_OK;
}

static void dispose(search_job *search)
{
    free(search->head);
    free(search->member);
    free(search->mask);
    free(search->hit);
    free(search->changed);
    free(search->cost);
}

/* Return the number of paths in first trees that must not be used, because no suitable switch order allows them. */
static int64_t count_wrong(const disjoint_job *job)
{
    const int32_t switches = job->net->switches;
    int64_t found = 0;
    for (int32_t d = 0; d < switches; d++)
        for (int32_t s = 0; s < switches; s++)
            if (s != d && job->net->distance[(int64_t)d * switches + s] != DISJOINT_UNREACHED)
                found += disjoint_is_wrong(job, d, 0, s, job->mask[disjoint_row(job, d, 0) + s]);
    return found;
}

/* Balance the first trees of all destinations.  The search moves next hops off the channels with the highest load.  The
 * search also tries to replace paths that must not be used (disjoint_is_wrong).  If the caller has given initial first
 * trees, no move raises a load above the highest load of these initial trees.  The search ends after IDLE_PASSES passes
 * without a gain, or after the number of passes that the request allows.  Returns DISJOINT_OK or DISJOINT_NO_MEMORY. */
int ibn_disjoint_balance_first(disjoint_job *job)
{
    search_job search = {.job = job};
    const int code = prepare(&search);
    double least_load = 0;
    int64_t least_wrong = 0;
    for (int32_t i = 0, idle = 0; code == DISJOINT_OK && i < job->net->balance_sweeps && idle < IDLE_PASSES; i++) {
        count_load(job);
        set_scale(&search);
        search.highest = disjoint_highest_load(job, 0);
        if (!(search.highest > 0))
            break;
        if (i == 0 && job->net->initial)
            search.cap = search.highest;
        const int64_t wrong = count_wrong(job);
        const bool better = i == 0 || search.highest < least_load - TIE || wrong < least_wrong;
        idle = better ? 0 : idle + 1;
        least_load = i == 0 || search.highest < least_load ? search.highest : least_load;
        least_wrong = i == 0 || wrong < least_wrong ? wrong : least_wrong;
        search.smooth = i < SMOOTH_BEFORE && i % 2 == 0;
        sweep(&search, 0, 1);
    }
    dispose(&search);
    return code;
}

/* Improve all trees by local search.  Then replace paths that must not be used (disjoint_is_wrong) by the paths of the
 * first trees.  A path that must not be used remains only if the path of the first tree must not be used either.
 * Returns DISJOINT_OK or DISJOINT_NO_MEMORY. */
int ibn_disjoint_local_search(disjoint_job *job)
{
    search_job search = {.job = job};
    const int code = prepare(&search);
    count_load(job);
    search.cap = disjoint_highest_load(job, 0);
    for (int32_t i = 0; code == DISJOINT_OK && i < job->net->sweeps; i++) {
        if (i > 0 && job->shared)
            choose_orders_again(job);
        if (i >= RIGID_SWEEPS)
            follow_first_if_wrong(job, search.changed);
        count_load(job);
        set_scale(&search);
        /* With `concentrate`, the first trees shall use few channels.  The search would spread the traffic of the first
         * trees over more channels.  So the search changes only the other trees. */
        sweep(&search, job->net->concentrate ? 1 : 0, job->net->trees);
    }
    /* The loop ends, because each repetition replaces at least one path by a path of a first tree. */
    while (code == DISJOINT_OK && follow_first_if_wrong(job, search.changed) > 0)
        continue;
    if (code == DISJOINT_OK)
        count_load(job);
    dispose(&search);
    return code;
}
