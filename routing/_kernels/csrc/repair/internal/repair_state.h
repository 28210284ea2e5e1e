/* State of the repair kernel, shared by its source files.  Entries are repaired LID by LID.  The LFT entries of all
 * switches towards one LID are the LFT column of this LID.
 *
 * A switch without an LFT entry towards the current LID is DISCONNECTED.  In names, a disconnected switch is called a
 * `root`.  Its SUBTREE consists of the switch itself and of all switches whose paths lead through it.  All switches of
 * the subtree are CUT OFF from the LID.  All switches of the subtree except the disconnected switch keep their entries,
 * so their packets will use the path that the disconnected switch gets.
 *
 * To DISPLACE a switch is to move it to another path, so that a disconnected switch finds a path.  To DEFER a switch
 * means to detach the switch from its subtree: the entry of the switch becomes missing, and is repaired later.  A path
 * is MONOTONE if its channels follow the present topological order.  A monotone path cannot close a CDG cycle.
 *
 * The PREFERRED entry of a switch is its entry in the previous tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "repair/repair.h"
#include "core/internal/acyclic.h"
#include "core/internal/arrays.h"

#define NO_ROUTE 255 /* LFT entry that stands for "no path" */
#define NO_SL 255
#define MOST_VLS 16
/* Number of LFT columns that are copied together.  The entries of a switch for consecutive LIDs are side by side in
 * memory, so that one memory access reads several of them. */
#define COPIED_TOGETHER 16
#define MOST_DEFERRED 24 /* Largest number of switches that are detached for one LID in order to be repaired later. */
/* For one LID, switches are displaced only until cycle searches have visited this number of channels. */
#define SEARCH_BUDGET 10000
/* Work limit for splitting subtrees over VLs: number of channels that cycle searches may visit during splits, for all
 * LIDs together. */
#define PARTS_BUDGET 400000

/* Indices of the array `counts`, which is described at ibn_repair_columns in repair.h. */
enum { MISSING, FILLED, MOVED, VISITED, BY_PARTS, COUNTS };

#define KEEPS_VL (-1) /* Value of new_vl: the switch's packets stay on their VL. */
#define NEEDS_VL (-2) /* Value of new_vl: the switch's packets need another VL, which has not been found yet. */
#define DEFERRED (-3) /* Value of new_vl: the switch is detached from the subtree, or upstream of such a switch. */

/* The channel by which a switch sends towards the current LID, as a cached value.  `column` is the number of the
 * attempt to repair an LFT column in which the channel was cached.  The channel is valid only if repair_state.column
 * still has this number. */
typedef struct {
    int32_t column, channel;
} cached_channel;

/* A path that a disconnected or displaced switch may take. */
typedef struct {
    /* channel: first channel of the path from the switch to the current LID; hops: length of this path */
    int32_t channel, hops;
    int64_t peak; /* peak: highest utilisation of the path's channels, as load times inverse capacity */
    /* old: whether the path begins with the preferred entry.
     * near: whether the path is at most two hops longer than the shortest candidate. */
    bool old, near;
} candidate;

/* A CDG edge that was added to the CDG of VL `vl`.  The number of the edge is `dependency`, see acyclic.h. */
typedef struct {
    int32_t dependency, vl;
} added_edge;

/* A donor is another LID whose LFT entries can be copied to the current LID. */
typedef struct {
    /* lid: the donor LID.
     * last: channel from the switch that delivers the donor to the switch that delivers the current LID; -1: one switch
     * delivers both LIDs.
     * changes: number of the donor's entries that differ from the preferred entries of the current LID. */
    int32_t lid, last, changes;
} donor_column;

/* A change of a channel's load, recorded so that it can be undone. */
typedef struct {
    int32_t channel;
    int64_t flow; /* flow by which the change has increased the load of the channel */
} load_change;

/* A switch with the LFT entry and the SL that it had towards the current LID before the repair changed them.  The saved
 * entry need not be the preferred entry, which comes from the previous tables. */
