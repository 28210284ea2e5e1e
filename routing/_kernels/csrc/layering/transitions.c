/* Assign SLs to pairs of switches, where the packets of some SLs move to higher VLs along their path.
 *
 * Packets on an SL below paths->most use one VL on the whole path: the VL with the number of the SL.  A pair of
 * switches gets the first of these SLs whose VL keeps an acyclic CDG with the paths of the pair, as in layering.c.
 *
 * A pair that fits on none of these SLs gets one of the other SLs.  On such an SL, a path begins on VL 0.  A path stays
 * on its VL if its next dependency closes no cycle on this VL.  Otherwise the path moves up to the next VL.
 *
 * A dependency between two VLs always leads to the higher VL.  So no cycle contains such a dependency.  It is enough
 * that the CDG of each VL, without the dependencies between VLs, is acyclic.
 *
 * A switch assigns a VL by the in-port, out-port and SL of a packet, and does not know the packet's present VL.  So for
 * each SL and each CDG edge, all packets get the same VL on the second channel of the edge. */
#include "layering/transitions.h"

#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

#define NO_VL 255

typedef struct {
    layering_job job;
    /* number of SLs.  Packets on an SL below paths->most keep their VL along the path; packets on the other SLs may
     * change it. */
    int32_t sls;
    int32_t edges; /* number of CDG edges */
    /* [sls - paths->most, edges] for each SL whose packets may change their VL, and each CDG edge: VL of packets on the
     * second channel of the edge, NO_VL: not decided yet */
    uint8_t *turn_vl;
    uint8_t *sl;         /* [S, S] SL of the paths between two switches, in both directions */
    acyclic_step *added; /* CDG edges that the current attempt has added, each to the VL in `added_vl` */
    uint8_t *added_vl;   /* VL of each edge in `added` */
    int32_t *decided;    /* CDG edges for which the current attempt has decided the VL in `turn_vl` */
    /* CDG edges that the current attempt could not add, because they close a cycle on the VL in `refused_vl` */
    acyclic_step *refused;
    uint8_t *refused_vl;               /* VL of each edge in `refused` */
    int32_t adds, decisions, refusals; /* number of elements in `added`, in `decided` and in `refused` */
    int32_t room;                      /* number of elements that fit into each of `added`, `decided` and `refused` */
} attempt;

/* Allocate room for the CDG edges of one more path in the arrays `added`, `decided` and `refused`.  Returns nonzero if
 * memory ran out. */
static int reserve(attempt *x)
{
    int32_t most = x->adds > x->decisions ? x->adds : x->decisions;
    most = x->refusals > most ? x->refusals : most;
    if (most + x->job.net.switches <= x->room)
        return 0;
    size_t room = 2 * (size_t)x->room + (size_t)x->job.net.switches + 1;
    void *added = realloc(x->added, room * sizeof *x->added);
    x->added = added ? added : x->added;
    void *added_vl = realloc(x->added_vl, room);
    x->added_vl = added_vl ? added_vl : x->added_vl;
    void *decided = realloc(x->decided, room * sizeof *x->decided);
    x->decided = decided ? decided : x->decided;
    void *refused = realloc(x->refused, room * sizeof *x->refused);
    x->refused = refused ? refused : x->refused;
    void *refused_vl = realloc(x->refused_vl, room);
    x->refused_vl = refused_vl ? refused_vl : x->refused_vl;
    if (!added || !added_vl || !decided || !refused || !refused_vl)
        return x->job.failed = 1;
    x->room = (int32_t)room;
    return 0;
}

/* Add a CDG edge to a VL unless the edge closes a cycle.  Returns whether the VL has the edge afterwards. */
static int add(attempt *x, int32_t vl, acyclic_step step)
{
    acyclic *graph = &x->job.graph;
    if (graph->used[step.dependency] >> vl & 1)
        return 1;
    if (graph->blocked[step.dependency] >> vl & 1)
        return 0;
    if (ibn_core_acyclic_fits(graph, vl, &step, 1)) {
        x->added[x->adds] = step;
        x->added_vl[x->adds++] = (uint8_t)vl;
        return 1;
    }
    x->refused[x->refusals] = step;
    x->refused_vl[x->refusals++] = (uint8_t)vl;
    return 0;
}

/* Add the path from switch `from` to a target on an SL whose packets may move to higher VLs.  `turn_vl` is the row of
 * attempt.turn_vl for this SL.  Returns whether the path fits. */
