#include "transition/internal/paths.h"
#include "core/internal/work_queue.h"
#include "transition/transition.h"
#include "core/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { SLS = 16, DROP = 15, MAX_THREADS = 64 };

typedef struct {
    const transition_tables *t;
    const transition_vls *l;
    const uint16_t *enter;
    uint8_t *loops;
    atomic_int next_column;
} job;

typedef struct {
    job *j;
    transition_paths paths;
    /* [slots, V]: element (i, v) has the VLs, as bits, on the second channel of dependency i, for packets with VL v on
     * its first channel */
    uint16_t *dep;
    /* [S, 2, 16]: for each switch, entry (0: old, 1: new) and SL, the VLs, as bits, of the packets with this SL on the
     * channel of the entry */
    uint16_t *flow;
    int code;
} worker;

static inline uint16_t *flow_of(worker *w, int32_t s, int path)
{
    return w->flow + ((size_t)s * 2 + path) * SLS;
}

/* Compute the VLs that switch s may assign to packets from an in-port to an out-port.  The switch may use its old or
 * its new SL2VL table.
 *
 * per_vl: uint16 [16], output: for each SL, the VLs, as bits, that packets with this SL may get. */
static void vls_of(const transition_vls *l, int32_t s, int32_t in, int32_t out, uint16_t *per_vl)
{
    const size_t row = (((size_t)s * l->ports + in) * l->ports + out) * SLS;
    for (int sl = 0; sl < SLS; sl++) {
        const uint8_t before = l->sl2vl_before[row + sl], after = l->sl2vl_after[row + sl];
        per_vl[sl] = (uint16_t)((before < DROP ? 1u << before : 0u) | (after < DROP ? 1u << after : 0u));
    }
}

/* Record the VLs that packets to the LID with index `column` have when they leave their first switch.  Such a packet
 * leaves its first switch by the channel of the old or of the new entry. */
static void enter(worker *w, int32_t column)
{
    const transition_vls *l = w->j->l;
    const uint16_t *mask = w->j->enter + (size_t)column * l->entries;
    uint16_t per_vl[SLS];
    for (int32_t n = 0; n < l->entries; n++) {
        const int32_t s = l->entry_switch[n];
        for (int path = 0; path < 2 && mask[n]; path++) {
            if (w->paths.x[path][s] < 0)
                continue;
            vls_of(l, s, l->entry_port[n], l->xport[w->paths.x[path][s]], per_vl);
            for (unsigned left = mask[n]; left; left &= left - 1)
                flow_of(w, s, path)[__builtin_ctz(left)] |= per_vl[__builtin_ctz(left)];
        }
    }
}

/* Pass packets from extended channel x on to a channel of the next switch v, and record the dependency between both
 * channels.  The second channel belongs to the old entry of v if `then` is 0, and to the new entry if `then` is 1.
 * Returns whether packets with a new pair of SL and VL reached the second channel. */
static bool take(worker *w, int32_t x, const uint16_t *from, int32_t v, int then)
{
    const transition_tables *t = w->j->t;
    const transition_vls *l = w->j->l;
    const int32_t y = w->paths.x[then][v];
    uint16_t per_vl[SLS], *to = flow_of(w, v, then);
    uint16_t *dep = w->dep + (size_t)(t->dep_first[x] + y - t->xfirst[v]) * l->vls;
    bool grew = false;
    vls_of(l, v, l->xin[x], l->xport[y], per_vl);
    for (int sl = 0; sl < SLS; sl++) {
        if (!from[sl])
            continue;
        for (unsigned left = from[sl]; left; left &= left - 1)
            dep[__builtin_ctz(left)] |= per_vl[sl];
        grew |= (per_vl[sl] & ~to[sl]) != 0;
        to[sl] |= per_vl[sl];
    }
    return grew;
}

/* Pass the packets on the channels of switch s on to the channels of the old and new entries of the next switches.
 * Returns whether packets with a new pair of SL and VL reached one of these channels. */
static bool pass_on(worker *w, int32_t s)
{
    bool grew = false;
    for (int path = 0; path < 2; path++) {
        const int32_t x = w->paths.x[path][s];
        for (int then = 0; x >= 0 && then < 2; then++)
            if (w->paths.x[then][w->paths.next[path][s]] >= 0)
                grew |= take(w, x, flow_of(w, s, path), w->paths.next[path][s], then);
    }
    return grew;
}

static void run_column(worker *w, int32_t column)
{
    const int32_t switches = w->j->t->switches;
    ibn_transition_read_column(&w->paths, column);
    w->j->loops[column] = w->paths.loops;
    memset(w->flow, 0, (size_t)switches * 2 * SLS * sizeof *w->flow);
    enter(w, column);
    for (int32_t k = 0; k < w->paths.sorted; k++)
        pass_on(w, w->paths.queue[k]);
    for (bool grew = w->paths.sorted < switches; grew;) {
        grew = false;
        for (int32_t s = 0; s < switches; s++)
            grew |= w->paths.degree[s] && pass_on(w, s);
    }
}

static void run(void *workers, int32_t me)
{
    worker *w = (worker *)workers + me;
    const transition_tables *t = w->j->t;
    int32_t column;
    w->flow = malloc(((size_t)t->switches + 1) * 2 * SLS * sizeof *w->flow);
    w->code = ibn_transition_prepare_paths(&w->paths, t) || !w->flow || !w->dep ? NO_MEMORY : OK;
    while (w->code == OK && (column = ibn_core_next_item(&w->j->next_column)) < t->columns)
        run_column(w, column);
    ibn_transition_dispose_paths(&w->paths);
    free(w->flow);
}

int ibn_transition_trace_vls(const transition_tables *t, const transition_vls *l, const uint16_t *enter, uint16_t *dep,
                             uint8_t *loops)
{
    const int threads = t->threads < 1 ? 1 : t->threads > MAX_THREADS ? MAX_THREADS : t->threads;
    const size_t cells = (size_t)t->slots * l->vls;
    worker workers[MAX_THREADS] = {0};
    job j = {.t = t, .l = l, .enter = enter, .loops = loops};
    for (int i = 0; i < threads; i++) {
        workers[i].j = &j;
        workers[i].dep = i ? calloc(cells, sizeof *dep) : dep;
    }
    int code = ibn_core_parallel(threads, threads, run, workers);
    for (int i = 0; i < threads; i++) {
        code = code ? code : workers[i].code;
        for (size_t k = 0; i && workers[i].dep && k < cells; k++)
            dep[k] |= workers[i].dep[k];
        if (i)
            free(workers[i].dep);
    }
    return code;
}
