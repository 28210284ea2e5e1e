/* Fills holes in forwarding tables without closing a credit loop: see repair.h. */
#include "repair.h"
#include "internal/mend.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { MEND, LAY_ANEW, LEAVE };
enum { NO_HOLE, MENDED, LAID_ANEW, FAILED };
enum { HOLES, FILLED, MOVED, VISITED };
enum { MOST_LANES = 16 };

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
    if (a->hops != b->hops)
        return a->hops < b->hops;
    if (a->old != b->old)
        return a->old;
    return a->load != b->load ? a->load < b->load : a->channel < b->channel;
}

/* The channels by which a switch could go, of `level` hops (0: of any number); *next: the least number above. */
static int32_t ways_out(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    for (int32_t c = f->first[u]; c < f->first[u + 1]; c++) {
        if (!f->alive[c] || job->cut_off[f->dst[c]] == job->stamp)
            continue;
        const int32_t further = hops_from(job, f->dst[c]);
        if (further < 0)
            continue;
        if (level == 0 || further + 1 == level)
            job->ways[count++] = (way_out){c, further + 1, job->load[c], job->column[u] == f->port[c]};
        else if (further + 1 > level && further + 1 < *next)
            *next = further + 1;
    }
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

/* Let a switch take the best of its ways out that is allowed; what hangs on it is cut off no longer. */
static bool attach(mend_job *job, int32_t u, int32_t level, int32_t *next)
{
    int32_t count = ways_out(job, u, level, next);
    if (count > 0)
        ibn_mend_gather(job, u);
    for (; count > 0; count--) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            best = is_better(&job->ways[i], &job->ways[best]) ? i : best;
        const int32_t c = job->ways[best].channel;
        job->ways[best] = job->ways[count - 1];
        if (!ibn_mend_admits(job, c))
            continue;
        *ibn_mend_entry(job, u) = job->f->port[c];
        for (int32_t i = 0; i < job->hanging; i++)
            job->cut_off[job->queue[i]] = 0;
        add_flow(job, u, job->flow[0]);
        return true;
    }
    return false;
}

