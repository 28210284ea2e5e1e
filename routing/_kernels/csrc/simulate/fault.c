/* Links that go down and come up again during a simulation.
 *
 * A packet is on a link to a switch until its head has arrived, and on a link to a CA until its tail has arrived.  The
 * array sim->at_port has the channel that leaves each device by each port.  While the link of a channel is down, the
 * array has IBN_NONE instead of the channel, and the channel counts as busy until tick IBN_NEVER. */
#include "simulate/internal/sim.h"

#include <stdlib.h>

/* Return a pointer to the element of sim->at_port for the port by which channel c leaves its device. */
static int32_t *port_of(const ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    return &sim->at_port[channel->src * 256 + sim->channel[channel->reverse].dst_port];
}

/* Return the channel that leaves a device by a port, if the link of this channel is down.  Otherwise return
 * IBN_NONE. */
int32_t ibn_simulate_down_at(const ibn_sim *sim, int32_t device, int port)
{
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t c = sim->out_channel[i];
        if (sim->channel[c].busy == IBN_NEVER && sim->channel[sim->channel[c].reverse].dst_port == port)
            return c;
    }
    return IBN_NONE;
}

/* Return whether an event is cancelled because channel c goes down.  If the event concerns a packet on channel c,
 * count the packet as lost. */
static int lose_on_wire(ibn_sim *sim, int kind, int32_t subject, int32_t c)
{
    if (kind == EV_FREE)
        return subject == c;
    if ((kind != EV_ARRIVE && kind != EV_DELIVER) || sim->packet[subject].channel != c)
        return 0;
    const ibn_packet *packet = &sim->packet[subject];
    if (packet->vc == IBN_NONE) {
        ibn_simulate_adaptive_lose_saved(sim, subject);
    } else {
        ibn_vc *vc = &sim->vc[packet->vc];
        /* The fast code (sim->plain is 1) does not keep `flying` up to date.  So this number of blocks may wrap around,
         * and the difference is computed with unsigned numbers. */
        vc->flying = (int32_t)((uint32_t)vc->flying - (uint32_t)packet->blocks);
        /* Return the credits of the lost packet, because the sender needs all credits when the link comes up again. */
        vc->fccl += packet->blocks;
    }
    sim->counters[c].down++;
    ibn_simulate_gone(sim, subject);
    return 1;
}

/* Remove from slot s of the timing wheel the events of one kind that are cancelled because channel c goes down.  To do
 * this, remove all events of this kind from the slot, and add those that are not cancelled to the slot again. */
static void clear_slot(ibn_sim *sim, int32_t s, int kind, int32_t c)
{
    uint32_t place = sim->slot[s * IBN_SLOT + kind];
    sim->slot[s * IBN_SLOT + kind] = 0;
    for (; place; place = ibn_simulate_batch_before(sim, place)) {
        for (uint32_t i = ibn_simulate_first_event(place); i < place; i++) {
            ibn_event event = sim->event[i];
            if (lose_on_wire(sim, kind, event.subject, c))
                sim->moving--;
            else
                ibn_simulate_put(sim, s, kind, event.subject, event.value);
        }
    }
}

/* Remove from the heap the events that are cancelled because channel c goes down.  The heap is rebuilt in a new array,
 * because the loss of a packet may add several events to the heap. */
static void clear_heap(ibn_sim *sim, int32_t c)
{
    ibn_distant *before = sim->heap;
    int32_t count = sim->heap_size;
    sim->heap = NULL;
    sim->heap_size = sim->heap_room = 0;
    for (int32_t h = 0; h < count; h++) {
        ibn_distant distant = before[h];
        if (lose_on_wire(sim, distant.kind, distant.event.subject, c))
            sim->moving--;
        else
            ibn_simulate_heap_push(sim, distant.time, distant.kind, distant.event);
    }
    free(before);
}

/* Remove all packets that are on channel c, and count them as lost. */
static void lose_on_wires(ibn_sim *sim, int32_t c)
{
    for (int32_t s = 0; s < sim->slots; s++)
        for (int kind = 0; kind < EV_LATER; kind++)
            clear_slot(sim, s, kind, c);
    clear_heap(sim, c);
}

/* Drop the packets that are queued at a switch for channel c.  Packets that are queued at a CA are kept, because they
 * were not sent yet. */
static void lose_waiting(ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    if (!channel->from_switch)
        return;
    for (int32_t q = 0; q < channel->inputs * sim->vls; q++) {
        while (sim->queue[channel->queues + q].head != IBN_NONE) {
            sim->counters[c].down++;
            ibn_simulate_drop(sim, c, c * sim->vls + q / channel->inputs, q % channel->inputs);
        }
    }
}

/* Take down channel c, one direction of a link.  The packets on the channel are lost, and so are the packets that a
 * switch has queued for the channel.  The channel sends no further packets. */
static void take_down(ibn_sim *sim, int32_t c)
{
    lose_on_wires(sim, c);
    lose_waiting(sim, c);
    *port_of(sim, c) = IBN_NONE;
    sim->channel[c].busy = IBN_NEVER;
    /* The field `called` is 1 while an EV_FREE event is pending, so that no further one is scheduled.  A channel that
     * is down needs no EV_FREE event.  So the field is set to 1, which prevents such an event. */
    sim->channel[c].called = 1;
    if (sim->adaptive)
        ibn_simulate_adaptive_link(sim, c, 1);
}

/* Take both directions of a link down.  Return the number of packets lost, or -1 if the link is already down. */
int64_t ibn_simulate_fail(ibn_sim *sim, int32_t c)
{
    if (sim->channel[c].busy == IBN_NEVER)
        return -1;
    int64_t before = sim->dropped;
    take_down(sim, c);
    take_down(sim, sim->channel[c].reverse);
    int64_t lost = sim->dropped - before;
    ibn_simulate_look_full(sim);
    ibn_simulate_look_empty(sim);
    ibn_simulate_note(sim, LOG_FAILED, c, lost, 0, 0);
    return lost;
}

/* Bring both directions of a link up.  Return 0, or -1 if the link is not down. */
int ibn_simulate_restore(ibn_sim *sim, int32_t c)
{
    const int32_t both[] = {c, sim->channel[c].reverse};
    if (sim->channel[c].busy != IBN_NEVER)
        return -1;
    for (int side = 0; side < 2; side++) {
        *port_of(sim, both[side]) = both[side];
        sim->channel[both[side]].busy = sim->now;
        ibn_simulate_at(sim, sim->now + 1, EV_FREE, both[side], 0);
        if (sim->adaptive)
            ibn_simulate_adaptive_link(sim, both[side], 0);
    }
    ibn_simulate_note(sim, LOG_RESTORED, c, 0, 0, 0);
    return 0;
}
