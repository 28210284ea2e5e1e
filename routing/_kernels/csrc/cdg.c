#include "cdg.h"
#include "parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { BLOCK = 64, DELIVERED = -1, LOST = 255, CIRCLES = 256, MAX_THREADS = 64 };

typedef struct {
    const cdg_tables *t;
    uint16_t *reply;          /* [S, S]: VLs of the replies that leave switch s towards any LID at switch d: [d, s] */
    const uint16_t *own;      /* [S]: VLs of the requests to the LIDs at a switch, where the SL hangs on the LID alone */
    uint8_t *hops;
    atomic_int next_block;
} job;

typedef struct {
    job *j;
    uint32_t *dep;
    int64_t counts[4];
    int code;
    size_t stride;
    uint8_t *number;          /* [BLOCK, stride]: channel that each switch takes, LID by LID */
    uint8_t *far;             /* [BLOCK, stride]: hops */
    uint32_t *mask;           /* [BLOCK, stride]: VLs that enter at each switch */
    int32_t *next, *degree, *queue;
    int16_t *hop;
    uint32_t *flow;
} worker;

static bool prepare(worker *w)
{
    size_t s = (size_t)w->j->t->switches + 2;
    /* An odd number of cache lines, so that the rows of a block do not fall into the same few sets of the cache. */
    w->stride = ((s + 63) / 64 | 1) * 64;
    w->number = malloc(BLOCK * w->stride);
    w->far = malloc(BLOCK * w->stride);
    w->mask = w->j->t->sl_rows ? malloc(BLOCK * w->stride * sizeof *w->mask) : NULL;
    w->next = malloc(s * sizeof *w->next);
    w->degree = malloc(s * sizeof *w->degree);
    w->queue = malloc((s + 1) * sizeof *w->queue);
    w->hop = malloc(s * sizeof *w->hop);
    w->flow = malloc(s * sizeof *w->flow);
    return w->number && w->far && (w->mask || !w->j->t->sl_rows) && w->next && w->degree && w->queue && w->hop
        && w->flow;
}

static void dispose(worker *w)
{
    free(w->number);
    free(w->far);
    free(w->mask);
    free(w->next);
    free(w->degree);
    free(w->queue);
    free(w->hop);
    free(w->flow);
}

/* Turn the rows of the LFT, which hold one switch each, into rows that hold one LID each. */
static void load_numbers(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    for (int32_t s = 0; s < t->switches; s++) {
        const uint8_t *from = t->lft + (size_t)s * t->lids + lid;
        const uint8_t *exit = t->exit + (size_t)s * 256;
        uint8_t *to = w->number + s;
        for (int32_t i = 0; i < count; i++)
            to[i * w->stride] = exit[from[i]];
    }
}

static void load_masks_by_switch(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    uint32_t used = 0;
    for (int32_t s = 0; s < t->switches; s++) {
        const uint8_t *from = t->sl + (size_t)s * t->lids + lid;
        uint32_t *to = w->mask + s;
        for (int32_t i = 0; i < count; i++) {
            uint32_t bit = t->vl_bit[from[i]];
            to[i * w->stride] = bit | bit << 16;
            used |= t->lid_switch[lid + i] < 0 ? 0u : 1u << from[i];
        }
    }
    w->counts[3] |= used;
}

static void load_masks_by_lid(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    memset(w->mask, 0, BLOCK * w->stride * sizeof *w->mask);
    for (int32_t b = 0; b < t->lids; b++) {
        if (t->lid_switch[b] < 0)
            continue;
        uint32_t *to = w->mask + t->lid_switch[b];
        const uint8_t *from = t->sl + (size_t)b * t->lids;
        for (int32_t i = 0; i < count; i++) {
            const uint8_t *request = t->sl + (size_t)(lid + i) * t->lids;
            uint32_t bit = t->vl_bit[from[lid + i]];
            to[i * w->stride] |= bit | bit << 16 | (uint32_t)t->vl_bit[request[b]] << 16;
            w->counts[3] |= t->lid_switch[lid + i] < 0 ? 0 : 1 << from[lid + i];
        }
    }
}

