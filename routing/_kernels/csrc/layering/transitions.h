#ifndef IBNUE_TRANSITIONS_H
#define IBNUE_TRANSITIONS_H
#include <stdint.h>
#include "layering/layering.h"
/* Counts of the result. */
typedef struct {
    int64_t left;           /* pairs of switches that count and found no SL; 1 stands for 1 or more */
    int64_t left_uncounted; /* other pairs that found no SL; they are on SL 0 */
    int64_t changing;       /* pairs on an SL whose VL changes from hop to hop */
    int64_t visited;        /* channels that searches for cycles and attempts visited */
} ibn_transition_counts;
int ibn_layering_assign_transitions(const ibn_path_set *paths, int32_t sls, uint8_t *next, double *load, uint8_t *sl,
                                    uint8_t *turn_vl, ibn_transition_counts *counts);
#endif
