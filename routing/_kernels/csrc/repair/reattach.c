/* Find paths for disconnected switches.  Each switch takes the best path that closes no CDG cycle.  The terms are
 * explained in internal/repair_state.h. */
#include "repair/internal/repair_state.h"

enum { MORE_HOPS = 2 };

/* Return the hops from a switch to the current LID, or -1 if the switch is cut off from the LID.  The hops of all
 * switches on the path are stored in job->hops, for later calls. */
int32_t ibn_repair_hops(repair_state *job, int32_t s)
{
    int32_t at = s, count = 0, left = job->f->switches;
    while (at != job->target && job->known[at] != job->stamp) {
        const int32_t c = job->cut_off[at] == job->stamp ? -1 : ibn_repair_next_channel(job, at);
        if (c < 0 || left-- == 0)
            return -1;
        at = job->f->dst[c];
        count++;
    }
    const int32_t total = count + (at == job->target ? 0 : job->hops[at]);
    for (; s != at; s = job->f->dst[ibn_repair_next_channel(job, s)]) {
        job->known[s] = job->stamp;
        job->hops[s] = at == job->target ? count : count + job->hops[at];
        count--;
    }
    return total;
}

/* Return whether path a is better than path b.  The path of the preferred entry is best.  Second are paths with the
 * flag `near`, ordered by their peak utilisation.  All other paths come last, ordered by their hops. */
static bool is_better(const candidate *a, const candidate *b)
{
    if (a->old != b->old)
        return a->old;
    if (a->near != b->near)
        return a->near;
    if (a->near && a->peak != b->peak)
        return a->peak < b->peak;
    if (a->hops != b->hops)
        return a->hops < b->hops;
    return a->peak != b->peak ? a->peak < b->peak : a->channel < b->channel;
}

/* Return the highest utilisation (load times inverse capacity) of the channels on the path that begins with channel
 * c. */
static int64_t peak_along(const repair_state *job, int32_t c)
{
    const repair_fabric *f = job->f;
    int64_t peak = job->load[c] * f->inverse_capacity[c];
    while (f->dst[c] != job->target) {
        c = ibn_repair_next_channel(job, f->dst[c]);
        const int64_t full = job->load[c] * f->inverse_capacity[c];
        peak = full > peak ? full : peak;
    }
    return peak;
}

/* Set the flag `near` of each path in job->candidates that is at most two hops longer than the shortest of these
 * paths. */
static void mark_near(repair_state *job, int32_t count)
{
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < count; i++)
        least = job->candidates[i].hops < least ? job->candidates[i].hops : least;
    for (int32_t i = 0; i < count; i++)
        job->candidates[i].near = job->candidates[i].hops <= least + MORE_HOPS;
}

/* List the paths by which switch u can reach the current LID in exactly `wanted` hops (0: in any number of hops).  If
 * `wanted` is positive and paths with more hops exist, *next is lowered to the hops of the shortest of them.  Returns
 * the number of listed paths. */
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t wanted, int32_t *next)
{
    const repair_fabric *f = job->f;
    const uint8_t preferred = f->preferred[(int64_t)u * f->lids + job->lid];
    int32_t count = 0;
    for (int32_t c = f->first[u]; c < f->first[u + 1]; c++) {
        if (!f->alive[c] || job->cut_off[f->dst[c]] == job->stamp)
            continue;
        const int32_t further = ibn_repair_hops(job, f->dst[c]);
        if (further < 0)
            continue;
        if (wanted == 0 || further + 1 == wanted)
            job->candidates[count++] = (candidate){c, further + 1, peak_along(job, c), preferred == f->port[c], false};
        else if (further + 1 > wanted && further + 1 < *next)
            *next = further + 1;
    }
    mark_near(job, count);
    return count;
}

/* Add flow to the channels of the path from switch s to the current LID.  If the path leads to a disconnected switch,
 * only the channels up to this switch get the flow. */
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow)
{
    while (s != job->target) {
        const int32_t c = ibn_repair_next_channel(job, s);
        if (c < 0)
            return;
        ibn_repair_add_load(job, c, flow);
        s = job->f->dst[c];
    }
}

/* Give disconnected switch u a path that closes no CDG cycle: the best such path among the first `count` paths in
 * job->candidates.  Returns whether such a path was found. */
static bool take_best(repair_state *job, int32_t u, int32_t count)
{
    for (; count > 0; count--) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            best = is_better(&job->candidates[i], &job->candidates[best]) ? i : best;
        const candidate path = job->candidates[best];
        job->candidates[best] = job->candidates[count - 1];
        job->candidates[count - 1] = path;
        if (!ibn_repair_admits(job, path.channel))
            continue;
        ibn_repair_set_entry(job, u, job->f->port[path.channel]);
        return true;
    }
    return false;
}

/* Mark the switches in job->queue as no longer cut off from the current LID. */
void ibn_repair_attach_subtree(repair_state *job)
{
    for (int32_t i = 0; i < job->subtree_size; i++)
        job->cut_off[job->queue[i]] = 0;
}

/* Give disconnected switch u the best path that closes no CDG cycle, and add the flow of its subtree to the path's
 * channels.  `hops` is the number of hops of the path; 0: any number.  If longer paths exist, *next receives the hops
 * of the shortest of these.  Returns whether a path was found. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t hops, int32_t *next)
{
    if (!job->on_trial)
        job->changed_sl_count = 0;
    const int32_t count = ibn_repair_candidates(job, u, hops, next);
    if (count == 0)
        return false;
    ibn_repair_collect_subtree(job, u);
    if (!take_best(job, u, count))
        return false;
    ibn_repair_attach_subtree(job);
    ibn_repair_add_flow(job, u, job->flow[0]);
    return true;
}

/* Find paths for the `count` disconnected switches in job->roots, shorter paths before longer paths.  Returns the
 * number of switches that are still disconnected. */
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count)
{
    int32_t hops = 1, ignored = INT32_MAX;
    /* If only one switch is disconnected, no other switch can offer it a shorter path later.  So paths of any length
     * are tried at once. */
    if (count == 1)
        return !ibn_repair_attach_root(job, job->roots[0], 0, &ignored);
    while (count > 0 && hops < INT32_MAX) {
        int32_t next = INT32_MAX, left = 0;
        for (int32_t i = 0; i < count; i++)
            if (!ibn_repair_attach_root(job, job->roots[i], hops, &next))
                job->roots[left++] = job->roots[i];
        /* A switch that got a path can become the next hop of a disconnected switch, whose path is then one hop longer.
         * So as long as switches get paths, paths that are one hop longer are tried next.  Otherwise the next longer
         * paths that exist are tried. */
        hops = left < count ? hops + 1 : next;
        count = left;
    }
    return count;
}

/* Mark a disconnected switch and its subtree as cut off from the current LID. */
void ibn_repair_detach(repair_state *job, int32_t root)
{
    ibn_repair_collect_subtree(job, root);
    for (int32_t i = 0; i < job->subtree_size; i++) {
        job->cut_off[job->queue[i]] = job->stamp;
        job->known[job->queue[i]] = 0;
    }
}
