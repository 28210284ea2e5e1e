/* One column of the repair: each hole looks for a way of its own, then with the help of others, then on other VLs. */
#include "internal/mend.h"

#include <string.h>

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
    count = ibn_mend_rescue_all(job, ibn_mend_attach_all(job, count));
    job->free_lanes = false;
    if (count > 0 && may_scatter(job)) {
        const int32_t had = count;
        begin_parts(job, 0);
        count = ibn_mend_rescue_all(job, ibn_mend_attach_all(job, count));
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
    if (c < 0 || !f->alive[c] || ibn_mend_hops(job, f->dst[c]) < 0)
        return false;
    ibn_mend_gather(job, root);
    job->free_lanes = f->sl_by_switch && !f->replies;
    job->shifted_count = 0;
    const bool admitted = ibn_mend_admits(job, c);
    job->free_lanes = false;
    if (!admitted)
        return false;
    ibn_mend_set(job, root, port);
    ibn_mend_let_in(job);
    ibn_mend_add_flow(job, root, job->flow[0]);
    return true;
}

/* Whether one of its tree, or a neighbour, or another VL lets a root in. */
static bool is_let_in(mend_job *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    if (keeps_entry(job, root))
        return true;
    if (ibn_mend_attach(job, root, 0, &ignored) || ibn_mend_rescue(job, root))
        return true;
    if (!job->f->sl_by_switch || job->f->replies)
        return false;
    job->free_lanes = true;
    const bool found = ibn_mend_attach(job, root, 0, &ignored);
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
    const bool found = ibn_mend_attach(job, root, 0, &ignored) || ibn_mend_rescue(job, root);
    end_parts(job);
    return found;
}

/* One that finds no way leaves those behind that keep it from one, as few as will do; they look for their own then.
 * How many roots there are then, -1: that helps none. */
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
    count = ibn_mend_attach_all(job, count);
    count = ibn_mend_rescue_all(job, count);
    return attach_on_other_lanes(job, count) == 0;
}

static void take_holes(mend_job *job, const int32_t *holes, int32_t count)
{
    ibn_mend_begin(job, job->lid);
    memcpy(job->roots, holes, (size_t)count * sizeof *holes);
    for (int32_t i = 0; i < count; i++)
        ibn_mend_cut(job, holes[i]);
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
    const int32_t left = attach_pieces(job, ibn_mend_rescue_all(job, ibn_mend_attach_all(job, count)));
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
    const int32_t left = ibn_mend_rescue_all(job, ibn_mend_attach_all(job, count));
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
        if (job->f->sources[s] && ibn_mend_hops(job, s) >= 0)
            ibn_mend_add_flow(job, s, -job->f->sources[s] * job->f->weight[job->lid]);
}
