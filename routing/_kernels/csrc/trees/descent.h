#ifndef IBNUE_DESCENT_H
#define IBNUE_DESCENT_H
#include <stdint.h>
#include "trees/balance.h"
/* Options of the descent: order of the switches, weights of flows, utilisation ceilings, and schedule of the sweeps. */
typedef struct {
    /* [S], position of each switch in an order; a channel leads up if it leads to a lower position */
    const int32_t *position;
    const int32_t *level; /* [S], tier of each switch in the tree */
    /* [S], slot of each switch: its number among the switches that are above the same lower switches */
    const int32_t *slot;
    /* [S], number of slots above each switch, which is the number of its choices for paths up; at least 1 */
    const int32_t *slots;
    const int32_t
        /* [S], for each switch, the number of consecutive destinations that use one slot above it in the first sweep */
        *stride;
    const int32_t *order; /* [D], destinations in the order of the first sweep */
    /* [D, S], number of the channel that each switch uses in the first sweep; 255: the destination's slot decides */
    const uint8_t *start;
    /* [S], weight of each source switch, from which the weight of two flows that share a channel is computed */
    const double *meet_source;
    const double *meet_target; /* [D], factor of meet_source for the flows to each destination */
    /* [C], ceiling: the highest utilisation of each channel that costs nothing; the lowest ceiling of all channels is
     * the common ceiling */
    const double *ceiling;
    int32_t sweeps; /* number of sweeps; each routes all destinations once */
    const double
        /* [sweeps], by sweep: for pairs of flows that share two channels in a row, the part (0 to 1) of their weight
         * that is not counted a second time */
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
