/* Channel dependency graphs (CDGs) of several VLs that stay acyclic while edges are added.
 *
 * A CDG edge leads from a channel c to a channel out of the switch where c ends.  The edge to the k-th channel out of
 * this switch, counted from 0, has number turn_first[c] + k.
 *
 * Each VL has a topological order of the channels.  If a new edge violates the order, the order is repaired (D. J.
 * Pearce, P. H. J. Kelly, Journal of Experimental Algorithmics 11, 2007).  A new edge that would close a cycle by
 * itself is recorded as blocked, so that later attempts to add this edge need no search.  A kernel that removes edges
 * from the graph has to unblock the edges whose cycles may be gone. */
#pragma once

#include <stdint.h>

#include "core/internal/arrays.h"

typedef struct {
    int32_t switches, channels;
    /* The fabric.
     *
     * first: the channels out of switch s are first[s] to first[s + 1] - 1.
     * src, dst: [C], switches where each channel begins and ends.
     * into, into_first: the channels into switch s are into[into_first[s]] to into[into_first[s + 1] - 1]. */
    const int32_t *first, *src, *dst, *into, *into_first;
} acyclic_net;

typedef struct {
    const acyclic_net *net;
    int32_t *turn_first; /* [C + 1]: number of the first CDG edge that leads from each channel */
    uint32_t *used;      /* [edges]: for each edge, the VLs, as bits, whose CDG has the edge; NULL: `shared` is used */
    uint16_t *shared;    /* [edges]: an array of the caller that is used in place of `used`, if `used` is NULL */
    uint32_t *blocked;   /* [edges]: for each edge, the VLs, as bits, on which the edge is blocked */
    int32_t vls;         /* number of VLs that have a topological order so far */
    int32_t *place[32];  /* for each VL an array [C]: position of each channel in the topological order of the VL */
    int32_t *stack, *other; /* [C]: scratch of the cycle searches, for channels to be visited */
    /* seen: [C], number of the last search that visited each channel; stamp: number of the current search */
    uint32_t *seen, stamp;
    /* Scratch of the repair of an order: channels with their positions, each as (position << 32) | channel.
     *
     * key[0]: [C], channels that the search forward has found.
     * key[1]: [C], channels that the search backward has found.
     * both: [2 C], channels of both searches. */
    int64_t *key[2], *both;
    int32_t *added;  /* [edges]: numbers of the edges that the current call of ibn_core_acyclic_fits has added */
    int64_t visited; /* number of channels that all cycle searches so far have visited */
    /* list of allocated arrays, which are freed together: the arrays above except `shared`, `place` and `added`, and
     * further arrays of the kernel that uses the graph */
    array_list arrays;
} acyclic;

typedef struct {
    /* channel: the channel where a CDG edge begins; dependency: the number of this edge */
    int32_t channel, dependency;
} acyclic_step;

/* Return whether the CDG of a VL has the edge with number `dependency`. */
static inline int ibn_core_acyclic_has(const acyclic *graph, int32_t dependency, int32_t vl)
{
    return (graph->used ? graph->used[dependency] : graph->shared[dependency]) >> vl & 1;
}

/* Add an edge to the CDG of a VL.  The caller knows that the edge closes no cycle. */
static inline void ibn_core_acyclic_put(acyclic *graph, int32_t dependency, int32_t vl)
{
    if (graph->used)
        graph->used[dependency] |= UINT32_C(1) << vl;
    else
        graph->shared[dependency] |= (uint16_t)(1u << vl);
}

/* Remove an edge from the CDG of a VL. */
static inline void ibn_core_acyclic_drop(acyclic *graph, int32_t dependency, int32_t vl)
{
    if (graph->used)
        graph->used[dependency] &= ~(UINT32_C(1) << vl);
    else
        graph->shared[dependency] &= (uint16_t)~(1u << vl);
}

/* Prepare a graph.  If `slot` and `shared` are NULL, the graph has no edges yet.  Otherwise, the array `shared` holds
 * the edges of the graph, and later changes of the graph change this array.  The edges that lead from channel c begin
 * at index slot[c] of `shared`.  Returns 0, or 1 if memory is exhausted. */
int ibn_core_acyclic_prepare(acyclic *graph, const acyclic_net *net, const int32_t *slot, uint16_t *shared);
void ibn_core_acyclic_dispose(acyclic *graph);
int ibn_core_acyclic_open(acyclic *graph, int32_t vl, const int32_t *order, int32_t orders);
int ibn_core_acyclic_reaches(acyclic *graph, int32_t vl, int32_t from, int32_t goal);
int ibn_core_acyclic_clash(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);
int ibn_core_acyclic_fits(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);
