/* One column of the repair: each hole looks for a way of its own, then with the help of others, then on other VLs. */
#include "internal/mend.h"

#include <string.h>

enum { RESCUERS = 32, CLIMBING_RESCUES = 400, MORE_HOPS = 2 };

/* Hops from a switch to the LID, or -1: it is cut off. */
static int32_t hops_from(mend_job *job, int32_t s)
{
    int32_t at = s, count = 0, left = job->f->switches;
    while (at != job->target && job->known[at] != job->stamp) {
        const int32_t c = job->cut_off[at] == job->stamp ? -1 : ibn_mend_channel(job, at);
        if (c < 0 || left-- == 0)
            return -1;
        at = job->f->dst[c];
        count++;
    }
    const int32_t total = count + (at == job->target ? 0 : job->hops[at]);
    for (; s != at; s = job->f->dst[ibn_mend_channel(job, s)]) {
        job->known[s] = job->stamp;
        job->hops[s] = at == job->target ? count : count + job->hops[at];
        count--;
    }
    return total;
}

static bool is_better(const way_out *a, const way_out *b)
{
    if (a->old != b->old)
        return a->old;
    if (a->near != b->near)
        return a->near;
    if (a->near && a->fullest != b->fullest)
        return a->fullest < b->fullest;
    if (a->hops != b->hops)
        return a->hops < b->hops;
    return a->fullest != b->fullest ? a->fullest < b->fullest : a->channel < b->channel;
}

/* The fullest channel of a way that begins with c; where a column is laid anew, c alone counts. */
static int64_t fullest_along(const mend_job *job, int32_t c)
{
    const repair_fabric *f = job->f;
    int64_t fullest = job->load[c] * f->slowness[c];
    while (job->wish && f->dst[c] != job->target) {
        c = ibn_mend_channel(job, f->dst[c]);
        const int64_t full = job->load[c] * f->slowness[c];
        fullest = full > fullest ? full : fullest;
    }
    return fullest;
}

/* Tell the ways that are hardly longer than the shortest; a column that is laid anew takes the shortest alone. */
static void tell_near(mend_job *job, int32_t count)
{
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < count; i++)
        least = job->ways[i].hops < least ? job->ways[i].hops : least;
    for (int32_t i = 0; i < count; i++)
        job->ways[i].near = job->ways[i].hops <= least + (job->wish ? MORE_HOPS : 0);
}

/* The channels by which a switch could go, of `level` hops (0: of any number); *next: the least number above. */
static int32_t ways_out(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    const repair_fabric *f = job->f;
    const uint8_t wished = job->wish ? job->wish[(int64_t)u * f->lids + job->lid] : NO_ROUTE;
    int32_t count = 0;
    for (int32_t c = f->first[u]; c < f->first[u + 1]; c++) {
        if (!f->alive[c] || job->cut_off[f->dst[c]] == job->stamp)
            continue;
        const int32_t further = hops_from(job, f->dst[c]);
        if (further < 0)
            continue;
        if (level == 0 || further + 1 == level)
            job->ways[count++] = (way_out){c, further + 1, fullest_along(job, c), wished == f->port[c], false};
        else if (further + 1 > level && further + 1 < *next)
            *next = further + 1;
    }
    tell_near(job, count);
    return count;
}

static void add_flow(mend_job *job, int32_t s, int64_t flow)
{
    while (s != job->target) {
        const int32_t c = ibn_mend_channel(job, s);
        job->load[c] += flow;
        s = job->f->dst[c];
    }
}

/* Let a switch take the best of `count` ways out that is allowed. */
static bool take_best(mend_job *job, int32_t u, int32_t count)
{
    for (; count > 0; count--) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            best = is_better(&job->ways[i], &job->ways[best]) ? i : best;
        const way_out way = job->ways[best];
        job->ways[best] = job->ways[count - 1];
        job->ways[count - 1] = way;
        if (!ibn_mend_admits(job, way.channel))
            continue;
        ibn_mend_set(job, u, job->f->port[way.channel]);
        return true;
    }
    return false;
}

/* What is queued is cut off no longer. */
static void let_in(mend_job *job)
{
    for (int32_t i = 0; i < job->hanging; i++)
        job->cut_off[job->queue[i]] = 0;
}

/* Let a switch take the best of its ways out that is allowed; what hangs on it is cut off no longer. */
static bool attach(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    if (!job->on_trial)
        job->shifted_count = 0;
    const int32_t count = ways_out(job, u, level, next);
    if (count == 0)
        return false;
    ibn_mend_gather(job, u);
    if (!take_best(job, u, count))
        return false;
    let_in(job);
    add_flow(job, u, job->flow[0]);
    return true;
}

