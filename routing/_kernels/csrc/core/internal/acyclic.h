/* Channel dependency graphs of several VLs that stay acyclic while edges are added.
 *
 * A CDG edge leads from a channel to a channel out of the switch where the first one ends.  Its number is
 * turn_first[first channel] + index of the second channel among the channels of its switch.
 *
 * Each VL has a topological order of the channels.  If an added edge violates the order, the order is repaired (D.
 * J. Pearce, P. H. J. Kelly, ACM J. Exp. Algorithmics 11, 2007).  Edges of a complete path are never removed.  So an
 * edge that closes a cycle now will always close one: it is recorded as blocked, and searched for only once. */
#ifndef IBNUE_ACYCLIC_H
#define IBNUE_ACYCLIC_H

#include <stdint.h>

typedef struct {
    int32_t switches, channels;
    /* Channels out of switch s are first[s] .. first[s + 1] - 1.  src and dst [C] are the switches where a channel
     * begins and ends.  Channels into switch s are into[into_first[s]] .. into[into_first[s + 1] - 1]. */
    const int32_t *first, *src, *dst, *into, *into_first;
} acyclic_net;

typedef struct {
    const acyclic_net *net;
    int32_t *turn_first;    /* [C + 1]: number of the first edge of each channel */
    uint32_t *used;         /* [edges]: VLs whose CDG has the edge, as bits */
    uint32_t *blocked;      /* [edges]: VLs in which the edge would close a cycle, as bits */
    int32_t vls;            /* number of VLs that have a topological order so far */
    int32_t *place[32];     /* [C] for each VL: position of each channel in the topological order */
    int32_t *stack, *other; /* [C]: scratch of the searches */
    uint32_t *seen, stamp;  /* seen [C]: last search that visited each channel; stamp: the current search */
    int64_t *key[2], *both; /* key[0], key[1] [C], both [2 C]: scratch, position << 32 | channel */
    int32_t *added;         /* [edges]: edges added by one call of ibn_acyclic_fits */
    int64_t visited;        /* channels visited by all searches so far */
} acyclic;

typedef struct {
    int32_t channel, dependency; /* a channel, and the number of a CDG edge that leads from it */
} acyclic_step;

int ibn_acyclic_prepare(acyclic *graph, const acyclic_net *net);
void ibn_acyclic_dispose(acyclic *graph);
int ibn_acyclic_open(acyclic *graph, int32_t vl, const int32_t *order, int32_t orders);
int ibn_acyclic_reaches(acyclic *graph, int32_t vl, int32_t from, int32_t goal);
int ibn_acyclic_clash(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);
int ibn_acyclic_fits(acyclic *graph, int32_t vl, const acyclic_step *steps, int32_t count);

#endif
