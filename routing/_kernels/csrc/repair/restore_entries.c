/* Restore moved LFT entries to their values in the previous tables, if the highest utilisation does not rise and no CDG
 * cycle is closed.  The terms are explained in internal/repair_state.h and rebalance.c. */
#include "repair/internal/rebalance_search.h"

#include <stdlib.h>
#include <string.h>

enum { PART = 64 }; /* number of entries that are compared with the previous tables at once */

/* An LFT entry that differs from the entry of the previous tables. */
typedef struct {
    int32_t lid, at; /* lid: the LID of the entry; at: the switch that has the entry */
    int64_t flow;    /* flow of all packets that use the entry */
} moved_entry;

typedef struct {
    moved_entry *entry; /* [room] entries in the list */
    int32_t count, room;
} entry_list;

/* Compare two entries for qsort: the entry with the smaller flow comes first. */
static int by_small_flow(const void *one, const void *other)
{
    const moved_entry *a = one, *b = other;
    if (a->flow != b->flow)
        return a->flow < b->flow ? -1 : 1;
    return a->lid != b->lid ? (a->lid < b->lid ? -1 : 1) : a->at < b->at ? -1 : a->at > b->at;
}

/* Append an entry to a list, which grows as needed.  Returns false if memory ran out. */
static bool append(entry_list *list, moved_entry entry)
{
    if (list->count == list->room) {
        const int32_t room = list->room ? 2 * list->room : 256;
        moved_entry *more = realloc(list->entry, (size_t)room * sizeof *more);
        if (!more)
            return false;
        list->entry = more;
        list->room = room;
    }
    list->entry[list->count++] = entry;
    return true;
}

/* Append an LFT entry to the list, if the channel of its value in the previous tables can still be used.  `at` is the
 * index of the entry in the array [S, L].  Returns false if memory ran out. */
static bool list_entry(rebalance_search *look, entry_list *list, int64_t at)
{
    const repair_fabric *f = look->state->f;
    const int32_t s = (int32_t)(at / f->lids), lid = (int32_t)(at % f->lids);
    const int32_t c = f->at_port[(int64_t)s * 256 + f->preferred[at]];
    if (c < 0 || !f->alive[c] || f->lid_switch[lid] < 0 || f->lid_switch[lid] == s)
        return true;
    ibn_repair_rebalance_open_column(look, lid);
    ibn_repair_rebalance_collect(look, s);
    return append(list, (moved_entry){lid, s, look->state->flow[0]});
}

/* List the entries that differ from the previous tables although the channel of the previous entry can still be used.
 * Each entry is listed with the flow that uses it.  Returns false if memory ran out. */
static bool list_moved(rebalance_search *look, entry_list *list)
{
    const repair_state *state = look->state;
    const uint8_t *now = state->lft, *was = state->f->preferred;
    const int64_t size = (int64_t)state->f->switches * state->f->lids;
    for (int64_t from = 0; from < size; from += state->page) {
        const int64_t end = from + state->page < size ? from + state->page : size;
        if (!state->written[from / state->page])
            continue;
        for (int64_t part = from; part < end; part += PART) {
            const int64_t stop = part + PART < end ? part + PART : end;
            if (memcmp(now + part, was + part, (size_t)(stop - part)) == 0)
                continue;
            for (int64_t at = part; at < stop; at++)
                if (now[at] != was[at] && !list_entry(look, list, at))
                    return false;
        }
    }
    return true;
}

/* Return whether `flow` can move from the present path of switch s to the path that begins with channel c.  The new
 * path must reach the current LID without a loop.  The flow must raise no utilisation above `most`.  Channels that
 * are also on the present path are not checked, because they carry the flow already. */
static bool has_room(rebalance_search *look, int32_t s, int32_t c, int64_t flow, int64_t most)
{
    repair_state *state = look->state;
    const repair_fabric *f = state->f;
    for (int32_t hops = 1; hops <= f->switches && c >= 0; hops++) {
        if (look->old_path[c] != look->old_stamp && (state->load[c] + flow) * f->inverse_capacity[c] > most)
            return false;
        look->work--;
        if (f->dst[c] == state->target)
            return true;
        if (f->dst[c] == s)
            return false;
        c = ibn_repair_next_channel(state, f->dst[c]);
    }
    return false;
}

/* Restore an entry to its value in the previous tables, if two conditions hold: no utilisation on the previous path
 * rises above `most`, and this path closes no CDG cycle.  Returns whether the entry was restored. */
static bool restore(rebalance_search *look, const moved_entry *entry, int64_t most)
{
    repair_state *state = look->state;
    const uint8_t was = state->f->preferred[(int64_t)entry->at * state->f->lids + entry->lid];
    const int32_t c = state->f->at_port[(int64_t)entry->at * 256 + was];
    ibn_repair_rebalance_open_column(look, entry->lid);
    ibn_repair_rebalance_mark_path(look, entry->at);
    ibn_repair_rebalance_collect(look, entry->at);
    if (!has_room(look, entry->at, c, state->flow[0], most))
        return false;
    ibn_repair_collect_vls(state);
    if (!ibn_repair_admits(state, c))
        return false;
    ibn_repair_rebalance_set_entry(look, entry->at, was);
    return true;
}

int32_t ibn_repair_rebalance_restore_entries(rebalance_search *look)
{
    const int64_t most = ibn_repair_rebalance_peak(look);
    entry_list moved = {0};
    int32_t count = 0;
    look->failed = !list_moved(look, &moved);
    if (moved.count > 1)
        qsort(moved.entry, (size_t)moved.count, sizeof *moved.entry, by_small_flow);
    for (int32_t i = 0; i < moved.count && !look->failed && look->work > look->state->graph.visited; i++)
        count += restore(look, &moved.entry[i], most);
    free(moved.entry);
    look->budget += count;
    look->counts[SPENT] -= count;
    return count;
}
