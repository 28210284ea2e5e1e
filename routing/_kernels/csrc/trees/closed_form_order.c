/* Order the switches of a tree topology.  In such a switch order, a channel leads up if it ends at an earlier switch.
 * Every path that leads up and then down in the levels shall also lead up and then down in the order.  Every switch,
 * except the first of each connected part, shall have a neighbour before it.
 *
 * A switch is placed in the order when all switches directly above it are placed.  This rule is not enough if a part
 * has several top switches: every top switch except the first one also needs a neighbour before it.  So some switches
 * are placed before switches directly above them.  The link from such a switch up to a later switch is reversed: its
 * lower end comes first in the order.
 *
 * A path that leads up a reversed link in the levels leads down in the order, and must not lead up in the order
 * afterwards.  Two rules ensure this.  First, the path may continue up in the levels.  So if a link is reversed, all
 * links up from the upper switch of this link are reversed too.  Second, the path may continue down in the levels, to
 * another switch.  So a switch has at most one reversed link to a switch below it.  A link that would break a rule is
 * not used by paths: its `kind` becomes CF_UNUSED. */
#include "trees/internal/closed_form_state.h"

#include <stdlib.h>

typedef struct {
    int32_t switches;
    const int32_t *first, *dst, *reverse, *level;
    uint8_t *kind;
    int32_t *position; /* [S] position of each switch in the order, -1: the switch is not placed yet */
    int32_t *missing;  /* [S] number of channels that lead up from each switch to a switch without a position */
    int32_t *above;    /* [S] number of channels from each switch up to switches that have a position already */
    int32_t *near;     /* [S] number of channels from each switch, up or down, to switches that have a position */
    int32_t *queue;    /* [S] switches that can be placed now */
    int32_t head, tail, placed;
} order_t;

static void place(order_t *x, int32_t v)
{
    x->position[v] = x->placed++;
    for (int32_t c = x->first[v]; c < x->first[v + 1]; c++) {
        const int32_t w = x->dst[c];
        x->near[w]++;
        if (x->kind[c] != CF_DOWN || x->position[w] >= 0)
            continue;
        x->above[w]++;
        if (--x->missing[w] == 0)
            x->queue[x->tail++] = w;
    }
}

/* Let no path use the parallel channels between switches v and w, in either direction. */
static void take_out(order_t *x, int32_t v, int32_t w)
{
    for (int32_t c = x->first[v]; c < x->first[v + 1]; c++)
        if (x->dst[c] == w)
            x->kind[c] = x->kind[x->reverse[c]] = CF_UNUSED;
}

/* Return whether all links up from switch w can be reversed.  The links can be reversed if neither w nor any switch
 * directly above w has a position in the order yet. */
static int is_free(const order_t *x, int32_t w)
{
    return x->position[w] < 0 && x->above[w] == 0;
}

/* Place switch v although some switches above it are not placed.  Place these switches after v, so that the links
 * between v and these switches are reversed.  If a link cannot be reversed, no path uses this link. */
static void place_below(order_t *x, int32_t v)
{
    place(x, v);
    for (int32_t c = x->first[v]; c < x->first[v + 1]; c++) {
        const int32_t w = x->dst[c];
        if (x->kind[c] != CF_UP || (c > x->first[v] && x->dst[c - 1] == w))
            continue;
        if (x->position[w] >= 0 && x->position[w] < x->position[v])
            continue;
        if (is_free(x, w))
            place_below(x, w);
        else
            take_out(x, v, w);
    }
}

/* Choose the switch that is placed next, although some switches above it are not placed yet.  Switches below a placed
 * switch are preferred, followed by neighbours of a placed switch, followed by all other switches.  Of equally
 * preferred switches, the first switch on the highest level is chosen. */
static int32_t next_start(const order_t *x)
{
    int32_t best = -1, best_rank = -1;
    for (int32_t v = 0; v < x->switches; v++) {
        if (x->position[v] >= 0)
            continue;
        const int32_t rank = x->above[v] ? 2 : x->near[v] > 0;
        if (best < 0 || rank > best_rank || (rank == best_rank && x->level[v] > x->level[best]))
            best = v, best_rank = rank;
    }
    return best;
}

int ibn_trees_level_order(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                          const int32_t *level, uint8_t *kind, int32_t *position)
{
    const size_t size = (size_t)switches + 1;
    order_t x = {.switches = switches, .first = first, .dst = dst, .reverse = reverse, .level = level, .kind = kind};
    x.position = position;
    x.missing = calloc(4 * size, sizeof *x.missing);
    if (!x.missing)
        return CF_NO_MEMORY;
    x.above = x.missing + size, x.near = x.above + size, x.queue = x.near + size;
    for (int32_t v = 0; v < switches; v++) {
        position[v] = -1;
        for (int32_t c = first[v]; c < first[v + 1]; c++)
            x.missing[v] += kind[c] == CF_UP;
    }
    while (x.placed < switches) {
        for (; x.head < x.tail; x.head++)
            if (position[x.queue[x.head]] < 0)
                place(&x, x.queue[x.head]);
        if (x.placed < switches)
            place_below(&x, next_start(&x));
    }
    free(x.missing);
    return CF_OK;
}
