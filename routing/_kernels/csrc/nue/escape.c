/* Complete a tree in which some switches found no next hop with an allowed dependency.  These switches use the escape
 * tree instead.  Further switches are moved to the escape tree, until the tree has no forwarding loop and all its
 * dependencies are allowed. */

#include "nue/internal/nue_job.h"

/* Fill `escape`: for every switch, the next channel on the path along the escape tree to switch `root`.  Switches in
 * other connected parts get -1. */
static void aim(const nue_t *nue, const layer_t *layer, grower_t *grower, int32_t root)
{
    const ibn_network *net = nue->job.net;
    int32_t *queue = grower->account.queue, tail = 0;
    for (int32_t u = 0; u < net->switches; u++)
        grower->escape[u] = -1;
    queue[tail++] = root;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = queue[head], up = layer->parent[v];
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t c = net->into[i], u = net->src[c];
            int joined = layer->parent[u] == c || (up >= 0 && nue->options->reverse[up] == c);
            if (joined && u != root && grower->escape[u] < 0) {
                grower->escape[u] = c;
                queue[tail++] = u;
            }
        }
    }
}

/* Mark every switch on a forwarding loop in on_escape, which moves the switch to the escape tree.  Returns the number
 * of switches that had no mark before. */
static int32_t break_loops(const nue_t *nue, grower_t *grower, uint8_t *next, int32_t root)
{
    const ibn_network *net = nue->job.net;
    int32_t put = 0;
    int64_t base = grower->stamp;
    grower->stamp += net->switches + 1;
    for (int32_t from = 0; from < net->switches; from++) {
        int32_t u = from;
        while (u != root && next[u] != NO_CHANNEL && grower->seen[u] <= base) {
            grower->seen[u] = base + 1 + from;
            u = net->dst[ibn_trees_next_channel(&nue->job, next, u)];
        }
        if (u == root || next[u] == NO_CHANNEL || grower->seen[u] != base + 1 + from)
            continue;
        for (int32_t v = net->dst[ibn_trees_next_channel(&nue->job, next, u)];;
             v = net->dst[ibn_trees_next_channel(&nue->job, next, v)]) {
            if (!grower->on_escape[v]) {
                grower->on_escape[v] = 1;
                put++;
            }
            if (v == u)
                break;
        }
    }
    return put;
}

/* Count the dependencies of the tree `next` (towards `root`) as used, if all of them are allowed.  Otherwise count
 * none, and move one switch of each forbidden dependency to the escape tree, by a mark in on_escape.  The moved switch
 * is the switch between the two channels of the dependency.  If this switch has a mark already, the switch where the
 * first channel begins is moved instead.  Returns the number of forbidden dependencies. */
static int32_t fit(const nue_t *nue, layer_t *layer, grower_t *grower, const uint8_t *next, int32_t root)
{
    int32_t a, b, put = 0, counted = 0, *list = grower->account.children;
    ibn_nue_layer_unblock(nue, layer);
    for (int32_t u = 0; u < nue->job.net->switches; u++) {
        if (!ibn_nue_first_dependency(nue, next, u, root, &a, &b))
            continue;
        if (ibn_nue_layer_allows(nue, layer, grower, a, b)) {
            list[counted++] = u;
            ibn_nue_count(nue, layer, a, b, 1);
            continue;
        }
        int32_t v = nue->job.net->dst[a];
        grower->on_escape[grower->on_escape[v] ? u : v] = 1;
        put++;
    }
    while (put > 0 && counted > 0)
        if (ibn_nue_first_dependency(nue, next, list[--counted], root, &a, &b))
            ibn_nue_count(nue, layer, a, b, -1);
    if (put > 0)
        ibn_nue_layer_unblock(nue, layer);
    return put;
}

/* Complete a tree in which some switches have no next hop: these switches use the escape tree.  Then count the
 * dependencies and the flow of the tree.  Returns the number of switches that use the escape tree.  Switches are moved
 * to the escape tree until all dependencies are allowed.  The loop ends at the latest when all switches use the escape
 * tree, because all dependencies of the escape tree are allowed. */
int32_t ibn_nue_take_escape_path(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target)
{
    const ibn_network *net = nue->job.net;
    int32_t root = nue->job.targets->root[target], escaped = 0;
    uint8_t *next = nue->job.next + (int64_t)target * net->switches;
    ibn_trees_account_move_tree(&nue->job, &grower->account, next, target, -1.0);
    ibn_nue_layer_count(nue, layer, next, root, -1);
    aim(nue, layer, grower, root);
    for (int32_t u = 0; u < net->switches; u++)
        grower->on_escape[u] = u != root && next[u] == NO_CHANNEL && grower->escape[u] >= 0;
    do {
        for (int32_t u = 0; u < net->switches; u++)
            if (grower->on_escape[u])
                next[u] = (uint8_t)(grower->escape[u] - net->first[u]);
    } while (break_loops(nue, grower, next, root) || fit(nue, layer, grower, next, root));
    for (int32_t u = 0; u < net->switches; u++)
        escaped += grower->on_escape[u];
    ibn_trees_account_move_tree(&nue->job, &grower->account, next, target, 1.0);
    return escaped;
}
