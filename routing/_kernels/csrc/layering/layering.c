/* Assign paths to layers (VLs) without cycles: each path goes into the first layer whose dependencies stay acyclic with
 * it, longest paths first.
 *
 * Without `mutual`, the unit is one path from a switch to a target.  A path that is part of a placed path needs no
 * test: its dependencies are in that layer.  So only paths that are not part of another one have to be tested.  With
 * `mutual`, the unit is all paths between two switches, in both directions.
 *
 * The paths that count are placed first.  The others, between switches that both have no end ports, follow as far as
 * they fit.  At last every path moves to the layer with the least load, among those that have all of its
 * dependencies. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* Place the units that have no layer yet; with `counted`, only the units that count.  Return how many found no
 * layer. */
static int64_t place_all(layering_job *job, int32_t vls, int avoid, int counted)
{
    return job->paths->mutual ? ibn_layering_place_pairs(job, vls, avoid, counted)
                              : ibn_layering_place_paths(job, vls, avoid, counted);
}

/* Place all units, relieve the channels at the peak, and balance the layers. */
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

/* Put all paths into layers.
 *
 * next: uint8 [D, S], index of each switch's channel among its own (255: none), changed where paths get other first
 * hops. load: double [C], kept up to date.  layer: uint8 [D, S], with `mutual` uint8 [S, S].  result->used: layers
 * in use, at least paths->have. */
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
    int failed = ibn_acyclic_prepare(&job.graph, &job.net) || !job.hops || !job.length || run(&job);
    ibn_acyclic_dispose(&job.graph);
    free(job.hops);
    free(job.length);
    free(job.step);
    return failed;
}