/* Attach the roots, those that come nearest first; how many are left. */
static int32_t attach_all(mend_job *job, int32_t count)
{
    int32_t level = 1;
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

/* A root that finds no way: others of its tree may, and give it one. */
static bool rescue(mend_job *job, int32_t root)
{
    int32_t ignored = INT32_MAX;
    ibn_mend_gather(job, root);
    const int32_t count = job->hanging;
    memcpy(job->members, job->queue, (size_t)count * sizeof *job->members);
    for (int32_t i = 1; i < count; i++) {
        const int32_t x = job->members[i];
        if (job->cut_off[x] != job->stamp)
            continue;
        const uint8_t held = *ibn_mend_entry(job, x);
        *ibn_mend_entry(job, x) = NO_ROUTE;
        if (!attach(job, x, 0, &ignored))
            *ibn_mend_entry(job, x) = held;
        else if (attach(job, root, 0, &ignored))
            return true;
    }
    return false;
}

static void cut(mend_job *job, int32_t root)
{
    ibn_mend_gather(job, root);
    for (int32_t i = 0; i < job->hanging; i++)
        job->cut_off[job->queue[i]] = job->stamp;
}

static void begin(mend_job *job, int32_t lid)
{
    job->lid = lid;
    job->target = job->f->lid_switch[lid];
    job->stamp++;
}

static void keep_column(mend_job *job)
{
    for (int32_t s = 0; s < job->f->switches; s++)
        job->column[s] = *ibn_mend_entry(job, s);
}

static void restore_column(mend_job *job)
{
    for (int32_t s = 0; s < job->f->switches; s++)
        *ibn_mend_entry(job, s) = job->column[s];
}

static bool is_hole(const mend_job *job, int32_t s)
{
    return s != job->target && job->f->part[s] == job->f->part[job->target] && *ibn_mend_entry(job, s) == NO_ROUTE;
}

/* Fill the holes of a column one by one. */
static bool mend(mend_job *job, int32_t lid)
{
    int32_t holes = 0;
    begin(job, lid);
    for (int32_t s = 0; s < job->f->switches; s++)
        if (is_hole(job, s))
            job->roots[holes++] = s;
    for (int32_t i = 0; i < holes; i++)
        cut(job, job->roots[i]);
    int32_t left = attach_all(job, holes);
    while (left > 0) {
        const int32_t root = job->roots[left - 1];
        if (!rescue(job, root))
            return false;
        left = attach_all(job, left - 1);
    }
    return true;
}

/* All entries of a column from nothing. */
static bool lay_anew(mend_job *job, int32_t lid, bool stable)
{
    int32_t roots = 0;
    begin(job, lid);
    for (int32_t s = 0; s < job->f->switches; s++) {
        if (s == job->target || job->f->part[s] != job->f->part[job->target])
            continue;
        job->roots[roots++] = s;
        *ibn_mend_entry(job, s) = NO_ROUTE;
        job->cut_off[s] = job->stamp;
        if (!stable)
            job->column[s] = NO_ROUTE;
    }
    return attach_all(job, roots) == 0;
}

static void lift_flow(mend_job *job)
{
    begin(job, job->lid);
    for (int32_t s = 0; s < job->f->switches; s++)
        if (job->f->sources[s] && hops_from(job, s) >= 0)
            add_flow(job, s, -job->f->sources[s] * job->f->weight[job->lid]);
}

static void count_changes(mend_job *job, const uint8_t *before)
{
    for (int32_t s = 0; s < job->f->switches; s++) {
        const uint8_t now = *ibn_mend_entry(job, s);
        job->counts[FILLED] += before[s] == NO_ROUTE && now != NO_ROUTE;
        job->counts[MOVED] += before[s] != NO_ROUTE && now != before[s];
    }
}

static uint8_t treat(mend_job *job, int32_t lid, uint8_t lay, uint8_t *before)
{
    begin(job, lid);
    keep_column(job);
    memcpy(before, job->column, (size_t)job->f->switches);
    uint8_t done = FAILED;
    if (lay == MEND && mend(job, lid))
        done = MENDED;
    if (done == FAILED) {
        lift_flow(job);
        restore_column(job);
        if (lay_anew(job, lid, lay == MEND))
            done = LAID_ANEW;
    }
    if (done == FAILED) {
        memcpy(job->column, before, (size_t)job->f->switches);
        restore_column(job);
        return done;
    }
    count_changes(job, before);
    return done;
}

/* Marks the columns with holes. */
static void find_holes(mend_job *job, uint8_t *has_hole)
{
    const repair_fabric *f = job->f;
    for (int32_t s = 0; s < f->switches; s++) {
        const uint8_t *row = job->lft + (int64_t)s * f->lids, *end = row + f->lids, *at = row;
        while (at < end && (at = memchr(at, NO_ROUTE, (size_t)(end - at)))) {
            const int32_t lid = (int32_t)(at++ - row), target = f->lid_switch[lid];
            if (target < 0 || target == s || f->part[target] != f->part[s])
                continue;
            has_hole[lid] = 1;
            job->counts[HOLES]++;
        }
    }
}

static bool prepare(mend_job *job)
{
    const repair_fabric *f = job->f;
    const size_t size = (size_t)f->switches + 1;
    job->cut_off = calloc(size, sizeof *job->cut_off);
    job->known = calloc(size, sizeof *job->known);
    job->hops = malloc(size * sizeof *job->hops);
    job->queue = malloc(size * sizeof *job->queue);
    job->through = malloc(size * sizeof *job->through);
    job->lanes = malloc(size * sizeof *job->lanes);
    job->flow = malloc(size * sizeof *job->flow);
    job->place = malloc(size * sizeof *job->place);
    job->roots = malloc(size * sizeof *job->roots);
    job->members = malloc(size * sizeof *job->members);
    job->column = malloc(2 * size * sizeof *job->column);
    job->steps = malloc((size + 256) * sizeof *job->steps);
    job->fresh = malloc((size + 256) * MOST_LANES * sizeof *job->fresh);
    job->ways = malloc(256 * sizeof *job->ways);
    return job->cut_off && job->known && job->hops && job->queue && job->through && job->lanes && job->flow && job->place
           && job->roots && job->members && job->column && job->steps && job->fresh && job->ways;
}

static void dispose(mend_job *job)
{
    void *all[] = {job->cut_off, job->known, job->hops, job->queue, job->through, job->lanes, job->flow,
                   job->place, job->roots, job->members, job->column, job->steps, job->fresh, job->ways};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Move the masks of turns into the acyclic graph, or back. */
static void move_masks(mend_job *job, uint16_t *waits, bool back)
{
    const repair_fabric *f = job->f;
    for (int32_t c = 0; c < f->channels; c++) {
        const int32_t behind = f->first[f->dst[c] + 1] - f->first[f->dst[c]];
        uint32_t *used = job->graph.used + job->graph.turn_first[c];
        for (int32_t k = 0; k < behind; k++)
            if (back)
                waits[f->slot[c] + k] = (uint16_t)used[k];
            else
                used[k] = waits[f->slot[c] + k];
    }
}

static void run(mend_job *job, const uint8_t *lay, uint8_t *done)
{
    for (int32_t lid = 0; lid < job->f->lids; lid++)
        if (done[lid])
            done[lid] = lay[lid] == LEAVE ? FAILED
                                          : treat(job, lid, lay[lid], job->column + job->f->switches + 1);
}

static int run_in_order(mend_job *job, const uint8_t *lay, uint16_t *waits, int32_t *order, uint8_t *done)
{
    const repair_fabric *f = job->f;
    int code = ibn_acyclic_prepare(&job->graph, &job->net);
    if (code == OK && f->vls)
        code = ibn_acyclic_open(&job->graph, f->vls - 1, order, f->vls);
    if (code == OK) {
        move_masks(job, waits, false);
        run(job, lay, done);
        move_masks(job, waits, true);
        for (int32_t lane = 0; lane < f->vls; lane++)
            memcpy(order + (int64_t)lane * f->channels, job->graph.place[lane], (size_t)f->channels * sizeof *order);
        job->counts[VISITED] = job->graph.visited;
    }
    ibn_acyclic_dispose(&job->graph);
    return code;
}

int ibn_repair(const repair_fabric *f, const uint8_t *lay, uint8_t *lft, uint16_t *waits, int32_t *order, int64_t *load,
               uint8_t *done, int64_t *counts)
{
    mend_job job = {.f = f, .lft = lft, .load = load, .counts = counts};
    job.net = (acyclic_net){.switches = f->switches, .channels = f->channels, .first = f->first, .src = f->src,
                            .dst = f->dst, .into = f->into, .into_first = f->into_first};
    memset(counts, 0, 4 * sizeof *counts);
    memset(done, 0, (size_t)f->lids);
    find_holes(&job, done);
    int code = OK;
    if (counts[HOLES])
        code = prepare(&job) ? run_in_order(&job, lay, waits, order, done) : NO_MEMORY;
    dispose(&job);
    return code;
}
