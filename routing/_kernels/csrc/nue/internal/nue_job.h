/* State of the Nue kernel, shared by its parts.
 *
 * A LAYER holds the complete channel dependency graph (CDG) of one VL.  A dependency is a pair of channels a, b,
 * where b leaves the switch that a enters.  Its slot is slot_first[a] + (index of b among the channels of that
 * switch).  A dependency is USED while a tree of the layer or the escape tree has it; trees are counted, so that
 * they can be removed again.  Any other dependency is allowed unless it would close a cycle of used ones.  Such a
 * dependency is remembered as BLOCKED until the epoch ends. */
#ifndef IBNUE_INTERNAL_NUE_JOB_H
#define IBNUE_INTERNAL_NUE_JOB_H

#include "nue/nue.h"
#include "trees/internal/load_account.h"

typedef struct {
    int32_t *used;          /* [slots] number of trees with this dependency, one more if the escape tree has it */
    uint16_t *blocked;      /* [slots] last epoch in which the dependency would have closed a cycle */
    uint16_t epoch;         /* raised whenever blocked dependencies are to be tested again */
    int dependency_removed; /* whether a dependency was removed in this epoch: blocked ones may be allowed again */
    int32_t *place, *at;    /* [C] position in a topological order of the used dependencies; channel at each position */
    const int32_t *parent;  /* [S] channel to the parent in the escape tree, -1 at the root of each connected part */
} layer_t;

typedef struct {
    job_t job; /* network, targets and trees, as for the balancing kernel */
    const ibn_nue_options *options;
    int32_t *slot_first;             /* [C] slot of the first dependency of each channel */
    int32_t *part_size;              /* [S] size of the connected part of each switch */
    int32_t *target_layer, *escaped; /* [D] layer of each destination; switches on the escape tree */
    layer_t *layer;                  /* [layers] the layers */
    int64_t slots;                   /* number of dependencies of a layer */
} nue_t;

typedef struct {
    int32_t channel, to; /* the next channel of a switch, and the switch to which the channel leads */
} hop_t;

typedef struct {
    load_account account;
    hop_t *hop;                                          /* [S] next hops of the tree that grows */
    int32_t *depth;                                      /* [S] wave in which a switch joined the tree, -1: not yet */
    int64_t *seen;                                       /* [S] stamp of the latest visit of each switch */
    int64_t stamp;                                       /* stamp of the latest visit, for `seen` */
    int32_t *mark, *stack, *forward, *backward, *places; /* [C] scratch of the searches for cycles */
    int32_t search;                                      /* stamp of the latest search, for `mark` */
    /* [S] slots that were blocked since the log was emptied; once it is full, later ones are left out */
    int32_t *log, logged;
    int32_t *candidate; /* [256] channels that a switch may choose from */
    double *cost;       /* [256] costs of the candidates */
    int32_t *escape;    /* [S] next channel on the escape tree towards the current destination */
    uint8_t *on_escape; /* [S] whether a switch uses the escape tree towards the current destination */
} grower_t;

/* Return the slot of the dependency of channels a and b. */
static inline int32_t ibn_nue_slot(const nue_t *nue, int32_t a, int32_t b)
{
    return nue->slot_first[a] + (b - nue->job.net->first[nue->job.net->dst[a]]);
}

/* Add flow along the path of a switch in a finished tree. */
static inline void ibn_nue_add_flow(const nue_t *nue, load_account *account, const uint8_t *next, int32_t from,
                                    int32_t root, double flow)
{
    while (from != root) {
        int32_t c = ibn_next_channel(&nue->job, next, from);
        ibn_account_add(&nue->job, account, c, flow);
        from = nue->job.net->dst[c];
    }
}

/* Find the first dependency on the path of u: its channel a and the next channel b.  Return 0 if there is none. */
static inline int ibn_nue_first_dependency(const nue_t *nue, const uint8_t *next, int32_t u, int32_t root, int32_t *a,
                                           int32_t *b)
{
    if (next[u] == NO_CHANNEL)
        return 0;
    *a = ibn_next_channel(&nue->job, next, u);
    int32_t v = nue->job.net->dst[*a];
    if (v == root)
        return 0;
    *b = ibn_next_channel(&nue->job, next, v);
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

void ibn_nue_grow_tree(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
int ibn_nue_move_subtree(const nue_t *nue, layer_t *layer, grower_t *grower, uint8_t *next, int32_t root, int32_t v,
                         int32_t c);
int32_t ibn_nue_take_escape_path(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
double ibn_nue_flow_through(const nue_t *nue, grower_t *grower, const uint8_t *next, int32_t target, int32_t u);
void ibn_nue_local_search(const nue_t *nue, grower_t *grower);

#endif
