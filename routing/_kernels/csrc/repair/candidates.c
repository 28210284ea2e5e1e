/* Find switches that could free a path for a disconnected switch by taking another path.  The functions use quick tests
 * without a cycle search, so that fewer moves are tried in vain.  The terms are explained in
 * internal/repair_state.h. */
#include "repair/internal/repair_state.h"

/* Return whether the CDG edge from channel c to channel `next` may be possible on all VLs in the set `vls` (bits).
 * The edge is not possible on a VL where it is known to close a cycle. */
static bool may_turn(const repair_state *job, uint32_t vls, int32_t c, int32_t next)
{
    const int32_t dependency = job->graph.turn_first[c] + next - job->f->first[job->f->dst[c]];
    bool out = false;
    for (; vls && !out; vls &= vls - 1)
        out = ibn_repair_is_excluded(job, (acyclic_step){c, dependency}, next, __builtin_ctz(vls));
    return !out;
}

/* Count the switches that send directly to the disconnected switch, and whose packets cannot continue on channel c.
 * This is so if the CDG edge from the channel of such a switch to channel c is known to close a cycle.  The count ends
 * at two.  *who receives the last counted switch. */
static int32_t hindrances(const repair_state *job, int32_t c, int32_t *who)
{
    int32_t count = 0;
    for (int32_t i = 1; count < 2 && i <= job->children; i++)
        if (!may_turn(job, job->vls[i], job->through[i], c)) {
            *who = job->queue[i];
            count++;
        }
    return count;
}

/* Mark in can_help the switches that could let the disconnected switch use channel c by taking another path.  `count`
 * is the result of the function hindrances.  If the packets of only one switch (`who`) cannot continue on channel c,
 * this switch is marked.  Otherwise the switch at the end of c is marked.  If that switch is cut off from the LID, the
 * switches on its path are marked.  The function is used only while paths must follow the topological order. */
static void note_helpers(repair_state *job, int32_t c, int32_t count, int32_t who)
{
    int32_t v = job->f->dst[c];
    if (job->cut_off[v] != job->stamp) {
        if (count == 0)
            job->can_help[v] = job->displacement;
        else if (v == job->target || may_turn(job, job->vls[0], c, ibn_repair_next_channel(job, v)))
            job->can_help[who] = job->displacement;
        return;
    }
    for (; v != job->queue[0] && ibn_repair_entry(job, v) != NO_ROUTE; v = job->f->dst[ibn_repair_next_channel(job, v)])
        if (count == 0 || v == who)
            job->can_help[v] = job->displacement;
}

/* Mark in can_help the switches that could free a path for the disconnected switch by taking another path.  Returns
 * true if the marks cannot be relied on, so that unmarked switches must be tried too. */
bool ibn_repair_note_displaceable(repair_state *job)
{
    const repair_fabric *f = job->f;
    const int32_t u = job->queue[0];
    bool anyone = job->sls_may_change;
    job->displacement++;
    for (int32_t c = f->first[u]; c < f->first[u + 1] && !anyone; c++) {
        int32_t who = -1;
        const int32_t count = f->alive[c] ? hindrances(job, c, &who) : 2;
        anyone = count == 0 && !job->only_monotone;
        if (count < 2 && job->only_monotone)
            note_helpers(job, c, count, who);
        else if (count == 1)
            job->can_help[who] = job->displacement;
    }
    return anyone;
}

/* Return whether a disconnected switch might use a path over switch x and channel `next`.  While paths must follow the
 * topological order, the CDG edges to `next` from the channels that lead from the disconnected switch to x are tested,
 * without a cycle search.  Otherwise the result is true. */
bool ibn_repair_may_follow(const repair_state *job, int32_t root, int32_t x, int32_t next)
{
    const repair_fabric *f = job->f;
    bool may = !job->only_monotone;
    for (int32_t c = f->first[root]; c < f->first[root + 1] && !may; c++)
        may = f->alive[c] && f->dst[c] == x && may_turn(job, job->required_vls, c, next);
    return may;
}
