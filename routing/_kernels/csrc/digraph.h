#ifndef IBNUE_DIGRAPH_H
#define IBNUE_DIGRAPH_H

#include <stdint.h>

/* Any directed graph: what follows vertex v is to[first[v]] .. to[first[v + 1] - 1]. */

/* A topological order: place: int32 [n], -1 for what waits for a cycle.  placed: int32, how many have a place. */
int ibn_digraph_order(int32_t n, const int32_t *first, const int32_t *to, int32_t *place, int32_t *placed);

/*
 * A shortest cycle; among equals, that found from the lowest vertex.  The search ends early with a cycle of `enough`
 * vertices or fewer.  cycle: int32 [n], receives the vertices; length: int32, receives their number (0: no cycle).
 */
int ibn_digraph_cycle(int32_t n, const int32_t *first, const int32_t *to, int32_t enough, int32_t *cycle,
                      int32_t *length);

#endif
