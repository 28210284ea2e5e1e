/* Compute the forwarding tables of a tree topology in closed form.
 *
 * Every LID has a top switch, over which the paths to the LID lead (closed_form_assign.c).  A switch above the
 * destination sends down.  Any other switch sends up towards the top switch of the LID.  If no path up leads to this
 * top switch, the switch may send towards a substitute top switch (see the function find_others).  The table `to_top`
 * gives the channels up, and the table `down` gives the channels down.  Each row of the LFTs is computed independently
 * of all other rows.
 *
 * Where links are missing, some entries stay open.  The flow over all other entries is added up.  Each open entry then
 * takes the path with the lowest peak utilisation (closed_form_search.c).  At the end, closed_form_fill.c fills the
 * entries for which no path leads up and then down.
 *
 * The idea of a closed form that allows for faults comes from J. Gliksberg et al., "High-Quality Fault Resiliency in
 * Fat Trees", IEEE Micro 39, 2019 (Dmodc).  In contrast to the paper, this kernel balances the numbers of LIDs, allows
 * LIDs without a top switch, and searches for paths of open entries. */
#include "core/parallel.h"
#include "trees/internal/closed_form_state.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 8 }; /* prefetch distance: a row of the LFT is fetched into the cache AHEAD rows before its use */

/* Fill the row of table to_top for switch v: the channel by which v sends up to each top switch.  The values follow
 * from the rows of the switches directly above v. */
static void find_tops(cf_state *x, int32_t v)
{
    const ibn_tree *tree = x->tree;
    const size_t tops = (size_t)x->tops;
    uint8_t *row = x->to_top + (size_t)v * tops;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
        if (!x->fast[c] || tree->bundle_rank[c])
            continue;
        const int32_t w = tree->dst[c];
        const uint8_t *above = x->to_top + (size_t)w * tops, offset = (uint8_t)(c - tree->first[v]);
        for (size_t u = 0; u < tops; u++) {
            const uint8_t found = row[u] == CF_NONE ? offset : CF_SEVERAL;
            row[u] = above[u] == CF_NONE ? row[u] : found;
        }
        if (x->top_number[w] >= 0)
            row[x->top_number[w]] = row[x->top_number[w]] == CF_NONE ? offset : CF_SEVERAL;
    }
}

/* Fill the row of table `down` for switch v: for each lower switch, the channel by which v sends down to the lower
 * switch.  The values follow from the rows of the switches directly below v. */
static void find_below(cf_state *x, int32_t v)
{
    const ibn_tree *tree = x->tree;
    const size_t switches = (size_t)tree->switches;
    uint8_t *row = x->down + (size_t)v * switches;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
        if (tree->kind[c] != CF_DOWN || tree->bundle_rank[c])
            continue;
        const uint8_t *below = x->down + (size_t)tree->dst[c] * switches, offset = (uint8_t)(c - tree->first[v]);
        for (size_t t = 0; t < switches; t++) {
            const uint8_t found = row[t] == CF_NONE ? offset : CF_SEVERAL;
            row[t] = below[t] == CF_NONE ? row[t] : found;
        }
        row[tree->dst[c]] = row[tree->dst[c]] == CF_NONE ? offset : CF_SEVERAL;
    }
}

/* Return the channel by which switch v sends packets to LID k down towards switch t.  If a channel of the LID's chain
 * ends at v, the result is the opposite channel of this link.  (The chain is the channels from the LID's switch up to
 * the LID's top switch.)  Otherwise k selects one of the channels down that lead to t. */
static int32_t channel_down(const cf_state *x, int32_t v, int32_t t, int32_t k)
{
    const ibn_tree *tree = x->tree;
    const int32_t all = x->lids->first[x->lids->groups];
    for (int32_t level = 0; level < tree->level[v]; level++) {
        const int32_t c = x->chain[(size_t)level * all + k];
        if (c >= 0 && tree->dst[c] == v)
            return tree->reverse[c];
    }
    int32_t count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t c = tree->first[v], i = 0; c < tree->first[v + 1]; c++) {
            const int32_t w = tree->dst[c];
            if (tree->kind[c] != CF_DOWN || (w != t && x->down[(size_t)w * tree->switches + t] == CF_NONE))
                continue;
            if (pass == 0)
                count++;
            else if (i++ == k % count)
                return c;
        }
    return -1; /* This line is never reached, because the caller has checked that a path down exists. */
}

/* Return the channel by which switch v sends packets to LID k up towards top switch u, if several bundles lead to u.
 *
 * Of the n fast channels (`fast` in closed_form_state.h) from v that lead to u, the channel with index r mod n is
 * taken.  The number r comes from the LID's chain: the channels from the LID's switch up to the LID's top switch.  If
 * the chain has a channel that begins at a switch w on the level of v, r is the index of this channel among the fast
 * channels up of w.  Otherwise r is k.  As the chains use the channels of a level evenly, the LIDs are spread evenly
 * over the n channels. */
