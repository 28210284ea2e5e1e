/* Channel dependency graphs of several VLs that stay acyclic while edges are added.
 *
 * A CDG edge is the dependency of a channel on one channel out of the switch that it leads to.  Its number is
 * turn_first[channel] + index of the second channel among those of its switch.  Each VL keeps a topological order of
 * the channels, which is repaired when an added edge goes against it (D. J. Pearce, P. H. J. Kelly, ACM J. Exp.
 * Algorithmics 11, 2007).  Once all edges of a path are in, they are never removed.  An edge that closes a cycle then
 * closes it for good, so it is recorded as blocked and searched for only once. */
#ifndef IBNUE_ACYCLIC_H
#define IBNUE_ACYCLIC_H

#include <stdint.h>

typedef struct {
    int32_t switches, channels;
    /* Channels out of switch s are first[s] .. first[s + 1] - 1; src and dst [C] are the switches at a channel's ends.
     * Channels into switch s are into[into_first[s]] .. into[into_first[s + 1] - 1]. */
    const int32_t *first, *src, *dst, *into, *into_first;
} acyclic_net;

typedef struct {
    const acyclic_net *net;
    int32_t *turn_first;    /* [C + 1]: number of the first edge of each channel */
    uint32_t *used;         /* [edges]: mask of the VLs whose CDG has the edge */
    uint32_t *blocked;      /* [edges]: mask of the VLs in which the edge would close a cycle */
    int32_t vls;            /* number of VLs that have a topological order so far */
    int32_t *place[32];     /* [C] for each VL: position of each channel in the topological order */
    int32_t *stack, *other; /* [C]: scratch of the searches */
    uint32_t *seen, stamp;  /* [C]: last search that visited each channel; the current search */
    int64_t *key[2], *both; /* [C], [C], [2 C]: scratch of the reordering, position << 32 | channel */
    int32_t *added;         /* [edges]: edges added by one call of ibn_acyclic_fits */
    int64_t visited;        /* channels visited by all searches so far */
} acyclic;

typedef struct {
    int32_t channel, dependency; /* a channel, and the number of an edge from it */
} acyclic_step;

int ibn_acyclic_prepare(acyclic *graph, const acyclic_net *net);
void ibn_acyclic_dispose(acyclic *graph);
int ibn_acyclic_open(acyclic *graph, int32_t vl, const int32_t *order, int32_t orders);
int ibn_acyclic_reaches(acyclic *graph, int32_t vl, int32_t from, int32_t goal);
int ibn_acyclic_clash(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);
int ibn_acyclic_fits(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);

#endif
