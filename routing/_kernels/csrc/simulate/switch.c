/* Handle packets that arrive at a switch or at a CA.  A switch puts arrived packets into output queues.
 *
 * Functions with the argument `plain` are compiled twice.  The copy for plain = 1 leaves out the code for rarely used
 * options. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

#define NO_VL 15

/* The next functions handle lost packets, which are rare.  These functions are not inlined, so that the code for all
 * other packets stays small and fast. */

/* Discard packet p at a switch, and count the packet as lost. */
static __attribute__((noinline)) void discard(ibn_sim *sim, int32_t p)
{
    sim->vc[sim->packet[p].vc].held -= sim->packet[p].blocks;
    ibn_simulate_lose(sim, p);
}

/* Discard packet p at a switch, because its out-port `port` has no link that is up (`out` is IBN_NONE), or because
 * channel `out` leads back along the link by which the packet came. */
static __attribute__((noinline)) void discard_without_link(ibn_sim *sim, int32_t p, int32_t out, int port)
{
    int32_t channel = sim->packet[p].channel, device = sim->far_end[channel].device;
    int32_t down = out == IBN_NONE ? ibn_simulate_down_at(sim, device, port) : IBN_NONE;
    if (down == IBN_NONE) {
        sim->counters[channel].relay++;
    } else {
        sim->counters[down].discards++;
        sim->counters[down].down++;
    }
    discard(sim, p);
}

/* Discard packet p at a switch, because the tables name no VL for channel `out` (`stalled` is 0), or because this VL is
 * stalled (`stalled` is 1). */
static __attribute__((noinline)) void discard_for_vl(ibn_sim *sim, int32_t p, int32_t out, int stalled)
{
    sim->counters[out].discards++;
    sim->counters[out].stalled += stalled;
    discard(sim, p);
}

/* Lose packet p, which has arrived at a buffer without room for the packet. */
static __attribute__((noinline)) void overrun(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    sim->counters[packet->channel].overrun++;
    ibn_simulate_note(sim, LOG_OVERRUN, packet->vc, packet->lid, packet->blocks, 0);
    ibn_simulate_lose(sim, p);
}

/* The output queue of a packet at a switch. */
typedef struct {
    int32_t packet, /* the packet */
        channel,    /* channel by which the packet leaves the switch */
        vl,         /* VL of the packet on this channel */
        input;      /* input by which the packet has arrived */
} output_of;

/* Look up the output queue of packet p at a switch, and set *output.  Return 0 if the packet was dropped, else 1. */
IBN_SPECIALIZED int look_up(ibn_sim *sim, int32_t p, output_of *output, int plain)
{
    const ibn_packet *packet = &sim->packet[p];
    const ibn_far_end *from = &sim->far_end[packet->channel];
    int32_t device = from->device;
    int port = sim->lft[(int64_t)device * sim->lids + packet->lid];
    int32_t out = sim->at_port[device * 256 + port];
    if (!plain && sim->hooks & IBN_HOOK_OUTPUT)
        out = ibn_simulate_other_output(sim, p, out);
    if (out == IBN_NONE || out == from->reverse) {
        discard_without_link(sim, p, out, port);
        return 0;
    }
    int vl = sim->sl2vl[from->sl2vl_row + port * from->sl2vl_step + packet->sl];
    if (vl >= sim->vls || vl == NO_VL) {
        discard_for_vl(sim, p, out, 0);
        return 0;
    }
    if (!plain)
        vl = ibn_simulate_choose_vl(sim, p, out, vl);
    if (!plain && sim->vc[out * sim->vls + vl].stalled) {
        discard_for_vl(sim, p, out, 1);
        return 0;
    }
    *output = (output_of){p, out, vl, from->in_index};
    return 1;
}

/* Put packet p into its output queue at a switch.  Return 0 if the packet was dropped, else 1. */
static int forward(ibn_sim *sim, int32_t p)
{
    output_of output;
    if (!look_up(sim, p, &output, 0))
        return 0;
    ibn_simulate_enqueue(sim, p, output.channel, output.vl, output.input, 0);
    if (sim->hooks & IBN_HOOK_QUEUED)
        ibn_simulate_on_queued(sim, p, output.channel * sim->vls + output.vl);
    return 1;
}

/* Store packet p, whose head can be forwarded now, in the input buffer of its switch, and put the packet into its
 * output queue.  With a single FIFO, only the first packet of the input is put into an output queue. */
static inline void arrive(ibn_sim *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    int32_t l = packet->vc;
    ibn_vc *vc = &sim->vc[l];
    vc->flying -= packet->blocks;
    if (vc->held + packet->blocks > vc->buffer + vc->reserve) {
        overrun(sim, p);
        return;
    }
    vc->held += packet->blocks;
    packet->ready = sim->now;
    if (sim->options.xoff)
        ibn_simulate_look_at(sim, l);
    if (sim->options.single_fifo) {
        ibn_watch *watch = &sim->watch[l];
        ibn_simulate_append(sim, &watch->hidden, p);
        if (!watch->busy_input)
            ibn_simulate_expose(sim, l);
        return;
    }
    forward(sim, p);
}

