/* Collect the dependencies of complete tables, if all traffic uses one VL.  The tables are read by rows (switch by
 * switch), which is faster than by columns (LID by LID).
 *
 * A block is up to 64 LIDs of one destination switch.  A row of a block has the entries of one source switch towards
 * these LIDs.  A visit of a row computes the hops from the source switch.  These hops follow from the hops of the next
 * switches, so a row should be visited after the rows of its next switches.  The rows are visited in the order of the
 * source switches' hops to the first LID of the block.  This order nearly always suits the other LIDs of the block,
 * too.
 *
 * A row is visited again if the row of some next switch had not been visited before.  The general kernel (trace.c)
 * takes over if repeated visits determine none of the unknown hops, or if a packet is not delivered.
 *
 * Many switches deliver only their own LID.  The LIDs of up to 16 such switches form one block, because the entries
 * towards these LIDs are often side by side in every row.  The routes to each of these LIDs are followed one after the
 * other.
 *
 * Each dependency is one bit.  The index of the bit follows from the first channel and the number of the second
 * channel.  So the bits of a large fabric fit into a cache.  Each thread has its own bits; the bits of all threads are
 * combined by OR in the end. */
#include "cdg/internal/trace_rows.h"
#include "core/internal/arrays.h"
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { BLOCK = 64, SINGLES = 16, MAX_THREADS = 64, AHEAD = 8, LINE = 64, LOST = 255, MOST_HOPS = 254, UNKNOWN = 0xFFFF };

typedef struct {
    const cdg_tables *t;
    int32_t extended;  /* X, number of extended channels, which trace.h explains */
    int32_t words;     /* number of 64-bit words in which the dependencies of one channel are stored, one bit each */
    /* blocks: number of blocks; singles: number of the first block of LIDs whose switches deliver only one LID each */
    int32_t blocks, singles;
    /* [L] LIDs, sorted by the switch that delivers them; LIDs of switches that deliver only one LID come last */
    int32_t *lid;
    int32_t *block; /* [blocks + 1] index in `lid` where each block begins */
    uint8_t *hops;     /* [S, L] hops from each switch to each LID */
    atomic_int next;   /* number of the next block that no thread has taken */
    /* 1: this fast method has failed, for example because a packet is not delivered.  The general kernel (trace.c) then
     * collects the dependencies instead */
    atomic_int failed;
} job_t;

typedef struct {
    job_t *j;
    int32_t *order; /* [S] switches, sorted by hops to the first LID of the current block */
    int32_t *next;  /* [S] next switch towards the first LID of the current block, -1: none */
    /* [S] switches whose row must be visited again, because a next switch in the row had not been visited yet */
    int32_t *again;
    uint8_t *far; /* [S] hops from each switch to the first LID of the current block */
    /* [SINGLES, S], by LID and switch, for a block of LIDs whose switches deliver only one LID each.  SINGLES is the
     * largest number of LIDs in such a block.
     * number: number of the channel by which the switch sends to the LID.
     * hops: hops from the switch to the LID. */
    uint8_t *number, *hops;
    /* [S, n] for each switch and each LID of the current block: (hops << 8) | (number of the channel by which the
     * switch sends), or UNKNOWN if not yet computed */
    uint16_t *state;
    /* [2, X, words] dependencies that the thread has found, one bit for each.  Row 0: dependencies of routes to CAs and
     * routers; row 1: of routes to switches */
    uint64_t *bits;
    /* [2, X] whether each channel is the last channel of some route.  Row 0: routes to CAs and routers; row 1: routes
     * to switches */
    uint8_t *last;
    int code;
    array_list arrays; /* allocation of all arrays above */
} worker_t;

static int32_t degree(const cdg_tables *t, int32_t s)
{
    return t->xfirst[s + 1] - t->xfirst[s] - 2;
}

/* Compute the hops from each switch to switch `target` along the next switches in w->next.  The hops are written to
 * `far` [S].  Returns whether all switches reach the target. */
