/* Assign paths to layers (VLs) such that the CDG of every layer is acyclic.  The longest paths are assigned first.
 * Each path goes into the first layer whose CDG stays acyclic with the path.
 *
 * If `mutual` is not set in the request, each path from a switch to a target is assigned separately.  If a path is a
 * section of a placed path, it gets the same layer without a test, because this layer has its dependencies already.
 *
 * If `mutual` is set, all paths between two switches, in both directions, are assigned together.
 *
 * The counted paths (see layering.h) are placed first.  The uncounted paths follow, which lead between switches without
 * counted end ports.  In the end, an uncounted path that fits into no layer gets layer 0, although this may close a
 * cycle.  Every other path moves to the least loaded of the layers that have all dependencies of the path.  The load of
 * a layer is the sum of the flows on its paths. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* Place all units (see layering_job.h) that have no layer yet.  Only the first `vls` layers are tried.  If `avoid` is
 * set, no layer gets a CDG edge that paths->avoid forbids for this layer.  With `counted`, only counted paths are
 * placed.  Returns the number of units that fit into no layer. */
static int64_t place_all(layering_job *job, int32_t vls, int avoid, int counted)
{
    return job->paths->mutual ? ibn_layering_place_pairs(job, vls, avoid, counted)
                              : ibn_layering_place_paths(job, vls, avoid, counted);
}

/* Put each unit into a layer.  A unit is a path, or all paths between two switches in both directions if `mutual` is
 * set in the request.  The units of counted paths come first.  If one of them fits into no layer, all later steps are
 * left out.  Then next hops are moved off the channels with the peak utilisation.  Then the other units are put into
 * layers.  In the end, the load of the layers is balanced.  Returns nonzero if memory is exhausted. */
static int run(layering_job *job)
{
    const ibn_path_set *paths = job->paths;
    ibn_layers *result = job->result;
    job->budget = paths->budget;
    ibn_layering_measure_hops(job);
    if (paths->mutual)
        ibn_layering_measure_lengths(job);
    if (paths->avoid)
        place_all(job, paths->most, 1, 1);
    job->hasty = 1;
    result->left = place_all(job, paths->most, 0, 1);
    int32_t *queue = malloc((2 * (size_t)paths->switches + 1) * sizeof *queue);
    if (!queue)
        return 1;
    if (!result->left && !job->failed)
        ibn_layering_unload(job, paths->unload_rounds, queue, queue + paths->switches);
    free(queue);
    result->needed = job->graph.vls > 0 ? job->graph.vls : 1;
    result->used = result->needed > paths->have ? result->needed : paths->have;
    job->budget = job->graph.visited + paths->spare;
    result->left_uncounted = job->failed || result->left ? 0 : place_all(job, result->used, 0, 0);
    result->visited = job->graph.visited;
    return job->failed || (!result->left && ibn_layering_rebalance(job));
}

/* Assign a layer to all paths.
 *
 * next: uint8 [D, S], by target and switch, the index of the next channel among the switch's channels (255: none).  If
 * a path gets another first hop, the array is changed.
 * load: double [C], flow on each channel, updated where paths change.
 * layer: uint8, output: [D, S], by target and switch; if paths->mutual is set: [S, S], by pair of switches.
 * result: output, statistics.  The paths are spread over at least paths->have layers.
 *
 * Returns 0, or nonzero if memory is exhausted. */
int ibn_layering_assign(const ibn_path_set *paths, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result)
{
    size_t switches = (size_t)paths->switches, all = (size_t)paths->targets * switches;
    layering_job job = {.paths = paths, .next = next, .load = load, .layer = layer, .result = result};
    job.net = (acyclic_net){paths->switches, paths->channels, paths->first,     paths->src,
                            paths->dst,      paths->into,     paths->into_first};
    memset(layer, NO_LAYER, paths->mutual ? switches * switches : all);
    memset(result, 0, sizeof *result);
    job.hops = malloc((all + 1) * sizeof *job.hops);
    job.length = calloc(paths->mutual ? switches * switches + 1 : 1, sizeof *job.length);
    int failed = ibn_core_acyclic_prepare(&job.graph, &job.net, NULL, NULL) || !job.hops || !job.length || run(&job);
    ibn_core_acyclic_dispose(&job.graph);
    free(job.hops);
    free(job.length);
    free(job.step);
    return failed;
}
