#include "cdg/trace.h"
#include "cdg/internal/forest.h"
#include "cdg/internal/trace_rows.h"
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { BLOCK = 64, MAX_THREADS = 64 };

typedef struct {
    const cdg_tables *t;
    /* [S, S]: VLs, as bits, of replies.  Row: switch that sent the requests.  Column: switch that sends the replies */
    uint16_t *reply;
    /* [S]: VLs, as bits, of the requests to the LIDs that each switch delivers.  The replies from this switch use the
     * same VLs.  The array is used only if the SL depends on the destination LID alone */
    const uint16_t *own;
    uint8_t *hops;
    atomic_int next_block;
} job;

typedef struct {
    job *j;
    cdg_forest f;
    /* [2, slots]: VLs, as bits, on which this thread has found each dependency.  Rows and elements have the format of
     * the array `dep` of ibn_cdg_trace (trace.h) */
    uint32_t *deps;
    /* [slots]: the row of the array `deps` to which the dependencies of packets to the current LID are added.  This is
     * row 0 for the LID of a CA or router, and row 1 for the LID of a switch */
    uint32_t *dep;
    int64_t sls; /* SLs in use, as bits */
    int code;
    /* [BLOCK, stride]: for each LID of the block and each switch, the VLs, as bits, of the packets to the LID that
     * enter at the switch */
    uint32_t *mask;
    /* [S + 2]: VLs, as bits, of the packets to the current LID that pass each switch.  Element S stands for "dropped",
     * and element S + 1 for "delivered" (see `next` in forest.h). */
    uint32_t *flow;
} worker;

static bool prepare(worker *w)
{
    const cdg_tables *t = w->j->t;
    if (ibn_cdg_forest_prepare(&w->f, t) != OK)
        return false;
    w->mask = t->sl_rows ? malloc(BLOCK * w->f.stride * sizeof *w->mask) : NULL;
    w->flow = malloc(((size_t)t->switches + 2) * sizeof *w->flow);
    return w->flow && (w->mask || !t->sl_rows);
}

static void dispose(worker *w)
{
    ibn_cdg_forest_dispose(&w->f);
    free(w->mask);
    free(w->flow);
}

/* Fill `mask`: for each LID of a block and each switch, the VLs of the requests to the LID that enter at the switch.
 * This function is for SLs that depend on the source switch. */
static void load_masks_by_switch(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    uint32_t used = 0;
    for (int32_t s = 0; s < t->switches; s++) {
        const uint8_t *from = t->sl + (size_t)s * t->lids + lid;
        uint32_t *to = w->mask + s;
        for (int32_t i = 0; i < count; i++) {
            uint32_t bit = t->vl_bit[from[i]];
            to[i * w->f.stride] = bit | bit << 16;
            used |= t->lid_switch[lid + i] < 0 ? 0u : 1u << from[i];
        }
    }
    w->sls |= used;
}

/* Fill `mask`: for each LID of a block and each switch, the VLs of the requests and replies to the LID that enter at
 * the switch.  This function is for SLs that depend on the source LID. */
static void load_masks_by_lid(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    uint32_t used = 0;
    memset(w->mask, 0, BLOCK * w->f.stride * sizeof *w->mask);
    for (int32_t b = 0; b < t->lids; b++) {
        if (t->lid_switch[b] < 0)
            continue;
        uint32_t *to = w->mask + t->lid_switch[b];
        const uint8_t *from = t->sl + (size_t)b * t->lids + lid;
        const bool mute = t->has_endport && !t->lid_port[b];
        for (int32_t i = 0; i < count; i++) {
            uint32_t bit = mute && !t->lid_port[lid + i] ? 0u : t->vl_bit[from[i]];
            to[i * w->f.stride] |= bit | bit << 16;
            used |= t->lid_switch[lid + i] < 0 ? 0u : 1u << from[i];
        }
    }
    for (int32_t i = 0; i < count; i++) {
        uint32_t *to = w->mask + i * w->f.stride;
        const uint8_t *request = t->sl + (size_t)(lid + i) * t->lids;
        const bool mute = t->has_endport && !t->lid_port[lid + i];
        for (int32_t b = 0; b < t->lids; b++)
            if (t->lid_switch[b] >= 0 && !(mute && !t->lid_port[b]))
                to[t->lid_switch[b]] |= (uint32_t)t->vl_bit[request[b]] << 16;
    }
    w->sls |= used;
}

/* Fill `flow` with the VLs, as bits, of the packets that enter at each switch towards a LID.  The low 16 bits have the
 * VLs of requests, the high 16 bits the VLs of requests and replies. */
