/* Fill the entries that are still missing, because no path leads up and then down in the levels.  In this file, "up"
 * and "down" refer to the switch order, not to the levels: a channel leads down if it ends later in the switch order.
 *
 * A switch with a missing entry tries three steps in this order:
 *
 * 1. If a neighbour before it in the switch order is the destination or has an entry, the switch sends to this
 *    neighbour.
 * 2. The switch looks for a path down, over other switches with missing entries, to a switch that has an entry.  From
 *    there, the path by the entries must lead only down.
 * 3. The switch takes a shortest of the paths to the destination that lead only down.
 *
 * In steps 2 and 3, all switches on the chosen path get the entries of this path.
 *
 * No path leads down and then up in the switch order, so the channel dependencies stay acyclic.  On a complete tree,
 * no traffic between leaves needs the entries that are filled here. */
#include "core/parallel.h"
#include "trees/internal/closed_form_state.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    cf_state *x;
    int32_t *by_position; /* [S] switches, sorted by position in the switch order */
    /* [threads] by thread: number of entries of leaves towards LIDs at leaves that the thread has filled */
    int64_t *counts;
    /* [G] for each LID group (all LIDs that one switch delivers): whether some entry towards its LIDs may be missing */
    const uint8_t *may_miss;
    int32_t most; /* largest number of LIDs that one switch delivers */
    /* [threads, 2, S, most] for each thread: two copies of the entries of all switches towards the LIDs of the
     * thread's LID group.  Copy 0 gets the filled entries; copy 1 keeps the entries as they were before */
    uint8_t *block;
    uint8_t *missing; /* [threads, most] by thread and LID of the thread's group: whether some switch has no entry
                       * towards the LID */
    /* [threads, S] for each thread: switches with a missing entry towards some LID of the thread's group, sorted by
     * position in the switch order */
    int32_t *rows;
    int32_t *queue; /* [threads, S] for each thread: scratch: switches that a search has reached */
    /* [threads, S] for each thread: next channel of each switch on a path that leads down only, as an index among the
     * switch's channels; CF_NONE: there is no such path */
    uint8_t *towards;
} fill_t;

/* An LFT column: the entries of all switches towards one LID of a block. */
typedef struct {
    uint8_t *entry; /* entry of switch 0 */
    size_t stride;  /* number of bytes from the entry of one switch to the entry of the next switch */
} column_t;

static inline uint8_t *entry(column_t column, int32_t v)
{
    return column.entry + (size_t)v * column.stride;
}

/* Remove each entry that leads to a switch without an entry.  Such an entry may be filled again later, with a complete
 * path. */
static void prune(const cf_state *x, int32_t t, column_t column)
{
    for (int32_t j = 0; j < x->tree->switches; j++) {
        const int32_t v = x->by_level[j];
        if (v == t || *entry(column, v) == CF_NONE || x->down[(size_t)v * x->tree->switches + t] != CF_NONE)
            continue;
        const int32_t w = x->tree->dst[ibn_trees_closed_form_channel_at(x, v, *entry(column, v))];
        if (w != t && *entry(column, w) == CF_NONE)
            *entry(column, v) = CF_NONE;
    }
}

/* Find for each switch v a shortest path to switch t that leads only down in the switch order.  towards[v] receives
 * the first channel of this path, as an index among the channels of v, or CF_NONE if no such path exists. */
static void find_paths_down(const cf_state *x, int32_t t, int32_t *queue, uint8_t *towards)
{
    const ibn_tree *tree = x->tree;
    int32_t head = 0, tail = 0;
    memset(towards, CF_NONE, (size_t)tree->switches);
    queue[tail++] = t;
    while (head < tail) {
        const int32_t w = queue[head++];
        for (int32_t c = tree->first[w]; c < tree->first[w + 1]; c++) {
            const int32_t v = tree->dst[c];
            if (tree->position[v] > tree->position[w] || towards[v] != CF_NONE || v == t)
                continue;
            towards[v] = (uint8_t)(tree->reverse[c] - tree->first[v]);
            queue[tail++] = v;
        }
    }
}

