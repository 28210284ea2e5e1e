/* Quantized congestion notification (QCN, IEEE 802.1Qau): switches sample queues, and senders limit their rates.
 *
 * A congestion point is the queue of packets for one VC of a switch.  A congestion point samples one packet out of
 * every `sample` packets, and samples more often when the queue is long.  The feedback of a sample is (q - q_eq) +
 * weight x (q - q_old), where q is the queue length now, q_old the queue length at the last sample, and q_eq the queue
 * length in equilibrium.  If the feedback is positive, the sender of the sampled packet gets a notification with the
 * feedback in 6 bits.
 *
 * A notification lowers the rate of the flow by up to 63/128.  The flow has a byte counter and a timer, and each of
 * them raises the rate at the end of each of its cycles.  A raise halves the distance between the rate and the target
 * rate.  At first, the target rate is the rate before the notification.  The target rate stays the same in fast
 * recovery (the first STAGES cycles).  When the counter or the timer has had more than STAGES cycles, each cycle raises
 * the target rate by `increase`.  When both have had more than STAGES cycles, the target rate rises by a multiple of
 * `increase` that grows with the number of cycles.
 *
 * Notifications arrive after a fixed time, and take no bandwidth.  Rates are fractions of the link's rate, multiplied
 * by 2^RATE_BITS. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <stdlib.h>

#define RATE_BITS 20
#define FULL (1LL << RATE_BITS)
/* number of cycles of fast recovery; after these cycles, a flow has nearly regained its rate before the notification */
#define STAGES 5
#define MOST 63     /* largest feedback in a notification */
#define GAIN_BITS 7 /* a feedback of n lowers the rate by n / 2^GAIN_BITS of its value */
#define TIMER_RETRY 0
/* Value of a timer event.  TIMER_CYCLE: a cycle of a flow's timer ends.  TIMER_CYCLE + feedback: a notification with
 * this feedback arrives. */
#define TIMER_CYCLE 1

/* The rate of one flow, and the state of its recovery after a notification. */
typedef struct {
    int64_t rate,     /* present rate of the flow */
        target,       /* rate to which the flow recovers */
        next,         /* first tick at which the flow may create its next packet */
        cycle,        /* tick at which the present cycle of the timer ends, or IBN_NEVER */
        bytes,        /* number of bytes sent in the present cycle of the byte counter */
        notified,     /* number of notifications that the flow has received */
        lowest;       /* lowest rate that the flow has had so far */
    int32_t by_bytes, /* number of cycles of the byte counter since the last notification */
        by_time,      /* number of cycles of the timer since the last notification */
        waits;        /* 1: a timer will let the flow create its next packet, else 0 */
} limiter;

/* State of a congestion point, which samples the queue of a switch for one VC (see the beginning of this file). */
typedef struct {
    int64_t left, /* number of packets until the next sample */
        old;      /* number of packets that were queued at the last sample */
} point;

/* Settings and state of QCN in one simulation. */
typedef struct {
    int64_t equilibrium, /* number of queued packets in equilibrium */
        weight,          /* weight of the change of the queue length in the feedback */
        sample,          /* number of packets between two samples of an uncongested queue */
        notice,          /* ticks from a sample until the sender receives its notification */
        bytes,           /* number of bytes that a flow sends in one cycle of its byte counter */
        timer,           /* length in ticks of one cycle of a flow's timer */
        increase,        /* step by which the target rate rises */
        least;           /* lowest rate that a flow may have */
    limiter *limiters;   /* [flows] rate limit of each flow */
    point *points;       /* [vcs] congestion point of each VC */
    int64_t samples;     /* number of samples of all queues so far */
} qcn;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    qcn *state = self->state;
    int64_t *settings[] = {&state->equilibrium, &state->weight, &state->sample,   &state->notice,
                           &state->bytes,       &state->timer,  &state->increase, &state->least};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        *settings[i] = numbers[i];
    state->limiters = calloc((size_t)sim->flows + 1, sizeof *state->limiters);
    state->points = calloc((size_t)sim->vcs + 1, sizeof *state->points);
    if (!state->limiters || !state->points)
        return 1;
    for (int32_t f = 0; f < sim->flows; f++)
        state->limiters[f] = (limiter){.rate = FULL, .target = FULL, .cycle = IBN_NEVER, .lowest = FULL};
    for (int64_t l = 0; l < sim->vcs; l++)
        state->points[l].left = state->sample;
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    qcn *state = self->state;
    free(state->limiters);
    free(state->points);
}

/* Hook: count packet p, and sample the queue of VC l if the packet is the next one to be sampled.  Notify the sender of
 * the sampled packet if the feedback is positive. */
