#include "transition/transition.h"
#include "transition/internal/paths.h"
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { MAX_THREADS = 64 };

typedef struct {
    const transition_tables *t;
    const uint32_t *enter;
    uint8_t *loops;
    atomic_int next_column;
} job;

typedef struct {
    job *j;
    transition_paths paths;
    uint32_t *dep;  /* [slots]: VLs, as bits, on which packets can have each dependency */
    uint32_t *flow; /* [S]: VLs, as bits, of the packets to the current LID that may pass each switch */
    int code;
} worker;

/* Add the dependencies whose first channel leaves switch s.  The first channel belongs to the old or the new entry of
 * switch s.  The second channel belongs to the old or the new entry of the next switch. */
static void collect(worker *w, int32_t s)
{
    const transition_tables *t = w->j->t;
    for (int path = 0; path < 2; path++) {
        const int32_t x = w->paths.x[path][s];
        if (x < 0)
            continue;
        const int32_t v = w->paths.next[path][s];
        for (int then = 0; then < 2; then++)
            if (w->paths.x[then][v] >= 0)
                w->dep[t->dep_first[x] + w->paths.x[then][v] - t->xfirst[v]] |= w->flow[s];
    }
}

static void run_column(worker *w, int32_t column)
{
    const int32_t switches = w->j->t->switches;
    ibn_transition_read_column(&w->paths, column);
    w->j->loops[column] = w->paths.loops;
    ibn_transition_spread_flow(&w->paths, w->j->enter + (size_t)column * switches, w->flow);
    for (int32_t s = 0; s < switches; s++)
        collect(w, s);
}

/* Process LFT columns in one thread until no column is left.  The results of all threads are combined by OR.  So the
 * results do not depend on which thread processed which column. */
static void run(void *workers, int32_t me)
{
    worker *w = (worker *)workers + me;
    const transition_tables *t = w->j->t;
    int32_t column;
    w->flow = malloc(((size_t)t->switches + 1) * sizeof *w->flow);
    w->code = ibn_transition_prepare_paths(&w->paths, t) || !w->flow || !w->dep ? NO_MEMORY : OK;
    while (w->code == OK && (column = ibn_core_next_item(&w->j->next_column)) < t->columns)
        run_column(w, column);
    ibn_transition_dispose_paths(&w->paths);
    free(w->flow);
}

int ibn_transition_trace(const transition_tables *t, const uint32_t *enter, uint32_t *dep, uint8_t *loops)
{
    const int threads = t->threads < 1 ? 1 : t->threads > MAX_THREADS ? MAX_THREADS : t->threads;
    worker workers[MAX_THREADS] = {0};
    job j = {.t = t, .enter = enter, .loops = loops};
    for (int i = 0; i < threads; i++) {
        workers[i].j = &j;
        workers[i].dep = i ? calloc((size_t)t->slots, sizeof *dep) : dep;
    }
    int code = ibn_core_parallel(threads, threads, run, workers);
    for (int i = 0; i < threads; i++) {
        code = code ? code : workers[i].code;
        for (int32_t slot = 0; i && workers[i].dep && slot < t->slots; slot++)
            dep[slot] |= workers[i].dep[slot];
        if (i)
            free(workers[i].dep);
    }
    return code;
}
