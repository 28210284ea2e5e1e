#ifndef IBNUE_CLOSED_FORM_H
#define IBNUE_CLOSED_FORM_H
#include <stdint.h>
/* Switches and channels of a tree.  The channels of a switch are sorted by neighbour, so parallel channels are
 * adjacent. */
typedef struct {
    int32_t switches;       /* S, number of switches */
    int32_t levels;         /* highest level of a switch + 1 */
    const int32_t *first;   /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;     /* [C], switch that receives */
    const int32_t *reverse; /* [C], channel of the same cable in the other direction */
    const uint8_t *port;    /* [C], out-port of each channel */
    const uint8_t *kind;    /* [C], 1: the channel leads up, 2: down, 0: it is on no path that leads up and then down */
    /* [C], number of channels in the bundle (the parallel channels) to which each channel belongs */
    const uint8_t *bundle_size;
    const uint8_t *bundle_rank; /* [C], index of each channel in its bundle */
    const int32_t *level;       /* [S], level of each switch, the number of tiers below it; leaves have level 0 */
    /* [S], position of each switch in an order in which all paths that lead up and then down are legal */
    const int32_t *position;
    const int32_t *component;       /* [S], number of the connected component */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse_capacity */
    const double *sources;          /* [S], number of end ports at each switch that send */
} ibn_tree;
/* LIDs, sorted by the switch that delivers them. */
typedef struct {
    int32_t lids;         /* L, number of columns of the tables */
    int32_t groups;       /* G, number of groups: switches that deliver LIDs */
    const int32_t *first; /* [G + 1], index of each group's first LID */
    const int32_t *at;    /* [G], switch of each group */
    const int32_t *lid;   /* [K], the LIDs, K in total */
    const int32_t *owner; /* [K], number of the end port that owns each LID; -1 for the LID of a switch */
    const int32_t *digit; /* [K], number of the destination, counted over all leaves (D in the formula D-mod-K) */
    const uint8_t *port;  /* [K], port by which the switch delivers the LID */
    /* [K], part of the flow to the end port that goes to this LID; 0: hardly any traffic goes there */
    const double *share;
} ibn_tree_lids;
/* Order the switches such that every path that leads up and then down in the levels also leads up and then down in the
 * order: see closed_form_order.c. */
int ibn_trees_level_order(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                          const int32_t *level, uint8_t *kind, int32_t *position);
/* Compute the tables of a tree: see closed_form.c. */
int ibn_trees_closed_form(const ibn_tree *tree, const ibn_tree_lids *lids, int32_t passes, int32_t threads,
                          uint8_t *lft, int64_t *counts);
#endif
