/* Test whether a switch and its subtree may use a channel, on the VLs that its paths use or on others. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* Append the CDG edges that the queued subtree needs on one VL if its root takes channel c: those from its children
 * into c, and those of the path behind c.  Return how many were appended to the `count` others. */
static int32_t turns_of(repair_state *job, int32_t c, int32_t vl, int32_t count)
{
    const repair_fabric *f = job->f;
    const int32_t *turn_first = job->graph.turn_first;
    const int32_t had = count;
    for (int32_t i = 1; i <= job->children; i++)
        if (job->vls[i] >> vl & 1) {
            const int32_t e = job->through[i];
            job->steps[count++] = (acyclic_step){e, turn_first[e] + c - f->first[f->src[c]]};
        }
    return ibn_repair_common_suffix(job, c, count) - had;
}

/* Collect all CDG edges of the queued subtree on one VL if its root takes channel c; return how many. */
static int32_t whole_paths(repair_state *job, int32_t c, int32_t vl)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    for (int32_t i = job->children + 1; i < job->subtree_size; i++)
        if (job->vls[i] >> vl & 1) {
            const int32_t e = job->through[i], next = job->through[job->place[f->dst[e]]];
            job->steps[count++] = (acyclic_step){e, job->graph.turn_first[e] + next - f->first[f->src[next]]};
        }
    return count + turns_of(job, c, vl, count);
}

/* Return another VL on which the traffic of the subtree on `vl` fits, or -1; its CDG edges are added then. */
static int32_t other_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t count = whole_paths(job, c, vl);
    for (int32_t other = 0; other < job->f->vls; other++)
        if (other != vl && job->f->level[other] != NO_SL && ibn_repair_fits(job, count, other))
            return other;
    return -1;
}

/* Mark the queued switches that send on one VL to move to another. */
static void move_to_vl(repair_state *job, int32_t vl, int32_t other)
{
    for (int32_t i = 0; i < job->subtree_size; i++)
        if (ibn_repair_vls_of(job, job->queue[i]) >> vl & 1)
            job->new_vl[i] = (int8_t)other;
}

/* Change the SLs of the queued switches that move to another VL. */
static void change_sls(repair_state *job)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->subtree_size; i++) {
        uint8_t *sl = job->sl + (int64_t)job->queue[i] * f->lids + job->lid;
        if (job->new_vl[i] < 0 || f->vl_bit[*sl] >> job->new_vl[i] & 1)
            continue;
        ibn_repair_save_entry(job, job->queue[i]);
        job->changed_sls[job->changed_sl_count++] = (saved_entry){job->queue[i], 0, *sl};
        *sl = f->level[job->new_vl[i]];
    }
}

/* Return whether the CDG edge out of channel c, or one into it, is excluded.  This test does not walk the whole
 * path. */
static bool is_excluded_at_once(const repair_state *job, int32_t c, int32_t vl)
{
    const repair_fabric *f = job->f;
    const int32_t *turn_first = job->graph.turn_first, s = f->dst[c], k = c - f->first[f->src[c]];
    const int32_t next = s == job->target ? -1 : ibn_repair_next_channel(job, s);
    if (next >= 0 && ibn_repair_is_excluded(job, (acyclic_step){c, turn_first[c] + next - f->first[s]}, next, vl))
        return true;
    for (int32_t i = 1; i <= job->children; i++) {
        const int32_t e = job->through[i];
        if ((job->vls[i] >> vl & 1) && ibn_repair_is_excluded(job, (acyclic_step){e, turn_first[e] + k}, c, vl))
            return true;
    }
    return false;
}

/* Move the queued traffic on one VL to another VL by channel c, or to several; return whether all of it found a VL,
 * or the rest may be deferred. */
static bool changes_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t other = other_vl(job, c, vl);
    if (other >= 0)
        move_to_vl(job, vl, other);
    return other >= 0
           || (job->splits_subtrees
               && (ibn_repair_split_subtree(job, c, vl) || job->deferred_count < job->most_deferred));
}

/* Add the CDG edges of the queued subtree by channel c on each of its VLs, or on other VLs where they do not fit;
 * return whether all traffic fits.  *changed_sls: whether any traffic moves to another VL. */
static bool vls_admit(repair_state *job, int32_t c, bool *changed_sls)
{
    for (int32_t vl = 0; vl < job->f->vls; vl++) {
        if (!(job->vls[0] >> vl & 1)
            || (!is_excluded_at_once(job, c, vl) && ibn_repair_fits(job, turns_of(job, c, vl, 0), vl)))
            continue;
        if (!job->sls_may_change || !changes_vl(job, c, vl))
            return false;
        *changed_sls = true;
        /* The edges just added may block later ones, and may be taken back. */
        job->on_trial = true;
    }
    return true;
}

/* Add the CDG edges of the queued subtree by channel c if they close no cycle, and change SLs if necessary; return
 * whether they were added.  If not, no edge stays added. */
bool ibn_repair_admits(repair_state *job, int32_t c)
{
    const bool outer = job->on_trial;
    const int32_t had = job->blocked_count;
    bool changed_sls = false;
    job->added_count = 0;
    memset(job->new_vl, KEEPS_VL, job->sls_may_change ? (size_t)job->subtree_size : 0);
    const bool added_edge = vls_admit(job, c, &changed_sls) && (!changed_sls || ibn_repair_defer(job));
    job->on_trial = outer;
    if (!outer)
        ibn_repair_unblock(job, had);
    if (!added_edge)
        ibn_repair_undo(job);
    else if (changed_sls) {
        change_sls(job);
        ibn_repair_collect_subtree(job, job->queue[0]);
    }
    return added_edge;
}
