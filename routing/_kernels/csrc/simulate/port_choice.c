/* Choice of ports: a switch chooses the out-port of an arriving packet by load.  The packet gets the port that the
 * tables name, unless this port has a load of several packets.  In that case, the packet gets the least loaded port of
 * its port group.
 *
 * The load of a port is the number of packets that are queued for its channel, on all VLs, at the beginning of the
 * tick.  A packet that is being sent counts as well.  A port whose link is down is not chosen.  If several ports have
 * the lowest load, the input and the tick determine which port is taken.  A packet that is queued keeps its port.
 *
 * An engine balances the tables over the whole fabric, but a switch compares only its own queues.  So the switch leaves
 * the table's port only if the queue of this port delays the packet.  Otherwise packets would leave the balanced paths
 * although the table's port was about to become free, and other switches would get longer queues.
 *
 * See routing/simulate/mechanisms/port_choice.py. */
#include "simulate/internal/mechanism.h"

#include <stdlib.h>

/* largest load, in packets, at which a switch keeps the port of the table */
#define KEPT_LOAD 1

/* Port groups, and the loads that have been looked up in the present tick. */
typedef struct {
    int32_t columns,  /* number of columns of `first`, one for each set of LIDs; at every switch, all LIDs of a set have
                       * the same port group */
        *lid_column,  /* [lids] column of each LID in `first`; IBN_NONE: the LID has no port groups */
        *first,       /* [switches * columns + 1] for each switch and column: index in `choice` of the first channel of
                       * the port group */
        *choice,      /* channels of the port groups, sorted by switch and column */
        *load;        /* [channels] load of each channel, in packets, at the beginning of tick seen[channel] */
    int64_t *seen;    /* [channels] tick in which the load of the channel was looked up last, or -1 */
    int64_t choices,  /* number of times that a packet could choose among several ports whose links were up */
        others;       /* number of choices in which the packet took another port than the port of the tables */
} port_choice;

/* Copy `count` numbers to a new array of int32.  Return this array, or NULL if memory runs out. */
static int32_t *narrow(const int64_t *numbers, int64_t count)
{
    int32_t *copy = malloc((size_t)(count + 1) * sizeof *copy);
    for (int64_t i = 0; copy && i < count; i++)
        copy[i] = (int32_t)numbers[i];
    return copy;
}

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    port_choice *state = self->state;
    state->columns = (int32_t)numbers[0];
    int64_t firsts = (int64_t)sim->switches * state->columns + 1, choices = count - 1 - sim->lids - firsts;
    state->lid_column = narrow(numbers + 1, sim->lids);
    state->first = narrow(numbers + 1 + sim->lids, firsts);
    state->choice = narrow(numbers + 1 + sim->lids + firsts, choices);
    state->load = malloc((size_t)sim->channels * sizeof *state->load);
    state->seen = malloc((size_t)sim->channels * sizeof *state->seen);
    if (!state->lid_column || !state->first || !state->choice || !state->load || !state->seen)
        return 1;
    for (int32_t c = 0; c < sim->channels; c++)
        state->seen[c] = -1;
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    const port_choice *state = self->state;
    (void)sim;
    free(state->lid_column);
    free(state->first);
    free(state->choice);
    free(state->load);
    free(state->seen);
}

/* Return the load of channel c at the beginning of the present tick.
 *
 * Packets of the present tick must not count, because they arrive in any order.  So the load is looked up before the
 * first packet of the tick is queued for the channel. */
static int32_t load_of(const ibn_sim *sim, port_choice *state, int32_t c)
{
    if (state->seen[c] != sim->now) {
        state->seen[c] = sim->now;
        state->load[c] = sim->channel[c].busy > sim->now;
        for (int32_t vl = 0; vl < sim->vls; vl++)
            state->load[c] += sim->vc[c * sim->vls + vl].waiting;
    }
    return state->load[c];
}

/* Return the number of the port, out of `count` ports, with which the search for the least loaded port begins.
 *
 * The number depends on the input and on a hash of the tick.  So packets of one input do not always take the same port
 * if several ports have the same load. */
static int32_t begin_with(const ibn_sim *sim, const ibn_far_end *from, int32_t count)
{
    uint32_t hash = (uint32_t)sim->now * 2654435761u >> 16;
    return (int32_t)((hash + (uint32_t)from->in_index) % (uint32_t)count);
}

/* Return the channel of a port group that an arriving packet takes, or IBN_NONE if the links of all ports are down.
 *
 * The group consists of the channels group[0] to group[count - 1], and the search for the least load begins at
 * group[start].  `usual` is the channel of the table.  *up receives the number of channels whose links are up. */
static int32_t choose(const ibn_sim *sim, port_choice *state, const int32_t *group, int32_t count, int32_t start,
                      int32_t usual, int32_t *up)
{
    int32_t best = IBN_NONE, keeps = 0;
    *up = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t c = group[(start + i) % count];
        if (sim->channel[c].busy == IBN_NEVER)
            continue;
        ++*up;
        if (best == IBN_NONE || load_of(sim, state, c) < load_of(sim, state, best))
            best = c;
        keeps |= c == usual && load_of(sim, state, c) <= KEPT_LOAD;
    }
    return keeps ? usual : best;
}

/* Hook: choose one channel of the port group that the switch has for the packet, and return this channel.  Return
 * channel `usual` of the table if the group is empty, or if the links of all its channels are down. */
static int32_t output(ibn_sim *sim, ibn_attached *self, int32_t p, int32_t usual)
{
    port_choice *state = self->state;
    const ibn_packet *packet = &sim->packet[p];
    const ibn_far_end *from = &sim->far_end[packet->channel];
    int32_t column = state->lid_column[packet->lid], up;
    const int32_t *first = &state->first[(int64_t)from->device * state->columns + (column == IBN_NONE ? 0 : column)];
    int32_t count = column == IBN_NONE ? 0 : first[1] - first[0], start = count ? begin_with(sim, from, count) : 0;
    int32_t chosen = choose(sim, state, &state->choice[first[0]], count, start, usual, &up);
    state->choices += up > 1;
    state->others += up > 1 && chosen != usual;
    if (chosen == IBN_NONE)
        chosen = usual;
    if (chosen != IBN_NONE)
        load_of(sim, state, chosen);
    return chosen;
}

/* Write two results: how often a packet could choose among several ports, and how often it then took another port than
 * the port of the table. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const port_choice *state = self->state;
    if (most >= 2) {
        numbers[0] = state->choices;
        numbers[1] = state->others;
    }
    return 2;
}

IBN_MECHANISM(port_choice) = {
    .name = "port-choice", .bytes = sizeof(port_choice), .attach = attach, .detach = detach, .output = output,
    .read = read,
};
