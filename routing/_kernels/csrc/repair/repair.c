/* Fill missing LFT entries without closing a credit loop: see repair.h. */
#include "repair/repair.h"
#include "repair/internal/repair_state.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { KEEP_VALID, SKIP, PRUNE };
enum { NOTHING_MISSING, REPAIRED, FAILED, COPIED };

/* Add to `counts` the number of filled entries and the number of changed valid entries towards the current LID. */
static void count_changes(repair_state *job)
{
    for (int32_t i = 0; i < job->saved_count; i++) {
        const uint8_t was = job->kept[i].entry, now = ibn_repair_entry(job, job->kept[i].at);
        job->counts[FILLED] += was == NO_ROUTE && now != NO_ROUTE;
        job->counts[MOVED] += was != NO_ROUTE && now != was;
    }
}

/* Fill the missing entries towards a LID.  If this fails, restore all entries towards the LID.  Returns REPAIRED or
 * FAILED. */
static uint8_t treat(repair_state *job, const int32_t *missing, int32_t count)
{
    job->column++;
    job->saved_count = job->load_count = 0;
    job->search_budget = job->graph.visited + SEARCH_BUDGET;
    /* If the repair has failed for one LID of a switch, it would most likely fail for the other LIDs of this switch
     * too.  So these LIDs are not tried. */
    if (!job->given_up[job->target] && ibn_repair_fill_column(job, missing, count)) {
        count_changes(job);
        return REPAIRED;
    }
    ibn_repair_restore_column(job);
    job->given_up[job->target] = 1;
    return FAILED;
}

/* A missing entry: a switch that has no entry towards a LID. */
typedef struct {
    int32_t lid, at;
} missing_entry;

/* List the missing entries, sorted by switch.  *count receives the number of missing entries.  Returns NULL if memory
 * ran out. */
static missing_entry *list_missing(const repair_state *job, const uint8_t *pages, int32_t *count)
{
    const repair_fabric *f = job->f;
    const uint8_t *end = job->lft + (int64_t)f->switches * f->lids, *at = job->lft;
    int32_t room = 1024;
    missing_entry *list = malloc((size_t)room * sizeof *list);
    *count = 0;
    while (list && at < end) {
        const int64_t page = (at - job->lft) / job->page;
        const uint8_t *stop = end - at > job->page ? job->lft + (page + 1) * job->page : end;
        at = pages[page] ? memchr(at, NO_ROUTE, (size_t)(stop - at)) : NULL;
        const int64_t entry = at ? at - job->lft : 0;
        const int32_t s = (int32_t)(entry / f->lids), lid = (int32_t)(entry % f->lids), target = f->lid_switch[lid];
        const bool is_missing = at && target >= 0 && target != s && f->part[target] == f->part[s];
        at = at ? at + 1 : stop;
        if (is_missing && *count == room) {
            missing_entry *more = realloc(list, 2 * (size_t)room * sizeof *list);
            if (!more)
                free(list);
            list = more;
            room *= 2;
        }
        if (is_missing && list)
            list[(*count)++] = (missing_entry){lid, s};
    }
    return list;
}

/* List for each LID, in ascending order, the switches whose entry is missing.  In the result, the switches for one LID
 * have the indices first[lid] to first[lid + 1] - 1.  `first` is int32 [L + 1] and must be zero on entry.  Returns NULL
 * if memory ran out. */
static int32_t *find_missing(repair_state *job, const uint8_t *pages, int32_t *first)
{
    const int32_t lids = job->f->lids;
    int32_t count = 0;
    missing_entry *list = list_missing(job, pages, &count);
    int32_t *missing = list ? malloc(((size_t)count + 1) * sizeof *missing) : NULL;
    job->counts[MISSING] = count;
    for (int32_t i = 0; list && i < count; i++)
        first[list[i].lid + 1]++;
    for (int32_t lid = 0; lid < lids; lid++)
        first[lid + 1] += first[lid];
    for (int32_t i = 0; missing && i < count; i++)
        missing[first[list[i].lid]++] = list[i].at;
    memmove(first + 1, first, (size_t)lids * sizeof *first);
    first[0] = 0;
    free(list);
    return missing;
}

/* Compute the VLs on which each switch sends replies (reply_vls).  Nothing is computed if replies do not count, or if
 * these VLs depend on the current LID. */
