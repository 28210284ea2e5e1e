/* Read the old and new LFT entries towards a LID.  Compute which packets may pass each switch if every switch uses its
 * old or its new entry: see internal/paths.h. */
#include "transition/internal/paths.h"

#include <stdlib.h>
#include <string.h>

int ibn_transition_prepare_paths(transition_paths *w, const transition_tables *t)
{
    size_t size = ((size_t)t->switches + 1) * sizeof(int32_t);
    *w = (transition_paths){.t = t, .degree = malloc(size), .queue = malloc(size)};
    for (int path = 0; path < 2; path++) {
        w->x[path] = malloc(size);
        w->next[path] = malloc(size);
    }
    return !(w->degree && w->queue && w->x[0] && w->x[1] && w->next[0] && w->next[1]);
}

void ibn_transition_dispose_paths(transition_paths *w)
{
    for (int path = 0; path < 2; path++) {
        free(w->x[path]);
        free(w->next[path]);
    }
    free(w->degree);
    free(w->queue);
}

/* Record the next hop of switch s over out-port `port`.  The out-port is the old entry of the switch if `path` is 0,
 * and the new entry if `path` is 1. */
static void follow(transition_paths *w, int32_t s, int path, uint8_t port)
{
    const transition_tables *t = w->t;
    const int32_t x = t->xfirst[s] + t->exit[(size_t)s * 256 + port];
    w->loops |= t->xdst[x] == s;
    if (t->dep_first[x] == 0)
        return;
    w->x[path][s] = x;
    w->next[path][s] = t->xdst[x];
    w->degree[t->xdst[x]]++;
}

/* Read the old and new entries towards the LID with index `column`, and sort the switches topologically (Kahn's
 * algorithm). */
void ibn_transition_read_column(transition_paths *w, int32_t column)
{
    const int32_t switches = w->t->switches;
    const uint8_t *before = w->t->before + (size_t)column * switches, *after = w->t->after + (size_t)column * switches;
    int32_t tail = 0;
    memset(w->degree, 0, (size_t)switches * sizeof *w->degree);
    w->loops = false;
    for (int32_t s = 0; s < switches; s++) {
        w->x[0][s] = w->x[1][s] = -1;
        follow(w, s, 0, before[s]);
        if (after[s] != before[s])
            follow(w, s, 1, after[s]);
    }
    for (int32_t s = 0; s < switches; s++)
        if (w->degree[s] == 0)
            w->queue[tail++] = s;
    for (int32_t head = 0; head < tail; head++)
        for (int path = 0; path < 2; path++) {
            const int32_t s = w->queue[head];
            if (w->x[path][s] >= 0 && --w->degree[w->next[path][s]] == 0)
                w->queue[tail++] = w->next[path][s];
        }
    w->sorted = tail;
    w->loops |= tail < switches;
}

/* Add the VLs of the packets that pass switch s to the VLs of its old and its new next hop.  Returns whether a next hop
 * got a VL that this next hop did not have before. */
static bool pass_on(const transition_paths *w, int32_t s, uint32_t *flow)
{
    bool grew = false;
    for (int path = 0; path < 2; path++) {
        if (w->x[path][s] < 0)
            continue;
        uint32_t *to = flow + w->next[path][s];
        grew |= (flow[s] & ~*to) != 0;
        *to |= flow[s];
    }
    return grew;
}

void ibn_transition_spread_flow(const transition_paths *w, const uint32_t *enter, uint32_t *flow)
{
    const int32_t switches = w->t->switches;
    memcpy(flow, enter, (size_t)switches * sizeof *flow);
    for (int32_t k = 0; k < w->sorted; k++)
        pass_on(w, w->queue[k], flow);
    for (bool grew = w->sorted < switches; grew;) {
        grew = false;
        for (int32_t s = 0; s < switches; s++)
            grew |= w->degree[s] && pass_on(w, s, flow);
    }
}
