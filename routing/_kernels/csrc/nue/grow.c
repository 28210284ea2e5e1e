/* Compute the tree of one destination over the complete CDG of its layer (VL), beginning with the switch that delivers
 * the destination.
 *
 * The tree grows in waves: the neighbours of the switches of one wave may join in the next wave.  Each such neighbour
 * sorts its channels to switches of the tree by the cost of the whole path.  The neighbour takes the first channel
 * whose dependency on the next channel of the path is allowed.  The flow of the neighbour is added to the path at once.
 *
 * If a switch u finds no such channel, local backtracking is tried: a neighbour of u in the tree gets another next hop,
 * so that u can join by a channel to this neighbour.  If that fails too, u uses the escape tree (escape.c). */
#include <stdlib.h>
#include <string.h>

#include "nue/internal/nue_job.h"
#include "core/internal/random.h"

/* Cost that is added to a next hop for each other LID of the destination's port whose path uses the same next hop.
 * This cost is higher than the cost of any path. */
#define TAKEN 1e12

typedef struct {
    const nue_t *nue;
    layer_t *layer;
    grower_t *grower;
    /* [S] index of each switch's next channel among the channels of the switch, in the tree that is being grown */
    uint8_t *next;
    int32_t target, root, depth,
        reached;      /* depth: number of the present wave; reached: number of switches in the tree */
    int has_siblings; /* whether the destination's port has other LIDs */
    double share;     /* part of the flow to the destination's port that goes to this LID */
} tree_t;

/* Return the next channel of a switch that belongs to the tree. */
static int32_t hop(const tree_t *tree, int32_t u)
{
    return tree->grower->hop[u].channel;
}

/* Return the cost of the present path of switch `from`.  The path is followed to its end in every call, because the
 * costs of its channels change whenever flow is added. */
static double walk(const tree_t *tree, int32_t from)
{
    const load_account *account = &tree->grower->account;
    const hop_t *hops = tree->grower->hop;
    double cost = 0.0;
    for (; from != tree->root; from = hops[from].to)
        cost += account->weight[hops[from].channel];
    return cost;
}

/* Add flow to the channels of the path of switch `from`. */
static void send(const tree_t *tree, int32_t from, double flow)
{
    load_account *account = &tree->grower->account;
    const hop_t *hops = tree->grower->hop;
    for (; from != tree->root; from = hops[from].to)
        ibn_trees_account_add(&tree->nue->job, account, hops[from].channel, flow);
}

/* Set the next hop of switch u to channel c. */
static void take(tree_t *tree, int32_t u, int32_t c)
{
    const ibn_network *net = tree->nue->job.net;
    tree->next[u] = (uint8_t)(c - net->first[u]);
    tree->grower->hop[u] = (hop_t){.channel = c, .to = net->dst[c]};
}

/* Add switch u to the tree by channel c: set the next hop of u, count the dependency of c on the next channel as used,
 * and add the flow of u to its path. */
static void join(tree_t *tree, int32_t u, int32_t c)
{
    const ibn_network *net = tree->nue->job.net;
    int32_t v = net->dst[c];
    double flow = net->sources[u] * tree->share;
    take(tree, u, c);
    tree->grower->depth[u] = tree->depth + 1;
    tree->reached++;
    if (v != tree->root)
        ibn_nue_count(tree->nue, tree->layer, c, hop(tree, v), 1);
    if (flow > 0.0)
        send(tree, u, flow);
}

/* Return the cost of channel c in a tree that carries no flow.  The cost is 0 if the dependency of channel c on the
 * next channel is in use already.  The cost is 1 if the dependency follows the topological order, and 2 if the order
 * would have to change.  A dependency with a high cost restricts later trees more. */
static double idle_cost(const tree_t *tree, int32_t c)
{
    const nue_t *nue = tree->nue;
    int32_t v = nue->job.net->dst[c];
    if (v == tree->root)
        return 0.0;
    int32_t b = hop(tree, v);
    if (tree->layer->used[ibn_nue_slot(nue, c, b)])
        return 0.0;
    return tree->layer->place[c] < tree->layer->place[b] ? 1.0 : 2.0;
}

/* List the channels from switch u to switches of the tree, with the cost of the path over each channel.  Returns the
 * number of listed channels. */
