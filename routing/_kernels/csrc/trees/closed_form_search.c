/* Choose paths for the entries that the closed form leaves open.
 *
 * Each open entry takes the path with the lowest peak utilisation.  The flow of all other entries is added up first, so
 * that every choice takes this flow into account.  The destination switches are handled one after the other.  For each
 * destination switch, the upper switches choose their paths before the leaves.  The flow of a leaf is added as soon as
 * the leaf has chosen its path.
 *
 * Each further pass visits the destination switches again.  For each of them, the pass removes the flow of the open
 * entries and chooses their paths again, while all other flow is in place.  The passes end when no channel has a higher
 * utilisation than necessary (see the function is_even). */
#include "core/parallel.h"
#include "trees/internal/closed_form_state.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    cf_state *x;
    int32_t most; /* largest number of LIDs with flow that one switch delivers */
    /* [threads, S, most] by thread, switch and LID of the group that the thread handles now: flow that passes the
     * switch towards the LID */
    float *flow;
    double *load; /* [threads, C] by thread: flow on each channel towards the LIDs of the thread's groups */
    /* [threads, S, most] by thread, switch and LID of the thread's group: out-port of the switch towards the LID */
    uint8_t *port;
} sums_t;

/* The fields of a channel that a search reads, side by side in memory. */
typedef struct {
    double load, inverse_capacity; /* flow on the channel, and inverse capacity */
    int32_t dst;                   /* switch where the channel ends */
    uint8_t kind;                  /* direction of the channel: CF_UP or CF_DOWN; CF_UNUSED: no path uses the channel */
} channel_t;

typedef struct {
    cf_state *x;
    channel_t *channel; /* [C] fields of each channel that a search reads */
    int32_t *below;     /* [S] number of channels that lead down from each switch */
    uint8_t *port;      /* [S, n] out-port of each switch towards each LID with flow of the current LID group */
    /* A LID group is all LIDs that one switch delivers.  The search handles one LID group after the other.
     * group: number of the LID group that is handled now.
     * n: number of LIDs with flow in this group. */
    int32_t group, n;
    /* [size] open entries of all LID groups, as the number switch * n + i.  Here n is the number of LIDs with flow in
     * the entry's group, and i is the index of the entry's LID among them.  Within a LID group, entries of switches at
     * higher levels come first */
    int32_t *open;
    int64_t size, used;
    int64_t *begin;   /* [G + 1] index in `open` of the first entry of each LID group */
    double *expected; /* [S] estimated flow through each switch to a destination that is not below the switch */
    /* [S, n] by switch and LID: of the switches directly below the switch, how many have an open entry towards the LID;
     * at most 255 */
    uint8_t *wanted;
    uint8_t *may_miss; /* [G] by LID group: whether some entry towards a LID of the group stays without a path */
} search_t;

/* Return the number of LIDs with flow in a LID group.  These LIDs are the first LIDs of the group. */
static int32_t with_flow(const ibn_tree_lids *lids, int32_t g)
{
    int32_t k = lids->first[g];
    while (k < lids->first[g + 1] && lids->share[k] > 0.0)
        k++;
    return k - lids->first[g];
}

/* Pass the flow at switch v on, towards each LID of a group: add it to the load of the next channel, and to the flow of
 * the next switch. */
static void pass_on(const cf_state *x, int32_t v, int32_t g, int32_t n, const uint8_t *port, float *flow, double *load)
{
    const double *share = x->lids->share + x->lids->first[g], sent = x->tree->sources[v];
    for (int32_t i = 0; i < n; i++) {
        const float all = flow[(size_t)v * n + i] + (float)(sent * share[i]);
        if (all == 0.0F || port[(size_t)v * n + i] == CF_NONE)
            continue;
        const int32_t c = ibn_trees_closed_form_channel_at(x, v, port[(size_t)v * n + i]);
        load[c] += (double)all;
        flow[(size_t)x->tree->dst[c] * n + i] += all;
    }
}

/* Add up the flow on each channel over all entries that are not open, for the LID groups of thread `part`.  Each
 * flow to one LID is a multiple of 1/128, and less than 2^16.  So the sums of floating-point numbers are exact. */
static void sum_part(void *context, int32_t part)
{
    const sums_t *sums = context;
    const cf_state *x = sums->x;
    const int32_t S = x->tree->switches;
    const size_t block = (size_t)S * sums->most;
    uint8_t *port = sums->port + (size_t)part * block;
    float *flow = sums->flow + (size_t)part * block;
    double *load = sums->load + (size_t)part * x->tree->first[S];
    for (int32_t g = part; g < x->lids->groups; g += x->threads) {
        const int32_t n = with_flow(x->lids, g), t = x->lids->at[g];
        ibn_trees_closed_form_copy_entries(x, g, n, port);
        memset(flow, 0, (size_t)S * n * sizeof *flow);
        for (int32_t j = S - 1; j >= 0; j--)
            if (x->by_level[j] != t && x->down[(size_t)x->by_level[j] * S + t] == CF_NONE)
                pass_on(x, x->by_level[j], g, n, port, flow, load);
        for (int32_t j = 0; j < S; j++)
            if (x->down[(size_t)x->by_level[j] * S + t] != CF_NONE)
                pass_on(x, x->by_level[j], g, n, port, flow, load);
    }
}

