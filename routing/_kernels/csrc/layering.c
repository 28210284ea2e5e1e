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

void ibn_measure_hops(layering_job *job)
{
    int32_t switches = job->net.switches;
    for (int32_t t = 0; t < job->ways->targets; t++) {
        uint16_t *hops = job->hops + (int64_t)t * switches;
        const uint8_t *next = job->next + (int64_t)t * switches;
        memset(hops, 0xFF, (size_t)switches * sizeof *hops);
        hops[job->ways->root[t]] = 0;
        for (int32_t u = 0; u < switches; u++) {
            int32_t far = 0, v = u;
            for (; hops[v] == NO_WAY && next[v] != NO_CHANNEL; far++)
                v = job->net.dst[job->net.first[v] + next[v]];
            if (hops[v] == NO_WAY)
                continue;
            far += hops[v];
            for (v = u; hops[v] == NO_WAY; v = job->net.dst[job->net.first[v] + next[v]])
                hops[v] = (uint16_t)far--;
        }
    }
}

/* Adds the turns of a way to the unit, its first hop over `from`. */
int ibn_collect(layering_job *job, int32_t target, int32_t from)
{
    int32_t root = job->ways->root[target], c = from;
    if (job->steps + job->net.switches > job->room) {
        job->room = 2 * job->room + job->net.switches;
        acyclic_step *more = realloc(job->step, (size_t)job->room * sizeof *more);
        if (!more)
            return job->failed = 1;
        job->step = more;
    }
    while (job->net.dst[c] != root) {
        int32_t v = job->net.dst[c], k = job->next[(int64_t)target * job->net.switches + v];
        job->step[job->steps++] = (acyclic_step){.channel = c, .turn = job->graph.turn_first[c] + k};
        c = job->net.first[v] + k;
    }
    return 0;
}

/* The first lane below `lanes`, from `start` on, that takes the whole unit and is not to be avoided for any of its turns;
 * -1 if none. */
int32_t ibn_place(layering_job *job, int32_t lanes, int avoid, int32_t start)
{
    if (job->graph.visited > job->budget)
        return -1;
    uint32_t open = lanes >= 32 ? EVERY : (UINT32_C(1) << lanes) - 1, has = EVERY;
    for (int32_t i = 0; i < job->steps; i++) {
        int32_t turn = job->step[i].turn;
        has &= job->graph.used[turn];
        open &= ~(avoid ? job->graph.blocked[turn] | job->ways->avoid[turn] : job->graph.blocked[turn]);
    }
    for (int32_t i = 0; i < lanes && has & open; i++)
        if (has & open & UINT32_C(1) << (start + i) % lanes)
            return (start + i) % lanes;
    for (int32_t i = 0; i < lanes && open; i++) {
        int32_t lane = (start + i) % lanes;
        if (!(open >> lane & 1))
            continue;
        if (ibn_acyclic_open(&job->graph, lane, job->ways->order, job->ways->orders)) {
            job->failed = 1;
            return -1;
        }
        if (ibn_acyclic_fits(&job->graph, lane, job->step, job->steps))
            return lane;
        open &= ~(UINT32_C(1) << lane);
    }
    return -1;
}

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
