#ifndef IBNUE_CLOSED_FORM_H
#define IBNUE_CLOSED_FORM_H
#include <stdint.h>
/* Switches and channels of a tree.  The channels of a switch are sorted by neighbour: parallel ones are adjacent. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t levels;                 /* highest level of a switch + 1 */
    const int32_t *first;           /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;             /* [C], switch that receives */
    const int32_t *reverse;         /* [C], channel of the same cable in the other direction */
    const uint8_t *port;            /* [C], out-port */
    const uint8_t *kind;            /* [C], 1: leads up, 2: leads down, 0: no path up and down uses the channel */
    const uint8_t *bundle_size;     /* [C], number of parallel channels, this one included */
    const uint8_t *bundle_rank;     /* [C], number of parallel channels before this one */
    const int32_t *level;           /* [S], level of each switch; leaves have 0 */
    const int32_t *position;        /* [S], place in an order in which every path up and down is legal */
    const int32_t *component;       /* [S], connected component */
    const double *inverse_capacity; /* [C], inverse capacity: utilisation is load times inverse_capacity */
    const double *sources;          /* [S], end ports that send */
} ibn_tree;
/* LIDs, sorted by the switch that delivers them. */
typedef struct {
    int32_t lids;         /* L, columns of the tables */
    int32_t groups;       /* G, switches that deliver LIDs */
    const int32_t *first; /* [G + 1], where the LIDs of each switch begin */
    const int32_t *at;    /* [G], the switches */
    const int32_t *lid;   /* [K], the LIDs, K in number */
    const int32_t *owner; /* [K], end port that owns the LID; -1 for the LID of a switch */
    const int32_t *digit; /* [K], number of the destination, counted over all leaves: the D of D-mod-K */
    const uint8_t *port;  /* [K], port that delivers the LID */
    const double *share;  /* [K], part of the flow to the end port that goes to this LID; 0: hardly any traffic */
} ibn_tree_lids;
/* Order the switches for paths that are up and down in the levels: see closed_form_order.c. */
int ibn_trees_level_order(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                          const int32_t *level, uint8_t *kind, int32_t *position);
/* Compute the tables of a tree: see closed_form.c. */
int ibn_trees_closed_form(const ibn_tree *tree, const ibn_tree_lids *lids, int32_t passes, int32_t threads,
                          uint8_t *lft, int64_t *counts);
#endif
