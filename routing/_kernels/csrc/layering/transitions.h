#pragma once
#include <stdint.h>
#include "layering/layering.h"
/* Statistics of the assignment of SLs to pairs of switches. */
typedef struct {
    /* 1 if some pair of switches with counted paths (see layering.h) fits on no SL, else 0: the count stops at 1 */
    int64_t left;
    int64_t left_uncounted; /* number of other pairs of switches that fit on no SL; these pairs get SL 0 */
    int64_t changing; /* number of pairs of switches on an SL whose packets may move to higher VLs along the path */
    int64_t visited;  /* number of channels that were visited by cycle searches and by attempts to place a path */
} ibn_transition_counts;
int ibn_layering_assign_transitions(const ibn_path_set *paths, int32_t sls, uint8_t *next, double *load, uint8_t *sl,
                                    uint8_t *turn_vl, ibn_transition_counts *counts);
