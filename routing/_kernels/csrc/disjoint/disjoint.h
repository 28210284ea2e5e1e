#pragma once

#include <stdint.h>

/* Request for K in-trees towards each destination of a fabric, K <= 8.  The fabric has S switches and C channels.
 * Channel c ends at switch dst[c].  The CDG edge from channel c to the k-th channel out of this switch (k = 0, 1, ...)
 * has number slot[c] + k.
 *
 * A switch order numbers the switches; paths lead first up and then down in this order.  A switch order allows a CDG
 * edge unless the edge leads from a channel down to a channel up.  A switch order allows a path if it allows all CDG
 * edges of the path.  Each switch order has its own VL.  A reply uses the SL of its request, and so the same VL.
 * Therefore each path needs a switch order that allows both the path and its reply path. */
typedef struct {
    int32_t switches; /* S, number of switches */
    int32_t channels; /* C, number of channels */
    int32_t trees;    /* K: in-trees of each destination with end ports, 1 to 8 */
    int32_t wanted;   /* number of link-disjoint paths that every switch should have to every destination, 1 to K */
    /* limit of the hops of a path.  A path above the limit is used only if the search finds no path within the limit.
     * In the local search, a new path may be above the limit only if it replaces a longer path */
    int32_t most_hops;
    /* nonzero: for every two switches, one switch order must allow the paths between them in all trees; 0: their switch
     * order may differ from tree to tree */
    int32_t shared;
    /* nonzero: the first tree of each destination shall use few channels; 0: the first trees shall balance the load */
    int32_t concentrate;
    const int32_t *first; /* [S + 1]: channels out of switch s are first[s] .. first[s + 1] - 1 */
    const int32_t *src;   /* [C]: switch where each channel begins */
    const int32_t *dst;   /* [C]: switch where each channel ends */
    /* [C]: number of the cable to which each channel belongs, below C; both channels of a cable have one number */
    const int32_t *link;
    const int32_t *slot; /* [C]: index of the first CDG edge of each channel */
    /* [S]: number of end ports at each switch; a destination without end ports gets only one tree */
    const double *weight;
    const double *inverse_capacity; /* [C]: inverse capacity of each channel, 1 for the slowest link */
    const uint16_t *distance; /* [S, S]: hops from each switch (column) to each destination (row), 65535: no path */
    const uint8_t *allowed;   /* [edges]: the switch orders that allow each CDG edge, as bits */
    /* [orders, S, S]: by switch order, destination and source, the number of different first channels of the paths that
     * the switch order allows (array `degree` of ibn_disjoint_reach) */
    const uint8_t *degree;
    /* [S, S]: first trees with which the search begins: index of the next channel, by destination and switch; NULL: the
     * search computes its first trees */
    const uint8_t *initial;
    int32_t orders;         /* number of switch orders, 1 to 8 */
    int32_t balance_sweeps; /* largest number of sweeps (passes over all destinations) that balance the first trees */
    int32_t sweeps;         /* number of sweeps (passes over all trees of all destinations) of the local search */
    uint64_t seed;
} disjoint_request;

/* Result of ibn_disjoint_trees: all trees, and for each pair of switches the switch order that allows its paths. */
typedef struct {
    /* [S, K, S]: by destination, tree and switch, the index of the next channel among the switch's channels, 255:
     * none */
    uint8_t *next;
    /* [S, K, S]: by destination, tree and source, the switch order that allows the path and its reply path, 255: none.
     * The paths from switch A to switch B and from B to A have the same switch order.  If `shared` is set in the
     * request, the paths of all K trees between A and B have the same switch order. */
    uint8_t *order;
    /* [2, C]: utilisation (flow times inverse capacity) of each channel in all-to-all traffic; row 0: by the first
     * trees only, row 1: summed over all trees, where each tree carries the whole traffic to its destination */
    double *load;
} disjoint_trees;

/* Improve a switch order by moving one switch at a time.  The aim is that about half of each switch's neighbours come
 * before the switch.  A switch order with this property forbids the fewest CDG edges.
 *
 * position: int32 [S], position of each switch in the switch order; updated.
 * steps: number of attempts to move a switch.
 * seed: seed of the random generator that chooses the moves.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_disjoint_balance_order(int32_t switches, const int32_t *first, const int32_t *dst, int32_t steps, uint64_t seed,
                               int32_t *position);

/* Compute the hops and the number of first channels of the paths that lead up and then down in one switch order.  Both
 * arrays have a row for each destination and a column for each source.
 *
 * hops: uint16 [S, S], output: hops of the shortest such path, 65535 if there is no path.
 * degree: uint8 [S, S], output: number of different first channels of such paths with at most `most_hops` hops, at most
 * 255.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_disjoint_reach(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *position,
                       int32_t most_hops, uint16_t *hops, uint8_t *degree);

/* Compute the hops between all switches.
 *
 * hops: uint16 [S, S], output: hops from each switch (column) to each destination (row), 65535 if there is no path.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_disjoint_distances(int32_t switches, const int32_t *first, const int32_t *dst, uint16_t *hops);

/* Compute K in-trees for each destination, such that the paths between two switches in these trees share few links.
 * Also choose for each pair of switches a switch order that allows the paths in both directions, if there is one.
 * Returns 0, or 1 if memory is exhausted. */
int ibn_disjoint_trees(const disjoint_request *request, const disjoint_trees *trees);

/* Replace the paths from given sources to given destinations in all trees.  The new path of each pair is the path in
 * the destination's first tree.
 *
 * source, target: int32 [pairs], switches of each pair.
 * next: uint8 [S, K, S], changed: by destination, tree and switch, the index of the next channel among the switch's
 * channels.
 *
 * Returns 0. */
int ibn_disjoint_follow_first(const disjoint_request *request, int32_t pairs, const int32_t *source,
                              const int32_t *target, uint8_t *next);

/* Count the link-disjoint paths in given tables, from each source switch to each group of LIDs.  Paths are
 * link-disjoint if no two of them share a link.
 *
 * at_port: int32 [S, 256], channel that leaves by each port, -1: none.
 * link: int32 [C], number of the cable to which each channel belongs, below C.
 * lft: uint8 [S, L], out-port of each switch towards each LID.
 * lid_switch: int32 [L], switch that delivers each LID.
 * group_first, group_lid: int32 [G + 1] and int32 [group_first[G]].  The LIDs of group g, at most 128, are
 * group_lid[group_first[g]] to group_lid[group_first[g + 1] - 1].
 * source: uint8 [S], nonzero for switches that send.
 * most: number at which the count stops, at most 8.
 * found: uint8 [G, S], output: size of the largest set of link-disjoint paths.  The size is 0 if a path does not
 * arrive, if the switch does not send, or if the switch itself delivers the group.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_disjoint_count(int32_t switches, int32_t channels, int32_t lids, const int32_t *dst, const int32_t *at_port,
                       const int32_t *link, const uint8_t *lft, const int32_t *lid_switch, int32_t groups,
                       const int32_t *group_first, const int32_t *group_lid, const uint8_t *source, int32_t most,
                       uint8_t *found);
