/* Move entries of complete LFTs off the channels with the highest utilisation: see repair.h.
 *
 * A MOVE gives one switch another next hop towards one LID.  The flow of all switches whose paths lead through this
 * switch moves with it.  A move is made only if the CDG of every VL stays acyclic with the CDG edges of the new path.
 * The CDG edges of replaced entries stay in the CDG. Therefore most mixtures of old and new entries are free of credit
 * loops too.
 *
 * The search is greedy.  Each step takes the channel with the highest utilisation, and lists the moves that take
 * flow off this channel.  The moves that most reduce the objective are made first.  The objective is the sum, over
 * all channels, of the squared excess of the utilisation over the goal. */
#include "repair/repair.h"
#include "repair/internal/rebalance_search.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum {
    MORE_HOPS = 2, /* number of hops by which the new path of a switch may be longer than the switch's shortest path */
    /* The search relieves a channel until the excess of its utilisation over the goal has fallen to this percentage of
     * the initial excess.  Then the search goes on to the next channel. */
    KEEP = 70,
    /* The first attempt to relieve a channel lists moves for at most FEW_USERS LIDs: the first LIDs of the channel's
     * list, which tend to have the most flow on the channel. */
    FEW_USERS = 24,
    /* The first attempt to relieve a channel lists, for each LID, moves of at most this number of switches. */
    FEW_UPSTREAM = 6,
    /* If the first attempt finds no useful move, a second attempt lists more moves: for at most MOST_USERS LIDs, and
     * of at most MOST_UPSTREAM switches for each LID. */
    MOST_USERS = 96,
    MOST_UPSTREAM = 24,
    /* largest number of passes.  Each pass makes moves, and then restores entries whose move turned out to be needless.
     * A pass after the first may change as many entries as the pass before has restored */
    MOST_PASSES = 3,
    ROOM = MOST_USERS * MOST_UPSTREAM * 16,
};

void ibn_repair_rebalance_open_column(rebalance_search *look, int32_t lid)
{
    look->state->column++;
    look->state->saved_count = look->state->changed_sl_count = 0;
    ibn_repair_begin_column(look->state, lid);
}

void ibn_repair_rebalance_collect(rebalance_search *look, int32_t s)
{
    ibn_repair_collect_flow(look->state, s);
    look->work -= 4 * look->state->subtree_size;
}

/* Append a LID to the list of the LIDs to which packets travel over channel c. */
static void add_user(rebalance_search *look, int32_t c, int32_t lid)
{
    user_list *list = &look->users[c];
    if (list->count == list->room) {
        const int32_t room = list->room ? 2 * list->room : 64;
        channel_user *more = realloc(list->user, (size_t)room * sizeof *more);
        if (!more) {
            look->failed = true;
            return;
        }
        list->user = more;
        list->room = room;
    }
    list->user[list->count++] = (channel_user){.lid = lid, .version = -1};
}

/* Compare two LIDs for qsort: the LID with the larger flow comes first. */
static int by_flow(const void *one, const void *other)
{
    const channel_user *a = one, *b = other;
    return a->flow != b->flow ? (a->flow > b->flow ? -1 : 1) : a->lid < b->lid ? -1 : a->lid > b->lid;
}

/* Compare two LIDs for qsort: the LID at fewer hops from the channel comes first. */
static int by_hops(const void *one, const void *other)
{
    const channel_user *a = one, *b = other;
    return a->hops != b->hops ? (a->hops < b->hops ? -1 : 1) : a->lid < b->lid ? -1 : a->lid > b->lid;
}

/* Return the number of hops from switch s to a LID. */
static int32_t hops_to(rebalance_search *look, int32_t s, int32_t lid)
{
    const repair_fabric *f = look->state->f;
    int32_t hops = 0;
    while (s != f->lid_switch[lid] && hops < f->switches) {
        const int32_t c = f->at_port[(int64_t)s * 256 + look->state->lft[(int64_t)s * f->lids + lid]];
        if (c < 0)
            break;
        s = f->dst[c];
        hops++;
    }
    look->work -= hops;
    return hops;
}