static int32_t channel_up(const cf_state *x, int32_t v, int32_t u, int32_t k)
{
    const ibn_tree *tree = x->tree;
    const int32_t link = x->chain[(size_t)tree->level[v] * x->lids->first[x->lids->groups] + k];
    const int32_t rank = link >= 0 ? x->fast[link] - 1 : k;
    int32_t count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t c = tree->first[v], i = 0; c < tree->first[v + 1]; c++) {
            const int32_t w = tree->dst[c];
            if (!x->fast[c] || (x->top_number[w] != u && x->to_top[(size_t)w * x->tops + u] == CF_NONE))
                continue;
            if (pass == 0)
                count++;
            else if (i++ == rank % count)
                return c;
        }
    return -1; /* This line is never reached: the caller has checked that several bundles lead up to u. */
}

/* Return the out-port by which switch v sends packets to LID k up.  LID k belongs to switch t, which is not below v.
 *
 * The function is called if several out-ports or none lead from v up to the LID's top switch.  If none does, packets
 * may go to a substitute top switch.  other[u] is the substitute for top switch u, a result of find_others.  Returns
 * CF_NONE if the entry stays open for the search. */
static uint8_t port_up(const cf_state *x, int32_t v, int32_t t, int32_t k, const int32_t *other)
{
    const ibn_tree *tree = x->tree;
    const int32_t all = x->lids->first[x->lids->groups];
    int32_t top = x->top_of[k];
    if (top == x->tops)
        return CF_NONE;
    uint8_t offset = x->to_top[(size_t)v * x->tops + top];
    if (offset == CF_NONE && (tree->level[v] > 0 || x->lids->share[k] <= 0.0) && other[top] >= 0) {
        const int32_t u = x->top_switch[other[top]];
        if (u == t || x->down[(size_t)u * tree->switches + t] != CF_NONE)
            top = other[top], offset = x->to_top[(size_t)v * x->tops + top];
    }
    if (offset == CF_NONE)
        return CF_NONE;
    if (offset == CF_SEVERAL)
        return tree->port[channel_up(x, v, top, k)];
    const int32_t c = tree->first[v] + offset;
    if (tree->bundle_size[c] == 1)
        return tree->port[c];
    const int32_t link = x->chain[(size_t)tree->level[v] * all + k];
    const int32_t alike = link >= 0 && tree->bundle_size[link] == tree->bundle_size[c];
    const int32_t cable = alike ? tree->bundle_rank[link] : k;
    return tree->port[c + cable % tree->bundle_size[c]];
}

/* Find for each top switch u a substitute other[u], which may be used if no path up leads from switch v to u.
 *
 * If switch v reaches n top switches, the substitute is one of these top switches: the one with index r mod n.  Here, r
 * is the rank of u (see the function rank).  The substitute is -1 if v reaches no top switch. */
static void find_others(const cf_state *x, int32_t v, int32_t *other, int32_t *own)
{
    const uint8_t *row = x->to_top + (size_t)v * x->tops;
    int32_t count = 0;
    for (int32_t u = 0; u < x->tops; u++)
        if (row[u] != CF_NONE)
            own[count++] = u;
    for (int32_t u = 0; u < x->tops; u++)
        other[u] = count ? own[x->top_rank[u] % count] : -1;
}

typedef struct {
    cf_state *x;
    /* [threads, T + 1] by thread and top switch: out-port up to the top switch, in the LFT row that the thread
     * fills.  CF_NONE: several out-ports or none lead there, so the function port_up decides.  The last element is
     * for LIDs without a top switch, and is always CF_NONE */
    uint8_t *via;
    /* [threads, 2, T] two rows for each thread.  Row 0: for each top switch, the substitute over which packets may go
     * instead, if no path up leads to the top switch (see find_others).  Row 1: scratch */
    int32_t *other;
    /* [threads] for each thread: number of entries, towards LIDs with flow, that are left open for the search */
    int64_t *open;
    uint8_t *may_miss; /* [threads, G] by thread and LID group: whether some entry towards a LID without flow is left
                        * open */
} rows_t;

/* Fill the LFT row of switch v.  Returns the number of entries, towards LIDs with flow, that are left open for the
 * search. */
