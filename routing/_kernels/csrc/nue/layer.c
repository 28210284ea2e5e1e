/* Complete CDG of one layer (VL): which dependencies are used, and which are allowed.
 *
 * A topological order of the used dependencies is kept up to date (D. J. Pearce, P. H. J. Kelly, ACM J. Exp.
 * Algorithmics 11, 2007).  A dependency is allowed if its first channel comes before its second channel in this order.
 * Otherwise, the channels at positions between the positions of both channels are searched for a cycle. */
#include <stdlib.h>
#include <string.h>

#include "core/internal/heap.h"
#include "core/internal/order_repair.h"
#include "nue/internal/nue_job.h"

/* Mark in `wanted` each switch that delivers a destination of layer `number`, and all switches on its path to the root
 * of the escape tree.  All elements of `wanted` are 0 at the beginning. */
static void mark_wanted(const nue_t *nue, const layer_t *layer, int32_t number, uint8_t *wanted)
{
    const ibn_network *net = nue->job.net;
    for (int32_t target = 0; target < nue->job.targets->count; target++)
        if (nue->target_layer[target] == number)
            for (int32_t u = nue->job.targets->root[target]; !wanted[u]; u = net->dst[layer->parent[u]]) {
                wanted[u] = 1;
                if (layer->parent[u] < 0)
                    break;
            }
}

/* Count the dependencies of the escape tree as used.  These are the dependencies of all paths along the escape tree
 * whose last switch is the root, or delivers a destination of the layer.  They stay in use as long as the layer exists.
 * `wanted` is the result of mark_wanted. */
static void plant_escape_tree(const nue_t *nue, layer_t *layer, const uint8_t *wanted)
{
    const ibn_network *net = nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        int32_t up = layer->parent[u];
        if (up < 0)
            continue;
        int32_t v = net->dst[up], down = nue->options->reverse[up];
        if (layer->parent[v] >= 0) {
            ibn_nue_count(nue, layer, up, layer->parent[v], 1);
            if (wanted[u])
                ibn_nue_count(nue, layer, nue->options->reverse[layer->parent[v]], down, 1);
        }
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1] && wanted[u]; i++) {
            int32_t other = net->into[i];
            if (layer->parent[net->src[other]] == other && net->src[other] != u)
                ibn_nue_count(nue, layer, other, down, 1);
        }
    }
}

/* Allocate a layer, and count the dependencies of its escape tree as used.  Returns nonzero if memory ran out. */
int ibn_nue_layer_prepare(nue_t *nue, layer_t *layer, int32_t number)
{
    const ibn_network *net = nue->job.net;
    size_t channels = (size_t)net->channels + 1, slots = (size_t)nue->slots + 1;
    array_list *arrays = &nue->arrays;
    uint8_t *wanted = ibn_core_arrays_add(arrays, (size_t)net->switches + 1, sizeof *wanted);
    layer->used = ibn_core_arrays_add(arrays, slots, sizeof *layer->used);
    layer->blocked = ibn_core_arrays_add(arrays, slots, sizeof *layer->blocked);
    for (int side = 0; side < 2; side++)
        layer->in_use[side] = ibn_core_arrays_add(arrays, channels * (size_t)nue->words, sizeof *layer->in_use[side]);
    layer->place = ibn_core_arrays_add(arrays, channels, sizeof *layer->place);
    layer->parent = nue->options->parent + (int64_t)number * net->switches;
    layer->epoch = 1;
    if (arrays->failed)
        return 1;
    mark_wanted(nue, layer, number, wanted);
    plant_escape_tree(nue, layer, wanted);
    return ibn_nue_layer_sort(nue, layer, nue->options->rank + (int64_t)number * net->channels);
}

/* Begin a new epoch, in which no dependency is recorded as blocked.  A new epoch is necessary after used
 * dependencies were removed. */
void ibn_nue_layer_unblock(const nue_t *nue, layer_t *layer)
{
    layer->dependency_removed = 0;
    if (++layer->epoch == 0) {
        memset(layer->blocked, 0, (size_t)nue->slots * sizeof *layer->blocked);
        layer->epoch = 1;
    }
}

/* Remove the dependencies in grower->log from the record of blocked dependencies.  The cycles that these dependencies
 * would close may have contained other dependencies, which have been removed since. */
void ibn_nue_layer_forget(layer_t *layer, grower_t *grower)
{
    while (grower->logged > 0)
        layer->blocked[grower->log[--grower->logged]] = (uint16_t)(layer->epoch - 1);
}

/* Search for a path over used dependencies from channel b to channel a.  Only channels at positions between the
 * position of b and the position of a are visited.
 *
 * A breadth-first search runs forward from b (side 0), and another one runs backward from a (side 1).  At each step,
 * the search with fewer queued channels proceeds.  Returns 1 as soon as the searches meet, because b then reaches a.
 * Otherwise returns 0 after both searches are complete.  grower->found[side] lists the channels that a search has
 * visited, and count[side] is the number of these channels. */
