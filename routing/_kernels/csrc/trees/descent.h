#pragma once
#include <stdint.h>
#include "trees/balance.h"
/* Options of the descent: switch order, weights of flows, ceilings of utilisation, and schedule of the passes. */
typedef struct {
    /* [S], position of each switch in a switch order; a channel leads up if it leads to a lower position */
    const int32_t *position;
    const int32_t *level; /* [S], level of each switch in the tree topology: the number of tiers below the switch */
    /* [S], slot of each switch: its number within its group.  A group is the switches of one level that are
     * connected with each other by links to the level below */
    const int32_t *slot;
    /* [S], number of slots above each switch: the number of switches in the group directly above it; at least 1 */
    const int32_t *slots;
    const int32_t
        /* [S], in the first pass: number of consecutive destinations for which each switch sends up to the same slot */
        *stride;
    const int32_t *order; /* [D], the destinations in the order of the first pass */
    /* [D, S], index of the channel that each switch prefers in the first pass; 255: the switch prefers the channels
     * up to the slot that the destination selects */
    const uint8_t *start;
    /* [S], part of a flow's weight that depends on its source switch.  The weight of the flow is meet_source of its
     * source times meet_target of its destination.  Pairs of flows that share a channel are counted with these
     * weights */
    const double *meet_source;
    const double *meet_target; /* [D], part of a flow's weight that depends on its destination; see meet_source */
    /* [C], ceiling of each channel: the highest utilisation that has no extra cost.  The lowest ceiling of all channels
     * is the common ceiling */
    const double *ceiling;
    /* number of sweeps: in each sweep, which is also called a pass, the trees of all destinations are computed once */
    int32_t sweeps;
    const double
        /* [sweeps], fraction from 0 to 1 for each pass.  The cost adds the weight of two flows at each channel that
         * both flows use.  If both flows continue by the same next channel, this fraction of the weight is left out at
         * the first of the two channels */
        *discount;
    const double *price; /* [sweeps], for each pass: cost of a unit of utilisation above a channel's ceiling */
    /* lower bound of the highest utilisation of the channels with the common ceiling: no tables have a lower one, so
     * the search does not try to get below it */
    double least_peak;
    uint64_t seed; /* seed of the random generator, which shuffles destinations and switches */
} ibn_descent_options;
/* Compute the number of hops from every switch to given switches, on shortest paths that lead up and then down: see
 * tree_survey.c. */
int ibn_trees_updown_hops(const ibn_network *network, const int32_t *position, int32_t roots, const int32_t *root,
                          int32_t *hops);
/* Compute trees such that few pairs of flows share channels: see descent.c. */
int ibn_trees_descend(const ibn_network *network, const ibn_targets *targets, const ibn_descent_options *options,
                      uint8_t *next, double *load);