typedef struct {
    int32_t at;        /* row of the switch whose LFT entry and SL are saved */
    uint8_t entry, sl; /* entry: out-port of the switch; sl: service level (SL) of its packets to the LID */
} saved_entry;

typedef struct {
    const repair_fabric *f;
    acyclic_net net;
    /* for each VL: the CDG edges that are allowed, and a topological order of the channels */
    acyclic graph;
    uint8_t *lft, *sl; /* forwarding tables and SLs, changed in place, as passed to ibn_repair_columns */
    /* [pages] `lft` is divided into pages of `page` consecutive entries.  An element is set to 1 if an entry of its
     * page is written.  NULL: not recorded. */
    uint8_t *written;
    int64_t page;
    int64_t *load, *counts; /* channel loads and statistics, changed in place, as passed to ibn_repair_columns */
    int32_t lid, target;    /* lid: the current LID; target: the switch that delivers this LID */
    /* number of the present visit of an LFT column, for comparison with the elements of `cut_off` and `known`; set by
     * ibn_repair_begin_column */
    int32_t stamp;
    int32_t *cut_off; /* [S] the switch is cut off from the current LID if its element equals `stamp` */
    /* [S] the hops of a switch in `hops` are valid if the switch's element of this array equals `stamp` */
    int32_t *known;
    int32_t *hops; /* [S] hops from each switch to the current LID, valid as stated by `known` */
    /* [S] the switches of the current subtree in breadth-first order; queue[0] is the disconnected (or displaced)
     * switch */
    int32_t *queue;
    int32_t *parent;  /* [S] in the order of `queue`: index in `queue` of the switch's next hop */
    int32_t *through; /* [S] in the order of `queue`: channel by which the switch sends towards the current LID */
    /* [S] in the order of `queue`: VLs, as bits, of the packets that the switch sends or forwards to the current LID */
    uint16_t *vls;
    int64_t *flow; /* [S] in the order of `queue`: flow to the current LID that the switch sends or forwards */
    /* [S] by switch: index of the switch in `queue`, defined only for switches of the current subtree */
    int32_t *place;
    int32_t subtree_size; /* number of switches in `queue`, which is the size of the current subtree */
    int32_t children;     /* number of switches that send directly to queue[0]; these are queue[1] to queue[children] */
    /* roots: [S] switches that are disconnected from the current LID; members: [S] copy of `queue`, because trial moves
     * overwrite `queue` */
    int32_t *roots, *members;
    /* [S] by disconnected switch: 1 + number of the switch that was last displaced so that the disconnected switch
     * found a path; 0: none */
    int32_t *last_displaced;
    uint8_t *given_up; /* [S] by switch that delivers LIDs: whether the repair of one of its LIDs has failed */
    /* [S] by switch that delivers LIDs: whether one of its LIDs could not be repaired with monotone paths */
    uint8_t *no_monotone_path;
    /* work limit: no more switches are displaced for the current LID once graph.visited exceeds this number.
     * graph.visited counts the channels that all cycle searches so far have visited, also for earlier LIDs */
    int64_t search_budget;
    /* [2 S] list of the SL changes in the present attempt to find a path: switch and earlier SL of each change */
    saved_entry *changed_sls;
    int32_t changed_sl_count; /* number of elements in `changed_sls` */
    saved_entry *kept;   /* [S] entries and SLs towards the current LID as they were before the repair of this LID */
    int32_t saved_count; /* number of elements in `kept` */
    /* [S] by switch: number of the attempt (see `column`) in which the switch's entry was last saved in `kept` */
    int32_t *touched;
    /* number of the present attempt to repair an LFT column, for comparison with the elements of `touched`.  (`stamp`
     * also increases when a column is visited without a repair) */
    int32_t column;
    cached_channel *taken; /* [S] cached next channel of each switch towards the current LID */
    /* [C] in the order of the array `into` of the fabric: switch where each channel begins.  (`into` has the channels
     * sorted by the switch that they enter.) */
    int32_t *into_src;
    /* [C] in the order of the array `into` of the fabric: out-port of each channel */
    uint8_t *into_port;
    /* [L] by LID: pointer to a copy of the LFT column of the LID, an array [S]; NULL: not copied.  In `lft`, the
     * entries of a column are far apart in memory.  The copy makes a search through a column faster. */
    uint8_t **copied_column;
    int32_t copied_columns; /* number of LIDs with a copy in `copied_column` */
    /* [L] by LID: pointer to an array [S], which has for each switch the number of neighbours that send directly to the
     * switch towards the LID; NULL: not counted */
    uint16_t **senders;
    /* [L] by LID: total size of all subtrees that were listed with the copied column.  When this size exceeds a quarter
     * of S, `senders` is filled for the LID. */
    int32_t *listed;
    /* [S] by switch: VLs, as bits, on which the switch replies to requests; NULL: no replies are considered, or the VLs
     * depend on the current LID */
    uint16_t *reply_vls;
    load_change *load_changes; /* [load_room] changes of the load while the current LID was repaired */
    int32_t load_count;        /* length of `load_changes` */
    int32_t load_room;         /* allocated length of `load_changes` */
    bool out_of_memory;        /* whether a change of the load could not be recorded */
    array_list arrays;         /* arrays that ibn_repair_dispose frees */
    /* [S + 256; `slots` more if prepares_sls may be set] CDG edges that one call of ibn_repair_fits tests and adds: up
     * to S on a path, and one for each of up to 256 neighbours that send to the path's first switch */
    acyclic_step *steps;
    /* [as many as `steps`] by number of a CDG edge: the edge is in `steps` if its element equals step_stamp; used only
     * in prepare_sls.c */
    int32_t *listed_step, step_stamp;
    /* added: CDG edges that the present attempt to find a path has added.  The array has room for all elements of
     * `steps` on each of MOST_VLS VLs.
     * spare: [(S + 256) * MOST_VLS] second buffer.  After a switch was moved on trial, `spare` keeps the edges of this
     * move, while `added` gets the edges of the disconnected switch's path. */
    added_edge *added, *spare;
    int32_t added_count; /* number of elements in `added` */
    /* [blocked_room] CDG edges that were found to close a cycle while on_trial was set.  The cycle may contain other
     * edges that are removed later.  So the blocked edges are tested again after the removal. */
    added_edge *blocked_edges;
    /* blocked_count: number of elements in `blocked_edges`; blocked_room: number of elements that fit into
     * `blocked_edges` */
    int32_t blocked_count, blocked_room;
    bool on_trial;       /* whether the CDG has edges that may be removed again, because the present attempt may fail */
    bool sls_may_change; /* whether SLs may change, so that packets move to other VLs */
    /* whether the search for balance may move packets to another VL.  With the edges of both the previous and the new
     * paths of these packets, the CDG of this VL must stay acyclic (see prepare_sls.c) */
    bool prepares_sls;
    /* by VL: the VL to which the subtree's packets on this VL move, or KEEPS_VL; used if prepares_sls is set */
    int8_t vl_of_vl[MOST_VLS];
    bool splits_subtrees; /* whether the packets of one subtree may be split over several VLs */
    /* number of channels that cycle searches may still visit while subtrees are split over VLs */
    int64_t parts_budget;
    /* [S] in the order of `queue`: VL to which the switch's packets move, or KEEPS_VL, NEEDS_VL or DEFERRED */
    int8_t *new_vl;
    /* [S] in the order of `queue`: flags, used while a subtree is split over VLs.  BEHIND and ITSELF state which
     * packets at the switch need another VL.  TAKEN states whether a CDG edge was just added for the switch (see
     * split_subtree.c) */
    uint8_t *needs;
    /* [MOST_DEFERRED] switches that were detached from their subtree and are repaired later, with their earlier
     * entries */
    saved_entry *deferred;
    /* deferred_count: number of elements in `deferred`; most_deferred: largest allowed number of elements */
    int32_t deferred_count, most_deferred;
    /* VLs, as bits, of the packets of the disconnected switch's subtree.  The value is kept here because trial moves of
     * other switches overwrite `vls` */
    uint16_t required_vls;
    /* can_help: [S] equal to `displacement` for each switch whose move to another path may help the disconnected
     * switch.
     * displacement: number of the present search for switches to displace. */
    int32_t *can_help, displacement;
    int32_t displacements; /* number of trial moves of switches for the current LID while only_monotone is set */
    bool only_monotone;    /* whether the channels of each new path must follow the present topological order */
    /* candidates: [256] paths that a switch may take, at most one for each port.
     * others: [256] a second array of this kind, for a displaced switch, because `candidates` still holds the paths of
     * the disconnected switch. */
    candidate *candidates, *others;
} repair_state;

