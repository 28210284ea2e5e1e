#include "cdg/trace_vls.h"
#include "cdg/internal/forest.h"
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { BLOCK = 64, SLS = 16, DROP = 15, MAX_THREADS = 64 };

typedef struct {
    const cdg_tables *t;
    const cdg_vl_assignment *l;
    uint8_t *hops;
    /* [S, P, P]: by switch, in-port and out-port, the SLs, as bits, that are not dropped; NULL: no SL is dropped
     * anywhere */
    const uint16_t *passes;
    atomic_int next_block;
} job;

typedef struct {
    job *j;
    cdg_forest f;
    uint16_t *deps; /* [2, slots, V]: dependencies found by this thread, in the format of `dep` of ibn_cdg_trace_vls */
    /* [slots, V]: the row of `deps` for the current LID: row 0 if the LID belongs to a CA or router, row 1 if it
     * belongs to a switch */
    uint16_t *dep;
    /* vls_used: VLs in use, as bits.
     * dropped: number of pairs (switch, LID) for which packets of some sender at the switch are dropped because of
     * their SL. */
    int64_t vls_used, dropped;
    int code;
    /* [S + 2, 16]: by switch and SL, the VLs, as bits, of the packets on the channel by which the switch sends to the
     * current LID.  In this array and in the next two arrays, row S stands for "dropped", and row S + 1 for "delivered"
     * (see `next` in forest.h) */
    uint16_t *flow;
    /* [S + 2]: by switch, the SLs, as bits, of the packets on the channel by which the switch sends to the current
     * LID */
    uint16_t *present;
    /* [S + 2]: by switch, the SLs, as bits, with which packets from the switch pass all later switches of the route to
     * the LID */
    uint16_t *rest;
    uint8_t *lost; /* [S]: whether some sender at the switch loses packets to the LID because of their SL */
    uint8_t *sl;   /* [BLOCK, N]: SL of each sender towards each LID of the block */
} worker;

static bool prepare(worker *w)
{
    size_t size = (size_t)w->j->t->switches + 2;
    if (ibn_cdg_forest_prepare(&w->f, w->j->t) != OK)
        return false;
    w->flow = malloc(size * SLS * sizeof *w->flow);
    w->present = malloc(size * sizeof *w->present);
    w->rest = malloc(size * sizeof *w->rest);
    w->lost = malloc(size);
    w->sl = malloc(BLOCK * ((size_t)w->j->l->senders + 1));
    return w->flow && w->present && w->rest && w->lost && w->sl;
}

static void dispose(worker *w)
{
    ibn_cdg_forest_dispose(&w->f);
    free(w->flow);
    free(w->present);
    free(w->rest);
    free(w->lost);
    free(w->sl);
}

static inline const uint8_t *vl_row(const worker *w, int32_t s, int32_t in, int32_t out)
{
    const size_t ports = w->j->l->ports;
    return w->j->l->sl2vl + (((size_t)s * ports + in) * ports + out) * SLS;
}

/* Set *x to the extended channel by which switch s sends to the current LID (trace.h explains the term).  Returns
 * whether this channel leads to another switch.  If the channel leads to no other switch, *x may be unset. */
static inline bool channel_of(const worker *w, const uint8_t *number, int32_t s, int32_t *x)
{
    const cdg_tables *t = w->j->t;
    if (w->f.next[s] >= t->switches)
        return false;
    *x = t->xfirst[s] + number[s];
    return t->dep_first[*x] > 0;
}

/* Record that packets with SL `sl` enter the fabric at switch s by in-port `in`.  These packets leave switch s by its
 * channel to the LID, on the VL that SL2VL assigns. */
static inline void enter(worker *w, const uint8_t *number, int32_t s, int32_t in, uint8_t sl)
{
    int32_t x;
    if (!channel_of(w, number, s, &x))
        return;
    uint8_t vl = vl_row(w, s, in, w->j->l->xport[x])[sl];
    if (vl < DROP) {
        w->flow[(size_t)s * SLS + sl] |= (uint16_t)(1u << vl);
        w->present[s] |= (uint16_t)(1u << sl);
    }
}