/* Attach the roots, those that come nearest first; how many are left. */
static int32_t attach_all(mend_job *job, int32_t count)
{
    int32_t level = 1, ignored = INT32_MAX;
    /* One alone waits for no other, so longer ways are open to it at once. */
    if (count == 1 && job->wish)
        return !attach(job, job->roots[0], 0, &ignored);
    while (count > 0 && level < INT32_MAX) {
        int32_t next = INT32_MAX, left = 0;
        for (int32_t i = 0; i < count; i++)
            if (!attach(job, job->roots[i], level, &next))
                job->roots[left++] = job->roots[i];
        /* Whoever has come in gives others a way that is one hop longer. */
        level = left < count ? level + 1 : next;
        count = left;
    }
    return count;
}

static void cut(mend_job *job, int32_t root)
{
    ibn_mend_gather(job, root);
    for (int32_t i = 0; i < job->hanging; i++) {
        job->cut_off[job->queue[i]] = job->stamp;
        job->known[job->queue[i]] = 0;
    }
}

/* Whether a root finds a way now that the last attempt has given another switch one, on trial. */
static bool follows(mend_job *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    const int32_t tried = job->fresh_count;
    admitted *trial = job->fresh;
    job->fresh = job->spare;
    job->spare = trial;
    job->on_trial = true;
    job->shut_count = 0;
    const bool found = attach(job, root, 0, &ignored);
    job->on_trial = false;
    if (found)
        return true;
    job->spare = job->fresh;
    job->fresh = trial;
    job->fresh_count = tried;
    ibn_mend_take_back(job);
    ibn_mend_open_again(job, 0);
    return false;
}

static void shift_back(mend_job *job)
{
    while (job->shifted_count > 0) {
        const kept_entry k = job->shifted[--job->shifted_count];
        job->sl[(int64_t)k.at * job->f->lids + job->lid] = k.level;
    }
}

/* Whether a root finds a way once x, which hangs on it or lies next to it, takes another.  If not, all is as before. */
static bool rescued_by(mend_job *job, int32_t root, int32_t x)
{
    int32_t ignored = INT32_MAX;
    const uint8_t held = ibn_mend_entry(job, x);
    const bool hung = job->cut_off[x] == job->stamp;
    const int32_t strays = job->stray_count;
    if (hung)
        ibn_mend_gather(job, x);
    else
        cut(job, x);
    ibn_mend_set(job, x, NO_ROUTE);
    const int32_t count = ways_out(job, x, 0, &ignored);
    memcpy(job->others, job->ways, (size_t)count * sizeof *job->others);
    for (int32_t i = 0; i < count; i++) {
        job->shifted_count = 0;
        const int32_t c = job->others[i].channel;
        if (job->f->port[c] == held || (!hung && !ibn_mend_may_follow(job, root, x, c)) || !ibn_mend_admits(job, c))
            continue;
        ibn_mend_set(job, x, job->f->port[c]);
        let_in(job);
        const int64_t flow = job->flow[0];
        add_flow(job, x, flow);
        if (follows(job, root))
            return true;
        add_flow(job, x, -flow);
        ibn_mend_set(job, x, NO_ROUTE);
        shift_back(job);
        ibn_mend_call_back(job, strays);
        cut(job, x);
    }
    ibn_mend_set(job, x, held);
    if (!hung) {
        ibn_mend_gather(job, x);
        let_in(job);
    }
    return false;
}

static bool is_rescued_by(mend_job *job, int32_t root, int32_t x)
{
    /* Another root looks for a way itself, and would do so again once it is in: its way could lead back to it. */
    if (x == job->target || x == root || ibn_mend_entry(job, x) == NO_ROUTE || job->graph.visited > job->patience)
        return false;
    /* Without searches there is nothing else to tell that it takes too long. */
    if ((job->only_climbing && ++job->rescues > CLIMBING_RESCUES) || !rescued_by(job, root, x))
        return false;
    job->helper[root] = x + 1;
    return true;
}