static void prepare_replies(repair_state *job)
{
    const repair_fabric *f = job->f;
    if (!f->replies || f->sl_by_switch || f->endports_only)
        return;
    job->reply_vls = ibn_core_arrays_add(&job->arrays, (size_t)f->switches + 1, sizeof *job->reply_vls);
    for (int32_t s = 0; job->reply_vls && s < f->switches; s++)
        ibn_repair_renew_replies(job, s);
}

/* Fill into_src and into_port: switch where each channel begins, and its out-port.  The channels are sorted by the
 * switch where they end. */
static void prepare_into(repair_state *job)
{
    const repair_fabric *f = job->f;
    job->into_src = ibn_core_arrays_add(&job->arrays, (size_t)f->channels + 1, sizeof *job->into_src);
    job->into_port = ibn_core_arrays_add(&job->arrays, (size_t)f->channels + 1, sizeof *job->into_port);
    for (int32_t i = 0; !job->arrays.failed && i < f->channels; i++) {
        job->into_src[i] = f->src[f->into[i]];
        job->into_port[i] = f->port[f->into[i]];
    }
}

bool ibn_repair_prepare(repair_state *job)
{
    const repair_fabric *f = job->f;
    const size_t size = (size_t)f->switches + 1, steps = size + 256,
                 all_steps = steps + (f->prepares_sls ? (size_t)f->slots : 0);
    job->cut_off = ibn_core_arrays_add(&job->arrays, size, sizeof *job->cut_off);
    job->known = ibn_core_arrays_add(&job->arrays, size, sizeof *job->known);
    job->hops = ibn_core_arrays_add(&job->arrays, size, sizeof *job->hops);
    job->queue = ibn_core_arrays_add(&job->arrays, size, sizeof *job->queue);
    job->parent = ibn_core_arrays_add(&job->arrays, size, sizeof *job->parent);
    job->through = ibn_core_arrays_add(&job->arrays, size, sizeof *job->through);
    job->vls = ibn_core_arrays_add(&job->arrays, size, sizeof *job->vls);
    job->flow = ibn_core_arrays_add(&job->arrays, size, sizeof *job->flow);
    job->place = ibn_core_arrays_add(&job->arrays, size, sizeof *job->place);
    job->roots = ibn_core_arrays_add(&job->arrays, size, sizeof *job->roots);
    job->members = ibn_core_arrays_add(&job->arrays, size, sizeof *job->members);
    job->last_displaced = ibn_core_arrays_add(&job->arrays, size, sizeof *job->last_displaced);
    job->given_up = ibn_core_arrays_add(&job->arrays, size, sizeof *job->given_up);
    job->can_help = ibn_core_arrays_add(&job->arrays, size, sizeof *job->can_help);
    job->no_monotone_path = ibn_core_arrays_add(&job->arrays, size, sizeof *job->no_monotone_path);
    job->new_vl = ibn_core_arrays_add(&job->arrays, size, sizeof *job->new_vl);
    job->needs = ibn_core_arrays_add(&job->arrays, size, sizeof *job->needs);
    job->deferred = ibn_core_arrays_add(&job->arrays, MOST_DEFERRED, sizeof *job->deferred);
    job->kept = ibn_core_arrays_add(&job->arrays, size, sizeof *job->kept);
    job->touched = ibn_core_arrays_add(&job->arrays, size, sizeof *job->touched);
    job->taken = ibn_core_arrays_add(&job->arrays, size, sizeof *job->taken);
    job->listed_step = ibn_core_arrays_add(&job->arrays, all_steps, sizeof *job->listed_step);
    job->steps = ibn_core_arrays_add(&job->arrays, all_steps, sizeof *job->steps);
    job->added = ibn_core_arrays_add(&job->arrays, all_steps * MOST_VLS, sizeof *job->added);
    job->spare = ibn_core_arrays_add(&job->arrays, steps * MOST_VLS, sizeof *job->spare);
    job->blocked_room = (int32_t)steps * MOST_VLS * MOST_VLS;
    job->blocked_edges = ibn_core_arrays_add(&job->arrays, (size_t)job->blocked_room, sizeof *job->blocked_edges);
    job->changed_sls = ibn_core_arrays_add(&job->arrays, 2 * size, sizeof *job->changed_sls);
    job->candidates = ibn_core_arrays_add(&job->arrays, 256, sizeof *job->candidates);
    job->others = ibn_core_arrays_add(&job->arrays, 256, sizeof *job->others);
    job->copied_column = ibn_core_arrays_add(&job->arrays, (size_t)f->lids + 1, sizeof *job->copied_column);
    job->senders = ibn_core_arrays_add(&job->arrays, (size_t)f->lids + 1, sizeof *job->senders);
    job->listed = ibn_core_arrays_add(&job->arrays, (size_t)f->lids + 1, sizeof *job->listed);
    prepare_replies(job);
    prepare_into(job);
    return !job->arrays.failed;
}

