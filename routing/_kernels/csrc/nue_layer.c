/* One layer's complete channel dependency graph: which dependencies are used, and which may be.
 *
 * A topological order of the used ones is kept up to date (D. J. Pearce, P. H. J. Kelly, ACM J. Exp. Algorithmics 11,
 * 2006), so most questions are answered by comparing two numbers, and the rest by a search between them. */
#include <stdlib.h>
#include <string.h>

#include "internal/nue.h"

typedef struct {
    int64_t key;
    int32_t channel;
} keyed_t;

static int by_key(const void *one, const void *two)
{
    const keyed_t *a = one, *b = two;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->channel < b->channel ? -1 : 1;
}

static int by_number(const void *one, const void *two)
{
    int32_t a = *(const int32_t *)one, b = *(const int32_t *)two;
    return (a > b) - (a < b);
}

/* Up channels first, those from far down before those from above; then down channels, those from above first: every
 * dependency of up*, then down* climbs in it. */
static int first_order(const nue_t *nue, layer_t *layer, const int32_t *position)
{
    const ibn_network *net = nue->job.net;
    keyed_t *keyed = malloc(((size_t)net->channels + 1) * sizeof *keyed);
    if (!keyed)
        return 1;
    for (int32_t c = 0; c < net->channels; c++) {
        int64_t from = position[net->src[c]], to = position[net->dst[c]];
        keyed[c] = (keyed_t){.key = to < from ? -from : (int64_t)net->switches + from, .channel = c};
    }
    qsort(keyed, (size_t)net->channels, sizeof *keyed, by_key);
    for (int32_t i = 0; i < net->channels; i++) {
        layer->at[i] = keyed[i].channel;
        layer->place[keyed[i].channel] = i;
    }
    free(keyed);
    return 0;
}

/* The escape tree: every switch hangs on the neighbour that comes first in the order, and its dependencies are used for
 * good.  They climb in the first order. */
static void plant_escape_tree(const nue_t *nue, layer_t *layer, const int32_t *position)
{
    const ibn_network *net = nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        layer->parent[u] = -1;
        int32_t before = position[u];
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++)
            if (position[net->dst[c]] < before) {
                before = position[net->dst[c]];
                layer->parent[u] = c;
            }
    }
    for (int32_t u = 0; u < net->switches; u++) {
        int32_t up = layer->parent[u];
        if (up < 0)
            continue;
        int32_t v = net->dst[up];
        if (layer->parent[v] >= 0) {
            layer->used[ibn_slot(nue, up, layer->parent[v])]++;
            layer->used[ibn_slot(nue, nue->options->reverse[layer->parent[v]], nue->options->reverse[up])]++;
        }
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t other = net->into[i];
            if (layer->parent[net->src[other]] == other && net->src[other] != u)
                layer->used[ibn_slot(nue, other, nue->options->reverse[up])]++;
        }
    }
}

int ibn_layer_prepare(const nue_t *nue, layer_t *layer, const int32_t *position)
{
    size_t channels = (size_t)nue->job.net->channels + 1, slots = (size_t)nue->slots + 1;
    layer->used = calloc(slots, sizeof *layer->used);
    layer->blocked = calloc(slots, sizeof *layer->blocked);
    layer->place = malloc(channels * sizeof *layer->place);
    layer->at = malloc(channels * sizeof *layer->at);
    layer->parent = malloc(((size_t)nue->job.net->switches + 1) * sizeof *layer->parent);
    layer->epoch = 1;
    if (!layer->used || !layer->blocked || !layer->place || !layer->at || !layer->parent)
        return 1;
    if (first_order(nue, layer, position))
        return 1;
    plant_escape_tree(nue, layer, position);
    return 0;
}

void ibn_layer_release(layer_t *layer)
{
    free(layer->used);
    free(layer->blocked);
    free(layer->place);
    free(layer->at);
    free(layer->parent);
}

/* Forget what was blocked: something was lifted since. */
void ibn_layer_unblock(const nue_t *nue, layer_t *layer)
{
    if (++layer->epoch == 0) {
        memset(layer->blocked, 0, (size_t)nue->slots * sizeof *layer->blocked);
        layer->epoch = 1;
    }
}

/* Channels reached from `b` over used dependencies, before the place of `a`; -1 if `a` itself is. */
static int32_t search_forward(const nue_t *nue, const layer_t *layer, grower_t *grower, int32_t a, int32_t b)
{
    const ibn_network *net = nue->job.net;
    int32_t top = 0, found = 0, limit = layer->place[a], stamp = ++grower->search;
    grower->stack[top++] = b;
    grower->mark[b] = stamp;
    while (top > 0) {
        int32_t x = grower->stack[--top], v = net->dst[x];
        grower->forward[found++] = x;
        const int32_t *used = layer->used + nue->slot_first[x];
        for (int32_t y = net->first[v]; y < net->first[v + 1]; y++, used++) {
            if (!*used)
                continue;
            if (y == a)
                return -1;
            if (grower->mark[y] != stamp && layer->place[y] < limit) {
                grower->mark[y] = stamp;
                grower->stack[top++] = y;
            }
        }
    }
    return found;
}

