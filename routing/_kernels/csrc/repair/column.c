/* Repair the LFT entries towards one LID.  Each disconnected switch searches for a path.  If no path is possible, other
 * switches are moved to other paths to make room.  If this does not help, packets of the disconnected switch's subtree
 * move to other VLs.  The terms are explained in internal/repair_state.h. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* Return whether the packets of a subtree may be split over several VLs.  Four conditions must hold.  The option
 * by_parts is set.  SLs depend on the source switch.  Only requests (not replies) must be free of credit loops.  The
 * work limit for splitting is not reached. */
static bool may_split(const repair_state *job)
{
    return job->f->by_parts && job->f->sl_by_switch && !job->f->replies && job->parts_budget > 0;
}

/* Allow the packets of a subtree to be split over several VLs.  At most `deferred` switches may be detached from their
 * subtree, to be repaired later. */
static void begin_parts(repair_state *job, int32_t deferred)
{
    job->sls_may_change = job->splits_subtrees = true;
    job->most_deferred = deferred < MOST_DEFERRED ? deferred : MOST_DEFERRED;
    job->search_budget = job->graph.visited + SEARCH_BUDGET;
    job->parts_budget += job->graph.visited;
}

/* Forbid the splitting of subtrees over VLs again.  The work limit for splitting (parts_budget) is
 * lowered by the number of channels that cycle searches have visited since begin_parts was called. */
static void end_parts(repair_state *job)
{
    job->sls_may_change = job->splits_subtrees = false;
    job->most_deferred = 0;
    job->parts_budget -= job->graph.visited;
}

/* Find paths on other VLs for the `count` disconnected switches in job->roots.  In the first attempt, the packets of a
 * subtree that share a VL move together to one other VL.  In the second attempt, these packets may be split over
 * several VLs.  Returns the number of switches that are still disconnected. */
static int32_t attach_on_other_vls(repair_state *job, int32_t count)
{
    if (count == 0 || !job->f->sl_by_switch || job->f->replies)
        return count;
    job->sls_may_change = true;
    count = ibn_repair_displace_all(job, ibn_repair_attach_roots(job, count));
    job->sls_may_change = false;
    if (count > 0 && may_split(job)) {
        const int32_t had = count;
        begin_parts(job, 0);
        count = ibn_repair_displace_all(job, ibn_repair_attach_roots(job, count));
        end_parts(job);
        job->counts[BY_PARTS] += had - count;
    }
    return count;
}

void ibn_repair_begin_column(repair_state *job, int32_t lid)
{
    job->lid = lid;
    job->deferred_count = 0;
    job->target = job->f->lid_switch[lid];
    job->stamp++;
}

/* Give a disconnected switch its entry of the previous tables (the preferred entry).  Packets of the subtree move to
 * another VL if necessary.  Returns false if the entry cannot be used: the entry became invalid, its next hop is cut
 * off from the LID, or its path closes a CDG cycle on every possible VL. */
static bool keeps_entry(repair_state *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const uint8_t port = f->preferred[(int64_t)root * f->lids + job->lid];
    const int32_t c = f->at_port[(int64_t)root * 256 + port];
    if (c < 0 || !f->alive[c] || ibn_repair_hops(job, f->dst[c]) < 0)
        return false;
    ibn_repair_collect_subtree(job, root);
    job->sls_may_change = f->sl_by_switch && !f->replies;
    job->changed_sl_count = 0;
    const bool added_edge = ibn_repair_admits(job, c);
    job->sls_may_change = false;
    if (!added_edge)
        return false;
    ibn_repair_set_entry(job, root, port);
    ibn_repair_attach_subtree(job);
    ibn_repair_add_flow(job, root, job->flow[0]);
    return true;
}

/* Find a path for a disconnected switch.  First the path of the preferred entry is tried.  Second is any path on which
 * all packets keep their VLs.  Third, another switch is moved to another path to make room.  Last is any path on which
 * packets move to other VLs.  Returns whether a path was found. */
static bool is_let_in(repair_state *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    if (keeps_entry(job, root))
        return true;
    if (ibn_repair_attach_root(job, root, 0, &ignored) || ibn_repair_displace(job, root))
        return true;
    if (!job->f->sl_by_switch || job->f->replies)
        return false;
    job->sls_may_change = true;
    const bool found = ibn_repair_attach_root(job, root, 0, &ignored);
    job->sls_may_change = false;
    return found;
}

/* Find the first disconnected switch in job->roots to which other switches send directly, and detach these other
 * switches from it.  The detached switches are added to job->roots, so that a separate path is sought for each.
 * Returns the new number of disconnected switches, or -1 if no switch could be detached. */
