/* Restore moved LFT entries to their values in the previous tables, if the highest utilisation does not rise and no CDG
 * cycle is closed.  The terms are explained in internal/repair_state.h and rebalance.c. */
#include "core/differing.h"
#include "repair/internal/rebalance_search.h"

#include <stdlib.h>

/* number of moved entries for which memory is allocated at first; if there are more, memory is allocated for all of
 * them, and they are listed again */
enum { FEW_MOVED = 1 << 14 };

/* An LFT entry that differs from the entry of the previous tables. */
typedef struct {
    int32_t lid, at; /* lid: the LID of the entry; at: the switch that has the entry */
    int64_t flow;    /* flow of all packets that use the entry */
} moved_entry;

/* Compare two entries for qsort: the entry with the smaller flow comes first. */
static int by_small_flow(const void *one, const void *other)
{
    const moved_entry *a = one, *b = other;
    if (a->flow != b->flow)
        return a->flow < b->flow ? -1 : 1;
    return a->lid != b->lid ? (a->lid < b->lid ? -1 : 1) : a->at < b->at ? -1 : a->at > b->at;
}

/* List the entries that differ from the previous tables although the channel of the previous entry can still be used.
 * Each entry is listed with the flow that uses it.  *count is 0 on entry, and receives the number of listed entries.
 * Returns NULL if memory ran out. */
static moved_entry *list_moved(rebalance_search *look, int32_t *count)
{
    const repair_fabric *f = look->state->f;
    const uint8_t *now = look->state->lft, *was = f->preferred, *written = look->state->written;
    const int64_t size = (int64_t)f->switches * f->lids, page = look->state->page;
    int64_t *found = NULL, room = 0, differing = FEW_MOVED;
    while (differing > room) {
        free(found);
        room = differing;
        found = malloc((size_t)room * sizeof *found);
        differing = found ? ibn_core_differing(now, was, size, written, page, found, room) : 0;
    }
    moved_entry *list = found ? malloc(((size_t)differing + 1) * sizeof *list) : NULL;
    for (int64_t i = 0; list && i < differing; i++) {
        const int32_t s = (int32_t)(found[i] / f->lids), lid = (int32_t)(found[i] % f->lids);
        const int32_t c = f->at_port[(int64_t)s * 256 + was[found[i]]];
        if (c < 0 || !f->alive[c] || f->lid_switch[lid] < 0 || f->lid_switch[lid] == s)
            continue;
        ibn_repair_rebalance_open_column(look, lid);
        ibn_repair_rebalance_collect(look, s);
        list[(*count)++] = (moved_entry){lid, s, look->state->flow[0]};
    }
    free(found);
    return list;
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
    int32_t moved = 0, count = 0;
    moved_entry *list = list_moved(look, &moved);
    look->failed = !list;
    if (moved > 1)
        qsort(list, (size_t)moved, sizeof *list, by_small_flow);
    for (int32_t i = 0; i < moved && count < look->restored && !look->failed && look->work > look->state->graph.visited;
         i++)
        count += restore(look, &list[i], most);
    free(list);
    look->budget += count;
    look->counts[SPENT] -= count;
    return count;
}
