/* State of the repair kernel, shared by its source files.  Entries are repaired LID by LID; the LFT entries of all
 * switches towards one LID are its COLUMN.
 *
 * A switch without an LFT entry towards the current LID is DISCONNECTED.  In the code, a disconnected switch is called
 * a `root`.  Its SUBTREE is the switch itself and all switches whose paths lead through it.  All switches of the
 * subtree are CUT OFF from the LID.  They keep their entries, so they follow the disconnected switch onto the path that
 * it gets.
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

#define NO_ROUTE 255 /* LFT entry that stands for "no path" */
#define NO_SL 255
#define MOST_VLS 16
#define MOST_DEFERRED 24 /* Largest number of switches that are detached for one LID in order to be repaired later. */
/* Limit of the number of channels that cycle searches for one LID visit.  Beyond this limit, no switch is moved to make
 * room for other switches. */
#define SEARCH_BUDGET 10000
/* Limit of the number of channels that cycle searches for all LIDs visit.  Beyond this limit, no subtree is split over
 * VLs. */
#define PARTS_BUDGET 400000

/* Indices of the array `counts`, described at ibn_repair_columns (repair.h). */
enum { MISSING, FILLED, MOVED, VISITED, BY_PARTS, COUNTS };

#define KEEPS_VL (-1) /* The packets of a switch stay on their VL. */
#define NEEDS_VL (-2) /* The packets of a switch need another VL. */
#define DEFERRED (-3) /* The switch was detached and is repaired later. */

/* Cached next channel of a switch towards the current LID.  The value is valid only while `column` equals the number of
 * the current column. */
typedef struct {
    int32_t column, channel;
} cached_channel;

/* A path that a switch may take. */
typedef struct {
    int32_t channel, hops; /* hops: length of the path */
    int64_t peak;          /* peak: highest utilisation of a channel on the path */
    /* old: whether the path begins with the preferred entry; near: whether it is at most two hops longer than the
     * shortest path */
    bool old, near;
} candidate;

/* A CDG edge that was added to the CDG of one VL.  `dependency` is the edge's number, see acyclic.h. */
typedef struct {
    int32_t dependency, vl;
} added_edge;

/* A donor: another LID whose LFT entries can be copied to the current LID. */
typedef struct {
    /* lid: the donor.
     * last: channel from the switch that delivers the donor to the switch that delivers the current LID, -1: none
     * needed.
     * changes: number of entries that would differ from the preferred ones. */
    int32_t lid, last, changes;
} donor_column;

/* The previous LFT entry and SL of one switch towards the current LID, saved so that they can be restored. */
typedef struct {
    int32_t at;           /* at: the switch */
    uint8_t entry, level; /* entry: out-port; level: SL */
} saved_entry;

