/* Find the mechanisms of a simulation by their names, attach the mechanisms, and call their hooks. */
#include "simulate/internal/mechanism.h"
#include "simulate/internal/flow.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 16

/* Beginning and end of a section of the library, as the linker sets them.  IBN_MECHANISM puts a pointer to each
 * mechanism into this section. */
extern const ibn_mechanism *const __start_ibn_mechanisms[], *const __stop_ibn_mechanisms[];

static const ibn_mechanism *find(const char *name)
{
    for (const ibn_mechanism *const *at = __start_ibn_mechanisms; at < __stop_ibn_mechanisms; at++)
        if (strncmp((*at)->name, name, NAME_BYTES) == 0)
            return *at;
    return NULL;
}

/* Return the hooks of a mechanism as bits: one bit for each hook that is not NULL. */
static uint32_t hooks_of(const ibn_mechanism *kind)
{
    return (kind->gate ? IBN_HOOK_GATE : 0) | (kind->made ? IBN_HOOK_MADE : 0) | (kind->sent ? IBN_HOOK_SENT : 0)
           | (kind->queued ? IBN_HOOK_QUEUED : 0) | (kind->delivered ? IBN_HOOK_DELIVERED : 0)
           | (kind->lost ? IBN_HOOK_LOST : 0) | (kind->room ? IBN_HOOK_ROOM : 0)
           | (kind->arrived ? IBN_HOOK_ARRIVED : 0) | (kind->vl ? IBN_HOOK_VL : 0)
           | (kind->output ? IBN_HOOK_OUTPUT : 0);
}

/* Find the mechanisms that the options name, and set sim->hooks.  Return 0, 1 if memory runs out, or 3 if one of the
 * names belongs to no mechanism. */
int ibn_simulate_resolve_mechanisms(ibn_sim *sim, const ibn_simulate_options *options)
{
    sim->attached = calloc((size_t)options->mechanisms + 1, sizeof *sim->attached);
    if (!sim->attached)
        return 1;
    for (int32_t m = 0; m < options->mechanisms; m++) {
        ibn_attached *self = &sim->attached[m];
        self->kind = find((const char *)options->mechanism_names + m * NAME_BYTES);
        self->index = m;
        if (!self->kind)
            return 3;
        sim->mechanisms++;
        sim->hooks |= hooks_of(self->kind);
    }
    return 0;
}

/* Set up the state of all attached mechanisms.  Return 1 if memory runs out, else 0. */
int ibn_simulate_attach(ibn_sim *sim, const ibn_simulate_options *options)
{
    const int64_t *numbers = options->mechanism_numbers;
    for (int32_t m = 0; m < sim->mechanisms; m++) {
        ibn_attached *self = &sim->attached[m];
        self->state = calloc(1, (size_t)self->kind->bytes + 1);
        if (!self->state || self->kind->attach(sim, self, numbers, options->mechanism_counts[m]))
            return 1;
        numbers += options->mechanism_counts[m];
    }
    return 0;
}

void ibn_simulate_detach(ibn_sim *sim)
{
    for (int32_t m = 0; m < sim->mechanisms; m++) {
        ibn_attached *self = &sim->attached[m];
        if (self->state && self->kind->detach)
            self->kind->detach(sim, self);
        free(self->state);
        free(self->tag);
    }
    free(sim->attached);
    free(sim->arrival);
}

/* Allocate room for a tag of every packet, in each mechanism that keeps tags.  A tag is a number that the mechanism
 * stores for a packet.  Return 1 if memory runs out, else 0. */
int ibn_simulate_more_tags(ibn_sim *sim)
{
    for (int32_t m = 0; m < sim->mechanisms; m++) {
        ibn_attached *self = &sim->attached[m];
        if (!self->kind->tags)
            continue;
        int32_t *larger = realloc(self->tag, (size_t)sim->packets_made * sizeof *larger);
        if (!larger)
            return 1;
        self->tag = larger;
    }
    return 0;
}

/* Return whether all mechanisms let a flow create its next packet.  If not, record that the flow waits. */
int ibn_simulate_gate(ibn_sim *sim, int32_t f)
{
    int32_t shut = 0;
    for (int32_t m = 0; m < sim->mechanisms && !shut; m++)
        if (sim->attached[m].kind->gate)
            shut = !sim->attached[m].kind->gate(sim, &sim->attached[m], f);
    sim->gated += shut - sim->flow[f].gated;
    sim->flow[f].gated = shut;
    return !shut;
}

/* Call one hook of all mechanisms that have this hook. */
#define CALL(hook, ...)                                                                                                \
    for (int32_t m = 0; m < sim->mechanisms; m++)                                                                      \
        if (sim->attached[m].kind->hook)                                                                               \
    sim->attached[m].kind->hook(sim, &sim->attached[m], __VA_ARGS__)

void ibn_simulate_on_made(ibn_sim *sim, int32_t p)
{
    CALL(made, p);
}

/* Return the number of blocks that must stay free in the buffer of VC l after packet p was sent on VC l.  This is the
 * largest number that any of the mechanisms requires. */
