/* Test whether a switch without a path, and all switches behind it, may use a channel: on their present VLs, or on
 * others. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* Append to `steps` the CDG edges that one VL needs if the root of the queued subtree takes channel c.  These are
 * the edges from its children's channels into c, and those of the path after c.  Returns the number of edges
 * appended to the `count` edges that are there. */
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

/* Collect in `steps` all CDG edges that one VL needs if the root of the queued subtree takes channel c, including
 * those inside the subtree.  Returns their number. */
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

/* Find another VL to which the subtree's packets of VL `vl` can move without a cycle in its CDG.  Returns this VL,
 * with the edges added to its CDG, or -1. */
static int32_t other_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t count = whole_paths(job, c, vl);
    for (int32_t other = 0; other < job->f->vls; other++)
        if (other != vl && job->f->level[other] != NO_SL && ibn_repair_fits(job, count, other))
            return other;
    return -1;
}

/* Record for the queued switches that send on one VL that they move to another VL. */
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

/* Return whether an edge is known to be impossible: the CDG edge out of channel c, or one from a child's channel
 * into c. This quick test spares a walk along the whole path. */
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

/* Move the subtree's packets on one VL to another VL, or to several VLs, if its root takes channel c.  Returns
 * whether all packets found a VL, or switches without one may be detached and treated later (deferred). */
static bool changes_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t other = other_vl(job, c, vl);
    if (other >= 0)
        move_to_vl(job, vl, other);
    return other >= 0
           || (job->splits_subtrees
               && (ibn_repair_split_subtree(job, c, vl) || job->deferred_count < job->most_deferred));
}

/* Add the CDG edges that the queued subtree needs if its root takes channel c.  If a VL has no room for them without
 * a cycle, its packets move to other VLs.  Returns whether all packets found a VL.  *changed_sls is set if any
 * packets moved. */
static bool vls_admit(repair_state *job, int32_t c, bool *changed_sls)
{
    for (int32_t vl = 0; vl < job->f->vls; vl++) {
        if (!(job->vls[0] >> vl & 1)
            || (!is_excluded_at_once(job, c, vl) && ibn_repair_fits(job, turns_of(job, c, vl, 0), vl)))
            continue;
        if (!job->sls_may_change || !changes_vl(job, c, vl))
            return false;
        *changed_sls = true;
        /* The edges just added may make later edges close a cycle, and may be removed again. */
        job->on_trial = true;
    }
    return true;
}

/* Let the root of the queued subtree take channel c, if that closes no CDG cycle.  The needed CDG edges are added,
 * and SLs are changed if necessary.  Returns whether this succeeded; if not, no edge stays added. */
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
