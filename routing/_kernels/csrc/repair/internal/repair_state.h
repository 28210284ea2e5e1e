/* State of the repair kernel, shared by its source files.  Entries are repaired LID by LID; the LFT entries of all
 * switches towards one LID are its COLUMN.
 *
 * A switch without an LFT entry towards the current LID is DISCONNECTED.  In the code it is a `root`: the root of
 * its SUBTREE, the switches whose paths lead through it.  All switches of the subtree are CUT OFF from the LID.
 * They keep their entries, so they follow the disconnected switch onto the path that it gets.
 *
 * To DISPLACE a switch is to move it to another path, so that a disconnected switch finds one.  To DEFER a switch is
 * to detach it from its subtree: it becomes a disconnected switch, and is repaired later.  A path is MONOTONE if its
 * channels follow the topological order as it is; it cannot close a CDG cycle. */
#ifndef IBNUE_REPAIR_STATE_H
#define IBNUE_REPAIR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "repair/repair.h"
#include "core/internal/acyclic.h"

#define NO_ROUTE 255 /* LFT entry: no path */
#define NO_SL 255
#define MOST_VLS 16
#define MOST_DEFERRED 24 /* largest number of switches that are detached, to be repaired later, for one LID */
/* channels that cycle searches for a LID may visit; beyond, no switch is moved to make room for others */
#define SEARCH_BUDGET 10000
/* Channels that cycle searches for all LIDs may visit; beyond, no subtree is split over VLs. */
#define PARTS_BUDGET 400000

enum { MISSING, FILLED, MOVED, VISITED, BY_PARTS, COUNTS }; /* indices of `counts`, see ibn_repair_columns */

#define KEEPS_VL (-1) /* packets of a switch of the subtree keep their VL */
#define NEEDS_VL (-2) /* packets of the switch need another VL */
#define DEFERRED (-3) /* the switch is detached, to be repaired later */

/* Next channel of a switch towards a LID; valid only if `column` is the number of the current column. */
typedef struct {
    int32_t column, channel;
} cached_channel;

/* A path that a switch may take, given by its first channel. */
typedef struct {
    int32_t channel, hops; /* hops: number of hops of the path */
    int64_t peak;          /* highest utilisation on the path */
    bool old, near;        /* old: by the preferred entry; near: at most two hops longer than the shortest */
} candidate;

/* A CDG edge (numbered as in acyclic.h), and a VL to whose CDG it was added. */
typedef struct {
    int32_t dependency, vl;
} added_edge;

/* A donor: a LID whose LFT entries can be copied to the current LID. */
typedef struct {
    /* last: channel from the donor's switch to the switch of the current LID, -1: none needed; changes: entries that
     * differ */
    int32_t lid, last, changes;
} donor_column;

/* A switch with its previous entry and SL towards the current LID. */
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
    int32_t lid, target;    /* the current LID, and the switch that delivers it */
    int32_t stamp;          /* number of the current attempt to repair a LID */
    int32_t *cut_off;       /* [S] last attempt in which each switch was cut off from the LID */
    int32_t *known;         /* [S] last attempt in which the hops of each switch were computed */
    int32_t *hops;          /* [S] hops to the current LID */
    int32_t *queue;         /* [S] switches of a subtree, breadth-first; the disconnected switch is first */
    int32_t *through;       /* [S] channel by which each switch in `queue` sends, by index in `queue` */
    /* [S] VLs that each switch in `queue` sends and forwards on, as bits, by index in `queue` */
    uint16_t *vls;
    int64_t *flow;            /* [S] flow that each switch in `queue` sends and forwards, by index in `queue` */
    int32_t *place;           /* [S] index of each switch in `queue`; valid only for switches in it */
    int32_t subtree_size;     /* number of switches in `queue` */
    int32_t children;         /* number of switches that send to the first one directly: queue[1] to queue[children] */
    int32_t *roots, *members; /* [S] disconnected switches; [S] copy of `queue` */
    /* [S] 1 + the switch that was last moved to make room for each disconnected switch; 0: none */
    int32_t *last_displaced;
    uint8_t *given_up; /* [S] whether some LID that the switch delivers could not be repaired */
    /* [S] whether some LID that the switch delivers could not be repaired by paths along the topological order */
    uint8_t *no_monotone_path;
    int64_t search_budget;    /* value of graph.visited at which no more switches are moved to make room for others */
    saved_entry *changed_sls; /* [2 S] previous SLs of switches whose SL the current attempt changed */
    int32_t changed_sl_count; /* length of `changed_sls` */
    saved_entry *kept;        /* [S] previous entries and SLs towards the current LID */
    int32_t saved_count;      /* length of `kept` */
    int32_t *touched;         /* [S] last column in which the entry of each switch was saved in `kept` */
    int32_t column;           /* number of the current column; increased for each attempt to repair a LID */
    cached_channel *taken;    /* [S] next channel of each switch towards the current LID, as far as known */
    acyclic_step *steps;      /* [S + 256] CDG edges to be tested together */
    /* [(S + 256) MOST_VLS] CDG edges that the current attempt added; a second buffer for such edges */
    added_edge *added, *spare;
    int32_t added_count; /* length of `added` */
    /* [blocked_room] CDG edges that close a cycle only with edges that may be removed again */
    added_edge *blocked_edges;
    int32_t blocked_count, blocked_room; /* length of `blocked_edges`; allocated length */
    bool on_trial;                       /* whether the CDG has edges that may be removed again */
    bool sls_may_change;                 /* whether packets may move to other VLs by a change of SLs */
    bool splits_subtrees;                /* whether parts of a subtree may take different SLs */
    /* channels that cycle searches may still visit while subtrees are split over VLs */
    int64_t parts_budget;
    /* [S] VL to which each switch in `queue` moves, or KEEPS_VL, NEEDS_VL or DEFERRED, by index in `queue` */
    int8_t *new_vl;
    uint8_t *needs;        /* [S] flags of split_subtree.c, by index in `queue` */
    saved_entry *deferred; /* [MOST_DEFERRED] switches that were detached, to be repaired later, with their entries */
    int32_t deferred_count, most_deferred; /* length of `deferred`; limit of this length */
    /* VLs that the subtree of a disconnected switch uses, as bits, while another switch is moved for it */
    uint16_t required_vls;
    /* [S] last displacement in which each switch could help by moving; number of the current displacement */
    int32_t *can_help, displacement;
    int32_t displacements; /* switches moved on trial for the current LID while only_monotone is set */
    bool only_monotone;    /* whether paths must follow the topological order as it is */
    /* [256] paths that a disconnected switch can take; paths that a switch to be moved can take */
    candidate *candidates, *others;
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

