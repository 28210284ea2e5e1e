/* Output queues of channels, and the return of credits when packets leave a buffer.
 *
 * Functions with the argument `plain` are compiled twice.  The copy for plain = 1 leaves out the code for rarely used
 * options. */
#pragma once

#include "simulate/internal/sim.h"

/* Return credits for `blocks` blocks of the buffer of a VC to the sender of channel c.  The blocks are free from tick
 * `when` on. */
IBN_SPECIALIZED void ibn_simulate_give_back(ibn_sim *sim, int32_t c, int32_t vc, int32_t blocks, int64_t when,
                                            int plain)
{
    if (!plain)
        sim->vc[vc].returning = (int32_t)((uint32_t)sim->vc[vc].returning + (uint32_t)blocks);
    if (plain || !sim->freed_first) {
        ibn_simulate_at(sim, when + sim->far_end[c].wire, EV_CREDIT, vc, blocks);
        return;
    }
    ibn_simulate_at(sim, when > sim->now ? when : sim->now + 1, EV_FREED, vc, blocks);
}

/* Return the tick at which the tail of a packet will have left, if the channel begins to send the packet now.
 *
 * The time of the packet on the channel is rounded down to whole ticks, but is at least one tick.  The fraction of a
 * tick that was cut off is added to the time of the channel's next packet.  The tail cannot leave before the tail has
 * arrived. */
IBN_SPECIALIZED int64_t ibn_simulate_send_end(ibn_channel *channel, const ibn_packet *packet, int64_t now)
{
    int64_t work = packet->bytes * channel->cost + channel->carry, length = work >> IBN_COST_BITS;
    int64_t end = now + (length ? length : 1);
    channel->carry = (int32_t)(work & ((1 << IBN_COST_BITS) - 1));
    return packet->tail > end ? packet->tail : end;
}

/* Return the queue at a channel for one VL and one input of the sending device. */
static inline ibn_fifo *ibn_simulate_queue(const ibn_sim *sim, const ibn_channel *channel, int32_t vl, int32_t input)
{
    return &sim->queue[channel->queues + vl * channel->inputs + input];
}

/* Return a pointer to the 64-bit word that has the bit of an input, in the mask of VC l.  In this mask, the bit of each
 * input that has packets queued for the VC is set. */
IBN_SPECIALIZED uint64_t *ibn_simulate_word(const ibn_sim *sim, int32_t l, int32_t input, int plain)
{
    return plain ? &sim->vc[l].mask : &ibn_simulate_mask(sim, l)[input >> 6];
}

/* Append packet p to the queue of an input at channel c.  The channel is arbitrated as soon as it is free. */
IBN_SPECIALIZED void ibn_simulate_enqueue(ibn_sim *sim, int32_t p, int32_t c, int32_t vl, int32_t input, int plain)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl;
    ibn_vc *vc = &sim->vc[l];
    ibn_fifo *queue = ibn_simulate_queue(sim, channel, vl, input);
    ibn_packet *packet = &sim->packet[p];
    int64_t now = sim->now;
    packet->next = IBN_NONE;
    packet->headed = now;
    if (queue->head == IBN_NONE) {
        queue->head = p;
        *ibn_simulate_word(sim, l, input, plain) |= 1ull << (input & 63);
    } else {
        sim->packet[queue->tail].next = p;
    }
    queue->tail = p;
    /* channel->wait adds up waiting time from tick channel->busy on.  If all queues of the channel were empty until
     * now, earlier ticks must not count, so channel->busy becomes at least the present tick.  The code has no branch,
     * because the branch would often be mispredicted. */
    int64_t since = channel->vls ? INT64_MIN : now;
    channel->busy = channel->busy > since ? channel->busy : since;
    channel->vls |= 1u << vl & 0xFFFF;
    int first = !vc->waiting++;
    if (!plain && sim->aging) {
        if (first)
            sim->watch[l].since = now;
        /* If inputs have a single queue (options.single_fifo), packet p may have waited in its input buffer before.  So
         * the lifetime of packet p may end before the lifetime of packets that are already in output queues. */
        if (channel->ages && (first || sim->options.single_fifo))
            ibn_simulate_arm(sim, l);
    }
    if (channel->busy <= now) {
        ibn_simulate_touch(sim, c);
    } else if (!channel->called) {
        channel->called = 1;
        ibn_simulate_at(sim, channel->busy, EV_FREE, c, 0);
    }
}

/* Remove packet p, which is not the first packet of the queue. */
static inline void ibn_simulate_unlink(ibn_sim *sim, ibn_fifo *queue, int32_t p)
{
    int32_t before = queue->head;
    while (sim->packet[before].next != p)
        before = sim->packet[before].next;
    sim->packet[before].next = sim->packet[p].next;
    if (queue->tail == p)
        queue->tail = before;
}

/* Remove packet p from the output queue that a channel has for one input.  With ARBITER_CROSSBAR, this output queue may
 * have the first packets of several input queues, and any of these packets may be removed.  Otherwise, p is the first
 * packet of the output queue. */
IBN_SPECIALIZED void ibn_simulate_dequeue(ibn_sim *sim, int32_t l, int32_t vl, int32_t input, int32_t p,
                                          ibn_channel *channel, int plain)
{
    ibn_vc *vc = &sim->vc[l];
    ibn_fifo *queue = ibn_simulate_queue(sim, channel, vl, input);
    if (plain || queue->head == p) {
        int32_t next = sim->packet[p].next;
        queue->head = next;
        if (next == IBN_NONE)
            *ibn_simulate_word(sim, l, input, plain) &= ~(1ull << (input & 63));
        else
            sim->packet[next].headed = sim->now;
    } else {
        ibn_simulate_unlink(sim, queue, p);
    }
    if (!--vc->waiting)
        channel->vls &= ~(1u << vl) & 0xFFFF;
}
