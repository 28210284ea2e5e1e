/* A hole that finds no way: another switch takes another way, and so gives it one. */
#include "internal/mend.h"

#include <string.h>

enum { RESCUERS = 32, CLIMBING_RESCUES = 400 };

/* Whether a root finds a way now that the last attempt has given another switch one, on trial. */
static bool follows(mend_job *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    const int32_t tried = job->fresh_count;
    admitted *trial = job->fresh;
    job->fresh = job->spare;
    job->spare = trial;
    job->on_trial = true;
    job->shut_count = 0;
    const bool found = ibn_mend_attach(job, root, 0, &ignored);
    job->on_trial = false;
    if (found)
        return true;
    job->spare = job->fresh;
    job->fresh = trial;
    job->fresh_count = tried;
    ibn_mend_take_back(job);
    ibn_mend_open_again(job, 0);
    return false;
}

static void shift_back(mend_job *job)
{
    while (job->shifted_count > 0) {
        const kept_entry k = job->shifted[--job->shifted_count];
        job->sl[(int64_t)k.at * job->f->lids + job->lid] = k.level;
    }
}

/* Whether a root finds a way once x, which hangs on it or lies next to it, takes another.  If not, all is as before. */
static bool rescued_by(mend_job *job, int32_t root, int32_t x)
{
    int32_t ignored = INT32_MAX;
    const uint8_t held = ibn_mend_entry(job, x);
    const bool hung = job->cut_off[x] == job->stamp;
    const int32_t strays = job->stray_count;
    if (hung)
        ibn_mend_gather(job, x);
    else
        ibn_mend_cut(job, x);
    ibn_mend_set(job, x, NO_ROUTE);
    const int32_t count = ibn_mend_ways_out(job, x, 0, &ignored);
    memcpy(job->others, job->ways, (size_t)count * sizeof *job->others);
    for (int32_t i = 0; i < count; i++) {
        job->shifted_count = 0;
        const int32_t c = job->others[i].channel;
        if (job->f->port[c] == held || (!hung && !ibn_mend_may_follow(job, root, x, c)) || !ibn_mend_admits(job, c))
            continue;
        ibn_mend_set(job, x, job->f->port[c]);
        ibn_mend_let_in(job);
        const int64_t flow = job->flow[0];
        ibn_mend_add_flow(job, x, flow);
        if (follows(job, root))
            return true;
        ibn_mend_add_flow(job, x, -flow);
        ibn_mend_set(job, x, NO_ROUTE);
        shift_back(job);
        ibn_mend_call_back(job, strays);
        ibn_mend_cut(job, x);
    }
    ibn_mend_set(job, x, held);
    if (!hung) {
        ibn_mend_gather(job, x);
        ibn_mend_let_in(job);
    }
    return false;
}

static bool is_rescued_by(mend_job *job, int32_t root, int32_t x)
{
    /* Another root looks for a way itself, and would do so again once it is in: its way could lead back to it. */
    if (x == job->target || x == root || ibn_mend_entry(job, x) == NO_ROUTE || job->graph.visited > job->patience)
        return false;
    /* Without searches there is nothing else to tell that it takes too long. */
    if ((job->only_climbing && ++job->rescues > CLIMBING_RESCUES) || !rescued_by(job, root, x))
        return false;
    job->helper[root] = x + 1;
    return true;
}

/* A root that finds no way: another switch of its tree may, or a neighbour may take another, and give it one. */
bool ibn_mend_rescue(mend_job *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const int32_t last = job->helper[root] - 1;
    ibn_mend_gather(job, root);
    const int32_t count = job->hanging < RESCUERS ? job->hanging : RESCUERS;
    memcpy(job->members, job->queue, (size_t)count * sizeof *job->members);
    job->wanted = job->lanes[0];
    const bool anyone = ibn_mend_note_helpers(job);
    const int32_t number = job->rescue;
    if (last >= 0 && f->part[last] == f->part[root] && (anyone || job->helps[last] == number)
        && is_rescued_by(job, root, last))
        return true;
    for (int32_t i = 1; i < count; i++)
        if (job->members[i] != last && (anyone || job->helps[job->members[i]] == number)
            && is_rescued_by(job, root, job->members[i]))
            return true;
    for (int32_t c = f->first[root]; c < f->first[root + 1]; c++)
        if (f->alive[c] && job->cut_off[f->dst[c]] != job->stamp && f->dst[c] != last
            && (anyone || job->helps[f->dst[c]] == number) && is_rescued_by(job, root, f->dst[c]))
            return true;
    return false;
}

/* Rescue roots for as long as that helps; how many are left. */
int32_t ibn_mend_rescue_all(mend_job *job, int32_t count)
{
    for (bool helped = true; helped && count > 0;) {
        helped = false;
        for (int32_t i = count - 1; i >= 0 && !helped; i--)
            if (ibn_mend_rescue(job, job->roots[i])) {
                memmove(job->roots + i, job->roots + i + 1, (size_t)(count - 1 - i) * sizeof *job->roots);
                count = ibn_mend_attach_all(job, count - 1);
                helped = true;
            }
    }
    return count;
}
