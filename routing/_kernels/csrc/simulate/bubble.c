/* Bubble flow control: a packet may enter a ring of VCs only if its VC has room for this packet and for one more packet
 * of the largest size.  A ring is a cycle of dependencies between VCs.  The Python module (mechanisms/bubble.py) finds
 * the rings, and passes the number of each VC's ring.
 *
 * So the buffers of a ring never fill completely, and its packets can always move (Pinkston, section 13.3.1).  A packet
 * that continues in its ring needs room for itself only. */
#include "simulate/internal/mechanism.h"

#include <stdlib.h>

typedef struct {
    int32_t *ring;  /* [vcs] number of the ring to which each VC belongs, -1: none */
    int32_t blocks; /* size of the largest packet in blocks */
} bubble;

/* Read the settings: the size of the largest packet, and the number of each VC's ring. */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    bubble *state = self->state;
    state->blocks = (int32_t)numbers[0];
    state->ring = malloc((size_t)(sim->vcs + 1) * sizeof *state->ring);
    for (int64_t l = 0; state->ring && l < sim->vcs; l++)
        state->ring[l] = (int32_t)numbers[l + 1];
    return !state->ring;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    free(((bubble *)self->state)->ring);
}

static int32_t room(const ibn_sim *sim, const ibn_attached *self, int32_t p, int32_t l)
{
    const bubble *state = self->state;
    int32_t from = sim->packet[p].vc, ring = state->ring[l];
    return ring >= 0 && (from == IBN_NONE || state->ring[from] != ring) ? state->blocks : 0;
}

IBN_MECHANISM(bubble) = {
    .name = "bubble", .bytes = sizeof(bubble), .attach = attach, .detach = detach, .room = room,
};