/* List the LIDs to which packets travel over channel c.  The LIDs are sorted by hops from the channel, because LIDs
 * at few hops tend to have the most flow on the channel. */
static void list_users(rebalance_search *look, int32_t c)
{
    const repair_fabric *f = look->state->f;
    const int32_t s = f->src[c];
    const uint8_t *row = look->state->lft + (int64_t)s * f->lids, *end = row + f->lids, *at = row;
    for (; at < end && (at = memchr(at, f->port[c], (size_t)(end - at))); at++) {
        const int32_t lid = (int32_t)(at - row);
        if (f->lid_switch[lid] >= 0 && f->lid_switch[lid] != s && f->weight[lid])
            add_user(look, c, lid);
    }
    user_list *list = &look->users[c];
    for (int32_t i = 0; i < list->count; i++)
        list->user[i].hops = hops_to(look, s, list->user[i].lid);
    qsort(list->user, (size_t)list->count, sizeof *list->user, by_hops);
}

/* Compute the flow on channel c to the first LIDs of the channel's list, at most `most` LIDs with flow.  Sort these
 * LIDs by flow, at the front of the list.  LIDs whose packets do not use the channel any more are removed from the
 * list.  Returns the number of sorted LIDs. */
static int32_t users_of(rebalance_search *look, int32_t c, int32_t most)
{
    repair_state *state = look->state;
    const repair_fabric *f = state->f;
    const uint8_t *row = state->lft + (int64_t)f->src[c] * f->lids;
    user_list *list = &look->users[c];
    if (!list->room)
        list_users(look, c);
    int32_t known = 0, left = 0;
    for (int32_t i = 0; i < list->count; i++) {
        channel_user user = list->user[i];
        if (row[user.lid] != f->port[c] || look->listed[user.lid] == c + 1)
            continue; /* A LID is skipped if packets to it no longer use the channel, or if it is listed twice. */
        look->listed[user.lid] = c + 1;
        if (known < most && user.version != look->version[user.lid]) {
            ibn_repair_rebalance_open_column(look, user.lid);
            ibn_repair_rebalance_collect(look, f->src[c]);
            user.version = look->version[user.lid];
            user.flow = state->flow[0];
        }
        known += known < most && user.flow > 0;
        if (user.flow > 0 || user.version < 0)
            list->user[left++] = user;
        else
            /* The LID leaves the list, so its element of `listed` is cleared too.  If a later move brings paths to the
             * LID over the channel again, the LID has to be listed again. */
            look->listed[user.lid] = 0;
    }
    for (int32_t i = 0; i < left; i++)
        look->listed[list->user[i].lid] = 0;
    list->count = left;
    qsort(list->user, (size_t)known, sizeof *list->user, by_flow);
    return known;
}

int32_t ibn_repair_rebalance_mark_path(rebalance_search *look, int32_t s)
{
    repair_state *state = look->state;
    int32_t hops = 0;
    look->old_stamp++;
    while (s != state->target) {
        const int32_t c = ibn_repair_next_channel(state, s);
        if (c < 0 || ++hops > state->f->switches)
            return -1;
        look->old_path[c] = look->old_stamp;
        s = state->f->dst[c];
    }
    return hops;
}

/* Return the square of the excess that a channel would have with `flow` added to its load.  The excess is the
 * utilisation minus the goal, or 0 below the goal. */
static double excess(const rebalance_search *look, int32_t c, int64_t flow)
{
    const double over = (double)((look->state->load[c] + flow) * look->state->f->inverse_capacity[c] - look->goal);
    return over > 0 ? over * over : 0;
}

/* Return the hops of the path from switch s over channel c to the current LID, or -1 if the path is not allowed.  An
 * allowed path has at most `most` hops, does not return to s, and does not use channel `off`.  Moreover, the flow to be
 * moved must not load other channels too much.  Each channel that only the new path uses must stay below `ceiling`
 * percent of the utilisation of channel `off`. */
