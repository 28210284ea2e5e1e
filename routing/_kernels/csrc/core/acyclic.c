/* Channel dependency graphs that stay acyclic while edges are added: see internal/acyclic.h. */
#include "core/internal/acyclic.h"

#include <stdlib.h>
#include <string.h>

#include "core/internal/order_repair.h"

enum { MASK = 64 };

int ibn_core_acyclic_prepare(acyclic *graph, const acyclic_net *net, const int32_t *slot, uint16_t *shared)
{
    const size_t channels = (size_t)net->channels + 1;
    *graph = (acyclic){.net = net, .shared = shared};
    graph->turn_first = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->turn_first);
    graph->stack = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->stack);
    graph->other = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->other);
    graph->seen = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->seen);
    graph->key[0] = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->key[0]);
    graph->key[1] = ibn_core_arrays_add(&graph->arrays, channels, sizeof *graph->key[1]);
    graph->both = ibn_core_arrays_add(&graph->arrays, 2 * channels, sizeof *graph->both);
    int32_t turns = 0;
    for (int32_t c = 0; graph->turn_first && c < net->channels; c++) {
        graph->turn_first[c] = slot ? slot[c] : turns;
        turns = graph->turn_first[c] + net->first[net->dst[c] + 1] - net->first[net->dst[c]];
    }
    if (graph->turn_first)
        graph->turn_first[net->channels] = turns;
    if (!slot)
        graph->used = ibn_core_arrays_add(&graph->arrays, (size_t)turns + 1, sizeof *graph->used);
    graph->blocked = ibn_core_arrays_add(&graph->arrays, (size_t)turns + 1, sizeof *graph->blocked);
    graph->added = malloc(((size_t)turns + 1) * sizeof *graph->added);
    return graph->arrays.failed || !graph->added;
}

void ibn_core_acyclic_dispose(acyclic *graph)
{
    ibn_core_arrays_free(&graph->arrays);
    free(graph->added);
    for (int32_t vl = 0; vl < graph->vls; vl++)
        free(graph->place[vl]);
}

/* Give each of the VLs 0 to `vl` a topological order of its channels, unless the VL has an order already.  `order`,
 * int32 [orders, C], has a row for each of the first `orders` VLs: the position of each channel in the order of the VL.
 * The CDGs of all other VLs have no edges yet, so their channels are ordered by number.  Returns 0, or 1 if memory is
 * exhausted. */
int ibn_core_acyclic_open(acyclic *graph, int32_t vl, const int32_t *order, int32_t orders)
{
    int32_t channels = graph->net->channels;
    for (; graph->vls <= vl; graph->vls++) {
        int32_t *place = malloc(((size_t)channels + 1) * sizeof *place);
        if (!place)
            return 1;
        for (int32_t c = 0; c < channels; c++)
            place[c] = graph->vls < orders ? order[(int64_t)graph->vls * channels + c] : c;
        graph->place[graph->vls] = place;
    }
    return 0;
}

/* Return whether channel `goal` can be reached from channel `from` in the CDG of a VL.  One breadth-first search runs
 * forward from `from`, and another one runs backward from `goal`.  They end when they meet, or when one of them has no
 * channel left to visit.  In each step, the search with the shorter queue visits a channel. */
int ibn_core_acyclic_reaches(acyclic *graph, int32_t vl, int32_t from, int32_t goal)
{
    const acyclic_net *net = graph->net;
    const int32_t *place = graph->place[vl], least = place[from], most = place[goal];
    const uint32_t ahead = graph->stamp + 1, back = graph->stamp + 2;
    int32_t *queue[2] = {graph->stack, graph->other}, head[2] = {0, 0}, tail[2] = {1, 1};
    graph->stamp += 2;
    queue[0][0] = from;
    queue[1][0] = goal;
    graph->seen[from] = ahead;
    graph->seen[goal] = back;
    while (least <= most && head[0] < tail[0] && head[1] < tail[1]) {
        const int side = tail[1] - head[1] < tail[0] - head[0];
        const int32_t c = queue[side][head[side]++], s = side ? net->src[c] : net->dst[c];
        const int32_t *list = side ? net->into_first : net->first, k = c - net->first[net->src[c]];
        graph->visited++;
        for (int32_t i = list[s]; i < list[s + 1]; i++) {
            const int32_t e = side ? net->into[i] : i;
            const int32_t dependency = side ? graph->turn_first[e] + k : graph->turn_first[c] + i - list[s];
            if (!ibn_core_acyclic_has(graph, dependency, vl) || place[e] < least || place[e] > most)
                continue;
            if (graph->seen[e] == (side ? ahead : back))
                return 1;
            if (graph->seen[e] == (side ? back : ahead))
                continue;
            graph->seen[e] = side ? back : ahead;
            queue[side][tail[side]++] = e;
        }
    }
    return 0;
}

/* Return whether a graph of at most 64 nodes has a cycle, by computing its transitive closure.  The bits of after[i]
 * are the successors of node i. */
static int has_cycle(uint64_t *after, int32_t size)
{
    for (int32_t via = 0; via < size; via++)
        for (int32_t i = 0; i < size; i++)
            if (after[i] >> via & 1)
                after[i] |= after[via];
    for (int32_t i = 0; i < size; i++)
        if (after[i] >> i & 1)
            return 1;
    return 0;
}

/* Search forward from channel `from` for channel `goal`, in the CDG of a VL.  If `goal` can be reached, an edge from
 * `goal` to `from` would close a cycle, and the function returns -1.
 *
 * Otherwise, it returns the number of channels found.  These are channel `from`, and all channels that can be reached
 * from `from` and come before `goal` in the topological order.  The keys of these channels (see ibn_core_order_key) are
 * stored in graph->key[0]. */