/* A root that finds no way: another switch of its tree may, or a neighbour may take another, and give it one. */
static bool rescue(mend_job *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const int32_t last = job->helper[root] - 1;
    ibn_mend_gather(job, root);
    const int32_t count = job->hanging < RESCUERS ? job->hanging : RESCUERS;
    memcpy(job->members, job->queue, (size_t)count * sizeof *job->members);
    job->wanted = job->lanes[0];
    const bool anyone = ibn_mend_note_helpers(job);
    const int32_t number = job->rescue;
    if (last >= 0 && f->part[last] == f->part[root] && (anyone || job->helps[last] == number)
        && is_rescued_by(job, root, last))
        return true;
    for (int32_t i = 1; i < count; i++)
        if (job->members[i] != last && (anyone || job->helps[job->members[i]] == number)
            && is_rescued_by(job, root, job->members[i]))
            return true;
    for (int32_t c = f->first[root]; c < f->first[root + 1]; c++)
        if (f->alive[c] && job->cut_off[f->dst[c]] != job->stamp && f->dst[c] != last
            && (anyone || job->helps[f->dst[c]] == number) && is_rescued_by(job, root, f->dst[c]))
            return true;
    return false;
}

/* Rescue roots for as long as that helps; how many are left. */
static int32_t rescue_all(mend_job *job, int32_t count)
{
    for (bool helped = true; helped && count > 0;) {
        helped = false;
        for (int32_t i = count - 1; i >= 0 && !helped; i--)
            if (rescue(job, job->roots[i])) {
                memmove(job->roots + i, job->roots + i + 1, (size_t)(count - 1 - i) * sizeof *job->roots);
                count = attach_all(job, count - 1);
                helped = true;
            }
    }
    return count;
}

/* Whether trees may change their SLs part by part, and there is still time for it. */
static bool may_scatter(const mend_job *job)
{
    return job->f->by_parts && job->f->sl_by_switch && !job->f->replies && job->parts_patience > 0;
}

/* Let trees change their SLs part by part, all of them but `strays`. */
static void begin_parts(mend_job *job, int32_t strays)
{
    job->free_lanes = job->scatters = true;
    job->most_strays = strays < MOST_STRAYS ? strays : MOST_STRAYS;
    job->patience = job->graph.visited + PATIENCE;
    job->parts_patience += job->graph.visited;
}

static void end_parts(mend_job *job)
{
    job->free_lanes = job->scatters = false;
    job->most_strays = 0;
    job->parts_patience -= job->graph.visited;
}

/* Roots may change SLs, if nothing else helps: all that goes on a VL together, then each part by itself; how many are
 * left. */
static int32_t attach_on_other_lanes(mend_job *job, int32_t count)
{
    if (count == 0 || !job->f->sl_by_switch || job->f->replies)
        return count;
    job->free_lanes = true;
    count = rescue_all(job, attach_all(job, count));
    job->free_lanes = false;
    if (count > 0 && may_scatter(job)) {
        const int32_t had = count;
        begin_parts(job, 0);
        count = rescue_all(job, attach_all(job, count));
        end_parts(job);
        job->counts[BY_PARTS] += had - count;
    }
    return count;
}

void ibn_mend_begin(mend_job *job, int32_t lid)
{
    job->lid = lid;
    job->stray_count = 0;
    job->target = job->f->lid_switch[lid];
    job->stamp++;
}

/* Whether a piece may keep the entry that it had, on another VL if need be. */
static bool keeps_entry(mend_job *job, int32_t root)
{
    const repair_fabric *f = job->f;
    const uint8_t port = job->wish ? job->wish[(int64_t)root * f->lids + job->lid] : NO_ROUTE;
    const int32_t c = f->at_port[(int64_t)root * 256 + port];
    if (c < 0 || !f->alive[c] || hops_from(job, f->dst[c]) < 0)
        return false;
    ibn_mend_gather(job, root);
    job->free_lanes = f->sl_by_switch && !f->replies;
    job->shifted_count = 0;
    const bool admitted = ibn_mend_admits(job, c);
    job->free_lanes = false;
    if (!admitted)
        return false;
    ibn_mend_set(job, root, port);
    let_in(job);
    add_flow(job, root, job->flow[0]);
    return true;
}

/* Whether one of its tree, or a neighbour, or another VL lets a root in. */
static bool is_let_in(mend_job *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    if (keeps_entry(job, root))
        return true;
    if (attach(job, root, 0, &ignored) || rescue(job, root))
        return true;
    if (!job->f->sl_by_switch || job->f->replies)
        return false;
    job->free_lanes = true;
    const bool found = attach(job, root, 0, &ignored);
    job->free_lanes = false;
    return found;
}

/* One that finds no way leaves behind what hangs on it, and those look for their own. */
static int32_t split(mend_job *job, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        ibn_mend_gather(job, job->roots[i]);
        if (job->children == 0)
            continue;
        memmove(job->roots + i + 1 + job->children, job->roots + i + 1, (size_t)(count - i - 1) * sizeof *job->roots);
        for (int32_t k = 1; k <= job->children; k++) {
            job->roots[i + k] = job->queue[k];
            ibn_mend_set(job, job->queue[k], NO_ROUTE);
        }
        return count + job->children;
    }
    return -1;
}

