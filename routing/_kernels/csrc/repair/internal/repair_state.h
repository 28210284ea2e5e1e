/* State of the repair kernel, shared by its parts.
 *
 * A switch is CUT OFF from a LID if its path there meets a missing entry.  A switch with a missing entry is the ROOT
 * of a subtree: the switches whose paths lead through it.  The subtree follows its root onto every path that the root
 * takes. */
#ifndef IBNUE_REPAIR_STATE_H
#define IBNUE_REPAIR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "repair/repair.h"
#include "core/internal/acyclic.h"

#define NO_ROUTE 255 /* LFT entry: no path */
#define NO_SL 255
#define MOST_VLS 16
#define MOST_DEFERRED 24    /* switches deferred in one column */
#define SEARCH_BUDGET 10000 /* visits of searches in one column before no more switches are asked to move */
#define PARTS_BUDGET 400000 /* visits of searches in all columns before no more subtrees are split over VLs */

enum { MISSING, FILLED, MOVED, VISITED, BY_PARTS, COUNTS }; /* index into counts, see ibn_repair_columns */

#define KEEPS_VL (-1) /* the traffic of a queued switch keeps its VL, */
#define NEEDS_VL (-2) /* still needs another VL, */
#define DEFERRED (-3) /* or the switch is deferred: it is detached and becomes a root */

/* Next channel of a switch in one column; invalid if `column` is another one. */
typedef struct {
    int32_t column, channel;
} cached_channel;

/* First channel of a path that a root may take. */
typedef struct {
    int32_t channel, hops; /* hops: length of the path */
    int64_t peak;          /* highest utilisation on the path */
    bool old, near;        /* old: it is the preferred entry; near: at most two hops longer than the shortest */
} candidate;

/* A CDG edge (numbered as in acyclic.h) on one VL. */
typedef struct {
    int32_t dependency, vl;
} added_edge;

/* A donor: a LID whose column can be copied. */
typedef struct {
    int32_t lid, last, changes; /* last: the extra final channel, -1: none; changes: entries that would differ */
} donor_column;

/* The entry and the SL that a switch had in a column. */
typedef struct {
    int32_t at;           /* the switch */
    uint8_t entry, level; /* its out-port and SL */
} saved_entry;

typedef struct {
    const repair_fabric *f;
    acyclic_net net;
    acyclic graph;          /* CDG edges that may be used, by VL */
    uint8_t *lft, *sl;      /* arguments of ibn_repair_columns */
    int64_t *load, *counts; /* arguments of ibn_repair_columns */
    int32_t lid, target;    /* the current column, and the switch that delivers its LID */
    int32_t stamp;          /* number of the current attempt at a column; marks in cut_off and known */
    int32_t *cut_off;       /* [S] stamp of the attempt in which a switch is cut off */
    int32_t *known;         /* [S] stamp of the attempt in which hops is known */
    int32_t *hops;          /* [S] hops to the LID */
    int32_t *queue;         /* [S] switches of a subtree in breadth-first order, its root first */
    int32_t *through;       /* [S] for each queued switch, the channel to its parent; by place in the queue */
    uint16_t *vls;          /* [S] mask of VLs that each queued switch sends on or forwards on; by place in the queue */
    int64_t *flow;          /* [S] flow that each queued switch sends and forwards; by place in the queue */
    int32_t *place;         /* [S] place of a switch in the queue; valid for queued switches only */
    int32_t subtree_size;   /* switches in the queue */
    int32_t children;       /* children of the root, at places 1 to children of the queue */
    int32_t *roots, *members; /* [S] roots that are still without a path; copy of the queue while others are queued */
    int32_t *last_displaced;  /* [S] by root, the switch that was last displaced for it, + 1; 0: none */
    uint8_t *given_up;        /* [S] by target, whether the repair of one of its LIDs failed */
    /* [S] by delivering switch: whether one of its LIDs had no path that follows the topological order */
    uint8_t *no_monotone_path;
    int64_t search_budget;     /* value of graph.visited from which on no more switches are asked to move */
    saved_entry *changed_sls;  /* [2 S] SLs before they were changed, since changed_sl_count was last reset */
    int32_t changed_sl_count;  /* length of `changed_sls` */
    saved_entry *kept;         /* [S] entries and SLs of the column before it was changed */
    int32_t saved_count;       /* length of kept */
    int32_t *touched;          /* [S] number of the last column in which the entry of a switch was saved */
    int32_t column;            /* number of the current column, from 1; raised for each attempt to repair it */
    cached_channel *taken;     /* [S] */
    acyclic_step *steps;       /* [S + 256] CDG edges that are being tested */
    added_edge *added, *spare; /* [(S + 256) MOST_VLS] edges added by the current attempt; a second buffer */
    int32_t added_count;       /* length of `added` */
    added_edge *blocked_edges; /* [blocked_room] edges that close a cycle with edges that are in the graph on trial */
    int32_t blocked_count, blocked_room; /* length of `blocked_edges`; allocated length */
    bool on_trial;                       /* whether the graph has edges that may be taken back */
    bool sls_may_change;                 /* whether SLs may change */
    bool splits_subtrees;                /* whether parts of a subtree may change their SLs separately */
    int64_t parts_budget;                /* channels that searches may still visit while subtrees are split over VLs */
    int8_t *new_vl;        /* [S] VL that each queued switch moves to, or KEEPS_VL ...; by place in the queue */
    uint8_t *needs;        /* [S] flags of split_subtree.c; by place in the queue */
    saved_entry *deferred; /* [MOST_DEFERRED] switches that were deferred in the column, and their entries */
    int32_t deferred_count, most_deferred; /* most_deferred: limit of deferred_count */
    /* mask of the VLs that packets of the root use, for which another switch has to change its path */
    uint16_t required_vls;
    int32_t *can_help, displacement; /* [S] number of the last displacement in which a switch may help; that number */
    int32_t displacements;           /* switches displaced on trial in the column while only_monotone is set */
    bool only_monotone;              /* whether paths may only use CDG edges that follow the order as it is */
    candidate *candidates, *others;  /* [256] candidates of a root; those of the switch that is displaced */
} repair_state;