/* Fill the array of channel data (`channel`), and the number of channels that lead down from each switch (`below`).
 * The initial load of a channel is the flow over all entries that are not open. */
static int add_up(search_t *s, int32_t most)
{
    cf_state *x = s->x;
    const ibn_tree *tree = x->tree;
    const size_t block = (size_t)x->tree->switches * most + 1, channels = (size_t)x->tree->first[x->tree->switches];
    sums_t sums = {.x = x, .most = most};
    sums.flow = ibn_core_arrays_add(&x->arrays, x->threads * block, sizeof *sums.flow);
    sums.load = ibn_core_arrays_add(&x->arrays, x->threads * channels + 1, sizeof *sums.load);
    sums.port = ibn_core_arrays_add(&x->arrays, x->threads, block);
    int code = x->arrays.failed ? CF_NO_MEMORY : CF_OK;
    if (code == CF_OK)
        code = ibn_core_parallel(x->threads, x->threads, sum_part, &sums);
    for (size_t c = 0; code == CF_OK && c < channels; c++) {
        s->channel[c] = (channel_t){0.0, tree->inverse_capacity[c], tree->dst[c], tree->kind[c]};
        for (int32_t part = 0; part < x->threads; part++)
            s->channel[c].load += sums.load[part * channels + c];
        s->below[tree->dst[c]] += tree->kind[c] == CF_UP;
    }
    return code;
}

/* Estimate for each switch the flow that passes it towards a destination that is not below the switch.  The flow from
 * below a switch is divided evenly among the switch's links up. */
static void estimate_flow(search_t *s)
{
    const ibn_tree *tree = s->x->tree;
    for (int32_t j = tree->switches - 1; j >= 0; j--) {
        const int32_t v = s->x->by_level[j];
        int32_t ups = 0;
        s->expected[v] += tree->sources[v];
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
            ups += tree->kind[c] == CF_UP;
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
            if (tree->kind[c] == CF_UP)
                s->expected[tree->dst[c]] += s->expected[v] / ups;
    }
}

static inline uint8_t *entry(const search_t *s, int32_t v, int32_t i)
{
    return s->port + (size_t)v * s->n + i;
}

/* Return the highest utilisation of a channel on the path to LID i that begins with channel c.  Return DBL_MAX if the
 * path is incomplete.  If a channel has a utilisation of `limit` or more, return this utilisation at once, and ignore
 * all later channels. */
static double path_cost(const search_t *s, int32_t c, int32_t i, double limit)
{
    const cf_state *x = s->x;
    const int32_t t = x->lids->at[s->group];
    double cost = 0.0;
    for (;;) {
        const channel_t *channel = s->channel + c;
        const double here = channel->load * channel->inverse_capacity;
        cost = here > cost ? here : cost;
        const int32_t v = channel->dst;
        if (cost >= limit || v == t)
            return cost;
        if (*entry(s, v, i) == CF_NONE)
            return DBL_MAX;
        c = ibn_trees_closed_form_channel_at(x, v, *entry(s, v, i));
    }
}

/* Choose the channel up by which switch v sends towards LID i, and set the entry of v.  Returns the channel, or -1 if
 * no path exists. */
static int32_t choose(search_t *s, int32_t v, int32_t i)
{
    const ibn_tree *tree = s->x->tree;
    const int32_t count = tree->first[v + 1] - tree->first[v], k = s->x->lids->first[s->group] + i;
    int32_t best = -1;
    double least = DBL_MAX;
    for (int32_t n = 0, j = s->x->lids->digit[k] % (count ? count : 1); n < count; n++, j++) {
        j = j == count ? 0 : j;
        const int32_t c = tree->first[v] + j;
        if (s->channel[c].kind != CF_UP)
            continue;
        const double cost = path_cost(s, c, i, least);
        if (cost < least)
            best = c, least = cost;
    }
    *entry(s, v, i) = best < 0 ? CF_NONE : tree->port[best];
    return best;
}

/* Add `flow` to the channels of the path from switch v to LID i.  If the path is incomplete, only its existing part
 * gets flow. */
static void add(search_t *s, int32_t v, int32_t i, double flow)
{
    const int32_t t = s->x->lids->at[s->group];
    while (v != t && *entry(s, v, i) != CF_NONE) {
        channel_t *channel = s->channel + ibn_trees_closed_form_channel_at(s->x, v, *entry(s, v, i));
        channel->load += flow;
        v = channel->dst;
    }
}

