#ifndef IBNUE_DIGRAPH_H
#define IBNUE_DIGRAPH_H

#include <stdint.h>

/* A directed graph of n vertices is given by lists of successors: those of vertex v are to[first[v]] .. to[first[v +
 * 1] - 1]. */

/* Compute a topological order.  place: int32 [n], position of each vertex, -1 for vertices on a cycle or downstream
 * of one.  placed: int32, number of vertices with a position (n if the graph is acyclic). */
int ibn_core_digraph_sort(int32_t n, const int32_t *first, const int32_t *to, int32_t *place, int32_t *placed);

/* Find a shortest cycle.  Among several shortest cycles, the one with the lowest start vertex is returned.  The
 * search ends early at a cycle of at most `enough` vertices. cycle: int32 [n], receives the vertices; length: int32,
 * receives their number (0: the graph is acyclic). */
int ibn_core_digraph_find_cycle(int32_t n, const int32_t *first, const int32_t *to, int32_t enough, int32_t *cycle,
                                int32_t *length);

#endif
