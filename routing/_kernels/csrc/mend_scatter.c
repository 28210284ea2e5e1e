/* The tree that hangs on a switch goes over to several VLs, each part of it to one that takes it: see internal/mend.h. */
#include "internal/mend.h"

enum { BEHIND = 1, ITSELF = 2, TAKEN = 4 }; /* who still looks for a VL; whether its turn was taken just now */

/* The turn of one that is queued, where the first goes by channel c. */
static acyclic_step turn_of(const mend_job *job, int32_t i, int32_t c)
{
    const repair_fabric *f = job->f;
    const int32_t e = job->through[i], parent = job->place[f->dst[e]], next = parent ? job->through[parent] : c;
    return (acyclic_step){e, job->graph.turn_first[e] + next - f->first[f->src[next]]};
}

/* Note for all that is queued whether it, or what hangs on it, still looks for a VL; whether any does. */
static bool note_needs(mend_job *job)
{
    for (int32_t i = 0; i < job->hanging; i++)
        job->needs[i] = job->goes[i] == LOOKS ? ITSELF : 0;
    for (int32_t i = job->hanging - 1; i > 0; i--)
        if (job->needs[i])
            job->needs[job->place[job->f->dst[job->through[i]]]] |= BEHIND;
    return job->needs[0] != 0;
}

/* Let go of turns that were taken for nothing since there were `had` of them: those behind which nobody went over. */
static void clean(mend_job *job, int32_t c, int32_t lane, int32_t had)
{
    const uint32_t bit = UINT32_C(1) << lane;
    for (int32_t i = job->hanging - 1; i >= 0; i--) {
        const bool rides = (job->needs[i] & BEHIND) || ((job->needs[i] & ITSELF) && job->goes[i] == lane);
        if (rides && i > 0)
            job->needs[job->place[job->f->dst[job->through[i]]]] |= BEHIND;
        else if (!rides && (job->needs[i] & TAKEN))
            job->graph.used[turn_of(job, i, c).turn] &= ~bit;
    }
    const bool anyone = (job->needs[0] & BEHIND) || job->goes[0] == lane;
    int32_t kept = had;
    for (int32_t i = had; i < job->fresh_count; i++)
        if (anyone && (job->graph.used[job->fresh[i].turn] & bit))
            job->fresh[kept++] = job->fresh[i];
        else
            job->graph.used[job->fresh[i].turn] &= ~bit;
    job->fresh_count = kept;
}

/* Let as many as possible of those that look for a VL go by channel c on this one, from the first of their tree outwards. */
static void fill(mend_job *job, int32_t c, int32_t lane)
{
    const int32_t had = job->fresh_count, count = ibn_mend_trunk(job, c, 0);
    if (!ibn_mend_fits(job, count, lane))
        return;
    for (int32_t i = 0; i < job->hanging; i++) {
        const int32_t before = job->fresh_count;
        bool follows = job->needs[i] && (i == 0 || job->needs[job->place[job->f->dst[job->through[i]]]]);
        if (follows && i > 0) {
            job->steps[0] = turn_of(job, i, c);
            follows = ibn_mend_fits(job, 1, lane);
        }
        if (!follows)
            job->needs[i] = 0;
        else if (job->needs[i] & ITSELF)
            job->goes[i] = (int8_t)lane;
        if (job->fresh_count > before)
            job->needs[i] |= TAKEN;
    }
    for (int32_t i = 0; i < job->hanging; i++)
        job->needs[i] &= (uint8_t)~BEHIND;
    clean(job, c, lane, had);
}

/* What goes on one VL stays on it by channel c as far as it can, and goes over to others part by part; whether all does.
 * It is on trial from the first part on that is in. */
bool ibn_mend_scatter(mend_job *job, int32_t c, int32_t lane)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->hanging; i++)
        if (ibn_mend_lanes_of(job, job->queue[i]) >> lane & 1)
            job->goes[i] = LOOKS;
    bool looks = true;
    for (int32_t k = 0; k < f->vls && looks; k++) {
        const int32_t other = (lane + k) % f->vls;
        if (f->level[other] == NO_LEVEL)
            continue;
        job->on_trial = job->on_trial || job->fresh_count > 0;
        looks = note_needs(job);
        if (looks)
            fill(job, c, other);
    }
    return !looks || !note_needs(job);
}

/* Leave those behind that found no VL, with what hangs on them: they look for other ways then; false: these are too many. */
bool ibn_mend_leave(mend_job *job)
{
    const int32_t had = job->stray_count;
    if (!note_needs(job))
        return true;
    if (job->needs[0] & ITSELF)
        return false;
    for (int32_t i = 1; i < job->hanging; i++) {
        const int32_t parent = job->place[job->f->dst[job->through[i]]];
        const bool behind = job->goes[parent] == LEFT;
        if (behind || job->goes[i] == LOOKS)
            job->goes[i] = LEFT;
        if (behind || job->goes[i] != LEFT)
            continue;
        if (job->stray_count == job->most_strays) {
            job->stray_count = had;
            return false;
        }
        job->strays[job->stray_count++] = (kept_entry){job->queue[i], ibn_mend_entry(job, job->queue[i]), 0};
    }
    for (int32_t i = had; i < job->stray_count; i++)
        ibn_mend_set(job, job->strays[i].at, NO_ROUTE);
    return true;
}

/* Let those that were left behind since there were `had` of them go on as before. */
void ibn_mend_call_back(mend_job *job, int32_t had)
{
    while (job->stray_count > had) {
        const kept_entry stray = job->strays[--job->stray_count];
        ibn_mend_set(job, stray.at, stray.entry);
    }
}