/* Return the LFT entry of a switch in the current column. */
static inline uint8_t ibn_repair_entry(const repair_state *job, int32_t s)
{
    return job->lft[(int64_t)s * job->f->lids + job->lid];
}

/* Return the next channel of a switch, or -1.  The result is cached for the column, because rows of the LFT lie far
 * apart in memory. */
static inline int32_t ibn_repair_next_channel(const repair_state *job, int32_t s)
{
    cached_channel *taken = &job->taken[s];
    if (taken->column != job->column) {
        const int32_t c = job->f->at_port[(int64_t)s * 256 + ibn_repair_entry(job, s)];
        *taken = (cached_channel){job->column, c >= 0 && job->f->alive[c] ? c : -1};
    }
    return taken->channel;
}

/* Return whether a CDG edge is known to close a cycle, or violates the order while only_monotone is set. */
static inline bool ibn_repair_is_excluded(const repair_state *job, acyclic_step step, int32_t next, int32_t vl)
{
    const int32_t *place = job->graph.place[vl];
    return (job->graph.blocked[step.dependency] >> vl & 1)
           || (job->only_monotone && place[step.channel] >= place[next]);
}

/* Save, set and restore entries of the current column. */
void ibn_repair_set_entry(repair_state *job, int32_t s, uint8_t port);
void ibn_repair_save_entry(repair_state *job, int32_t s);
void ibn_repair_restore_column(repair_state *job);

/* Queue a subtree; return the VLs of a switch, and the CDG edges behind a channel. */
void ibn_repair_collect_subtree(repair_state *job, int32_t root);
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s);
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count);

/* Test CDG edges, and whether a subtree may use a channel; take edges back. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl);
void ibn_repair_unblock(repair_state *job, int32_t had);
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl);
bool ibn_repair_defer(repair_state *job);
void ibn_repair_recall_deferred(repair_state *job, int32_t had);
bool ibn_repair_admits(repair_state *job, int32_t c);
bool ibn_repair_note_displaceable(repair_state *job);
bool ibn_repair_may_follow(const repair_state *job, int32_t root, int32_t x, int32_t next);
void ibn_repair_undo(repair_state *job);

/* Detach the subtree of a root, attach it again, and add flow along its path. */
void ibn_repair_detach(repair_state *job, int32_t root);
void ibn_repair_attach_subtree(repair_state *job);
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow);

/* Return the hops from a switch to the LID (-1: it is cut off), and list the channels that it could use. */
int32_t ibn_repair_hops(repair_state *job, int32_t s);
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t level, int32_t *next);

/* Attach roots, on a path of their own or by displacing another switch; for several, return how many are left. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t level, int32_t *next);
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count);
bool ibn_repair_displace(repair_state *job, int32_t root);
int32_t ibn_repair_displace_all(repair_state *job, int32_t count);

/* Make the column of a LID the current one. */
void ibn_repair_begin_column(repair_state *job, int32_t lid);

/* Fill the missing entries of the current column; return whether all of them were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count);

/* Remove the unused CDG edges on the VLs of all chosen columns; return false if memory ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen);

/* Allocate and free the arrays of a state; prepare returns false if memory ran out. */
bool ibn_repair_prepare(repair_state *job);
void ibn_repair_dispose(repair_state *job);

/* Copy the masks of allowed CDG edges into the acyclic graph, or (`back`) out of it. */
void ibn_repair_copy_masks(repair_state *job, uint16_t *dependencies, bool back);

/* Copy the paths of another LID, of the target or of a neighbour: their CDG edges are in use already. */
bool ibn_repair_copy_column(repair_state *job);

#endif
