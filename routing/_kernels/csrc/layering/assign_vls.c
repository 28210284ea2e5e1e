/* Assign VLs to groups of paths, such that the CDG of every VL stays acyclic: see assign_vls.h. */
#include "layering/assign_vls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal/acyclic.h"

enum { OK, NO_MEMORY };
enum { NO_VL = 255 };

typedef struct {
    const vl_requests *paths;
    acyclic graph;
    acyclic_step *step;  /* CDG edges that the paths of the current group need */
    int32_t steps, room; /* steps: number of edges in `step`; room: number of edges that fit into `step` */
} fit_job;

static int32_t channel_of(const vl_requests *paths, int32_t s, int32_t lid)
{
    return paths->at_port[(int64_t)s * 256 + paths->lft[(int64_t)s * paths->lids + lid]];
}

static int make_room(fit_job *job)
{
    if (job->steps + job->paths->switches <= job->room)
        return OK;
    job->room = 2 * job->room + job->paths->switches;
    acyclic_step *more = realloc(job->step, (size_t)job->room * sizeof *more);
    if (!more)
        return NO_MEMORY;
    job->step = more;
    return OK;
}

/* Append to job->step the dependencies of one path, which leads from switch s to a LID.  *arrives receives whether the
 * path reaches the LID.  Returns OK or NO_MEMORY. */
static int collect(fit_job *job, int32_t s, int32_t lid, bool *arrives)
{
    const vl_requests *paths = job->paths;
    const int32_t target = paths->lid_switch[lid];
    int32_t last = -1;
    if (make_room(job))
        return NO_MEMORY;
    for (int32_t left = paths->switches; s != target; left--) {
        const int32_t c = channel_of(paths, s, lid);
        *arrives = c >= 0 && left > 0;
        if (!*arrives)
            return OK;
        if (last >= 0)
            job->step[job->steps++] = (acyclic_step){last, job->graph.turn_first[last] + c - paths->first[s]};
        last = c;
        s = paths->dst[c];
    }
    *arrives = true;
    return OK;
}

/* Fill job->step with the dependencies of all paths of a group.  *arrives receives whether all paths reach their
 * destinations.  Returns OK or NO_MEMORY. */
static int collect_group(fit_job *job, int32_t group, bool *arrives)
{
    const vl_requests *paths = job->paths;
    job->steps = 0;
    *arrives = true;
    for (int32_t i = paths->path_first[group]; *arrives && i < paths->path_first[group + 1]; i++)
        if (collect(job, paths->path_from[i], paths->path_to[i], arrives))
            return NO_MEMORY;
    return OK;
}

/* Return whether some dependency of the current group is already known to close a cycle on the given VL. */
static bool is_blocked(const fit_job *job, int32_t vl)
{
    bool blocked = false;
    for (int32_t i = 0; i < job->steps && !blocked; i++)
        blocked = job->graph.blocked[job->step[i].dependency] >> vl & 1;
    return blocked;
}

/* Add the dependencies of the current group to the CDG of the first VL that stays acyclic.  The VLs are tried in cyclic
 * order from `start` on.  Returns the VL, or NO_VL if no VL stays acyclic. */
static uint8_t place(fit_job *job, int32_t start)
{
    const int32_t vls = job->paths->vls;
    for (int32_t i = 0; i < vls; i++) {
        const int32_t vl = (start + i) % vls;
        if (job->paths->open[vl] && !is_blocked(job, vl)
            && !ibn_core_acyclic_clash(&job->graph, vl, job->step, job->steps)
            && ibn_core_acyclic_fits(&job->graph, vl, job->step, job->steps))
            return (uint8_t)vl;
    }
    return NO_VL;
}

/* Copy the caller's array `dependencies` to job->graph.  For each dependency, the array has the VLs, as bits, on which
 * the dependency is in use.  With `back`, copy from job->graph to the array instead. */
static void move_masks(fit_job *job, uint16_t *dependencies, bool back)
{
    const vl_requests *paths = job->paths;
    for (int32_t c = 0; c < paths->channels; c++) {
        uint16_t *mask = dependencies + paths->slot[c];
        uint32_t *used = job->graph.used + job->graph.turn_first[c];
        for (int32_t k = 0; k < job->graph.turn_first[c + 1] - job->graph.turn_first[c]; k++)
            if (back)
                mask[k] = (uint16_t)used[k];
            else
                used[k] = mask[k];
    }
}

static int run(fit_job *job, int64_t budget, uint8_t *vl)
{
    int32_t failed = 0;
    memset(vl, NO_VL, (size_t)job->paths->groups);
    for (int32_t group = 0; group < job->paths->groups && failed <= job->paths->most_failed; group++) {
        bool arrives;
        if (collect_group(job, group, &arrives))
            return NO_MEMORY;
        if (arrives && job->graph.visited < budget)
            vl[group] = place(job, job->paths->start[group]);
        failed += vl[group] == NO_VL;
    }
    return OK;
}

int ibn_layering_assign_vls(const vl_requests *paths, uint16_t *dependencies, int32_t *order, int64_t *budget,
                            uint8_t *vl)
{
    fit_job job = {.paths = paths};
    const acyclic_net net = {paths->switches, paths->channels, paths->first,     paths->src,
                             paths->dst,      paths->into,     paths->into_first};
    int code = ibn_core_acyclic_prepare(&job.graph, &net, NULL, NULL)
               || ibn_core_acyclic_open(&job.graph, paths->vls - 1, order, paths->vls);
    if (code == OK) {
        move_masks(&job, dependencies, false);
        code = run(&job, *budget, vl);
        *budget -= job.graph.visited;
    }
    if (code == OK) {
        move_masks(&job, dependencies, true);
        for (int32_t v = 0; v < paths->vls; v++)
            memcpy(order + (int64_t)v * paths->channels, job.graph.place[v], (size_t)paths->channels * sizeof *order);
    }
    ibn_core_acyclic_dispose(&job.graph);
    free(job.step);
    return code;
}
