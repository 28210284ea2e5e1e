/* What the parts of the Nue kernel share.
 *
 * A LAYER holds the complete channel dependency graph of one VL.  A dependency is a pair of channels a, b with b leaving the
 * switch that a enters; its slot is slot_first[a] + (place of b among the channels of that switch).  It is USED while a
 * tree of the layer has it (counted, so that what was laid can be lifted) or the escape tree does; every other one is free
 * unless it would close a cycle of used ones, which is remembered for a while as BLOCKED. */
#ifndef IBNUE_INTERNAL_NUE_JOB_H
#define IBNUE_INTERNAL_NUE_JOB_H

#include "../nue.h"
#include "lane.h"

typedef struct {
    int32_t *used;    /* [slots] trees with this dependency, one more if the escape tree has it */
    uint16_t *blocked; /* [slots] epoch in which it would have closed a cycle */
    uint16_t epoch;
    int lifted;          /* whether something was lifted in this epoch, so that what is blocked may be free again */
    int32_t *place, *at; /* [C] a topological order of the used dependencies, and its inverse */
    const int32_t *parent; /* [S] channel to the parent in the escape tree, -1 at the top of each connected part */
} layer_t;

typedef struct {
    job_t job; /* network, targets, trees: what the balancing kernels take too */
    const ibn_nue_options *options;
    int32_t *slot_first; /* [C] */
    int32_t *part_size;  /* [S] switches in the connected part of each switch */
    int32_t *target_layer, *escaped;
    layer_t *layer;
    int64_t slots;
} nue_t;

typedef struct {
    int32_t channel, to;
} hop_t;

typedef struct {
    lane_t lane;
    hop_t *hop;     /* [S] next hops of the tree that grows */
    int32_t *wave;  /* [S] when a switch joined the tree, -1: not yet */
    int64_t *seen;  /* [S] stamps */
    int64_t stamp;
    int32_t *mark, *stack, *forward, *backward, *places; /* [C] of the search for cycles */
    int32_t search;
    int32_t *log, logged; /* [S] slots blocked since it was emptied, the latest left out once it is full */
    int32_t *candidate; /* [256] */
    double *cost;       /* [256] */
    int32_t *escape;    /* [S] next channel on the escape tree towards one destination */
    uint8_t *on_escape; /* [S] */
} grower_t;

static inline int32_t ibn_slot(const nue_t *nue, int32_t a, int32_t b)
{
    return nue->slot_first[a] + (b - nue->job.net->first[nue->job.net->dst[a]]);
}

/* Adds flow on the way that a finished tree has from a switch. */
static inline void ibn_send(const nue_t *nue, lane_t *lane, const uint8_t *next, int32_t from, int32_t root, double flow)
{
    while (from != root) {
        int32_t c = ibn_chosen(&nue->job, next, from);
        ibn_add(&nue->job, lane, c, flow);
        from = nue->job.net->dst[c];
    }
}

/* The dependency of the way from u: its channel and the next one on the way.  0: there is none. */
static inline int ibn_turn_of(const nue_t *nue, const uint8_t *next, int32_t u, int32_t root, int32_t *a, int32_t *b)
{
    if (next[u] == NO_CHANNEL)
        return 0;
    *a = ibn_chosen(&nue->job, next, u);
    int32_t v = nue->job.net->dst[*a];
    if (v == root)
        return 0;
    *b = ibn_chosen(&nue->job, next, v);
    return 1;
}

int ibn_layer_prepare(const nue_t *nue, layer_t *layer, int32_t number);
void ibn_layer_release(layer_t *layer);
int ibn_layer_allows(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t a, int32_t b);
void ibn_layer_unblock(const nue_t *nue, layer_t *layer);
void ibn_layer_forget(layer_t *layer, grower_t *grower);
void ibn_layer_count(const nue_t *nue, layer_t *layer, const uint8_t *next, int32_t root, int32_t step);
void ibn_layer_readmit(const nue_t *nue, layer_t *layer, grower_t *grower, const uint8_t *next, int32_t root);
int ibn_layer_sort(const nue_t *nue, layer_t *layer, const double *rank);

void ibn_grow(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
int ibn_rehang(const nue_t *nue, layer_t *layer, grower_t *grower, uint8_t *next, int32_t root, int32_t v, int32_t c);
int32_t ibn_escape(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
double ibn_flow_through(const nue_t *nue, grower_t *grower, const uint8_t *next, int32_t target, int32_t u);
void ibn_nue_polish(const nue_t *nue, grower_t *grower);

#endif
