/* Arbitration of channels: choose a packet that may be sent, and send the packet.
 *
 * An input of a switch is a channel into the switch.  An input of a CA is a flow of the CA.
 *
 * Functions with the argument `plain` are compiled twice.  The copy for plain = 1 leaves out the code for rarely used
 * options. */
#include <string.h>

#include "simulate/internal/arbiter.h"
#include "simulate/internal/flow.h"
#include "simulate/internal/queue.h"

/* Return the input that channel c serves on VL `vl`.  VC l is the pair of channel c and this VL.  Return IBN_NONE if no
 * input may send, or if the first packet of the chosen input needs more credits than VC l has.
 *
 * The most frequent case is handled here without a function call: round robin, no special options, and an input that
 * can send. */
IBN_SPECIALIZED int32_t input_to_serve(ibn_sim *sim, int32_t c, const ibn_channel *channel, int32_t l, int vl,
                                       int plain)
{
    const ibn_vc *vc = &sim->vc[l];
    if (!plain && (!sim->in_turn || sim->hooks & IBN_HOOK_ROOM || vc->pass || vc->only != IBN_NONE))
        return ibn_simulate_input_that_fits(sim, c, vl);
    uint64_t ahead = vc->mask & (~0ull << (vc->next_input & 63));
    int32_t input = __builtin_ctzll(ahead ? ahead : vc->mask), p = ibn_simulate_queue(sim, channel, vl, input)->head;
    if (sim->packet[p].blocks > ibn_simulate_credits(vc))
        return IBN_NONE;
    if (plain || ibn_simulate_input_free_at(sim, c, input) <= sim->now)
        return input;
    return ibn_simulate_input_that_fits(sim, c, vl);
}

/* Choose the VL and the input that channel c serves.  Return IBN_NONE if no packet can be sent. */
IBN_SPECIALIZED int choose_vl(ibn_sim *sim, int32_t c, const ibn_channel *channel, int32_t *input, int plain)
{
    int32_t first = c * sim->vls;
    if (!plain && sim->options.arbiters)
        return ibn_simulate_choose_by_tables(sim, c, input);
    /* If packets are queued on one VL only, which is the most frequent case, this shorter code is used.  The loop below
     * needs many more instructions. */
    if (!(channel->vls & (channel->vls - 1))) {
        int vl = __builtin_ctz(channel->vls);
        *input = input_to_serve(sim, c, channel, first + vl, vl, plain);
        return *input == IBN_NONE ? IBN_NONE : vl;
    }
    /* `turns` has the bits of channel->vls, rotated so that bit 0 stands for VL channel->next_vl.  So the lowest set
     * bit of `turns` stands for the VL that is served next. */
    uint64_t turns = channel->vls * 0x10001ull >> channel->next_vl & 0xFFFF;
    for (; turns; turns &= turns - 1) {
        int vl = (__builtin_ctzll(turns) + channel->next_vl) & 15;
        if ((*input = input_to_serve(sim, c, channel, first + vl, vl, plain)) != IBN_NONE)
            return vl;
    }
    return IBN_NONE;
}

/* Account for a packet that begins to leave its input buffer or its source CA.  The tail of the packet leaves at tick
 * `end`.  From then on, the blocks of the packet in the input buffer are free, and their credits return. */
IBN_SPECIALIZED void leave(ibn_sim *sim, ibn_packet *packet, int64_t end, int plain)
{
    if (packet->vc == IBN_NONE) {
        sim->injected++;
        sim->injected_bytes += packet->bytes;
        ibn_simulate_flow_sent(&sim->flow[packet->flow], packet, sim->now);
        return;
    }
    if (!plain)
        sim->vc[packet->vc].held = (int32_t)((uint32_t)sim->vc[packet->vc].held - packet->blocks);
    ibn_simulate_give_back(sim, packet->channel, packet->vc, packet->blocks, end, plain);
    if (!plain && sim->options.speedup)
        ibn_simulate_occupy_input(sim, packet->channel, end);
    if (!plain && sim->options.single_fifo)
        ibn_simulate_at(sim, end, EV_EXPOSE, packet->vc, 0);
}

