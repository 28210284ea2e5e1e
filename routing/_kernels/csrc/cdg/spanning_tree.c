/* Compute a spanning tree for multicast packets.  On this tree, the dependencies of multicast packets close no cycle
 * with the dependencies of unicast packets. */
#include "cdg/spanning_tree.h"

#include <stdlib.h>

#include "core/internal/acyclic.h"

/* The spanning tree, to which links are added one by one. */
typedef struct {
    const cdg_unicast *unicast;
    /* acyclic graph with one VL (VL 0), which has the dependencies of unicast packets, and of multicast packets on the
     * tree so far */
    acyclic graph;
    acyclic_step *steps; /* [2 C + 2]: dependencies that arise if the next link is added */
    int32_t *links;      /* [C]: channels of the tree's links; the channels out of switch s begin at index first[s] */
    int32_t *linked;     /* [S]: number of channels out of each switch in `links` */
    int32_t *queue;      /* [S]: switches in the order in which they were added to the tree */
} growth;

static int32_t number_of(const growth *tree, int32_t channel, int32_t next)
{
    return tree->graph.turn_first[channel] + next - tree->unicast->first[tree->unicast->dst[channel]];
}

/* Add the link of channel c to the tree, unless the dependencies over this link close a cycle.  Channel c leads to a
 * switch that the tree does not have yet.  Returns whether the link was added. */
static int add_link(growth *tree, int32_t c)
{
    const cdg_unicast *net = tree->unicast;
    int32_t u = net->src[c], v = net->dst[c], back = net->reverse[c], count = 0;
    const int32_t *links = tree->links + net->first[u];
    for (int32_t i = 0; i < tree->linked[u]; i++) {
        int32_t out = links[i], in = net->reverse[out];
        tree->steps[count++] = (acyclic_step){in, number_of(tree, in, c)};
        tree->steps[count++] = (acyclic_step){back, number_of(tree, back, out)};
    }
    if (!ibn_core_acyclic_fits(&tree->graph, 0, tree->steps, count))
        return 0;
    tree->links[net->first[u] + tree->linked[u]++] = c;
    tree->links[net->first[v] + tree->linked[v]++] = back;
    return 1;
}

/* Grow the tree breadth first, so that it stays shallow.  Returns the number of switches in the tree. */
static int32_t grow(growth *tree, int32_t root, int32_t *up)
{
    const cdg_unicast *net = tree->unicast;
    int32_t head = 0, tail = 1;
    for (int32_t s = 0; s < net->switches; s++)
        up[s] = -1;
    tree->queue[0] = root;
    while (head < tail) {
        int32_t u = tree->queue[head++];
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
            int32_t v = net->dst[c];
            if (v == root || up[v] >= 0 || !add_link(tree, c))
                continue;
            up[v] = net->reverse[c];
            tree->queue[tail++] = v;
        }
    }
    return tail;
}

/* Fill the acyclic graph with the dependencies of the unicast packets.  Returns 1 if memory is exhausted, otherwise
 * 0. */
static int prepare(growth *tree, const acyclic_net *net)
{
    const cdg_unicast *unicast = tree->unicast;
    size_t channels = (size_t)unicast->channels + 1, switches = (size_t)unicast->switches + 1;
    if (ibn_core_acyclic_prepare(&tree->graph, net, NULL, NULL)
        || ibn_core_acyclic_open(&tree->graph, 0, unicast->order, 1))
        return 1;
    array_list *arrays = &tree->graph.arrays;
    tree->steps = ibn_core_arrays_add(arrays, 2 * channels, sizeof *tree->steps);
    tree->links = ibn_core_arrays_add(arrays, channels, sizeof *tree->links);
    tree->linked = ibn_core_arrays_add(arrays, switches, sizeof *tree->linked);
    tree->queue = ibn_core_arrays_add(arrays, switches, sizeof *tree->queue);
    if (arrays->failed)
        return 1;
    for (int32_t c = 0; c < unicast->channels; c++) {
        int32_t degree = net->first[net->dst[c] + 1] - net->first[net->dst[c]];
        for (int32_t k = 0; k < degree; k++)
            tree->graph.used[tree->graph.turn_first[c] + k] = unicast->used[unicast->slot[c] + k] != 0;
    }
    return 0;
}

int ibn_cdg_grow_tree(const cdg_unicast *unicast, int32_t root, int32_t *up, int32_t *reached)
{
    acyclic_net net = {unicast->switches, unicast->channels, unicast->first,     unicast->src,
                       unicast->dst,      unicast->into,     unicast->into_first};
    growth tree = {.unicast = unicast};
    int failed = prepare(&tree, &net);
    if (!failed)
        *reached = grow(&tree, root, up);
    ibn_core_acyclic_dispose(&tree.graph);
    return failed;
}
