/* Test whether a disconnected switch and its subtree can send over a given channel without a CDG cycle.  The packets of
 * the subtree stay on their VLs or move to other VLs.  The terms are explained in internal/repair_state.h. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* List the CDG edges that one VL needs if the disconnected switch takes channel c.  The first edges lead into c, from
 * the channels of the switches that send directly to the disconnected switch.  The other edges belong to the path after
 * c.  Edges within the subtree are not listed, because the CDG has them already.  The edges are written to `steps` from
 * index `count` on.  Returns how many edges were written. */
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

/* List in `steps` all CDG edges that the subtree's packets on one VL need if the disconnected switch takes channel c.
 * The edges between switches of the subtree are included.  Returns the number of edges. */
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

/* Find another VL for the subtree's packets that use VL `vl` now, if the disconnected switch takes channel c.  The CDG
 * of the other VL must stay acyclic with all edges that these packets need.  If such a VL exists, its CDG gets the
 * edges.  Returns the other VL, or -1 if there is no such VL. */
static int32_t other_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t count = whole_paths(job, c, vl);
    for (int32_t other = 0; other < job->f->vls; other++)
        if (other != vl && job->f->sl_of_vl[other] != NO_SL && ibn_repair_fits(job, count, other))
            return other;
    return -1;
}

/* Choose VL `other` as the new VL of each switch in the subtree whose own packets use VL `vl`. */
static void move_to_vl(repair_state *job, int32_t vl, int32_t other)
{
    for (int32_t i = 0; i < job->subtree_size; i++)
        if (ibn_repair_vls_of(job, job->queue[i]) >> vl & 1)
            job->new_vl[i] = (int8_t)other;
}

/* Give a new SL to each switch of the subtree whose packets move to another VL. */
static void change_sls(repair_state *job)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->subtree_size; i++) {
        uint8_t *sl = job->sl + (int64_t)job->queue[i] * f->lids + job->lid;
        if (job->new_vl[i] < 0 || f->vl_bit[*sl] >> job->new_vl[i] & 1)
            continue;
        ibn_repair_save_entry(job, job->queue[i]);
        job->changed_sls[job->changed_sl_count++] = (saved_entry){job->queue[i], 0, *sl};
        *sl = f->sl_of_vl[job->new_vl[i]];
    }
}

/* Return whether it is known, without a cycle search, that the disconnected switch cannot take channel c on a VL.  It
 * cannot if the CDG edge from c to the next channel of the path is impossible (see ibn_repair_is_excluded).  It also
 * cannot if some switch sends directly to the disconnected switch, and the CDG edge from the channel of this switch to
 * c is impossible. */
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

/* Find other VLs for the subtree's packets on VL `vl`, if the disconnected switch takes channel c.  The packets move
 * together to one other VL, or are split over several VLs.  Returns true in two cases: all packets found a VL, or
 * switches may be detached from the subtree.  In the second case, ibn_repair_defer later detaches the switches whose
 * packets found no VL. */
static bool changes_vl(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t other = other_vl(job, c, vl);
    if (other >= 0)
        move_to_vl(job, vl, other);
    return other >= 0
           || (job->splits_subtrees
               && (ibn_repair_split_subtree(job, c, vl) || job->deferred_count < job->most_deferred));
}

/* Add to the CDG of each VL the edges that the subtree's packets need if the disconnected switch takes channel c.  If
 * these edges would close a cycle on a VL, the subtree's packets on this VL move to other VLs.  *changed_sls receives
 * true if any packets moved.  Returns false if some packets found no VL, and their switches may not be detached from
 * the subtree either (see changes_vl). */
static bool vls_admit(repair_state *job, int32_t c, bool *changed_sls)
{
    for (int32_t vl = 0; vl < job->f->vls; vl++) {
        if (!(job->vls[0] >> vl & 1)
            || (!is_excluded_at_once(job, c, vl) && ibn_repair_fits(job, turns_of(job, c, vl, 0), vl)))
            continue;
        job->on_trial |= job->prepares_sls;
        if (job->prepares_sls ? !ibn_repair_prepare_sls(job, c, vl) : !job->sls_may_change || !changes_vl(job, c, vl))
            return false;
        *changed_sls = true;
        /* If a later VL fails, the edges added so far are removed again.  Therefore on_trial is set, which makes the
         * repair record each edge that would close a cycle.  After the removal, the recorded edges are tested again,
         * because their cycles may have contained removed edges. */
        job->on_trial = true;
    }
    return true;
}

/* Check whether the disconnected switch at job->queue[0] can take channel c, together with its subtree, without a CDG
 * cycle.  If so, add the CDG edges, change SLs where packets move to another VL, and return true.  If not, leave the
 * CDG unchanged and return false. */
bool ibn_repair_admits(repair_state *job, int32_t c)
{
    const bool outer = job->on_trial;
    const int32_t had = job->blocked_count;
    bool changed_sls = false;
    job->added_count = 0;
    memset(job->vl_of_vl, KEEPS_VL, sizeof job->vl_of_vl);
    memset(job->new_vl, KEEPS_VL, job->sls_may_change ? (size_t)job->subtree_size : 0);
    const bool added_edge = vls_admit(job, c, &changed_sls) && (!changed_sls || job->prepares_sls || ibn_repair_defer(job));
    job->on_trial = outer;
    if (!outer)
        ibn_repair_unblock(job, had);
    if (!added_edge)
        ibn_repair_undo(job);
    else if (changed_sls && job->prepares_sls)
        ibn_repair_set_prepared_sls(job);
    else if (changed_sls) {
        change_sls(job);
        ibn_repair_collect_subtree(job, job->queue[0]);
    }
    return added_edge;
}
