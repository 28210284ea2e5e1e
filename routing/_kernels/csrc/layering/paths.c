/* Layering where each path from a switch to a target is assigned separately.  In symmetric.c, the paths of a pair of
 * switches are assigned together. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* Give switch u another first hop to a target, such that the new path of u fits into a layer.  The new path is as short
 * as the old path, and fits into one of the first `vls` layers.  Of several such paths, the least loaded path is taken.
 * If `avoid` is set, no layer gets a CDG edge that paths->avoid forbids for this layer.  Returns the layer, or -1 if no
 * path fits.  The caller makes sure that no placed path to the target leads through this switch. */
static int32_t place_elsewhere(layering_job *job, int32_t target, int32_t u, int32_t vls, int avoid)
{
    const uint16_t *hops = job->hops + (int64_t)target * job->net.switches;
    uint8_t *next = job->next + (int64_t)target * job->net.switches + u;
    double flow = job->paths->sources[u] * job->paths->share[target];
    int32_t old = ibn_layering_next_channel(job, target, u), count = 0, vl = -1;
    first_hop detour[256];
    ibn_layering_add_flow(job, target, old, -flow);
    for (int32_t c = job->net.first[u]; c < job->net.first[u + 1]; c++)
        if (c != old && hops[job->net.dst[c]] + 1 == hops[u])
            detour[count++] = (first_hop){.worst = ibn_layering_peak_on_path(job, target, c, flow), .channel = c};
    qsort(detour, (size_t)count, sizeof *detour, ibn_layering_by_peak);
    for (int32_t i = 0; i < count && vl < 0 && !job->failed; i++) {
        job->steps = 0;
        if (ibn_layering_collect_edges(job, target, detour[i].channel))
            break;
        vl = ibn_layering_place(job, vls, avoid, ibn_layering_first_layer(job, target));
        if (vl >= 0)
            *next = (uint8_t)(detour[i].channel - job->net.first[u]);
    }
    ibn_layering_add_flow(job, target, ibn_layering_next_channel(job, target, u), flow);
    job->result->rechosen += vl >= 0;
    return vl;
}

/* Store the layer of the path from switch u to a target.  The paths to the target from the other switches on this path
 * are sections of the path.  So they get the same layer, unless they have a layer already. */
static void mark(layering_job *job, int32_t target, int32_t u, int32_t vl)
{
    uint8_t *layer = job->layer + (int64_t)target * job->net.switches;
    for (; u != job->paths->root[target] && layer[u] == NO_LAYER;
         u = job->net.dst[ibn_layering_next_channel(job, target, u)])
        layer[u] = (uint8_t)vl;
}

/* Place all paths without a layer into the first `vls` layers, the longest paths first.  If `avoid` is set, no layer
 * gets a CDG edge that paths->avoid forbids for this layer.  With `counted`, only counted paths are placed.  Returns
 * the number of paths that fit into no layer. */
int64_t ibn_layering_place_paths(layering_job *job, int32_t vls, int avoid, int counted)
{
    int32_t switches = job->net.switches, longest = 0;
    int64_t left = 0, all = (int64_t)job->paths->targets * switches;
    for (int64_t i = 0; i < all; i++)
        if (job->hops[i] != NO_PATH && job->hops[i] > longest)
            longest = job->hops[i];
    for (int32_t length = longest; length > 0 && !(left && job->hasty); length--)
        for (int32_t t = 0; t < job->paths->targets && !ibn_layering_is_over(job); t++) {
            const uint16_t *hops = job->hops + (int64_t)t * switches;
            const uint8_t *layer = job->layer + (int64_t)t * switches;
            for (int32_t u = 0; u < switches && !ibn_layering_is_over(job); u++) {
                if (hops[u] != length || layer[u] != NO_LAYER
                    || (counted && !ibn_layering_is_counted(job->paths, t, u)))
                    continue;
                job->steps = 0;
                if (ibn_layering_collect_edges(job, t, ibn_layering_next_channel(job, t, u)))
                    break;
                int32_t vl = ibn_layering_place(job, vls, avoid, ibn_layering_first_layer(job, t));
                if (vl < 0 && job->paths->rechoose && !avoid)
                    vl = place_elsewhere(job, t, u, vls, avoid);
                if (vl >= 0)
                    mark(job, t, u, vl);
                else
                    left++;
            }
        }
    return left + ibn_layering_is_over(job);
}
