/* State of the search that moves LFT entries to balance the load, shared by rebalance.c and restore_entries.c. */
#pragma once

#include "repair/internal/repair_state.h"

enum { SPENT, WORK, MOVES }; /* indices of the array `counts`, which is described at ibn_repair_rebalance in repair.h */

/* A LID to which some packets travel over a given channel. */
typedef struct {
    int32_t lid;
    /* hops to the LID from the switch where the channel begins, computed when the channel's list of LIDs was first
     * filled; 0: the LID was added to this list later */
    int32_t hops;
    /* value of the LID's element of rebalance_search.version when `flow` was last computed, by which an outdated `flow`
     * is recognised; -1: `flow` has never been computed */
    int32_t version;
    int64_t flow; /* flow to the LID on the channel, as computed last; later changes of entries do not update it */
} channel_user;

typedef struct {
    channel_user *user; /* [room] LIDs of the packets that travel over one channel; the first `count` of them are
                         * valid */
    int32_t count, room;
} user_list;

typedef struct {
    /* lid, at, channel: the move makes `channel` the next hop of switch `at` towards LID `lid` */
    int32_t lid, at, channel;
    int32_t hops; /* hops of the switch's path after the move */
    /* amount by which the move lowers the objective; the objective is the sum, over all channels, of the squared excess
     * of the utilisation over the goal */
    double gain;
    /* whether the move uses up a part of the budget of changed entries.  This is so if the present entry is still the
     * entry of the previous tables */
    bool costs;
} entry_move;

typedef struct {
    repair_state *state; /* state of the repair kernel, which includes the LFTs and the CDG of each VL */
    /* a channel is relieved only while its utilisation (load times inverse capacity) is above this value */
    int64_t goal;
    int64_t budget; /* number of further entries that may become different from the previous tables */
    int64_t restored; /* largest number of changed entries that are restored after each pass of moves */
    /* limit of the utilisation that a move may cause on other channels, in percent of the relieved channel's
     * utilisation.  (The ceilings in trees/descent.h are something else.) */
    int64_t ceiling;
    /* remaining work limit: hops that may be followed along paths, plus channels that cycle searches may visit */
    int64_t work;
    /* [3] output, the same three numbers as `counts` of ibn_repair_rebalance.
     * counts[SPENT]: increase of the number of entries that differ from the previous tables.
     * counts[WORK]: work done, in the unit of `work`.
     * counts[MOVES]: number of moves. */
    int64_t *counts;
    int32_t *version; /* [L]: number of entries towards each LID that have been changed so far */
    /* [C]: for each channel, the LIDs to which packets travel over the channel; a list with `room` 0 has not been
     * filled yet */
    user_list *users;
    /* [L]: marks that reveal LIDs which occur twice in a list.  While the list of channel c is read, the element of
     * each LID that has occurred already is c + 1.  All other elements are 0 */
    int32_t *listed;
    /* old_path: [C], the element equals old_stamp if the channel is on the present path of the switch that a move would
     * change.
     * new_path: [C], the element equals new_stamp if the channel is on the path after the move. */
    uint32_t *old_path, *new_path;
    uint32_t old_stamp, new_stamp;
    uint8_t *is_near_peak,
        /* is_near_peak: [C], whether the channel is listed in `near_peak`.
         * given_up: [C], whether the search leaves the channel out because no move takes flow off the channel. */
        *given_up;
    /* near_peak: [C], channels whose utilisation was above the goal when they were listed; near_peak_count: number of
     * these channels */
    int32_t *near_peak, near_peak_count;
    entry_move *moves; /* [ROOM] possible moves that take flow off the channel that is being relieved */
    int32_t move_count;
    bool failed; /* whether memory ran out */
} rebalance_search;

/* Return the utilisation of a channel: load times inverse capacity. */
static inline int64_t ibn_repair_rebalance_utilisation(const rebalance_search *look, int32_t c)
{
    return look->state->load[c] * look->state->f->inverse_capacity[c];
}

/* Make `lid` the current LID of the repair state, before moves of entries towards this LID are searched or made. */
void ibn_repair_rebalance_open_column(rebalance_search *look, int32_t lid);

/* List the subtree of switch s in state->queue: s and all switches whose paths to the current LID lead through s.  The
 * flow of these switches is written to state->flow.  The work limit is lowered in proportion to the number of listed
 * switches. */
void ibn_repair_rebalance_collect(rebalance_search *look, int32_t s);

/* Mark in old_path the channels of the present path from switch s to the current LID.  Returns the number of hops, or
 * -1 if the path does not reach the LID. */
int32_t ibn_repair_rebalance_mark_path(rebalance_search *look, int32_t s);

/* Set the entry of switch s towards the current LID to `port`, and move the flow of the subtree of s to the new path.
 * The caller has listed the subtree in state->queue. */
void ibn_repair_rebalance_set_entry(rebalance_search *look, int32_t s, uint8_t port);

/* Return the highest utilisation of all channels, or the goal if all utilisations are below the goal. */
int64_t ibn_repair_rebalance_peak(const rebalance_search *look);

/* Restore moved entries to their values in the previous tables.  An entry is not restored if this would raise a channel
 * above the present highest utilisation, or close a CDG cycle.  Returns the number of restored entries. */
int32_t ibn_repair_rebalance_restore_entries(rebalance_search *look);
