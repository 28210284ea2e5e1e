/* State of the repair kernel, shared by its source files.
 *
 * A switch is CUT OFF from a LID if its path to the LID meets a missing entry.  A switch with a missing entry is the
 * ROOT of a subtree: the switches whose paths lead through it.  All switches of the subtree keep their entries, so
 * they follow their root onto the path that it takes.
 *
 * To DISPLACE a switch is to give it another path, so that a root finds one.  To DEFER a switch is to detach it from
 * the subtree that it blocks; it becomes a root, and looks for a path later.  A path is MONOTONE if its channels
 * follow the topological order as it is, so that it cannot close a CDG cycle. */
#ifndef IBNUE_REPAIR_STATE_H
#define IBNUE_REPAIR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "repair/repair.h"
#include "core/internal/acyclic.h"

#define NO_ROUTE 255 /* LFT entry: no path */
#define NO_SL 255
#define MOST_VLS 16
#define MOST_DEFERRED 24    /* largest number of switches that are deferred in one column */
#define SEARCH_BUDGET 10000 /* visits of cycle searches in a column, from which on no switch is displaced any more */
/* visits of cycle searches in all columns, from which on no subtree is split over VLs any more */
#define PARTS_BUDGET 400000

enum { MISSING, FILLED, MOVED, VISITED, BY_PARTS, COUNTS }; /* indices of `counts`, see ibn_repair_columns */

#define KEEPS_VL (-1) /* packets of a queued switch keep their VL, or */
#define NEEDS_VL (-2) /* need another VL, or */
#define DEFERRED (-3) /* the switch is deferred */

/* Next channel of a switch towards the LID of a column; valid only for that column. */
typedef struct {
    int32_t column, channel;
} cached_channel;

/* First channel of a path that a switch may take. */
typedef struct {
    int32_t channel, hops; /* hops: number of hops of the path */
    int64_t peak;          /* highest utilisation on the path */
    bool old, near;        /* old: by the preferred entry; near: at most two hops longer than the shortest */
} candidate;

/* A CDG edge (numbered as in acyclic.h), and a VL to whose CDG it was added. */
typedef struct {
    int32_t dependency, vl;
} added_edge;

/* A donor: a LID whose column can be copied to the current LID. */
typedef struct {
    /* last: channel from its switch to the target, -1: none is needed; changes: entries that would differ */
    int32_t lid, last, changes;
} donor_column;

/* The entry and the SL that a switch had towards the current LID. */
typedef struct {
    int32_t at;           /* the switch */
    uint8_t entry, level; /* out-port and SL */
} saved_entry;

typedef struct {
    const repair_fabric *f;
    acyclic_net net;
    acyclic graph;          /* CDG edges that may be used on each VL */
    uint8_t *lft, *sl;      /* arguments of ibn_repair_columns */
    int64_t *load, *counts; /* arguments of ibn_repair_columns */
    int32_t lid, target;    /* LID of the current column, and the switch that delivers it */
    int32_t stamp;          /* number of the current attempt at a column; values of cut_off and known */
    int32_t *cut_off;       /* [S] attempt in which each switch is cut off */
    int32_t *known;         /* [S] attempt in which `hops` is known */
    int32_t *hops;          /* [S] hops to the LID */
    int32_t *queue;         /* [S] switches of a subtree, breadth-first from its root */
    int32_t *through;       /* [S] channel of each queued switch to its parent, by index in the queue */
    /* [S] VLs of the packets that each queued switch sends or forwards, as bits, by index in the queue */
    uint16_t *vls;
    int64_t *flow;            /* [S] flow that each queued switch sends or forwards, by index in the queue */
    int32_t *place;           /* [S] index of a switch in the queue; valid for queued switches only */
    int32_t subtree_size;     /* number of switches in the queue */
    int32_t children;         /* number of children of the root; their indices in the queue are 1 to children */
    int32_t *roots, *members; /* [S] roots without a path; copy of the queue */
    int32_t *last_displaced;  /* [S] for each root, 1 + the switch that was last displaced for it; 0: none */
    uint8_t *given_up;        /* [S] whether the repair of a LID that this switch delivers failed */
    /* [S] whether a LID that this switch delivers had no monotone path */
    uint8_t *no_monotone_path;
    int64_t search_budget;     /* value of graph.visited from which on no more switches are displaced */
    saved_entry *changed_sls;  /* [2 S] previous SLs, since changed_sl_count was last reset */
    int32_t changed_sl_count;  /* length of `changed_sls` */
    saved_entry *kept;         /* [S] previous entries and SLs of the column */
    int32_t saved_count;       /* length of `kept` */
    int32_t *touched;          /* [S] number of the last column in which the entry of a switch was saved */
    int32_t column;            /* number of the current column, from 1; increased for each attempt to repair it */
    cached_channel *taken;     /* [S] */
    acyclic_step *steps;       /* [S + 256] CDG edges that are tested */
    added_edge *added, *spare; /* [(S + 256) MOST_VLS] edges that the current attempt added; a second buffer */
    int32_t added_count;       /* length of `added` */
    added_edge *blocked_edges; /* [blocked_room] edges that close a cycle only with edges that are on trial */
    int32_t blocked_count, blocked_room; /* length of `blocked_edges`; allocated length */
    bool on_trial;                       /* whether the graph has edges that may be removed again */
    bool sls_may_change;                 /* whether SLs may change */
    bool splits_subtrees;                /* whether parts of a subtree may take different SLs */
    /* channels that cycle searches may still visit while subtrees are split over VLs */
    int64_t parts_budget;
    int8_t *new_vl;        /* [S] VL to which each queued switch moves, or KEEPS_VL etc., by index in the queue */
    uint8_t *needs;        /* [S] flags of split_subtree.c, by index in the queue */
    saved_entry *deferred; /* [MOST_DEFERRED] switches that were deferred in the column, and their entries */
    int32_t deferred_count, most_deferred; /* most_deferred: limit of deferred_count */
    /* VLs that the packets of a root and its subtree use, as bits, while another switch is displaced for it */
    uint16_t required_vls;
    /* [S] last displacement in which each switch could help; number of the current displacement */
    int32_t *can_help, displacement;
    int32_t displacements;          /* displacements that were tried in the column while only_monotone is set */
    bool only_monotone;             /* whether only monotone paths are allowed */
    candidate *candidates, *others; /* [256] paths of a root; paths of the switch that is displaced */
} repair_state;