static int32_t try_path(rebalance_search *look, int32_t s, int32_t c, int32_t off, int64_t flow, int32_t most)
{
    repair_state *state = look->state;
    const repair_fabric *f = state->f;
    const int64_t full = ibn_repair_rebalance_utilisation(look, off) * look->ceiling / 100;
    for (int32_t hops = 1; hops <= most && c >= 0 && c != off; hops++) {
        if (look->old_path[c] != look->old_stamp && (state->load[c] + flow) * f->inverse_capacity[c] >= full)
            return -1;
        look->work--;
        if (f->dst[c] == state->target)
            return hops;
        if (f->dst[c] == s)
            return -1;
        c = ibn_repair_next_channel(state, f->dst[c]);
    }
    return -1;
}

/* Return the amount by which the objective decreases if switch `at` takes channel c.  The caller has marked the
 * switch's present path in old_path.  The objective is the sum, over all channels, of the squared excess of the
 * utilisation over the goal. */
static double gain_of(rebalance_search *look, int32_t at, int32_t c, int64_t flow)
{
    repair_state *state = look->state;
    const repair_fabric *f = state->f;
    double gain = 0;
    look->new_stamp++;
    for (;; c = ibn_repair_next_channel(state, f->dst[c])) {
        look->new_path[c] = look->new_stamp;
        if (look->old_path[c] == look->old_stamp)
            break; /* From channel c on, the new path is the same as the old path. */
        gain += excess(look, c, 0) - excess(look, c, flow);
        if (f->dst[c] == state->target)
            break;
    }
    for (int32_t s = at; s != state->target; s = f->dst[c]) {
        c = ibn_repair_next_channel(state, s);
        if (look->new_path[c] == look->new_stamp)
            break;
        gain += excess(look, c, 0) - excess(look, c, -flow);
    }
    return gain;
}

/* List the moves of switch `at` towards the current LID that take the flow of the switch off channel `off`. */
static void list_moves(rebalance_search *look, int32_t at, int32_t off, int64_t flow)
{
    repair_state *state = look->state;
    const repair_fabric *f = state->f;
    const int64_t entry = (int64_t)at * f->lids + state->lid;
    const bool costs = f->preferred[entry] != NO_ROUTE && state->lft[entry] == f->preferred[entry];
    if (flow == 0 || (costs && look->budget <= 0))
        return;
    const int32_t had = look->move_count, now = ibn_repair_next_channel(state, at);
    int32_t shortest = ibn_repair_rebalance_mark_path(look, at);
    if (shortest < 0)
        return;
    look->work -= shortest + f->first[at + 1] - f->first[at];
    for (int32_t c = f->first[at]; c < f->first[at + 1] && look->move_count < ROOM; c++) {
        if (!f->alive[c] || c == now)
            continue;
        const int32_t hops = try_path(look, at, c, off, flow, shortest + MORE_HOPS);
        if (hops < 0)
            continue;
        shortest = hops < shortest ? hops : shortest;
        const double gain = gain_of(look, at, c, flow);
        if (gain > 0)
            look->moves[look->move_count++] = (entry_move){state->lid, at, c, hops, gain, costs};
    }
    int32_t left = had;
    for (int32_t i = had; i < look->move_count; i++)
        if (look->moves[i].hops <= shortest + MORE_HOPS)
            look->moves[left++] = look->moves[i];
    look->move_count = left;
}

/* Return whether move a is tried before move b.  A move that leaves the budget of changed entries untouched comes
 * before all others.  Otherwise the move that reduces the objective more comes first. */
static bool is_better(const entry_move *a, const entry_move *b)
{
    if (a->costs != b->costs)
        return b->costs;
    if (a->gain != b->gain)
        return a->gain > b->gain;
    if (a->lid != b->lid)
        return a->lid < b->lid;
    return a->at != b->at ? a->at < b->at : a->channel < b->channel;
}

