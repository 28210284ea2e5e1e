#ifndef IBNUE_DESCENT_H
#define IBNUE_DESCENT_H
#include <stdint.h>
#include "trees/balance.h"
/* Order, weights, limits and schedule of the descent. */
typedef struct {
    const int32_t *position; /* [S], order of the switches; up leads to lower positions */
    const int32_t *level;    /* [S], level of each switch */
    const int32_t *slot;     /* [S], slot: number of each switch among all switches above the same lower switches */
    const int32_t *slots;    /* [S], number of slots above each switch, at least 1 */
    const int32_t
        *stride; /* [S], number of consecutive destinations that use one slot above the switch in the first sweep */
    const int32_t *order;      /* [D], destinations in the order of the first sweep */
    const double *meet_source; /* [S], weight with which the flows of each switch count where they meet other flows */
    const double *meet_target; /* [D], factor of that weight for each destination */
    const double *ceiling;     /* [C], highest utilisation without a cost; the common ceiling is the lowest of them */
    int32_t sweeps;            /* passes over all destinations */
    const double
        *discount;       /* [sweeps], part (0 to 1) of the flows met on the channel before that does not count again */
    const double *price; /* [sweeps], cost of each unit of utilisation above a ceiling */
    double least_peak;   /* lower bound of the highest utilisation under the common ceiling */
    uint64_t seed;       /* of the random order of destinations and switches */
} ibn_descent_options;
/* Compute hops of the paths up and then down from every switch to some switches: see tree_survey.c. */
int ibn_trees_updown_hops(const ibn_network *network, const int32_t *position, int32_t roots, const int32_t *root,
                          int32_t *hops);
/* Compute trees with few pairs of flows that meet: see descent.c. */
int ibn_trees_descend(const ibn_network *network, const ibn_targets *targets, const ibn_descent_options *options,
                      uint8_t *next, double *load);
#endif
