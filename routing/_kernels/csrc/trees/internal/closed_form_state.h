/* State of the computation of tables in closed form, shared by its phases.  Names with `top` are about top switches:
 * switches without a channel up. */
#pragma once

#include "core/internal/arrays.h"
#include "trees/closed_form.h"

enum { CF_OK, CF_NO_MEMORY };
enum { CF_UNUSED, CF_UP, CF_DOWN };
enum { CF_SEVERAL = 254, CF_NONE = 255 };

typedef struct {
    const ibn_tree *tree;
    const ibn_tree_lids *lids;
    int32_t threads;
    uint8_t *lft; /* [S, L] out-port of each switch towards each LID */
    /* [3] numbers that the caller gets.
     * counts[0]: entries towards LIDs with flow that the closed form has left open for the search.
     * counts[1]: entries that closed_form_fill.c has filled last: entries of leaves towards LIDs at leaves.
     * counts[2]: LIDs without a top switch. */
    int64_t *counts;
    int32_t tops;        /* T, number of top switches */
    int32_t *top_number; /* [S] by switch: its number among the top switches, -1: not a top switch */
    int32_t *top_switch; /* [T] row of each top switch */
    /* [T] rank of each top switch: its index among all top switches above one switch of a lower level (see the
     * function rank in closed_form.c).  If no links are missing, each of these lower switches gives the same rank. */
    int32_t *top_rank;
    /* [S, T] by switch and top switch: first channel of the bundle by which the switch sends up to the top switch, as
     * an index among the switch's channels; CF_SEVERAL: several bundles lead up to it; CF_NONE: no bundle does */
    uint8_t *to_top;
    /* [S, S] by switch and lower switch: first channel of the bundle by which the switch sends down to the lower
     * switch, as an index among the switch's channels; CF_SEVERAL: several bundles lead down to it; CF_NONE: no bundle
     * does */
    uint8_t *down;
    /* [C] number of each channel among the fast channels up of its switch, counted from 1; 0: the channel does not lead
     * up, or it is slow.  All channels of a bundle are slow if one of them is much slower than the switch's fastest
     * channel up */
    uint8_t *fast;
    int32_t ports; /* P, length of the rows of `slot`: the highest number of an out-port with a channel, plus 1 */
    /* [S, P] by switch and out-port: index of the port's channel among the switch's channels */
    uint8_t *slot;
    int32_t *by_level; /* [S] switches sorted by level, the highest level first */
    /* [levels, K] by level and LID: the channel of the LID's chain that leads up from this level, -1: none.  The
     * chain leads from the switch of the LID up to a top switch.  Paths to the LID use the chain in reverse */
    int32_t *chain;
    /* [K] by LID: number of the top switch over which the paths to the LID lead; T: the LID has no top switch, and the
     * entries towards it are left open for the search */
    int32_t *top_of;
    double *load;      /* [C] output: flow on each channel; may be NULL */
    array_list arrays; /* allocation of all arrays above except `lft`, `counts` and `load` */
} cf_state;

/* Return the channel by which switch v sends if its out-port is `port`. */
static inline int32_t ibn_trees_closed_form_channel_at(const cf_state *x, int32_t v, uint8_t port)
{
    return x->tree->first[v] + x->slot[(size_t)v * x->ports + port];
}

/* Return the inverse capacity of the link of channel c, in the slower direction of the link. */
static inline double ibn_trees_closed_form_inverse_capacity(const ibn_tree *tree, int32_t c)
{
    const double there = tree->inverse_capacity[c], back = tree->inverse_capacity[tree->reverse[c]];
    return there > back ? there : back;
}

/* Assign a top switch to every LID, with a chain of channels that leads from the LID's switch up to the top switch.
 * Returns CF_OK or CF_NO_MEMORY. */
int ibn_trees_closed_form_assign(cf_state *x);
/* Choose the least loaded path for every entry that the closed form leaves open, and fill x->load.
 *
 * passes: number of passes after the first pass.  In each pass, all open entries choose their paths again.
 * may_miss: uint8 [G], output, by LID group (all LIDs that one switch delivers).  An element is set to 1 if some
 * entry towards a LID with flow stays missing, because no path leads up and then down.
 *
 * Returns CF_OK or CF_NO_MEMORY. */
int ibn_trees_closed_form_search(cf_state *x, int32_t passes, uint8_t *may_miss);
/* Copy the entries of all switches towards the first n LIDs of group g to `port`, uint8 [S, n]. */
void ibn_trees_closed_form_copy_entries(const cf_state *x, int32_t g, int32_t n, uint8_t *port);
/* Fill missing entries, for which no path leads up and then down in the levels.  The new paths lead up and then down in
 * the switch order.
 *
 * may_miss: uint8 [G], by LID group (all LIDs that one switch delivers): whether entries towards its LIDs may be
 * missing.
 *
 * Returns CF_OK or CF_NO_MEMORY. */
int ibn_trees_closed_form_fill(cf_state *x, const uint8_t *may_miss);