static int reaches(const nue_t *nue, const layer_t *layer, grower_t *grower, int32_t a, int32_t b, int32_t *count)
{
    const ibn_network *net = nue->job.net;
    const int32_t *place = layer->place, least = place[b], most = place[a];
    const int32_t own[2] = {grower->search + 1, grower->search + 2};
    int64_t **found = grower->found;
    int32_t head[2] = {0, 0};
    grower->search += 2;
    count[0] = count[1] = 1;
    found[0][0] = ibn_core_order_key(place, b);
    found[1][0] = ibn_core_order_key(place, a);
    grower->mark[b] = own[0];
    grower->mark[a] = own[1];
    while (head[0] < count[0] || head[1] < count[1]) {
        const int32_t queued[2] = {count[0] - head[0], count[1] - head[1]};
        const int side = queued[0] == 0 || (queued[1] > 0 && queued[1] < queued[0]);
        const int32_t x = (int32_t)(found[side][head[side]++] & 0xFFFFFFFF);
        const int32_t start = side ? net->into_first[net->src[x]] : net->first[net->dst[x]];
        for (int32_t word = 0; word < nue->words; word++)
            for (uint64_t bits = layer->in_use[side][(int64_t)x * nue->words + word]; bits; bits &= bits - 1) {
                const int32_t i = start + 64 * word + __builtin_ctzll(bits), y = side ? net->into[i] : i;
                if (grower->mark[y] == own[side] || place[y] < least || place[y] > most)
                    continue;
                if (grower->mark[y] == own[!side])
                    return 1;
                grower->mark[y] = own[side];
                found[side][count[side]++] = ibn_core_order_key(place, y);
            }
    }
    return 0;
}

/* Return whether the dependency of channel a on channel b is allowed.  If so, the topological order is changed such
 * that a comes before b.  The function does not count the dependency as used. */
int ibn_nue_layer_allows(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t a, int32_t b)
{
    int32_t slot = ibn_nue_slot(nue, a, b);
    if (layer->place[a] < layer->place[b])
        return !layer->dependency_removed || layer->blocked[slot] != layer->epoch;
    if (layer->blocked[slot] == layer->epoch)
        return 0;
    int32_t count[2];
    if (reaches(nue, layer, grower, a, b, count)) {
        layer->blocked[slot] = layer->epoch;
        if (grower->logged < nue->job.net->switches)
            grower->log[grower->logged++] = slot;
        return 0;
    }
    ibn_core_order_repair(layer->place, grower->found[0], count[0], grower->found[1], count[1], grower->both);
    return 1;
}

/* Add `step` (1 or -1) to the number of trees that contain a dependency, for every dependency of a tree. */
void ibn_nue_layer_count(const nue_t *nue, layer_t *layer, const uint8_t *next, int32_t root, int32_t step)
{
    int32_t a, b;
    for (int32_t u = 0; u < nue->job.net->switches; u++)
        if (ibn_nue_first_dependency(nue, next, u, root, &a, &b))
            ibn_nue_count(nue, layer, a, b, step);
}

/* Put a tree back that was removed from the layer: count its dependencies as used again.  The layer has not changed
 * since the removal.  So the tree closes no cycle, and needs no test. */
void ibn_nue_layer_readmit(const nue_t *nue, layer_t *layer, grower_t *grower, const uint8_t *next, int32_t root)
{
    int32_t a, b;
    ibn_nue_layer_unblock(nue, layer);
    for (int32_t u = 0; u < nue->job.net->switches; u++) {
        if (!ibn_nue_first_dependency(nue, next, u, root, &a, &b))
            continue;
        ibn_nue_layer_allows(nue, layer, grower, a, b);
        ibn_nue_count(nue, layer, a, b, 1);
    }
}

/* Sort the channels topologically by the used dependencies, which are acyclic.  Of all channels that may come next, the
 * channel with the lowest value in `rank` comes next.  Returns nonzero if memory ran out. */
int ibn_nue_layer_sort(const nue_t *nue, layer_t *layer, const double *rank)
{
    const ibn_network *net = nue->job.net;
    int32_t *in_degree = calloc((size_t)net->channels + 1, sizeof *in_degree), done = 0;
    ibn_heap heap = {.entry = malloc(((size_t)net->channels + 1) * sizeof *heap.entry)};
    int failed = !in_degree || !heap.entry;
    for (int32_t a = 0; a < net->channels && !failed; a++)
        for (int32_t b = net->first[net->dst[a]]; b < net->first[net->dst[a] + 1]; b++)
            in_degree[b] += layer->used[ibn_nue_slot(nue, a, b)] > 0;
    for (int32_t c = 0; c < net->channels && !failed; c++)
        if (in_degree[c] == 0)
            ibn_core_heap_push(&heap, rank[c], c);
    for (; heap.size > 0; done++) {
        int32_t a = ibn_core_heap_pop(&heap).of;
        layer->place[a] = done;
        for (int32_t b = net->first[net->dst[a]]; b < net->first[net->dst[a] + 1]; b++)
            if (layer->used[ibn_nue_slot(nue, a, b)] && --in_degree[b] == 0)
                ibn_core_heap_push(&heap, rank[b], b);
    }
    free(in_degree);
    free(heap.entry);
    return failed;
}
