/* Assign to every LID a top switch, and the channels by which paths to the LID lead down from there.
 *
 * The assignment balances numbers of LIDs.  The LIDs below a switch are divided among the switch's links up.  The share
 * of a link, rounded down, is the number of LIDs that the link may carry.  On a complete k-ary n-tree, this gives the
 * formula D-mod-K: at each switch of level l, a path to destination d takes the channel up with number floor(d / k^l)
 * mod k (E.  Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees",
 * 2010).
 *
 * If links are missing, some LIDs get no top switch.  For such a LID, each source chooses a path separately: see
 * closed_form_search.c. */
#include "trees/internal/closed_form_state.h"

#include <stdlib.h>

typedef struct {
    cf_state *x;
    /* [S] by switch.  For a top switch: number of end ports at and below it.  For any other switch: the largest of
     * these numbers, of all top switches above it */
    double *reach;
    /* [C] for each channel up: number of further LIDs whose paths may lead down over the link of the channel */
    double *room;
    /* [S] by switch: number of LIDs with flow whose assigned chain contains the switch, also as the last switch */
    double *through;
    /* [S] by switch: the end port of the last LID that got a chain up to or through the switch, not counting LIDs
     * without flow; -1: no such LID so far */
    int32_t *taken_by;
} assign_t;

/* Return whether channel c of switch v leads up to a useful top switch.  A top switch is useful if it has many end
 * ports below it: more than half of the largest number that any top switch above v has.  A switch that has lost its
 * links up looks like a top switch, but is not useful, because few end ports are below it. */
static int reaches(const assign_t *a, int32_t v, int32_t c)
{
    return 2.0 * a->reach[a->x->tree->dst[c]] > a->reach[v];
}

/* Return whether channel c up from switch v may carry LIDs: it must be fast, and must lead to a useful top switch (see
 * the function reaches). */
static int leads_high(const assign_t *a, int32_t v, int32_t c)
{
    return a->x->fast[c] && reaches(a, v, c);
}

static void find_reach(assign_t *a)
{
    const ibn_tree *tree = a->x->tree;
    for (int32_t n = 0; n < tree->switches; n++) {
        const int32_t v = a->x->by_level[n];
        const uint8_t *down = a->x->down + (size_t)v * tree->switches;
        a->reach[v] = tree->sources[v];
        for (int32_t t = 0; a->x->top_number[v] >= 0 && t < tree->switches; t++)
            a->reach[v] += down[t] != CF_NONE ? tree->sources[t] : 0.0;
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
            if (tree->kind[c] == CF_UP && a->reach[tree->dst[c]] > a->reach[v])
                a->reach[v] = a->reach[tree->dst[c]];
    }
}

/* Compute the number of LIDs that each link up may carry.  The LIDs below a switch are divided among its links up by
 * capacity.  Each share is rounded down, but is at least 1. */
static void find_room(assign_t *a, double *expected)
{
    const ibn_tree *tree = a->x->tree;
    for (int32_t n = tree->switches - 1; n >= 0; n--) {
        const int32_t v = a->x->by_level[n];
        double capacity = 0.0;
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
            capacity += tree->kind[c] == CF_UP && reaches(a, v, c)
                            ? 1.0 / ibn_trees_closed_form_inverse_capacity(tree, c)
                            : 0.0;
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
            if (!leads_high(a, v, c))
                continue;
            const int64_t whole =
                (int64_t)(expected[v] / ibn_trees_closed_form_inverse_capacity(tree, c) / capacity + 1e-9);
            a->room[c] = whole > 0 ? (double)whole : 1.0;
            expected[tree->dst[c]] += a->room[c];
        }
    }
}

/* Choose a channel up out of switch v for the chain of LID k.  If the LID has flow, this function chooses only the
 * first channel of the chain, and next_step chooses all other channels of the chain.  If the LID has no flow, this
 * function chooses all channels of the chain.
 *
 * Of n possible channels, the channel with index d mod n is taken.  Here, d is the number of the LID for the rule
 * D-mod-K: its element of `digit` in ibn_tree_lids.  If this channel may carry no further LID, the next channel that
 * may carry one is taken.  With `any`, it does not matter how many LIDs a channel carries.  Returns -1 if no channel is
 * possible. */