/* Restore the heap order of look->moves below index i.  In a heap, the move at index i is not worse than the moves at
 * the indices 2 i + 1 and 2 i + 2. */
static void sink(rebalance_search *look, int32_t i)
{
    entry_move *moves = look->moves;
    const entry_move move = moves[i];
    for (int32_t child = 2 * i + 1; child < look->move_count; child = 2 * i + 1) {
        child += child + 1 < look->move_count && is_better(&moves[child + 1], &moves[child]);
        if (!is_better(&moves[child], &move))
            break;
        moves[i] = moves[child];
        i = child;
    }
    moves[i] = move;
}

/* List the moves that take flow off channel c, as a heap.  Most moves are never tried, so a heap takes less time than
 * sorting.  The moves are moves of the switch where channel c begins, and of switches upstream of this switch.
 * `users` limits the number of LIDs, `upstream` the number of switches for each LID. */
static void collect_moves(rebalance_search *look, int32_t c, int32_t users, int32_t upstream)
{
    repair_state *state = look->state;
    const int32_t s = state->f->src[c], known = users_of(look, c, users);
    look->move_count = 0;
    for (int32_t i = 0; i < known && look->work > 0; i++) {
        ibn_repair_rebalance_open_column(look, look->users[c].user[i].lid);
        ibn_repair_rebalance_collect(look, s);
        /* Switches near the channel carry the most flow, but may have no other path.  In a tree, for instance, only
         * leaf switches can avoid a given spine switch.  So the second attempt also lists moves of switches farther
         * upstream. */
        const int32_t near = upstream < MOST_UPSTREAM ? MOST_UPSTREAM : INT32_MAX;
        int32_t with_moves = 0;
        for (int32_t k = 0; k < state->subtree_size && k < near && with_moves < upstream && look->work > 0; k++) {
            const int32_t had = look->move_count;
            list_moves(look, state->queue[k], c, state->flow[k]);
            with_moves += look->move_count > had;
        }
    }
    for (int32_t i = look->move_count / 2 - 1; i >= 0; i--)
        sink(look, i);
}

/* Add flow to the channels of the path of switch s.  Keep two lists up to date: the LIDs of each channel, and the
 * channels with a utilisation above the goal. */
static void add_flow(rebalance_search *look, int32_t s, int64_t flow)
{
    repair_state *state = look->state;
    for (; s != state->target; s = state->f->dst[ibn_repair_next_channel(state, s)]) {
        const int32_t c = ibn_repair_next_channel(state, s);
        state->load[c] += flow;
        if (flow > 0 && look->users[c].room)
            add_user(look, c, state->lid);
        if (!look->is_near_peak[c] && ibn_repair_rebalance_utilisation(look, c) > look->goal) {
            look->is_near_peak[c] = 1;
            look->near_peak[look->near_peak_count++] = c;
        }
    }
}

void ibn_repair_rebalance_set_entry(rebalance_search *look, int32_t s, uint8_t port)
{
    repair_state *state = look->state;
    const int64_t flow = state->flow[0];
    add_flow(look, s, -flow);
    ibn_repair_set_entry(state, s, port);
    add_flow(look, s, flow);
    look->version[state->lid]++;
}

/* Make a move that takes flow off channel `off`, if the move is still useful.  Returns whether the move was made.
 *
 * Other moves may have been made since this move was listed.  So the function checks three conditions again.  The
 * present path of the switch must use channel `off`, the new path must be allowed (see the function try_path), and the
 * objective must fall.  Moreover, the move must close no CDG cycle, and must not exceed the budget of changed
 * entries. */
