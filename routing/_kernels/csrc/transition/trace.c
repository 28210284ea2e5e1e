/* Collect the dependencies of mixed old and new tables, if packets keep their VL along a path: see transition.h. */
#include "transition/internal/columns.h"
#include "transition/transition.h"

/* Add the dependencies whose first channel leaves switch s.  The first channel belongs to the old or the new entry of
 * switch s.  The second channel belongs to the old or the new entry of the next switch. */
static void collect(const column_worker *w, int32_t s, uint32_t vls)
{
    const transition_tables *t = w->of->t;
    uint32_t *dep = w->dep;
    for (int path = 0; path < 2; path++) {
        const int32_t x = w->paths.x[path][s], v = x < 0 ? -1 : w->paths.next[path][s];
        for (int then = 0; v >= 0 && then < 2; then++)
            if (w->paths.x[then][v] >= 0)
                dep[t->dep_first[x] + w->paths.x[then][v] - t->xfirst[v]] |= vls;
    }
}

static void trace(column_worker *w, int32_t column)
{
    const int32_t switches = w->of->t->switches;
    const uint32_t *enter = w->of->context;
    uint32_t *flow = w->flow; /* [S]: VLs, as bits, of the packets to the LID that may pass each switch */
    ibn_transition_spread_flow(&w->paths, enter + (size_t)column * switches, flow);
    for (int32_t s = 0; s < switches; s++)
        collect(w, s, flow[s]);
}

int ibn_transition_trace(const transition_tables *t, const uint32_t *enter, uint32_t *dep, uint8_t *loops)
{
    const size_t dep_size = (size_t)t->slots * sizeof *dep, flow_size = ((size_t)t->switches + 1) * sizeof(uint32_t);
    return ibn_transition_trace_columns(&(column_trace){t, enter, trace, dep_size, flow_size, loops}, dep);
}