void ibn_repair_dispose(repair_state *job)
{
    for (int32_t lid = 0; job->copied_column && job->senders && lid < job->f->lids; lid++) {
        free(lid % COPIED_TOGETHER ? NULL : job->copied_column[lid]);
        free(job->senders[lid]);
    }
    free(job->load_changes);
    ibn_core_arrays_free(&job->arrays);
}

bool ibn_repair_open_graph(repair_state *job, uint16_t *dependencies, const int32_t *order)
{
    const repair_fabric *f = job->f;
    if (ibn_core_acyclic_prepare(&job->graph, &job->net, f->slot, dependencies))
        return false;
    for (int32_t c = 0; f->forbidden && c < f->channels; c++)
        for (int32_t k = 0; k < f->first[f->dst[c] + 1] - f->first[f->dst[c]]; k++)
            job->graph.blocked[f->slot[c] + k] = f->forbidden[f->slot[c] + k];
    return f->vls == 0 || !ibn_core_acyclic_open(&job->graph, f->vls - 1, order, f->vls);
}

/* Subtract the flow of a disconnected switch's subtree from the channels of the switch's previous path.  The
 * previous path may lead over channels of lost cables. */
static void withdraw_flow(repair_state *job, int32_t root)
{
    const repair_fabric *f = job->f;
    int32_t s = root, left = f->switches;
    ibn_repair_collect_subtree(job, root);
    while (s != job->target && left-- > 0) {
        const int32_t c = f->at_port[(int64_t)s * 256 + f->preferred[(int64_t)s * f->lids + job->lid]];
        if (c < 0)
            return;
        job->load[c] -= job->flow[0];
        s = f->dst[c];
    }
}

/* Subtract the flow of all subtrees of disconnected switches from their previous paths.  The function is called
 * before any entry is filled, so that the load of new paths does not include flow of broken paths. */
static void withdraw_all(repair_state *job, const int32_t *first, const int32_t *missing)
{
    for (int32_t lid = 0; lid < job->f->lids; lid++) {
        if (first[lid] == first[lid + 1] || !job->f->weight[lid])
            continue;
        ibn_repair_begin_column(job, lid);
        job->column++;
        for (int32_t i = first[lid]; i < first[lid + 1]; i++)
            withdraw_flow(job, missing[i]);
    }
}

/* Repair all LIDs that are not to be skipped, and store the outcome for each LID in `done`.  `treatment` and `done` are
 * parameters of ibn_repair_columns (repair.h).  `first` and `missing` are the results of find_missing. */
static void run(repair_state *job, const uint8_t *treatment, const int32_t *first, const int32_t *missing,
                uint8_t *done)
{
    int32_t failed = 0;
    for (int32_t lid = 0; lid < job->f->lids; lid++) {
        const int32_t count = first[lid + 1] - first[lid];
        const bool given_up = job->f->most_failed && failed > job->f->most_failed;
        ibn_repair_begin_column(job, lid);
        done[lid] = count == 0                           ? NOTHING_MISSING
                    : treatment[lid] == SKIP || given_up ? FAILED
                                                         : treat(job, missing + first[lid], count);
        failed += done[lid] == FAILED;
    }
}

/* Fill all entries towards a LID after all of them were removed.  If this fails, copy the entries of another LID.
 * Returns REPAIRED, COPIED or FAILED. */
static uint8_t rebuild_column(repair_state *job, const int32_t *missing, int32_t count)
{
    job->column++;
    job->saved_count = job->load_count = 0;
    job->search_budget = job->graph.visited + SEARCH_BUDGET;
    uint8_t done = ibn_repair_fill_column(job, missing, count) ? REPAIRED : FAILED;
    if (done == FAILED) {
        ibn_repair_restore_column(job);
        done = ibn_repair_copy_column(job) ? COPIED : FAILED;
    }
    if (done != FAILED)
        count_changes(job);
    return done;
}

/* Remove the entries towards a LID at all switches that can reach the LID.  `missing` receives these switches.  Returns
 * the number of these switches. */