static int32_t gather(const tree_t *tree, int32_t u)
{
    const ibn_network *net = tree->nue->job.net;
    grower_t *grower = tree->grower;
    int32_t count = 0, known = -1;
    double rest = 0.0;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (grower->depth[v] < 0 || grower->depth[v] > tree->depth)
            continue;
        /* Parallel channels often have consecutive numbers.  They end at the same switch, so the cost of this switch's
         * path is computed only once for them. */
        if (v != known && tree->share > 0.0)
            rest = walk(tree, v);
        known = v;
        double cost = tree->share > 0.0 ? grower->account.weight[c] + rest : idle_cost(tree, c);
        if (tree->has_siblings)
            cost += TAKEN * ibn_trees_lmc_siblings(&tree->nue->job, tree->target, u, c);
        grower->candidate[count] = c;
        grower->cost[count++] = cost;
    }
    return count;
}

/* Return the cheapest channel of switch u whose dependency on the next channel of the path is allowed.  Return -1 if
 * there is no such channel. */
static int32_t choose(const tree_t *tree, int32_t u)
{
    grower_t *grower = tree->grower;
    int32_t count = gather(tree, u);
    while (count > 0) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            if (grower->cost[i] < grower->cost[best])
                best = i;
        int32_t c = grower->candidate[best], v = tree->nue->job.net->dst[c];
        if (v == tree->root || ibn_nue_layer_allows(tree->nue, tree->layer, grower, c, hop(tree, v)))
            return c;
        memmove(grower->candidate + best, grower->candidate + best + 1,
                (size_t)(count - best - 1) * sizeof *grower->candidate);
        memmove(grower->cost + best, grower->cost + best + 1, (size_t)(count - best - 1) * sizeof *grower->cost);
        count--;
    }
    return -1;
}

/* Let the tree grow wave by wave until no further switch can join.  The queue lists the switches of the tree in the
 * sequence in which they joined.  Only switches at index `head` of the queue or later bring in their neighbours. */
static void spread_out(tree_t *tree, int32_t head)
{
    const ibn_network *net = tree->nue->job.net;
    grower_t *grower = tree->grower;
    load_account *account = &grower->account;
    while (head < tree->reached) {
        int32_t end = tree->reached, count = 0;
        int64_t stamp = ++grower->stamp;
        for (; head < end; head++)
            for (int32_t i = net->into_first[account->queue[head]]; i < net->into_first[account->queue[head] + 1];
                 i++) {
                int32_t u = net->src[net->into[i]];
                if (grower->depth[u] < 0 && grower->seen[u] != stamp) {
                    grower->seen[u] = stamp;
                    account->level[count++] = u;
                }
            }
        if (tree->share > 0.0)
            ibn_core_shuffle(account->level, count, &account->random);
        for (int32_t i = 0; i < count; i++) {
            int32_t u = account->level[i], c = choose(tree, u);
            if (c >= 0) {
                account->queue[tree->reached] = u;
                join(tree, u, c);
            }
        }
        tree->depth++;
    }
}

/* Return whether the path from switch `from` leads through switch u. */
static int leads_through(const nue_t *nue, const uint8_t *next, int32_t from, int32_t root, int32_t u)
{
    while (from != root && from != u)
        from = nue->job.net->dst[ibn_trees_next_channel(&nue->job, next, from)];
    return from == u;
}

/* Move switch v of a tree to next hop c, if the new dependencies of v and of its children in the tree are allowed.
 * Returns whether v was moved.  Only the counts of dependencies are updated, so the caller has to move the flow.  If v
 * was not moved, grower->log also holds the dependencies that were found to be blocked. */
