/* Steps of the layering kernel for one unit: collect the CDG edges of the unit, and find a layer for the unit.  A unit
 * is explained in internal/layering_job.h. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* Fill job->hops: for each target and switch, the number of hops of the path from the switch to the target
 * (NO_PATH: none). */
void ibn_layering_measure_hops(layering_job *job)
{
    int32_t switches = job->net.switches;
    for (int32_t t = 0; t < job->paths->targets; t++) {
        uint16_t *hops = job->hops + (int64_t)t * switches;
        const uint8_t *next = job->next + (int64_t)t * switches;
        memset(hops, 0xFF, (size_t)switches * sizeof *hops);
        hops[job->paths->root[t]] = 0;
        for (int32_t u = 0; u < switches; u++) {
            int32_t far = 0, v = u;
            for (; hops[v] == NO_PATH && next[v] != NO_CHANNEL; far++)
                v = job->net.dst[job->net.first[v] + next[v]];
            if (hops[v] == NO_PATH)
                continue;
            far += hops[v];
            for (v = u; hops[v] == NO_PATH; v = job->net.dst[job->net.first[v] + next[v]])
                hops[v] = (uint16_t)far--;
        }
    }
}

/* Append the CDG edges of one path to job->step, the list of the CDG edges of the current unit.  The path begins with
 * channel `from` and leads to a target.  Returns nonzero if memory ran out. */
int ibn_layering_collect_edges(layering_job *job, int32_t target, int32_t from)
{
    int32_t root = job->paths->root[target], c = from;
    if (job->steps + job->net.switches > job->room) {
        job->room = 2 * job->room + job->net.switches;
        acyclic_step *more = realloc(job->step, (size_t)job->room * sizeof *more);
        if (!more)
            return job->failed = 1;
        job->step = more;
    }
    while (job->net.dst[c] != root) {
        int32_t v = job->net.dst[c], k = job->next[(int64_t)target * job->net.switches + v];
        job->step[job->steps++] = (acyclic_step){.channel = c, .dependency = job->graph.turn_first[c] + k};
        c = job->net.first[v] + k;
    }
    return 0;
}

/* Find one of the first `vls` layers for the current unit, and add the CDG edges of the unit to this layer.  A layer
 * that has all these edges already is preferred.  Otherwise the layers are tried in cyclic order from `start` on.  If
 * `avoid` is set, no layer gets a CDG edge that paths->avoid forbids for this layer.
 *
 * Returns the layer.  Returns -1 if the unit fits into none of the layers, if the work limit (job->budget) is exceeded,
 * or if memory ran out. */
int32_t ibn_layering_place(layering_job *job, int32_t vls, int avoid, int32_t start)
{
    if (job->graph.visited > job->budget)
        return -1;
    uint32_t open = vls >= 32 ? EVERY : (UINT32_C(1) << vls) - 1, has = EVERY;
    for (int32_t i = 0; i < job->steps; i++) {
        int32_t dependency = job->step[i].dependency;
        has &= job->graph.used[dependency];
        open &=
            ~(avoid ? job->graph.blocked[dependency] | job->paths->avoid[dependency] : job->graph.blocked[dependency]);
    }
    for (int32_t i = 0; i < vls && has & open; i++)
        if (has & open & UINT32_C(1) << (start + i) % vls)
            return (start + i) % vls;
    for (int32_t i = 0; i < vls && open; i++) {
        int32_t vl = (start + i) % vls;
        if (!(open >> vl & 1))
            continue;
        if (ibn_core_acyclic_open(&job->graph, vl, job->paths->order, job->paths->orders)) {
            job->failed = 1;
            return -1;
        }
        if (ibn_core_acyclic_fits(&job->graph, vl, job->step, job->steps))
            return vl;
        open &= ~(UINT32_C(1) << vl);
    }
    return -1;
}
