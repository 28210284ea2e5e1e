/* Compute port groups for adaptive routing: enlarge each group while the dependencies stay acyclic.  At first, a port
 * group has only the channel of the LFT entry.  The candidates for the group of a switch are its channels to switches
 * with fewer hops to the target (by the LFTs).  So packets come nearer to the target with every hop.  A candidate joins
 * its group if the dependencies that it adds close no cycle on any VL. */
#include "cdg/port_groups.h"

#include <stdlib.h>
#include <string.h>

#include "core/internal/acyclic.h"

enum { NONE = -1, UNKNOWN = -2 };

typedef struct {
    const ibn_port_groups *g;
    acyclic graph;
    int32_t *next;       /* [S]: channel of each switch's LFT entry towards the current target, or NONE */
    int32_t *hops;       /* [S]: hops of each switch's path by the LFTs to the current target, or NONE */
    int32_t *sorted;     /* [S]: switches that have a path to the current target, sorted by hops */
    int32_t routed;      /* number of switches in `sorted` */
    int32_t *count;      /* [S + 1]: scratch of the sort */
    int32_t *stack;      /* [S]: switches to visit */
    uint32_t *seen;      /* [S]: number of the last search that visited each switch */
    uint32_t stamp;      /* number of the current search, for comparison with `seen` */
    uint16_t *flow;      /* [S]: VLs, as bits, of the packets to the current target that pass each switch */
    /* [row]: set of all channels in port groups of the current target, as bits (port_groups.h describes the format) */
    uint8_t *member;
    acyclic_step *steps; /* [edges]: new dependencies that arise on one VL if a channel joins a port group */
    int32_t added;       /* number of dependencies in `steps` */
} grower;

static int has(const uint8_t *set, int32_t c)
{
    return set[c >> 3] >> (c & 7) & 1;
}

static void put(uint8_t *set, int32_t c)
{
    set[c >> 3] |= (uint8_t)(1u << (c & 7));
}

static int prepare(grower *w, const ibn_port_groups *g, const acyclic_net *net, const int32_t *order)
{
    size_t switches = (size_t)g->switches + 1;
    *w = (grower){.g = g};
    if (ibn_core_acyclic_prepare(&w->graph, net, NULL, NULL)
        || ibn_core_acyclic_open(&w->graph, g->vls - 1, order, g->vls))
        return 1;
    array_list *arrays = &w->graph.arrays;
    w->next = ibn_core_arrays_add(arrays, switches, sizeof *w->next);
    w->hops = ibn_core_arrays_add(arrays, switches, sizeof *w->hops);
    w->sorted = ibn_core_arrays_add(arrays, switches, sizeof *w->sorted);
    w->count = ibn_core_arrays_add(arrays, switches + 1, sizeof *w->count);
    w->stack = ibn_core_arrays_add(arrays, switches, sizeof *w->stack);
    w->seen = ibn_core_arrays_add(arrays, switches, sizeof *w->seen);
    w->flow = ibn_core_arrays_add(arrays, switches, sizeof *w->flow);
    w->steps = ibn_core_arrays_add(arrays, (size_t)w->graph.turn_first[g->channels] + 1, sizeof *w->steps);
    return arrays->failed;
}

/* Compute the hops from every switch to the current target, which is at switch `goal`.  A switch whose path does not
 * end at the target gets NONE. */
static void count_hops(grower *w, int32_t goal)
{
    const ibn_port_groups *g = w->g;
    for (int32_t s = 0; s < g->switches; s++)
        w->hops[s] = UNKNOWN;
    w->hops[goal] = 0;
    for (int32_t s = 0; s < g->switches; s++) {
        int32_t at = s, depth = 0;
        while (at != NONE && w->hops[at] == UNKNOWN && depth < g->switches) {
            w->stack[depth++] = at;
            at = w->next[at] == NONE ? NONE : g->dst[w->next[at]];
        }
        int32_t hops = at == NONE || w->hops[at] < 0 ? NONE : w->hops[at];
        while (depth > 0) {
            hops = hops == NONE ? NONE : hops + 1;
            w->hops[w->stack[--depth]] = hops;
        }
    }
}