static bool count_hops(const worker_t *w, int32_t target, uint8_t *far)
{
    const int32_t S = w->j->t->switches;
    int32_t stack[MOST_HOPS + 1];
    memset(far, LOST, (size_t)(S > 0 ? S : 0));
    far[target] = 0;
    for (int32_t s = 0; s < S; s++) {
        int32_t depth = 0, u = s;
        while (u >= 0 && far[u] == LOST && depth < MOST_HOPS) {
            stack[depth++] = u;
            u = w->next[u];
        }
        if (u < 0 || far[u] == LOST)
            return false;
        for (int32_t h = far[u]; depth > 0;) {
            h = h < MOST_HOPS ? h + 1 : h;
            far[stack[--depth]] = (uint8_t)h;
        }
    }
    return true;
}

/* Sort the switches by their hops to a LID, nearest first.  Returns whether all switches reach the LID. */
static bool order_by_hops(worker_t *w, int32_t lid)
{
    const cdg_tables *t = w->j->t;
    const int32_t S = t->switches;
    int32_t count[258] = {0};
    for (int32_t s = 0; s < S; s++) {
        if (s + AHEAD < S)
            __builtin_prefetch(t->lft + (size_t)(s + AHEAD) * t->lids + lid);
        const int32_t v = t->xdst[t->xfirst[s] + t->exit[(size_t)s * 256 + t->lft[(size_t)s * t->lids + lid]]];
        w->next[s] = v == S ? -1 : v;
    }
    if (!count_hops(w, t->lid_switch[lid], w->far))
        return false;
    for (int32_t s = 0; s < S; s++)
        count[w->far[s] + 1]++;
    for (int32_t h = 1; h < 258; h++)
        count[h] += count[h - 1];
    for (int32_t s = 0; s < S; s++)
        w->order[count[w->far[s]]++] = s;
    return true;
}

/* Visit the row of switch s for the n LIDs of a block: compute the hops from s to each LID, and add the first
 * dependency of each route.  The hops to a LID stay unknown if the hops from the next switch are unknown.  Returns the
 * number of LIDs with unknown hops, or -1 if a packet is dropped.
 *
 * from[i]: out-port of switch s towards LID i.
 * kind[i]: 1 if LID i belongs to a switch, 0 if it belongs to a CA or router. */
static inline int32_t visit(worker_t *w, int32_t s, int32_t target, const uint8_t *from, const uint8_t *kind, int32_t n)
{
    const cdg_tables *t = w->j->t;
    const int32_t x = t->xfirst[s], degree_here = degree(t, s), words = w->j->words, *xdst = t->xdst + x;
    const uint8_t *exit = t->exit + (size_t)s * 256;
    const size_t channels = (size_t)w->j->extended;
    uint16_t *own = w->state + (size_t)s * n;
    int32_t open = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t number = exit[from[i]];
        if (number >= degree_here)
            return -1;
        const int32_t v = xdst[number];
        const uint32_t there = w->state[(size_t)v * n + i];
        if (there == UNKNOWN) {
            open++;
            continue;
        }
        const uint32_t hops = there >> 8;
        own[i] = (uint16_t)((hops < MOST_HOPS ? hops + 1 : hops) << 8 | (uint32_t)number);
        const size_t channel = kind[i] * channels + (size_t)(x + number), to = there & 255;
        uint64_t *bits = w->bits + channel * words + (to >> 6);
        const uint64_t bit = UINT64_C(1) << (to & 63);
        /* The dependency is written only if it is new.  Nearly all dependencies have been found before, and a read
         * alone takes less time than a read and a write. */
        if (v == target)
            w->last[channel] = 1;
        else if (!(*bits & bit))
            *bits |= bit;
    }
    return open;
}

/* Return the out-ports of switch s towards the n LIDs of a block.  If the LIDs are consecutive, the result points into
 * the LFT.  Otherwise the out-ports are copied to `copy`, and the result points there. */
static const uint8_t *ports(const cdg_tables *t, int32_t s, const int32_t *lid, int32_t n, uint8_t *copy)
{
    const uint8_t *row = t->lft + (size_t)s * t->lids;
    if (lid[n - 1] - lid[0] == n - 1)
        return row + lid[0];
    for (int32_t i = 0; i < n; i++)
        copy[i] = row[lid[i]];
    return copy;
}

/* Visit the rows of the switches in `again` repeatedly, until the hops from these switches to all LIDs of the block are
 * known.  Returns false if a repetition finds none of the unknown hops. */