/* Whether a root finds a way on other VLs for all that hangs on it but a few, `most` in the column. */
static bool is_let_in_without(mend_job *job, int32_t root, int32_t most)
{
    int32_t ignored = INT32_MAX;
    begin_parts(job, most);
    const bool found = attach(job, root, 0, &ignored) || rescue(job, root);
    end_parts(job);
    return found;
}

/* One that finds no way leaves those behind that keep it from one, as few as will do; they look for their own then.  How
 * many roots there are then, -1: that helps none. */
static int32_t leave_behind(mend_job *job, int32_t count)
{
    static const int32_t more[] = {1, 3, 8};
    const int32_t had = job->stray_count;
    int32_t found = -1;
    for (size_t k = 0; k < sizeof more / sizeof *more && had < MOST_STRAYS && found < 0; k++)
        for (int32_t i = 0; i < count && found < 0 && may_scatter(job); i++)
            found = is_let_in_without(job, job->roots[i], had + more[k]) ? i : -1;
    if (found < 0)
        return -1;
    const int32_t strays = job->stray_count - had;
    job->counts[BY_PARTS]++;
    memmove(job->roots + found + strays, job->roots + found + 1, (size_t)(count - found - 1) * sizeof *job->roots);
    for (int32_t k = 0; k < strays; k++)
        job->roots[found + k] = job->strays[had + k].at;
    return count - 1 + strays;
}

/* Split the trees of roots as far as it takes; how many find no way even so. */
static int32_t attach_pieces(mend_job *job, int32_t count)
{
    while (count > 0) {
        int32_t left = 0;
        for (int32_t i = 0; i < count; i++)
            if (!is_let_in(job, job->roots[i]))
                job->roots[left++] = job->roots[i];
        const bool stuck = left == count;
        count = left;
        if (stuck && (count = leave_behind(job, left)) < 0 && (count = split(job, left)) < 0)
            return left;
    }
    return 0;
}

/* All that is cut off looks for a way by itself, at last on any VL. */
static bool lift(mend_job *job)
{
    int32_t count = 0;
    for (int32_t s = 0; s < job->f->switches; s++)
        if (job->cut_off[s] == job->stamp) {
            ibn_mend_set(job, s, NO_ROUTE);
            job->roots[count++] = s;
        }
    count = attach_all(job, count);
    count = rescue_all(job, count);
    return attach_on_other_lanes(job, count) == 0;
}

static void take_holes(mend_job *job, const int32_t *holes, int32_t count)
{
    ibn_mend_begin(job, job->lid);
    memcpy(job->roots, holes, (size_t)count * sizeof *holes);
    for (int32_t i = 0; i < count; i++)
        cut(job, holes[i]);
}

/* Fill the holes by ways that climb in the order as it is: these need no search. */
static bool climbs(mend_job *job, const int32_t *holes, int32_t count)
{
    /* Where SLs may change instead, that is the lesser change. */
    if (!job->f->climb_first || job->steep[job->target] || (job->f->sl_by_switch && !job->f->replies))
        return false;
    take_holes(job, holes, count);
    job->only_climbing = true;
    job->rescues = 0;
    const int32_t left = attach_pieces(job, rescue_all(job, attach_all(job, count)));
    job->only_climbing = false;
    if (left == 0)
        return true;
    job->steep[job->target] = 1;
    ibn_mend_restore(job);
    return false;
}

/* Fill the holes of a column. */
bool ibn_mend_column(mend_job *job, const int32_t *holes, int32_t count)
{
    if (climbs(job, holes, count))
        return true;
    take_holes(job, holes, count);
    const int32_t left = rescue_all(job, attach_all(job, count));
    return attach_pieces(job, attach_on_other_lanes(job, left)) == 0;
}

/* All entries of a column from nothing. */
bool ibn_mend_anew(mend_job *job)
{
    ibn_mend_begin(job, job->lid);
    for (int32_t s = 0; s < job->f->switches; s++)
        if (s != job->target && job->f->part[s] == job->f->part[job->target])
            job->cut_off[s] = job->stamp;
    return lift(job);
}

/* Take the load of the column away. */
void ibn_mend_lift_flow(mend_job *job)
{
    ibn_mend_begin(job, job->lid);
    for (int32_t s = 0; s < job->f->switches; s++)
        if (job->f->sources[s] && hops_from(job, s) >= 0)
            add_flow(job, s, -job->f->sources[s] * job->f->weight[job->lid]);
}
