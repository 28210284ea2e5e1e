/* Improve switch orders, and compute the hops and first channels of the paths that lead up and then down in a switch
 * order: see disjoint.h. */
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"
#include "disjoint/internal/disjoint_job.h"

enum { FAR = 60000 };

/* Return the number of pairs of channels out of one switch in which both channels lead up or both lead down.  The
 * switch has `count` channels, of which `up` lead up. */
static int64_t same_side(int64_t up, int64_t count)
{
    return up * (up - 1) / 2 + (count - up) * (count - up - 1) / 2;
}

typedef struct {
    const int32_t *first, *dst;
    int32_t *position; /* [S]: position of each switch in the order */
    int32_t *at;       /* [S]: switch at each position */
    int32_t *up;       /* [S]: number of channels of each switch that lead up (to switches at lower positions) */
} order_search;

/* Consider one channel from neighbour w to a switch that moves from position a to position b in the switch order.
 * Return 1 if the channel leads up only after the move, -1 if it leads up only before the move, and otherwise 0. */
static int32_t change_of(const order_search *search, int32_t w, int32_t a, int32_t b)
{
    const int32_t p = search->position[w];
    if (a < p && p <= b)
        return -1;
    return b <= p && p < a ? 1 : 0;
}

/* Move the switch at position a to position b, and the switches in between by one position.  A pair of channels out of
 * one switch is bad if both channels lead up or both lead down.  The move is made only if the total number of bad pairs
 * at all switches does not rise.  This number is computed exactly only if there are no parallel channels. */
static void try_move(order_search *search, int32_t a, int32_t b)
{
    const int32_t v = search->at[a], channels = search->first[v + 1] - search->first[v];
    int64_t delta = 0;
    int32_t mine = search->up[v];
    for (int32_t c = search->first[v]; c < search->first[v + 1]; c++) {
        const int32_t w = search->dst[c], change = change_of(search, w, a, b);
        mine -= change;
        delta += same_side(search->up[w] + change, search->first[w + 1] - search->first[w])
                 - same_side(search->up[w], search->first[w + 1] - search->first[w]);
    }
    delta += same_side(mine, channels) - same_side(search->up[v], channels);
    if (delta > 0)
        return;
    for (int32_t c = search->first[v]; c < search->first[v + 1]; c++)
        search->up[search->dst[c]] += change_of(search, search->dst[c], a, b);
    search->up[v] = mine;
    const int32_t step = b > a ? 1 : -1;
    for (int32_t x = a; x != b; x += step) {
        search->at[x] = search->at[x + step];
        search->position[search->at[x]] = x;
    }
    search->at[b] = v;
    search->position[v] = b;
}

int ibn_disjoint_balance_order(int32_t switches, const int32_t *first, const int32_t *dst, int32_t steps, uint64_t seed,
                               int32_t *position)
{
    order_search search = {first, dst, position, malloc(((size_t)switches + 1) * sizeof(int32_t)),
                           calloc((size_t)switches + 1, sizeof(int32_t))};
    const int code = search.at && search.up ? DISJOINT_OK : DISJOINT_NO_MEMORY;
    if (code == DISJOINT_OK) {
        for (int32_t v = 0; v < switches; v++) {
            search.at[position[v]] = v;
            for (int32_t c = first[v]; c < first[v + 1]; c++)
                search.up[v] += position[dst[c]] < position[v];
        }
        for (int32_t i = 0; i < steps && switches > 1; i++) {
            const uint64_t draw = ibn_core_draw(&seed);
            const int32_t a = (int32_t)(((draw >> 32) * (uint64_t)switches) >> 32);
            const int32_t b = (int32_t)(((draw & 0xFFFFFFFF) * (uint64_t)switches) >> 32);
            if (a != b)
                try_move(&search, a, b);
        }
    }
    free(search.at);
    free(search.up);
    return code;
}

/* Find the paths to destination d that lead up and then down in a switch order (both parts may be empty).
 *
 * any: [S], output: hops of the shortest such path from each switch.
 * degree: [S], output: number of channels of each switch with which a path that leads up and then down in at most
 * `most_hops` hops begins; at most 255.
 * down: [S], scratch: hops of the shortest path from each switch that leads down only. */
static void reach_one(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *position,
                      const int32_t *at, int32_t d, int32_t most_hops, int32_t *down, int32_t *any, uint8_t *degree)
{
    for (int32_t v = 0; v < switches; v++)
        down[v] = FAR;
    down[d] = 0;
    for (int32_t x = position[d] - 1; x >= 0; x--) {
        const int32_t v = at[x];
        for (int32_t c = first[v]; c < first[v + 1]; c++)
            if (position[dst[c]] > x && down[dst[c]] + 1 < down[v])
                down[v] = down[dst[c]] + 1;
    }
    /* Paths that begin with a channel up are computed after all paths that lead down only.  Switches are visited by
     * ascending position.  A channel up ends at a switch of lower position, whose hops have been computed already. */
    for (int32_t x = 0; x < switches; x++) {
        const int32_t v = at[x];
        int32_t usable = 0;
        any[v] = down[v];
        for (int32_t c = first[v]; c < first[v + 1]; c++) {
            const int32_t w = dst[c], beyond = 1 + (position[w] < x ? any[w] : down[w]);
            usable += beyond <= most_hops;
            if (beyond < any[v])
                any[v] = beyond;
        }
        degree[v] = (uint8_t)(v == d ? 0 : usable < 255 ? usable : 255);
    }
}

int ibn_disjoint_reach(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *position,
                       int32_t most_hops, uint16_t *hops, uint8_t *degree)
{
    int32_t *scratch = malloc(((size_t)switches + 1) * 3 * sizeof *scratch);
    if (!scratch)
        return DISJOINT_NO_MEMORY;
    int32_t *at = scratch, *down = at + switches, *any = down + switches;
    for (int32_t v = 0; v < switches; v++)
        at[position[v]] = v;
    for (int32_t d = 0; d < switches; d++) {
        uint16_t *row = hops + (int64_t)d * switches;
        reach_one(switches, first, dst, position, at, d, most_hops, down, any, degree + (int64_t)d * switches);
        for (int32_t v = 0; v < switches; v++)
            row[v] = (uint16_t)(any[v] < FAR ? any[v] : DISJOINT_UNREACHED);
    }
    free(scratch);
    return DISJOINT_OK;
}

int ibn_disjoint_distances(int32_t switches, const int32_t *first, const int32_t *dst, uint16_t *hops)
{
    int32_t *queue = malloc(((size_t)switches + 1) * sizeof *queue);
    if (!queue)
        return DISJOINT_NO_MEMORY;
    memset(hops, 0xFF, (size_t)switches * (size_t)switches * sizeof *hops);
    for (int32_t d = 0; d < switches; d++) {
        uint16_t *row = hops + (int64_t)d * switches;
        int32_t head = 0, tail = 1;
        queue[0] = d;
        row[d] = 0;
        while (head < tail) {
            const int32_t u = queue[head++];
            for (int32_t c = first[u]; c < first[u + 1]; c++)
                if (row[dst[c]] == DISJOINT_UNREACHED) {
                    row[dst[c]] = (uint16_t)(row[u] + 1);
                    queue[tail++] = dst[c];
                }
        }
    }
    free(queue);
    return DISJOINT_OK;
}
