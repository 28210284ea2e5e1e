/* Last steps for LIDs whose repair has failed.  The first step removes CDG edges that no path uses, so that more paths
 * close no cycle.  The second step copies the LFT entries of another LID.  The terms are explained in
 * internal/repair_state.h. */
#include "repair/internal/repair_state.h"

#include <stdlib.h>
#include <string.h>

/* BLOCK: number of LIDs whose entries are compared in one step.
 * MOST_TRIALS: largest number of donors whose entries are copied on trial, if the switch that delivers the donor may
 * then take any path (see take_first). */
enum { BLOCK = 64, MOST_TRIALS = 16 };

/* Return the VLs, as bits, on which some packet may use channel `next` directly after channel c.  Only VLs in
 * `required_vls` are considered.  The result contains every VL on which packets use both channels in this order.
 * The result may contain further VLs, because sources whose paths do not use channel c are included. */
static uint32_t taken_on(const repair_state *job, int32_t c, int32_t next, const uint16_t *by_lid,
                         uint32_t required_vls)
{
    const repair_fabric *f = job->f;
    const uint8_t here = f->port[c], there = f->port[next];
    const uint8_t *row = job->lft + (int64_t)f->src[c] * f->lids, *then = job->lft + (int64_t)f->src[next] * f->lids;
    uint32_t taken = 0;
    for (int32_t from = 0; from < f->lids && (required_vls & ~taken); from += BLOCK) {
        const int32_t end = f->lids - from < BLOCK ? f->lids : from + BLOCK;
        uint16_t any = 0;
        for (int32_t i = from; i < end; i++)
            any |= (uint16_t)(-((row[i] == here) & (then[i] == there)) & by_lid[i]);
        taken |= any;
    }
    return taken & required_vls;
}

/* Fill `by_lid` with the VLs, as bits, of the packets to each LID.  If credit loops
 * of replies are avoided too, all VLs are set for each LID.  The reason is that packets to a LID may be replies.  A
 * reply has the SL of its request, which went to another LID. */
static void vls_by_lid(const repair_state *job, uint16_t *by_lid)
{
    const repair_fabric *f = job->f;
    const int32_t rows = f->sl_by_switch ? f->switches : 1;
    memset(by_lid, 0, (size_t)f->lids * sizeof *by_lid);
    for (int32_t s = 0; s < rows; s++)
        for (int32_t i = 0; i < f->lids; i++)
            by_lid[i] |= f->replies ? UINT16_MAX : f->vl_bit[job->sl[(int64_t)s * f->lids + i] & 15];
}

/* Remove the CDG edges that no path uses, on each VL in the set `vls` (bits).  Afterwards, the cycle that a blocked
 * edge would close may be gone.  So blocked edges on these VLs are unblocked, except forbidden edges.  Returns false if
 * memory ran out. */
static bool remove_unused(repair_state *job, uint32_t vls)
{
    const repair_fabric *f = job->f;
    uint16_t *by_lid = malloc(((size_t)f->lids + 1) * sizeof *by_lid);
    if (!by_lid)
        return false;
    vls_by_lid(job, by_lid);
    for (int32_t c = 0; c < f->channels; c++) {
        const int32_t v = f->dst[c];
        for (int32_t k = f->first[v]; k < f->first[v + 1]; k++) {
            const int32_t dependency = job->graph.turn_first[c] + k - f->first[v];
            const uint32_t required_vls = job->graph.shared[dependency] & vls;
            job->graph.blocked[dependency] &= ~vls | (f->forbidden ? f->forbidden[f->slot[c] + k - f->first[v]] : 0u);
            if (required_vls)
                job->graph.shared[dependency] &= (uint16_t)~(
                    required_vls & ~(f->alive[c] && f->alive[k] ? taken_on(job, c, k, by_lid, required_vls) : 0));
        }
    }
    free(by_lid);
    return true;
}

/* Remove unused CDG edges, that is, edges that no path uses.  Edges are removed on each VL that is used by packets to
 * LIDs marked in `chosen` [L].  Returns false if memory ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen)
{
    const repair_fabric *f = job->f;
    const int32_t rows = f->sl_by_switch ? f->switches : 1;
    uint32_t vls = 0;
    for (int32_t lid = 0; lid < f->lids; lid++)
        for (int32_t s = 0; chosen[lid] && s < rows; s++)
            vls |= f->replies ? UINT16_MAX : f->vl_bit[job->sl[(int64_t)s * f->lids + lid] & 15];
    return vls == 0 || remove_unused(job, vls);
}

/* Count the entries of LID `donor` that differ from the preferred entries of the current LID.  The entry of the switch
 * that delivers the donor is left out.  Returns -1 if entries of the donor are missing. */
static int32_t differences(const repair_state *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    for (int32_t s = 0; s < f->switches; s++) {
        if (f->part[s] != f->part[job->target] || s == f->lid_switch[donor])
            continue;
        const uint8_t port = job->lft[(int64_t)s * f->lids + donor];
        const int32_t c = f->at_port[(int64_t)s * 256 + port];
        if (c < 0 || !f->alive[c])
            return -1;
        count += port != f->preferred[(int64_t)s * f->lids + job->lid];
    }
    return count;
}

/* Copy the LFT entries and SLs of LID `donor` to the current LID.  Afterwards the entry of the switch that delivers the
 * donor is missing, unless this switch also delivers the current LID. */
