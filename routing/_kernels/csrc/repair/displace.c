/* Displace switches: move a switch to another path, so that a disconnected switch finds a path without a CDG cycle.
 * The header internal/repair_state.h explains the terms. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* MOST_CANDIDATES: largest number of switches of a subtree that are moved on trial for one disconnected switch.
 * MOST_MONOTONE_TRIALS: largest number of trial moves for one LID while paths must follow the topological order. */
enum { MOST_CANDIDATES = 32, MOST_MONOTONE_TRIALS = 400 };

/* Find a path for a disconnected switch, after another switch was moved on trial.  Returns whether a path was found.
 * If not, the function removes the CDG edges that were added for the move of the other switch. */
static bool follows(repair_state *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    const int32_t tried = job->added_count;
    added_edge *trial = job->added;
    job->added = job->spare;
    job->spare = trial;
    job->on_trial = true;
    job->blocked_count = 0;
    const bool found = ibn_repair_attach_root(job, root, 0, &ignored);
    job->on_trial = false;
    if (found)
        return true;
    job->spare = job->added;
    job->added = trial;
    job->added_count = tried;
    ibn_repair_undo(job);
    ibn_repair_unblock(job, 0);
    return false;
}

/* Restore the SLs that were changed in a failed attempt to find a path. */
static void restore_sls(repair_state *job)
{
    while (job->changed_sl_count > 0) {
        const saved_entry k = job->changed_sls[--job->changed_sl_count];
        job->sl[(int64_t)k.at * job->f->lids + job->lid] = k.sl;
    }
}

/* Move switch x to another path such that a disconnected switch finds a path.  Switch x belongs to the subtree of the
 * disconnected switch, or is a neighbour of the disconnected switch.  Returns true if the disconnected switch found a
 * path.  Otherwise restores all entries, SLs and CDG edges and returns false. */
static bool displaces(repair_state *job, int32_t root, int32_t x)
{
    int32_t ignored = INT32_MAX;
    const uint8_t held = ibn_repair_entry(job, x);
    const bool was_below = job->cut_off[x] == job->stamp;
    const int32_t deferred = job->deferred_count;
    if (was_below)
        ibn_repair_collect_subtree(job, x);
    else
        ibn_repair_detach(job, x);
    /* These are the VLs of packets that the disconnected switch sends or forwards in any case.  If switch x is in the
     * subtree, it takes other packets of the subtree with it.  Then only the disconnected switch's own packets are
     * certain to remain. */
    const uint32_t vls = was_below ? ibn_repair_vls_of(job, root) : job->required_vls;
    const bool must_follow = !was_below || ibn_repair_must_follow(job, root);
    const int64_t carried = job->flow[0];
    ibn_repair_add_flow(job, x, -carried);
    ibn_repair_set_entry(job, x, NO_ROUTE);
    const int32_t count = ibn_repair_candidates(job, x, 0, &ignored);
    memcpy(job->others, job->candidates, (size_t)count * sizeof *job->others);
    for (int32_t i = 0; i < count; i++) {
        job->changed_sl_count = 0;
        const int32_t c = job->others[i].channel;
        if (job->f->port[c] == held || (must_follow && !ibn_repair_may_follow(job, root, x, c, vls))
            || !ibn_repair_admits(job, c))
            continue;
        ibn_repair_set_entry(job, x, job->f->port[c]);
        ibn_repair_attach_subtree(job);
        const int64_t flow = job->flow[0];
        ibn_repair_add_flow(job, x, flow);
        if (follows(job, root))
            return true;
        ibn_repair_add_flow(job, x, -flow);
        ibn_repair_set_entry(job, x, NO_ROUTE);
        restore_sls(job);
        ibn_repair_recall_deferred(job, deferred);
        ibn_repair_detach(job, x);
    }
    ibn_repair_set_entry(job, x, held);
    ibn_repair_add_flow(job, x, carried);
    if (!was_below) {
        ibn_repair_collect_subtree(job, x);
        ibn_repair_attach_subtree(job);
    }
    return false;
}

/* Try to move switch x in order to free a path for a disconnected switch.  The attempt is not made if switch x
 * delivers the LID, if switch x is itself disconnected, or if a work limit is reached.  Returns whether the
 * disconnected switch found a path. */
static bool may_displace(repair_state *job, int32_t root, int32_t x)
{
    /* A switch x that is itself disconnected is not moved: switch x gets its path later, and this path might lead
     * through `root`, the disconnected switch for which this search frees a path. */
    if (x == job->target || x == root || ibn_repair_entry(job, x) == NO_ROUTE
        || job->graph.visited > job->search_budget)
        return false;
    /* While paths must follow the topological order, no cycle searches are made.  So the work limit of cycle searches
     * would never end the trials, and the number of trials has a limit of its own. */
    if ((job->only_monotone && ++job->displacements > MOST_MONOTONE_TRIALS) || !displaces(job, root, x))
        return false;
    job->last_displaced[root] = x + 1;
    return true;
}

/* Find a path for a disconnected switch by moving one other switch to another path.  These switches are tried in turn:
 * 1. the switch whose move last gave the disconnected switch a path, for this LID or an earlier one;
 * 2. switches of the disconnected switch's subtree;
 * 3. neighbours to which the disconnected switch has a channel.
 * Returns whether a path was found. */
bool ibn_repair_displace(repair_state *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const int32_t last = job->last_displaced[root] - 1;
    ibn_repair_collect_subtree(job, root);
    const int32_t count = job->subtree_size < MOST_CANDIDATES ? job->subtree_size : MOST_CANDIDATES;
    memcpy(job->members, job->queue, (size_t)count * sizeof *job->members);
    job->required_vls = job->vls[0];
    const bool anyone = ibn_repair_note_displaceable(job);
    const int32_t number = job->displacement;
    if (last >= 0 && f->part[last] == f->part[root] && (anyone || job->can_help[last] == number)
        && may_displace(job, root, last))
        return true;
    for (int32_t i = 1; i < count; i++)
        if (job->members[i] != last && (anyone || job->can_help[job->members[i]] == number)
            && may_displace(job, root, job->members[i]))
            return true;
    for (int32_t c = f->first[root]; c < f->first[root + 1]; c++)
        if (f->alive[c] && job->cut_off[f->dst[c]] != job->stamp && f->dst[c] != last
            && (anyone || job->can_help[f->dst[c]] == number) && may_displace(job, root, f->dst[c]))
            return true;
    return false;
}

/* Find paths for the `count` disconnected switches in job->roots by moving other switches to other paths.  The function
 * ends when no further disconnected switch gets a path.  Returns the number of switches that are still disconnected. */
int32_t ibn_repair_displace_all(repair_state *job, int32_t count)
{
    for (bool helped = true; helped && count > 0;) {
        helped = false;
        for (int32_t i = count - 1; i >= 0 && !helped; i--)
            if (ibn_repair_displace(job, job->roots[i])) {
                memmove(job->roots + i, job->roots + i + 1, (size_t)(count - 1 - i) * sizeof *job->roots);
                count = ibn_repair_attach_roots(job, count - 1);
                helped = true;
            }
    }
    return count;
}
