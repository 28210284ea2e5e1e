/* State of the routing of a tree in closed form, shared by its phases. */
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
    uint8_t *lft;        /* [S, L] out-ports */
    int64_t *counts;     /* [4] entries by search, filled entries, filled ones between leaves, LIDs without a top */
    int32_t tops;        /* T, switches without a channel up */
    int32_t *top_number; /* [S] number of each top, -1 for other switches */
    int32_t *top_switch; /* [T] switch of each top */
    int32_t *top_rank;   /* [T] rank of each top: its number among the tops above the same switch of level 1 */
    uint8_t *to_top;     /* [S, T] first channel of the bundle up to each top, as offset at the switch; or CF_NONE */
    uint8_t *down;       /* [S, S] offset of the bundle down to each switch, CF_SEVERAL (bundles) or CF_NONE */
    uint8_t *fast;       /* [C] whether a channel up belongs to a bundle about as fast as the fastest of its switch */
    uint8_t *slot;       /* [S, 256] offset of the channel at each port */
    int32_t *by_level;   /* [S] switches by descending level */
    int32_t *chain; /* [levels, K] channel up that each LID's path takes in reverse, by level of its lower end; or -1 */
    int32_t *top_of; /* [K] top that each LID's paths turn at; T: none, every source chooses a path */
    double *load;    /* [C] flow on each channel */
} cf_state;

/* Return the inverse capacity of a cable, in its slower direction. */
static inline double ibn_cf_inverse_capacity(const ibn_tree *tree, int32_t c)
{
    const double there = tree->inverse_capacity[c], back = tree->inverse_capacity[tree->reverse[c]];
    return there > back ? there : back;
}

/* Assign a chain of channels and a top to every LID. */
int ibn_cf_assign(cf_state *x);
/* Choose the least loaded path for every entry that the closed form leaves open. */
int ibn_cf_search(cf_state *x, int32_t passes);
/* Copy the entries of all switches towards the first n LIDs of a group to port, [S, n]. */
void ibn_cf_copy_entries(const cf_state *x, int32_t g, int32_t n, uint8_t *port);
/* Fill missing entries by longer legal paths.  may_miss: [G] whether entries towards a group can be missing. */
int ibn_cf_fill(cf_state *x, const uint8_t *may_miss);

#endif