int32_t ibn_simulate_room(const ibn_sim *sim, int32_t p, int32_t l)
{
    int32_t most = 0;
    for (int32_t m = 0; m < sim->mechanisms; m++) {
        const ibn_attached *self = &sim->attached[m];
        int32_t blocks = self->kind->room ? self->kind->room(sim, self, p, l) : 0;
        most = blocks > most ? blocks : most;
    }
    return most;
}

/* Return the channel for which a switch queues packet p.  `usual` is the channel that the tables name.  Each mechanism
 * may replace the channel that earlier mechanisms have chosen. */
int32_t ibn_simulate_other_output(ibn_sim *sim, int32_t p, int32_t usual)
{
    for (int32_t m = 0; m < sim->mechanisms; m++)
        if (sim->attached[m].kind->output)
            usual = sim->attached[m].kind->output(sim, &sim->attached[m], p, usual);
    return usual;
}

/* Return the VL on which packet p is queued for channel c.  `usual` is the VL that the tables name.  Each mechanism may
 * replace the VL that earlier mechanisms have chosen. */
int32_t ibn_simulate_other_vl(ibn_sim *sim, int32_t p, int32_t c, int32_t usual)
{
    for (int32_t m = 0; m < sim->mechanisms; m++)
        if (sim->attached[m].kind->vl)
            usual = sim->attached[m].kind->vl(sim, &sim->attached[m], p, c, usual);
    return usual;
}

/* Return whether all mechanisms let a CA take a packet.  If not, the first mechanism that does not allow this keeps the
 * packet. */
int ibn_simulate_on_arrived(ibn_sim *sim, int32_t p)
{
    for (int32_t m = 0; m < sim->mechanisms; m++)
        if (sim->attached[m].kind->arrived && !sim->attached[m].kind->arrived(sim, &sim->attached[m], p))
            return 0;
    return 1;
}

/* Return the VC for which packets in a CA's buffer of VC l wait, or IBN_NONE if these packets wait for no VC.  VC l
 * leads to this CA. */
int32_t ibn_simulate_waits_for(const ibn_sim *sim, int32_t l)
{
    int32_t found = IBN_NONE;
    for (int32_t m = 0; m < sim->mechanisms && found == IBN_NONE; m++)
        if (sim->attached[m].kind->waits_for)
            found = sim->attached[m].kind->waits_for(sim, &sim->attached[m], l);
    return found;
}

void ibn_simulate_on_sent(ibn_sim *sim, int32_t p)
{
    CALL(sent, p);
}

/* Record that packet p has been queued for VC l.  When all packets of the tick have been queued, the hook `queued` is
 * called for each recorded packet. */
void ibn_simulate_on_queued(ibn_sim *sim, int32_t p, int32_t l)
{
    if (sim->arrivals == sim->arrivals_room) {
        int32_t room = sim->arrivals_room ? 2 * sim->arrivals_room : 256;
        ibn_arrival *larger = realloc(sim->arrival, (size_t)room * sizeof *larger);
        if (!larger) {
            sim->failed = 1;
            return;
        }
        sim->arrival = larger;
        sim->arrivals_room = room;
    }
    int32_t input = sim->far_end[sim->packet[p].channel].in_index;
    sim->arrival[sim->arrivals++] = (ibn_arrival){l, input, p};
}

static int compare_arrivals(const void *a, const void *b)
{
    const ibn_arrival *one = a, *other = b;
    if (one->vc != other->vc)
        return one->vc < other->vc ? -1 : 1;
    return (one->input > other->input) - (one->input < other->input);
}

/* Call the hook `queued` for all packets that were queued in this tick. */
void ibn_simulate_call_queued(ibn_sim *sim)
{
    qsort(sim->arrival, (size_t)sim->arrivals, sizeof *sim->arrival, compare_arrivals);
    for (int32_t i = 0; i < sim->arrivals; i++) {
        CALL(queued, sim->arrival[i].packet, sim->arrival[i].vc);
    }
    sim->arrivals = 0;
}

void ibn_simulate_on_delivered(ibn_sim *sim, int32_t p)
{
    CALL(delivered, p);
}

void ibn_simulate_on_lost(ibn_sim *sim, int32_t p)
{
    CALL(lost, p);
}

/* Call the timer hook of a mechanism.  The upper bits of the event's subject are the number of the mechanism. */
void ibn_simulate_on_timer(ibn_sim *sim, int32_t subject, int32_t value)
{
    ibn_attached *self = &sim->attached[subject >> IBN_TIMER_BITS];
    self->kind->timer(sim, self, subject & ((1 << IBN_TIMER_BITS) - 1), value);
}

void ibn_simulate_command(ibn_sim *sim, int32_t index, const int64_t *numbers, int64_t count)
{
    ibn_attached *self = &sim->attached[index];
    if (self->kind->command)
        self->kind->command(sim, self, numbers, count);
}

int64_t ibn_simulate_read(const ibn_sim *sim, int32_t index, int64_t most, int64_t *numbers)
{
    const ibn_attached *self = &sim->attached[index];
    return self->kind->read ? self->kind->read(sim, self, most, numbers) : 0;
}