static void copy_paths(repair_state *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    for (int32_t s = 0; s < f->switches; s++) {
        const int64_t at = (int64_t)s * f->lids;
        if (f->part[s] != f->part[job->target])
            continue;
        ibn_repair_save_entry(job, s);
        if (f->sl_by_switch)
            job->sl[at + job->lid] = job->sl[at + donor];
        if (s != job->target)
            ibn_repair_set_entry(job, s, s == f->lid_switch[donor] ? NO_ROUTE : job->lft[at + donor]);
    }
    if (!f->sl_by_switch) {
        job->sl[job->lid] = job->sl[donor];
        ibn_repair_renew_replies(job, job->target);
    }
}

/* Fill the entry that is missing after the entries of a donor were copied: the entry of switch s, which delivers the
 * donor.  If `repairing` is false, only channel `last` is tried, which leads to the switch of the current LID.  If
 * `repairing` is true, any path that closes no CDG cycle is used.  If `last` is -1, no entry is missing.  Returns
 * whether all entries are filled. */
static bool lead_on(repair_state *job, int32_t s, int32_t last, bool repairing)
{
    if (last < 0)
        return true;
    if (repairing)
        return ibn_repair_fill_column(job, &s, 1);
    ibn_repair_collect_subtree(job, s);
    if (!ibn_repair_admits(job, last))
        return false;
    ibn_repair_set_entry(job, s, job->f->port[last]);
    return true;
}

/* Return whether the traffic to the current LID may use copies of the entries and SLs of LID `donor`.  No cycle search
 * tests the copied paths, so the CDG must have all of their dependencies already, because the donor's traffic has them.
 *
 * If switch-to-switch traffic may close credit loops, traffic to LIDs of switches and traffic to LIDs of end ports have
 * different dependencies.  So both LIDs must belong to end ports, or both to switches.
 *
 * If only requests must be free of credit loops, the SLs of both LIDs may differ.  Packets must then be allowed to move
 * to the VLs of the donor's SLs.
 *
 * If replies must be free of credit loops too, both LIDs must have equal SLs.  If SLs also depend on the source switch,
 * the same switch must deliver both LIDs, because a reply to a LID has the SL of a request from the LID's switch. */
static bool is_as_free(const repair_state *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    const int32_t lid = job->lid, rows = f->sl_by_switch ? f->switches : 1;
    if (donor == lid || (f->endports_only && (f->lid_port[donor] == 0) != (f->lid_port[lid] == 0)))
        return false;
    if (f->replies && f->sl_by_switch && f->lid_switch[donor] != job->target)
        return false;
    for (int32_t s = 0; s < rows; s++) {
        const uint8_t sl = job->sl[(int64_t)s * f->lids + donor] & 15;
        if (sl != job->sl[(int64_t)s * f->lids + lid]
            && (f->replies || f->sl_of_vl[__builtin_ctz(f->vl_bit[sl])] == NO_SL))
            return false;
    }
    return true;
}

/* Return the channel from the switch that delivers LID `donor` to the switch that delivers the current LID.  The result
 * is -1 if one switch delivers both LIDs, and -2 if there is no such channel. */
static int32_t last_channel(const repair_state *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    const int32_t s = f->lid_switch[donor];
    if (s == job->target)
        return -1;
    for (int32_t c = f->first[s]; c < f->first[s + 1]; c++)
        if (f->alive[c] && f->dst[c] == job->target)
            return c;
    return -2;
}

/* Compare two donors for qsort: the donor with fewer changed entries comes first. */
static int by_changes(const void *one, const void *other)
{
    const donor_column *a = one, *b = other;
    return a->changes != b->changes ? (a->changes > b->changes) - (a->changes < b->changes)
                                    : (a->lid > b->lid) - (a->lid < b->lid);
}

/* Try the `count` donors one after the other, until the copied paths of a donor close no CDG cycle.  After a copy, the
 * switch that delivers the donor has no entry yet, unless it also delivers the current LID.  If `repairing` is true,
 * this switch may take any path; otherwise it sends directly to the switch of the current LID.  Returns whether such a
 * donor was found. */
static bool take_first(repair_state *job, const donor_column *donors, int32_t count, bool repairing)
{
    const uint8_t sl = job->f->sl_by_switch ? 0 : job->sl[job->lid];
    for (int32_t i = 0; i < count; i++) {
        copy_paths(job, donors[i].lid);
        if (lead_on(job, job->f->lid_switch[donors[i].lid], donors[i].last, repairing))
            return true;
        ibn_repair_restore_column(job);
        if (!job->f->sl_by_switch) {
            job->sl[job->lid] = sl;
            ibn_repair_renew_replies(job, job->target);
        }
    }
    return false;
}

/* Copy the LFT entries of another LID (the donor) to the current LID.  The two LIDs belong to one switch, or to two
 * neighbour switches.  The copy adds few CDG edges, because the CDG has the edges of the donor's paths already.  Donors
 * that change fewer entries are tried earlier.  Returns whether entries were copied. */
bool ibn_repair_copy_column(repair_state *job)
{
    const repair_fabric *f = job->f;
    donor_column *donors = malloc(((size_t)f->lids + 1) * sizeof *donors);
    int32_t count = 0;
    job->sls_may_change = false;
    for (int32_t donor = 0; donors && donor < f->lids; donor++) {
        if (f->lid_switch[donor] < 0)
            continue;
        const int32_t last = last_channel(job, donor);
        const int32_t changes = last == -2 || !is_as_free(job, donor) ? -1 : differences(job, donor);
        if (changes >= 0)
            donors[count++] = (donor_column){donor, last, changes};
    }
    if (count > 0)
        qsort(donors, (size_t)count, sizeof *donors, by_changes);
    const bool found = take_first(job, donors, count, false)
                       || take_first(job, donors, count < MOST_TRIALS ? count : MOST_TRIALS, true);
    free(donors);
    return found;
}
