/* Layering unit = one path from a switch to a target (as opposed to a pair of switches, see layering_pairs.c). */
#include <stdlib.h>
#include <string.h>

#include "internal/layering_job.h"

/* Place the path of a switch by another first hop of equal length, the least loaded path that fits; return the
 * layer, or -1.  No path through this switch has been placed. */
static int32_t place_elsewhere(layering_job *job, int32_t target, int32_t u, int32_t lanes, int avoid)
{
    const uint16_t *hops = job->hops + (int64_t)target * job->net.switches;
    uint8_t *next = job->next + (int64_t)target * job->net.switches + u;
    double flow = job->ways->sources[u] * job->ways->share[target];
    int32_t old = ibn_channel_of(job, target, u), count = 0, lane = -1;
    detour_t detour[256];
    ibn_add_flow(job, target, old, -flow);
    for (int32_t c = job->net.first[u]; c < job->net.first[u + 1]; c++)
        if (c != old && hops[job->net.dst[c]] + 1 == hops[u])
            detour[count++] = (detour_t){.worst = ibn_worst_along(job, target, c, flow), .channel = c};
    qsort(detour, (size_t)count, sizeof *detour, ibn_by_load);
    for (int32_t i = 0; i < count && lane < 0 && !job->failed; i++) {
        job->steps = 0;
        if (ibn_collect(job, target, detour[i].channel))
            break;
        lane = ibn_place(job, lanes, avoid, ibn_preferred(job, target));
        if (lane >= 0)
            *next = (uint8_t)(detour[i].channel - job->net.first[u]);
    }
    ibn_add_flow(job, target, ibn_channel_of(job, target, u), flow);
    job->result->rechosen += lane >= 0;
    return lane;
}

/* Store the layer of a placed path, and of all paths that are part of it. */
static void mark(layering_job *job, int32_t target, int32_t u, int32_t lane)
{
    uint8_t *layer = job->layer + (int64_t)target * job->net.switches;
    for (; u != job->ways->root[target] && layer[u] == NO_LAYER; u = job->net.dst[ibn_channel_of(job, target, u)])
        layer[u] = (uint8_t)lane;
}

/* Place all paths without a layer, the longest first; return how many found none. */
int64_t ibn_place_ways(layering_job *job, int32_t lanes, int avoid, int counted)
{
    int32_t switches = job->net.switches, longest = 0;
    int64_t left = 0, all = (int64_t)job->ways->targets * switches;
    for (int64_t i = 0; i < all; i++)
        if (job->hops[i] != NO_WAY && job->hops[i] > longest)
            longest = job->hops[i];
    for (int32_t length = longest; length > 0 && !(left && job->hasty); length--)
        for (int32_t t = 0; t < job->ways->targets && !ibn_is_over(job); t++) {
            const uint16_t *hops = job->hops + (int64_t)t * switches;
            const uint8_t *layer = job->layer + (int64_t)t * switches;
            for (int32_t u = 0; u < switches && !ibn_is_over(job); u++) {
                if (hops[u] != length || layer[u] != NO_LAYER || (counted && !ibn_is_counted(job->ways, t, u)))
                    continue;
                job->steps = 0;
                if (ibn_collect(job, t, ibn_channel_of(job, t, u)))
                    break;
                int32_t lane = ibn_place(job, lanes, avoid, ibn_preferred(job, t));
                if (lane < 0 && job->ways->rechoose && !avoid)
                    lane = place_elsewhere(job, t, u, lanes, avoid);
                if (lane >= 0)
                    mark(job, t, u, lane);
                else
                    left++;
            }
        }
    return left + ibn_is_over(job);
}
