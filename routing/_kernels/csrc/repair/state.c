/* Basic steps of the repair: save and restore entries, list subtrees, and test whether CDG edges close a cycle.  The
 * terms are explained in internal/repair_state.h. */
#include "repair/internal/repair_state.h"

#include <stdlib.h>

enum {
    /* If a subtree has more than this number of switches, the LFT column of the current LID is copied.  A search
     * through many entries is faster in the copy. */
    LARGE_SUBTREE = 8,
    /* No more columns are copied when all copies together have more than this number of bytes. */
    MOST_COPIED = 1 << 26,
    AHEAD = 16, /* prefetch distance: each LFT row is fetched into the cache this number of rows before its use */
};

/* Return the switch to which an out-port of switch s leads, or -1 if no usable channel leaves by this out-port. */
static int32_t receiver(const repair_state *job, int32_t s, uint8_t port)
{
    const int32_t c = job->f->at_port[(int64_t)s * 256 + port];
    return c >= 0 && job->f->alive[c] ? job->f->dst[c] : -1;
}

/* Write an entry of a switch towards the current LID. */
void ibn_repair_write_entry(repair_state *job, int32_t s, uint8_t port)
{
    const int64_t at = (int64_t)s * job->f->lids + job->lid;
    uint16_t *senders = job->senders[job->lid];
    if (senders) {
        const int32_t before = receiver(job, s, job->lft[at]), now = receiver(job, s, port);
        if (before >= 0)
            senders[before]--;
        if (now >= 0)
            senders[now]++;
    }
    job->lft[at] = port;
    if (job->written)
        job->written[at / job->page] = 1;
    job->taken[s].column = 0;
    if (job->copied_column[job->lid])
        job->copied_column[job->lid][s] = port;
}

/* Copy the LFT column of the current LID, together with the columns of LIDs next to the current LID: their entries are
 * adjacent in memory.  Returns the copy of the current LID's column, or NULL if enough columns are copied already or
 * memory ran out. */
static uint8_t *copy_columns(repair_state *job)
{
    const repair_fabric *f = job->f;
    const int32_t first = job->lid - job->lid % COPIED_TOGETHER;
    const int32_t count = f->lids - first < COPIED_TOGETHER ? f->lids - first : COPIED_TOGETHER;
    if ((int64_t)job->copied_columns * f->switches > MOST_COPIED)
        return NULL;
    uint8_t *copy = malloc((size_t)f->switches * (size_t)count);
    if (!copy)
        return NULL;
    for (int32_t s = 0; s < f->switches; s++) {
        const uint8_t *row = job->lft + (int64_t)s * f->lids + first;
        if (s + AHEAD < f->switches)
            __builtin_prefetch(row + (int64_t)AHEAD * f->lids);
        for (int32_t k = 0; k < count; k++)
            copy[(int64_t)k * f->switches + s] = row[k];
    }
    for (int32_t k = 0; k < count; k++)
        job->copied_column[first + k] = copy + (int64_t)k * f->switches;
    job->copied_columns += count;
    return job->copied_column[job->lid];
}

/* Count for each switch how many other switches send to it towards the current LID.  `column` is the copy of the LFT
 * column. */
static void count_senders(repair_state *job, const uint8_t *column)
{
    uint16_t *senders = job->senders[job->lid] = calloc((size_t)job->f->switches, sizeof *senders);
    for (int32_t s = 0; senders && s < job->f->switches; s++) {
        const int32_t next = receiver(job, s, column[s]);
        if (next >= 0)
            senders[next]++;
    }
}

/* Save the entry and the SL of a switch towards the current LID, unless they were saved already in this attempt to
 * repair the LID. */
void ibn_repair_save_entry(repair_state *job, int32_t s)
{
    if (job->touched[s] == job->column)
        return;
    const int64_t at = (int64_t)s * job->f->lids + job->lid;
    job->touched[s] = job->column;
    job->kept[job->saved_count++] = (saved_entry){s, job->lft[at], job->f->sl_by_switch ? job->sl[at] : 0};
}

/* Save the entry of a switch towards the current LID, and set the entry to `port`. */
void ibn_repair_set_entry(repair_state *job, int32_t s, uint8_t port)
{
    ibn_repair_save_entry(job, s);
    ibn_repair_write_entry(job, s, port);
}

/* Add flow to a channel, and record the change. */
void ibn_repair_add_load(repair_state *job, int32_t c, int64_t flow)
{
    job->load[c] += flow;
    if (job->load_count == job->load_room) {
        const int32_t room = job->load_room ? 2 * job->load_room : 1024;
        load_change *more = realloc(job->load_changes, (size_t)room * sizeof *more);
        if (!more) {
            job->out_of_memory = true;
            return;
        }
        job->load_changes = more;
        job->load_room = room;
    }
    job->load_changes[job->load_count++] = (load_change){c, flow};
}

