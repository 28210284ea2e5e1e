/* Fills holes in forwarding tables without closing a credit loop: see repair.h. */
#include "repair.h"
#include "internal/mend.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { MEND, LAY_ANEW, LEAVE, CLEAR };
enum { NO_HOLE, MENDED, LAID_ANEW, FAILED, COPIED };

static void count_changes(mend_job *job)
{
    for (int32_t i = 0; i < job->kept_count; i++) {
        const uint8_t was = job->kept[i].entry, now = ibn_mend_entry(job, job->kept[i].at);
        job->counts[FILLED] += was == NO_ROUTE && now != NO_ROUTE;
        job->counts[MOVED] += was != NO_ROUTE && now != was;
    }
}

static uint8_t treat(mend_job *job, uint8_t lay, const int32_t *holes, int32_t count)
{
    uint8_t done = FAILED;
    job->column++;
    job->kept_count = 0;
    job->wish = NULL;
    if (lay == LAY_ANEW) {
        ibn_mend_lift_flow(job);
        done = ibn_mend_anew(job) ? LAID_ANEW : FAILED;
        if (done == FAILED)
            ibn_mend_restore(job);
    }
    job->wish = job->f->wish;
    job->patience = job->graph.visited + PATIENCE;
    /* Where one LID of a switch finds no way, its others do not either. */
    if (done == FAILED && !job->hopeless[job->target] && ibn_mend_column(job, holes, count))
        done = MENDED;
    if (done != FAILED) {
        count_changes(job);
        return done;
    }
    ibn_mend_restore(job);
    job->hopeless[job->target] = 1;
    return done;
}

/* Holes of each column in the order of the switches; first: [L + 1], zeroed. */
static int32_t *find_holes(mend_job *job, int32_t *first)
{
    const repair_fabric *f = job->f;
    int32_t *holes = NULL;
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int32_t s = 0; s < f->switches; s++) {
            const uint8_t *row = job->lft + (int64_t)s * f->lids, *end = row + f->lids, *at = row;
            while (at < end && (at = memchr(at, NO_ROUTE, (size_t)(end - at)))) {
                const int32_t lid = (int32_t)(at++ - row), target = f->lid_switch[lid];
                if (target < 0 || target == s || f->part[target] != f->part[s])
                    continue;
                if (pass)
                    holes[first[lid]++] = s;
                else
                    first[lid + 1]++;
            }
        }
        if (pass)
            break;
        for (int32_t lid = 0; lid < f->lids; lid++)
            first[lid + 1] += first[lid];
        job->counts[HOLES] = first[f->lids];
        holes = malloc(((size_t)first[f->lids] + 1) * sizeof *holes);
        if (!holes)
            return NULL;
    }
    memmove(first + 1, first, (size_t)f->lids * sizeof *first);
    first[0] = 0;
    return holes;
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
    job->helper = calloc(size, sizeof *job->helper);
    job->hopeless = calloc(size, sizeof *job->hopeless);
    job->helps = calloc(size, sizeof *job->helps);
    job->steep = calloc(size, sizeof *job->steep);
    job->goes = malloc(size * sizeof *job->goes);
    job->needs = malloc(size * sizeof *job->needs);
    job->strays = malloc(MOST_STRAYS * sizeof *job->strays);
    job->kept = malloc(size * sizeof *job->kept);
    job->touched = calloc(size, sizeof *job->touched);
    job->taken = calloc(size, sizeof *job->taken);
    job->steps = malloc((size + 256) * sizeof *job->steps);
    job->fresh = malloc((size + 256) * MOST_LANES * sizeof *job->fresh);
    job->spare = malloc((size + 256) * MOST_LANES * sizeof *job->spare);
    job->shut_room = (int32_t)(size + 256) * MOST_LANES * MOST_LANES;
    job->shut = malloc((size_t)job->shut_room * sizeof *job->shut);
    job->shifted = malloc(2 * size * sizeof *job->shifted);
    job->ways = malloc(256 * sizeof *job->ways);
    job->others = malloc(256 * sizeof *job->others);
    return job->cut_off && job->known && job->hops && job->queue && job->through && job->lanes && job->flow && job->place
           && job->roots && job->members && job->helper && job->helps && job->hopeless && job->steep && job->goes && job->needs && job->strays && job->kept && job->touched && job->taken && job->steps
           && job->fresh && job->spare && job->shut && job->shifted && job->ways && job->others;
}