static void queued(ibn_sim *sim, ibn_attached *self, int32_t p, int32_t l)
{
    qcn *state = self->state;
    point *at = &state->points[l];
    if (--at->left > 0)
        return;
    int64_t now = sim->vc[l].waiting, most = state->equilibrium * (2 * state->weight + 1);
    int64_t feedback = now - state->equilibrium + state->weight * (now - at->old);
    feedback = feedback < 0 ? 0 : feedback > most ? MOST : feedback * MOST / most;
    at->old = now;
    /* The worse the congestion, the sooner the next sample follows: up to ten times as often as without congestion. */
    at->left = state->sample * MOST / (MOST + 9 * feedback);
    state->samples++;
    if (feedback)
        ibn_simulate_timer(sim, self, sim->now + state->notice, sim->packet[p].flow, TIMER_CYCLE + (int32_t)feedback);
}

/* Start a new cycle of the timer of flow f, if the rate of the flow is limited. */
static void restart(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    qcn *state = self->state;
    limiter *one = &state->limiters[f];
    one->cycle = one->rate < FULL ? sim->now + state->timer : IBN_NEVER;
    if (one->rate < FULL)
        ibn_simulate_timer(sim, self, one->cycle, f, TIMER_CYCLE);
}

/* Lower the rate of flow f, because a notification has arrived.  `feedback` is the feedback in the notification, 1 to
 * MOST. */
static void lower(ibn_sim *sim, ibn_attached *self, int32_t f, int64_t feedback)
{
    qcn *state = self->state;
    limiter *one = &state->limiters[f];
    one->target = one->rate;
    one->rate -= one->rate * feedback >> GAIN_BITS;
    one->rate = one->rate < state->least ? state->least : one->rate;
    one->lowest = one->rate < one->lowest ? one->rate : one->lowest;
    one->notified++;
    one->bytes = one->by_bytes = one->by_time = 0;
    restart(sim, self, f);
}

/* Raise the rate of a flow, because a cycle of its byte counter or timer has ended.  If the new rate is close to the
 * rate of the link, the flow is no longer limited. */
static void raise(const qcn *state, limiter *one)
{
    int32_t both = one->by_bytes < one->by_time ? one->by_bytes : one->by_time;
    if (both > STAGES)
        one->target += state->increase * (both - STAGES);
    else if (one->by_bytes > STAGES || one->by_time > STAGES)
        one->target += state->increase;
    one->target = one->target < FULL ? one->target : FULL;
    one->rate = (one->rate + one->target) / 2;
    if (one->target == FULL && FULL - one->rate < FULL >> 10)
        one->rate = FULL;
}

/* Hook: a flow has sent packet p.  If the rate of the flow is limited, delay its next packet, and add the bytes of
 * packet p to the cycle of the byte counter. */
static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    qcn *state = self->state;
    const ibn_packet *packet = &sim->packet[p];
    limiter *one = &state->limiters[packet->flow];
    int64_t length = packet->bytes * sim->channel[sim->flow[packet->flow].channel].cost >> IBN_COST_BITS;
    if (one->rate == FULL)
        return;
    one->next = sim->now + (length * FULL + one->rate - 1) / one->rate;
    one->bytes += packet->bytes;
    if (one->bytes >= state->bytes) {
        one->bytes -= state->bytes;
        one->by_bytes++;
        raise(state, one);
    }
}

static int gate(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    limiter *one = &((qcn *)self->state)->limiters[f];
    if (one->next <= sim->now)
        return 1;
    if (!one->waits)
        ibn_simulate_timer(sim, self, one->next, f, TIMER_RETRY);
    one->waits = 1;
    return 0;
}

static void timer(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t value)
{
    qcn *state = self->state;
    limiter *one = &state->limiters[f];
    if (value == TIMER_RETRY) {
        one->waits = 0;
        ibn_simulate_prepare(sim, f);
    } else if (value > TIMER_CYCLE) {
        lower(sim, self, f, value - TIMER_CYCLE);
    } else if (one->cycle == sim->now) {
        one->by_time++;
        raise(state, one);
        restart(sim, self, f);
    }
}

/* Write the number of samples, followed by three numbers for each flow: notifications, present rate and lowest rate. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    const qcn *state = self->state;
    int64_t count = 1 + 3LL * sim->flows;
    if (most < count)
        return count;
    *numbers++ = state->samples;
    for (int32_t f = 0; f < sim->flows; f++) {
        *numbers++ = state->limiters[f].notified;
        *numbers++ = state->limiters[f].rate;
        *numbers++ = state->limiters[f].lowest;
    }
    return count;
}

IBN_MECHANISM(qcn) = {
    .name = "qcn", .bytes = sizeof(qcn), .attach = attach, .detach = detach, .gate = gate, .sent = sent,
    .queued = queued, .timer = timer, .read = read,
};