/* Return the LFT entry of a switch towards the current LID. */
static inline uint8_t ibn_repair_entry(const repair_state *job, int32_t s)
{
    return job->lft[(int64_t)s * job->f->lids + job->lid];
}

/* Return the next channel of a switch towards the current LID, or -1.  The result is cached, because rows of the LFT
 * are far apart in memory. */
static inline int32_t ibn_repair_next_channel(const repair_state *job, int32_t s)
{
    cached_channel *taken = &job->taken[s];
    if (taken->column != job->column) {
        const int32_t c = job->f->at_port[(int64_t)s * 256 + ibn_repair_entry(job, s)];
        *taken = (cached_channel){job->column, c >= 0 && job->f->alive[c] ? c : -1};
    }
    return taken->channel;
}

/* Return whether a CDG edge to channel `next` is known to close a cycle, or is not monotone while only_monotone is
 * set. */
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

/* Put a subtree into the queue; return the VLs that a switch sends on; collect the CDG edges of the path after a
 * channel. */
void ibn_repair_collect_subtree(repair_state *job, int32_t root);
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s);
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count);

/* Test CDG edges, and whether a subtree may use a channel; remove edges again. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl);
void ibn_repair_unblock(repair_state *job, int32_t had);
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl);
bool ibn_repair_defer(repair_state *job);
void ibn_repair_recall_deferred(repair_state *job, int32_t had);
bool ibn_repair_admits(repair_state *job, int32_t c);
bool ibn_repair_note_displaceable(repair_state *job);
bool ibn_repair_may_follow(const repair_state *job, int32_t root, int32_t x, int32_t next);
void ibn_repair_undo(repair_state *job);

/* Mark the subtree of a root as cut off or not; add flow along a path. */
void ibn_repair_detach(repair_state *job, int32_t root);
void ibn_repair_attach_subtree(repair_state *job);
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow);

/* Return the hops from a switch to the LID (-1: the switch is cut off); list the paths that a switch could take. */
int32_t ibn_repair_hops(repair_state *job, int32_t s);
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t level, int32_t *next);

/* Attach roots, on a path of their own or by displacing another switch.  Functions for several roots return the
 * number of roots that are left. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t level, int32_t *next);
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count);
bool ibn_repair_displace(repair_state *job, int32_t root);
int32_t ibn_repair_displace_all(repair_state *job, int32_t count);

/* Make the column of a LID the current one. */
void ibn_repair_begin_column(repair_state *job, int32_t lid);

/* Fill the missing entries of the current column.  Returns whether all of them were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count);

/* Remove the CDG edges that no path uses, on the VLs of all chosen columns.  Returns false if memory ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen);

/* Allocate and free the arrays of the state; ibn_repair_prepare returns false if memory ran out. */
bool ibn_repair_prepare(repair_state *job);
void ibn_repair_dispose(repair_state *job);

/* Copy the VLs of allowed CDG edges into the acyclic graph, or (`back`) out of it. */
void ibn_repair_copy_masks(repair_state *job, uint16_t *dependencies, bool back);

/* Copy the column of another LID, at the same switch or at a neighbour.  Its CDG edges are in use already, so that
 * hardly any edge is added. */
bool ibn_repair_copy_column(repair_state *job);

#endif
