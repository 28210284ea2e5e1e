/* Prove changed tables by checking only the packets that the change affects: see check_delta.h.  This file shares no
 * code with the repair of tables, and so also finds errors of the repair. */
#include "cdg/check_delta.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
/* Indices of the array `counts`, which is described at ibn_cdg_check_delta in check_delta.h. */
enum { WALKED, LOST, NOT_INCREASING, COUNTS };
/* BLOCK, PART: the old and the new entries of a switch are first compared in parts of PART entries, because one long
 * comparison is faster than many short ones.  A part that differs is compared again in blocks of BLOCK entries.
 * MOST_HOPS: larger numbers of hops are stored as this number.
 * NO_PORT: LFT entry that stands for "no path". */
enum { BLOCK = 64, PART = 1024, MOST_HOPS = 254, NO_PORT = 255 };

typedef struct {
    /* at: switch whose LFT entry or SL towards a LID has changed.
     * moved: 1 if the LFT entry has changed, 0 if only the SL has changed. */
    int32_t at, moved;
} change;

/* A route from a switch to the current LID that has passed the check. */
typedef struct {
    /* stamp: number of the LFT column to whose LID the route leads (`stamp` of job_t when the route was checked).
     * channel: first channel of the route.
     * hops: length of the route. */
    int32_t stamp, channel, hops;
    uint32_t vl_mask; /* VLs, as bits, for which the channels of the route were checked */
} checked_route;

typedef struct {
    const delta_tables *t;
    uint16_t *dependencies;
    uint8_t *hops;
    int64_t *counts;
    /* queue: [S] switches whose packets to the current LID have to be checked.
     * seen: [S] number of the last LFT column or search in which each switch was visited (`stamp` at that time). */
    int32_t *queue, *seen;
    /* number of the current LFT column or search, for comparison with `seen` and with the stamps of `checked` */
    int32_t stamp;
    /* [S]: by switch, the most recent route from the switch that has passed the check.  The route leads to the current
     * LID only if its `stamp` equals the present `stamp`; otherwise it leads to an earlier LID, and is not used */
    checked_route *checked;
} job_t;

/* Return the VLs, as bits, of the packets that enter the fabric at switch s towards a LID.  Replies are included if
 * they are checked too. */
static uint32_t vls_of(const delta_tables *t, int32_t s, int32_t lid)
{
    const bool to_switch = t->endports_only && t->lid_port[lid] == 0;
    const int32_t target = t->lid_switch[lid];
    uint32_t vl_mask = 0;
    if (!to_switch || t->has_endport[s])
        vl_mask = t->vl_bit[t->sl[(t->sl_by_switch ? (int64_t)s * t->lids : 0) + lid]];
    for (int32_t i = t->lids_at_first[s]; t->replies && i < t->lids_at_first[s + 1]; i++) {
        const int32_t asker = t->lids_at[i];
        if (!to_switch || t->lid_port[asker])
            vl_mask |= t->vl_bit[t->sl[(t->sl_by_switch ? (int64_t)target * t->lids : 0) + asker]];
    }
    return vl_mask;
}

/* Return whether channel c comes later than channel `before` in the topological order of each VL in `vl_mask` (bits).
 * If so, record the dependency of channel `before` on channel c on all these VLs.  If channel c is the first channel of
 * the path, `before` is -1 and nothing is recorded. */
static bool follows_order(job_t *job, uint32_t vl_mask, int32_t before, int32_t c)
{
    const delta_tables *t = job->t;
    for (uint32_t left = vl_mask; left; left &= left - 1) {
        const int32_t vl = __builtin_ctz(left);
        if (vl >= t->vls)
            return false;
        const int32_t *place = t->order + (int64_t)vl * t->channels;
        if (before >= 0 && place[before] >= place[c])
            return false;
    }
    if (before >= 0)
        job->dependencies[t->slot[before] + c - t->first[t->src[c]]] |= (uint16_t)vl_mask;
    return true;
}

/* Follow the packets from switch s to a LID.  Check that the packets arrive and use channels in topological order.
 *
 * If the packets reach a switch whose route to the LID has passed the check already, the rest of their path is known to
 * be good.  Then only their dependency on the first channel of this route is checked.  This shortcut requires that the
 * route was checked for all VLs of the packets.
 *
 * Store the hops from switch s, or 255 if the check fails.  Count the packets that were followed and the packets that
 * failed. */
