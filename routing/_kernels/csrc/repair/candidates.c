/* Find switches whose move to another path could free a path for a disconnected switch.  The functions use quick tests
 * without a cycle search, so that fewer moves are tried in vain.  The terms are explained in
 * internal/repair_state.h. */
#include "repair/internal/repair_state.h"

/* Return false if the CDG edge from channel c to channel `next` is known to be impossible on at least one VL in the set
 * `vls` (bits).  Otherwise return true.  An edge is impossible on a VL if it closes a cycle there.  While paths must
 * follow the topological order, an edge against this order is impossible too. */
static bool may_turn(const repair_state *job, uint32_t vls, int32_t c, int32_t next)
{
    const int32_t dependency = job->graph.turn_first[c] + next - job->f->first[job->f->dst[c]];
    bool out = false;
    for (; vls && !out; vls &= vls - 1)
        out = ibn_repair_is_excluded(job, (acyclic_step){c, dependency}, next, __builtin_ctz(vls));
    return !out;
}

/* Count the neighbours whose packets hinder the disconnected switch from taking channel c.  Such a neighbour sends over
 * some channel directly to the disconnected switch.  The CDG edge from this channel to channel c is known to be
 * impossible.  The function stops when it has counted two neighbours.  *who receives the last counted neighbour. */
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

/* Mark in can_help the switches whose move to another path could let the disconnected switch use channel c.  `count` is
 * the number of neighbours that hinder this (0 or 1), and `who` is this neighbour: see the function hindrances.  Let v
 * be the switch where channel c ends.
 *
 * First case: v has a path to the LID.  If no neighbour hinders, v is marked.  If a neighbour hinders, this neighbour
 * is marked, unless the CDG edge from c to the next channel of v is impossible too.
 *
 * Second case: v is cut off from the LID, because its path leads to a switch whose LFT entry is missing.  If no
 * neighbour hinders, all switches on this path that have an LFT entry are marked.  If a neighbour hinders, this
 * neighbour is marked, but only if it is one of these switches.
 *
 * The function is used only while paths must follow the topological order. */
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

/* Mark in can_help the switches whose move to another path could free a path for the disconnected switch.  Returns true
 * if other switches could help too.  The caller then also tries the switches without a mark. */
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

/* Return whether the disconnected switch u might use a path that leads to switch x and continues on channel `next`.
 * If paths must follow the topological order, u needs a channel to x from which this order permits the CDG edge to
 * `next`, on all VLs in the set `vls` (bits).  Otherwise nothing is tested, and the result is true. */
bool ibn_repair_may_follow(const repair_state *job, int32_t u, int32_t x, int32_t next, uint32_t vls)
{
    const repair_fabric *f = job->f;
    bool may = !job->only_monotone;
    for (int32_t c = f->first[u]; c < f->first[u + 1] && !may; c++)
        may = f->alive[c] && f->dst[c] == x && may_turn(job, vls, c, next);
    return may;
}

/* Switch x in the subtree of the disconnected switch u is to take another path.  Return whether u could then reach the
 * LID only by a channel to x.  This is so if no other switch sends through x, and if all neighbours of u are cut off
 * from the LID.  The caller has listed the subtree of x.  The result is false if paths need not follow the topological
 * order. */
bool ibn_repair_must_follow(const repair_state *job, int32_t u)
{
    const repair_fabric *f = job->f;
    bool must = job->only_monotone && job->subtree_size == 1;
    for (int32_t c = f->first[u]; c < f->first[u + 1] && must; c++)
        must = !f->alive[c] || job->cut_off[f->dst[c]] == job->stamp;
    return must;
}