static bool settle(worker_t *w, int32_t target, const int32_t *lid, const uint8_t *kind, int32_t n, int32_t rows)
{
    uint8_t copy[BLOCK];
    for (int64_t open = 0, before = INT64_MAX; rows; before = open, open = 0) {
        int32_t kept = 0;
        for (int32_t k = 0; k < rows; k++) {
            const int32_t s = w->again[k];
            const int32_t left = visit(w, s, target, ports(w->j->t, s, lid, n, copy), kind, n);
            open += left;
            w->again[kept] = s;
            kept += left > 0;
        }
        rows = kept;
        if (open >= before)
            return false;
    }
    return true;
}

/* Choose the LIDs of a block whose LFT entries are prefetched.  A prefetch brings a whole cache line, so not every LID
 * needs one.  The function chooses the first LID, the last LID, and each LID that is at least 64 (one cache line)
 * larger than the LID chosen before.  The chosen LIDs are written to `line`.  Returns the number of chosen LIDs. */
static int32_t choose_lines(const int32_t *lid, int32_t n, int32_t *line)
{
    int32_t lines = 0;
    for (int32_t i = 0; i < n; i++)
        if (lines == 0 || i == n - 1 || lid[i] - line[lines - 1] >= LINE)
            line[lines++] = lid[i];
    return lines;
}

static void store_hops(const worker_t *w, const int32_t *lid, int32_t n, const int32_t *line, int32_t lines)
{
    const cdg_tables *t = w->j->t;
    for (int32_t s = 0; s < t->switches; s++) {
        uint8_t *to = w->j->hops + (size_t)s * t->lids;
        const uint16_t *own = w->state + (size_t)s * n;
        for (int32_t k = 0; k < lines && s + AHEAD < t->switches; k++)
            __builtin_prefetch(to + (size_t)AHEAD * t->lids + line[k], 1);
        for (int32_t i = 0; i < n; i++)
            to[lid[i]] = (uint8_t)(own[i] >> 8);
    }
}

/* Return whether the switch that delivers a LID has an LFT entry that leads to the owner of the LID.  The owner is a
 * CA, a router or the switch itself. */
static bool is_delivered(const cdg_tables *t, int32_t lid)
{
    const int32_t target = t->lid_switch[lid];
    const uint8_t port = t->lft[(size_t)target * t->lids + lid];
    return port == t->lid_port[lid] && t->exit[(size_t)target * 256 + port] == degree(t, target);
}

/* Follow the routes from all switches to one LID, whose switch delivers no other LID, and add their dependencies.  The
 * LID is the i-th LID of its block.  The caller has filled w->number.  Returns whether all packets are delivered. */
static bool follow_single(worker_t *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    const int32_t S = t->switches, target = t->lid_switch[lid], words = w->j->words;
    const uint8_t *number = w->number + (size_t)i * S;
    const size_t row = t->lid_port[lid] ? 0 : (size_t)w->j->extended;
    for (int32_t s = 0; s < S; s++) {
        const int32_t v = t->xdst[t->xfirst[s] + number[s]];
        w->next[s] = v == S ? -1 : v;
    }
    if (!is_delivered(t, lid) || !count_hops(w, target, w->hops + (size_t)i * S))
        return false;
    for (int32_t s = 0; s < S; s++) {
        const size_t channel = row + (size_t)(t->xfirst[s] + number[s]);
        if (s == target)
            continue;
        const int32_t to = number[w->next[s]];
        if (w->next[s] == target)
            w->last[channel] = 1;
        else
            w->bits[channel * words + (to >> 6)] |= UINT64_C(1) << (to & 63);
    }
    return true;
}

/* Follow the routes from all switches to the n LIDs of a block whose switches deliver only one LID each.  Returns
 * whether all packets are delivered. */
static bool run_singles(worker_t *w, const int32_t *lid, int32_t n)
{
    const cdg_tables *t = w->j->t;
    const int32_t S = t->switches;
    int32_t line[BLOCK];
    const int32_t lines = choose_lines(lid, n, line);
    for (int32_t s = 0; s < S; s++) {
        const uint8_t *row = t->lft + (size_t)s * t->lids, *exit = t->exit + (size_t)s * 256;
        for (int32_t k = 0; k < lines && s + AHEAD < S; k++)
            __builtin_prefetch(row + (size_t)AHEAD * t->lids + line[k]);
        for (int32_t i = 0; i < n; i++)
            w->number[(size_t)i * S + s] = exit[row[lid[i]]];
    }
    for (int32_t i = 0; i < n; i++)
        if (!follow_single(w, lid[i], i))
            return false;
    for (int32_t s = 0; s < S; s++) {
        uint8_t *to = w->j->hops + (size_t)s * t->lids;
        for (int32_t k = 0; k < lines && s + AHEAD < S; k++)
            __builtin_prefetch(to + (size_t)AHEAD * t->lids + line[k], 1);
        for (int32_t i = 0; i < n; i++)
            to[lid[i]] = w->hops[(size_t)i * S + s];
    }
    return true;
}