int ibn_nue_move_subtree(const nue_t *nue, layer_t *layer, grower_t *grower, uint8_t *next, int32_t root, int32_t v,
                         int32_t c)
{
    const ibn_network *net = nue->job.net;
    int32_t w = net->dst[c], old = ibn_trees_next_channel(&nue->job, next, v), counted = 0, ahead = -1,
            *children = grower->account.children;
    if (c == old || leads_through(nue, next, w, root, v))
        return 0;
    if (w != root) {
        ahead = ibn_trees_next_channel(&nue->job, next, w);
        if (!ibn_nue_layer_allows(nue, layer, grower, c, ahead))
            return 0;
        ibn_nue_count(nue, layer, c, ahead, 1);
    }
    for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
        int32_t y = net->into[i], x = net->src[y];
        if (next[x] == NO_CHANNEL || ibn_trees_next_channel(&nue->job, next, x) != y)
            continue;
        if (!ibn_nue_layer_allows(nue, layer, grower, y, c)) {
            while (counted > 0)
                ibn_nue_count(nue, layer, children[--counted], c, -1);
            if (ahead >= 0)
                ibn_nue_count(nue, layer, c, ahead, -1);
            return 0;
        }
        ibn_nue_count(nue, layer, y, c, 1);
        children[counted++] = y;
    }
    while (counted > 0)
        ibn_nue_count(nue, layer, children[--counted], old, -1);
    if (net->dst[old] != root)
        ibn_nue_count(nue, layer, old, ibn_trees_next_channel(&nue->job, next, net->dst[old]), -1);
    next[v] = (uint8_t)(c - net->first[v]);
    layer->dependency_removed = 1;
    return 1;
}

/* Let switch u join the tree by channel c.  To make this possible, the switch at the end of c gets another next hop.
 * Returns whether u has joined. */
static int make_room(tree_t *tree, int32_t u, int32_t c)
{
    const ibn_network *net = tree->nue->job.net;
    grower_t *grower = tree->grower;
    int32_t v = net->dst[c], old = hop(tree, v);
    for (int32_t other = net->first[v]; other < net->first[v + 1]; other++) {
        int32_t w = net->dst[other];
        if (w == u || grower->depth[w] < 0 || other == old
            || !ibn_nue_layer_allows(tree->nue, tree->layer, grower, c, other))
            continue;
        ibn_nue_count(tree->nue, tree->layer, c, other, 1);
        grower->logged = 0;
        int moved = ibn_nue_move_subtree(tree->nue, tree->layer, grower, tree->next, tree->root, v, other);
        ibn_nue_count(tree->nue, tree->layer, c, other, -1);
        if (!moved) {
            ibn_nue_layer_forget(tree->layer, grower);
            continue;
        }
        if (tree->share > 0.0) {
            double flow =
                ibn_trees_flow_through(&tree->nue->job, grower->account.children, tree->next, tree->target, v);
            send(tree, v, -flow);
            take(tree, v, other);
            send(tree, v, flow);
        }
        take(tree, v, other);
        grower->account.queue[tree->reached] = u;
        join(tree, u, c);
        tree->depth++;
        return 1;
    }
    return 0;
}

/* Let one switch that found no allowed channel join the tree, after a switch of the tree got another next hop.  Returns
 * whether a switch has joined. */
static int backtrack(tree_t *tree)
{
    const ibn_network *net = tree->nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (tree->grower->depth[u] >= 0)
            continue;
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
            int32_t v = net->dst[c];
            if (v != tree->root && tree->grower->depth[v] >= 0 && make_room(tree, u, c))
                return 1;
        }
    }
    return 0;
}

/* Compute the tree of a destination, and count the dependencies and the flow of the tree. */
void ibn_nue_grow_tree(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target)
{
    const ibn_network *net = nue->job.net;
    const int32_t *group = nue->job.targets->lmc_group_first + nue->job.lmc_group_of[target];
    int32_t root = nue->job.targets->root[target];
    uint8_t *next = nue->job.next + (int64_t)target * net->switches;
    tree_t tree = {.nue = nue,
                   .layer = layer,
                   .grower = grower,
                   .next = next,
                   .target = target,
                   .root = root,
                   .has_siblings = group[1] - group[0] > 1,
                   .share = nue->job.targets->share[target],
                   .reached = 1};
    memset(next, NO_CHANNEL, (size_t)net->switches);
    for (int32_t u = 0; u < net->switches; u++)
        grower->depth[u] = -1;
    grower->depth[root] = 0;
    grower->account.queue[0] = root;
    spread_out(&tree, 0);
    while (tree.reached < nue->part_size[root] && backtrack(&tree))
        spread_out(&tree, tree.reached - 1);
    nue->escaped[target] =
        tree.reached < nue->part_size[root] ? ibn_nue_take_escape_path(nue, layer, grower, target) : 0;
}
