/* Who could help a switch that finds no way, as far as it takes no search to tell: see internal/mend.h. */
#include "internal/mend.h"

/* Whether a turn from one channel into another may be taken on all of these VLs, as far as that takes no search. */
static bool may_turn(const mend_job *job, uint32_t lanes, int32_t c, int32_t next)
{
    const int32_t turn = job->graph.turn_first[c] + next - job->f->first[job->f->dst[c]];
    bool out = false;
    for (; lanes && !out; lanes &= lanes - 1)
        out = ibn_mend_is_out(job, (acyclic_step){c, turn}, next, __builtin_ctz(lanes));
    return !out;
}

/* How many of those that hang directly on the first in the queue cannot follow it into channel c, two at most; *who: one. */
static int32_t hindrances(const mend_job *job, int32_t c, int32_t *who)
{
    int32_t count = 0;
    for (int32_t i = 1; count < 2 && i <= job->children; i++)
        if (!may_turn(job, job->lanes[i], job->through[i], c)) {
            *who = job->queue[i];
            count++;
        }
    return count;
}

/* Note who could help the first in the queue to channel c by another way, where only turns are taken that climb: who is
 * alone in its way there; or the switch behind c; or, if that is cut off, whoever it hangs on. */
static void note_helpers(mend_job *job, int32_t c, int32_t count, int32_t who)
{
    int32_t v = job->f->dst[c];
    if (job->cut_off[v] != job->stamp) {
        if (count == 0)
            job->helps[v] = job->rescue;
        else if (v == job->target || may_turn(job, job->lanes[0], c, ibn_mend_channel(job, v)))
            job->helps[who] = job->rescue;
        return;
    }
    for (; v != job->queue[0] && ibn_mend_entry(job, v) != NO_ROUTE; v = job->f->dst[ibn_mend_channel(job, v)])
        if (count == 0 || v == who)
            job->helps[v] = job->rescue;
}

/* Note who could help the first in the queue, as far as that takes no search; whether anyone could. */
bool ibn_mend_note_helpers(mend_job *job)
{
    const repair_fabric *f = job->f;
    const int32_t u = job->queue[0];
    bool anyone = job->free_lanes;
    job->rescue++;
    for (int32_t c = f->first[u]; c < f->first[u + 1] && !anyone; c++) {
        int32_t who = -1;
        const int32_t count = f->alive[c] ? hindrances(job, c, &who) : 2;
        anyone = count == 0 && !job->only_climbing;
        if (count < 2 && job->only_climbing)
            note_helpers(job, c, count, who);
        else if (count == 1)
            job->helps[who] = job->rescue;
    }
    return anyone;
}

/* Whether a root may come to a switch that is not cut off, and go on by channel next there, as far as turns have to climb. */
bool ibn_mend_may_follow(const mend_job *job, int32_t root, int32_t x, int32_t next)
{
    const repair_fabric *f = job->f;
    bool may = !job->only_climbing;
    for (int32_t c = f->first[root]; c < f->first[root + 1] && !may; c++)
        may = f->alive[c] && f->dst[c] == x && may_turn(job, job->wanted, c, next);
    return may;
}