/* Send packet p from the queue of an input, on a VL of channel c. */
IBN_SPECIALIZED void send(ibn_sim *sim, int32_t c, ibn_channel *channel, int vl, int32_t input, int32_t p, int plain)
{
    int32_t l = c * sim->vls + vl;
    ibn_vc *vc = &sim->vc[l];
    ibn_packet *packet = &sim->packet[p];
    ibn_simulate_dequeue(sim, l, vl, input, p, channel, plain);
    int64_t end = ibn_simulate_send_end(channel, packet, sim->now);
    channel->wait += sim->now - channel->busy;
    channel->bytes += packet->bytes;
    channel->packets++;
    channel->busy = end;
    vc->fctbs += (uint32_t)packet->blocks;
    vc->sent = end;
    if (!plain) {
        vc->flying = (int32_t)((uint32_t)vc->flying + packet->blocks);
        if (vc->pass)
            vc->pass--;
        vc->dropped_in_row = 0;
    }
    vc->next_input = input + 1;
    channel->next_vl = (unsigned)(vl + 1) & 0xFF;
    sim->hops++;
    sim->last_move = sim->now;
    int from_source = packet->vc == IBN_NONE;
    leave(sim, packet, end, plain);
    packet->vc = l;
    packet->channel = c;
    packet->tail = end + channel->wire;
    /* The event is EV_ARRIVE if the channel leads to a switch, and EV_DELIVER if it leads to a CA.  One call schedules
     * either event, because a branch here would often be mispredicted. */
    int64_t time = channel->hop ? sim->now + channel->hop : packet->tail;
    ibn_simulate_at(sim, time, channel->hop ? EV_ARRIVE : EV_DELIVER, p, 0);
    if (from_source) {
        int32_t flow = packet->flow;
        sim->flow[flow].head = IBN_NONE;
        /* A hook may create packets, for which the array of packets may be moved in memory.  So the pointer `packet`
         * must not be used afterwards. */
        if (sim->hooks & IBN_HOOK_SENT)
            ibn_simulate_on_sent(sim, p);
        ibn_simulate_prepare(sim, flow);
    }
}

/* Send one packet on channel c with ARBITER_CROSSBAR.  Return 0 if no packet can be sent, else 1.  This function is not
 * inlined, because a smaller caller is faster in simulations with another arbitration. */
static __attribute__((noinline)) int send_from_crossbar_input(ibn_sim *sim, int32_t c, ibn_channel *channel)
{
    ibn_candidate next = ibn_simulate_choose_by_crossbar_input(sim, c);
    if (next.p == IBN_NONE)
        return 0;
    ibn_simulate_end_turn(sim, channel, &next);
    send(sim, c, channel, next.vl, next.input, next.p, 0);
    return 1;
}

/* Send one packet on channel c, if the channel is free and a packet can be sent. */
IBN_SPECIALIZED void arbitrate(ibn_sim *sim, int32_t c, int plain)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t input;
    if (!channel->vls || channel->busy > sim->now)
        return;
    if (!plain && sim->options.arbitration == ARBITER_CROSSBAR) {
        if (!send_from_crossbar_input(sim, c, channel))
            return;
    } else {
        int vl = choose_vl(sim, c, channel, &input, plain);
        if (vl == IBN_NONE)
            return;
        send(sim, c, channel, vl, input, ibn_simulate_queue(sim, channel, vl, input)->head, plain);
    }
    if (channel->vls && !channel->called) {
        channel->called = 1;
        ibn_simulate_at(sim, channel->busy, EV_FREE, c, 0);
    }
}

/* Prefetch the state of the first VC of channel c that has packets queued, because the channel will probably serve this
 * VC.  The state of a large network does not fit into the caches. */
