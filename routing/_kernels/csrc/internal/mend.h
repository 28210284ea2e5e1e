/* What the parts of the repair kernel share.
 *
 * A switch is CUT OFF from a LID if its way there meets a hole.  The switches whose ways lead through a hole hang on it as
 * a tree; the hole's switch is the root of that tree, and what hangs on it comes along with whatever way it finds. */
#ifndef IBNUE_MEND_H
#define IBNUE_MEND_H

#include <stdbool.h>
#include <stdint.h>

#include "../repair.h"
#include "acyclic.h"

#define NO_ROUTE 255
#define NO_LEVEL 255
#define MOST_LANES 16
#define MOST_STRAYS 24
#define PATIENCE 10000 /* channels that searches may come by before no more switches are asked to give way */
#define PARTS_PATIENCE 400000 /* the same, before no more trees change their SLs part by part */

enum { HOLES, FILLED, MOVED, VISITED, BY_PARTS, COUNTS }; /* what is counted */

#define STAYS (-1) /* one that is queued keeps its VL, */
#define LOOKS (-2) /* still looks for one, */
#define LEFT (-3)  /* or is left behind */

/* What a switch takes in a column; of others it says nothing. */
typedef struct {
    int32_t column, channel;
} taken_channel;

typedef struct {
    int32_t channel, hops;
    int64_t fullest; /* of the channels up to the LID */
    bool old, near;  /* whether it is the wished one; whether it is hardly longer than the shortest */
} way_out;

typedef struct {
    int32_t turn, lane;
} admitted;

/* A LID whose ways another may take: followed by this channel, -1: none; and how many entries that would change. */
typedef struct {
    int32_t lid, last, changes;
} donor_ways;

typedef struct {
    int32_t at;
    uint8_t entry, level;
} kept_entry;

typedef struct {
    const repair_fabric *f;
    acyclic_net net;
    acyclic graph;
    uint8_t *lft, *sl;
    int64_t *load, *counts;
    int32_t lid, target;   /* at hand */
    int32_t stamp;         /* of the column */
    int32_t *cut_off;      /* [S] stamp of the column towards which a switch is cut off */
    int32_t *known;        /* [S] stamp of the column in which hops[] is known */
    int32_t *hops;         /* [S] */
    int32_t *queue;        /* [S] a switch and what hangs on it, nearer ones first */
    int32_t *through;      /* [S] channel by which each of them does */
    uint16_t *lanes;       /* [S] VLs of what each of them sends and passes on */
    int64_t *flow;         /* [S] the same for the load */
    int32_t *place;        /* [S] in the queue, while it is looked at */
    int32_t hanging;       /* in the queue */
    int32_t children;      /* those that hang on its first directly */
    int32_t *roots, *members; /* [S] */
    int32_t *helper;       /* [S] the switch that gave way to a root the last time, + 1; 0: none has */
    uint8_t *hopeless;     /* [S] whether a LID of a switch was given up */
    uint8_t *steep;        /* [S] whether a LID of a switch had no way by turns that climb */
    int64_t patience;      /* channels that searches may have come by when no more switches are asked to give way */
    const uint8_t *wish;   /* [S, L] entries that go before others, NULL: none do */
    kept_entry *shifted;   /* [2 S] SLs before they were changed, since the count was last put to 0 */
    int32_t shifted_count;
    kept_entry *kept;      /* [S] what the column at hand was */
    int32_t kept_count;
    int32_t *touched;      /* [S] number of the column in which an entry was kept */
    int32_t column;        /* number of the column at hand, from 1 */
    taken_channel *taken;  /* [S] */
    acyclic_step *steps;   /* [S + 256] */
    admitted *fresh, *spare; /* what the attempt at hand has added; room for another */
    int32_t fresh_count;
    admitted *shut;        /* turns found to close a cycle while something is in on trial */
    int32_t shut_count, shut_room;
    bool on_trial;
    bool free_lanes;       /* whether SLs may change */
    bool scatters;         /* whether each part of a tree may change its SL by itself */
    int64_t parts_patience; /* channels that searches may still come by for that */
    int8_t *goes;          /* [S] the VL to which each that is queued goes over, or one of the above */
    uint8_t *needs;        /* [S] */
    kept_entry *strays;    /* [MOST_STRAYS] those that were left behind in the column at hand, and their entries */
    int32_t stray_count, most_strays;
    uint16_t wanted;       /* VLs of the root that is being helped */
    int32_t *helps, rescue; /* [S] number of the last rescue in which a switch could help */
    int32_t rescues;       /* tried in the column at hand while only turns that climb are taken */
    bool only_climbing;    /* whether only turns that climb in the order as it is are taken */
    way_out *ways, *others; /* [256] */
} mend_job;

