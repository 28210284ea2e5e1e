/* Congestion control of InfiniBand: notifications (FECN and BECN), and a table of injection delays.
 *
 * If `threshold` or more packets are queued at a switch for a VC, the switch marks the packet that it adds to the queue
 * (FECN).  A port that has credits for this packet is the root of the congestion.  A port without these credits marks
 * the packet only if `victims` is set.
 *
 * A CA that receives a marked packet notifies the sender (BECN).  A BECN raises the table index (CCTI) of the flow.
 * After each packet, a flow waits for the delay at its index in the table (CCT).  Delays are in packet times.  A timer
 * lowers all indices by one.
 *
 * BECNs arrive after a fixed time, and take no bandwidth. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <stdlib.h>

#define DELAY_BITS 10 /* each delay in the table is a number of packet times, multiplied by 2^DELAY_BITS */
#define TIMER_BECN 0
#define TIMER_RETRY 1
#define TIMER_DECREASE 2

typedef struct {
    int64_t next;  /* first tick at which the flow may create its next packet */
    int64_t becns; /* number of BECNs that the flow has received */
    int32_t ccti,  /* present index of the flow in the table of delays */
        highest,   /* largest index that the flow has had so far */
        waits;     /* 1: a timer will let the flow try again to create a packet, else 0 */
} source;

typedef struct {
    int64_t threshold, /* a packet is marked if at least this many packets are queued for its VC */
        rate,          /* number of packets of a congested VC that are left unmarked between two marked packets; a VC is
                        * congested while `threshold` or more packets are queued */
        victims,       /* 1: a port marks a packet even if it has no credits for the packet; 0: it does not */
        smallest,      /* size in bytes of the smallest packet that is marked */
        notice,        /* ticks from the delivery of a marked packet until its sender receives the BECN */
        increase,      /* number by which a BECN raises the index of a flow */
        limit,         /* largest index in the table of delays */
        timer;         /* ticks after which the timer lowers all indices by one */
    int64_t *delay;    /* [limit + 1] delay at each index, in packet times x 2^DELAY_BITS */
    source *sources;   /* [flows] state of congestion control at each flow's sender */
    int64_t *unmarked; /* [vcs] number of packets that were left unmarked since the VC's last marked packet, although
                        * the VC was congested */
    int64_t marks;     /* number of packets that were marked */
    int32_t armed;     /* 1: an event of the timer that lowers indices is pending, else 0 */
} congestion;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    congestion *state = self->state;
    int64_t *settings[] = {&state->threshold, &state->rate,     &state->victims, &state->smallest,
                           &state->notice,    &state->increase, &state->limit,   &state->timer};
    int64_t known = sizeof settings / sizeof *settings;
    for (int64_t i = 0; i < known; i++)
        *settings[i] = numbers[i];
    state->delay = malloc((size_t)(count - known) * sizeof *state->delay);
    state->sources = calloc((size_t)sim->flows + 1, sizeof *state->sources);
    state->unmarked = calloc((size_t)sim->vcs + 1, sizeof *state->unmarked);
    if (!state->delay || !state->sources || !state->unmarked)
        return 1;
    for (int64_t i = known; i < count; i++)
        state->delay[i - known] = numbers[i];
    for (int64_t l = 0; l < sim->vcs; l++)
        /* With this start value, the first packet of a congested VC is marked, as if `rate` packets had been left
         * unmarked before. */
        state->unmarked[l] = state->rate;
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    congestion *state = self->state;
    free(state->delay);
    free(state->sources);
    free(state->unmarked);
}

static void made(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    (void)sim;
    self->tag[p] = 0;
}

/* Mark a packet that is queued for a congested VC, unless a setting exempts the packet (see `victims`, `smallest` and
 * `rate`). */