/* Follow the routes from all switches to the n LIDs of a block.  Returns whether all packets are delivered. */
static bool run_block(worker_t *w, const int32_t *lid, int32_t n)
{
    const cdg_tables *t = w->j->t;
    const int32_t S = t->switches, target = t->lid_switch[lid[0]];
    uint8_t kind[BLOCK], copy[BLOCK];
    int32_t line[BLOCK], rows = 0;
    const int32_t lines = choose_lines(lid, n, line);
    memset(w->state, 0xFF, (size_t)S * n * sizeof *w->state);
    for (int32_t i = 0; i < n; i++) {
        if (!is_delivered(t, lid[i]))
            return false;
        kind[i] = !t->lid_port[lid[i]];
        w->state[(size_t)target * n + i] = 0;
    }
    if (!order_by_hops(w, lid[0]))
        return false;
    for (int32_t k = 0; k < S; k++) {
        const int32_t s = w->order[k];
        for (int32_t l = 0; l < lines && k + AHEAD < S; l++)
            __builtin_prefetch(t->lft + (size_t)w->order[k + AHEAD] * t->lids + line[l]);
        const int32_t left = s == target ? 0 : visit(w, s, target, ports(t, s, lid, n, copy), kind, n);
        if (left < 0)
            return false;
        w->again[rows] = s;
        rows += left > 0;
    }
    if (!settle(w, target, lid, kind, n, rows))
        return false;
    store_hops(w, lid, n, line, lines);
    return true;
}

static void run(void *workers, int32_t me)
{
    worker_t *w = (worker_t *)workers + me;
    job_t *j = w->j;
    const size_t S = (size_t)j->t->switches + 1;
    w->order = ibn_core_arrays_add(&w->arrays, S, sizeof *w->order);
    w->next = ibn_core_arrays_add(&w->arrays, S, sizeof *w->next);
    w->again = ibn_core_arrays_add(&w->arrays, S, sizeof *w->again);
    w->far = ibn_core_arrays_add(&w->arrays, S, 1);
    w->number = ibn_core_arrays_add(&w->arrays, S * SINGLES, 1);
    w->hops = ibn_core_arrays_add(&w->arrays, S * SINGLES, 1);
    w->state = ibn_core_arrays_add(&w->arrays, S * BLOCK, sizeof *w->state);
    w->bits = ibn_core_arrays_add(&w->arrays, 2 * (size_t)j->extended * j->words + 1, sizeof *w->bits);
    w->last = ibn_core_arrays_add(&w->arrays, 2 * (size_t)j->extended + 1, 1);
    w->code = w->arrays.failed ? NO_MEMORY : OK;
    int32_t b;
    while (w->code == OK && (b = ibn_core_next_item(&j->next)) < j->blocks && !atomic_load(&j->failed)) {
        const int32_t *lid = j->lid + j->block[b], n = j->block[b + 1] - j->block[b];
        if (!(b < j->singles ? run_block(w, lid, n) : run_singles(w, lid, n)))
            atomic_store(&j->failed, 1);
    }
}

/* Write to `dep` the dependencies that one thread has found, in the format of ibn_cdg_trace.  `kind` 0: routes to CAs
 * and routers, 1: routes to switches.  `vls`: the VLs of requests and replies, as bits. */
static void expand(const job_t *j, const worker_t *w, int32_t kind, uint32_t vls, uint32_t *dep)
{
    const cdg_tables *t = j->t;
    for (int32_t s = 0; s < t->switches; s++)
        for (int32_t x = t->xfirst[s]; x < t->xfirst[s + 1] - 2; x++) {
            const size_t channel = (size_t)kind * j->extended + x;
            for (int32_t word = 0; word < j->words; word++)
                for (uint64_t bits = w->bits[channel * j->words + word]; bits; bits &= bits - 1)
                    dep[t->dep_first[x] + 64 * word + __builtin_ctzll(bits)] |= vls;
            if (w->last[channel])
                dep[t->dep_first[x] + degree(t, t->xdst[x])] |= vls;
        }
}