static void walk(job_t *job, int32_t s, int32_t lid)
{
    const delta_tables *t = job->t;
    const uint32_t vl_mask = vls_of(t, s, lid);
    const int32_t target = t->lid_switch[lid];
    int32_t at = s, before = -1, hops = 0, first = -1;
    bool good = true;
    while (at != target && good) {
        const checked_route *rest = &job->checked[at];
        const bool joins = rest->stamp == job->stamp && !(vl_mask & ~rest->vl_mask);
        const int32_t c =
            joins ? rest->channel : t->at_port[(int64_t)at * 256 + t->lft[(int64_t)at * t->lids + lid]];
        good = c >= 0 && hops < t->switches && follows_order(job, vl_mask, before, c);
        hops += joins ? rest->hops : 1;
        first = before < 0 ? c : first;
        before = c;
        at = !good ? at : joins ? target : t->dst[c];
    }
    good = good && t->lft[(int64_t)target * t->lids + lid] == t->lid_port[lid];
    if (good && s != target)
        job->checked[s] = (checked_route){job->stamp, first, hops, vl_mask};
    job->counts[WALKED]++;
    job->counts[LOST] += !good;
    const uint8_t found = (uint8_t)(!good ? 255 : hops > MOST_HOPS ? MOST_HOPS : hops);
    uint8_t *stored = &job->hops[(int64_t)s * t->lids + lid];
    /* Write only if the value has changed.  The array may share pages of memory with other arrays, and the first write
     * to a shared page costs a copy of the page. */
    if (*stored != found)
        *stored = found;
}

/* Append switch s to the queue, together with all switches whose routes to the LID lead through s.  Switches that are
 * in the queue already are left out.  Returns the new length of the queue. */
static int32_t queue_behind(job_t *job, int32_t s, int32_t lid, int32_t tail)
{
    const delta_tables *t = job->t;
    int32_t head = tail;
    if (job->seen[s] == job->stamp)
        return tail;
    job->seen[s] = job->stamp;
    for (job->queue[tail++] = s; head < tail; head++) {
        const int32_t u = job->queue[head];
        for (int32_t i = t->into_first[u]; i < t->into_first[u + 1]; i++) {
            const int32_t e = t->into[i], y = t->src[e];
            if (job->seen[y] == job->stamp || t->lft[(int64_t)y * t->lids + lid] != t->port[e])
                continue;
            job->seen[y] = job->stamp;
            job->queue[tail++] = y;
        }
    }
    return tail;
}

/* Check the packets to a LID, if their route or SL has changed.  `changes` lists the `count` changed entries towards
 * the LID.  The route of a packet has changed if it leads through the switch of a changed LFT entry. */
static void check_column(job_t *job, int32_t lid, const change *changes, int32_t count)
{
    int32_t tail = 0;
    job->stamp++;
    for (int32_t i = 0; i < count; i++)
        if (changes[i].moved)
            tail = queue_behind(job, changes[i].at, lid, tail);
    for (int32_t i = 0; i < count; i++)
        if (job->seen[changes[i].at] != job->stamp) {
            job->seen[changes[i].at] = job->stamp;
            job->queue[tail++] = changes[i].at;
        }
    for (int32_t i = 0; i < tail; i++)
        walk(job, job->queue[i], lid);
}

/* Return whether an LFT entry has changed.  A missing entry always counts as changed, so that the check finds that its
 * packets do not arrive. */
static bool has_moved(const delta_tables *t, int64_t at)
{
    return t->lft[at] != t->was[at] || t->lft[at] == NO_PORT;
}

static int32_t smaller(int32_t one, int32_t other)
{
    return one < other ? one : other;
}

/* Return whether `size` LFT entries from index `at` on and `size` SLs from index `sl_at` on are unchanged, and no entry
 * is missing. */
static bool is_unchanged(const delta_tables *t, int64_t at, int64_t sl_at, int32_t size)
{
    return !memcmp(t->lft + at, t->was + at, (size_t)size) && !memchr(t->lft + at, NO_PORT, (size_t)size)
           && (t->pages || !memcmp(t->sl + sl_at, t->sl_was + sl_at, (size_t)size));
}

/* Return whether `size` entries from index `at` on are known to be unchanged, according to the array t->pages. */
static bool is_known(const delta_tables *t, int64_t at, int32_t size)
{
    if (!t->pages)
        return false;
    for (int64_t page = at / t->page; page * t->page < at + size; page++)
        if (t->pages[page])
            return false;
    return true;
}

/* Compare the new and the old LFT entries and SLs of switch s.  If `changes` is NULL, the changes are counted by LID in
 * `first`.  Otherwise the changes are stored in `changes`.  Returns whether any entry or SL has changed. */
static bool compare_rows(const delta_tables *t, int32_t s, int32_t *first, change *changes)
{
    const int64_t row = (int64_t)s * t->lids, sl_row = t->sl_by_switch ? row : 0;
    bool differs = false;
    for (int32_t from = 0; from < t->lids; from += BLOCK) {
        const int32_t size = smaller(BLOCK, t->lids - from), part = smaller(PART, t->lids - from);
        if (from % PART == 0
            && (is_known(t, row + from, part) || is_unchanged(t, row + from, sl_row + from, part))) {
            from += PART - BLOCK;
            continue;
        }
        if (is_unchanged(t, row + from, sl_row + from, size))
            continue;
        differs = true;
        for (int32_t lid = from; lid < from + size; lid++) {
            const bool moved = has_moved(t, row + lid);
            if (t->lid_switch[lid] < 0 || (!moved && t->sl[sl_row + lid] == t->sl_was[sl_row + lid]))
                continue;
            if (changes)
                changes[first[lid]++] = (change){s, moved};
            else
                first[lid + 1]++;
        }
    }
    return differs;
}