static int32_t split(repair_state *job, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        ibn_repair_collect_subtree(job, job->roots[i]);
        if (job->children == 0)
            continue;
        memmove(job->roots + i + 1 + job->children, job->roots + i + 1, (size_t)(count - i - 1) * sizeof *job->roots);
        for (int32_t k = 1; k <= job->children; k++) {
            job->roots[i + k] = job->queue[k];
            ibn_repair_add_load(job, job->through[k], -job->flow[k]);
            ibn_repair_set_entry(job, job->queue[k], NO_ROUTE);
        }
        return count + job->children;
    }
    return -1;
}

/* Find a path for a disconnected switch.  Switches of its subtree may get different VLs, if the packets of all switches
 * do not fit on one VL.  Switches may also be detached from the subtree, to be repaired later.  `most` is the largest
 * number of detached switches for the current LID, including those detached before.  Returns whether a path was
 * found. */
static bool is_let_in_without(repair_state *job, int32_t root, int32_t most)
{
    int32_t ignored = INT32_MAX;
    begin_parts(job, most);
    const bool found = ibn_repair_attach_root(job, root, 0, &ignored) || ibn_repair_displace(job, root);
    end_parts(job);
    return found;
}

/* Find a disconnected switch that gets a path once a few switches of its subtree are detached.  This helps if only the
 * packets of these few switches would close a CDG cycle.  The detached switches are added to job->roots.  Returns the
 * new number of disconnected switches, or -1 if no disconnected switch got a path. */
static int32_t leave_behind(repair_state *job, int32_t count)
{
    static const int32_t more[] = {1, 3, 8};
    const int32_t had = job->deferred_count;
    int32_t found = -1;
    for (size_t k = 0; k < sizeof more / sizeof *more && had < MOST_DEFERRED && found < 0; k++)
        for (int32_t i = 0; i < count && found < 0 && may_split(job); i++)
            found = is_let_in_without(job, job->roots[i], had + more[k]) ? i : -1;
    if (found < 0)
        return -1;
    const int32_t deferred = job->deferred_count - had;
    job->counts[BY_PARTS]++;
    memmove(job->roots + found + deferred, job->roots + found + 1, (size_t)(count - found - 1) * sizeof *job->roots);
    for (int32_t k = 0; k < deferred; k++)
        job->roots[found + k] = job->deferred[had + k].at;
    return count - 1 + deferred;
}

/* Find paths for all disconnected switches.  If none of the switches gets a path, switches are detached from the
 * subtree of a disconnected switch.  The smaller subtrees find paths more easily.  Returns the number of switches that
 * are still disconnected. */
static int32_t attach_pieces(repair_state *job, int32_t count)
{
    while (count > 0) {
        int32_t left = 0;
        for (int32_t i = 0; i < count; i++)
            if (!is_let_in(job, job->roots[i]))
                job->roots[left++] = job->roots[i];
        const bool stuck = left == count;
        count = left;
        if (stuck && (count = leave_behind(job, left)) < 0 && (count = split(job, left)) < 0)
            return left;
    }
    return 0;
}

/* Begin the repair of a LID: list in job->roots the switches whose entry is missing, and mark them and their subtrees
 * as cut off from the LID. */
static void begin_repair(repair_state *job, const int32_t *missing, int32_t count)
{
    ibn_repair_begin_column(job, job->lid);
    memcpy(job->roots, missing, (size_t)count * sizeof *missing);
    for (int32_t i = 0; i < count; i++)
        ibn_repair_detach(job, missing[i]);
}

/* Fill the missing entries with monotone paths only: their channels follow the present topological order.  Such paths
 * need no cycle search.  Returns true if all entries were filled.  Otherwise restores all entries towards the LID and
 * returns false. */
static bool fill_monotone(repair_state *job, const int32_t *missing, int32_t count)
{
    /* If SLs may change, monotone paths are not tried first: another SL for a short path is better than a long monotone
     * path. */
    if (!job->f->monotone_first || job->no_monotone_path[job->target] || (job->f->sl_by_switch && !job->f->replies))
        return false;
    begin_repair(job, missing, count);
    job->only_monotone = true;
    job->displacements = 0;
    const int32_t left = attach_pieces(job, ibn_repair_displace_all(job, ibn_repair_attach_roots(job, count)));
    job->only_monotone = false;
    if (left == 0)
        return true;
    job->no_monotone_path[job->target] = 1;
    ibn_repair_restore_column(job);
    return false;
}

/* Fill the missing entries towards the current LID, which are the entries of the `count` switches in `missing`.  Paths
 * along the topological order are tried before all other paths without a CDG cycle.  Paths on other VLs are tried last.
 * Returns whether all entries were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count)
{
    if (fill_monotone(job, missing, count))
        return true;
    begin_repair(job, missing, count);
    const int32_t left = ibn_repair_displace_all(job, ibn_repair_attach_roots(job, count));
    return attach_pieces(job, attach_on_other_vls(job, left)) == 0;
}
