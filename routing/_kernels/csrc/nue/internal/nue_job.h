/* State of the Nue kernel, shared by its source files.
 *
 * A LAYER holds the complete channel dependency graph (CDG) of one VL.  A dependency is a pair of channels a and b,
 * where b leaves the switch that a enters.  The slot of the dependency is slot_first[a] + (index of b among the
 * channels of that switch).
 *
 * A dependency is USED while a tree of the layer or the escape tree contains it.  The trees that contain a dependency
 * are counted, so that trees can be removed again.
 *
 * A dependency that is not used is ALLOWED unless it would close a cycle of used dependencies.  A dependency that was
 * found to close a cycle is recorded as BLOCKED.  The record is used until the EPOCH ends.  A new epoch begins when
 * used dependencies have been removed, and all blocked dependencies have to be tested again. */
#pragma once

#include "nue/nue.h"
#include "core/internal/arrays.h"
#include "trees/internal/passes.h"

typedef struct {
    /* [slots] number of trees of the layer that contain each dependency; the escape tree counts as a tree */
    int32_t *used;
    /* Used dependencies as bits, in words of 64 bits.
     *
     * in_use[0]: [C, words] for each channel a, one bit for each channel b out of the switch where a ends: whether the
     * dependency of a on b is used.
     * in_use[1]: [C, words] for each channel b, one bit for each channel a into the switch where b begins: whether the
     * dependency of a on b is used. */
    uint64_t *in_use[2];
    /* [slots] number of the epoch in which each dependency was last found to close a cycle of used dependencies */
    uint16_t *blocked;
    /* number of the present epoch: a dependency is blocked if its element of `blocked` has this number.  A new epoch
     * begins whenever all blocked dependencies have to be tested again */
    uint16_t epoch;
    /* whether a used dependency was removed in the present epoch, so that a blocked dependency may have become
     * allowed */
    int dependency_removed;
    int32_t *place; /* [C] position of each channel in a topological order of the used dependencies */
    /* [S] channel from each switch to its parent in the layer's escape tree, -1 at the root of each connected part */
    const int32_t *parent;
} layer_t;

typedef struct {
    job_t job; /* network, destinations and trees: the struct that the balancing kernel uses too (trees/balance.c) */
    const ibn_nue_options *options;
    int32_t *slot_first; /* [C] slot of the first dependency of each channel */
    uint8_t *into_index; /* [C] index of each channel among the channels into the switch where the channel ends */
    /* length of a row of in_use (see layer_t): number of 64-bit words, with one bit for each dependency of a channel */
    int32_t words;
    int32_t *part_size; /* [S] number of switches in the connected part of each switch */
    /* target_layer: [D] number of each destination's layer.
     * escaped: [D] number of switches that use the escape tree towards each destination. */
    int32_t *target_layer, *escaped;
    layer_t *layer; /* [layers] state of each layer (VL) */
    int64_t slots;  /* number of possible dependencies, which is the number of slots of each layer */
    /* list of allocated arrays, which are freed together, such as slot_first, part_size, and the arrays of all
     * layers */
    array_list arrays;
} nue_t;

typedef struct {
    /* channel: the next channel of a switch in a tree; to: the switch to which this channel leads */
    int32_t channel, to;
} hop_t;

typedef struct {
    load_account account;
    hop_t *hop;     /* [S] next hops of the tree that is being grown */
    int32_t *depth; /* [S] number of the wave in which each switch joined the tree; -1: the switch has not joined yet */
    int64_t *seen;  /* [S] number of the last search that visited each switch */
    int64_t stamp;  /* number of the present search, for comparison with the elements of `seen` */
    int32_t *mark;  /* [C] number of the last cycle search that visited each channel */
    int32_t search; /* number of the present cycle search, for comparison with the elements of `mark` */
    /* found[0], found[1]: [C] channels that the forward search and the backward search have visited, each as a key
     * (position << 32) | channel.
     * both: [2 C] scratch of the function ibn_core_order_repair. */
    int64_t *found[2], *both;
    /* log: [S] slots of the dependencies that were found to be blocked since the log was last emptied.
     * logged: number of elements in `log`; further slots are dropped when the log is full. */
    int32_t *log, logged;
    int32_t *candidate; /* [256] channels that a switch may take as its next hop */
    double *cost;       /* [256] costs of the channels in `candidate` */
    int32_t *escape;    /* [S] next channel of each switch along the escape tree towards the current destination */
    uint8_t *on_escape; /* [S] whether each switch uses the escape tree towards the current destination */
    array_list arrays;  /* allocation of all arrays above */
} grower_t;