/* Return whether the path from switch v to switch t is complete, and all its channels lead down in the switch order. */
static int leads_down(const cf_state *x, int32_t v, int32_t t, column_t column)
{
    const ibn_tree *tree = x->tree;
    while (v != t) {
        if (*entry(column, v) == CF_NONE)
            return 0;
        const int32_t w = tree->dst[ibn_trees_closed_form_channel_at(x, v, *entry(column, v))];
        if (tree->position[w] < tree->position[v])
            return 0;
        v = w;
    }
    return 1;
}

/* Give switch v a path down to switch t.  The path leads over switches without an entry to a switch whose path to t
 * already leads only down.  `queue` and `back` are scratch.  Returns whether such a path exists. */
static int join_down(const cf_state *x, int32_t v, int32_t t, column_t column, int32_t *queue, uint8_t *back)
{
    const ibn_tree *tree = x->tree;
    int32_t head = 0, tail = 0;
    memset(back, CF_NONE, (size_t)tree->switches);
    queue[tail++] = v;
    while (head < tail) {
        const int32_t at = queue[head++];
        for (int32_t c = tree->first[at]; c < tree->first[at + 1]; c++) {
            const int32_t w = tree->dst[c];
            if (tree->position[w] < tree->position[at] || back[w] != CF_NONE)
                continue;
            back[w] = (uint8_t)(tree->reverse[c] - tree->first[w]);
            if (w != t && *entry(column, w) == CF_NONE)
                queue[tail++] = w;
            else if (leads_down(x, w, t, column)) {
                for (int32_t to = w; to != v;) {
                    const int32_t up = tree->first[to] + back[to];
                    to = tree->dst[up];
                    *entry(column, to) = tree->port[tree->reverse[up]];
                }
                return 1;
            }
        }
    }
    return 0;
}

/* Fill the entry of switch v towards a LID of switch t.  `part` is the number of the thread, and `column` has the
 * entries of all switches towards the LID. */
static void fill_entry(const fill_t *fill, int32_t part, int32_t v, int32_t t, column_t column)
{
    const ibn_tree *tree = fill->x->tree;
    for (int32_t c = tree->first[v]; c < tree->first[v + 1]; c++) {
        const int32_t w = tree->dst[c];
        if (tree->position[w] < tree->position[v] && (w == t || *entry(column, w) != CF_NONE)) {
            *entry(column, v) = tree->port[c];
            return;
        }
    }
    uint8_t *towards = fill->towards + (size_t)part * tree->switches;
    int32_t *queue = fill->queue + (size_t)part * tree->switches;
    if (join_down(fill->x, v, t, column, queue, towards))
        return;
    find_paths_down(fill->x, t, queue, towards);
    while (v != t && towards[v] != CF_NONE) {
        const int32_t c = tree->first[v] + towards[v];
        *entry(column, v) = tree->port[c];
        v = tree->dst[c];
    }
}

/* Fill the missing entries towards LID k, which switch t delivers.  `part` is the number of the thread.  `rows` has
 * the `count` switches whose entry may be missing, sorted by position in the switch order. */
static void fill_lid(const fill_t *fill, int32_t part, int32_t t, int32_t k, column_t column, const int32_t *rows,
                     int32_t count)
{
    const cf_state *x = fill->x;
    const ibn_tree *tree = x->tree;
    const int between_leaves = x->lids->share[k] > 0.0 && tree->level[t] == tree->leaf_level;
    if (tree->levels > 3 || x->lids->share[k] <= 0.0) {
        prune(x, t, column);
        rows = fill->by_position, count = tree->switches;
    }
    /* All missing entries are counted before the first one is filled, because fill_entry may fill several entries. */
    for (int32_t n = 0; between_leaves && n < count; n++)
        fill->counts[part] += *entry(column, rows[n]) == CF_NONE && tree->component[rows[n]] == tree->component[t]
                              && tree->sources[rows[n]] > 0.0 && tree->level[rows[n]] == tree->leaf_level;
    for (int32_t n = 0; n < count; n++)
        if (*entry(column, rows[n]) == CF_NONE && tree->component[rows[n]] == tree->component[t])
            fill_entry(fill, part, rows[n], t, column);
}

/* List in `rows` the switches with a missing entry in `block`, sorted by position in the switch order.  The block
 * has the entries of all switches towards n LIDs.  Set missing[i] to 1 if some switch has no entry towards LID i,
 * otherwise to 0.  Returns the number of switches in `rows`. */
