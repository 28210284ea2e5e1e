#ifndef IBNUE_DISJOINT_H
#define IBNUE_DISJOINT_H

#include <stdint.h>

/* Request for K in-trees towards each destination of a fabric, K <= 8.
 *
 * The fabric has S switches and C channels.  The CDG edge from channel c to the k-th channel of switch dst[c] has
 * number slot[c] + k.
 *
 * An ORDER is an order of the switches in which paths lead up and then down.  It allows a CDG edge unless the edge
 * leads down and then up.  It allows a path if it allows all CDG edges of the path.  Each order has a VL, so a path
 * needs one order that allows it and its reply path. */
typedef struct {
    int32_t switches;  /* S, number of switches */
    int32_t channels;  /* C, number of channels */
    int32_t trees;     /* K: in-trees of each destination with end ports, 1 to 8 */
    int32_t wanted;    /* number of link-disjoint paths that each pair of switches should have, 1 to K */
    int32_t most_hops; /* largest number of hops: no change of a tree may make a path longer than this */
    /* nonzero: for each pair of switches, one order allows the paths in all trees; 0: each tree may have a different
     * order for the pair */
    int32_t shared;
    /* nonzero: each of the first trees uses as few channels as possible, instead of balancing the load */
    int32_t concentrate;
    const int32_t *first; /* [S + 1]: channels out of switch s are first[s] .. first[s + 1] - 1 */
    const int32_t *src;   /* [C]: switch that sends */
    const int32_t *dst;   /* [C]: switch that receives */
    const int32_t *link;  /* [C]: number of each channel's cable, below C; the two channels of a cable share it */
    const int32_t *slot;  /* [C]: index of the first CDG edge of each channel */
    const double *weight; /* [S]: number of end ports at each switch; destinations without end ports get one tree */
    const double *inverse_capacity; /* [C]: inverse capacity of each channel, 1 for the slowest link */
    const uint16_t *distance;       /* [S, S]: hops by destination (row) and source (column), 65535: no path */
    const uint8_t *allowed;         /* [edges]: the switch orders that allow each CDG edge, as bits */
    /* [orders, S, S]: by switch order and pair of switches, the number of different first channels of the paths that
     * the order allows (see ibn_disjoint_reach); the smaller value of both directions */
    const uint8_t *degree;
    /* [S, S]: given first trees, from which the computation starts, by destination and switch, as indices of next
     * channels; NULL: none are given */
    const uint8_t *initial;
    int32_t orders;         /* number of switch orders, 1 to 8 */
    int32_t balance_sweeps; /* largest number of passes that balance the first trees */
    int32_t sweeps;         /* number of passes of the local search over all trees */
    uint64_t seed;
} disjoint_request;

/* Result of ibn_disjoint_trees: the trees, and for each pair of switches the switch order that allows its paths. */
typedef struct {
    /* [S, K, S]: by destination, tree and switch, the index of the next channel among the switch's channels, 255:
     * none */
    uint8_t *next;
    /* [S, K, S]: by destination, tree and source, the switch order that allows the path and its reply path, 255: none.
     * Both directions of a pair have the same order.  With `shared`, all trees have the same order for a pair. */
    uint8_t *order;
    /* [2, C]: all-to-all load of each channel; row 0: load of the first trees, row 1: load of all trees together */
    double *load;
} disjoint_trees;

/* Move switches within a switch order, until each switch has about as many neighbours before it in the order as after
 * it.  Such an order forbids the fewest CDG edges.
 *
 * position: int32 [S], position of each switch; updated.
 * steps: number of attempts to move one switch. */
int ibn_disjoint_balance_order(int32_t switches, const int32_t *first, const int32_t *dst, int32_t steps, uint64_t seed,
                               int32_t *position);

/* Compute the hops and the number of first channels of the paths that lead up and then down in one switch order.  Both
 * arrays are indexed by destination (row) and source (column).
 *
 * hops: uint16 [S, S], hops of the shortest such path, 65535 if there is none.
 * degree: uint8 [S, S], number of different first channels of such paths with at most `most_hops` hops, at most 255. */
int ibn_disjoint_reach(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *position,
                       int32_t most_hops, uint16_t *hops, uint8_t *degree);

/* Compute the hops between all switches. hops: uint16 [S, S], by destination (row) and source (column), 65535 if there
 * is no path. */
int ibn_disjoint_distances(int32_t switches, const int32_t *first, const int32_t *dst, uint16_t *hops);

/*
 * Compute K in-trees for each destination such that the paths between two switches share as few links as possible.
 * For each pair of switches, one switch order allows the paths in both directions.
 */
int ibn_disjoint_trees(const disjoint_request *request, const disjoint_trees *trees);

/*
 * Replace the paths from given sources to given destinations, in all trees, by their paths in the first tree.
 *
 * source, target: int32 [pairs].
 * next: uint8 [S, K, S], updated.
 */
int ibn_disjoint_follow_first(const disjoint_request *request, int32_t pairs, const int32_t *source,
                              const int32_t *target, uint8_t *next);

/*
 * Count the link-disjoint paths in given tables, for each pair of a source switch and a group of LIDs.
 *
 * at_port: int32 [S, 256], channel out of each port, -1: none.
 * link: int32 [C], number of each channel's cable, below C.
 * lft: uint8 [S, L], out-port of each switch towards each LID.
 * lid_switch: int32 [L], switch that delivers each LID.
 * group_first: int32 [G + 1], group_lid: int32 [group_first[G]]; the LIDs of group g are at group_first[g] to
 * group_first[g + 1] - 1, at most 128.
 * source: uint8 [S], nonzero for switches that send.
 * found: uint8 [G, S], output: the size of the largest set of pairwise link-disjoint paths, counted up to `most`,
 * which is at most 8.  It is 0 if a path does not arrive, if the switch does not send, and at the switch that
 * delivers the group.
 */
int ibn_disjoint_count(int32_t switches, int32_t channels, int32_t lids, const int32_t *dst, const int32_t *at_port,
                       const int32_t *link, const uint8_t *lft, const int32_t *lid_switch, int32_t groups,
                       const int32_t *group_first, const int32_t *group_lid, const uint8_t *source, int32_t most,
                       uint8_t *found);

#endif