static bool make_move(rebalance_search *look, const entry_move *move, int32_t off)
{
    repair_state *state = look->state;
    const int64_t entry = (int64_t)move->at * state->f->lids + move->lid;
    const uint8_t was = state->f->preferred[entry], held = state->lft[entry], port = state->f->port[move->channel];
    const int64_t cost = was == NO_ROUTE ? 0 : (port != was) - (held != was);
    if (cost > look->budget)
        return false;
    ibn_repair_rebalance_open_column(look, move->lid);
    ibn_repair_rebalance_mark_path(look, move->at);
    if (look->old_path[off] != look->old_stamp)
        return false;
    ibn_repair_rebalance_collect(look, move->at);
    const int64_t flow = state->flow[0];
    if (try_path(look, move->at, move->channel, off, flow, state->f->switches) < 0
        || gain_of(look, move->at, move->channel, flow) <= 0)
        return false;
    ibn_repair_collect_vls(state);
    if (!ibn_repair_admits(state, move->channel))
        return false;
    ibn_repair_rebalance_set_entry(look, move->at, port);
    look->budget -= cost;
    look->counts[SPENT] += cost;
    look->counts[MOVES]++;
    return true;
}

/* Make moves that take flow off channel c.  Returns whether any move was made. */
static bool relieve(rebalance_search *look, int32_t c)
{
    /* Only a part of the excess is removed from channel c now.  After that, another channel may have the highest
     * utilisation, and is relieved next. */
    const int64_t over = ibn_repair_rebalance_utilisation(look, c) - look->goal,
                  enough = look->goal + over * KEEP / 100;
    bool helped = false;
    for (int32_t wide = 0; wide < 2 && !helped; wide++) {
        collect_moves(look, c, wide ? MOST_USERS : FEW_USERS, wide ? MOST_UPSTREAM : FEW_UPSTREAM);
        while (look->move_count > 0 && look->work > 0 && ibn_repair_rebalance_utilisation(look, c) > enough) {
            const entry_move move = look->moves[0];
            look->moves[0] = look->moves[--look->move_count];
            sink(look, 0);
            helped |= make_move(look, &move, c);
        }
    }
    return helped;
}

/* Return the channel with the highest utilisation, or -1 if no channel is above the goal.  Channels that no move can
 * relieve are left out. */
static int32_t highest(rebalance_search *look)
{
    int32_t best = -1, left = 0;
    for (int32_t i = 0; i < look->near_peak_count; i++) {
        const int32_t c = look->near_peak[i];
        look->is_near_peak[c] = ibn_repair_rebalance_utilisation(look, c) > look->goal;
        if (!look->is_near_peak[c])
            continue;
        look->near_peak[left++] = c;
        if (!look->given_up[c]
            && (best < 0 || ibn_repair_rebalance_utilisation(look, c) > ibn_repair_rebalance_utilisation(look, best)))
            best = c;
    }
    look->near_peak_count = left;
    return best;
}

/* Relieve the channels with a utilisation above the goal, until no move helps or the work limit is reached. */
static void descend(rebalance_search *look)
{
    int32_t c;
    look->near_peak_count = 0;
    for (c = 0; c < look->state->f->channels; c++) {
        look->given_up[c] = 0;
        look->is_near_peak[c] = look->state->f->alive[c] && ibn_repair_rebalance_utilisation(look, c) > look->goal;
        if (look->is_near_peak[c])
            look->near_peak[look->near_peak_count++] = c;
    }
    while (!look->failed && look->work > look->state->graph.visited && (c = highest(look)) >= 0)
        look->given_up[c] = !relieve(look, c);
}

int64_t ibn_repair_rebalance_peak(const rebalance_search *look)
{
    int64_t peak = look->goal;
    for (int32_t c = 0; c < look->state->f->channels; c++)
        if (look->state->f->alive[c] && ibn_repair_rebalance_utilisation(look, c) > peak)
            peak = ibn_repair_rebalance_utilisation(look, c);
    return peak;
}

/* Make moves until no move helps.  Then restore entries whose move turned out to be needless.  If the moves ended
 * because the budget of changed entries was used up, repeat both steps: each restored entry allows one more change.
 *
 * If `overshoot` is positive, one more pass of moves is made at the start.  A move of this first pass may raise other
 * channels above the relieved channel, by up to `overshoot` percent.  This pass is needed if nearly all channels have a
 * high utilisation: then a shorter path fits only if some of its channels exceed the highest utilisation for a time. */