/* Channels from which `a` is reached, behind the place of `b`. */
static int32_t search_backward(const nue_t *nue, const layer_t *layer, grower_t *grower, int32_t a, int32_t b)
{
    const ibn_network *net = nue->job.net;
    int32_t top = 0, found = 0, limit = layer->place[b], stamp = ++grower->search;
    grower->stack[top++] = a;
    grower->mark[a] = stamp;
    while (top > 0) {
        int32_t x = grower->stack[--top], v = net->src[x], index = x - net->first[v];
        grower->backward[found++] = x;
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t y = net->into[i];
            if (grower->mark[y] != stamp && layer->place[y] > limit && layer->used[nue->slot_first[y] + index]) {
                grower->mark[y] = stamp;
                grower->stack[top++] = y;
            }
        }
    }
    return found;
}

/* The places of both sets are dealt out anew: the backward set first, each set in its old order. */
static void reorder(layer_t *layer, grower_t *grower, int32_t backward, int32_t forward)
{
    int32_t *pool = grower->places, total = backward + forward;
    for (int32_t i = 0; i < backward; i++)
        grower->backward[i] = layer->place[grower->backward[i]];
    for (int32_t i = 0; i < forward; i++)
        grower->forward[i] = layer->place[grower->forward[i]];
    qsort(grower->backward, (size_t)backward, sizeof *pool, by_number);
    qsort(grower->forward, (size_t)forward, sizeof *pool, by_number);
    for (int32_t i = 0, b = 0, f = 0; i < total; i++)
        pool[i] = f == forward || (b < backward && grower->backward[b] < grower->forward[f]) ? grower->backward[b++]
                                                                                              : grower->forward[f++];
    for (int32_t i = 0; i < total; i++)
        grower->stack[i] = layer->at[i < backward ? grower->backward[i] : grower->forward[i - backward]];
    for (int32_t i = 0; i < total; i++) {
        layer->at[pool[i]] = grower->stack[i];
        layer->place[grower->stack[i]] = pool[i];
    }
}

/* May a packet go on by `b` after `a`?  Marks nothing as used, but the order admits it from now on. */
int ibn_layer_allows(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t a, int32_t b)
{
    int32_t slot = ibn_slot(nue, a, b);
    if (layer->place[a] < layer->place[b])
        return 1;
    if (layer->blocked[slot] == layer->epoch || a == b)
        return 0;
    int32_t forward = search_forward(nue, layer, grower, a, b);
    if (forward < 0) {
        layer->blocked[slot] = layer->epoch;
        return 0;
    }
    reorder(layer, grower, search_backward(nue, layer, grower, a, b), forward);
    return 1;
}

/* All dependencies of a tree are known to fit. */
void ibn_layer_count(const nue_t *nue, layer_t *layer, grower_t *grower, const uint8_t *next, int32_t root)
{
    const ibn_network *net = nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (next[u] == NO_CHANNEL)
            continue;
        int32_t a = ibn_chosen(&nue->job, next, u), v = net->dst[a];
        if (v == root)
            continue;
        int32_t b = ibn_chosen(&nue->job, next, v);
        if (grower)
            ibn_layer_allows(nue, layer, grower, a, b);
        layer->used[ibn_slot(nue, a, b)]++;
    }
}

void ibn_layer_uncount(const nue_t *nue, layer_t *layer, const uint8_t *next, int32_t root)
{
    const ibn_network *net = nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (next[u] == NO_CHANNEL)
            continue;
        int32_t a = ibn_chosen(&nue->job, next, u), v = net->dst[a];
        if (v != root)
            layer->used[ibn_slot(nue, a, ibn_chosen(&nue->job, next, v))]--;
    }
}

/* Finds the order anew after the counts were: the used dependencies are known to have one. */
int ibn_layer_sort(const nue_t *nue, layer_t *layer)
{
    const ibn_network *net = nue->job.net;
    int32_t *waits = calloc((size_t)net->channels + 1, sizeof *waits), tail = 0;
    if (!waits)
        return 1;
    for (int32_t a = 0; a < net->channels; a++)
        for (int32_t b = net->first[net->dst[a]]; b < net->first[net->dst[a] + 1]; b++)
            waits[b] += layer->used[ibn_slot(nue, a, b)] > 0;
    for (int32_t c = 0; c < net->channels; c++)
        if (waits[c] == 0)
            layer->at[tail++] = c;
    for (int32_t head = 0; head < tail; head++) {
        int32_t a = layer->at[head];
        layer->place[a] = head;
        for (int32_t b = net->first[net->dst[a]]; b < net->first[net->dst[a] + 1]; b++)
            if (layer->used[ibn_slot(nue, a, b)] && --waits[b] == 0)
                layer->at[tail++] = b;
    }
    free(waits);
    return tail < net->channels ? 3 : 0;
}
