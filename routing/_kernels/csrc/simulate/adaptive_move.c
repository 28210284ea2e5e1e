/* Adaptive routing: move packets from their source CA through switches to their destination CA. */
#include "simulate/internal/adaptive.h"

/* Number by which the sort key of a suspect is smaller; it exceeds every tick and number of an input VC. */
#define IBN_SUSPECTS_FIRST (INT64_C(1) << 60)

/* Put packet p, whose head can be forwarded now, into the queue of its VC at the switch.  A packet without a VC is
 * already in the spare buffer, which becomes ready to send. */
void ibn_simulate_adaptive_arrive(ibn_adaptive *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    int32_t s = sim->channel[packet->channel].dst;
    ibn_simulate_adaptive_touch(sim, s);
    if (packet->vc == IBN_NONE) {
        sim->device[s].spare_state[ibn_simulate_adaptive_spare_of(sim, s, p)] = SPARE_READY;
        return;
    }
    ibn_adaptive_vc *vc = &sim->vc[packet->vc];
    vc->flying -= packet->blocks;
    vc->held += packet->blocks;
    packet->next = IBN_NONE;
    if (vc->queue.head == IBN_NONE) {
        vc->queue.head = p;
        vc->since = sim->now;
    } else {
        sim->packet[vc->queue.tail].next = p;
    }
    vc->queue.tail = p;
}

/* Make the next packet in the queue of VC l the head packet, because the previous packet has left the buffer
 * completely. */
void ibn_simulate_adaptive_show(ibn_adaptive *sim, int32_t l)
{
    sim->vc[l].leaving = 0;
    sim->vc[l].since = sim->now;
    ibn_simulate_adaptive_touch(sim, ibn_simulate_adaptive_at_switch(sim, l));
}

/* Remove the head packet from the queue of VC l.  The tail of the packet leaves the buffer at tick `end`. */
void ibn_simulate_adaptive_take(ibn_adaptive *sim, int32_t l, int64_t end)
{
    ibn_adaptive_vc *vc = &sim->vc[l];
    const ibn_packet *packet = &sim->packet[vc->queue.head];
    vc->queue.head = packet->next;
    vc->suspect = -1;
    vc->leaving = 1;
    vc->held -= packet->blocks;
    vc->returning += packet->blocks;
    ibn_simulate_adaptive_at(sim, end, AV_SHOW, l, 0);
    ibn_simulate_adaptive_at(sim, end + sim->channel[vc->channel].wire, AV_CREDIT, l, packet->blocks);
}

/* Return the tick at which the tail of a packet will have left, if the channel begins to send the packet now.
 *
 * The remaining fraction of a tick is carried over to the channel's next packet.  The tail of the packet cannot leave
 * before it has arrived. */
int64_t ibn_simulate_adaptive_end(ibn_adaptive_channel *channel, const ibn_packet *packet, int64_t now)
{
    int64_t work = packet->bytes * channel->cost + channel->carry, length = work >> IBN_COST_BITS;
    int64_t end = now + (length ? length : 1);
    channel->carry = (int32_t)(work & ((1 << IBN_COST_BITS) - 1));
    return packet->tail > end ? packet->tail : end;
}

/* Account for packet p, which leaves device d until tick `end`.
 *
 * The packet leaves the queue of VC `from`.  If `from` is IBN_NONE, it leaves the spare buffer (if d is a switch) or
 * its source (if d is a CA). */
static void leave(ibn_adaptive *sim, int32_t p, int32_t from, int32_t d, int64_t end)
{
    ibn_packet *packet = &sim->packet[p];
    if (from != IBN_NONE) {
        ibn_simulate_adaptive_take(sim, from, end);
    } else if (d < sim->switches) {
        int k = ibn_simulate_adaptive_spare_of(sim, d, p);
        sim->device[d].spare_state[k] = SPARE_LEAVING;
        sim->device[d].spare[k] = IBN_NONE;
        /* The neighbours learn that the spare buffer is free after the packet has left and the cable delay has
         * passed. */
        ibn_simulate_adaptive_at(sim, end + sim->channel[packet->channel].wire, AV_SPARE, d, k);
    } else if (packet->channel == IBN_NONE) { /* Relayed packets were counted when they were first sent. */
        sim->injected++;
        sim->injected_bytes += packet->bytes;
        ibn_simulate_flow_sent(&sim->flow[packet->flow], packet, sim->now);
    }
}

