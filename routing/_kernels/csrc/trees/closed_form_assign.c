/* Assign to every LID a top switch, and the channels over which its paths lead down from there.  The assignment
 * balances by counting LIDs.
 *
 * The number of LIDs that a link may carry down is its share of the LIDs below its switch, rounded down.  On a whole
 * k-ary n-tree this gives the formula D-mod-K: destination d takes top number floor(d / k) mod k^(n-1) of plane d
 * mod k (E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees",
 * 2010).
 *
 * LIDs that are left over because links are missing get no top.  For these, each source chooses a path of its own:
 * see closed_form_search.c. */
#include "trees/internal/closed_form_state.h"

#include <stdlib.h>

typedef struct {
    cf_state *x;
    double *reach; /* [S] by switch: of the top switches above it, the largest number of end ports below one of them */
    double *room;  /* [C] by channel up: number of LIDs that its link may still carry down */
    double *through;   /* [S] number of LIDs that have been assigned to each switch */
    int32_t *taken_by; /* [S] owner (end port) of the last LID that was assigned to each switch, -1: none */
} assign_t;

/* Return whether channel c of switch v leads up to a useful top switch.  A top switch is useful if it has more than
 * half as many end ports below it as the best top switch above v.  Switches that have lost their links up, and leaves
 * without end ports, look like top switches but are not useful. */
static int reaches(const assign_t *a, int32_t v, int32_t c)
{
    return 2.0 * a->reach[a->x->tree->dst[c]] > a->reach[v];
}

/* Return whether channel c up from switch v may carry LIDs: it is fast, and leads to a useful top switch (see
 * reaches). */
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

/* Compute how many LIDs each link may carry: the LIDs below the link's lower switch are divided among the links by
 * capacity, and rounded down. */
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

/* Choose the first channel of LID k's chain up, out of the LID's leaf switch v.  The paths to the LID use this chain in
 * reverse.  Among the n channels with room, the choice is number D mod n, where D is the LID's digit (closed_form.h).
 * With `any`, channels without room count too.  Returns -1 if no channel has room. */
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

/* Choose the next channel of LID k's chain up, out of switch v, among the channels with room.  The channel to the
 * switch with the fewest LIDs is taken.  Switches that another LID of the port uses come last.  Returns -1 if no
 * channel has room. */
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

/* Assign to LID k of switch t a chain of channels that leads up to a top switch.  Only a LID with flow takes up room
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
                x->counts[3] += x->top_of[k] == x->tops;
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
