/* Split the packets of a subtree over several VLs, such that the packets on each VL close no CDG cycle there.  The
 * subtree consists of a disconnected switch and all switches whose paths lead through it. */
#include "repair/internal/repair_state.h"

/* Flags of a switch in job->needs.
 *
 * BEHIND: the switch forwards packets that need another VL.
 * ITSELF: the switch's own packets need another VL.
 * TAKEN: the CDG edge from the switch's channel to the next channel was just added to the VL that is being tried. */
enum { BEHIND = 1, ITSELF = 2, TAKEN = 4 };

/* Return the CDG edge from the channel of the i-th switch in job->queue to the next channel on its path.  For a switch
 * that sends directly to the disconnected switch, the next channel is c, which the disconnected switch would take. */
static acyclic_step turn_of(const repair_state *job, int32_t i, int32_t c)
{
    const repair_fabric *f = job->f;
    const int32_t e = job->through[i], parent = job->place[f->dst[e]], next = parent ? job->through[parent] : c;
    return (acyclic_step){e, job->graph.turn_first[e] + next - f->first[f->src[next]]};
}

/* Set the flags in job->needs for all switches whose packets need another VL, and for all switches that forward these
 * packets.  Returns whether any packets need another VL. */
static bool note_needs(repair_state *job)
{
    for (int32_t i = 0; i < job->subtree_size; i++)
        job->needs[i] = job->new_vl[i] == NEEDS_VL ? ITSELF : 0;
    for (int32_t i = job->subtree_size - 1; i > 0; i--)
        if (job->needs[i])
            job->needs[job->place[job->f->dst[job->through[i]]]] |= BEHIND;
    return job->needs[0] != 0;
}

/* Remove from VL `vl` the CDG edges that were added for packets which have not moved to this VL.  The first `had`
 * elements of job->added are kept.  Channel c is the channel that the disconnected switch would take. */
static void clean(repair_state *job, int32_t c, int32_t vl, int32_t had)
{
    for (int32_t i = job->subtree_size - 1; i >= 0; i--) {
        const bool uses_vl = (job->needs[i] & BEHIND) || ((job->needs[i] & ITSELF) && job->new_vl[i] == vl);
        if (uses_vl && i > 0)
            job->needs[job->place[job->f->dst[job->through[i]]]] |= BEHIND;
        else if (!uses_vl && (job->needs[i] & TAKEN))
            ibn_core_acyclic_drop(&job->graph, turn_of(job, i, c).dependency, vl);
    }
    const bool anyone = (job->needs[0] & BEHIND) || job->new_vl[0] == vl;
    int32_t kept = had;
    for (int32_t i = had; i < job->added_count; i++)
        if (anyone && ibn_core_acyclic_has(&job->graph, job->added[i].dependency, vl))
            job->added[kept++] = job->added[i];
        else
            ibn_core_acyclic_drop(&job->graph, job->added[i].dependency, vl);
    job->added_count = kept;
}

/* Move the packets of as many switches of the subtree as possible to VL `vl`, for the case that the disconnected switch
 * takes channel c.  Switches near the disconnected switch are tried first, because they forward the packets of the
 * other switches. */
static void fill(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t had = job->added_count, count = ibn_repair_common_suffix(job, c, 0);
    if (!ibn_repair_fits(job, count, vl))
        return;
    for (int32_t i = 0; i < job->subtree_size; i++) {
        const int32_t before = job->added_count;
        bool follows = job->needs[i] && (i == 0 || job->needs[job->place[job->f->dst[job->through[i]]]]);
        if (follows && i > 0) {
            job->steps[0] = turn_of(job, i, c);
            follows = ibn_repair_fits(job, 1, vl);
        }
        if (!follows)
            job->needs[i] = 0;
        else if (job->needs[i] & ITSELF)
            job->new_vl[i] = (int8_t)vl;
        if (job->added_count > before)
            job->needs[i] |= TAKEN;
    }
    for (int32_t i = 0; i < job->subtree_size; i++)
        job->needs[i] &= (uint8_t)~BEHIND;
    clean(job, c, vl, had);
}

/* Split the subtree's packets on VL `vl` over several VLs, for the case that the disconnected switch takes channel
 * c.  As many packets as possible stay on VL `vl`.  Returns whether all packets found a VL.  If some packets find no
 * VL in the end, the CDG edges added so far may be removed again.  So job->on_trial is set as soon as an edge has
 * been added. */
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->subtree_size; i++)
        if (ibn_repair_vls_of(job, job->queue[i]) >> vl & 1)
            job->new_vl[i] = NEEDS_VL;
    bool another_pass = true;
    for (int32_t k = 0; k < f->vls && another_pass; k++) {
        const int32_t other = (vl + k) % f->vls;
        if (f->sl_of_vl[other] == NO_SL)
            continue;
        job->on_trial = job->on_trial || job->added_count > 0;
        another_pass = note_needs(job);
        if (another_pass)
            fill(job, c, other);
    }
    return !another_pass || !note_needs(job);
}

/* Detach from the subtree the switches whose packets found no VL.  The paths of switches upstream of a detached switch
 * still lead to the detached switch.  The detached switches become disconnected switches, which are repaired later.
 * Returns false if too many switches would be detached, or if the disconnected switch's own packets found no VL. */
bool ibn_repair_defer(repair_state *job)
{
    const int32_t had = job->deferred_count;
    if (!note_needs(job))
        return true;
    if (job->needs[0] & ITSELF)
        return false;
    for (int32_t i = 1; i < job->subtree_size; i++) {
        const int32_t parent = job->place[job->f->dst[job->through[i]]];
        const bool behind = job->new_vl[parent] == DEFERRED;
        if (behind || job->new_vl[i] == NEEDS_VL)
            job->new_vl[i] = DEFERRED;
        if (behind || job->new_vl[i] != DEFERRED)
            continue;
        if (job->deferred_count == job->most_deferred) {
            job->deferred_count = had;
            return false;
        }
        job->deferred[job->deferred_count++] = (saved_entry){job->queue[i], ibn_repair_entry(job, job->queue[i]), 0};
    }
    for (int32_t i = had; i < job->deferred_count; i++)
        ibn_repair_set_entry(job, job->deferred[i].at, NO_ROUTE);
    return true;
}

/* Undo detachments: restore the entries of detached switches, the most recent one first, until `had` detached switches
 * remain. */
void ibn_repair_recall_deferred(repair_state *job, int32_t had)
{
    while (job->deferred_count > had) {
        const saved_entry entry = job->deferred[--job->deferred_count];
        ibn_repair_set_entry(job, entry.at, entry.entry);
    }
}
