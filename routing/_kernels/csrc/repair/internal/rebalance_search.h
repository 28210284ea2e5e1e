/* State of the local search for better balance, shared by rebalance.c and restore_entries.c. */
#ifndef IBNUE_REBALANCE_SEARCH_H
#define IBNUE_REBALANCE_SEARCH_H

#include "repair/internal/repair_state.h"

enum { SPENT, WORK, MOVES }; /* indices of `counts`, see ibn_repair_rebalance */

/* A LID whose paths use a channel. */
typedef struct {
    int32_t lid;
    int32_t hops; /* hops from the channel to the LID, as computed when the LID was listed */
    /* number of changed entries towards the LID at the time when `flow` was computed; -1: `flow` is not yet computed */
    int32_t version;
    int64_t flow; /* flow to the LID on the channel */
} channel_user;

typedef struct {
    channel_user *user; /* [room]: LIDs whose paths use the channel */
    int32_t count, room;
} user_list;

typedef struct {
    /* lid, at, channel: by this move, switch `at` sends packets to the LID over this channel */
    int32_t lid, at, channel;
    int32_t hops; /* length of the new path, in hops */
    /* decrease of the objective, which is the sum of the squared excess of the utilisation over the goal */
    double gain;
    bool costs; /* whether the move changes an entry that equals the entry of the previous tables */
} entry_move;

typedef struct {
    repair_state *state; /* state of the repair kernel, with the tables */
    int64_t goal;        /* utilisation up to which a channel may stay loaded */
    int64_t budget;      /* number of further entries that may differ from the previous tables */
    int64_t work;        /* remaining work limit, in hops followed and channels visited */
    int64_t *counts;     /* [3]: further entries that differ from the previous tables; steps of work; moves */
    int32_t *version;    /* [L]: number of entries towards each LID that this kernel has changed so far */
    user_list *users;    /* [C]: LIDs whose paths use each channel; the list is empty (room 0) until it is needed */
    /* [L]: 1 + the last channel in whose list the LID was found; it detects LIDs that are listed twice */
    int32_t *listed;
    /* old_path, new_path: [C], marks of the channels on a switch's present path, and on a new path that is compared
     * with it */
    uint32_t *old_path, *new_path;
    uint32_t old_stamp, new_stamp;
    uint8_t *is_near_peak,
        /* [C]: whether a channel is listed in `near_peak`, and whether it is given up because no move takes flow off
         * it */
        *given_up;
    /* near_peak: [C], channels with a utilisation above the goal; near_peak_count: their number */
    int32_t *near_peak, near_peak_count;
    entry_move *moves; /* [ROOM] moves that take flow off the current channel */
    int32_t move_count;
    bool failed; /* set when memory is exhausted */
} rebalance_search;

/* Return the utilisation of a channel: load times inverse capacity. */
static inline int64_t ibn_repair_rebalance_utilisation(const rebalance_search *look, int32_t c)
{
    return look->state->load[c] * look->state->f->inverse_capacity[c];
}

/* Make a LID the current LID, for which moves are searched next. */
void ibn_repair_rebalance_open_column(rebalance_search *look, int32_t lid);

/* List in state->queue a switch and all switches whose paths lead through it.  The number of listed switches is
 * subtracted from the work limit. */
void ibn_repair_rebalance_collect(rebalance_search *look, int32_t s);

/* Mark the channels of the present path from a switch to the current LID.  Returns the number of hops, or -1 if the
 * LID is not reached. */
int32_t ibn_repair_rebalance_mark_path(rebalance_search *look, int32_t s);

/* Replace the entry of a switch towards the current LID, and move the flow of its subtree to the new path.  The subtree
 * must be listed in state->queue. */
void ibn_repair_rebalance_set_entry(rebalance_search *look, int32_t s, uint8_t port);

/* Return the highest utilisation of any channel; if it is below the goal, return the goal. */
int64_t ibn_repair_rebalance_peak(const rebalance_search *look);

/* Restore the previous value of entries, if that raises no channel above the highest utilisation.  Returns the number
 * of restored entries. */
int32_t ibn_repair_rebalance_restore_entries(rebalance_search *look);

#endif
