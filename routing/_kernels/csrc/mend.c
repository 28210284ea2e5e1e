/* What hangs on a switch towards a LID, and whether turns close a cycle: see internal/mend.h. */
#include "internal/mend.h"

/* Remember what a switch had in the column at hand before anything was changed there. */
void ibn_mend_keep(mend_job *job, int32_t s)
{
    if (job->touched[s] == job->column)
        return;
    const int64_t at = (int64_t)s * job->f->lids + job->lid;
    job->touched[s] = job->column;
    job->kept[job->kept_count++] = (kept_entry){s, job->lft[at], job->f->sl_by_switch ? job->sl[at] : 0};
}

void ibn_mend_set(mend_job *job, int32_t s, uint8_t port)
{
    ibn_mend_keep(job, s);
    job->lft[(int64_t)s * job->f->lids + job->lid] = port;
    job->taken[s].column = 0;
}

/* Put back what the column at hand was. */
void ibn_mend_restore(mend_job *job)
{
    for (int32_t i = 0; i < job->kept_count; i++) {
        const int64_t at = (int64_t)job->kept[i].at * job->f->lids + job->lid;
        job->lft[at] = job->kept[i].entry;
        job->taken[job->kept[i].at].column = 0;
        if (job->f->sl_by_switch)
            job->sl[at] = job->kept[i].level;
    }
}

static uint32_t lanes_of_replies(const mend_job *job, int32_t s)
{
    const repair_fabric *f = job->f;
    const uint8_t *sl = job->sl + (f->sl_by_switch ? (int64_t)job->target * f->lids : 0);
    const bool mute = f->endports_only && f->lid_port[job->lid] == 0;
    uint32_t lanes = 0;
    for (int32_t i = f->lids_at_first[s]; i < f->lids_at_first[s + 1]; i++)
        if (!mute || f->lid_port[f->lids_at[i]])
            lanes |= f->vl_bit[sl[f->lids_at[i]]];
    return lanes;
}

/* VLs on which a switch, and all that is cabled to it, sends to the LID at hand. */
uint32_t ibn_mend_lanes_of(const mend_job *job, int32_t s)
{
    const repair_fabric *f = job->f;
    const bool mute = f->endports_only && f->lid_port[job->lid] == 0 && !f->has_endport[s];
    const int64_t row = f->sl_by_switch ? (int64_t)s * f->lids : 0;
    uint32_t lanes = mute ? 0 : f->vl_bit[job->sl[row + job->lid]];
    return f->replies ? lanes | lanes_of_replies(job, s) : lanes;
}

/* Queue a switch and all whose ways lead through it. */
void ibn_mend_gather(mend_job *job, int32_t root)
{
    const repair_fabric *f = job->f;
    int32_t tail = 0;
    job->queue[tail++] = root;
    for (int32_t head = 0; head < tail; head++) {
        const int32_t u = job->queue[head];
        for (int32_t i = f->into_first[u]; i < f->into_first[u + 1]; i++) {
            const int32_t e = f->into[i], y = f->src[e];
            if (ibn_mend_channel(job, y) != e)
                continue;
            job->through[tail] = e;
            job->queue[tail++] = y;
        }
        job->place[u] = head;
        if (head == 0)
            job->children = tail - 1;
    }
    job->hanging = tail;
    for (int32_t i = 0; i < tail; i++) {
        job->lanes[i] = f->vls ? (uint16_t)ibn_mend_lanes_of(job, job->queue[i]) : 0;
        job->flow[i] = f->sources[job->queue[i]] * f->weight[job->lid];
    }
    for (int32_t i = tail - 1; i > 0; i--) {
        const int32_t parent = job->place[f->dst[job->through[i]]];
        job->lanes[parent] |= job->lanes[i];
        job->flow[parent] += job->flow[i];
    }
}

/* The turns behind channel c, put after `count` others; how many there are then. */
int32_t ibn_mend_trunk(mend_job *job, int32_t c, int32_t count)
{
    const repair_fabric *f = job->f;
    for (int32_t s = f->dst[c]; s != job->target; s = f->dst[c]) {
        const int32_t next = ibn_mend_channel(job, s);
        job->steps[count++] = (acyclic_step){c, job->graph.turn_first[c] + next - f->first[s]};
        c = next;
    }
    return count;
}

