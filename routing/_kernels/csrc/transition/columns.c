/* Trace LFT columns in several threads: see internal/columns.h. */
#include "transition/internal/columns.h"
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <stdlib.h>

enum { OK, NO_MEMORY, MAX_THREADS = 64 };

/* Process LFT columns in one thread until no column is left.  The results of all threads are combined by OR.  So the
 * results do not depend on which thread processed which column. */
static void run(void *workers, int32_t me)
{
    column_worker *w = (column_worker *)workers + me;
    const transition_tables *t = w->of->t;
    int32_t column;
    w->flow = malloc(w->of->flow_size);
    w->code = ibn_transition_prepare_paths(&w->paths, t) || !w->flow || !w->dep ? NO_MEMORY : OK;
    while (w->code == OK && (column = ibn_core_next_item(w->next_column)) < t->columns) {
        ibn_transition_read_column(&w->paths, column);
        w->of->loops[column] = w->paths.loops;
        w->of->trace(w, column);
    }
    ibn_transition_dispose_paths(&w->paths);
    free(w->flow);
}

int ibn_transition_trace_columns(const column_trace *given, void *dep)
{
    const int32_t asked = given->t->threads, threads = asked < 1 ? 1 : asked > MAX_THREADS ? MAX_THREADS : asked;
    column_worker workers[MAX_THREADS] = {0};
    atomic_int next_column = 0;
    for (int32_t i = 0; i < threads; i++)
        workers[i] = (column_worker){given, &next_column, .dep = i ? calloc(1, given->dep_size) : dep};
    int code = ibn_core_parallel(threads, threads, run, workers);
    for (int32_t i = 0; i < threads; i++) {
        const uint8_t *found = workers[i].dep;
        code = code ? code : workers[i].code;
        for (size_t k = 0; i && found && k < given->dep_size; k++)
            ((uint8_t *)dep)[k] |= found[k];
        free(i ? workers[i].dep : NULL);
    }
    return code;
}