/* Return the LFT entry of a switch towards the current LID. */
static inline uint8_t ibn_repair_entry(const repair_state *job, int32_t s)
{
    if (job->copied_column[job->lid])
        return job->copied_column[job->lid][s];
    return job->lft[(int64_t)s * job->f->lids + job->lid];
}

/* Return the channel by which a switch sends towards the current LID, or -1 if the switch has no valid entry.  The
 * channel is cached, because the LFTs of different switches are far apart in memory. */
static inline int32_t ibn_repair_next_channel(const repair_state *job, int32_t s)
{
    cached_channel *taken = &job->taken[s];
    if (taken->column != job->column) {
        const int32_t c = job->f->at_port[(int64_t)s * 256 + ibn_repair_entry(job, s)];
        *taken = (cached_channel){job->column, c >= 0 && job->f->alive[c] ? c : -1};
    }
    return taken->channel;
}

/* Return whether a CDG edge is known to be impossible on a VL.  `step` is the edge, and `next` is the channel to which
 * it leads.  An edge is impossible if it closes a cycle.  While only_monotone is set, an edge against the topological
 * order is impossible too. */
static inline bool ibn_repair_is_excluded(const repair_state *job, acyclic_step step, int32_t next, int32_t vl)
{
    const int32_t *place = job->graph.place[vl];
    return (job->graph.blocked[step.dependency] >> vl & 1)
           || (job->only_monotone && place[step.channel] >= place[next]);
}

