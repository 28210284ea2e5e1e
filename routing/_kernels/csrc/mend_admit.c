/* Whether a switch, with all that hangs on it, may take a channel: on the VLs that its ways ride, or on others. */
#include "internal/mend.h"

#include <string.h>

/* The turns that what is queued takes on one VL at its first, if that takes channel c, and behind; put after `count`
 * others. */
static int32_t turns_of(mend_job *job, int32_t c, int32_t lane, int32_t count)
{
    const repair_fabric *f = job->f;
    const int32_t *turn_first = job->graph.turn_first;
    const int32_t had = count;
    for (int32_t i = 1; i <= job->children; i++)
        if (job->lanes[i] >> lane & 1) {
            const int32_t e = job->through[i];
            job->steps[count++] = (acyclic_step){e, turn_first[e] + c - f->first[f->src[c]]};
        }
    return ibn_mend_trunk(job, c, count) - had;
}

/* The turns of those that are queued on one VL, from where they enter on. */
static int32_t whole_ways(mend_job *job, int32_t c, int32_t lane)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    for (int32_t i = job->children + 1; i < job->hanging; i++)
        if (job->lanes[i] >> lane & 1) {
            const int32_t e = job->through[i], next = job->through[job->place[f->dst[e]]];
            job->steps[count++] = (acyclic_step){e, job->graph.turn_first[e] + next - f->first[f->src[next]]};
        }
    return count + turns_of(job, c, lane, count);
}

/* Another VL for what goes on one that does not admit it; -1: none. */
static int32_t other_lane(mend_job *job, int32_t c, int32_t lane)
{
    const int32_t count = whole_ways(job, c, lane);
    for (int32_t other = 0; other < job->f->vls; other++)
        if (other != lane && job->f->level[other] != NO_LEVEL && ibn_mend_fits(job, count, other))
            return other;
    return -1;
}

/* Note that all that is queued and goes on one VL goes over to another. */
static void go_over(mend_job *job, int32_t lane, int32_t other)
{
    for (int32_t i = 0; i < job->hanging; i++)
        if (ibn_mend_lanes_of(job, job->queue[i]) >> lane & 1)
            job->goes[i] = (int8_t)other;
}

/* Give another SL to the switches in the queue whose VL has to change. */
static void shift_levels(mend_job *job)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->hanging; i++) {
        uint8_t *sl = job->sl + (int64_t)job->queue[i] * f->lids + job->lid;
        if (job->goes[i] < 0 || f->vl_bit[*sl] >> job->goes[i] & 1)
            continue;
        ibn_mend_keep(job, job->queue[i]);
        job->shifted[job->shifted_count++] = (kept_entry){job->queue[i], 0, *sl};
        *sl = f->level[job->goes[i]];
    }
}

/* Whether the turn behind channel c is out, or one into it: this takes no look at the whole way. */
static bool is_hopeless(const mend_job *job, int32_t c, int32_t lane)
{
    const repair_fabric *f = job->f;
    const int32_t *turn_first = job->graph.turn_first, s = f->dst[c], k = c - f->first[f->src[c]];
    const int32_t next = s == job->target ? -1 : ibn_mend_channel(job, s);
    if (next >= 0 && ibn_mend_is_out(job, (acyclic_step){c, turn_first[c] + next - f->first[s]}, next, lane))
        return true;
    for (int32_t i = 1; i <= job->children; i++) {
        const int32_t e = job->through[i];
        if ((job->lanes[i] >> lane & 1) && ibn_mend_is_out(job, (acyclic_step){e, turn_first[e] + k}, c, lane))
            return true;
    }
    return false;
}

/* Whether what is queued and goes on one VL finds another by channel c, or several, or may be left behind. */
static bool changes_lane(mend_job *job, int32_t c, int32_t lane)
{
    const int32_t other = other_lane(job, c, lane);
    if (other >= 0)
        go_over(job, lane, other);
    return other >= 0 || (job->scatters && (ibn_mend_scatter(job, c, lane) || job->stray_count < job->most_strays));
}

/* Whether each VL takes what is queued and goes on it by channel c, or that finds others; *shifted: whether any does. */
static bool lanes_admit(mend_job *job, int32_t c, bool *shifted)
{
    for (int32_t lane = 0; lane < job->f->vls; lane++) {
        if (!(job->lanes[0] >> lane & 1)
            || (!is_hopeless(job, c, lane) && ibn_mend_fits(job, turns_of(job, c, lane, 0), lane)))
            continue;
        if (!job->free_lanes || !changes_lane(job, c, lane))
            return false;
        *shifted = true;
        /* What went over may be in the way of others, and be taken back. */
        job->on_trial = true;
    }
    return true;
}

/* Whether all that is queued may go by channel c without closing a cycle; the turns are in then, else none is. */
bool ibn_mend_admits(mend_job *job, int32_t c)
{
    const bool outer = job->on_trial;
    const int32_t had = job->shut_count;
    bool shifted = false;
    job->fresh_count = 0;
    memset(job->goes, STAYS, job->free_lanes ? (size_t)job->hanging : 0);
    const bool admitted = lanes_admit(job, c, &shifted) && (!shifted || ibn_mend_leave(job));
    job->on_trial = outer;
    if (!outer)
        ibn_mend_open_again(job, had);
    if (!admitted)
        ibn_mend_take_back(job);
    else if (shifted) {
        shift_levels(job);
        ibn_mend_gather(job, job->queue[0]);
    }
    return admitted;
}