static inline void fetch(const ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    if (channel->vls) {
        int64_t l = (int64_t)c * sim->vls + __builtin_ctz(channel->vls);
        __builtin_prefetch(&sim->vc[l]);
    }
}

/* Arbitrate all channels that events of this tick concern.  Meanwhile, the state of the next channels is prefetched.
 *
 * The channel that was added last comes first, because the caches probably still have its state. */
IBN_SPECIALIZED void arbitrate_touched(ibn_sim *sim, int plain)
{
    while (sim->touches) {
        int32_t i = --sim->touches, c = sim->touched[i];
        if (i > 1)
            fetch(sim, sim->touched[i - 2]);
        sim->channel[c].touched = 0;
        arbitrate(sim, c, plain);
    }
}

/* Arbitrate those channels of a switch whose bits are set in sim->outputs, in cyclic order, and clear the bits.
 *
 * If several channels could serve an input, the first channel in this order serves the input.  So the result does not
 * depend on the order of events within a tick.  If several bits are set, the order begins with a random channel. */
static void arbitrate_switch(ibn_sim *sim, int32_t device)
{
    uint64_t *mask = &sim->outputs[device * IBN_PORT_WORDS];
    int32_t outputs = sim->out_first[device + 1] - sim->out_first[device], words = (outputs + 63) >> 6, first = 0;
    if (mask[0] & (mask[0] - 1) || mask[1] | mask[2] | mask[3]) {
        uint64_t key = ibn_simulate_key(sim->options.seed, 8, (uint64_t)device);
        first = (int32_t)((ibn_simulate_number(key, (uint64_t)sim->now) >> 32) * (uint64_t)outputs >> 32);
    }
    for (int round = 0; round < 2; round++) {
        for (int32_t w = 0; w < words; w++) {
            uint64_t ahead = w == first >> 6 ? ~0ull << (first & 63) : w > first >> 6 ? ~0ull : 0;
            for (uint64_t rest = mask[w] & (round ? ~ahead : ahead); rest; rest &= rest - 1)
                arbitrate(sim, sim->out_first[device] + w * 64 + __builtin_ctzll(rest), 0);
        }
    }
    memset(mask, 0, IBN_PORT_WORDS * sizeof *mask);
}

/* Arbitrate the channels out of switches that events of this tick concern, one switch after the other.  The channels
 * out of CAs stay in the list sim->touched, and are arbitrated later.  This function is not inlined, because a smaller
 * caller is faster in simulations whose crossbars have no limit. */
static __attribute__((noinline)) void arbitrate_by_switch(ibn_sim *sim)
{
    int32_t switches = 0, rest = 0;
    for (int32_t i = 0; i < sim->touches; i++) {
        int32_t c = sim->touched[i];
        ibn_channel *channel = &sim->channel[c];
        if (!channel->from_switch) {
            sim->touched[rest++] = c;
            continue;
        }
        channel->touched = 0;
        if (!channel->vls || channel->busy > sim->now)
            continue;
        int32_t output = c - sim->out_first[channel->src];
        uint64_t *mask = &sim->outputs[channel->src * IBN_PORT_WORDS];
        if (!(mask[0] | mask[1] | mask[2] | mask[3]))
            sim->competing[switches++] = channel->src;
        mask[output >> 6] |= 1ull << (output & 63);
    }
    sim->touches = rest;
    for (int32_t i = 0; i < switches; i++)
        arbitrate_switch(sim, sim->competing[i]);
}

/* Arbitrate all channels that events of this tick concern.  In a simulation of adaptive switches, serve the devices
 * that these events concern instead. */
void ibn_simulate_arbitrate(ibn_sim *sim)
{
    if (sim->options.speedup)
        arbitrate_by_switch(sim);
    if (sim->plain)
        arbitrate_touched(sim, 1);
    else if (sim->adaptive)
        ibn_simulate_adaptive_serve(sim);
    else
        arbitrate_touched(sim, 0);
}
