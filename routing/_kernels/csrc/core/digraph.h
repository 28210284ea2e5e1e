#pragma once

#include <stdint.h>

/* A directed graph of n vertices is given by its lists of successors.  The successors of vertex v are to[first[v]] to
 * to[first[v + 1] - 1]. */

/* Compute a topological order of a directed graph.
 *
 * place: int32 [n], output: position of each vertex, -1 for vertices on a cycle or downstream of a cycle.
 * placed: int32, output: number of vertices with a position; it is n if the graph is acyclic.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_core_digraph_sort(int32_t n, const int32_t *first, const int32_t *to, int32_t *place, int32_t *placed);

/* Find a shortest cycle of a directed graph.  Of several shortest cycles, the search finds one whose lowest vertex has
 * the smallest number.  The search ends early at a cycle of at most `enough` vertices.
 *
 * cycle: int32 [n], output: the vertices of the cycle, in the order of its edges, from its lowest vertex on.
 * length: int32, output: number of vertices of the cycle; 0: the graph is acyclic.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_core_digraph_find_cycle(int32_t n, const int32_t *first, const int32_t *to, int32_t enough, int32_t *cycle,
                                int32_t *length);