static void enter_traffic(worker *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    int32_t switches = t->switches;
    const uint32_t *mask = w->mask + i * w->f.stride;
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

/* Fill `flow` with the VLs of the packets that CAs and routers send towards the LID of a switch.  Packets that switches
 * send are left out.  The function cannot be used if SLs depend on the sender's LID. */
static void enter_from_endports(worker *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    const int32_t switches = t->switches;
    const bool by_switch = t->spread && t->sl_rows == switches;
    const uint32_t *mask = w->mask + i * w->f.stride;
    const uint32_t bit = t->vl_bit[t->sl[t->sl_rows ? 0 : lid]];
    for (int32_t s = 0; s < switches; s++)
        w->flow[s] = !t->has_endport[s] ? 0 : by_switch ? mask[s] : bit | bit << 16;
    w->flow[switches] = w->flow[switches + 1] = 0;
    if (!t->spread)
        return;
    const uint8_t *request = t->sl + (by_switch ? (size_t)t->lid_switch[lid] * t->lids : 0);
    for (int32_t b = 0; b < t->lids; b++)
        if (t->lid_switch[b] >= 0 && t->lid_port[b])
            w->flow[t->lid_switch[b]] |= (uint32_t)t->vl_bit[request[b]] << 16;
}

/* Add the dependencies between the channels of each forwarding loop.  Packets that enter a loop use all its channels,
 * one after the other.  The comment of the function collect describes `number`, `spread` and `all`. */
static void add_loops(worker *w, const uint8_t *number, bool spread, uint32_t all)
{
    const cdg_tables *t = w->j->t;
    cdg_forest *f = &w->f;
    for (int32_t s = 0; s < t->switches; s++) {
        if (f->degree[s] == 0)
            continue;
        uint32_t flow = spread ? 0 : all;
        int32_t u = s;
        do {
            flow |= spread ? w->flow[u] : 0;
            f->degree[u] = 0;
            u = f->next[u];
        } while (u != s);
        do {
            int32_t v = f->next[u];
            w->dep[t->dep_first[t->xfirst[u] + number[u]] + number[v]] |= flow;
            u = v;
        } while (u != s);
    }
}

/* Collect the dependencies of packets to one LID.  Each switch is visited after all switches upstream of it.  The
 * packets that pass the visited switch use its channel, and then the channel of the next switch.  The dependency
 * between these two channels is recorded for the VLs of these packets.  The same VLs are added to the VLs of the
 * packets that pass the next switch.
 *
 * number[s]: number of the channel by which switch s sends to the LID (see trace.h).
 * spread: if true, packets to the LID use the VLs in w->flow; otherwise all these packets use the VLs in `all`
 * (bits). */
static inline void collect(worker *w, const uint8_t *restrict number, bool spread, uint32_t all)
{
    const cdg_tables *t = w->j->t;
    const int32_t *restrict xfirst = t->xfirst, *restrict dep_first = t->dep_first;
    const int32_t *restrict next = w->f.next, *restrict queue = w->f.queue;
    uint32_t *restrict dep = w->dep, *restrict flow = w->flow;
    for (int32_t k = 0; k < w->f.sorted; k++) {
        int32_t u = queue[k], v = next[u];
        uint32_t through = spread ? flow[u] : all;
        dep[dep_first[xfirst[u] + number[u]] + number[v]] |= through;
        if (spread)
            flow[v] |= through;
    }
    if (w->f.sorted < t->switches)
        add_loops(w, number, spread, all);
}

static void run_block(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    if (!ibn_cdg_forest_any_wanted(t, lid, count))
        return;
    ibn_cdg_forest_load(&w->f, lid, count);
    if (t->spread && t->sl_rows == t->switches)
        load_masks_by_switch(w, lid, count);
    else if (t->spread && t->sl_rows)
        load_masks_by_lid(w, lid, count);
    for (int32_t i = 0; i < count; i++) {
        const uint8_t *number = w->f.number + i * w->f.stride;
        if (!ibn_cdg_forest_wanted(t, lid + i))
            continue;
        ibn_cdg_forest_grow(&w->f, lid + i, i);
        if (t->lid_switch[lid + i] < 0)
            continue;
        const bool by_lid = t->spread && t->sl_rows && t->sl_rows != t->switches;
        w->dep = w->deps + (t->lid_port[lid + i] ? 0 : t->slots);
        if (t->has_endport && !by_lid) {
            enter_from_endports(w, lid + i, i);
            collect(w, number, true, 0);
        } else if (t->spread) {
            enter_traffic(w, lid + i, i);
            collect(w, number, true, 0);
        } else {
            uint32_t bit = t->vl_bit[t->sl[t->sl_rows ? 0 : lid + i]];
            collect(w, number, false, bit | bit << 16);
        }
    }
    if (!t->has_endport)
        ibn_cdg_forest_store(&w->f, lid, count, w->j->hops);
}

/* Process blocks of LIDs in one thread until no block is left.  The results of all threads are combined by OR and by
 * addition.  So the results do not depend on which thread processed which block. */
static void run(void *workers, int32_t me)
{
    worker *w = (worker *)workers + me;
    const cdg_tables *t = w->j->t;
    if (!prepare(w)) {
        w->code = NO_MEMORY;
    } else {
        int32_t lid;
        while ((lid = ibn_core_next_item(&w->j->next_block) * BLOCK) < t->lids)
            run_block(w, lid, t->lids - lid < BLOCK ? t->lids - lid : BLOCK);
    }
    dispose(w);
}

/* Collect the VLs of all replies to requests from switch d, by the switch that sends the reply.  A reply enters the
 * fabric at the destination of its request, and uses the SL of the request. */
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
        workers[i].deps = i ? calloc(2 * (size_t)t->slots, sizeof *dep) : dep;
        if (!workers[i].deps)
            return NO_MEMORY;
    }
    if (t->spread && t->sl_rows == t->switches) {
        j->reply = calloc((size_t)t->switches * t->switches, sizeof *j->reply);
        if (!j->reply)
            return NO_MEMORY;
        if (ibn_core_parallel(threads, t->switches, run_replies, j) != OK)
            return NO_MEMORY;
    }
    int code = ibn_core_parallel(threads, threads, run, workers);
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
    bool done;
    int code = ibn_cdg_trace_rows(t, threads, hops, dep, &done);
    if (code == OK && !done)
        code = start(&j, workers, threads, dep);
    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < 3; k++)
            counts[k] += workers[i].f.counts[k];
        counts[3] |= workers[i].sls;
        if (i == 0 || !workers[i].deps)
            continue;
        for (size_t slot = 0; slot < 2 * (size_t)t->slots; slot++)
            dep[slot] |= workers[i].deps[slot];
        free(workers[i].deps);
    }
    free(j.reply);
    free(own);
    return code;
}
