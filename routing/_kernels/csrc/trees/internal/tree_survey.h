/* Paths that lead up and then down to one switch (the root), with one next hop for each switch. */
#pragma once

#include <stdint.h>

#include "trees/balance.h"

/* Direction in which the path of a switch to the root begins. */
enum { NO_PATH, PATH_UP, PATH_DOWN };

typedef struct {
    const ibn_network *net;
    const int32_t *position; /* [S] position of each switch in the switch order */
    const int32_t *sequence; /* [S] switches, sorted by position in the switch order */
    int32_t *hops;           /* [S] hops of each switch's path to the root; -1: no path */
    int32_t *below;     /* [S] hops of each switch's shortest path to the root over channels down only; -1: none */
    uint8_t *direction; /* [S] direction in which each switch's path begins: NO_PATH, PATH_UP or PATH_DOWN */
    int32_t *queue;     /* [S] scratch: switches to be visited */
} tree_survey;

void ibn_trees_survey(const tree_survey *survey, int32_t root);

/* Return whether channel c of switch u continues a path that the survey found.  The channel must lead in the direction
 * of the path, and to a switch that is one hop nearer to the root. */
static inline int ibn_trees_survey_allows(const tree_survey *survey, int32_t u, int32_t c)
{
    int32_t v = survey->net->dst[c];
    if (survey->direction[u] == PATH_DOWN)
        return survey->below[v] == survey->below[u] - 1 && survey->position[v] > survey->position[u];
    return survey->direction[v] != NO_PATH && survey->hops[v] == survey->hops[u] - 1
           && survey->position[v] < survey->position[u];
}