/* Return the slot of the dependency of channel a on channel b. */
static inline int32_t ibn_nue_slot(const nue_t *nue, int32_t a, int32_t b)
{
    return nue->slot_first[a] + (b - nue->job.net->first[nue->job.net->dst[a]]);
}

/* Add `step` (1 or -1) to the number of trees that contain the dependency of channel a on channel b. */
static inline void ibn_nue_count(const nue_t *nue, layer_t *layer, int32_t a, int32_t b, int32_t step)
{
    int32_t slot = ibn_nue_slot(nue, a, b), out = slot - nue->slot_first[a], in = nue->into_index[a];
    layer->used[slot] += step;
    if (layer->used[slot] != (step > 0))
        return;
    /* The dependency has got its first tree, or has lost its last tree.  So its bits in `in_use` change. */
    layer->in_use[0][(int64_t)a * nue->words + out / 64] ^= UINT64_C(1) << out % 64;
    layer->in_use[1][(int64_t)b * nue->words + in / 64] ^= UINT64_C(1) << in % 64;
}

/* Add flow to the channels of the path from switch `from` to the root in a finished tree. */
static inline void ibn_nue_add_flow(const nue_t *nue, load_account *account, const uint8_t *next, int32_t from,
                                    int32_t root, double flow)
{
    while (from != root) {
        int32_t c = ibn_trees_next_channel(&nue->job, next, from);
        ibn_trees_account_add(&nue->job, account, c, flow);
        from = nue->job.net->dst[c];
    }
}

/* Find the first dependency on the path of switch u: the first two channels, a and b.  Returns 0 if the path has
 * fewer than two channels, otherwise 1. */
static inline int ibn_nue_first_dependency(const nue_t *nue, const uint8_t *next, int32_t u, int32_t root, int32_t *a,
                                           int32_t *b)
{
    if (next[u] == NO_CHANNEL)
        return 0;
    *a = ibn_trees_next_channel(&nue->job, next, u);
    int32_t v = nue->job.net->dst[*a];
    if (v == root)
        return 0;
    *b = ibn_trees_next_channel(&nue->job, next, v);
    return 1;
}

int ibn_nue_layer_prepare(nue_t *nue, layer_t *layer, int32_t number);
int ibn_nue_layer_allows(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t a, int32_t b);
void ibn_nue_layer_unblock(const nue_t *nue, layer_t *layer);
void ibn_nue_layer_forget(layer_t *layer, grower_t *grower);
void ibn_nue_layer_count(const nue_t *nue, layer_t *layer, const uint8_t *next, int32_t root, int32_t step);
void ibn_nue_layer_readmit(const nue_t *nue, layer_t *layer, grower_t *grower, const uint8_t *next, int32_t root);
int ibn_nue_layer_sort(const nue_t *nue, layer_t *layer, const double *rank);

void ibn_nue_grow_tree(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
int ibn_nue_move_subtree(const nue_t *nue, layer_t *layer, grower_t *grower, uint8_t *next, int32_t root, int32_t v,
                         int32_t c);
int32_t ibn_nue_take_escape_path(const nue_t *nue, layer_t *layer, grower_t *grower, int32_t target);
int ibn_nue_move_next_hop(const nue_t *nue, grower_t *grower, int32_t target, int32_t u);