/* Send packet p by channel c on VC l.
 *
 * If l is IBN_NONE, the packet is sent without credits, either to the spare buffer of the next switch or to the
 * packet's CA. */
void ibn_simulate_adaptive_send(ibn_adaptive *sim, int32_t p, int32_t from, int32_t c, int32_t l)
{
    ibn_adaptive_channel *channel = &sim->channel[c];
    ibn_packet *packet = &sim->packet[p];
    int64_t end = ibn_simulate_adaptive_end(channel, packet, sim->now);
    leave(sim, p, from, channel->src, end);
    channel->busy = end;
    channel->bytes += packet->bytes;
    channel->packets++;
    sim->device[channel->src].sends++;
    sim->hops++;
    sim->last_move = sim->now;
    if (l != IBN_NONE) {
        sim->vc[l].credits -= packet->blocks;
        sim->vc[l].flying += packet->blocks;
        if (channel->mark.packet == packet->headed)
            channel->mark.until = -1;
    } else {
        channel->saved++;
        if (channel->to_switch) {
            int k = ibn_simulate_adaptive_spare_after(sim, c);
            sim->device[channel->dst].spare_state[k] = SPARE_TAKEN;
            sim->device[channel->dst].spare[k] = p;
        }
    }
    packet->vc = l;
    packet->channel = c;
    packet->tail = end + channel->wire;
    ibn_simulate_adaptive_at(sim, end, AV_FREE, c, 0);
    if (channel->to_switch)
        ibn_simulate_adaptive_at(sim, sim->now + channel->hop, AV_ARRIVE, p, 0);
    else
        ibn_simulate_adaptive_at(sim, packet->tail, AV_DELIVER, p, 0);
}

/* Send the packet that holds the token from switch s to the next switch or to its CA.  The token is released when the
 * packet is sent to its CA. */
static void serve_holder(ibn_adaptive *sim, int32_t s, int32_t p, int32_t from)
{
    int32_t c = ibn_simulate_adaptive_choose_saved(sim, p, s);
    if (c == IBN_NONE)
        return;
    ibn_simulate_adaptive_send(sim, p, from, c, IBN_NONE);
    if (sim->channel[c].to_switch)
        return;
    sim->holder = IBN_NONE;
    ibn_simulate_adaptive_at(sim, sim->now + sim->channel[c].wire + sim->options.step, AV_TOKEN, s, 0);
}

/* Send a packet from switch s if the packet can leave now.  The packet is the head packet of VC `from`, or is in the
 * spare buffer if `from` is IBN_NONE.
 *
 * Return 1 if the packet was sent, else 0.  For the packet that holds the token, 0 is returned in any case. */
static int serve_packet(ibn_adaptive *sim, int32_t s, int32_t p, int32_t from)
{
    if (p == sim->holder) {
        serve_holder(sim, s, p, from);
        return 0;
    }
    int recovers = sim->options.scheme == SCHEME_CONCURRENT;
    int32_t l = recovers && from == IBN_NONE ? IBN_NONE : ibn_simulate_adaptive_choose(sim, p, from);
    if (l == IBN_NONE && recovers)
        return ibn_simulate_adaptive_send_on_recovery(sim, s, p, from);
    if (l == IBN_NONE && sim->options.scheme == SCHEME_DEFLECT)
        l = ibn_simulate_adaptive_deflect(sim, p, from, s);
    if (l == IBN_NONE)
        return 0;
    const ibn_adaptive_vc *vc = &sim->vc[l];
    if (vc->vl >= sim->options.adaptive_vls && sim->channel[vc->channel].to_switch) {
        uint8_t sl;
        ibn_simulate_adaptive_escape(sim, p, from, s, &sl);
        sim->packet[p].sl = sl;
        sim->escapes++;
    }
    ibn_simulate_adaptive_send(sim, p, from, vc->channel, l);
    return 1;
}

