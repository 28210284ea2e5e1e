/* Columns that nothing else helps: their VLs are cleared of turns that nobody takes, or they take the ways of another
 * LID.  See internal/mend.h. */
#include "internal/mend.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, MOST_MENDED = 16 };

/* VLs on which anything goes by a port of one switch and then a port of another, of those wanted: by all VLs that any
 * source of a LID uses, which is more than there may be. */
static uint32_t taken_on(const mend_job *job, int32_t c, int32_t next, const uint16_t *by_lid, uint32_t wanted)
{
    const repair_fabric *f = job->f;
    const uint8_t here = f->port[c], there = f->port[next];
    const uint8_t *row = job->lft + (int64_t)f->src[c] * f->lids, *then = job->lft + (int64_t)f->src[next] * f->lids;
    uint32_t taken = 0;
    for (int32_t from = 0; from < f->lids && (wanted & ~taken); from += BLOCK) {
        const int32_t end = f->lids - from < BLOCK ? f->lids : from + BLOCK;
        uint16_t any = 0;
        for (int32_t i = from; i < end; i++)
            any |= (uint16_t)(-((row[i] == here) & (then[i] == there)) & by_lid[i]);
        taken |= any;
    }
    return taken & wanted;
}

/* VLs on which anything is sent to each LID; replies may come on any. */
static void lanes_by_lid(const mend_job *job, uint16_t *by_lid)
{
    const repair_fabric *f = job->f;
    const int32_t rows = f->sl_by_switch ? f->switches : 1;
    memset(by_lid, 0, (size_t)f->lids * sizeof *by_lid);
    for (int32_t s = 0; s < rows; s++)
        for (int32_t i = 0; i < f->lids; i++)
            by_lid[i] |= f->replies ? UINT16_MAX : f->vl_bit[job->sl[(int64_t)s * f->lids + i] & 15];
}

/* Let go of all turns that nobody takes on these VLs; what closed a cycle there may not do so any more. */
static bool release(mend_job *job, uint32_t lanes)
{
    const repair_fabric *f = job->f;
    uint16_t *by_lid = malloc(((size_t)f->lids + 1) * sizeof *by_lid);
    if (!by_lid)
        return false;
    lanes_by_lid(job, by_lid);
    for (int32_t c = 0; c < f->channels; c++) {
        const int32_t v = f->dst[c];
        for (int32_t k = f->first[v]; k < f->first[v + 1]; k++) {
            const int32_t turn = job->graph.turn_first[c] + k - f->first[v];
            const uint32_t wanted = job->graph.used[turn] & lanes;
            job->graph.blocked[turn] &= ~lanes;
            if (wanted)
                job->graph.used[turn] &= ~(wanted & ~(f->alive[c] && f->alive[k] ? taken_on(job, c, k, by_lid, wanted) : 0));
        }
    }
    free(by_lid);
    return true;
}

/* Clear the VLs of all columns that are to be laid from nothing. */
bool ibn_mend_release(mend_job *job, const bool *chosen)
{
    const repair_fabric *f = job->f;
    const int32_t rows = f->sl_by_switch ? f->switches : 1;
    uint32_t lanes = 0;
    for (int32_t lid = 0; lid < f->lids; lid++)
        for (int32_t s = 0; chosen[lid] && s < rows; s++)
            lanes |= f->replies ? UINT16_MAX : f->vl_bit[job->sl[(int64_t)s * f->lids + lid] & 15];
    return lanes == 0 || release(job, lanes);
}

/* How many entries differ from those that go before others when the column at hand takes the ways of a donor; -1: these
 * are not complete. */
static int32_t differences(const mend_job *job, int32_t donor)
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
        count += port != f->wish[(int64_t)s * f->lids + job->lid];
    }
    return count;
}

/* Take the ways of a donor, all but that of its own switch, if that is another one. */
static void take_ways(mend_job *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    for (int32_t s = 0; s < f->switches; s++) {
        const int64_t at = (int64_t)s * f->lids;
        if (f->part[s] != f->part[job->target])
            continue;
        ibn_mend_keep(job, s);
        if (f->sl_by_switch)
            job->sl[at + job->lid] = job->sl[at + donor];
        if (s != job->target)
            ibn_mend_set(job, s, s == f->lid_switch[donor] ? NO_ROUTE : job->lft[at + donor]);
    }
    if (!f->sl_by_switch)
        job->sl[job->lid] = job->sl[donor];
}

/* Let the switch of a donor send all that comes there on by this channel; or, if that is not allowed, mend it as a hole. */
static bool lead_on(mend_job *job, int32_t s, int32_t last, bool mending)
{
    if (last < 0)
        return true;
    if (mending)
        return ibn_mend_column(job, &s, 1);
    ibn_mend_gather(job, s);
    if (!ibn_mend_admits(job, last))
        return false;
    ibn_mend_set(job, s, job->f->port[last]);
    return true;
}

/* Whether the ways to one LID allow for what is sent to another.  Where replies count, SLs must not change, and what
 * comes as a reply has to be the same. */
static bool is_as_free(const mend_job *job, int32_t donor)
{
    const repair_fabric *f = job->f;
    const int32_t lid = job->lid, rows = f->sl_by_switch ? f->switches : 1;
    if (donor == lid || (f->endports_only && (f->lid_port[donor] == 0) != (f->lid_port[lid] == 0)))
        return false;
    if (f->replies && f->sl_by_switch && f->lid_switch[donor] != job->target)
        return false;
    for (int32_t s = 0; f->replies && s < rows; s++)
        if (job->sl[(int64_t)s * f->lids + donor] != job->sl[(int64_t)s * f->lids + lid])
            return false;
    return true;
}

/* The channel behind the switch of a donor that leads to that of the column at hand; -1: it is the same, -2: none does. */
static int32_t last_channel(const mend_job *job, int32_t donor)
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

static int by_changes(const void *one, const void *other)
{
    const donor_ways *a = one, *b = other;
    return a->changes != b->changes ? (a->changes > b->changes) - (a->changes < b->changes) : (a->lid > b->lid) - (a->lid < b->lid);
}

static bool take_first(mend_job *job, const donor_ways *donors, int32_t count, bool mending)
{
    const uint8_t sl = job->f->sl_by_switch ? 0 : job->sl[job->lid];
    for (int32_t i = 0; i < count; i++) {
        take_ways(job, donors[i].lid);
        if (lead_on(job, job->f->lid_switch[donors[i].lid], donors[i].last, mending))
            return true;
        ibn_mend_restore(job);
        if (!job->f->sl_by_switch)
            job->sl[job->lid] = sl;
    }
    return false;
}

/* Take the ways of another LID at the same switch, or at one next to it: their turns are in already. */
bool ibn_mend_copy(mend_job *job)
{
    const repair_fabric *f = job->f;
    donor_ways *donors = malloc(((size_t)f->lids + 1) * sizeof *donors);
    int32_t count = 0;
    job->free_lanes = false;
    for (int32_t donor = 0; donors && donor < f->lids; donor++) {
        if (f->lid_switch[donor] < 0)
            continue;
        const int32_t last = last_channel(job, donor);
        const int32_t changes = last == -2 || !is_as_free(job, donor) ? -1 : differences(job, donor);
        if (changes >= 0)
            donors[count++] = (donor_ways){donor, last, changes};
    }
    if (count > 0)
        qsort(donors, (size_t)count, sizeof *donors, by_changes);
    const bool found = take_first(job, donors, count, false)
                       || take_first(job, donors, count < MOST_MENDED ? count : MOST_MENDED, true);
    free(donors);
    return found;
}
