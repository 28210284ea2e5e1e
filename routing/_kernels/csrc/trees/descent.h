#ifndef IBNUE_DESCENT_H
#define IBNUE_DESCENT_H
#include <stdint.h>
#include "trees/balance.h"
/* Options of the descent: order of the switches, weights of flows, utilisation ceilings, and schedule of the sweeps. */
typedef struct {
    /* [S], position of each switch in an order; a channel leads up if it leads to a lower position */
    const int32_t *position;
    const int32_t *level; /* [S], tier of each switch in the tree */
    /* [S], slot of each switch: its number among all switches that are above the same lower switches */
    const int32_t *slot;
    const int32_t *slots; /* [S], number of slots (choices upwards) above each switch, at least 1 */
    const int32_t
        *stride; /* [S], number of consecutive destinations for which the first sweep uses one slot above the switch */
    const int32_t *order; /* [D], destinations in the order of the first sweep */
    /* [D, S], number of the channel with which each switch begins in the first sweep; 255: chosen by its slot */
    const uint8_t *start;
    /* [S], weight of the flows from each source switch, by which pairs of flows that share a channel are counted */
    const double *meet_source;
    const double *meet_target; /* [D], factor of meet_source for flows to each destination */
    /* [C], ceiling: highest utilisation that costs nothing; the lowest of all is the common ceiling */
    const double *ceiling;
    int32_t sweeps; /* number of sweeps; each routes all destinations once */
    const double
        /* [sweeps], discount for pairs of flows that also share the channel before: part (0 to 1) that is not
         * counted again */
        *discount;
    const double *price; /* [sweeps], cost of each unit of utilisation above a ceiling */
    double least_peak;   /* lower bound of the highest utilisation among the channels with the common ceiling */
    uint64_t seed;       /* random seed for the order of destinations and switches */
} ibn_descent_options;
/* Compute the hops of the paths that lead up and then down from every switch to some switches: see tree_survey.c. */
int ibn_trees_updown_hops(const ibn_network *network, const int32_t *position, int32_t roots, const int32_t *root,
                          int32_t *hops);
/* Compute trees such that few pairs of flows share channels: see descent.c. */
int ibn_trees_descend(const ibn_network *network, const ibn_targets *targets, const ibn_descent_options *options,
                      uint8_t *next, double *load);
#endif