/* Return whether packets that switches send to this LID are left out.  This is so if traffic between switches does
 * not count and the LID belongs to a switch. */
static inline bool mutes_switches(const cdg_tables *t, int32_t lid)
{
    return t->has_endport && !t->lid_port[lid];
}

static void enter_requests(worker *w, const uint8_t *number, const uint8_t *sl, int32_t lid)
{
    const cdg_vl_assignment *l = w->j->l;
    const bool mute = mutes_switches(w->j->t, lid);
    for (int32_t n = 0; n < l->senders; n++)
        if (!mute || l->sender_port[n])
            enter(w, number, l->sender_switch[n], l->sender_port[n], sl[n]);
}

static void enter_replies(worker *w, const uint8_t *number, int32_t lid)
{
    const cdg_tables *t = w->j->t;
    const bool mute = mutes_switches(t, lid);
    const uint8_t *row = t->sl;
    if (t->sl_rows == t->switches)
        row = t->sl + (size_t)t->lid_switch[lid] * t->lids;
    else if (t->sl_rows)
        row = t->sl + (size_t)lid * t->lids;
    for (int32_t r = 0; r < w->j->l->repliers; r++) {
        const int32_t b = w->j->l->replier[r];
        if (!mute || t->lid_port[b])
            enter(w, number, t->lid_switch[b], t->lid_port[b], row[b]);
    }
}

/* Follow the packets on the channel of switch u to the next switch.  There, SL2VL assigns a VL to each SL again.
 * Record the dependencies of the channel of switch u on the channel of the next switch.  Returns whether packets with a
 * new pair of SL and VL reached the channel of the next switch. */
static bool step(worker *w, const uint8_t *number, int32_t u)
{
    const cdg_tables *t = w->j->t;
    const cdg_vl_assignment *l = w->j->l;
    int32_t x, y, v = w->f.next[u];
    bool grew = false;
    if (!w->present[u] || !channel_of(w, number, u, &x))
        return false;
    for (unsigned left = w->present[u]; left; left &= left - 1) {
        unsigned sl = (unsigned)__builtin_ctz(left);
        w->vls_used |= w->flow[(size_t)u * SLS + sl];
    }
    if (!channel_of(w, number, v, &y))
        return false;
    const uint8_t *vl = vl_row(w, v, l->xin[x], l->xport[y]);
    uint16_t *dep = w->dep + (size_t)(t->dep_first[x] + number[v]) * l->vls;
    for (unsigned left = w->present[u]; left; left &= left - 1) {
        unsigned sl = (unsigned)__builtin_ctz(left);
        if (vl[sl] >= DROP)
            continue;
        const uint16_t bit = (uint16_t)(1u << vl[sl]);
        for (unsigned from = w->flow[(size_t)u * SLS + sl]; from; from &= from - 1)
            dep[__builtin_ctz(from)] |= bit;
        uint16_t *to = w->flow + (size_t)v * SLS + sl;
        grew |= !(*to & bit);
        *to |= bit;
        w->present[v] |= (uint16_t)(1u << sl);
    }
    return grew;
}

/* Collect the dependencies of all packets to a LID.  Each switch is visited after all switches upstream of it.
 * Switches on forwarding loops are visited last, and repeatedly until no new SL or VL appears. */
static void collect(worker *w, const uint8_t *number)
{
    const cdg_forest *f = &w->f;
    for (int32_t k = 0; k < f->sorted; k++)
        step(w, number, f->queue[k]);
    for (bool grew = f->sorted < w->j->t->switches; grew;) {
        grew = false;
        for (int32_t s = 0; s < w->j->t->switches; s++)
            grew |= f->degree[s] && step(w, number, s);
    }
}