static void enter_traffic(worker *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    int32_t switches = t->switches;
    const uint32_t *mask = w->mask + i * w->stride;
    if (t->sl_rows == 0) {
        uint32_t bit = t->vl_bit[t->sl[lid]];
        for (int32_t s = 0; s < switches; s++)
            w->flow[s] = bit | (bit | w->j->own[s]) << 16;
    } else if (t->sl_rows == switches) {
        const uint16_t *reply = w->j->reply + (size_t)t->lid_switch[lid] * switches;
        for (int32_t s = 0; s < switches; s++)
            w->flow[s] = mask[s] | (uint32_t)reply[s] << 16;
    } else {
        memcpy(w->flow, mask, switches * sizeof *mask);
    }
    w->flow[switches] = w->flow[switches + 1] = 0;
}

/* Routes that run in a circle: everything that enters one is everywhere on it. */
static void close_circles(worker *w, const uint8_t *number, bool spread, uint32_t all)
{
    const cdg_tables *t = w->j->t;
    for (int32_t s = 0; s < t->switches; s++) {
        if (w->degree[s] == 0)
            continue;
        uint32_t flow = spread ? 0 : all;
        int32_t u = s;
        do {
            flow |= spread ? w->flow[u] : 0;
            w->hop[u] = CIRCLES;
            w->degree[u] = 0;
            u = w->next[u];
        } while (u != s);
        do {
            int32_t v = w->next[u];
            w->dep[t->dep_first[t->xfirst[u] + number[u]] + number[v]] |= flow;
            u = v;
        } while (u != s);
    }
}

/*
 * One LID.  Its routes are a forest of pointers.  Switches are taken off it from the leaves on, so that each is reached
 * after all that send through it; the way back gives the hops.
 */
static inline void follow(worker *w, int32_t lid, uint8_t *number, bool spread)
{
    const cdg_tables *t = w->j->t;
    const int32_t switches = t->switches, target = t->lid_switch[lid];
    const int32_t *restrict xfirst = t->xfirst, *restrict xdst = t->xdst, *restrict dep_first = t->dep_first;
    int32_t *restrict next = w->next, *restrict degree = w->degree, *restrict queue = w->queue;
    uint32_t *restrict dep = w->dep, *restrict flow = w->flow;
    int16_t *restrict hop = w->hop;
    uint32_t all = t->vl_bit[t->sl[t->sl_rows ? 0 : lid]];
    all |= all << 16;
    number[switches] = number[switches + 1] = 0;
    memset(degree, 0, (switches + 2) * sizeof *degree);
    for (int32_t s = 0; s < switches; s++)
        degree[next[s] = xdst[xfirst[s] + number[s]]]++;
    if (t->lft[(size_t)target * t->lids + lid] == t->lid_port[lid])
        next[target] = switches + 1;
    degree[switches] = degree[switches + 1] = INT32_MAX;
    int32_t tail = 0;
    for (int32_t s = 0; s < switches; s++) {
        queue[tail] = s;
        tail += degree[s] == 0;
    }
    for (int32_t head = 0; head < tail; head++) {
        int32_t u = queue[head], v = next[u];
        uint32_t through = spread ? flow[u] : all;
        dep[dep_first[xfirst[u] + number[u]] + number[v]] |= through;
        if (spread)
            flow[v] |= through;
        queue[tail] = v;
        tail += --degree[v] == 0;
    }
    if (tail < switches)
        close_circles(w, number, spread, all);
    hop[switches] = LOST;
    hop[switches + 1] = DELIVERED;
    while (tail--) {
        int32_t h = hop[next[queue[tail]]];
        hop[queue[tail]] = (int16_t)(h + (h < LOST - 1));
    }
}

static void store_hops(worker *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    uint8_t *far = w->far + i * w->stride;
    int32_t lost = 0;
    for (int32_t s = 0; s < t->switches; s++) {
        far[s] = (uint8_t)(w->hop[s] < LOST ? w->hop[s] : LOST);
        lost += far[s] == LOST;
    }
    if (lost == 0)
        return;
    int32_t part = t->part[t->lid_switch[lid]];
    for (int32_t s = 0; s < t->switches; s++) {
        w->counts[t->part[s] != part] += far[s] == LOST;
        w->counts[2] += w->hop[s] == CIRCLES;
    }
}