static int add_path(attempt *x, int32_t target, int32_t from, uint8_t *turn_vl)
{
    layering_job *job = &x->job;
    int32_t c = ibn_layering_next_channel(job, target, from), vl = 0;
    if (reserve(x))
        return 0;
    while (job->net.dst[c] != job->paths->root[target]) {
        int32_t e = ibn_layering_next_channel(job, target, job->net.dst[c]);
        acyclic_step step = {.channel = c,
                             .dependency = job->graph.turn_first[c] + e - job->net.first[job->net.dst[c]]};
        uint8_t *known = turn_vl + step.dependency;
        if (*known == NO_VL) {
            int32_t after = add(x, vl, step) ? vl : vl + 1;
            if (after == job->paths->most)
                return 0;
            *known = (uint8_t)after;
            x->decided[x->decisions++] = step.dependency;
        } else if (*known < vl || (*known == vl && !add(x, vl, step))) {
            return 0;
        }
        job->graph.visited++;
        vl = *known;
        c = e;
    }
    return 1;
}

/* Undo a failed attempt: remove the CDG edges that the attempt added, and the VLs that it decided in `turn_vl`.  The
 * edges that the attempt could not add are tested again later, because they may close no cycle once the added edges are
 * gone. */
static void undo(attempt *x, uint8_t *turn_vl)
{
    acyclic *graph = &x->job.graph;
    for (int32_t i = 0; i < x->adds; i++)
        graph->used[x->added[i].dependency] &= ~(UINT32_C(1) << x->added_vl[i]);
    for (int32_t i = 0; i < x->refusals && x->adds > 0; i++)
        graph->blocked[x->refused[i].dependency] &= ~(UINT32_C(1) << x->refused_vl[i]);
    for (int32_t i = 0; i < x->decisions; i++)
        turn_vl[x->decided[i]] = NO_VL;
}

/* Try to put all paths between switches a and b on an SL whose packets may move to higher VLs.  Returns whether all
 * paths fit. */
static int try_sl(attempt *x, int32_t a, int32_t b, int32_t sl)
{
    const ibn_path_set *paths = x->job.paths;
    uint8_t *turn_vl = x->turn_vl + (size_t)(sl - paths->most) * (size_t)x->edges;
    x->adds = x->decisions = x->refusals = 0;
    for (int32_t reply = 0; reply < 2; reply++) {
        int32_t from = reply ? b : a, to = reply ? a : b;
        for (int32_t i = paths->at_first[to]; i < paths->at_first[to + 1]; i++)
            if (!add_path(x, paths->at[i], from, turn_vl)) {
                undo(x, turn_vl);
                return 0;
            }
    }
    return 1;
}

/* Put all paths between switches a and b on one SL, and add their CDG edges to VLs.  Returns the SL, or NO_LAYER if the
 * paths fit on no SL.  If `change` is set, SLs whose packets may move to higher VLs are tried too, after all other SLs.
 * If `avoid` is set, SLs whose packets keep their VL are restricted: such an SL is skipped if paths->avoid forbids one
 * of the paths' CDG edges on the VL. */
static uint8_t place_pair(attempt *x, int32_t a, int32_t b, int avoid, int change)
{
    layering_job *job = &x->job;
    double flow;
    ibn_layering_path_between(job, a, b, &flow);
    int32_t vl = ibn_layering_place(job, job->paths->most, avoid, 0);
    for (int32_t sl = job->paths->most; change && vl < 0 && sl < x->sls && !ibn_layering_is_over(job); sl++)
        if (try_sl(x, a, b, sl))
            vl = sl;
    return vl < 0 ? NO_LAYER : (uint8_t)vl;
}

/* Place all pairs of switches that have no SL yet.  The pairs with the longest paths are placed first.  The parameters
 * `avoid` and `change` have the same meaning as in the function place_pair.  With `counted`, only pairs with counted
 * paths are placed.  With both `counted` and `change`, the function ends at the first pair that fits on no SL.  Returns
 * the number of pairs that fit on no SL. */