/* Record where the requests and replies to a LID enter the fabric, and collect the dependencies of these packets. */
static void follow(worker *w, const uint8_t *number, const uint8_t *sl, int32_t lid)
{
    const cdg_tables *t = w->j->t;
    w->dep = w->deps + (t->lid_port[lid] ? 0 : (size_t)t->slots * w->j->l->vls);
    memset(w->flow, 0, ((size_t)t->switches + 2) * SLS * sizeof *w->flow);
    memset(w->present, 0, ((size_t)t->switches + 2) * sizeof *w->present);
    enter_requests(w, number, sl, lid);
    enter_replies(w, number, lid);
    collect(w, number);
}

/* Count the switches that have a sender whose requests to the LID are dropped because of their SL.  Switches near the
 * LID are visited first.  So the SLs that are not dropped on the rest of the route are known. */
static void count_dropped(worker *w, const uint8_t *number, const uint8_t *sl, int32_t lid)
{
    const cdg_tables *t = w->j->t;
    const cdg_vl_assignment *l = w->j->l;
    const size_t ports = l->ports;
    const int32_t target = t->lid_switch[lid];
    memset(w->lost, 0, t->switches);
    for (int32_t k = w->f.sorted - 1; k >= 0; k--) {
        int32_t u = w->f.queue[k], v = w->f.next[u], x, y;
        w->rest[u] = 0xFFFF;
        if (u == target || !channel_of(w, number, u, &x))
            continue;
        int32_t out = v == target ? t->lid_port[lid] : channel_of(w, number, v, &y) ? l->xport[y] : 0;
        w->rest[u] = out ? w->rest[v] & w->j->passes[((size_t)v * ports + l->xin[x]) * ports + out] : w->rest[v];
    }
    for (int32_t n = 0; n < l->senders; n++) {
        int32_t s = l->sender_switch[n], x;
        if (w->f.hop[s] >= 255)
            continue;
        int32_t out = s == target ? t->lid_port[lid] : channel_of(w, number, s, &x) ? l->xport[x] : 0;
        if (out && !(w->rest[s] & w->j->passes[((size_t)s * ports + l->sender_port[n]) * ports + out] & 1u << sl[n]))
            w->lost[s] = 1;
    }
    for (int32_t s = 0; s < t->switches; s++)
        w->dropped += w->lost[s];
}

/* Fill `sl` with the SL of each sender's packets to each LID of a block. */
static void load_levels(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    const cdg_vl_assignment *l = w->j->l;
    for (int32_t n = 0; n < l->senders; n++) {
        const size_t row = !t->sl_rows ? 0 : t->sl_rows == t->switches ? l->sender_switch[n] : l->sender_lid[n];
        const uint8_t *from = t->sl + row * t->lids + lid;
        for (int32_t i = 0; i < count; i++)
            w->sl[(size_t)i * l->senders + n] = from[i];
    }
}

/* Return whether the i-th LID of a block adds no dependencies.  This is so if the same switch delivers an earlier LID
 * of the block, and if both LIDs have equal routes and SLs. */
static bool repeats(const worker *w, int32_t lid, int32_t i)
{
    const cdg_tables *t = w->j->t;
    const int32_t target = t->lid_switch[lid + i];
    const uint8_t *number = w->f.number + i * w->f.stride, *sl = w->sl + (size_t)i * w->j->l->senders;
    /* If SLs depend on the source LID, the replies to two LIDs of one switch may have different SLs.  Then no LID is
     * skipped. */
    if (t->sl_rows && t->sl_rows != t->switches)
        return false;
    for (int32_t k = i - 1; k >= 0; k--)
        if (t->lid_switch[lid + k] == target && !t->lid_port[lid + k] == !t->lid_port[lid + i]
            && !memcmp(w->f.number + k * w->f.stride, number, t->switches)
            && !memcmp(w->sl + (size_t)k * w->j->l->senders, sl, w->j->l->senders))
            return true;
    return false;
}

