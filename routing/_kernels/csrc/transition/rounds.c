/* Compute in which round each new LFT entry is written, and the CDG edges that packets can use during these rounds: see
 * internal/rounds.h and transition.h. */
#include "transition/internal/rounds.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };

int ibn_transition_round_prepare(transition_round *g, const transition_tables *t)
{
    const size_t size = ((size_t)t->switches + 1) * sizeof(uint32_t);
    *g = (transition_round){.t = t, .here = malloc(size)};
    g->flow[0] = malloc(size);
    g->flow[1] = malloc(size);
    return !(g->here && g->flow[0] && g->flow[1]);
}

void ibn_transition_round_dispose(transition_round *g)
{
    free(g->here);
    free(g->flow[0]);
    free(g->flow[1]);
}

/* Return whether an entry of switch s can be in use in round r.  The old entry (path 0) is in use until the end of the
 * round that replaces it.  The new entry (path 1) is in use from the beginning of the round that replaces the old
 * entry. */
static inline bool is_there(const uint8_t *round, int32_t s, int path, int r)
{
    return path ? round[s] <= r : !round[s] || round[s] >= r;
}

/* Add the VLs of the packets that have reached switch s to the VLs of its next hops in round r.  Returns whether a next
 * hop got a VL that this next hop did not have before. */
static bool pass_on(transition_round *g, const transition_paths *w, const uint8_t *round, int32_t s, int r)
{
    bool grew = false;
    for (int path = 0; path < 2; path++) {
        if (w->x[path][s] < 0 || !is_there(round, s, path, r))
            continue;
        uint32_t *to = g->here + w->next[path][s];
        g->flow[path][s] |= g->here[s];
        grew |= (g->here[s] & ~*to) != 0;
        *to |= g->here[s];
    }
    return grew;
}

/* Pass packets on over all entries that are in use in round r, until no switch receives a further VL. */
static void spread(transition_round *g, const transition_paths *w, const uint8_t *round, int r)
{
    for (int32_t k = 0; k < w->sorted; k++)
        pass_on(g, w, round, w->queue[k], r);
    for (bool grew = w->sorted < g->t->switches; grew;) {
        grew = false;
        for (int32_t s = 0; s < g->t->switches; s++)
            grew |= w->degree[s] && pass_on(g, w, round, s, r);
    }
}

/* List a part of the dependencies, and return the number of listed dependencies.  Dependencies are selected by the
 * entry that leads to their second channel.
 * r > 0: select the old entries that round r replaces.  Packets can take these entries until the end of round r.
 * r = 0: select the unchanged entries and the new entries. */
static int32_t list(const transition_round *g, const transition_paths *w, const uint8_t *round, int r,
                    round_dependency *dependency)
{
    const transition_tables *t = g->t;
    int32_t count = 0;
    for (int32_t u = 0; u < t->switches; u++)
        for (int path = 0; path < 2; path++) {
            const int32_t x = w->x[path][u], v = x < 0 ? -1 : w->next[path][u];
            if (v < 0 || round[v] != (r ? r : round[v]))
                continue;
            const int32_t y = w->x[!r && round[v]][v];
            if (y >= 0 && g->flow[path][u])
                dependency[count++] = (round_dependency){x, y, g->flow[path][u]};
        }
    return count;
}

int32_t ibn_transition_round_dependencies(transition_round *g, const transition_paths *w, const uint32_t *enter,
                                          const uint8_t *round, round_dependency *dependency)
{
    const size_t size = (size_t)g->t->switches * sizeof(uint32_t);
    int32_t count = 0;
    int last = 1;
    for (int32_t s = 0; s < g->t->switches; s++)
        last = round[s] > last ? round[s] : last;
    memcpy(g->here, enter, size);
    memset(g->flow[0], 0, size);
    memset(g->flow[1], 0, size);
    for (int r = 1; r <= last; r++) {
        spread(g, w, round, r);
        count += list(g, w, round, r, dependency + count);
    }
    return count + list(g, w, round, 0, dependency + count);
}

typedef struct {
    const transition_tables *t;
    transition_paths paths;
    /* [S]: number of different channels to which the old and the new entry of each switch lead; -1: the switch is not
     * in the core (see find_core) */
    int32_t *out;
    /* [S]: scratch of two functions.  In find_core: the switches to be removed from the core.  In depth_of: the
     * switches on the current path. */
    int32_t *rest;
    /* [S]: number of separate rounds that the changed switches on the new path from each switch need; -1: not computed
     * yet */
    int32_t *depth;
} rounds_job;