static int32_t first_step(const assign_t *a, int32_t v, int32_t k, int any)
{
    const ibn_tree *tree = a->x->tree;
    const int32_t *digit = a->x->lids->digit;
    int32_t count = 0, best = -1, distance = INT32_MAX;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
        count += leads_high(a, v, c);
    for (int32_t c = tree->first[v], i = 0; c < tree->first[v + 1]; c++) {
        if (!leads_high(a, v, c))
            continue;
        const int32_t after = (i++ - digit[k] % count + count) % count;
        if ((any || a->room[c] >= 1.0) && after < distance)
            best = c, distance = after;
    }
    return best;
}

/* Choose the next channel of LID k's chain, out of switch v.  A chain is the channels up from the LID's switch to
 * the LID's top switch.  A channel has room if it may carry one more LID.  Of the channels with room, the channel to
 * the switch with the fewest assigned LIDs is taken.  A switch is avoided if the last LID assigned to it belongs to
 * the same end port as LID k.  Such a switch is taken only if no other switch is possible.  Returns -1 if no channel
 * has room. */
static int32_t next_step(const assign_t *a, int32_t v, int32_t k)
{
    const ibn_tree *tree = a->x->tree;
    int32_t best = -1;
    double least = 0.0;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
        if (!leads_high(a, v, c) || a->room[c] < 1.0)
            continue;
        const int32_t w = tree->dst[c];
        const double cost = a->through[w] + (a->taken_by[w] == a->x->lids->owner[k] ? 1e12 : 0.0);
        if (best < 0 || cost < least)
            best = c, least = cost;
    }
    return best;
}

/* Assign to LID k of switch t a chain of channels that leads up to a top switch.  Only a LID with flow reduces the room
 * on the links. */
static void assign(assign_t *a, int32_t t, int32_t k, int32_t *path)
{
    cf_state *x = a->x;
    const ibn_tree *tree = x->tree;
    const int32_t all = x->lids->first[x->lids->groups], flows = x->lids->share[k] > 0.0;
    int32_t v = t, steps = 0, c = 0;
    while (x->top_number[v] < 0) {
        c = v == t || !flows ? first_step(a, v, k, !flows) : next_step(a, v, k);
        if (c < 0)
            break;
        path[steps++] = c;
        v = tree->dst[c];
    }
    if (flows && steps > 0)
        a->room[path[0]] -= 1.0;
    if (c < 0)
        return;
    x->top_of[k] = x->top_number[v];
    for (int32_t i = 0; i < steps; i++) {
        const int32_t w = tree->dst[path[i]];
        x->chain[(size_t)tree->level[i ? tree->dst[path[i - 1]] : t] * all + k] = path[i];
        if (!flows)
            continue;
        a->room[path[i]] -= i > 0;
        a->through[w] += 1.0;
        a->taken_by[w] = x->lids->owner[k];
    }
}

int ibn_trees_closed_form_assign(cf_state *x)
{
    const ibn_tree *tree = x->tree;
    const ibn_tree_lids *lids = x->lids;
    const size_t switches = (size_t)tree->switches + 1, channels = (size_t)tree->first[tree->switches] + 1;
    const size_t all = (size_t)lids->first[lids->groups];
    assign_t a = {.x = x};
    a.reach = malloc(switches * sizeof *a.reach);
    a.room = calloc(channels, sizeof *a.room);
    a.through = calloc(switches, sizeof *a.through);
    a.taken_by = malloc(switches * sizeof *a.taken_by);
    double *expected = calloc(switches, sizeof *expected);
    int32_t *path = malloc(((size_t)tree->levels + 1) * sizeof *path);
    const int code = a.reach && a.room && a.through && a.taken_by && expected && path ? CF_OK : CF_NO_MEMORY;
    if (code == CF_OK) {
        for (size_t i = 0; i < (size_t)tree->levels * all; i++)
            x->chain[i] = -1;
        for (int32_t v = 0; v < tree->switches; v++)
            a.taken_by[v] = -1;
        for (int32_t g = 0; g < lids->groups; g++)
            for (int32_t k = lids->first[g]; k < lids->first[g + 1]; k++)
                expected[lids->at[g]] += lids->share[k] > 0.0;
        find_reach(&a);
        find_room(&a, expected);
        for (int32_t g = 0; g < lids->groups; g++)
            for (int32_t k = lids->first[g]; k < lids->first[g + 1]; k++) {
                x->top_of[k] = x->tops;
                assign(&a, lids->at[g], k, path);
                x->counts[2] += x->top_of[k] == x->tops;
            }
    }
    free(a.reach);
    free(a.room);
    free(a.through);
    free(a.taken_by);
    free(expected);
    free(path);
    return code;
}