static void run_block(worker *w, int32_t lid, int32_t count)
{
    const cdg_tables *t = w->j->t;
    const cdg_vl_assignment *l = w->j->l;
    if (!ibn_cdg_forest_any_wanted(t, lid, count))
        return;
    ibn_cdg_forest_load(&w->f, lid, count);
    load_levels(w, lid, count);
    for (int32_t i = 0; i < count; i++) {
        const int32_t target = t->lid_switch[lid + i];
        uint8_t *number = w->f.number + i * w->f.stride, *sl = w->sl + (size_t)i * l->senders;
        if (!ibn_cdg_forest_wanted(t, lid + i))
            continue;
        ibn_cdg_forest_grow(&w->f, lid + i, i);
        if (target < 0)
            continue;
        /* The switch that delivers the LID gets the placeholder for "dropped" as its channel, because a delivered
         * packet uses no further channel either. */
        if (w->f.next[target] > t->switches)
            number[target] = (uint8_t)(t->xfirst[target + 1] - t->xfirst[target] - 2);
        if (!repeats(w, lid, i))
            follow(w, number, sl, lid + i);
        if (w->j->passes && !t->has_endport)
            count_dropped(w, number, sl, lid + i);
    }
    if (!t->has_endport)
        ibn_cdg_forest_store(&w->f, lid, count, w->j->hops);
}

static void run(void *workers, int32_t me)
{
    worker *w = (worker *)workers + me;
    const cdg_tables *t = w->j->t;
    int32_t lid;
    if (!w->deps || !prepare(w))
        w->code = NO_MEMORY;
    else
        while ((lid = ibn_core_next_item(&w->j->next_block) * BLOCK) < t->lids)
            run_block(w, lid, t->lids - lid < BLOCK ? t->lids - lid : BLOCK);
    dispose(w);
}

/* List for each in-port and out-port of each switch the SLs whose packets are not dropped.  If no SL is dropped
 * anywhere, *passes becomes NULL.  Returns 0, or 1 if memory is exhausted. */
static int list_passes(const cdg_tables *t, const cdg_vl_assignment *l, uint16_t **passes)
{
    const size_t turns = (size_t)t->switches * l->ports * l->ports;
    size_t k = 0;
    *passes = NULL;
    while (k < turns * SLS && l->sl2vl[k] < DROP)
        k++;
    if (k == turns * SLS)
        return OK;
    *passes = calloc(turns, sizeof **passes);
    for (size_t dependency = 0; *passes && dependency < turns; dependency++)
        for (int sl = 0; sl < SLS; sl++)
            (*passes)[dependency] |= (uint16_t)((l->sl2vl[dependency * SLS + sl] < DROP) << sl);
    return *passes ? OK : NO_MEMORY;
}

int ibn_cdg_trace_vls(const cdg_tables *t, const cdg_vl_assignment *l, uint8_t *hops, uint16_t *dep, int64_t *counts)
{
    int threads = t->threads < 1 ? 1 : t->threads > MAX_THREADS ? MAX_THREADS : t->threads;
    const size_t cells = 2 * (size_t)t->slots * l->vls;
    worker workers[MAX_THREADS] = {0};
    uint16_t *passes;
    int code = list_passes(t, l, &passes);
    job j = {.t = t, .l = l, .hops = hops, .passes = passes};
    memset(counts, 0, 5 * sizeof *counts);
    for (int i = 0; i < threads; i++) {
        workers[i].j = &j;
        workers[i].deps = i ? calloc(cells, sizeof *dep) : dep;
    }
    if (code == OK)
        code = ibn_core_parallel(threads, threads, run, workers);
    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < 3; k++)
            counts[k] += workers[i].f.counts[k];
        counts[3] |= workers[i].vls_used;
        counts[4] += workers[i].dropped;
        code = code ? code : workers[i].code;
        for (size_t k = 0; i && workers[i].deps && k < cells; k++)
            dep[k] |= workers[i].deps[k];
        if (i)
            free(workers[i].deps);
    }
    free(passes);
    return code;
}