/* Return the sort key of an input VC for the order of service at a switch; smaller keys are served earlier.
 *
 * The packet that holds the token is served before all other packets, and with deflection, suspects are served before
 * packets that are not suspects.  Otherwise packets are served in the order of arrival or in round robin.  Round robin
 * begins at input VC number `turn` of the `inputs` input VCs; `number` is the number of VC l among them. */
static int64_t rank_of(const ibn_adaptive *sim, int32_t l, int32_t turn, int32_t inputs, int32_t number)
{
    int32_t p = ibn_simulate_adaptive_shown(sim, l), after = number < turn ? number - turn + inputs : number - turn;
    if (p == sim->holder)
        return -1;
    int64_t rank = sim->options.by_arrival ? sim->vc[l].since : after;
    int first = sim->options.scheme == SCHEME_DEFLECT && ibn_simulate_adaptive_is_suspect(sim, p, l);
    return first ? rank - IBN_SUSPECTS_FIRST : rank;
}

/* Fill sim->order with the input VCs of switch s that have a head packet, in the order of service.  Return the number
 * of these VCs. */
static int32_t in_order(ibn_adaptive *sim, int32_t s)
{
    int32_t count = 0, inputs = (sim->out_first[s + 1] - sim->out_first[s]) * sim->vls;
    for (int32_t n = 0; n < inputs; n++) {
        int32_t number = n, at = count;
        int32_t l = sim->channel[sim->out_first[s] + number / sim->vls].reverse * sim->vls + number % sim->vls;
        if (ibn_simulate_adaptive_shown(sim, l) == IBN_NONE)
            continue;
        int64_t rank = rank_of(sim, l, sim->device[s].turn, inputs, number);
        for (; at > 0 && sim->rank[at - 1] > rank; at--) {
            sim->order[at] = sim->order[at - 1];
            sim->rank[at] = sim->rank[at - 1];
        }
        sim->order[at] = l;
        sim->rank[at] = rank;
        count++;
    }
    return count;
}

/* Return the number of VC l among the input VCs of its switch, which round robin uses. */
static int32_t input_number(const ibn_adaptive *sim, int32_t l)
{
    const ibn_adaptive_channel *channel = &sim->channel[sim->vc[l].channel];
    return (channel->reverse - sim->out_first[channel->dst]) * sim->vls + sim->vc[l].vl;
}

/* Serve the spare buffers of switch s, and after them each queue of the switch once.  Return the number of packets
 * sent. */
static int serve_once(ibn_adaptive *sim, int32_t s)
{
    ibn_adaptive_device *device = &sim->device[s];
    int served = 0, turned = 0;
    for (int k = IBN_SPARES - 1; k >= 0; k--)
        if (device->spare_state[k] == SPARE_READY)
            served += serve_packet(sim, s, device->spare[k], IBN_NONE);
    int32_t count = in_order(sim, s), inputs = (sim->out_first[s + 1] - sim->out_first[s]) * sim->vls;
    for (int32_t i = 0; i < count; i++) {
        int32_t l = sim->order[i];
        if (!serve_packet(sim, s, ibn_simulate_adaptive_shown(sim, l), l))
            continue;
        served++;
        if (!turned++)
            device->turn = (input_number(sim, l) + 1) % inputs;
    }
    return served;
}

/* Send all packets of switch s that can leave now.
 *
 * With pings, the switch is served until no packet moves any more.  If a packet leaves that has a mark on another
 * channel, the mark loses its effect, and this channel has room for other packets. */
static void serve_switch(ibn_adaptive *sim, int32_t s)
{
    while (serve_once(sim, s) && sim->options.scheme == SCHEME_BUBBLE)
        ;
}

/* Send the first packet that CA d relays, if a VL has room for it. */
static void send_relayed(ibn_adaptive *sim, int32_t d)
{
    int32_t p = sim->device[d].relay.head, c = sim->channel[sim->packet[p].channel].reverse;
    int32_t l = sim->channel[c].busy > sim->now ? IBN_NONE
                                                : ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->options.ca_vls, p);
    if (l == IBN_NONE)
        return;
    sim->device[d].relay.head = sim->packet[p].next;
    ibn_simulate_adaptive_send(sim, p, IBN_NONE, c, l);
}