static void dispose(mend_job *job)
{
    void *all[] = {job->cut_off, job->known, job->hops, job->queue, job->through, job->lanes, job->flow, job->place,
                   job->roots, job->members, job->helper, job->helps, job->hopeless, job->steep, job->goes, job->needs, job->strays, job->kept, job->touched, job->taken, job->steps, job->fresh,
                   job->spare, job->shut, job->shifted, job->ways, job->others};
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

static void run(mend_job *job, const uint8_t *lay, const int32_t *first, const int32_t *holes, uint8_t *done)
{
    for (int32_t lid = 0; lid < job->f->lids; lid++) {
        const int32_t count = first[lid + 1] - first[lid];
        ibn_mend_begin(job, lid);
        done[lid] = count == 0 ? NO_HOLE : lay[lid] == LEAVE ? FAILED : treat(job, lay[lid], holes + first[lid], count);
    }
}

/* A column without any entry; where it finds no way even so, that of another LID. */
static uint8_t lay_from_nothing(mend_job *job, const int32_t *holes, int32_t count)
{
    job->column++;
    job->kept_count = 0;
    job->patience = job->graph.visited + PATIENCE;
    uint8_t done = ibn_mend_column(job, holes, count) ? MENDED : FAILED;
    if (done == FAILED) {
        ibn_mend_restore(job);
        done = ibn_mend_copy(job) ? COPIED : FAILED;
    }
    if (done != FAILED)
        count_changes(job);
    return done;
}

/* Take all entries of a column out; how many, and where. */
static int32_t take_out(mend_job *job, int32_t lid, int32_t *holes)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    ibn_mend_begin(job, lid);
    for (int32_t s = 0; s < f->switches; s++)
        if (s != job->target && f->part[s] == f->part[job->target]) {
            job->lft[(int64_t)s * f->lids + lid] = NO_ROUTE;
            holes[count++] = s;
        }
    return count;
}

/* Columns that are mended on cleared VLs, and those of them that were given up, all together from nothing. */
static int run_cleared(mend_job *job, const uint8_t *lay, const int32_t *first, const int32_t *holes, uint8_t *done)
{
    const int32_t lids = job->f->lids;
    bool *chosen = malloc(((size_t)lids + 1) * sizeof *chosen);
    int32_t *all = malloc(((size_t)job->f->switches + 1) * sizeof *all), left = 0;
    for (int32_t lid = 0; chosen && lid < lids; lid++)
        chosen[lid] = lay[lid] == CLEAR;
    bool ready = chosen && all && ibn_mend_release(job, chosen);
    if (ready)
        run(job, lay, first, holes, done);
    for (int32_t lid = 0; ready && lid < lids; lid++) {
        chosen[lid] = lay[lid] == CLEAR && done[lid] == FAILED;
        left += chosen[lid] && take_out(job, lid, all);
    }
    ready = ready && (left == 0 || ibn_mend_release(job, chosen));
    for (int32_t lid = 0; ready && lid < lids; lid++)
        if (chosen[lid])
            done[lid] = lay_from_nothing(job, all, take_out(job, lid, all));
    free(chosen);
    free(all);
    return ready ? OK : NO_MEMORY;
}

static int run_in_order(mend_job *job, const uint8_t *lay, const int32_t *first, const int32_t *holes, uint16_t *waits,
                        int32_t *order, uint8_t *done)
{
    const repair_fabric *f = job->f;
    int code = prepare(job) ? OK : NO_MEMORY;
    if (code == OK)
        code = ibn_acyclic_prepare(&job->graph, &job->net);
    if (code == OK && f->vls)
        code = ibn_acyclic_open(&job->graph, f->vls - 1, order, f->vls);
    if (code == OK && f->vls)
        move_masks(job, waits, false);
    if (code == OK && f->vls && memchr(lay, CLEAR, (size_t)f->lids))
        code = run_cleared(job, lay, first, holes, done);
    else if (code == OK)
        run(job, lay, first, holes, done);
    if (code == OK) {
        if (f->vls)
            move_masks(job, waits, true);
        for (int32_t lane = 0; lane < f->vls; lane++)
            memcpy(order + (int64_t)lane * f->channels, job->graph.place[lane], (size_t)f->channels * sizeof *order);
        job->counts[VISITED] = job->graph.visited;
    }
    ibn_acyclic_dispose(&job->graph);
    dispose(job);
    return code;
}

int ibn_repair(const repair_fabric *f, const uint8_t *lay, uint8_t *lft, uint8_t *sl, uint16_t *waits, int32_t *order,
               int64_t *load, uint8_t *done, int64_t *counts)
{
    mend_job job = {.f = f, .lft = lft, .sl = sl, .load = load, .counts = counts, .parts_patience = PARTS_PATIENCE};
    job.net = (acyclic_net){.switches = f->switches, .channels = f->channels, .first = f->first, .src = f->src,
                            .dst = f->dst, .into = f->into, .into_first = f->into_first};
    memset(counts, 0, COUNTS * sizeof *counts);
    memset(done, NO_HOLE, (size_t)f->lids);
    int32_t *first = calloc((size_t)f->lids + 2, sizeof *first), *holes = first ? find_holes(&job, first) : NULL;
    int code = holes ? OK : NO_MEMORY;
    if (holes && counts[HOLES])
        code = run_in_order(&job, lay, first, holes, waits, order, done);
    free(first);
    free(holes);
    return code;
}
