/* Dependency graphs of several lanes that stay free of cycles as dependencies are added.
 *
 * A TURN is a dependency of a channel on one of the channels behind it, numbered turn_first[channel] + index of the
 * second among those of its switch.  Each lane keeps a topological order of the channels and mends it when a turn goes
 * against it (D. J. Pearce, P. H. J. Kelly, ACM J. Exp. Algorithmics 11, 2007).  Turns are never taken out once a whole
 * way is in, so that a turn that closes a cycle does so for good and is remembered: it is searched for once. */
#ifndef IBNUE_ACYCLIC_H
#define IBNUE_ACYCLIC_H

#include <stdint.h>

typedef struct {
    int32_t switches, channels;
    const int32_t *first, *src, *dst, *into, *into_first;
} acyclic_net;

typedef struct {
    const acyclic_net *net;
    int32_t *turn_first;    /* [C + 1] */
    uint32_t *used;         /* [turns] lanes that take the turn */
    uint32_t *blocked;      /* [turns] lanes in which it would close a cycle */
    int32_t lanes;          /* that have a topological order yet */
    int32_t *place[32];     /* [C] of each lane */
    int32_t *stack, *other; /* [C] */
    uint32_t *seen, stamp;  /* [C] */
    int64_t *key[2], *both; /* [C], [C], [2 C] */
    int32_t *added;         /* [turns] */
    int64_t visited; /* channels that searches came by */
} acyclic;

typedef struct {
    int32_t channel, turn; /* the channel that waits, and the turn it takes */
} acyclic_step;

int ibn_acyclic_prepare(acyclic *graph, const acyclic_net *net);
void ibn_acyclic_dispose(acyclic *graph);
int ibn_acyclic_open(acyclic *graph, int32_t lane, const int32_t *order, int32_t orders);
int ibn_acyclic_reaches(acyclic *graph, int32_t lane, int32_t from, int32_t goal);
int ibn_acyclic_clash(acyclic *graph, int32_t lane, const acyclic_step *steps, int32_t count);
int ibn_acyclic_fits(acyclic *graph, int32_t lane, const acyclic_step *steps, int32_t count);

#endif