/* Restore all saved entries and SLs towards the current LID, and the load. */
void ibn_repair_restore_column(repair_state *job)
{
    for (int32_t i = 0; i < job->saved_count; i++) {
        const int64_t at = (int64_t)job->kept[i].at * job->f->lids + job->lid;
        if (job->lft[at] != job->kept[i].entry)
            ibn_repair_write_entry(job, job->kept[i].at, job->kept[i].entry);
        if (job->f->sl_by_switch)
            job->sl[at] = job->kept[i].sl;
    }
    while (job->load_count > 0) {
        const load_change undone = job->load_changes[--job->load_count];
        job->load[undone.channel] -= undone.flow;
    }
}

/* Return the VLs, as bits, on which a switch replies to requests from the current LID.  A reply uses the SL of its
 * request. */
static uint32_t vls_of_replies(const repair_state *job, int32_t s)
{
    const repair_fabric *f = job->f;
    const uint8_t *sl = job->sl + (f->sl_by_switch ? (int64_t)job->target * f->lids : 0);
    const bool mute = f->endports_only && f->lid_port[job->lid] == 0;
    uint32_t vls = 0;
    if (job->reply_vls)
        return job->reply_vls[s];
    for (int32_t i = f->lids_at_first[s]; i < f->lids_at_first[s + 1]; i++)
        if (!mute || f->lid_port[f->lids_at[i]])
            vls |= f->vl_bit[sl[f->lids_at[i]]];
    return vls;
}

/* Update in job->reply_vls the VLs on which a switch replies to requests.  Do nothing if job->reply_vls is NULL: then
 * replies do not count, or the VLs of replies depend on the current LID and are not stored. */
void ibn_repair_renew_replies(repair_state *job, int32_t s)
{
    const repair_fabric *f = job->f;
    uint32_t vls = 0;
    for (int32_t i = f->lids_at_first[s]; job->reply_vls && i < f->lids_at_first[s + 1]; i++)
        vls |= f->vl_bit[job->sl[f->lids_at[i]]];
    if (job->reply_vls)
        job->reply_vls[s] = (uint16_t)vls;
}

/* Return the VLs, as bits, on which a switch and its end ports send to the current LID.  Replies are included if they
 * must be free of credit loops too. */
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s)
{
    const repair_fabric *f = job->f;
    const bool mute = f->endports_only && f->lid_port[job->lid] == 0 && !f->has_endport[s];
    const int64_t row = f->sl_by_switch ? (int64_t)s * f->lids : 0;
    uint32_t vls = mute ? 0 : f->vl_bit[job->sl[row + job->lid]];
    return f->replies ? vls | vls_of_replies(job, s) : vls;
}

/* Append to job->queue, from index `tail` on, the switches whose next hop towards the current LID is a given
 * switch.  The given switch is at index `head` of job->queue.  `column` is a copy of the LFT column, or NULL if
 * there is no copy.  If the number of these switches is known (job->senders), the search ends as soon as all of them
 * are found.  Returns the new length of the queue. */
static int32_t queue_senders(repair_state *job, const uint8_t *column, int32_t head, int32_t tail)
{
    const repair_fabric *f = job->f;
    const int32_t u = job->queue[head];
    const uint16_t *senders = job->senders[job->lid];
    const int32_t end = column && senders ? tail + senders[u] : INT32_MAX;
    for (int32_t i = f->into_first[u]; !column && i < f->into_first[u + 1]; i++)
        __builtin_prefetch(job->lft + (int64_t)job->into_src[i] * f->lids + job->lid);
    for (int32_t i = f->into_first[u]; tail < end && i < f->into_first[u + 1]; i++) {
        const int32_t y = job->into_src[i], e = f->into[i];
        if (column ? column[y] != job->into_port[i] || !f->alive[e] : ibn_repair_next_channel(job, y) != e)
            continue;
        job->parent[tail] = head;
        job->through[tail] = e;
        job->queue[tail++] = y;
    }
    return tail;
}

void ibn_repair_collect_flow(repair_state *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const uint8_t *column = job->copied_column[job->lid];
    int32_t tail = 0;
    job->queue[tail++] = root;
    for (int32_t head = 0; head < tail; head++) {
        if (!column && tail > LARGE_SUBTREE)
            column = copy_columns(job);
        tail = queue_senders(job, column, head, tail);
        job->place[job->queue[head]] = head;
        if (head == 0)
            job->children = tail - 1;
    }
    job->subtree_size = tail;
    if (column && !job->senders[job->lid] && (job->listed[job->lid] += tail) > f->switches / 4)
        count_senders(job, column);
    for (int32_t i = 0; i < tail; i++)
        job->flow[i] = f->sources[job->queue[i]] * f->weight[job->lid];
    for (int32_t i = tail - 1; i > 0; i--)
        job->flow[job->parent[i]] += job->flow[i];
}

void ibn_repair_collect_vls(repair_state *job)
{
    for (int32_t i = 0; i < job->subtree_size; i++)
        job->vls[i] = job->f->vls ? (uint16_t)ibn_repair_vls_of(job, job->queue[i]) : 0;
    for (int32_t i = job->subtree_size - 1; i > 0; i--)
        job->vls[job->parent[i]] |= job->vls[i];
}