static inline uint8_t ibn_mend_entry(const mend_job *job, int32_t s)
{
    return job->lft[(int64_t)s * job->f->lids + job->lid];
}

/* The channel that a switch takes, or -1.  It is looked up once in a column: rows of tables are far apart. */
static inline int32_t ibn_mend_channel(const mend_job *job, int32_t s)
{
    taken_channel *taken = &job->taken[s];
    if (taken->column != job->column) {
        const int32_t c = job->f->at_port[(int64_t)s * 256 + ibn_mend_entry(job, s)];
        *taken = (taken_channel){job->column, c >= 0 && job->f->alive[c] ? c : -1};
    }
    return taken->channel;
}

/* Whether a turn is known to close a cycle, or does not climb where it has to. */
static inline bool ibn_mend_is_out(const mend_job *job, acyclic_step step, int32_t next, int32_t lane)
{
    const int32_t *place = job->graph.place[lane];
    return (job->graph.blocked[step.turn] >> lane & 1) || (job->only_climbing && place[step.channel] >= place[next]);
}

void ibn_mend_set(mend_job *job, int32_t s, uint8_t port);
void ibn_mend_keep(mend_job *job, int32_t s);
void ibn_mend_restore(mend_job *job);
void ibn_mend_gather(mend_job *job, int32_t root);
uint32_t ibn_mend_lanes_of(const mend_job *job, int32_t s);
int32_t ibn_mend_trunk(mend_job *job, int32_t c, int32_t count);
bool ibn_mend_fits(mend_job *job, int32_t count, int32_t lane);
void ibn_mend_open_again(mend_job *job, int32_t had);
bool ibn_mend_scatter(mend_job *job, int32_t c, int32_t lane);
bool ibn_mend_leave(mend_job *job);
void ibn_mend_call_back(mend_job *job, int32_t had);
bool ibn_mend_admits(mend_job *job, int32_t c);
bool ibn_mend_note_helpers(mend_job *job);
bool ibn_mend_may_follow(const mend_job *job, int32_t root, int32_t x, int32_t next);
void ibn_mend_take_back(mend_job *job);

/* What hangs on a root: out of the column, back in it, and its load along its way. */
void ibn_mend_cut(mend_job *job, int32_t root);
void ibn_mend_let_in(mend_job *job);
void ibn_mend_add_flow(mend_job *job, int32_t s, int64_t flow);

/* Hops from a switch to the LID at hand, -1: it is cut off; and the channels by which it could go. */
int32_t ibn_mend_hops(mend_job *job, int32_t s);
int32_t ibn_mend_ways_out(mend_job *job, int32_t u, int32_t level, int32_t *next);

/* Let roots take a way of their own, or one that another switch gives them; of all, how many are left. */
bool ibn_mend_attach(mend_job *job, int32_t u, int32_t level, int32_t *next);
int32_t ibn_mend_attach_all(mend_job *job, int32_t count);
bool ibn_mend_rescue(mend_job *job, int32_t root);
int32_t ibn_mend_rescue_all(mend_job *job, int32_t count);

/* Take a column in hand. */
void ibn_mend_begin(mend_job *job, int32_t lid);

/* Fill the holes of the column at hand; whether that worked out for all of them. */
bool ibn_mend_column(mend_job *job, const int32_t *holes, int32_t count);

/* All entries of the column at hand from nothing. */
bool ibn_mend_anew(mend_job *job);
void ibn_mend_lift_flow(mend_job *job);

/* Clear the VLs of all columns that are to be laid from nothing of turns that nobody takes; false: no memory. */
bool ibn_mend_release(mend_job *job, const bool *chosen);

/* Give the column at hand the ways of another LID at the same switch, or at one next to it: their turns are in already. */
bool ibn_mend_copy(mend_job *job);

#endif
