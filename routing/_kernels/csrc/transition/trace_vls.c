/* Collect the dependencies of mixed old and new tables, if packets may change their VL from hop to hop: see
 * transition.h. */
#include "transition/internal/columns.h"
#include "transition/transition.h"

#include <string.h>

enum { SLS = 16, DROP = 15 };

typedef struct {
    const transition_vls *l;
    /* [K, N] by LID and by port at which packets enter the fabric: SLs, as bits, of the packets from the port to the
     * LID */
    const uint16_t *enter;
} traffic;

static const transition_vls *vls_in(const column_worker *w)
{
    return ((const traffic *)w->of->context)->l;
}

/* Return the element of worker->flow for switch s and an entry (0: old, 1: new).  It is uint16 [16]: for each SL, the
 * VLs, as bits, of the packets with this SL on the channel of the entry. */
static inline uint16_t *flow_of(column_worker *w, int32_t s, int path)
{
    return (uint16_t *)w->flow + ((size_t)s * 2 + path) * SLS;
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
static void enter(column_worker *w, int32_t column)
{
    const transition_vls *l = vls_in(w);
    const uint16_t *mask = ((const traffic *)w->of->context)->enter + (size_t)column * l->entries;
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
static bool take(column_worker *w, int32_t x, const uint16_t *from, int32_t v, int then)
{
    const transition_tables *t = w->of->t;
    const transition_vls *l = vls_in(w);
    const int32_t y = w->paths.x[then][v];
    uint16_t per_vl[SLS], *to = flow_of(w, v, then);
    uint16_t *dep = (uint16_t *)w->dep + (size_t)(t->dep_first[x] + y - t->xfirst[v]) * l->vls;
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
static bool pass_on(column_worker *w, int32_t s)
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

static void trace(column_worker *w, int32_t column)
{
    const int32_t switches = w->of->t->switches;
    memset(w->flow, 0, w->of->flow_size);
    enter(w, column);
    for (int32_t k = 0; k < w->paths.sorted; k++)
        pass_on(w, w->paths.queue[k]);
    for (bool grew = w->paths.sorted < switches; grew;) {
        grew = false;
        for (int32_t s = 0; s < switches; s++)
            grew |= w->paths.degree[s] && pass_on(w, s);
    }
}

int ibn_transition_trace_vls(const transition_tables *t, const transition_vls *l, const uint16_t *enter, uint16_t *dep,
                             uint8_t *loops)
{
    const size_t flow_size = ((size_t)t->switches + 1) * 2 * SLS * sizeof(uint16_t);
    const size_t dep_size = (size_t)t->slots * l->vls * sizeof *dep;
    return ibn_transition_trace_columns(&(column_trace){t, &(traffic){l, enter}, trace, dep_size, flow_size, loops},
                                        dep);
}