/* Sort the LIDs by the switch that delivers them, and divide them into blocks of at most 64.  LIDs of switches that
 * deliver only one LID come last, and are divided into blocks of at most 16.  Returns false if memory is exhausted. */
static bool make_blocks(job_t *j)
{
    const cdg_tables *t = j->t;
    int32_t *first = calloc((size_t)t->switches + 2, sizeof *first), singles = 0, count = 0;
    j->lid = malloc(((size_t)t->lids + 1) * sizeof *j->lid);
    j->block = malloc(((size_t)t->lids + 2) * sizeof *j->block);
    if (!first || !j->lid || !j->block) {
        free(first);
        return false;
    }
    for (int32_t lid = 0; lid < t->lids; lid++)
        first[t->lid_switch[lid] + 1] += t->lid_switch[lid] >= 0;
    /* After this loop, first[s] is the index in `lid` at which the next LID of switch s is stored.  If the switch
     * delivers only one LID, first[s] is -1. */
    for (int32_t s = 0; s < t->switches; s++) {
        const int32_t own = first[s + 1];
        singles += own == 1;
        for (int32_t from = 0; own > 1 && from < own; from += BLOCK)
            j->block[j->blocks++] = count + from;
        first[s] = own == 1 ? -1 : count;
        count += own == 1 ? 0 : own;
    }
    j->singles = j->blocks;
    for (int32_t from = 0; from < singles; from += SINGLES)
        j->block[j->blocks++] = count + from;
    j->block[j->blocks] = count + singles;
    for (int32_t lid = 0; lid < t->lids; lid++)
        if (t->lid_switch[lid] >= 0)
            j->lid[first[t->lid_switch[lid]] < 0 ? count++ : first[t->lid_switch[lid]]++] = lid;
    free(first);
    return true;
}

/* Write to `dep` every dependency that some thread has found, in the format of ibn_cdg_trace. */
static void finish(job_t *j, worker_t *workers, int32_t threads, uint32_t *dep)
{
    const cdg_tables *t = j->t;
    for (int32_t lid = 0; lid < t->lids; lid++) {
        const uint32_t bit = t->vl_bit[t->sl[t->sl_rows ? 0 : lid]], vls = bit | bit << 16;
        if (t->lid_switch[lid] < 0)
            for (int32_t s = 0; s < t->switches; s++)
                j->hops[(size_t)s * t->lids + lid] = LOST;
        /* All dependencies of one row of `dep` get the same VLs.  Element 0 of the row stores these VLs until the
         * dependencies are written below.  Callers ignore element 0 (see trace.h). */
        else
            dep[t->lid_port[lid] ? 0 : t->slots] |= vls;
    }
    for (int32_t i = 0; i < threads; i++)
        for (int32_t kind = 0; kind < 2; kind++) {
            uint32_t *row = dep + (size_t)kind * t->slots;
            expand(j, &workers[i], kind, row[0], row);
        }
}

int ibn_cdg_trace_rows(const cdg_tables *t, int32_t threads, uint8_t *hops, uint32_t *dep, bool *done)
{
    job_t j = {.t = t, .extended = t->xfirst[t->switches], .words = 1, .hops = hops};
    worker_t workers[MAX_THREADS] = {0};
    *done = false;
    if (t->has_endport || t->spread || t->switches == 0)
        return OK;
    for (int32_t s = 0; s < t->switches; s++) {
        if (t->part[s] != t->part[0])
            return OK;
        const int32_t words = (degree(t, s) + 63) / 64;
        j.words = words > j.words ? words : j.words;
    }
    int code = make_blocks(&j) ? OK : NO_MEMORY;
    for (int32_t i = 0; i < threads; i++)
        workers[i].j = &j;
    if (code == OK)
        code = ibn_core_parallel(threads, threads, run, workers);
    for (int32_t i = 0; i < threads && code == OK; i++)
        code = workers[i].code;
    *done = code == OK && !atomic_load(&j.failed);
    if (*done)
        finish(&j, workers, threads, dep);
    for (int32_t i = 0; i < threads; i++)
        ibn_core_arrays_free(&workers[i].arrays);
    free(j.lid);
    free(j.block);
    return code;
}