static int32_t look_ahead(acyclic *graph, int32_t vl, int32_t from, int32_t goal)
{
    const acyclic_net *net = graph->net;
    const int32_t *place = graph->place[vl];
    int32_t found = 0, top = 0, limit = place[goal];
    graph->stack[top++] = from;
    graph->seen[from] = ++graph->stamp;
    while (top > 0) {
        int32_t c = graph->stack[--top], v = net->dst[c];
        graph->visited++;
        graph->key[0][found++] = ibn_core_order_key(place, c);
        for (int32_t k = 0; k < net->first[v + 1] - net->first[v]; k++) {
            int32_t e = net->first[v] + k;
            if (!ibn_core_acyclic_has(graph, graph->turn_first[c] + k, vl) || place[e] > limit
                || graph->seen[e] == graph->stamp)
                continue;
            if (e == goal)
                return -1;
            graph->seen[e] = graph->stamp;
            graph->stack[top++] = e;
        }
    }
    return found;
}

/* Search backward from channel `from`, in the CDG of a VL.  Find channel `from`, and all channels that reach `from` and
 * have at least position `limit` in the topological order.  The keys of these channels (see ibn_core_order_key) are
 * stored in graph->key[1].  Returns the number of channels found. */
static int32_t look_back(acyclic *graph, int32_t vl, int32_t from, int32_t limit)
{
    const acyclic_net *net = graph->net;
    const int32_t *place = graph->place[vl];
    int32_t found = 0, top = 0;
    graph->stack[top++] = from;
    graph->seen[from] = ++graph->stamp;
    while (top > 0) {
        int32_t c = graph->stack[--top], u = net->src[c], k = c - net->first[u];
        graph->visited++;
        graph->key[1][found++] = ibn_core_order_key(place, c);
        for (int32_t i = net->into_first[u]; i < net->into_first[u + 1]; i++) {
            int32_t e = net->into[i];
            if (place[e] < limit || graph->seen[e] == graph->stamp
                || !ibn_core_acyclic_has(graph, graph->turn_first[e] + k, vl))
                continue;
            graph->seen[e] = graph->stamp;
            graph->stack[top++] = e;
        }
    }
    return found;
}

/* Add a CDG edge to a VL unless the edge closes a cycle.  If the edge violates the topological order of the VL, the
 * order is repaired.  Returns whether the edge was added. */
static int add(acyclic *graph, int32_t vl, acyclic_step step)
{
    const acyclic_net *net = graph->net;
    int32_t c = step.channel, e = net->first[net->dst[c]] + step.dependency - graph->turn_first[c];
    const int32_t *place = graph->place[vl];
    if (place[c] >= place[e]) {
        int32_t ahead = look_ahead(graph, vl, e, c);
        if (ahead < 0)
            return 0;
        int32_t back = look_back(graph, vl, c, place[e]);
        ibn_core_order_repair(graph->place[vl], graph->key[0], ahead, graph->key[1], back, graph->both);
    }
    ibn_core_acyclic_put(graph, step.dependency, vl);
    return 1;
}

/* Return whether two or more new edges together close a cycle in the CDG of a VL.  A new edge leads from its first
 * channel to its second channel.  From the second channel of each new edge, the cycle leads to the first channel of the
 * next new edge: both are one channel, or existing edges connect them.  Cycles with only one new edge are not found.
 *
 * This test visits far fewer channels than an attempt to add all edges.  With more than MASK (64) new edges, the result
 * is always 0.  In this case, the caller has to try to add the edges. */
int ibn_core_acyclic_clash(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count)
{
    const acyclic_net *net = graph->net;
    int32_t waiting[MASK], next[MASK], size = 0;
    uint64_t after[MASK];
    for (int32_t i = 0; i < count; i++) {
        const int32_t c = steps[i].channel;
        if (ibn_core_acyclic_has(graph, steps[i].dependency, vl))
            continue;
        if (size == MASK)
            return 0;
        waiting[size] = c;
        next[size++] = net->first[net->dst[c]] + steps[i].dependency - graph->turn_first[c];
    }
    for (int32_t i = 0; i < size; i++) {
        after[i] = 0;
        for (int32_t k = 0; k < size; k++)
            if (k != i && (next[i] == waiting[k] || ibn_core_acyclic_reaches(graph, vl, next[i], waiting[k])))
                after[i] |= UINT64_C(1) << k;
    }
    return has_cycle(after, size);
}

/* Add a set of edges to the CDG of a VL, unless they would close a cycle.  Returns whether all edges were added;
 * otherwise no edge is added.  The first edge that cannot be added is recorded as blocked, unless it closes a cycle
 * only together with other edges of the set. */
int ibn_core_acyclic_fits(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count)
{
    int32_t fresh = 0;
    for (int32_t i = 0; i < count; i++) {
        if (ibn_core_acyclic_has(graph, steps[i].dependency, vl))
            continue;
        if (add(graph, vl, steps[i])) {
            graph->added[fresh++] = steps[i].dependency;
            continue;
        }
        for (int32_t k = 0; k < fresh; k++)
            ibn_core_acyclic_drop(graph, graph->added[k], vl);
        if (fresh > 0 && add(graph, vl, steps[i]))
            ibn_core_acyclic_drop(graph, steps[i].dependency, vl);
        else
            graph->blocked[steps[i].dependency] |= UINT32_C(1) << vl;
        return 0;
    }
    return 1;
}
