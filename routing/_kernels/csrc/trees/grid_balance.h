#pragma once
#include <stdint.h>
/* Trees of paths towards switches, with their flows.  A bundle is all parallel channels from one switch to another. */
typedef struct {
    int32_t switches;               /* S, number of switches */
    int32_t bundles;                /* N, number of bundles */
    int32_t trees;                  /* T, number of trees */
    int32_t longer;                 /* largest number of hops by which one move may make a path longer */
    const int32_t *first;           /* [S + 1], the bundles out of switch s are first[s] to first[s + 1] - 1 */
    const int32_t *dst;             /* [N], switch where each bundle ends */
    const int32_t *src;             /* [N], switch where each bundle begins */
    const double *inverse_capacity; /* [N], inverse capacity of each bundle; the utilisation is load times this value */
    const int32_t *root;            /* [T], switch to which the paths of each tree lead */
    /* The arrays below change with each move. */
    /* [T, S], by tree and switch: number of the bundle by which the switch sends, counted from the first bundle of the
     * switch; 255: none */
    uint8_t *hop;
    /* [T, S], by tree and switch: 1 if the path of the switch follows the engine's rule (a regular path).  A move sets
     * the elements of all paths that it changes to 0 */
    uint8_t *regular;
    int32_t *hops; /* [T, S], by tree and switch: number of hops to the tree's destination, -1: there is no path */
    double *flow;  /* [T, S], by tree and switch: flow that passes the switch towards the tree's destination */
    double *load;  /* [N], traffic on each bundle */
} ibn_grid_trees;
/* Move paths away from the bundles with the highest utilisation: see grid_balance.c. */
int ibn_trees_balance_grid(const ibn_grid_trees *trees, int64_t *visits);