static void queued(ibn_sim *sim, ibn_attached *self, int32_t p, int32_t l)
{
    congestion *state = self->state;
    const ibn_packet *packet = &sim->packet[p];
    if (sim->vc[l].waiting < state->threshold || packet->bytes < state->smallest
        || (!state->victims && ibn_simulate_credits(&sim->vc[l]) < packet->blocks))
        return;
    if (state->unmarked[l]++ < state->rate)
        return;
    state->unmarked[l] = 0;
    state->marks += !self->tag[p];
    self->tag[p] = 1;
}

static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    if (self->tag[p])
        ibn_simulate_timer(sim, self, sim->now + ((congestion *)self->state)->notice, sim->packet[p].flow, TIMER_BECN);
}

/* Delay the next packet of the flow of packet p, unless the index of the flow is 0.  The delay begins when the tail of
 * packet p, which begins to leave now, has left the CA. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    congestion *state = self->state;
    source *one = &state->sources[sim->packet[p].flow];
    int64_t length = sim->packet[p].bytes * sim->channel[sim->flow[sim->packet[p].flow].channel].cost;
    length >>= IBN_COST_BITS;
    one->next = one->ccti ? sim->now + length + (length * state->delay[one->ccti] >> DELAY_BITS) : sim->now;
}

static int gate(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    source *one = &((congestion *)self->state)->sources[f];
    if (one->next <= sim->now)
        return 1;
    if (!one->waits)
        ibn_simulate_timer(sim, self, one->next, f, TIMER_RETRY);
    one->waits = 1;
    return 0;
}

/* Raise the index in the congestion control table (CCTI) of a flow, because its sender has received a BECN.  Start the
 * timer that lowers indices, if it is not running. */
static void becn(ibn_sim *sim, ibn_attached *self, source *one)
{
    congestion *state = self->state;
    int64_t raised = one->ccti + state->increase;
    one->becns++;
    one->ccti = (int32_t)(raised < state->limit ? raised : state->limit);
    if (one->ccti > one->highest)
        one->highest = one->ccti;
    if (!state->armed) {
        state->armed = 1;
        ibn_simulate_timer(sim, self, (sim->now / state->timer + 1) * state->timer, 0, TIMER_DECREASE);
    }
}

/* Lower the index in the congestion control table (CCTI) of each flow by one, if it is above 0.  The timer stops when
 * the indices of all flows are 0. */
static void decrease(ibn_sim *sim, ibn_attached *self)
{
    congestion *state = self->state;
    state->armed = 0;
    for (int32_t f = 0; f < sim->flows; f++) {
        state->sources[f].ccti -= state->sources[f].ccti > 0;
        state->armed |= state->sources[f].ccti > 0;
    }
    if (state->armed)
        ibn_simulate_timer(sim, self, sim->now + state->timer, 0, TIMER_DECREASE);
}

static void timer(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t value)
{
    source *one = &((congestion *)self->state)->sources[f];
    switch (value) {
    case TIMER_BECN:
        becn(sim, self, one);
        break;
    case TIMER_RETRY:
        one->waits = 0;
        ibn_simulate_prepare(sim, f);
        break;
    default:
        decrease(sim, self);
    }
}

/* Write the number of packets marked with FECN, followed by three numbers for each flow: BECNs received, the index in
 * the congestion control table now, and the largest index so far. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    const congestion *state = self->state;
    int64_t count = 1 + 3LL * sim->flows;
    if (most < count)
        return count;
    *numbers++ = state->marks;
    for (int32_t f = 0; f < sim->flows; f++) {
        *numbers++ = state->sources[f].becns;
        *numbers++ = state->sources[f].ccti;
        *numbers++ = state->sources[f].highest;
    }
    return count;
}

IBN_MECHANISM(congestion) = {
    .name = "congestion", .bytes = sizeof(congestion), .tags = 1, .attach = attach, .detach = detach, .gate = gate,
    .made = made, .sent = sent, .queued = queued, .delivered = delivered, .timer = timer, .read = read,
};
