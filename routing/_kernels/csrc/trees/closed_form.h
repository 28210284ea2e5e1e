#pragma once
#include <stdint.h>
/* Switches and channels of a tree topology.  The channels out of a switch are sorted by neighbour, so that parallel
 * channels follow each other. */
typedef struct {
    int32_t switches;       /* S, number of switches */
    int32_t levels;         /* number of levels: highest level of a switch + 1 */
    int32_t leaf_level;     /* the level that most switches with end ports have */
    const int32_t *first;   /* [S + 1], the channels of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;     /* [C], switch where each channel ends */
    const int32_t *reverse; /* [C], channel of the same link in the opposite direction */
    const uint8_t *port;    /* [C], out-port of each channel */
    /* [C], direction of each channel: 1: up, 2: down, 0: paths that lead up and then down must not use the channel */
    const uint8_t *kind;
    /* [C], number of channels in the bundle of each channel; a bundle is all parallel channels from one switch to
     * another */
    const uint8_t *bundle_size;
    const uint8_t *bundle_rank; /* [C], index of each channel within its bundle */
    const int32_t *level;       /* [S], level of each switch: the number of tiers below the switch */
    /* [S], position of each switch in a switch order; paths that lead up and then down in the levels also lead up and
     * then down in this order */
    const int32_t *position;
    const int32_t *component; /* [S], number of the connected part to which each switch belongs */
    /* [C], inverse capacity of each channel; the utilisation is load times inverse_capacity */
    const double *inverse_capacity;
    const double *sources; /* [S], number of sending end ports at each switch */
} ibn_tree;
/* K LIDs, sorted by the switch that delivers them. */
typedef struct {
    int32_t lids;         /* L, number of columns of the LFTs: one for each LID from 0 on */
    int32_t groups;       /* G, number of LID groups; a group is all LIDs that one switch delivers */
    const int32_t *first; /* [G + 1], index of each group's first LID */
    const int32_t *at;    /* [G], switch that delivers the LIDs of each group */
    const int32_t *lid;   /* [K], the LIDs, sorted by group */
    const int32_t *owner; /* [K], number of the end port that owns each LID; -1: the LID belongs to a switch */
    /* [K], number D of each LID in the rule D-mod-K.  For the first LID of an end port, D is the index of the end port
     * among the end ports of the same kind.  Each further LID of the port has the next higher number.  For a LID
     * without flow, D is the number of the switch that delivers it */
    const int32_t *digit;
    const uint8_t *port; /* [K], port by which the switch delivers each LID */
    /* [K], part of the flow to an end port that goes to each of its LIDs; 0: a LID of a switch, whose traffic is
     * neglected */
    const double *share;
} ibn_tree_lids;
/* Order the switches of a tree topology.  Every path that leads up and then down in the levels also leads up and then
 * down in this order: see closed_form_order.c. */
int ibn_trees_level_order(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                          const int32_t *level, uint8_t *kind, int32_t *position);
/* Compute the forwarding tables of a tree topology: see closed_form.c.
 *
 * load: double [C], output: flow on each channel.  Flows on paths that do not lead up and then down in the levels are
 * not included.  The pointer may be NULL, which saves time on trees without missing links. */
int ibn_trees_closed_form(const ibn_tree *tree, const ibn_tree_lids *lids, int32_t passes, int32_t threads,
                          uint8_t *lft, int64_t *counts, double *load);