/* These functions change LFT entries towards the current LID.
 *
 * ibn_repair_write_entry writes an entry, and nothing else.
 * ibn_repair_set_entry saves the present entry of a switch and replaces it.
 * ibn_repair_save_entry only saves the present entry.
 * ibn_repair_restore_column restores all saved entries. */
void ibn_repair_write_entry(repair_state *job, int32_t s, uint8_t port);
void ibn_repair_set_entry(repair_state *job, int32_t s, uint8_t port);
void ibn_repair_save_entry(repair_state *job, int32_t s);
void ibn_repair_restore_column(repair_state *job);

/* These functions follow paths to the current LID.
 *
 * ibn_repair_collect_flow lists a switch and its subtree in job->queue, and computes the flow that each of these
 * switches sends or forwards.
 * ibn_repair_collect_vls computes the VLs of the packets that each listed switch sends or forwards.
 * ibn_repair_collect_subtree calls ibn_repair_collect_flow and ibn_repair_collect_vls.
 * ibn_repair_vls_of returns the VLs on which a switch and its end ports send.
 * ibn_repair_common_suffix lists the CDG edges of the path after a channel.
 * ibn_repair_renew_replies updates reply_vls after the SL of the current LID has changed. */
void ibn_repair_collect_flow(repair_state *job, int32_t root);
void ibn_repair_collect_vls(repair_state *job);
void ibn_repair_collect_subtree(repair_state *job, int32_t root);
uint32_t ibn_repair_vls_of(const repair_state *job, int32_t s);
void ibn_repair_renew_replies(repair_state *job, int32_t s);
int32_t ibn_repair_common_suffix(repair_state *job, int32_t c, int32_t count);

/* These functions test whether a subtree may take a channel without closing a CDG cycle, or remove CDG edges that were
 * added on trial.  Each function is described at its definition. */
