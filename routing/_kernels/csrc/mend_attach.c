/* A hole looks for a way of its own: the best way out that closes no cycle. */
#include "internal/mend.h"

enum { MORE_HOPS = 2 };

/* Hops from a switch to the LID, or -1: it is cut off. */
int32_t ibn_mend_hops(mend_job *job, int32_t s)
{
    int32_t at = s, count = 0, left = job->f->switches;
    while (at != job->target && job->known[at] != job->stamp) {
        const int32_t c = job->cut_off[at] == job->stamp ? -1 : ibn_mend_channel(job, at);
        if (c < 0 || left-- == 0)
            return -1;
        at = job->f->dst[c];
        count++;
    }
    const int32_t total = count + (at == job->target ? 0 : job->hops[at]);
    for (; s != at; s = job->f->dst[ibn_mend_channel(job, s)]) {
        job->known[s] = job->stamp;
        job->hops[s] = at == job->target ? count : count + job->hops[at];
        count--;
    }
    return total;
}

static bool is_better(const way_out *a, const way_out *b)
{
    if (a->old != b->old)
        return a->old;
    if (a->near != b->near)
        return a->near;
    if (a->near && a->fullest != b->fullest)
        return a->fullest < b->fullest;
    if (a->hops != b->hops)
        return a->hops < b->hops;
    return a->fullest != b->fullest ? a->fullest < b->fullest : a->channel < b->channel;
}

/* The fullest channel of a way that begins with c; where a column is laid anew, c alone counts. */
static int64_t fullest_along(const mend_job *job, int32_t c)
{
    const repair_fabric *f = job->f;
    int64_t fullest = job->load[c] * f->slowness[c];
    while (job->wish && f->dst[c] != job->target) {
        c = ibn_mend_channel(job, f->dst[c]);
        const int64_t full = job->load[c] * f->slowness[c];
        fullest = full > fullest ? full : fullest;
    }
    return fullest;
}

/* Tell the ways that are hardly longer than the shortest; a column that is laid anew takes the shortest alone. */
static void tell_near(mend_job *job, int32_t count)
{
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < count; i++)
        least = job->ways[i].hops < least ? job->ways[i].hops : least;
    for (int32_t i = 0; i < count; i++)
        job->ways[i].near = job->ways[i].hops <= least + (job->wish ? MORE_HOPS : 0);
}

/* The channels by which a switch could go, of `level` hops (0: of any number); *next: the least number above. */
int32_t ibn_mend_ways_out(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    const repair_fabric *f = job->f;
    const uint8_t wished = job->wish ? job->wish[(int64_t)u * f->lids + job->lid] : NO_ROUTE;
    int32_t count = 0;
    for (int32_t c = f->first[u]; c < f->first[u + 1]; c++) {
        if (!f->alive[c] || job->cut_off[f->dst[c]] == job->stamp)
            continue;
        const int32_t further = ibn_mend_hops(job, f->dst[c]);
        if (further < 0)
            continue;
        if (level == 0 || further + 1 == level)
            job->ways[count++] = (way_out){c, further + 1, fullest_along(job, c), wished == f->port[c], false};
        else if (further + 1 > level && further + 1 < *next)
            *next = further + 1;
    }
    tell_near(job, count);
    return count;
}

void ibn_mend_add_flow(mend_job *job, int32_t s, int64_t flow)
{
    while (s != job->target) {
        const int32_t c = ibn_mend_channel(job, s);
        job->load[c] += flow;
        s = job->f->dst[c];
    }
}

/* Let a switch take the best of `count` ways out that is allowed. */
static bool take_best(mend_job *job, int32_t u, int32_t count)
{
    for (; count > 0; count--) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            best = is_better(&job->ways[i], &job->ways[best]) ? i : best;
        const way_out way = job->ways[best];
        job->ways[best] = job->ways[count - 1];
        job->ways[count - 1] = way;
        if (!ibn_mend_admits(job, way.channel))
            continue;
        ibn_mend_set(job, u, job->f->port[way.channel]);
        return true;
    }
    return false;
}

/* What is queued is cut off no longer. */
void ibn_mend_let_in(mend_job *job)
{
    for (int32_t i = 0; i < job->hanging; i++)
        job->cut_off[job->queue[i]] = 0;
}

/* Let a switch take the best of its ways out that is allowed; what hangs on it is cut off no longer. */
bool ibn_mend_attach(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    if (!job->on_trial)
        job->shifted_count = 0;
    const int32_t count = ibn_mend_ways_out(job, u, level, next);
    if (count == 0)
        return false;
    ibn_mend_gather(job, u);
    if (!take_best(job, u, count))
        return false;
    ibn_mend_let_in(job);
    ibn_mend_add_flow(job, u, job->flow[0]);
    return true;
}

/* Attach the roots, those that come nearest first; how many are left. */
int32_t ibn_mend_attach_all(mend_job *job, int32_t count)
{
    int32_t level = 1, ignored = INT32_MAX;
    /* One alone waits for no other, so longer ways are open to it at once. */
    if (count == 1 && job->wish)
        return !ibn_mend_attach(job, job->roots[0], 0, &ignored);
    while (count > 0 && level < INT32_MAX) {
        int32_t next = INT32_MAX, left = 0;
        for (int32_t i = 0; i < count; i++)
            if (!ibn_mend_attach(job, job->roots[i], level, &next))
                job->roots[left++] = job->roots[i];
        /* Whoever has come in gives others a way that is one hop longer. */
        level = left < count ? level + 1 : next;
        count = left;
    }
    return count;
}

void ibn_mend_cut(mend_job *job, int32_t root)
{
    ibn_mend_gather(job, root);
    for (int32_t i = 0; i < job->hanging; i++) {
        job->cut_off[job->queue[i]] = job->stamp;
        job->known[job->queue[i]] = 0;
    }
}