/* Find the core of the current LFT column.  The core has two kinds of switches: switches on forwarding loops of old
 * and new entries, and switches on paths from one such loop to another.  For every other switch, set the element of
 * the array `out` to -1. */
static void find_core(rounds_job *j)
{
    const int32_t switches = j->t->switches;
    int32_t tail = 0;
    for (int32_t s = 0; s < switches; s++) {
        j->out[s] = 0;
        for (int path = 0; path < 2; path++)
            j->out[s] += j->paths.x[path][s] >= 0;
        if (!j->out[s])
            j->rest[tail++] = s;
    }
    /* Each pass visits all switches, and removes from the core the switches without a next hop in the core.  The passes
     * end when no such switch is left.  Few passes are needed: at most as many as the hops of the longest path. */
    for (bool grew = tail > 0; grew;) {
        grew = false;
        for (int32_t k = 0; k < tail; k++)
            j->out[j->rest[k]] = -1;
        tail = 0;
        for (int32_t s = 0; s < switches; s++) {
            int32_t left = 0;
            for (int path = 0; path < 2 && j->out[s] >= 0; path++)
                left += j->paths.x[path][s] >= 0 && j->out[j->paths.next[path][s]] >= 0;
            if (j->out[s] >= 0 && !left)
                j->rest[tail++] = s;
        }
        grew = tail > 0;
    }
    for (int32_t k = 0; k < j->paths.sorted; k++)
        j->out[j->paths.queue[k]] = -1;
}

/* Return whether the old and the new entry of switch s differ. */
static bool changes(const rounds_job *j, int32_t column, int32_t s)
{
    const size_t at = (size_t)column * j->t->switches + s;
    return j->t->before[at] != j->t->after[at];
}

/* Return how many separate rounds the changed switches on the new path from switch s need.  Returns more than 255 if
 * this path never ends.  If `all` is set, each changed switch on the path needs a separate round.  Otherwise, only the
 * changed switches of the core need separate rounds (see find_core). */
static int32_t depth_of(rounds_job *j, int32_t column, int32_t s, bool all)
{
    int32_t length = 0, v = s;
    while (v >= 0 && j->depth[v] < 0 && length < j->t->switches) {
        const int path = changes(j, column, v);
        j->rest[length++] = v;
        v = j->paths.x[path][v] < 0 ? -1 : j->paths.next[path][v];
    }
    int32_t depth = v < 0 ? 0 : j->depth[v] < 0 ? 256 : j->depth[v];
    while (length-- > 0) {
        const int32_t u = j->rest[length];
        depth += changes(j, column, u) && (all || j->out[u] >= 0) && depth < 256;
        j->depth[u] = depth;
    }
    return depth;
}

/* Compute the round of each changed entry of one LFT column, and return the number of the last round.  If `all` is set,
 * any two changed switches on a new path are written in different rounds.  `all` is the argument `outward` of
 * ibn_transition_rounds. */
static uint8_t run_column(rounds_job *j, int32_t column, bool all, uint8_t *round)
{
    const int32_t switches = j->t->switches;
    int32_t most = 1;
    ibn_transition_read_column(&j->paths, column);
    const bool loops = j->paths.loops;
    if (loops && !all)
        find_core(j);
    for (int32_t s = 0; s < switches; s++)
        j->depth[s] = -1;
    for (int32_t s = 0; s < switches; s++) {
        int32_t depth = 1;
        round[s] = 0;
        if (!changes(j, column, s))
            continue;
        if (all || loops)
            depth = depth_of(j, column, s, all);
        depth = depth < 1 ? 1 : depth > 255 ? 255 : depth;
        round[s] = (uint8_t)depth;
        most = depth > most ? depth : most;
    }
    return (uint8_t)most;
}

int ibn_transition_rounds(const transition_tables *t, int32_t outward, uint8_t *round, uint8_t *most)
{
    const size_t size = ((size_t)t->switches + 1) * sizeof(int32_t);
    rounds_job j = {.t = t, .out = malloc(size), .rest = malloc(size), .depth = malloc(size)};
    const int failed = ibn_transition_prepare_paths(&j.paths, t) || !j.out || !j.rest || !j.depth;
    for (int32_t k = 0; k < t->columns && !failed; k++)
        most[k] = run_column(&j, k, outward, round + (size_t)k * t->switches);
    ibn_transition_dispose_paths(&j.paths);
    free(j.out);
    free(j.rest);
    free(j.depth);
    return failed ? NO_MEMORY : OK;
}
