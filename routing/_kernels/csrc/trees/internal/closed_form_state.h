/* State of the computation of tree tables in closed form, shared by its phases.  A TOP is a switch without a channel
 * up. */
#ifndef IBNUE_CLOSED_FORM_STATE_H
#define IBNUE_CLOSED_FORM_STATE_H

#include "trees/closed_form.h"

enum { CF_OK, CF_NO_MEMORY };
enum { CF_UNUSED, CF_UP, CF_DOWN };
enum { CF_SEVERAL = 254, CF_NONE = 255 };

typedef struct {
    const ibn_tree *tree;
    const ibn_tree_lids *lids;
    int32_t threads;
    uint8_t *lft; /* [S, L] out-port of each switch towards each LID */
    /* [4] entries that the search chose; entries that were filled in; those of them between leaves; LIDs without a
     * top */
    int64_t *counts;
    int32_t tops;        /* T, number of tops */
    int32_t *top_number; /* [S] number of each switch among the tops, -1 for other switches */
    int32_t *top_switch; /* [T] switch of each top */
    int32_t *top_rank; /* [T] rank of each top: its number among the tops above one switch of the lowest inner level */
    /* [S, T] first channel of the bundle that leads up to each top, as offset among the switch's channels, or
     * CF_NONE */
    uint8_t *to_top;
    /* [S, S] bundle that leads down to each switch, as offset of its first channel; CF_SEVERAL: several bundles do;
     * CF_NONE: none does */
    uint8_t *down;
    /* [C] whether a channel up belongs to a bundle that is about as fast as the fastest bundle of its switch */
    uint8_t *fast;
    uint8_t *slot;     /* [S, 256] offset of the channel at each port among the switch's channels */
    int32_t *by_level; /* [S] switches by level, the highest level first */
    /* [levels, K] by level of the channel's lower end: the channel up whose reverse LID k's paths take down; or -1 */
    int32_t *chain;
    int32_t *top_of; /* [K] top over which each LID's paths lead; T: none, every source chooses a path of its own */
    double *load;    /* [C] flow on each channel */
} cf_state;

/* Return the inverse capacity of a cable, in the slower of its two directions. */
static inline double ibn_cf_inverse_capacity(const ibn_tree *tree, int32_t c)
{
    const double there = tree->inverse_capacity[c], back = tree->inverse_capacity[tree->reverse[c]];
    return there > back ? there : back;
}

/* Assign to every LID a top, and a chain of channels from the switch that delivers it up to this top. */
int ibn_cf_assign(cf_state *x);
/* Choose the least loaded path for every entry that the closed form leaves open. may_miss: [G], output: whether some
 * entry towards a LID with flow of the group has no path that leads up and then down. */
int ibn_cf_search(cf_state *x, int32_t passes, uint8_t *may_miss);
/* Copy the entries of all switches towards the first n LIDs of a group to `port`, uint8 [S, n]. */
void ibn_cf_copy_entries(const cf_state *x, int32_t g, int32_t n, uint8_t *port);
/* Fill missing entries by longer legal paths. may_miss: [G], whether entries towards a group can be missing. */
int ibn_cf_fill(cf_state *x, const uint8_t *may_miss);

#endif
