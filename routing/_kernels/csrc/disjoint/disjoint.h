#ifndef IBNUE_DISJOINT_H
#define IBNUE_DISJOINT_H

#include <stdint.h>

/*
 * A fabric whose destinations get K in-trees each, K <= 8.  S switches, C channels.  The CDG edge from channel c to
 * the k-th channel of switch dst[c] has number slot[c] + k.
 */
typedef struct {
    int32_t switches;  /* S, number of switches */
    int32_t channels;  /* C, number of channels */
    int32_t trees;     /* K: in-trees of each destination with end ports, 1 to 8 */
    int32_t wanted;    /* link-disjoint paths that each pair should have, 1 to K */
    int32_t most_hops; /* no tree is changed such that a path gets longer than this */
    int32_t shared; /* nonzero: one order allows the paths of two switches in all trees; 0: one order for each tree */
    int32_t concentrate;            /* nonzero: first trees use few channels each instead of balancing the load */
    const int32_t *first;           /* [S + 1]: channels out of switch s are first[s] .. first[s + 1] - 1 */
    const int32_t *src;             /* [C]: switch that sends */
    const int32_t *dst;             /* [C]: switch that receives */
    const int32_t *link;            /* [C]: number of the cable, below C; both channels of a cable share it */
    const int32_t *slot;            /* [C]: index of the first CDG edge of each channel */
    const double *weight;           /* [S]: number of end ports; destinations without any get one tree */
    const double *inverse_capacity; /* [C]: inverse capacity, 1 for the slowest link */
    const uint16_t *distance;       /* [S, S]: hops from a switch (column) to a destination (row), 65535: none */
    const uint8_t *allowed;         /* [edges]: mask of the orders that allow the CDG edge */
    const uint8_t *degree;          /* [orders, S, S]: see ibn_disjoint_reach; the smaller value of both directions */
    const uint8_t *initial;         /* [S, S]: next channels of first trees to begin with, as in `next`; NULL: none */
    int32_t orders;                 /* number of orders, 1 to 8 */
    int32_t balance_sweeps;         /* at most so many passes balance the first trees */
    int32_t sweeps;                 /* passes of the local search over all trees */
    uint64_t seed;
} disjoint_request;

/* Result of ibn_disjoint_trees. */
typedef struct {
    uint8_t *next;  /* [S, K, S]: by destination, tree and switch, the index of the next channel, 255: none */
    uint8_t *order; /* [S, K, S]: order that allows the paths of two switches in this tree, in both directions (with
                     * `shared`: in all trees), 255: none does.  Symmetric in the switches. */
    double *load;   /* [2, C]: all-to-all load of the first trees, and of all trees together */
} disjoint_trees;

/*
 * Move switches in an order until each has about as many neighbours before it as behind it.  Then the order forbids
 * the fewest CDG edges.
 *
 * position: int32 [S], a permutation; updated.  steps: attempts to move one switch.
 */
int ibn_disjoint_balance_order(int32_t switches, const int32_t *first, const int32_t *dst, int32_t steps, uint64_t seed,
                               int32_t *position);

/*
 * Fill the properties of paths that lead up and then down in one order, by destination (row) and source (column).
 *
 * hops: uint16 [S, S], the fewest hops, 65535 if there is no path.
 * degree: uint8 [S, S], the number of first channels of paths of at most `most_hops` hops, at most 255.
 */
int ibn_disjoint_reach(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *position,
                       int32_t most_hops, uint16_t *hops, uint8_t *degree);

/* Fill the hops between all switches: uint16 [S, S] by destination and source, 65535 if there is no path. */
int ibn_disjoint_distances(int32_t switches, const int32_t *first, const int32_t *dst, uint16_t *hops);

/*
 * Compute K in-trees for each destination, such that as many paths of a pair as possible share no link, and that one
 * order allows the paths between two switches in both directions.
 */
int ibn_disjoint_trees(const disjoint_request *request, const disjoint_trees *trees);

/*
 * Let all trees follow the first tree from given sources to given destinations.
 *
 * source, target: int32 [pairs].  next: uint8 [S, K, S], updated.
 */
int ibn_disjoint_follow_first(const disjoint_request *request, int32_t pairs, const int32_t *source,
                              const int32_t *target, uint8_t *next);

/*
 * Count link-disjoint paths of given tables.  Pairs are a source switch and a group of LIDs.
 *
 * at_port: int32 [S, 256], channel out of each port, -1: none.  link: int32 [C], number of the cable, below C.
 * lft: uint8 [S, L].  lid_switch: int32 [L].  group_first: int32 [G + 1], group_lid: int32 [group_first[G]]: the LIDs
 * of each group, at most 128.  source: uint8 [S], nonzero for switches that send.
 * found: uint8 [G, S], the size of the largest set of pairwise link-disjoint paths, at most `most` (at most 8).  0 if a
 * path does not arrive, if the switch does not send, and from the switch that delivers the group.
 */
int ibn_disjoint_count(int32_t switches, int32_t channels, int32_t lids, const int32_t *dst, const int32_t *at_port,
                       const int32_t *link, const uint8_t *lft, const int32_t *lid_switch, int32_t groups,
                       const int32_t *group_first, const int32_t *group_lid, const uint8_t *source, int32_t most,
                       uint8_t *found);

#endif