static void sort_by_hops(grower *w)
{
    int32_t switches = w->g->switches;
    memset(w->count, 0, ((size_t)switches + 2) * sizeof *w->count);
    for (int32_t s = 0; s < switches; s++)
        if (w->hops[s] >= 0)
            w->count[w->hops[s] + 1]++;
    for (int32_t h = 0; h < switches; h++)
        w->count[h + 1] += w->count[h];
    w->routed = w->count[switches];
    for (int32_t s = 0; s < switches; s++)
        if (w->hops[s] >= 0)
            w->sorted[w->count[w->hops[s]]++] = s;
}

/* Read the LFT column of a target: the next channels, the hops, and the VLs of the packets that pass each switch. */
static void load_target(grower *w, int32_t t, uint8_t *member)
{
    const ibn_port_groups *g = w->g;
    const int32_t lid = g->target[t], goal = g->lid_switch[lid];
    w->member = member + (int64_t)t * g->row;
    for (int32_t s = 0; s < g->switches; s++)
        w->next[s] = s == goal ? NONE : g->at_port[s * 256 + g->lft[(int64_t)s * g->lids + lid]];
    count_hops(w, goal);
    sort_by_hops(w);
    memset(w->flow, 0, (size_t)g->switches * sizeof *w->flow);
    for (int32_t i = w->routed - 1; i > 0; i--) {
        const int32_t s = w->sorted[i];
        w->flow[s] |= g->enter[(int64_t)t * g->switches + s];
        w->flow[g->dst[w->next[s]]] |= w->flow[s];
    }
}

static int32_t edge(const grower *w, int32_t c, int32_t following)
{
    return w->graph.turn_first[c] + following - w->g->first[w->g->dst[c]];
}

/* Add the dependencies of the current target's LFT column to the acyclic graphs of their VLs.  These dependencies close
 * no cycle, because the caller has passed a topological order of all dependencies of the tables. */
static void use_tables(grower *w)
{
    for (int32_t i = 1; i < w->routed; i++) {
        const int32_t s = w->sorted[i], c = w->next[s], far = w->g->dst[c];
        if (w->flow[s] == 0)
            continue;
        put(w->member, c);
        if (w->hops[far] > 0)
            w->graph.used[edge(w, c, w->next[far])] |= w->flow[s];
    }
}

/* Append to `steps` the dependency of channel c on channel `following`, unless the graph of the VL has this dependency
 * already.  Returns 0 if the dependency is known to close a cycle, otherwise 1. */
static int need(grower *w, int32_t vl, int32_t c, int32_t following)
{
    const int32_t dependency = edge(w, c, following);
    if (w->graph.blocked[dependency] >> vl & 1)
        return 0;
    if (!(w->graph.used[dependency] >> vl & 1))
        w->steps[w->added++] = (acyclic_step){.channel = c, .dependency = dependency};
    return 1;
}

/* Append to `steps` the dependencies of channel c on the channels in the port group of the next switch.  If packets may
 * take any channel with room (g->commit is 0), append only the dependency on the channel of the LFT entry.  Returns 0
 * if some dependency is known to close a cycle, otherwise 1. */
static int need_after(grower *w, int32_t vl, int32_t c)
{
    const ibn_port_groups *g = w->g;
    const int32_t s = g->dst[c];
    if (w->hops[s] == 0)
        return 1;
    if (!g->commit)
        return need(w, vl, c, w->next[s]);
    for (int32_t n = g->first[s]; n < g->first[s + 1]; n++)
        if ((has(w->member, n) || n == w->next[s]) && !need(w, vl, c, n))
            return 0;
    return 1;
}

static void visit(grower *w, int32_t s, int32_t *top)
{
    if (w->seen[s] != w->stamp) {
        w->seen[s] = w->stamp;
        w->stack[(*top)++] = s;
    }
}

/* List in `steps` the new dependencies that arise on one VL if channel c joins the port group of switch s.  Returns 0
 * if some dependency is known to close a cycle, otherwise 1.
 *
 * Packets that take channel c may then reach switches that no packet with this VL and target has reached so far.  The
 * dependencies on the paths from these switches are listed too. */