static int64_t fill_row(const cf_state *x, int32_t v, uint8_t *via, int32_t *other, uint8_t *may_miss)
{
    const ibn_tree *tree = x->tree;
    const ibn_tree_lids *lids = x->lids;
    const uint8_t *to_top = x->to_top + (size_t)v * x->tops, *down = x->down + (size_t)v * tree->switches;
    uint8_t *row = x->lft + (size_t)v * lids->lids;
    int64_t open = 0;
    find_others(x, v, other, other + x->tops);
    for (int32_t u = 0; u < x->tops; u++) {
        const int32_t c = tree->first[v] + to_top[u];
        via[u] = to_top[u] < CF_SEVERAL && tree->bundle_size[c] == 1 ? tree->port[c] : CF_NONE;
    }
    via[x->tops] = CF_NONE;
    for (int32_t g = 0; g < lids->groups; g++) {
        const int32_t t = lids->at[g], end = lids->first[g + 1];
        const uint8_t offset = down[t];
        if (v == t) {
            for (int32_t k = lids->first[g]; k < end; k++)
                row[lids->lid[k]] = lids->port[k];
        } else if (offset == CF_SEVERAL || (offset != CF_NONE && tree->bundle_size[tree->first[v] + offset] > 1)) {
            for (int32_t k = lids->first[g]; k < end; k++)
                row[lids->lid[k]] = tree->port[channel_down(x, v, t, k)];
        } else if (offset != CF_NONE) {
            for (int32_t k = lids->first[g]; k < end; k++)
                row[lids->lid[k]] = tree->port[tree->first[v] + offset];
        } else {
            for (int32_t k = lids->first[g]; k < end; k++) {
                uint8_t port = via[x->top_of[k]];
                if (port == CF_NONE) {
                    port = port_up(x, v, t, k, other);
                    open += port == CF_NONE && lids->share[k] > 0.0;
                    may_miss[g] |= port == CF_NONE && lids->share[k] <= 0.0;
                }
                row[lids->lid[k]] = port;
            }
        }
    }
    return open;
}

static void fill_rows(void *context, int32_t part)
{
    const rows_t *rows = context;
    const cf_state *x = rows->x;
    for (int32_t v = part; v < x->tree->switches; v += x->threads)
        rows->open[part] +=
            fill_row(x, v, rows->via + (size_t)part * (x->tops + 1), rows->other + (size_t)part * 2 * x->tops,
                     rows->may_miss + (size_t)part * x->lids->groups);
}

void ibn_trees_closed_form_copy_entries(const cf_state *x, int32_t g, int32_t n, uint8_t *port)
{
    const int32_t *lid = x->lids->lid + x->lids->first[g];
    int32_t run; /* number of LIDs at the beginning of the group that follow each other without a gap */
    for (run = n > 0; run < n && lid[run] == lid[0] + run; run++)
        ;
    for (int32_t v = 0; v < x->tree->switches; v++) {
        const uint8_t *row = x->lft + (size_t)v * x->lids->lids;
        uint8_t *to = port + (size_t)v * n;
        if (v + AHEAD < x->tree->switches && n > 0)
            __builtin_prefetch(row + (size_t)AHEAD * x->lids->lids + lid[0]);
        memcpy(to, row + lid[0], (size_t)run);
        for (int32_t i = run; i < n; i++)
            to[i] = row[lid[i]];
    }
}

/* Give numbers to the channels up of switch v that the closed form may use.  Slow channels get no number, because
 * the closed form does not weigh capacities.  Only the search uses slow channels. */
static void find_fast(const cf_state *x, int32_t v)
{
    const ibn_tree *tree = x->tree;
    double best = 0.0;
    uint8_t number = 0;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++)
        if (tree->kind[c] == CF_UP && (best == 0.0 || ibn_trees_closed_form_inverse_capacity(tree, c) < best))
            best = ibn_trees_closed_form_inverse_capacity(tree, c);
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c += tree->bundle_size[c]) {
        uint8_t fast = tree->kind[c] == CF_UP;
        for (int32_t i = 0; i < tree->bundle_size[c]; i++)
            fast = fast && ibn_trees_closed_form_inverse_capacity(tree, c + i) < 1.3 * best;
        for (int32_t i = 0; i < tree->bundle_size[c]; i++)
            x->fast[c + i] = fast ? ++number : 0;
    }
}

/* Give numbers to the top switches, and sort all switches by level, the highest level first. */
static void number(cf_state *x)
{
    const ibn_tree *tree = x->tree;
    for (int32_t level = tree->levels - 1, n = 0; level >= 0; level--)
        for (int32_t v = 0; v < tree->switches; v++)
            if (tree->level[v] == level)
                x->by_level[n++] = v;
    for (int32_t v = 0; v < tree->switches; v++) {
        int32_t ups = 0;
        find_fast(x, v);
        for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
            ups += tree->kind[c] == CF_UP;
            x->slot[(size_t)v * x->ports + tree->port[c]] = (uint8_t)(c - tree->first[v]);
        }
        x->top_number[v] = ups ? -1 : x->tops;
        if (!ups)
            x->top_switch[x->tops++] = v;
    }
}

