/* Hold of injection: CAs create no packets to some LIDs until the hold ends.
 *
 * During the hold, a subnet manager can wait until packets have left the fabric, and then replace tables.  So old and
 * new routes are never mixed.  A held flow keeps its messages, and their latency includes the hold.  A packet that
 * already waits at the port of its CA is sent. */
#include "simulate/internal/mechanism.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *held; /* [lids] 1: no packets to this LID are created, else 0 */
} hold;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)numbers;
    (void)count;
    hold *state = self->state;
    state->held = calloc((size_t)sim->lids, 1);
    return !state->held;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    free(((hold *)self->state)->held);
}

static int gate(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    return !((hold *)self->state)->held[sim->flow[f].lid];
}

/* Hold the packets to the given LIDs, and to no other LIDs.  Flows to LIDs that were held before continue. */
static void command(ibn_sim *sim, ibn_attached *self, const int64_t *lids, int64_t count)
{
    hold *state = self->state;
    memset(state->held, 0, (size_t)sim->lids);
    for (int64_t i = 0; i < count; i++)
        state->held[lids[i]] = 1;
    for (int32_t f = 0; f < sim->flows; f++)
        if (sim->flow[f].gated && !state->held[sim->flow[f].lid])
            ibn_simulate_retry(sim, f);
}

IBN_MECHANISM(hold) = {
    .name = "hold", .bytes = sizeof(hold), .attach = attach, .detach = detach, .gate = gate, .command = command,
};