typedef struct {
    const repair_fabric *f;
    acyclic_net net;
    acyclic graph;          /* VLs on which each CDG edge may be used, and a topological order for each VL */
    uint8_t *lft, *sl;      /* tables, filled in place: see ibn_repair_columns */
    int64_t *load, *counts; /* channel loads and statistics, updated in place: see ibn_repair_columns */
    int32_t lid, target;    /* lid: the current LID; target: the switch that delivers the LID */
    int32_t stamp;          /* number of the current attempt to repair a LID; `cut_off` and `known` compare with it */
    int32_t *cut_off;       /* [S] the switch is cut off from the LID if this equals `stamp` */
    int32_t *known;         /* [S] the value in `hops` is valid if this equals `stamp` */
    int32_t *hops;          /* [S] hops from each switch to the current LID */
    int32_t *queue;   /* [S] the switches of a subtree in breadth-first order; queue[0] is the disconnected switch */
    int32_t *through; /* [S] by index in `queue`: the channel by which the switch sends */
    /* [S] by index in `queue`: VLs, as bits, of the packets that the switch sends or forwards */
    uint16_t *vls;
    int64_t *flow;        /* [S] by index in `queue`: flow that the switch sends and forwards */
    int32_t *place;       /* [S] by switch: its index in `queue`; undefined for switches outside of the subtree */
    int32_t subtree_size; /* number of switches in `queue` */
    int32_t children; /* number of neighbours that send to queue[0] directly; they are queue[1] to queue[children] */
    int32_t *roots, *members; /* roots: [S] disconnected switches; members: [S] copy of `queue` */
    /* [S] by disconnected switch: 1 + the switch that was last moved to make room for it; 0: none */
    int32_t *last_displaced;
    uint8_t *given_up; /* [S] whether the repair of some LID at this switch failed */
    /* [S] whether some LID at this switch could not be repaired by paths along the topological order */
    uint8_t *no_monotone_path;
    int64_t search_budget;    /* limit of graph.visited; beyond it, no switches are moved to make room for others */
    saved_entry *changed_sls; /* [2 S] switches whose SL the current attempt changed, with their previous SLs */
    int32_t changed_sl_count; /* length of `changed_sls` */
    saved_entry *kept;        /* [S] entries and SLs towards the current LID before the repair changed them */
    int32_t saved_count;      /* length of `kept` */
    int32_t *touched;         /* [S] number of the last column in which the switch's entry was saved in `kept` */
    int32_t column;           /* number of the current column; increased for each attempt to repair a LID */
    cached_channel *taken;    /* [S] cache of each switch's next channel towards the current LID */
    acyclic_step *steps;      /* [S + 256] CDG edges that are tested and added together */
    /* added: [(S + 256) MOST_VLS] CDG edges that the current attempt added; spare: second buffer of this size,
     * exchanged with `added` when attempts are nested */
    added_edge *added, *spare;
    int32_t added_count; /* length of `added` */
    /* [blocked_room] CDG edges that close a cycle only together with edges that may be removed again */
    added_edge *blocked_edges;
    /* blocked_count: length of `blocked_edges`; blocked_room: its allocated length */
    int32_t blocked_count, blocked_room;
    bool on_trial;        /* whether the CDG contains edges that may be removed again */
    bool sls_may_change;  /* whether packets may move to other VLs by a change of SLs */
    bool splits_subtrees; /* whether parts of a subtree may take different SLs */
    /* limit of the channels that cycle searches may still visit while subtrees are split over VLs */
    int64_t parts_budget;
    /* [S] by index in `queue`: VL to which the switch's packets move, or KEEPS_VL, NEEDS_VL or DEFERRED */
    int8_t *new_vl;
    uint8_t *needs; /* [S] by index in `queue`: flags BEHIND, ITSELF and TAKEN of split_subtree.c */
    /* [MOST_DEFERRED] switches that were detached and are repaired later, with their previous entries */
    saved_entry *deferred;
    /* deferred_count: length of `deferred`; most_deferred: largest allowed length */
    int32_t deferred_count, most_deferred;
    /* VLs, as bits, that a disconnected switch's subtree uses; set while another switch is moved to make room for it */
    uint16_t required_vls;
    /* can_help: [S] a move of the switch may help if this equals `displacement`; displacement: number of the current
     * search for switches to move */
    int32_t *can_help, displacement;
    int32_t displacements; /* number of trial moves for the current LID while only_monotone is set */
    bool only_monotone;    /* whether paths must follow the topological order as it is */
    /* candidates: [256] paths that a disconnected switch can take; others: [256] paths that a switch to be moved can
     * take */
    candidate *candidates, *others;
} repair_state;

/* Return the LFT entry of a switch towards the current LID. */
static inline uint8_t ibn_repair_entry(const repair_state *job, int32_t s)
{
    return job->lft[(int64_t)s * job->f->lids + job->lid];
}

/* Return the channel by which a switch sends towards the current LID, or -1 if it has none.  The result is cached,
 * because rows of the LFT are far apart in memory. */
static inline int32_t ibn_repair_next_channel(const repair_state *job, int32_t s)
{
    cached_channel *taken = &job->taken[s];
    if (taken->column != job->column) {
        const int32_t c = job->f->at_port[(int64_t)s * 256 + ibn_repair_entry(job, s)];
        *taken = (cached_channel){job->column, c >= 0 && job->f->alive[c] ? c : -1};
    }
    return taken->channel;
}

