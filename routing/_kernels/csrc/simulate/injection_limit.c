/* Limit of injection: a CA makes no packet while the buffers of its switch hold too many packets from other switches.
 *
 * The events of a tick are handled in any order.  So if a flow wants to create a packet in tick t, the limit is tested
 * in tick t + 1.  By then, all packets of tick t have arrived.  If the limit stops the flow, the flow tries again after
 * a packet time. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

typedef struct {
    /* limit in blocks: if the buffers of a switch hold this many blocks or more, its CAs make no packet */
    int64_t most,
        period,      /* ticks after which a flow that the limit has stopped tries again to create its packet */
        stops;       /* number of times that the limit has stopped a flow */
    int32_t asking;  /* flow that has passed the test of the limit and may make a packet now; IBN_NONE: no flow */
} injection_limit;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    injection_limit *state = self->state;
    sim->plain = 0; /* The hook `timer` reads ibn_vc.held, which the fast code does not update. */
    state->most = numbers[0];
    state->period = numbers[1];
    state->asking = IBN_NONE;
    return 0;
}

/* Return the number of blocks in the buffers of a switch that have come from other switches. */
static int64_t transit_blocks(const ibn_sim *sim, int32_t device)
{
    int64_t blocks = 0;
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t into = sim->channel[sim->out_channel[i]].reverse;
        for (int32_t vl = 0; sim->channel[into].from_switch && vl < sim->vls; vl++)
            blocks += sim->vc[into * sim->vls + vl].held;
    }
    return blocks;
}

static int gate(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    if (((injection_limit *)self->state)->asking == f)
        return 1;
    ibn_simulate_timer(sim, self, sim->now + 1, f, 0);
    return 0;
}

static void timer(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t value)
{
    (void)value;
    injection_limit *state = self->state;
    const ibn_channel *channel = &sim->channel[sim->flow[f].channel];
    if (channel->to_switch && transit_blocks(sim, channel->dst) >= state->most) {
        state->stops++;
        ibn_simulate_timer(sim, self, sim->now + state->period, f, 0);
        return;
    }
    state->asking = f;
    ibn_simulate_prepare(sim, f);
    state->asking = IBN_NONE;
}

static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    if (most)
        *numbers = ((const injection_limit *)self->state)->stops;
    return 1;
}

IBN_MECHANISM(injection_limit) = {
    .name = "injection-limit", .bytes = sizeof(injection_limit), .attach = attach, .gate = gate, .timer = timer,
    .read = read,
};