/* Return whether a CDG edge is impossible: it is known to close a cycle, or it violates the topological order while
 * only_monotone is set. */
static inline bool ibn_repair_is_excluded(const repair_state *job, acyclic_step step, int32_t next, int32_t vl)
{
    const int32_t *place = job->graph.place[vl];
    return (job->graph.blocked[step.dependency] >> vl & 1)
           || (job->only_monotone && place[step.channel] >= place[next]);
}

/* Save, set and restore LFT entries towards the current LID. */
void ibn_repair_set_entry(repair_state *job, int32_t s, uint8_t port);
void ibn_repair_save_entry(repair_state *job, int32_t s);
void ibn_repair_restore_column(repair_state *job);

/* List the switches of a subtree in job->queue; return the VLs that a switch sends on; list the CDG edges of the
 * path after a channel. */
void ibn_repair_collect_subtree(repair_state *job, int32_t root);
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s);
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count);

/* Test whether CDG edges close a cycle, and whether a subtree may use a channel; remove CDG edges again. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl);
void ibn_repair_unblock(repair_state *job, int32_t had);
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl);
bool ibn_repair_defer(repair_state *job);
void ibn_repair_recall_deferred(repair_state *job, int32_t had);
bool ibn_repair_admits(repair_state *job, int32_t c);
bool ibn_repair_note_displaceable(repair_state *job);
bool ibn_repair_may_follow(const repair_state *job, int32_t root, int32_t x, int32_t next);
void ibn_repair_undo(repair_state *job);

/* Mark a subtree as cut off from the LID, or as connected again; add flow to the channels of a path. */
void ibn_repair_detach(repair_state *job, int32_t root);
void ibn_repair_attach_subtree(repair_state *job);
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow);

/* Return the hops from a switch to the LID (-1: it is cut off); list the paths that a switch could take. */
int32_t ibn_repair_hops(repair_state *job, int32_t s);
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t level, int32_t *next);

/* Find paths for disconnected switches, either directly or by moving another switch.  Functions for several switches
 * return the number of switches that are still disconnected. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t level, int32_t *next);
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count);
bool ibn_repair_displace(repair_state *job, int32_t root);
int32_t ibn_repair_displace_all(repair_state *job, int32_t count);

/* Set the LID that is repaired next. */
void ibn_repair_begin_column(repair_state *job, int32_t lid);

/* Fill the missing entries towards the current LID.  Returns whether all of them were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count);

/* Remove the CDG edges that no path uses, on all VLs that packets to the chosen LIDs use.  Returns false if memory
 * ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen);

/* Allocate and free the arrays of the state; ibn_repair_prepare returns false if memory ran out. */
bool ibn_repair_prepare(repair_state *job);
void ibn_repair_dispose(repair_state *job);

/* Copy the VLs on which each CDG edge may be used from an array into the acyclic graph, or (`back`) from the graph. */
void ibn_repair_copy_masks(repair_state *job, uint16_t *dependencies, bool back);

/* Copy the LFT entries of another LID to the current LID.  Hardly any CDG edge is added, because the edges of the
 * copied paths are in use already. */
bool ibn_repair_copy_column(repair_state *job);

#endif
