/* Assign VLs to paths, given the dependencies of paths that have a VL: see fit_ways.h. */
#include "fit_ways.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal/acyclic.h"

enum { OK, NO_MEMORY };
enum { NO_LANE = 255 };

typedef struct {
    const ways_to_fit *ways;
    acyclic graph;
    acyclic_step *step; /* dependencies of the current group */
    int32_t steps, room; /* their number; allocated length of `step` */
} fit_job;

static int32_t channel_of(const ways_to_fit *ways, int32_t s, int32_t lid)
{
    return ways->at_port[(int64_t)s * 256 + ways->lft[(int64_t)s * ways->lids + lid]];
}

static int make_room(fit_job *job)
{
    if (job->steps + job->ways->switches <= job->room)
        return OK;
    job->room = 2 * job->room + job->ways->switches;
    acyclic_step *more = realloc(job->step, (size_t)job->room * sizeof *more);
    if (!more)
        return NO_MEMORY;
    job->step = more;
    return OK;
}

/* Add the dependencies of a path to `step`; *arrives receives whether the path reaches its destination. */
static int collect(fit_job *job, int32_t s, int32_t lid, bool *arrives)
{
    const ways_to_fit *ways = job->ways;
    const int32_t target = ways->lid_switch[lid];
    int32_t last = -1;
    if (make_room(job))
        return NO_MEMORY;
    for (int32_t left = ways->switches; s != target; left--) {
        const int32_t c = channel_of(ways, s, lid);
        *arrives = c >= 0 && left > 0;
        if (!*arrives)
            return OK;
        if (last >= 0)
            job->step[job->steps++] = (acyclic_step){last, job->graph.turn_first[last] + c - ways->first[s]};
        last = c;
        s = ways->dst[c];
    }
    *arrives = true;
    return OK;
}

/* Collect the dependencies of a group; *arrives receives whether all its paths reach their destinations. */
static int collect_group(fit_job *job, int32_t group, bool *arrives)
{
    const ways_to_fit *ways = job->ways;
    job->steps = 0;
    *arrives = true;
    for (int32_t i = ways->way_first[group]; *arrives && i < ways->way_first[group + 1]; i++)
        if (collect(job, ways->way_from[i], ways->way_to[i], arrives))
            return NO_MEMORY;
    return OK;
}

/* Return whether an edge of the current group is known to close a cycle on a VL. */
static bool is_blocked(const fit_job *job, int32_t lane)
{
    bool blocked = false;
    for (int32_t i = 0; i < job->steps && !blocked; i++)
        blocked = job->graph.blocked[job->step[i].turn] >> lane & 1;
    return blocked;
}

/* Add the current group's dependencies to the first VL from `start` on that stays acyclic, and return the VL. */
static uint8_t place(fit_job *job, int32_t start)
{
    const int32_t vls = job->ways->vls;
    for (int32_t i = 0; i < vls; i++) {
        const int32_t lane = (start + i) % vls;
        if (job->ways->open[lane] && !is_blocked(job, lane)
            && !ibn_acyclic_clash(&job->graph, lane, job->step, job->steps)
            && ibn_acyclic_fits(&job->graph, lane, job->step, job->steps))
            return (uint8_t)lane;
    }
    return NO_LANE;
}

/* Copy VL masks from the caller's slots to the graph's edges, or back. */
static void move_masks(fit_job *job, uint16_t *waits, bool back)
{
    const ways_to_fit *ways = job->ways;
    for (int32_t c = 0; c < ways->channels; c++) {
        uint16_t *mask = waits + ways->slot[c];
        uint32_t *used = job->graph.used + job->graph.turn_first[c];
        for (int32_t k = 0; k < job->graph.turn_first[c + 1] - job->graph.turn_first[c]; k++)
            if (back)
                mask[k] = (uint16_t)used[k];
            else
                used[k] = mask[k];
    }
}

static int run(fit_job *job, int64_t budget, uint8_t *lane)
{
    for (int32_t group = 0; group < job->ways->groups; group++) {
        bool arrives;
        if (collect_group(job, group, &arrives))
            return NO_MEMORY;
        lane[group] = arrives && job->graph.visited < budget ? place(job, job->ways->start[group]) : NO_LANE;
    }
    return OK;
}

int ibn_fit_ways(const ways_to_fit *ways, uint16_t *waits, int32_t *order, int64_t *budget, uint8_t *lane)
{
    fit_job job = {.ways = ways};
    const acyclic_net net = {ways->switches, ways->channels, ways->first, ways->src,
                             ways->dst, ways->into, ways->into_first};
    int code = ibn_acyclic_prepare(&job.graph, &net) || ibn_acyclic_open(&job.graph, ways->vls - 1, order, ways->vls);
    if (code == OK) {
        move_masks(&job, waits, false);
        code = run(&job, *budget, lane);
        *budget -= job.graph.visited;
    }
    if (code == OK) {
        move_masks(&job, waits, true);
        for (int32_t v = 0; v < ways->vls; v++)
            memcpy(order + (int64_t)v * ways->channels, job.graph.place[v], (size_t)ways->channels * sizeof *order);
    }
    ibn_acyclic_dispose(&job.graph);
    free(job.step);
    return code;
}