static inline double flow_of(const search_t *s, int32_t v, int32_t i)
{
    return s->x->tree->sources[v] * s->x->lids->share[s->x->lids->first[s->group] + i];
}

/* For each LID of the current LID group towards which the entry of switch v is open: add 1 to `wanted` at each switch
 * directly above v. */
static void count_open(search_t *s, int32_t v)
{
    const ibn_tree *tree = s->x->tree;
    if (!memchr(entry(s, v, 0), CF_NONE, (size_t)s->n))
        return;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
        if (tree->kind[c] != CF_UP || tree->bundle_rank[c])
            continue;
        uint8_t *wanted = s->wanted + (size_t)tree->dst[c] * s->n;
        for (int32_t i = 0; i < s->n; i++)
            wanted[i] += *entry(s, v, i) == CF_NONE && wanted[i] < UINT8_MAX;
    }
}

/* Open further entries of upper switches whose flow is so large that the search should balance it.  An entry of a
 * switch is opened if two conditions hold.  First, the entry leads to a substitute top switch (see find_others in
 * closed_form.c).  Second, many switches directly below have an open entry towards the same LID: more than a quarter of
 * the number of channels down.  On trees with more than three levels, entries that lead to a switch with an open entry
 * are opened too. */
static void open_more(search_t *s)
{
    const cf_state *x = s->x;
    const ibn_tree *tree = x->tree;
    const int32_t S = tree->switches, t = x->lids->at[s->group], *top = x->top_of + x->lids->first[s->group];
    memset(s->wanted, 0, (size_t)S * s->n);
    for (int32_t j = S - 1; j >= 0; j--) {
        const int32_t v = x->by_level[j];
        if (v == t || x->down[(size_t)v * S + t] != CF_NONE)
            continue;
        const int32_t below = s->below[v];
        for (int32_t i = 0; below && i < s->n; i++)
            if (4 * s->wanted[(size_t)v * s->n + i] > below && top[i] < x->tops
                && x->to_top[(size_t)v * x->tops + top[i]] == CF_NONE)
                *entry(s, v, i) = CF_NONE;
        count_open(s, v);
    }
    for (int32_t j = 0; tree->levels > 3 && j < S; j++)
        for (int32_t i = 0, v = x->by_level[j]; v != t && tree->level[v] > 0 && i < s->n; i++) {
            const uint8_t port = *entry(s, v, i);
            const int32_t w = port == CF_NONE ? t : tree->dst[ibn_trees_closed_form_channel_at(x, v, port)];
            if (w != t && *entry(s, w, i) == CF_NONE)
                *entry(s, v, i) = CF_NONE;
        }
}

/* List in `open` the open entries towards the LIDs of the current LID group.  Returns CF_OK or CF_NO_MEMORY. */
static int list_open(search_t *s)
{
    const int32_t S = s->x->tree->switches, t = s->x->lids->at[s->group];
    for (int32_t j = 0; j < S; j++) {
        const int32_t v = s->x->by_level[j];
        if (v == t || !memchr(entry(s, v, 0), CF_NONE, (size_t)s->n))
            continue;
        for (int32_t i = 0; i < s->n; i++) {
            if (*entry(s, v, i) != CF_NONE)
                continue;
            if (s->used == s->size) {
                const int64_t size = 2 * s->size;
                int32_t *more = realloc(s->open, (size_t)size * sizeof *more);
                if (!more)
                    return CF_NO_MEMORY;
                s->open = more, s->size = size;
            }
            s->open[s->used++] = v * s->n + i;
        }
    }
    return CF_OK;
}

/* Choose a path for each open entry towards the LIDs of the current LID group. */
static void choose_all(search_t *s)
{
    const cf_state *x = s->x;
    const int64_t begin = s->begin[s->group], end = s->begin[s->group + 1];
    int64_t upper = begin;
    for (; upper < end && x->tree->level[s->open[upper] / s->n] > 0; upper++) {
        const int32_t v = s->open[upper] / s->n, i = s->open[upper] % s->n;
        choose(s, v, i);
        add(s, v, i, s->expected[v] * x->lids->share[x->lids->first[s->group] + i]);
    }
    /* Replace the estimates by the flow that the upper switches send themselves.  The flow from the leaves is added
     * below, when each leaf has chosen its path. */
    for (int64_t e = begin; e < upper; e++) {
        const int32_t v = s->open[e] / s->n, i = s->open[e] % s->n;
        add(s, v, i, flow_of(s, v, i) - s->expected[v] * x->lids->share[x->lids->first[s->group] + i]);
    }
    for (int64_t e = upper; e < end; e++) {
        const int32_t v = s->open[e] / s->n, i = s->open[e] % s->n;
        if (choose(s, v, i) >= 0)
            add(s, v, i, flow_of(s, v, i));
    }
}