/* List the changed entries and SLs, sorted by LID.  Returns NULL if memory is exhausted.
 *
 * first: [L + 2], zero on entry.  Output: for each LID, the index of its first change in the returned list.
 * seen: [S], scratch.  The function sets all elements to zero before it returns. */
static change *find_changes(const delta_tables *t, int32_t *first, int32_t *seen)
{
    for (int32_t s = 0; s < t->switches; s++)
        seen[s] = compare_rows(t, s, first, NULL);
    for (int32_t lid = 0; lid < t->lids; lid++)
        first[lid + 1] += first[lid];
    change *changes = malloc(((size_t)first[t->lids] + 1) * sizeof *changes);
    for (int32_t s = 0; changes && s < t->switches; s++)
        if (seen[s])
            compare_rows(t, s, first, changes);
    memmove(first + 1, first, (size_t)t->lids * sizeof *first);
    first[0] = 0;
    memset(seen, 0, (size_t)t->switches * sizeof *seen);
    return changes;
}

int64_t ibn_cdg_dependencies_against(int32_t channels, int32_t vls, const int32_t *first, const int32_t *dst,
                                     const int32_t *slot, const uint16_t *dependencies, const int32_t *order)
{
    int64_t count = 0;
    for (int32_t c = 0; c < channels; c++) {
        const int32_t behind = first[dst[c]], size = first[dst[c] + 1] - behind;
        const uint16_t *turns = dependencies + slot[c];
        for (int32_t k = 0; k < size; k++)
            for (uint32_t left = turns[k]; left; left &= left - 1) {
                const int32_t vl = __builtin_ctz(left);
                const int32_t *place = order + (int64_t)vl * channels;
                count += vl >= vls || place[c] >= place[behind + k];
            }
    }
    return count;
}

/* Return whether packets to a LID leave switch s on VL `vl`.  The packets that enter the fabric at the switch and the
 * packets that the switch forwards are considered. */
static bool uses_vl(job_t *job, int32_t s, int32_t lid, int32_t vl)
{
    job->stamp++;
    const int32_t tail = queue_behind(job, s, lid, 0);
    for (int32_t i = 0; i < tail; i++)
        if (vls_of(job->t, job->queue[i], lid) >> vl & 1)
            return true;
    return false;
}

/* Return whether any packet uses channel c on VL `vl`, and continues on channel `next`. */
static bool is_taken(job_t *job, int32_t c, int32_t next, int32_t vl)
{
    const delta_tables *t = job->t;
    const uint8_t *row = t->lft + (int64_t)t->src[c] * t->lids, *then = t->lft + (int64_t)t->src[next] * t->lids;
    for (int32_t lid = 0; lid < t->lids; lid++)
        if (row[lid] == t->port[c] && then[lid] == t->port[next] && t->lid_switch[lid] >= 0
            && uses_vl(job, t->src[c], lid, vl))
            return true;
    return false;
}

/* Examine the recorded dependencies that violate the topological order.  If some packet still has such a dependency,
 * the dependency is counted.  Otherwise the dependency is removed from the record. */
static void recheck_turns(job_t *job)
{
    const delta_tables *t = job->t;
    for (int32_t c = 0; c < t->channels; c++) {
        const int32_t behind = t->first[t->dst[c]], size = t->first[t->dst[c] + 1] - behind;
        uint16_t *turns = job->dependencies + t->slot[c];
        for (int32_t k = 0; k < size; k++)
            for (uint32_t left = turns[k]; left; left &= left - 1) {
                const int32_t vl = __builtin_ctz(left);
                const int32_t *place = t->order + (int64_t)vl * t->channels;
                if (vl < t->vls && place[c] < place[behind + k])
                    continue;
                if (is_taken(job, c, behind + k, vl))
                    job->counts[NOT_INCREASING]++;
                else
                    turns[k] &= (uint16_t)~(1u << vl);
            }
    }
}

int ibn_cdg_check_delta(const delta_tables *t, uint16_t *dependencies, uint8_t *hops, int64_t *counts)
{
    job_t job = {.t = t, .dependencies = dependencies, .hops = hops, .counts = counts};
    int32_t *first = calloc((size_t)t->lids + 2, sizeof *first);
    job.queue = malloc(((size_t)t->switches + 1) * sizeof *job.queue);
    job.seen = calloc((size_t)t->switches + 1, sizeof *job.seen);
    job.checked = calloc((size_t)t->switches + 1, sizeof *job.checked);
    change *changes = first && job.seen ? find_changes(t, first, job.seen) : NULL;
    memset(counts, 0, COUNTS * sizeof *counts);
    const bool ready = changes && job.queue && job.checked;
    for (int32_t lid = 0; ready && lid < t->lids; lid++)
        if (first[lid + 1] > first[lid])
            check_column(&job, lid, changes + first[lid], first[lid + 1] - first[lid]);
    if (ready && !t->known_increasing)
        recheck_turns(&job);
    free(first);
    free(changes);
    free(job.queue);
    free(job.checked);
    free(job.seen);
    return ready ? OK : NO_MEMORY;
}