static void run(rebalance_search *look, int32_t overshoot)
{
    if (overshoot > 0) {
        /* The first pass uses at most half of the budget.  The later passes use the rest to lower the load of channels
         * whose load the first pass has raised. */
        const int64_t kept = look->budget / 2;
        look->budget -= kept;
        look->ceiling = 100 + overshoot;
        descend(look);
        look->ceiling = 100;
        look->budget += kept;
    }
    for (int32_t pass = 0; pass < MOST_PASSES && !look->failed; pass++) {
        descend(look);
        const bool is_short = look->budget <= 0 && ibn_repair_rebalance_peak(look) > look->goal;
        const int32_t back = look->failed ? 0 : ibn_repair_rebalance_restore_entries(look);
        if (!is_short || back == 0)
            break;
    }
}

/* Allocate the arrays of the search, which ibn_repair_dispose frees.  Returns false if memory ran out. */
static bool prepare(rebalance_search *look)
{
    array_list *arrays = &look->state->arrays;
    const size_t channels = (size_t)look->state->f->channels + 1, lids = (size_t)look->state->f->lids + 1;
    look->version = ibn_core_arrays_add(arrays, lids, sizeof *look->version);
    look->listed = ibn_core_arrays_add(arrays, lids, sizeof *look->listed);
    look->users = ibn_core_arrays_add(arrays, channels, sizeof *look->users);
    look->old_path = ibn_core_arrays_add(arrays, channels, sizeof *look->old_path);
    look->new_path = ibn_core_arrays_add(arrays, channels, sizeof *look->new_path);
    look->is_near_peak = ibn_core_arrays_add(arrays, channels, sizeof *look->is_near_peak);
    look->given_up = ibn_core_arrays_add(arrays, channels, sizeof *look->given_up);
    look->near_peak = ibn_core_arrays_add(arrays, channels, sizeof *look->near_peak);
    look->moves = ibn_core_arrays_add(arrays, ROOM, sizeof *look->moves);
    return !arrays->failed;
}

int ibn_repair_rebalance(const repair_fabric *f, uint8_t *lft, uint8_t *written, uint8_t *sl, uint16_t *dependencies,
                         int32_t *order, int64_t *load, int64_t goal, int64_t budget, int64_t work, int32_t overshoot,
                         int64_t restored, int64_t page, int64_t *counts)
{
    int64_t ignored[COUNTS] = {0};
    repair_state state = {
        .f = f, .lft = lft, .written = written, .page = page, .sl = sl, .load = load, .counts = ignored};
    state.net = (acyclic_net){.switches = f->switches,
                              .channels = f->channels,
                              .first = f->first,
                              .src = f->src,
                              .dst = f->dst,
                              .into = f->into,
                              .into_first = f->into_first};
    rebalance_search look = {
        .state = &state, .goal = goal, .budget = budget, .restored = restored,
        .work = work,    .ceiling = 100, .counts = counts};
    memset(counts, 0, 3 * sizeof *counts);
    int code = prepare(&look) && ibn_repair_prepare(&state) && ibn_repair_open_graph(&state, dependencies, order)
                   ? OK
                   : NO_MEMORY;
    if (code == OK) {
        state.only_monotone = f->monotone_first;
        state.prepares_sls = f->prepares_sls && f->sl_by_switch;
        run(&look, overshoot);
        for (int32_t vl = 0; vl < f->vls; vl++)
            memcpy(order + (int64_t)vl * f->channels, state.graph.place[vl], (size_t)f->channels * sizeof *order);
        code = look.failed ? NO_MEMORY : OK;
    }
    counts[WORK] = work - look.work + state.graph.visited;
    for (int32_t c = 0; look.users && c < f->channels; c++)
        free(look.users[c].user);
    ibn_core_acyclic_dispose(&state.graph);
    ibn_repair_dispose(&state);
    return code;
}