/* Return whether a CDG edge (`step`, which leads to channel `next`) is known to be impossible on a VL.  It is
 * impossible if it closes a cycle or, while only_monotone is set, if it violates the topological order. */
static inline bool ibn_repair_is_excluded(const repair_state *job, acyclic_step step, int32_t next, int32_t vl)
{
    const int32_t *place = job->graph.place[vl];
    return (job->graph.blocked[step.dependency] >> vl & 1)
           || (job->only_monotone && place[step.channel] >= place[next]);
}

/* These functions change LFT entries towards the current LID. ibn_repair_set_entry sets an entry and saves its previous
 * value. ibn_repair_save_entry only saves the value. ibn_repair_restore_column restores all saved entries. */
void ibn_repair_set_entry(repair_state *job, int32_t s, uint8_t port);
void ibn_repair_save_entry(repair_state *job, int32_t s);
void ibn_repair_restore_column(repair_state *job);

/* These functions follow paths. ibn_repair_collect_subtree lists the switches of a subtree in job->queue.
 * ibn_repair_vls_of returns the VLs on which a switch sends. ibn_repair_common_suffix lists the CDG edges of the path
 * after a channel. */
void ibn_repair_collect_subtree(repair_state *job, int32_t root);
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s);
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count);

/* These functions test whether CDG edges close a cycle, and whether a subtree may take a channel.  Some of them remove
 * added edges again.  Each function is described at its definition. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl);
void ibn_repair_unblock(repair_state *job, int32_t had);
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl);
bool ibn_repair_defer(repair_state *job);
void ibn_repair_recall_deferred(repair_state *job, int32_t had);
bool ibn_repair_admits(repair_state *job, int32_t c);
bool ibn_repair_note_displaceable(repair_state *job);
bool ibn_repair_may_follow(const repair_state *job, int32_t root, int32_t x, int32_t next);
void ibn_repair_undo(repair_state *job);

/* These functions disconnect and connect subtrees. ibn_repair_detach marks a subtree as cut off from the LID, and
 * ibn_repair_attach_subtree as connected again. ibn_repair_add_flow adds flow to the channels of a path. */
void ibn_repair_detach(repair_state *job, int32_t root);
void ibn_repair_attach_subtree(repair_state *job);
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow);

/* These functions find paths to the current LID. ibn_repair_hops returns the hops from a switch (-1: it is cut off).
 * ibn_repair_candidates lists the paths that a switch could take. */
int32_t ibn_repair_hops(repair_state *job, int32_t s);
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t level, int32_t *next);

/* These functions search for paths of disconnected switches.  The `attach` functions search directly.  The `displace`
 * functions move another switch to make room.  Functions for several switches return the number of switches that are
 * still disconnected. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t level, int32_t *next);
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count);
bool ibn_repair_displace(repair_state *job, int32_t root);
int32_t ibn_repair_displace_all(repair_state *job, int32_t count);

/* Make `lid` the current LID. */
void ibn_repair_begin_column(repair_state *job, int32_t lid);

/* Fill the missing entries towards the current LID.  Returns whether all of them were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count);

/* Remove the CDG edges that no path uses.  This is done on all VLs that packets to the chosen LIDs use.  Returns
 * false if memory ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen);

/* ibn_repair_prepare allocates the arrays of the state, and returns false if memory ran out; ibn_repair_dispose
 * frees them. */
bool ibn_repair_prepare(repair_state *job);
void ibn_repair_dispose(repair_state *job);

/* Copy the VLs of each allowed CDG edge from the array `dependencies` into the acyclic graph or, with `back`, from
 * the graph into the array. */
void ibn_repair_copy_masks(repair_state *job, uint16_t *dependencies, bool back);

/* Copy the LFT entries of another LID to the current LID. Few CDG edges are added, because the edges of the copied
 * paths are in use already. */
bool ibn_repair_copy_column(repair_state *job);

#endif