/* Put the first packet of a single FIFO into its output queue.  If this packet is dropped, the next packet is put into
 * its output queue instead. */
void ibn_simulate_expose(ibn_sim *sim, int32_t l)
{
    ibn_watch *watch = &sim->watch[l];
    watch->busy_input = 0;
    while (!watch->busy_input && watch->hidden.head != IBN_NONE) {
        int32_t p = watch->hidden.head;
        watch->hidden.head = sim->packet[p].next;
        watch->busy_input = (uint8_t)forward(sim, p);
    }
}

/* Count packet p, which its destination CA has received, and free its memory. */
static inline void got(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    ibn_simulate_flow_got(&sim->flow[packet->flow], packet, sim->now, sim->latencies);
    if (ibn_simulate_flow_opens(&sim->flow[packet->flow]))
        ibn_simulate_at(sim, sim->now + 1, EV_INJECT, packet->flow, 0);
    sim->delivered++;
    sim->delivered_bytes += packet->bytes;
    if (sim->hooks & IBN_HOOK_DELIVERED)
        ibn_simulate_on_delivered(sim, p);
    ibn_simulate_free_packet(sim, p);
}

void ibn_simulate_got(ibn_sim *sim, int32_t p)
{
    got(sim, p);
}

/* Let a CA take packet p out of its buffer.  The credits reach the switch after the delay of the wire, as on any other
 * channel.  A simulation with pauses (option xoff) has no credits.  There the CA need not pause the switch, because the
 * buffer of a CA never fills up. */
static inline void take(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    if (sim->options.xoff)
        sim->vc[packet->vc].fccl += (uint32_t)packet->blocks;
    else
        ibn_simulate_give_back(sim, packet->channel, packet->vc, packet->blocks, sim->now, sim->plain);
    if (sim->lid_device[packet->lid] != sim->far_end[packet->channel].device) {
        /* The CA does not own the destination LID of the packet, so the packet is lost.  This can happen only after a
         * change of the tables. */
        sim->counters[packet->channel].relay++;
        ibn_simulate_gone(sim, p);
    } else {
        got(sim, p);
    }
}

/* Let a CA take packet p, which a mechanism has left in the CA's buffer. */
void ibn_simulate_take(ibn_sim *sim, int32_t p)
{
    sim->vc[sim->packet[p].vc].held -= sim->packet[p].blocks;
    take(sim, p);
}

/* Deliver packet p to a CA.  The CA takes the packet at once, unless a mechanism leaves the packet in the CA's
 * buffer. */
static inline void deliver(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    ibn_vc *vc = &sim->vc[packet->vc];
    if (!sim->plain)
        vc->flying -= packet->blocks;
    if (sim->hooks & IBN_HOOK_ARRIVED) {
        vc->held += packet->blocks;
        if (!ibn_simulate_on_arrived(sim, p))
            return;
        vc->held -= packet->blocks;
    }
    take(sim, p);
}

/* Prefetch the packets of a batch of events, because many of these packets are not in the first-level cache. */
static inline void fetch(const ibn_sim *sim, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        __builtin_prefetch(&sim->packet[sim->event[i].subject]);
}

/* Put the packets of a batch of events into their output queues.
 *
 * All output queues are looked up before the first packet is put into its queue.  So the processor loads the state of
 * several queues from memory at one time. */
static void arrive_plain(ibn_sim *sim, uint32_t from, uint32_t to)
{
    output_of outputs[IBN_BATCH];
    int32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        sim->packet[sim->event[i].subject].ready = sim->now;
        if (!look_up(sim, sim->event[i].subject, &outputs[count], 1))
            continue;
        __builtin_prefetch(&sim->channel[outputs[count].channel]);
        __builtin_prefetch(&sim->vc[outputs[count].channel * sim->vls + outputs[count].vl]);
        count++;
    }
    for (const output_of *output = outputs; output < outputs + count; output++)
        ibn_simulate_enqueue(sim, output->packet, output->channel, output->vl, output->input, 1);
}

/* Handle a batch of events, each for a packet whose head can now be forwarded at a switch. */
void ibn_simulate_arrive(ibn_sim *sim, uint32_t from, uint32_t to)
{
    fetch(sim, from, to);
    if (sim->plain) {
        arrive_plain(sim, from, to);
        return;
    }
    for (uint32_t i = from; i < to; i++)
        arrive(sim, sim->event[i].subject);
}

/* Handle a batch of events, each for a packet whose tail has reached a CA. */
void ibn_simulate_deliver(ibn_sim *sim, uint32_t from, uint32_t to)
{
    fetch(sim, from, to);
    for (uint32_t i = from; i < to; i++)
        deliver(sim, sim->event[i].subject);
}
