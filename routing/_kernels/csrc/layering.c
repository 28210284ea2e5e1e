/* Ways into layers (virtual lanes) without cycles: each way goes into the first lane whose dependencies stay acyclic with
 * it, longest ways first.
 *
 * One by one (`mutual` 0), a way leads from one switch to one target.  A way that is part of one that is in already needs
 * no look at all: its turns are there.  So little more than the ways that nobody else's way contains has to be placed.
 * Both ways (`mutual` 1), all ways between two switches go together, there and back.
 *
 * First come the ways that count, then, as far as they fit, those that do not (between switches that both have no end
 * ports).  At last every way moves to the lane that carries least, among those that have all of its turns. */
#include <stdlib.h>
#include <string.h>

#include "internal/layering_job.h"

static int64_t place_all(layering_job *job, int32_t lanes, int avoid, int counted)
{
    return job->ways->mutual ? ibn_place_pairs(job, lanes, avoid, counted) : ibn_place_ways(job, lanes, avoid, counted);
}

static int run(layering_job *job)
{
    const ibn_ways *ways = job->ways;
    ibn_layers *result = job->result;
    job->budget = ways->budget;
    ibn_measure_hops(job);
    if (ways->mutual)
        ibn_measure_lengths(job);
    if (ways->avoid)
        place_all(job, ways->most, 1, 1);
    job->hasty = 1;
    result->left = place_all(job, ways->most, 0, 1);
    int32_t *queue = malloc((2 * (size_t)ways->switches + 1) * sizeof *queue);
    if (!queue)
        return 1;
    if (!result->left && !job->failed)
        ibn_ease(job, ways->easing, queue, queue + ways->switches);
    free(queue);
    result->needed = job->graph.lanes > 0 ? job->graph.lanes : 1;
    result->used = result->needed > ways->have ? result->needed : ways->have;
    job->budget = job->graph.visited + ways->spare;
    result->left_uncounted = job->failed || result->left ? 0 : place_all(job, result->used, 0, 0);
    result->visited = job->graph.visited;
    return job->failed || (!result->left && ibn_even_out(job));
}

/* next: uint8 [D, S], index of each switch's channel among its own (255: none), changed where ways may be chosen anew;
 * load: double [C], kept in step with it; layer: uint8 [D, S], both ways uint8 [S, S]; used: lanes in use, at least
 * `have` of them. */
int ibn_layering(const ibn_ways *ways, uint8_t *next, double *load, uint8_t *layer, ibn_layers *result)
{
    size_t switches = (size_t)ways->switches, all = (size_t)ways->targets * switches;
    layering_job job = {.ways = ways, .next = next, .load = load, .layer = layer, .result = result};
    job.net = (acyclic_net){ways->switches, ways->channels, ways->first, ways->src,
                            ways->dst, ways->into, ways->into_first};
    memset(layer, NO_LAYER, ways->mutual ? switches * switches : all);
    memset(result, 0, sizeof *result);
    job.hops = malloc((all + 1) * sizeof *job.hops);
    job.length = calloc(ways->mutual ? switches * switches + 1 : 1, sizeof *job.length);
    int failed = ibn_acyclic_prepare(&job.graph, &job.net) || !job.hops || !job.length || run(&job);
    ibn_acyclic_dispose(&job.graph);
    free(job.hops);
    free(job.length);
    free(job.step);
    return failed;
}