static void run_block(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    load_numbers(w, lid, count);
    if (t->spread && t->sl_rows == t->switches)
        load_masks_by_switch(w, lid, count);
    else if (t->spread && t->sl_rows)
        load_masks_by_lid(w, lid, count);
    for (int32_t i = 0; i < count; i++) {
        if (t->lid_switch[lid + i] < 0) {
            memset(w->far + i * w->stride, LOST, t->switches);
            continue;
        }
        uint8_t *number = w->number + i * w->stride;
        if (t->spread) {
            enter_traffic(w, lid + i, i);
            follow(w, lid + i, number, true);
        } else {
            follow(w, lid + i, number, false);
        }
        store_hops(w, lid + i, i);
    }
    for (int32_t s = 0; s < t->switches; s++) {
        uint8_t *to = w->j->hops + (size_t)s * t->lids + lid;
        for (int32_t i = 0; i < count; i++)
            to[i] = w->far[i * w->stride + s];
    }
}

/* One thread's share: blocks of LIDs until there are none left.  What it finds is OR-ed and summed up, so that it does
 * not matter who took which. */
static void run(void *workers, int32_t me)
{
    worker *w = (worker *)workers + me;
    const cdg_tables *t = w->j->t;
    if (!prepare(w)) {
        w->code = NO_MEMORY;
    } else {
        int32_t lid;
        while ((lid = atomic_fetch_add(&w->j->next_block, 1) * BLOCK) < t->lids)
            run_block(w, lid, t->lids - lid < BLOCK ? t->lids - lid : BLOCK);
    }
    dispose(w);
}

/* Replies to the requests that leave switch d: they enter where the request went, on its SL. */
static void run_replies(void *context, int32_t d)
{
    const job *j = context;
    const cdg_tables *t = j->t;
    uint16_t *row = j->reply + (size_t)d * t->switches;
    const uint8_t *sl = t->sl + (size_t)d * t->lids;
    for (int32_t b = 0; b < t->lids; b++)
        if (t->lid_switch[b] >= 0)
            row[t->lid_switch[b]] |= t->vl_bit[sl[b]];
}

static int start(job *j, worker *workers, int threads, uint32_t *dep)
{
    const cdg_tables *t = j->t;
    for (int i = 0; i < threads; i++) {
        workers[i].j = j;
        workers[i].dep = i ? calloc(t->slots, sizeof *dep) : dep;
        if (!workers[i].dep)
            return NO_MEMORY;
    }
    if (t->spread && t->sl_rows == t->switches) {
        j->reply = calloc((size_t)t->switches * t->switches, sizeof *j->reply);
        if (!j->reply)
            return NO_MEMORY;
        if (ibn_parallel(threads, t->switches, run_replies, j) != OK)
            return NO_MEMORY;
    }
    int code = ibn_parallel(threads, threads, run, workers);
    for (int i = 0; i < threads && code == OK; i++)
        code = workers[i].code;
    return code;
}

int ibn_cdg_trace(const cdg_tables *t, uint8_t *hops, uint32_t *dep, int64_t *counts)
{
    int threads = t->threads < 1 ? 1 : t->threads > MAX_THREADS ? MAX_THREADS : t->threads;
    worker workers[MAX_THREADS] = {0};
    uint16_t *own = calloc(t->switches + 1, sizeof *own);
    job j = {.t = t, .own = own, .hops = hops};
    if (!own)
        return NO_MEMORY;
    memset(counts, 0, 4 * sizeof *counts);
    for (int32_t b = 0; t->sl_rows == 0 && b < t->lids; b++)
        if (t->lid_switch[b] >= 0) {
            own[t->lid_switch[b]] |= t->vl_bit[t->sl[b]];
            counts[3] |= 1 << t->sl[b];
        }
    int code = start(&j, workers, threads, dep);
    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < 3; k++)
            counts[k] += workers[i].counts[k];
        counts[3] |= workers[i].counts[3];
        if (i == 0 || !workers[i].dep)
            continue;
        for (int32_t slot = 0; slot < t->slots; slot++)
            dep[slot] |= workers[i].dep[slot];
        free(workers[i].dep);
    }
    free(j.reply);
    free(own);
    return code;
}