static int collect(grower *w, int32_t vl, int32_t s, int32_t c)
{
    const ibn_port_groups *g = w->g;
    int32_t top = 0;
    w->added = 0;
    for (int32_t i = g->into_first[s]; g->commit && i < g->into_first[s + 1]; i++) {
        const int32_t before = g->into[i], near = g->src[before];
        if (w->next[near] == before && w->hops[near] > 0 && w->flow[near] >> vl & 1 && !need(w, vl, before, c))
            return 0;
    }
    if (!need_after(w, vl, c))
        return 0;
    w->stamp++;
    if (!(w->flow[g->dst[c]] >> vl & 1))
        visit(w, g->dst[c], &top);
    while (top > 0) {
        const int32_t at = w->stack[--top];
        for (int32_t n = g->first[at]; n < g->first[at + 1]; n++) {
            if (w->hops[at] == 0 || !(has(w->member, n) || n == w->next[at]))
                continue;
            if (!need_after(w, vl, n))
                return 0;
            if (!(w->flow[g->dst[n]] >> vl & 1))
                visit(w, g->dst[n], &top);
        }
    }
    return 1;
}

/* Record in `flow` that packets to the current target pass switch `from` on the VLs in `vls` (bits).  Also record the
 * VLs for all switches that the port groups reach from switch `from`, because the packets may pass these switches too.
 */
static void spread(grower *w, int32_t from, uint16_t vls)
{
    const ibn_port_groups *g = w->g;
    int32_t top = 0;
    w->stamp++;
    visit(w, from, &top);
    while (top > 0) {
        const int32_t at = w->stack[--top];
        if (w->hops[at] == 0 || (w->flow[at] & vls) == vls)
            continue;
        w->flow[at] |= vls;
        put(w->member, w->next[at]);
        for (int32_t n = g->first[at]; n < g->first[at + 1]; n++)
            if (has(w->member, n))
                visit(w, g->dst[n], &top);
    }
}

/* Add channel c to the port group of switch s, unless the new dependencies close a cycle.  The dependencies are tried
 * on each VL of the packets that pass switch s, one VL after the other.  If the dependencies close a cycle on some VL,
 * the channel does not join the group.  But the dependencies on the VLs tried before stay in the CDGs.  Because of
 * these dependencies, fewer channels may join other groups later. */
static void join(grower *w, int32_t s, int32_t c)
{
    for (int32_t vl = 0; vl < w->g->vls; vl++)
        if (w->flow[s] >> vl & 1)
            if (!collect(w, vl, s, c) || !ibn_core_acyclic_fits(&w->graph, vl, w->steps, w->added))
                return;
    put(w->member, c);
    spread(w, w->g->dst[c], w->flow[s]);
}

/* Enlarge the port groups of one target, at switches near the target before switches farther away. */
static void enlarge(grower *w, int32_t t)
{
    const ibn_port_groups *g = w->g;
    for (int32_t i = 1; i < w->routed; i++) {
        const int32_t s = w->sorted[i], degree = g->first[s + 1] - g->first[s];
        if (w->flow[s] == 0)
            continue;
        for (int32_t k = 0; k < degree; k++) {
            const int32_t c = g->first[s] + (k + t) % degree, far = g->dst[c];
            if (w->hops[far] >= 0 && w->hops[far] < w->hops[s] && c != w->next[s])
                join(w, s, c);
        }
    }
}

int ibn_cdg_grow_port_groups(const ibn_port_groups *g, const int32_t *order, uint8_t *member)
{
    const acyclic_net net = {g->switches, g->channels, g->first, g->src, g->dst, g->into, g->into_first};
    grower w;
    int failed = prepare(&w, g, &net, order);
    for (int32_t t = 0; !failed && t < g->targets; t++) {
        load_target(&w, t, member);
        use_tables(&w);
    }
    for (int32_t t = 0; !failed && t < g->grown; t++) {
        load_target(&w, t, member);
        enlarge(&w, t);
    }
    ibn_core_acyclic_dispose(&w.graph);
    return failed;
}