/* Compute the rank of each top switch u, which selects substitute top switches (see find_others).  Take the first
 * switch v of level 1 below u.  If there is none, take the first switch v of level 0 below u.  The rank is the index of
 * u among all top switches above v.  If no such switch v exists, the rank is the number of u among all top switches. */
static void rank(cf_state *x)
{
    for (int32_t u = 0; u < x->tops; u++)
        x->top_rank[u] = -1;
    for (int32_t lowest = 1; lowest >= 0; lowest--)
        for (int32_t v = 0; v < x->tree->switches; v++) {
            if (x->tree->level[v] != lowest)
                continue;
            for (int32_t u = 0, n = 0; u < x->tops; u++)
                if (x->to_top[(size_t)v * x->tops + u] != CF_NONE) {
                    if (x->top_rank[u] < 0)
                        x->top_rank[u] = n;
                    n++;
                }
        }
    for (int32_t u = 0; u < x->tops; u++)
        if (x->top_rank[u] < 0)
            x->top_rank[u] = u;
}

static int compute(cf_state *x, int32_t passes)
{
    const ibn_tree *tree = x->tree;
    number(x);
    const size_t switches = (size_t)tree->switches, tops = (size_t)x->tops, threads = (size_t)x->threads;
    rows_t rows = {.x = x};
    array_list *arrays = &x->arrays;
    x->to_top = ibn_core_arrays_add(arrays, switches * tops + 1, 1);
    rows.via = ibn_core_arrays_add(arrays, threads, tops + 1);
    rows.other = ibn_core_arrays_add(arrays, threads * 2 * (tops + 1), sizeof *rows.other);
    rows.open = ibn_core_arrays_add(arrays, threads, sizeof *rows.open);
    rows.may_miss = ibn_core_arrays_add(arrays, threads * x->lids->groups + 1, 1);
    int code = arrays->failed ? CF_NO_MEMORY : CF_OK;
    if (code == CF_OK) {
        memset(x->to_top, CF_NONE, switches * tops);
        memset(x->down, CF_NONE, switches * switches);
        for (int32_t n = 0; n < tree->switches; n++)
            find_tops(x, x->by_level[n]);
        for (int32_t n = tree->switches - 1; n >= 0; n--)
            find_below(x, x->by_level[n]);
        rank(x);
    }
    if (code == CF_OK)
        code = ibn_trees_closed_form_assign(x);
    if (code == CF_OK)
        code = ibn_core_parallel(x->threads, x->threads, fill_rows, &rows);
    for (size_t part = 0; code == CF_OK && part < threads; part++) {
        x->counts[0] += rows.open[part];
        for (int32_t g = 0; g < x->lids->groups; g++)
            rows.may_miss[g] |= rows.may_miss[part * x->lids->groups + g];
    }
    if (code == CF_OK)
        code = ibn_trees_closed_form_search(x, passes, rows.may_miss);
    if (code == CF_OK)
        code = ibn_trees_closed_form_fill(x, rows.may_miss);
    return code;
}

int ibn_trees_closed_form(const ibn_tree *tree, const ibn_tree_lids *lids, int32_t passes, int32_t threads,
                          uint8_t *lft, int64_t *counts, double *load)
{
    const size_t switches = (size_t)tree->switches, all = (size_t)lids->first[lids->groups];
    cf_state x = {.tree = tree, .lids = lids, .threads = threads > 0 ? threads : 1, .lft = lft, .counts = counts};
    x.load = load;
    x.top_number = ibn_core_arrays_add(&x.arrays, switches + 1, sizeof *x.top_number);
    x.top_switch = ibn_core_arrays_add(&x.arrays, switches + 1, sizeof *x.top_switch);
    x.top_rank = ibn_core_arrays_add(&x.arrays, switches + 1, sizeof *x.top_rank);
    x.by_level = ibn_core_arrays_add(&x.arrays, switches + 1, sizeof *x.by_level);
    x.down = ibn_core_arrays_add(&x.arrays, switches * switches + 1, 1);
    for (int32_t c = 0; c < tree->first[switches]; c++)
        x.ports = tree->port[c] >= x.ports ? tree->port[c] + 1 : x.ports;
    x.slot = ibn_core_arrays_add(&x.arrays, switches * (size_t)x.ports + 1, 1);
    x.fast = ibn_core_arrays_add(&x.arrays, (size_t)tree->first[switches] + 1, 1);
    x.chain = ibn_core_arrays_add(&x.arrays, (size_t)tree->levels * all + 1, sizeof *x.chain);
    x.top_of = ibn_core_arrays_add(&x.arrays, all + 1, sizeof *x.top_of);
    const int code = x.arrays.failed ? CF_NO_MEMORY : compute(&x, passes);
    ibn_core_arrays_free(&x.arrays);
    return code;
}