static int64_t place_all(attempt *x, int avoid, int counted, int change)
{
    const int hasty = counted && change;
    layering_job *job = &x->job;
    int32_t switches = job->net.switches, longest = 0;
    int64_t left = 0;
    for (int64_t i = 0; i < (int64_t)switches * switches; i++)
        longest = job->length[i] > longest ? job->length[i] : longest;
    for (int32_t length = longest; length > 0 && !(left && hasty); length--)
        for (int32_t a = 0; a < switches; a++)
            for (int32_t b = a + 1; b < switches && !job->failed && !(left && hasty); b++) {
                size_t pair = (size_t)a * (size_t)switches + (size_t)b;
                if (job->length[pair] != length || x->sl[pair] != NO_LAYER
                    || (counted && !job->paths->counted[a] && !job->paths->counted[b]))
                    continue;
                x->sl[pair] = place_pair(x, a, b, avoid, change);
                left += x->sl[pair] == NO_LAYER;
            }
    return left;
}

/* Place all pairs of switches.  SLs whose packets keep their VL are tried first.  Only the pairs that fit on none of
 * these SLs get SLs whose packets may move to higher VLs.  If a pair with counted paths fits on no SL, the pairs
 * without counted paths are not placed. */
static void run(attempt *x, ibn_transition_counts *counts)
{
    layering_job *job = &x->job;
    int32_t switches = job->net.switches;
    job->budget = job->paths->budget;
    ibn_layering_measure_hops(job);
    ibn_layering_measure_lengths(job);
    if (job->paths->avoid)
        place_all(x, 1, 1, 0);
    place_all(x, 0, 1, 0);
    counts->left = place_all(x, 0, 1, 1);
    job->budget = job->graph.visited + job->paths->spare;
    counts->left_uncounted = counts->left ? 0 : place_all(x, 0, 0, 1);
    counts->visited = job->graph.visited;
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = a; b < switches; b++) {
            uint8_t *own = x->sl + (size_t)a * (size_t)switches + b;
            *own = *own == NO_LAYER ? 0 : *own;
            counts->changing += *own >= job->paths->most;
            x->sl[(size_t)b * (size_t)switches + a] = *own;
        }
}

/* Assign an SL to every pair of switches.  Both directions of a pair have one SL.
 *
 * sls: number of SLs; the packets on the first paths->most SLs keep their VL.
 * next: uint8 [D, S], by target and switch, the index of the next channel among the switch's channels (255: none); not
 * changed.
 * load: double [C], flow on each channel; not changed.
 * sl: uint8 [S, S], output: SL of each pair of switches.
 * turn_vl: uint8 [sls - paths->most, CDG edges], output, for each SL whose packets may move to higher VLs.  An element
 * is the VL on the second channel of the CDG edge, or 255 if no path on this SL uses the edge.
 *
 * Returns 0, or nonzero if memory ran out. */
int ibn_layering_assign_transitions(const ibn_path_set *paths, int32_t sls, uint8_t *next, double *load, uint8_t *sl,
                                    uint8_t *turn_vl, ibn_transition_counts *counts)
{
    size_t switches = (size_t)paths->switches, all = (size_t)paths->targets * switches;
    ibn_layers unused = {0};
    attempt x = {.sls = sls, .sl = sl, .turn_vl = turn_vl};
    layering_job *job = &x.job;
    *job = (layering_job){.paths = paths, .next = next, .load = load, .layer = sl, .result = &unused};
    job->net = (acyclic_net){paths->switches, paths->channels, paths->first,     paths->src,
                             paths->dst,      paths->into,     paths->into_first};
    memset(sl, NO_LAYER, switches * switches);
    memset(counts, 0, sizeof *counts);
    job->hops = malloc((all + 1) * sizeof *job->hops);
    job->length = calloc(switches * switches + 1, sizeof *job->length);
    int failed = ibn_core_acyclic_prepare(&job->graph, &job->net, NULL, NULL) || !job->hops || !job->length
                 || ibn_core_acyclic_open(&job->graph, paths->most - 1, paths->order, paths->orders);
    if (!failed) {
        x.edges = job->graph.turn_first[paths->channels];
        if (sls > paths->most)
            memset(turn_vl, NO_VL, (size_t)(sls - paths->most) * (size_t)x.edges);
        run(&x, counts);
        failed = job->failed;
    }
    ibn_core_acyclic_dispose(&job->graph);
    free(job->hops);
    free(job->length);
    free(job->step);
    free(x.added);
    free(x.added_vl);
    free(x.decided);
    free(x.refused);
    free(x.refused_vl);
    return failed;
}