void ibn_repair_collect_subtree(repair_state *job, int32_t root)
{
    ibn_repair_collect_flow(job, root);
    ibn_repair_collect_vls(job);
}

/* Write the CDG edges of the path from channel c to the current LID to `steps`, from index `count` on.  Returns the
 * index after the last edge. */
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count)
{
    const repair_fabric *f = job->f;
    for (int32_t s = f->dst[c]; s != job->target; s = f->dst[c]) {
        const int32_t next = ibn_repair_next_channel(job, s);
        job->steps[count++] = (acyclic_step){c, job->graph.turn_first[c] + next - f->first[s]};
        c = next;
    }
    return count;
}

/* Remove the CDG edges that were added in the last attempt to find a path. */
void ibn_repair_undo(repair_state *job)
{
    while (job->added_count > 0) {
        const added_edge a = job->added[--job->added_count];
        ibn_core_acyclic_drop(&job->graph, a.dependency, a.vl);
    }
}

/* Record the blocked CDG edge with number `dependency`, if the CDG has edges that may be removed again (job->on_trial).
 * After the removal of such edges, the recorded edge has to be tested again.  If the record is full, unblock the edge
 * at once, so that it is tested again in any case. */
static void note_blocked(repair_state *job, int32_t dependency, int32_t vl)
{
    if (!job->on_trial)
        return;
    if (job->blocked_count < job->blocked_room)
        job->blocked_edges[job->blocked_count++] = (added_edge){dependency, vl};
    else
        job->graph.blocked[dependency] &= ~(UINT32_C(1) << vl);
}

/* Unblock all recorded CDG edges except the first `had`.  Other CDG edges have been removed, so the unblocked edges
 * may no longer close a cycle. */
void ibn_repair_unblock(repair_state *job, int32_t had)
{
    while (job->blocked_count > had) {
        const added_edge a = job->blocked_edges[--job->blocked_count];
        job->graph.blocked[a.dependency] &= ~(UINT32_C(1) << a.vl);
    }
}

/* Return whether a CDG edge, added alone, closes a cycle on a VL.  If so, mark the edge as blocked.  Two searches,
 * from both ends of the edge, find most cycles with little work. */
static bool closes_cycle(repair_state *job, acyclic_step step, int32_t vl)
{
    const int32_t s = job->f->dst[step.channel],
                  next = job->f->first[s] + step.dependency - job->graph.turn_first[step.channel];
    if (!ibn_core_acyclic_reaches(&job->graph, vl, next, step.channel))
        return false;
    job->graph.blocked[step.dependency] |= UINT32_C(1) << vl;
    note_blocked(job, step.dependency, vl);
    return true;
}

/* Add the first `count` edges of `steps` to the CDG of a VL, if all of them follow the present topological order.
 * Returns whether the edges were added. */
static bool add_monotone(repair_state *job, int32_t count, int32_t vl)
{
    const int32_t *place = job->graph.place[vl], *turn_first = job->graph.turn_first, *first = job->f->first;
    const int32_t before = job->added_count;
    for (int32_t i = 0; i < count; i++) {
        const acyclic_step step = job->steps[i];
        if (ibn_core_acyclic_has(&job->graph, step.dependency, vl))
            continue;
        if (place[step.channel]
            >= place[first[job->f->dst[step.channel]] + step.dependency - turn_first[step.channel]]) {
            job->added_count = before;
            return false;
        }
        job->added[job->added_count++] = (added_edge){step.dependency, vl};
    }
    for (int32_t i = before; i < job->added_count; i++)
        ibn_core_acyclic_put(&job->graph, job->added[i].dependency, vl);
    return true;
}

/* Add the first `count` edges of `steps` to the CDG of a VL, unless they would close a cycle.  Returns whether the
 * edges were added. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl)
{
    const uint32_t bit = UINT32_C(1) << vl;
    if (job->only_monotone)
        return add_monotone(job, count, vl);
    const int32_t before = job->added_count;
    for (int32_t i = 0; i < count; i++) {
        if (job->graph.blocked[job->steps[i].dependency] & bit) {
            job->added_count = before;
            return false;
        }
        if (!ibn_core_acyclic_has(&job->graph, job->steps[i].dependency, vl))
            job->added[job->added_count++] = (added_edge){job->steps[i].dependency, vl};
    }
    for (int32_t i = 0; i < count && job->added_count > before; i++)
        if (!ibn_core_acyclic_has(&job->graph, job->steps[i].dependency, vl) && closes_cycle(job, job->steps[i], vl)) {
            job->added_count = before;
            return false;
        }
    if (job->added_count > before + 1 && ibn_core_acyclic_clash(&job->graph, vl, job->steps, count)) {
        job->added_count = before;
        return false;
    }
    if (ibn_core_acyclic_fits(&job->graph, vl, job->steps, count))
        return true;
    job->added_count = before;
    for (int32_t i = 0; i < count; i++)
        if (job->graph.blocked[job->steps[i].dependency] & bit)
            note_blocked(job, job->steps[i].dependency, vl);
    return false;
}
