/* Retransmission by CAs, as by a reliable connection: a flow sends a lost packet again, some time after its loss.
 *
 * Together with HOQLife this resolves a deadlock: switches drop the packets that wait too long, and their CAs send them
 * again (regressive recovery).  Only lost packets are sent again (selective repeat); connections of InfiniBand also
 * send all packets after the lost packet again.  Lost packets of a flow are sent before new packets of the flow, in the
 * order of their timeouts.  Lost packets with equal timeouts are sent in the order of their numbers.  The number of a
 * packet is its tag. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

#include <stdlib.h>

#define MOST_MECHANISMS 8 /* largest number of mechanisms of a simulation, including this one */

/* A lost packet that its flow has to send again. */
typedef struct {
    ibn_packet packet;            /* copy of the packet, made when it was lost; the flow sends this copy again */
    int32_t tag[MOST_MECHANISMS]; /* number (tag) that each mechanism has stored for the packet */
    int64_t due;                  /* tick from which on the flow may send the packet again */
    int32_t next;                 /* next lost packet of the flow, or of the free list; IBN_NONE: none */
} lost_packet;

typedef struct {
    int64_t timeout;   /* ticks from a loss until the packet may be sent again */
    int64_t resent;    /* number of lost packets that were sent again */
    int32_t *first;    /* [flows] first lost packet that a flow has to send again, or IBN_NONE */
    int32_t *made;     /* [flows] number of packets that each flow has created */
    lost_packet *lost; /* [room] copies of lost packets, and unused elements */
    int32_t room,      /* number of elements of `lost` */
        free;          /* index in `lost` of the first unused element, or IBN_NONE */
} retransmission;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    retransmission *state = self->state;
    state->timeout = numbers[0];
    state->free = IBN_NONE;
    state->first = malloc(((size_t)sim->flows + 1) * sizeof *state->first);
    state->made = calloc((size_t)sim->flows + 1, sizeof *state->made);
    for (int32_t f = 0; state->first && f < sim->flows; f++)
        state->first[f] = IBN_NONE;
    return !state->first || !state->made || sim->mechanisms > MOST_MECHANISMS;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    retransmission *state = self->state;
    free(state->first);
    free(state->made);
    free(state->lost);
}

static void made(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    self->tag[p] = ((retransmission *)self->state)->made[sim->packet[p].flow]++;
}

/* Return the index of an unused element of state->lost.  Return IBN_NONE if memory runs out. */
static int32_t new_lost(ibn_sim *sim, retransmission *state)
{
    if (state->free == IBN_NONE) {
        int32_t room = state->room ? 2 * state->room : 256;
        lost_packet *larger = realloc(state->lost, (size_t)room * sizeof *larger);
        if (!larger) {
            sim->failed = 1;
            return IBN_NONE;
        }
        state->lost = larger;
        for (int32_t i = room - 1; i >= state->room; i--) {
            larger[i].next = state->free;
            state->free = i;
        }
        state->room = room;
    }
    int32_t i = state->free;
    state->free = state->lost[i].next;
    return i;
}

/* Store a lost packet in the list of its flow, which is sorted by timeout and number. */
static void lost(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    retransmission *state = self->state;
    int32_t f = sim->packet[p].flow, i = new_lost(sim, state);
    if (i == IBN_NONE)
        return;
    int64_t due = sim->now + state->timeout;
    lost_packet *one = &state->lost[i];
    one->packet = sim->packet[p];
    one->due = due;
    for (int32_t m = 0; m < sim->mechanisms; m++)
        one->tag[m] = sim->attached[m].tag ? sim->attached[m].tag[p] : 0;
    int32_t *at = &state->first[f];
    while (*at != IBN_NONE
           && (state->lost[*at].due < due
               || (state->lost[*at].due == due && state->lost[*at].tag[self->index] < one->tag[self->index])))
        at = &state->lost[*at].next;
    one->next = *at;
    *at = i;
    ibn_simulate_timer(sim, self, due, f, 0);
}

/* Let the next lost packet of a flow wait at the CA's port, if it may be sent again now, and if no other packet of the
 * flow waits there. */
static void resend(ibn_sim *sim, ibn_attached *self, int32_t f)
{
    retransmission *state = self->state;
    ibn_flow *flow = &sim->flow[f];
    int32_t i = state->first[f], p;
    if (i == IBN_NONE || state->lost[i].due > sim->now || flow->head != IBN_NONE
        || (p = ibn_simulate_new_packet(sim)) == IBN_NONE)
        return;
    ibn_packet *packet = &sim->packet[p];
    *packet = state->lost[i].packet;
    for (int32_t m = 0; m < sim->mechanisms; m++)
        if (sim->attached[m].tag)
            sim->attached[m].tag[p] = state->lost[i].tag[m];
    state->first[f] = state->lost[i].next;
    state->lost[i].next = state->free;
    state->free = i;
    packet->tail = packet->ready = sim->now;
    packet->channel = packet->vc = IBN_NONE;
    flow->head = p;
    state->resent++;
    ibn_simulate_offer(sim, p);
}

static void sent(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    resend(sim, self, sim->packet[p].flow);
}

static void timer(ibn_sim *sim, ibn_attached *self, int32_t f, int32_t value)
{
    (void)value;
    resend(sim, self, f);
}

/* Write two numbers: packets sent again, and lost packets that wait to be sent again. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    const retransmission *state = self->state;
    int64_t waiting = 0;
    for (int32_t f = 0; f < sim->flows; f++)
        for (int32_t i = state->first[f]; i != IBN_NONE; i = state->lost[i].next)
            waiting++;
    if (most >= 2) {
        numbers[0] = state->resent;
        numbers[1] = waiting;
    }
    return 2;
}

IBN_MECHANISM(retransmission) = {
    .name = "retransmission", .bytes = sizeof(retransmission), .tags = 1, .attach = attach, .detach = detach,
    .made = made, .sent = sent, .lost = lost, .timer = timer, .read = read,
};
