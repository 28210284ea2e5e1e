/* Balance the load of the layers: every path moves to the least loaded of the layers that have all of its CDG edges. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* Return a layer for a path: the least loaded of the first `used` layers that have all CDG edges of the path.  A clone
 * has the edges of its original, so only originals are tested: `has` is the set (bits) of originals that have all edges
 * of the path.  base[layer] is the original of a layer; a layer that is not a clone is its own original.
 * carried[layer] is the load of a layer, the sum of the flows on its paths.  Return layer 0 if no layer has all of
 * these edges.  */
static int32_t least(const double *carried, uint32_t has, int32_t used, const int32_t *base)
{
    int32_t best = -1;
    for (int32_t vl = 0; vl < used; vl++)
        if ((has >> base[vl] & 1) && (best < 0 || carried[vl] < carried[best]))
            best = vl;
    return best < 0 ? 0 : best;
}

/* Make clones of layers.  Layers 0 to `vls` - 1 have paths: they are the possible originals.  Each layer from `vls` to
 * `used` - 1 becomes a clone of an original, and later takes a part of its paths.  Each new clone goes to the original
 * with the highest load per layer: the load of the original, divided by 1 plus the number of its clones so far.
 * carried[layer] is the load of each layer.  base[layer] receives the original of each layer. */
static void share_out(const double *carried, int32_t vls, int32_t used, int32_t *base)
{
    int32_t shares[32];
    for (int32_t vl = 0; vl < 32; vl++) {
        base[vl] = vl;
        shares[vl] = 1;
    }
    for (int32_t vl = vls; vl < used; vl++) {
        int32_t most = 0;
        for (int32_t own = 1; own < vls; own++)
            if (carried[own] / shares[own] > carried[most] / shares[most])
                most = own;
        base[vl] = most;
        shares[most]++;
    }
}

/* Sort the switches by hops to a target, nearest first.  `starts` is scratch, int32 [S + 2]. */
static void sort_by_hops(const uint16_t *hops, int32_t switches, int32_t *queue, int32_t *starts)
{
    memset(starts, 0, ((size_t)switches + 2) * sizeof *starts);
    for (int32_t u = 0; u < switches; u++)
        starts[(hops[u] < switches ? hops[u] : switches) + 1]++;
    for (int32_t i = 1; i <= switches + 1; i++)
        starts[i] += starts[i - 1];
    for (int32_t u = 0; u < switches; u++)
        queue[starts[hops[u] < switches ? hops[u] : switches]++] = u;
}

/* Choose for every path the least loaded of the layers that have all CDG edges of the path.  Only the first `used`
 * layers may be chosen.  Sum the load of each layer in `carried`.  If `last` is set, also store the chosen layers.
 * base[layer] is the original of each layer, as in the function `least`.  `has`, `queue` and `starts` are scratch. */
static void rebalance_paths(layering_job *job, int last, int32_t used, const int32_t *base, double *carried,
                            uint32_t *has, int32_t *queue, int32_t *starts)
{
    const ibn_path_set *paths = job->paths;
    int32_t switches = job->net.switches;
    for (int32_t t = 0; t < paths->targets; t++) {
        const uint16_t *hops = job->hops + (int64_t)t * switches;
        uint8_t *layer = job->layer + (int64_t)t * switches;
        sort_by_hops(hops, switches, queue, starts);
        for (int32_t i = 0; i < switches; i++) {
            int32_t u = queue[i], c = ibn_layering_next_channel(job, t, u);
            if (hops[u] == 0 || hops[u] == NO_PATH) {
                layer[u] = last ? 0 : layer[u];
                continue;
            }
            int32_t v = job->net.dst[c];
            has[u] = hops[u] == 1
                         ? EVERY
                         : has[v] & job->graph.used[job->graph.turn_first[c] + job->next[(int64_t)t * switches + v]];
            int32_t vl = least(carried, layer[u] == NO_LAYER ? 0 : has[u], used, base);
            if (last)
                layer[u] = (uint8_t)vl;
            carried[vl] += paths->sources[u] * paths->share[t];
        }
    }
}

/* Choose for every pair of switches the least loaded of the layers that have all CDG edges of the pair's paths.  Only
 * the first `used` layers may be chosen.  Sum the load of each layer in `carried`.  If `last` is set, also store the
 * chosen layers.  base[layer] is the original of each layer, as in the function `least`. */
static void even_pairs(layering_job *job, int last, int32_t used, const int32_t *base, double *carried)
{
    int32_t switches = job->net.switches;
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = a + 1; b < switches && !job->failed; b++) {
            uint8_t *layer = job->layer + (int64_t)a * switches + b;
            uint32_t has = EVERY;
            double flow;
            ibn_layering_path_between(job, a, b, &flow);
            for (int32_t i = 0; i < job->steps; i++)
                has &= job->graph.used[job->step[i].dependency];
            int32_t vl = *layer == NO_LAYER ? 0 : least(carried, has, used, base);
            carried[vl] += flow;
            if (last)
                *layer = job->layer[(int64_t)b * switches + a] = (uint8_t)vl;
        }
    for (int32_t a = 0; a < switches; a++)
        job->layer[(int64_t)a * switches + a] = 0;
}

/* Distribute the paths over all layers in use.  Returns nonzero if memory ran out. */
int ibn_layering_rebalance(layering_job *job)
{
    size_t switches = (size_t)job->net.switches + 2;
    uint32_t *has = malloc(switches * sizeof *has);
    int32_t *queue = malloc(switches * sizeof *queue), *starts = malloc(switches * sizeof *starts);
    int32_t vls = job->graph.vls > 0 ? job->graph.vls : 1, used = job->result->used, base[32];
    int failed = !has || !queue || !starts;
    double carried[32] = {0.0};
    share_out(carried, vls, used, base);
    /* The load of each original layer must be known before clones are made.  So the layers are first chosen without
     * clones, and this choice is not stored. */
    for (int32_t last = vls == 1 || vls >= used; last <= 1 && !failed; last++) {
        memset(carried, 0, sizeof carried);
        if (job->paths->mutual)
            even_pairs(job, last, last ? used : vls, base, carried);
        else
            rebalance_paths(job, last, last ? used : vls, base, carried, has, queue, starts);
        share_out(carried, vls, used, base);
    }
    free(has);
    free(starts);
    free(queue);
    return failed;
}