static int32_t empty_column(repair_state *job, int32_t lid, int32_t *missing)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    ibn_repair_begin_column(job, lid);
    for (int32_t s = 0; s < f->switches; s++)
        if (s != job->target && f->part[s] == f->part[job->target]) {
            ibn_repair_write_entry(job, s, NO_ROUTE);
            missing[count++] = s;
        }
    return count;
}

/* Remove the unused CDG edges on the VLs of all LIDs marked PRUNE, and repair all LIDs.  A marked LID whose repair
 * fails loses all its entries.  After the last LID, unused CDG edges are removed again, and the entries of the failed
 * LIDs are computed from scratch.  `treatment` and `done` are parameters of ibn_repair_columns (repair.h).  `first` and
 * `missing` are the results of find_missing.  Returns OK or NO_MEMORY. */
static int run_pruned(repair_state *job, const uint8_t *treatment, const int32_t *first, const int32_t *missing,
                      uint8_t *done)
{
    const int32_t lids = job->f->lids;
    bool *chosen = malloc(((size_t)lids + 1) * sizeof *chosen);
    int32_t *all = malloc(((size_t)job->f->switches + 1) * sizeof *all), left = 0;
    for (int32_t lid = 0; chosen && lid < lids; lid++)
        chosen[lid] = treatment[lid] == PRUNE;
    bool ready = chosen && all && ibn_repair_prune_columns(job, chosen);
    if (ready)
        run(job, treatment, first, missing, done);
    for (int32_t lid = 0; ready && lid < lids; lid++) {
        chosen[lid] = treatment[lid] == PRUNE && done[lid] == FAILED;
        left += chosen[lid] && empty_column(job, lid, all);
    }
    ready = ready && (left == 0 || ibn_repair_prune_columns(job, chosen));
    for (int32_t lid = 0; ready && lid < lids; lid++)
        if (chosen[lid])
            done[lid] = rebuild_column(job, all, empty_column(job, lid, all));
    free(chosen);
    free(all);
    return ready ? OK : NO_MEMORY;
}

/* Repair all LIDs.  `dependencies` has the VLs, as bits, on which each CDG edge is allowed; this array is changed in
 * place.  `order` has a topological order for each VL; it receives the orders after the repair.  Returns OK or
 * NO_MEMORY. */
static int run_in_order(repair_state *job, const uint8_t *treatment, const int32_t *first, const int32_t *missing,
                        uint16_t *dependencies, int32_t *order, uint8_t *done)
{
    const repair_fabric *f = job->f;
    int code = ibn_repair_prepare(job) && ibn_repair_open_graph(job, dependencies, order) ? OK : NO_MEMORY;
    if (code == OK && f->withdraw)
        withdraw_all(job, first, missing);
    if (code == OK && f->vls && memchr(treatment, PRUNE, (size_t)f->lids))
        code = run_pruned(job, treatment, first, missing, done);
    else if (code == OK)
        run(job, treatment, first, missing, done);
    if (code == OK) {
        for (int32_t vl = 0; vl < f->vls; vl++)
            memcpy(order + (int64_t)vl * f->channels, job->graph.place[vl], (size_t)f->channels * sizeof *order);
        job->counts[VISITED] = job->graph.visited;
        code = job->out_of_memory ? NO_MEMORY : OK;
    }
    ibn_core_acyclic_dispose(&job->graph);
    ibn_repair_dispose(job);
    return code;
}

int ibn_repair_columns(const repair_fabric *f, const uint8_t *treatment, uint8_t *lft, const uint8_t *pages,
                       int64_t page, uint8_t *sl, uint16_t *dependencies, int32_t *order, int64_t *load, uint8_t *done,
                       int64_t *counts)
{
    repair_state job = {.f = f,
                        .lft = lft,
                        .page = page,
                        .sl = sl,
                        .load = load,
                        .counts = counts,
                        .parts_budget = PARTS_BUDGET};
    job.net = (acyclic_net){.switches = f->switches,
                            .channels = f->channels,
                            .first = f->first,
                            .src = f->src,
                            .dst = f->dst,
                            .into = f->into,
                            .into_first = f->into_first};
    memset(counts, 0, COUNTS * sizeof *counts);
    memset(done, NOTHING_MISSING, (size_t)f->lids);
    int32_t *first = calloc((size_t)f->lids + 2, sizeof *first);
    int32_t *missing = first ? find_missing(&job, pages, first) : NULL;
    int code = missing ? OK : NO_MEMORY;
    if (missing && counts[MISSING])
        code = run_in_order(&job, treatment, first, missing, dependencies, order, done);
    free(first);
    free(missing);
    return code;
}
