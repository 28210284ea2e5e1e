/* Restore the previous value of entries that were moved for balance, if the balance does not need the move.  Terms: see
 * internal/repair_state.h and rebalance.c. */
#include "repair/internal/rebalance_search.h"

#include <stdlib.h>
#include <string.h>

/* An entry that differs from that of the previous tables. */
typedef struct {
    int32_t lid, at; /* LID, and the switch of the entry */
    int64_t flow;    /* flow on the path of the entry */
} moved_entry;

typedef struct {
    moved_entry *entry; /* [room] */
    int32_t count, room;
} entry_list;

/* Order entries by their flow, the smallest first (comparison for qsort). */
static int by_small_flow(const void *one, const void *other)
{
    const moved_entry *a = one, *b = other;
    if (a->flow != b->flow)
        return a->flow < b->flow ? -1 : 1;
    return a->lid != b->lid ? (a->lid < b->lid ? -1 : 1) : a->at < b->at ? -1 : a->at > b->at;
}

/* Append an entry to a growing list.  Returns whether there was memory for it. */
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

/* List the entries that differ from the previous tables although the previous channel is alive, each with the flow on
 * its path.  Returns whether there was enough memory. */
static bool list_moved(rebalance_search *look, entry_list *list)
{
    const repair_fabric *f = look->state->f;
    for (int32_t s = 0; s < f->switches; s++) {
        const uint8_t *now = look->state->lft + (int64_t)s * f->lids, *was = f->preferred + (int64_t)s * f->lids;
        if (memcmp(now, was, (size_t)f->lids) == 0)
            continue;
        for (int32_t lid = 0; lid < f->lids; lid++) {
            const int32_t c = now[lid] == was[lid] ? -1 : f->at_port[(int64_t)s * 256 + was[lid]];
            if (c < 0 || !f->alive[c] || f->lid_switch[lid] < 0 || f->lid_switch[lid] == s)
                continue;
            ibn_repair_rebalance_open_column(look, lid);
            ibn_repair_rebalance_collect(look, s);
            if (!append(list, (moved_entry){lid, s, look->state->flow[0]}))
                return false;
        }
    }
    return true;
}

/* Return whether the path of switch s over channel c to the current LID is free of loops, and the flow raises none of
 * its new channels above `most`. */
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

/* Restore the previous value of an entry, if the previous path has room and closes no CDG cycle.  Returns whether the
 * entry was restored. */
static bool restore(rebalance_search *look, const moved_entry *entry, int64_t most)
{
    repair_state *state = look->state;
    const uint8_t was = state->f->preferred[(int64_t)entry->at * state->f->lids + entry->lid];
    const int32_t c = state->f->at_port[(int64_t)entry->at * 256 + was];
    ibn_repair_rebalance_open_column(look, entry->lid);
    ibn_repair_rebalance_mark_path(look, entry->at);
    ibn_repair_rebalance_collect(look, entry->at);
    if (!has_room(look, entry->at, c, state->flow[0], most) || !ibn_repair_admits(state, c))
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