static int search_group(search_t *s, int32_t g, int32_t pass)
{
    const cf_state *x = s->x;
    s->group = g, s->n = with_flow(x->lids, g);
    if (s->n == 0 || (pass > 0 && s->begin[g] == s->begin[g + 1])) {
        s->begin[g + 1] = pass > 0 ? s->begin[g + 1] : s->used;
        return CF_OK;
    }
    ibn_trees_closed_form_copy_entries(x, g, s->n, s->port);
    if (pass == 0) {
        open_more(s);
        const int code = list_open(s);
        if (code != CF_OK)
            return code;
        s->begin[g + 1] = s->used;
    } else {
        for (int64_t e = s->begin[g]; e < s->begin[g + 1]; e++)
            add(s, s->open[e] / s->n, s->open[e] % s->n, -flow_of(s, s->open[e] / s->n, s->open[e] % s->n));
        for (int64_t e = s->begin[g]; e < s->begin[g + 1]; e++)
            *entry(s, s->open[e] / s->n, s->open[e] % s->n) = CF_NONE;
    }
    choose_all(s);
    for (int64_t e = s->begin[g]; e < s->begin[g + 1]; e++) {
        const int32_t v = s->open[e] / s->n, i = s->open[e] % s->n;
        x->lft[(size_t)v * x->lids->lids + x->lids->lid[x->lids->first[g] + i]] = *entry(s, v, i);
        s->may_miss[g] |= *entry(s, v, i) == CF_NONE;
    }
    return CF_OK;
}

/* Return whether the highest utilisation is at most 0.5 % above a lower bound.  Each switch with end ports gives a
 * bound: its traffic divided by the capacity of its links.  The highest of these bounds is used.
 *
 * senders[part]: number of end ports that send, in each connected part. */
static int is_even(const search_t *s, const double *senders)
{
    const ibn_tree *tree = s->x->tree;
    double bound = 0.0, peak = 0.0;
    for (int32_t v = 0; v < tree->switches; v++) {
        double capacity = 0.0;
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
            const double here = s->channel[c].load * tree->inverse_capacity[c];
            capacity += 1.0 / tree->inverse_capacity[c];
            peak = here > peak ? here : peak;
        }
        const double sent = tree->sources[v] * (senders[tree->component[v]] - tree->sources[v]);
        if (sent > bound * capacity)
            bound = sent / capacity;
    }
    return peak <= 1.005 * bound;
}

int ibn_trees_closed_form_search(cf_state *x, int32_t passes, uint8_t *may_miss)
{
    int32_t most = 0;
    for (int32_t g = 0; g < x->lids->groups; g++)
        most = with_flow(x->lids, g) > most ? with_flow(x->lids, g) : most;
    if ((x->counts[0] == 0 && !x->load) || most == 0)
        return CF_OK;
    search_t s = {.x = x, .size = 1 << 16, .may_miss = may_miss};
    const size_t switches = (size_t)x->tree->switches;
    s.channel = ibn_core_arrays_add(&x->arrays, (size_t)x->tree->first[switches] + 1, sizeof *s.channel);
    s.below = ibn_core_arrays_add(&x->arrays, switches + 1, sizeof *s.below);
    s.port = ibn_core_arrays_add(&x->arrays, switches, (size_t)most);
    s.wanted = ibn_core_arrays_add(&x->arrays, switches, (size_t)most);
    s.open = malloc((size_t)s.size * sizeof *s.open);
    s.begin = ibn_core_arrays_add(&x->arrays, (size_t)x->lids->groups + 1, sizeof *s.begin);
    s.expected = ibn_core_arrays_add(&x->arrays, switches, sizeof *s.expected);
    double *senders = ibn_core_arrays_add(&x->arrays, switches + 1, sizeof *senders);
    int code = s.open && !x->arrays.failed ? add_up(&s, most) : CF_NO_MEMORY;
    if (code == CF_OK)
        estimate_flow(&s);
    for (int32_t v = 0; code == CF_OK && v < x->tree->switches; v++)
        senders[x->tree->component[v]] += x->tree->sources[v];
    passes = x->counts[0] > 0 ? passes : -1;
    for (int32_t pass = 0; code == CF_OK && pass <= passes && !(pass > 0 && is_even(&s, senders)); pass++)
        for (int32_t g = 0; g < x->lids->groups && code == CF_OK; g++)
            code = search_group(&s, g, pass);
    for (int32_t c = 0; code == CF_OK && x->load && c < x->tree->first[switches]; c++)
        x->load[c] = s.channel[c].load;
    free(s.open);
    return code;
}