static int32_t list_missing(const fill_t *fill, const uint8_t *block, int32_t n, int32_t *rows, uint8_t *missing)
{
    int32_t count = 0;
    memset(missing, 0, (size_t)n);
    for (int32_t j = 0; j < fill->x->tree->switches; j++) {
        const int32_t v = fill->by_position[j];
        const uint8_t *row = block + (size_t)v * n;
        if (!memchr(row, CF_NONE, (size_t)n))
            continue;
        rows[count++] = v;
        for (int32_t i = 0; i < n; i++)
            missing[i] |= row[i] == CF_NONE;
    }
    return count;
}

/* Fill the missing entries towards the LIDs of LID group g, one LFT column after the other.  `part` is the number of
 * the thread. */
static void fill_group(const fill_t *fill, int32_t part, int32_t g)
{
    const cf_state *x = fill->x;
    const int32_t S = x->tree->switches, begin = x->lids->first[g], n = x->lids->first[g + 1] - begin;
    const size_t most = (size_t)S * fill->most;
    uint8_t *block = fill->block + 2 * (size_t)part * most, *before = block + most;
    uint8_t *missing = fill->missing + (size_t)part * fill->most;
    int32_t *rows = fill->rows + (size_t)part * S;
    ibn_trees_closed_form_copy_entries(x, g, n, block);
    const int32_t count = list_missing(fill, block, n, rows, missing);
    if (count == 0)
        return;
    memcpy(before, block, (size_t)S * n);
    for (int32_t i = 0; i < n; i++)
        if (missing[i])
            fill_lid(fill, part, x->lids->at[g], begin + i, (column_t){block + i, (size_t)n}, rows, count);
    for (int32_t v = 0; v < S; v++) {
        const uint8_t *now = block + (size_t)v * n, *old = before + (size_t)v * n;
        if (memcmp(now, old, (size_t)n) == 0)
            continue;
        for (int32_t i = 0; i < n; i++)
            if (now[i] != old[i])
                x->lft[(size_t)v * x->lids->lids + x->lids->lid[begin + i]] = now[i];
    }
}

static void fill_part(void *context, int32_t part)
{
    const fill_t *fill = context;
    for (int32_t g = part; g < fill->x->lids->groups; g += fill->x->threads)
        if (fill->may_miss[g])
            fill_group(fill, part, g);
}

int ibn_trees_closed_form_fill(cf_state *x, const uint8_t *may_miss)
{
    const size_t switches = (size_t)x->tree->switches, parts = (size_t)x->threads;
    fill_t fill = {.x = x, .may_miss = may_miss};
    for (int32_t g = 0; g < x->lids->groups; g++) {
        const int32_t n = x->lids->first[g + 1] - x->lids->first[g];
        fill.most = n > fill.most ? n : fill.most;
    }
    fill.by_position = malloc((switches + 1) * sizeof *fill.by_position);
    fill.counts = calloc(parts, sizeof *fill.counts);
    fill.block = malloc(2 * parts * switches * fill.most + 1);
    fill.missing = malloc(parts * fill.most + 1);
    fill.rows = malloc((parts * switches + 1) * sizeof *fill.rows);
    fill.queue = malloc((parts * switches + 1) * sizeof *fill.queue);
    fill.towards = malloc(parts * switches + 1);
    int code = fill.by_position && fill.counts && fill.block && fill.missing ? CF_OK : CF_NO_MEMORY;
    if (!fill.rows || !fill.queue || !fill.towards)
        code = CF_NO_MEMORY;
    for (size_t v = 0; code == CF_OK && v < switches; v++)
        fill.by_position[x->tree->position[v]] = (int32_t)v;
    if (code == CF_OK)
        code = ibn_core_parallel(x->threads, x->threads, fill_part, &fill);
    for (size_t part = 0; code == CF_OK && part < parts; part++)
        x->counts[1] += fill.counts[part];
    free(fill.by_position);
    free(fill.counts);
    free(fill.block);
    free(fill.missing);
    free(fill.rows);
    free(fill.queue);
    free(fill.towards);
    return code;
}
