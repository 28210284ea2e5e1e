/* See internal/mixed_ways.h. */
#include "internal/mixed_ways.h"

#include <stdlib.h>
#include <string.h>

int ibn_mixed_prepare(mixed_ways *w, const mixed_tables *t)
{
    size_t size = ((size_t)t->switches + 1) * sizeof(int32_t);
    *w = (mixed_ways){.t = t, .degree = malloc(size), .queue = malloc(size)};
    for (int way = 0; way < 2; way++) {
        w->x[way] = malloc(size);
        w->next[way] = malloc(size);
    }
    return !(w->degree && w->queue && w->x[0] && w->x[1] && w->next[0] && w->next[1]);
}

void ibn_mixed_dispose(mixed_ways *w)
{
    for (int way = 0; way < 2; way++) {
        free(w->x[way]);
        free(w->next[way]);
    }
    free(w->degree);
    free(w->queue);
}

/* Record the next hop of a switch by its old (way 0) or new (way 1) entry. */
static void follow(mixed_ways *w, int32_t s, int way, uint8_t port)
{
    const mixed_tables *t = w->t;
    const int32_t x = t->xfirst[s] + t->exit[(size_t)s * 256 + port];
    w->circles |= t->xdst[x] == s;
    if (t->dep_first[x] == 0)
        return;
    w->x[way][s] = x;
    w->next[way][s] = t->xdst[x];
    w->degree[t->xdst[x]]++;
}

/* Read the old and new entries of a column and sort the switches topologically (Kahn's algorithm). */
void ibn_mixed_read(mixed_ways *w, int32_t column)
{
    const int32_t switches = w->t->switches;
    const uint8_t *before = w->t->before + (size_t)column * switches, *after = w->t->after + (size_t)column * switches;
    int32_t tail = 0;
    memset(w->degree, 0, (size_t)switches * sizeof *w->degree);
    w->circles = false;
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
        for (int way = 0; way < 2; way++) {
            const int32_t s = w->queue[head];
            if (w->x[way][s] >= 0 && --w->degree[w->next[way][s]] == 0)
                w->queue[tail++] = w->next[way][s];
        }
    w->sorted = tail;
    w->circles |= tail < switches;
}

/* Pass a switch's traffic on to its next hops.  Returns whether one of them got new traffic. */
static bool pass_on(const mixed_ways *w, int32_t s, uint32_t *flow)
{
    bool grew = false;
    for (int way = 0; way < 2; way++) {
        if (w->x[way][s] < 0)
            continue;
        uint32_t *to = flow + w->next[way][s];
        grew |= (flow[s] & ~*to) != 0;
        *to |= flow[s];
    }
    return grew;
}

void ibn_mixed_spread(const mixed_ways *w, const uint32_t *enter, uint32_t *flow)
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