/* Take out what the last attempt put in. */
void ibn_mend_take_back(mend_job *job)
{
    while (job->fresh_count > 0) {
        const admitted a = job->fresh[--job->fresh_count];
        job->graph.used[a.turn] &= ~(UINT32_C(1) << a.lane);
    }
}

/* Remember a turn that closes a cycle while something is in on trial; without room for that, the cycle is forgotten. */
static void note_shut(mend_job *job, int32_t turn, int32_t lane)
{
    if (!job->on_trial)
        return;
    if (job->shut_count < job->shut_room)
        job->shut[job->shut_count++] = (admitted){turn, lane};
    else
        job->graph.blocked[turn] &= ~(UINT32_C(1) << lane);
}

/* Forget the turns that were found to close a cycle since there were `had` of them. */
void ibn_mend_open_again(mend_job *job, int32_t had)
{
    while (job->shut_count > had) {
        const admitted a = job->shut[--job->shut_count];
        job->graph.blocked[a.turn] &= ~(UINT32_C(1) << a.lane);
    }
}

/* Whether a turn closes a cycle by itself.  Most that do are found out here, since that is looked for from both ends. */
static bool is_shut(mend_job *job, acyclic_step step, int32_t lane)
{
    const int32_t s = job->f->dst[step.channel], next = job->f->first[s] + step.turn - job->graph.turn_first[step.channel];
    if (!ibn_acyclic_reaches(&job->graph, lane, next, step.channel))
        return false;
    job->graph.blocked[step.turn] |= UINT32_C(1) << lane;
    note_shut(job, step.turn, lane);
    return true;
}

/* Whether `count` steps climb on a VL in the order as it is; they are in then. */
static bool climb(mend_job *job, int32_t count, int32_t lane)
{
    const int32_t *place = job->graph.place[lane], *turn_first = job->graph.turn_first, *first = job->f->first;
    const int32_t before = job->fresh_count;
    for (int32_t i = 0; i < count; i++) {
        const acyclic_step step = job->steps[i];
        if (job->graph.used[step.turn] >> lane & 1)
            continue;
        if (place[step.channel] >= place[first[job->f->dst[step.channel]] + step.turn - turn_first[step.channel]]) {
            job->fresh_count = before;
            return false;
        }
        job->fresh[job->fresh_count++] = (admitted){step.turn, lane};
    }
    for (int32_t i = before; i < job->fresh_count; i++)
        job->graph.used[job->fresh[i].turn] |= UINT32_C(1) << lane;
    return true;
}

/* Whether `count` steps fit on a VL; they are in then. */
bool ibn_mend_fits(mend_job *job, int32_t count, int32_t lane)
{
    const uint32_t bit = UINT32_C(1) << lane;
    if (job->only_climbing)
        return climb(job, count, lane);
    const int32_t before = job->fresh_count;
    for (int32_t i = 0; i < count; i++) {
        if (job->graph.blocked[job->steps[i].turn] & bit)
            return false;
        if (!(job->graph.used[job->steps[i].turn] & bit))
            job->fresh[job->fresh_count++] = (admitted){job->steps[i].turn, lane};
    }
    for (int32_t i = 0; i < count && job->fresh_count > before; i++)
        if (!(job->graph.used[job->steps[i].turn] & bit) && is_shut(job, job->steps[i], lane)) {
            job->fresh_count = before;
            return false;
        }
    if (job->fresh_count > before + 1 && ibn_acyclic_clash(&job->graph, lane, job->steps, count)) {
        job->fresh_count = before;
        return false;
    }
    if (ibn_acyclic_fits(&job->graph, lane, job->steps, count))
        return true;
    job->fresh_count = before;
    for (int32_t i = 0; i < count; i++)
        if (job->graph.blocked[job->steps[i].turn] & bit)
            note_shut(job, job->steps[i].turn, lane);
    return false;
}