bool ibn_repair_fits(repair_state *job, int32_t count, int32_t vl);
void ibn_repair_unblock(repair_state *job, int32_t had);
bool ibn_repair_split_subtree(repair_state *job, int32_t c, int32_t vl);
bool ibn_repair_defer(repair_state *job);
void ibn_repair_recall_deferred(repair_state *job, int32_t had);
bool ibn_repair_admits(repair_state *job, int32_t c);
bool ibn_repair_prepare_sls(repair_state *job, int32_t c, int32_t vl);
void ibn_repair_set_prepared_sls(repair_state *job);
bool ibn_repair_note_displaceable(repair_state *job);
bool ibn_repair_may_follow(const repair_state *job, int32_t u, int32_t x, int32_t next, uint32_t vls);
bool ibn_repair_must_follow(const repair_state *job, int32_t u);
void ibn_repair_undo(repair_state *job);

/* These functions disconnect and connect subtrees.
 *
 * ibn_repair_detach marks a subtree as cut off from the current LID.
 * ibn_repair_attach_subtree removes the mark from the switches in job->queue.
 * ibn_repair_add_flow adds flow to the channels of a switch's path, ibn_repair_add_load to one channel.
 * ibn_repair_restore_column subtracts this flow again. */
void ibn_repair_detach(repair_state *job, int32_t root);
void ibn_repair_attach_subtree(repair_state *job);
void ibn_repair_add_flow(repair_state *job, int32_t s, int64_t flow);
void ibn_repair_add_load(repair_state *job, int32_t c, int64_t flow);

/* These functions describe paths to the current LID.
 *
 * ibn_repair_hops returns the hops from a switch, or -1 if the switch is cut off.
 * ibn_repair_candidates lists the paths that a switch could take, one for each usable channel. */
int32_t ibn_repair_hops(repair_state *job, int32_t s);
int32_t ibn_repair_candidates(repair_state *job, int32_t u, int32_t wanted, int32_t *next);

/* These functions search for paths of disconnected switches.  Functions with `attach` in their names displace no
 * switch.  Functions with `displace` in their names move another switch to another path first.  Functions for several
 * disconnected switches return how many of these have found no path. */
bool ibn_repair_attach_root(repair_state *job, int32_t u, int32_t hops, int32_t *next);
int32_t ibn_repair_attach_roots(repair_state *job, int32_t count);
bool ibn_repair_displace(repair_state *job, int32_t root);
int32_t ibn_repair_displace_all(repair_state *job, int32_t count);

/* Make `lid` the current LID, and begin an attempt to repair its LFT column. */
void ibn_repair_begin_column(repair_state *job, int32_t lid);

/* Fill the missing entries of the current LID, which are the entries of the `count` switches in `missing`.  Returns
 * whether all of these entries were filled. */
bool ibn_repair_fill_column(repair_state *job, const int32_t *missing, int32_t count);

/* Remove unused CDG edges, that is, edges that no path uses.  Edges are removed on each VL that is used by packets to
 * LIDs marked in `chosen` [L].  Returns false if memory ran out. */
bool ibn_repair_prune_columns(repair_state *job, const bool *chosen);

/* ibn_repair_prepare allocates the arrays of the state, and returns false if memory ran out. ibn_repair_dispose frees
 * these arrays. */
bool ibn_repair_prepare(repair_state *job);
void ibn_repair_dispose(repair_state *job);

/* Prepare job->graph, the acyclic graph of the allowed CDG edges.  The array `dependencies` has the VLs, as bits, on
 * which each edge is allowed.  The repair later adds edges to this array in place.  `order` has a topological order for
 * each VL.  Returns false if memory ran out. */
bool ibn_repair_open_graph(repair_state *job, uint16_t *dependencies, const int32_t *order);

/* Copy the LFT entries of another LID to the current LID.  The CDG has the edges of the copied paths already, so only
 * few edges are added.  Returns whether entries were copied. */
bool ibn_repair_copy_column(repair_state *job);
