/* Compute several in-trees for each destination, such that the paths of a switch in these trees share few links: see
 * disjoint.h. */
#include "disjoint/disjoint.h"

#include <stdlib.h>
#include <string.h>

#include "disjoint/internal/disjoint_job.h"

static int prepare(disjoint_job *job, const disjoint_trees *trees)
{
    const disjoint_request *net = job->net;
    const size_t switches = (size_t)net->switches, channels = (size_t)net->channels + 1;
    const size_t entries = switches * switches * (size_t)net->trees + 1;
    job->next = trees->next;
    job->load[0] = trees->load;
    job->load[1] = trees->load + net->channels;
    array_list *arrays = &job->arrays;
    job->mask = ibn_core_arrays_add(arrays, entries, 1);
    job->depth = ibn_core_arrays_add(arrays, entries, sizeof *job->depth);
    job->conflict = ibn_core_arrays_add(arrays, entries, 1);
    job->order = net->shared ? ibn_core_arrays_add(arrays, switches * switches + 1, 1) : NULL;
    job->stamp = ibn_core_arrays_add(arrays, channels, sizeof *job->stamp);
    job->mark = ibn_core_arrays_add(arrays, channels, 1);
    job->kept = ibn_core_arrays_add(arrays, channels, 1);
    job->forwarded = ibn_core_arrays_add(arrays, switches + 1, sizeof *job->forwarded);
    job->shuffled = ibn_core_arrays_add(arrays, 4 * switches + 1, sizeof *job->shuffled);
    job->random = net->seed;
    if (arrays->failed)
        return DISJOINT_NO_MEMORY;
    job->turn = job->shuffled + switches;
    job->queue = job->turn + switches;
    job->count = job->queue + switches;
    for (int32_t s = 0; s < net->switches; s++)
        job->shuffled[s] = job->turn[s] = s;
    memset(job->next, DISJOINT_NONE, entries - 1);
    memset(job->depth, 0xFF, entries * sizeof *job->depth);
    memset(trees->load, 0, 2 * (size_t)net->channels * sizeof *trees->load);
    for (int32_t d = 0; d < net->switches; d++)
        job->depth[disjoint_row(job, d, 0) + d] = 0;
    return DISJOINT_OK;
}

int ibn_disjoint_trees(const disjoint_request *request, const disjoint_trees *trees)
{
    disjoint_job job = {.net = request};
    int code = prepare(&job, trees);
    if (code == DISJOINT_OK) {
        ibn_disjoint_first_trees(&job);
        code = ibn_disjoint_balance_first(&job);
    }
    if (code == DISJOINT_OK) {
        ibn_disjoint_choose_orders(&job);
        ibn_disjoint_branch_trees(&job);
        code = ibn_disjoint_local_search(&job);
        ibn_disjoint_state_orders(&job, trees->order);
    }
    ibn_core_arrays_free(&job.arrays);
    return code;
}

int ibn_disjoint_follow_first(const disjoint_request *request, int32_t pairs, const int32_t *source,
                              const int32_t *target, uint8_t *next)
{
    for (int32_t i = 0; i < pairs; i++)
        for (int32_t tree = 1; tree < request->trees && request->weight[target[i]] > 0; tree++)
            ibn_disjoint_copy_first(request, next, target[i], tree, source[i]);
    return DISJOINT_OK;
}