/* Send packets of CA d.  Packets that the CA relays come before all others.  The flows of the CA are served in round
 * robin.  A packet takes the VL with the most credits among the VLs on which CAs send. */
static void serve_ca(ibn_adaptive *sim, int32_t d)
{
    ibn_adaptive_device *device = &sim->device[d];
    int32_t turn = device->turn;
    if (device->relay.head != IBN_NONE) {
        send_relayed(sim, d);
        return;
    }
    for (int32_t i = 0; i < device->flows; i++) {
        int32_t number = (turn + i) % device->flows, f = sim->by_device[device->flows_first + number];
        int32_t p = sim->flow[f].head, c = sim->flow[f].channel;
        if (p == IBN_NONE || sim->channel[c].busy > sim->now)
            continue;
        int32_t l = ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->options.ca_vls, p);
        if (l == IBN_NONE)
            continue;
        ibn_simulate_adaptive_send(sim, p, IBN_NONE, c, l);
        device->turn = (number + 1) % device->flows;
        sim->flow[f].head = IBN_NONE;
        ibn_simulate_adaptive_prepare(sim, f);
    }
}

/* Send all packets of switch or CA d that can leave now. */
void ibn_simulate_adaptive_serve(ibn_adaptive *sim, int32_t d)
{
    if (d < sim->switches)
        serve_switch(sim, d);
    else
        serve_ca(sim, d);
}

/* Store a packet that has reached a CA in order to be sent again. */
static void relay(ibn_adaptive *sim, int32_t p)
{
    int32_t d = sim->channel[sim->packet[p].channel].dst;
    ibn_fifo *queue = &sim->device[d].relay;
    sim->packet[p].next = IBN_NONE;
    if (queue->head == IBN_NONE)
        queue->head = p;
    else
        sim->packet[queue->tail].next = p;
    queue->tail = p;
    sim->relayed++;
    ibn_simulate_adaptive_touch(sim, d);
}

/* Deliver packet p, whose tail has reached its CA.  From now on, the credits of the packet are returning to its
 * sender. */
void ibn_simulate_adaptive_deliver(ibn_adaptive *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    if (packet->vc != IBN_NONE) {
        sim->vc[packet->vc].flying -= packet->blocks;
        sim->vc[packet->vc].returning += packet->blocks;
        ibn_simulate_adaptive_at(sim, sim->now + sim->channel[packet->channel].wire, AV_CREDIT, packet->vc,
                                 packet->blocks);
    }
    if (ibn_simulate_adaptive_is_relayed(sim, p)) {
        relay(sim, p);
        return;
    }
    ibn_simulate_flow_got(&sim->flow[packet->flow], packet, sim->now, sim->latencies);
    if (ibn_simulate_flow_opens(&sim->flow[packet->flow]))
        ibn_simulate_adaptive_at(sim, sim->now + 1, AV_INJECT, packet->flow, 0);
    sim->delivered++;
    sim->delivered_bytes += packet->bytes;
    ibn_simulate_adaptive_free_packet(sim, p);
}

/* Put the next packet of flow f at the port of its CA.  If the next message of the flow is not due yet, schedule an
 * event for its due time instead. */
void ibn_simulate_adaptive_prepare(ibn_adaptive *sim, int32_t f)
{
    ibn_flow *flow = &sim->flow[f];
    int next = ibn_simulate_flow_next(flow, sim->lists, sim->trace, sim->now);
    if (next == FLOW_LATER)
        ibn_simulate_adaptive_at(sim, flow->due, AV_INJECT, f, 0);
    if (next != FLOW_NOW)
        return;
    int32_t p = ibn_simulate_adaptive_new_packet(sim);
    if (p == IBN_NONE)
        return;
    ibn_packet *packet = &sim->packet[p];
    ibn_simulate_flow_cut(flow, f, packet, p, sim->now);
    packet->next = IBN_NONE;
    int32_t s = sim->channel[flow->channel].dst;
    packet->sl = s < sim->switches ? sim->enter_sl[(int64_t)s * sim->lids + packet->lid] : 0;
    packet->headed = (int64_t)f << 40 | (flow->sent_packets & 0xFFFFFFFFFF);
    ibn_simulate_adaptive_touch(sim, sim->channel[flow->channel].src);
}
