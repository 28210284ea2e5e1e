/* Adaptive routing: move packets from their source CA through switches to their destination CA. */
#include "simulate/internal/adaptive.h"
#include "simulate/internal/flow.h"
#include "simulate/internal/queue.h"

#include <stdlib.h>

/* Number that is subtracted from the sort key of a suspect, so that suspects are served first.  The sort keys of other
 * packets are ticks or numbers of input VCs, which are always smaller than this number. */
#define IBN_SUSPECTS_FIRST (INT64_C(1) << 60)

/* Put packet p, whose head can be forwarded now, into the queue of its VC at the switch.  A packet without a VC was
 * sent without credits to a spare buffer.  This spare buffer, which has the packet already, becomes ready to send. */
static void arrive(ibn_sim *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    int32_t s = sim->channel[packet->channel].dst, l = packet->vc;
    ibn_simulate_adaptive_touch(sim, s);
    packet->ready = sim->now;
    if (l == IBN_NONE) {
        int k = ibn_simulate_adaptive_spare_of(sim, s, p);
        sim->adaptive->device[s].spare_state[k] = SPARE_READY;
        ibn_simulate_adaptive_arm_spare(sim, s, k);
        return;
    }
    sim->vc[l].flying -= packet->blocks;
    sim->vc[l].held += packet->blocks;
    if (ibn_simulate_append(sim, &sim->watch[l].hidden, p)) {
        sim->adaptive->input[l].since = sim->now;
        ibn_simulate_adaptive_arm(sim, l);
    }
}

/* Make the next packet in the queue of VC l the head packet, because the previous packet has left the buffer
 * completely. */
static void show(ibn_sim *sim, int32_t l)
{
    sim->watch[l].busy_input = 0;
    sim->adaptive->input[l].since = sim->now;
    ibn_simulate_adaptive_arm(sim, l);
    ibn_simulate_adaptive_touch(sim, ibn_simulate_channel_of(sim, l)->dst);
}

/* Remove the head packet from the queue of VC l.  The tail of the packet leaves the buffer at tick `end`. */
void ibn_simulate_adaptive_take(ibn_sim *sim, int32_t l, int64_t end)
{
    ibn_watch *watch = &sim->watch[l];
    const ibn_packet *packet = &sim->packet[watch->hidden.head];
    watch->hidden.head = packet->next;
    watch->busy_input = 1;
    sim->adaptive->input[l].suspect = -1;
    sim->vc[l].held -= packet->blocks;
    ibn_simulate_at(sim, end, EV_EXPOSE, l, 0);
    ibn_simulate_give_back(sim, l / sim->vls, l, packet->blocks, end, 0);
}

/* Record that packet p leaves device d.  The tail of the packet leaves at tick `end`.
 *
 * The packet leaves the queue of VC `from`.  If `from` is IBN_NONE, it leaves a spare buffer (if d is a switch), or the
 * port of the CA that sends it (if d is a CA). */
void ibn_simulate_adaptive_leave(ibn_sim *sim, int32_t p, int32_t from, int32_t d, int64_t end)
{
    ibn_packet *packet = &sim->packet[p];
    if (from != IBN_NONE) {
        ibn_simulate_adaptive_take(sim, from, end);
    } else if (d < sim->switches) {
        int k = ibn_simulate_adaptive_spare_of(sim, d, p);
        sim->adaptive->device[d].spare_state[k] = SPARE_LEAVING;
        sim->adaptive->device[d].spare[k] = IBN_NONE;
        /* The neighbours learn that the spare buffer is free only when the packet has left completely and the cable
         * delay has passed. */
        ibn_simulate_at(sim, end + sim->channel[packet->channel].wire, EV_SPARE, d, k);
    } else if (packet->channel == IBN_NONE) {
        /* Only a new packet is counted.  A packet that this CA sends again for another CA (scheme RELAY) has been
         * counted when its source CA sent it. */
        sim->injected++;
        sim->injected_bytes += packet->bytes;
        ibn_simulate_flow_sent(&sim->flow[packet->flow], packet, sim->now);
    }
}

/* Send packet p by channel c on VC l.  The packet leaves the queue of VC `from`.  If `from` is IBN_NONE, the packet
 * leaves a spare buffer of a switch, or a CA.
 *
 * If l is IBN_NONE, the packet is sent without credits, either to the spare buffer of the next switch or to the
 * packet's CA. */
void ibn_simulate_adaptive_send(ibn_sim *sim, int32_t p, int32_t from, int32_t c, int32_t l)
{
    ibn_channel *channel = &sim->channel[c];
    ibn_packet *packet = &sim->packet[p];
    int64_t end = ibn_simulate_send_end(channel, packet, sim->now);
    ibn_simulate_adaptive_leave(sim, p, from, channel->src, end);
    channel->busy = end;
    channel->bytes += packet->bytes;
    channel->packets++;
    sim->adaptive->device[channel->src].sends++;
    sim->hops++;
    sim->last_move = sim->now;
    if (l != IBN_NONE) {
        sim->vc[l].fctbs += (uint32_t)packet->blocks;
        sim->vc[l].flying += packet->blocks;
        sim->vc[l].sent = end;
        if (sim->adaptive->mark[c].packet == packet->headed)
            sim->adaptive->mark[c].until = -1;
    } else {
        sim->adaptive->saved[c]++;
        if (channel->to_switch) {
            int k = ibn_simulate_adaptive_spare_after(sim, c);
            sim->adaptive->device[channel->dst].spare_state[k] = SPARE_TAKEN;
            sim->adaptive->device[channel->dst].spare[k] = p;
        }
    }
    packet->vc = l;
    packet->channel = c;
    packet->tail = end + channel->wire;
    ibn_simulate_at(sim, end, EV_FREE, c, 0);
    if (channel->to_switch)
        ibn_simulate_at(sim, sim->now + channel->hop, EV_ARRIVE, p, 0);
    else
        ibn_simulate_at(sim, packet->tail, EV_DELIVER, p, 0);
}

/* Send the packet that holds the token from switch s to the next switch or to its CA.  The token is released when the
 * packet is sent to its CA. */
static void serve_holder(ibn_sim *sim, int32_t s, int32_t p, int32_t from)
{
    int32_t c = ibn_simulate_adaptive_choose_saved(sim, p, s);
    if (c == IBN_NONE)
        return;
    ibn_simulate_adaptive_send(sim, p, from, c, IBN_NONE);
    if (sim->channel[c].to_switch)
        return;
    sim->adaptive->holder = IBN_NONE;
    ibn_simulate_at(sim, sim->now + sim->channel[c].wire + sim->adaptive->step, EV_SIGNAL, s, 0);
}

/* Send a packet from switch s if the packet can leave now.  The packet is the head packet of VC `from`, or is in a
 * spare buffer if `from` is IBN_NONE.
 *
 * Return 1 if the packet was sent, else 0.  For the packet that holds the token, always return 0, even if the packet
 * was sent: this packet is served before all others, and must not change the input at which the next round robin
 * begins. */
static int serve_packet(ibn_sim *sim, int32_t s, int32_t p, int32_t from)
{
    if (p == sim->adaptive->holder) {
        serve_holder(sim, s, p, from);
        return 0;
    }
    int recovers = sim->adaptive->scheme == SCHEME_CONCURRENT;
    int32_t l = recovers && from == IBN_NONE ? IBN_NONE : ibn_simulate_adaptive_choose(sim, p, from);
    if (l == IBN_NONE && recovers)
        return ibn_simulate_adaptive_send_on_recovery(sim, s, p, from);
    if (l == IBN_NONE && sim->adaptive->scheme == SCHEME_DEFLECT)
        l = ibn_simulate_adaptive_deflect(sim, p, from, s);
    if (l == IBN_NONE)
        return 0;
    int32_t c = l / sim->vls;
    if (l % sim->vls >= sim->adaptive->adaptive_vls && sim->channel[c].to_switch) {
        uint8_t sl;
        ibn_simulate_adaptive_escape(sim, p, from, s, &sl);
        sim->packet[p].sl = sl;
        sim->adaptive->escapes++;
    }
    ibn_simulate_adaptive_send(sim, p, from, c, l);
    return 1;
}

/* Return the sort key of an input VC for the order of service at a switch; smaller keys are served earlier.
 *
 * The packet that holds the token is served before all other packets.  In scheme DEFLECT, suspects are served before
 * packets that are not suspects.  Otherwise packets are served in the order of arrival or in round robin.
 * inputs: number of input VCs of the switch.
 * turn: number of the input VC with which round robin begins.
 * number: number of VC l among the input VCs. */
static int64_t rank_of(const ibn_sim *sim, int32_t l, int32_t turn, int32_t inputs, int32_t number)
{
    int32_t p = ibn_simulate_adaptive_shown(sim, l), after = number < turn ? number - turn + inputs : number - turn;
    if (p == sim->adaptive->holder)
        return -1;
    int64_t rank = sim->options.arbitration == ARBITER_ARRIVAL ? sim->adaptive->input[l].since : after;
    int first = sim->adaptive->scheme == SCHEME_DEFLECT && ibn_simulate_adaptive_is_suspect(sim, p, l);
    return first ? rank - IBN_SUSPECTS_FIRST : rank;
}

/* Fill sim->adaptive->order with the input VCs of switch s that have a head packet, in the order of service.  Return
 * the number of these VCs. */
static int32_t in_order(ibn_sim *sim, int32_t s)
{
    int32_t count = 0, inputs = (sim->out_first[s + 1] - sim->out_first[s]) * sim->vls;
    for (int32_t n = 0; n < inputs; n++) {
        int32_t number = n, at = count;
        int32_t l = sim->channel[sim->out_first[s] + number / sim->vls].reverse * sim->vls + number % sim->vls;
        if (ibn_simulate_adaptive_shown(sim, l) == IBN_NONE)
            continue;
        int64_t rank = rank_of(sim, l, sim->adaptive->device[s].turn, inputs, number);
        for (; at > 0 && sim->adaptive->rank[at - 1] > rank; at--) {
            sim->adaptive->order[at] = sim->adaptive->order[at - 1];
            sim->adaptive->rank[at] = sim->adaptive->rank[at - 1];
        }
        sim->adaptive->order[at] = l;
        sim->adaptive->rank[at] = rank;
        count++;
    }
    return count;
}

/* Return the number of VC l among the input VCs of its switch.  Round robin uses these numbers. */
static int32_t input_number(const ibn_sim *sim, int32_t l)
{
    return ibn_simulate_channel_of(sim, l)->in_index * sim->vls + l % sim->vls;
}

/* Serve the spare buffers of switch s, and after them each queue of the switch once.  Return the number of packets
 * sent. */
static int serve_once(ibn_sim *sim, int32_t s)
{
    ibn_device *device = &sim->adaptive->device[s];
    int served = 0, turned = 0;
    for (int k = IBN_SPARES - 1; k >= 0; k--)
        if (device->spare_state[k] == SPARE_READY)
            served += serve_packet(sim, s, device->spare[k], IBN_NONE);
    int32_t count = in_order(sim, s), inputs = (sim->out_first[s + 1] - sim->out_first[s]) * sim->vls;
    for (int32_t i = 0; i < count; i++) {
        int32_t l = sim->adaptive->order[i];
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
 * With pings (scheme BUBBLE), the switch is served again until no packet moves any more, for this reason: A mark
 * reserves room on a channel for one packet.  If this packet leaves by another channel, the mark has no effect any
 * more, and the marked channel may have room for other packets. */
static void serve_switch(ibn_sim *sim, int32_t s)
{
    while (serve_once(sim, s) && sim->adaptive->scheme == SCHEME_BUBBLE)
        ;
}

/* Send again the first packet that CA d has received for another CA (scheme RELAY), if a VL has room for it. */
static void send_relayed(ibn_sim *sim, int32_t d)
{
    int32_t p = sim->adaptive->device[d].relay.head, c = sim->channel[sim->packet[p].channel].reverse;
    int32_t vls = (int32_t)sim->adaptive->ca_vls, free = sim->channel[c].busy <= sim->now;
    int32_t l = free ? ibn_simulate_adaptive_better(sim, IBN_NONE, c, vls, p) : IBN_NONE;
    if (l == IBN_NONE)
        return;
    sim->adaptive->device[d].relay.head = sim->packet[p].next;
    ibn_simulate_adaptive_send(sim, p, IBN_NONE, c, l);
}

/* Send packets of CA d.  Packets for other CAs, which the CA sends again (scheme RELAY), come before all others.  The
 * flows of the CA are served in round robin.  A packet takes the VL with the most credits among the VLs on which CAs
 * send.  In scheme GROUPS, a packet takes the VL that follows from its SL. */
static void serve_ca(ibn_sim *sim, int32_t d)
{
    ibn_device *device = &sim->adaptive->device[d];
    int32_t turn = device->turn;
    if (device->relay.head != IBN_NONE) {
        send_relayed(sim, d);
        return;
    }
    for (int32_t i = 0; i < device->flows; i++) {
        int32_t number = (turn + i) % device->flows, f = sim->adaptive->by_device[device->flows_first + number];
        int32_t p = sim->flow[f].head, c = sim->flow[f].channel;
        if (p == IBN_NONE || sim->channel[c].busy > sim->now)
            continue;
        int32_t l = ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->adaptive->ca_vls, p);
        if (l == IBN_NONE)
            continue;
        ibn_simulate_adaptive_send(sim, p, IBN_NONE, c, l);
        device->turn = (number + 1) % device->flows;
        sim->flow[f].head = IBN_NONE;
        if (sim->hooks & IBN_HOOK_SENT)
            ibn_simulate_on_sent(sim, p);
        ibn_simulate_prepare(sim, f);
    }
}

static int compare_turns(const void *left, const void *right)
{
    const ibn_turn *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Serve the devices that events of this tick concern.
 *
 * Switches compete for the spare buffers of their neighbours (scheme CONCURRENT).  In this case, the order of service
 * is random.  A fixed order would give a spare buffer to the same switch each time. */
void ibn_simulate_adaptive_serve(ibn_sim *sim)
{
    ibn_adaptive *model = sim->adaptive;
    if (model->scheme == SCHEME_CONCURRENT) {
        for (int32_t i = 0; i < model->turns_taken; i++) {
            uint64_t key = ibn_simulate_key(sim->options.seed, 10, (uint64_t)model->turns[i].device);
            model->turns[i].number = ibn_simulate_number(key, (uint64_t)sim->now);
        }
        qsort(model->turns, (size_t)model->turns_taken, sizeof *model->turns, compare_turns);
    }
    for (int32_t i = 0; i < model->turns_taken; i++) {
        int32_t d = model->turns[i].device;
        if (d < sim->switches)
            serve_switch(sim, d);
        else
            serve_ca(sim, d);
        /* Clear `touched` only after the device has been served.  A CA that is served prepares its next packet, which
         * would add the CA to the list `turns` again if `touched` were 0.  But the CA cannot send a second packet in
         * this tick, because its channel is busy now. */
        model->touched[d] = 0;
    }
    model->turns_taken = 0;
}

/* Deliver packet p, whose tail has reached a CA.  If the CA is not the destination of the packet (scheme RELAY), the CA
 * stores the packet in order to send it again. */
static void deliver(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    if (packet->vc != IBN_NONE) {
        sim->vc[packet->vc].flying -= packet->blocks;
        ibn_simulate_give_back(sim, packet->channel, packet->vc, packet->blocks, sim->now, 0);
    }
    if (!ibn_simulate_adaptive_is_relayed(sim, p)) {
        ibn_simulate_got(sim, p);
        return;
    }
    int32_t d = sim->channel[packet->channel].dst;
    ibn_simulate_append(sim, &sim->adaptive->device[d].relay, p);
    sim->adaptive->relayed++;
    ibn_simulate_adaptive_touch(sim, d);
}

/* Let packet p of a flow wait at the port of its CA. */
void ibn_simulate_adaptive_offer(ibn_sim *sim, int32_t p)
{
    ibn_packet *packet = &sim->packet[p];
    const ibn_flow *flow = &sim->flow[packet->flow];
    const ibn_channel *channel = &sim->channel[flow->channel];
    const uint8_t *enter_sl = sim->adaptive->enter_sl;
    packet->sl = channel->to_switch ? enter_sl[(int64_t)channel->dst * sim->lids + packet->lid] : 0;
    packet->headed = (int64_t)packet->flow << 40 | (flow->sent_packets & 0xFFFFFFFFFF);
    ibn_simulate_adaptive_touch(sim, channel->src);
}

/* Record that spare buffer k of a switch is free.  The neighbours of the switch are served, because their packets may
 * wait for this buffer. */
static void free_spare(ibn_sim *sim, int32_t s, int32_t k)
{
    sim->adaptive->device[s].spare_state[k] = SPARE_FREE;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++)
        ibn_simulate_adaptive_touch(sim, sim->channel[c].dst);
}

/* Handle an event of a kind that adaptive switches handle differently from switches with output queues. */
void ibn_simulate_adaptive_handle(ibn_sim *sim, int kind, int32_t subject, int32_t value)
{
    switch (kind) {
    case EV_CREDIT:
        sim->vc[subject].fccl += (uint32_t)value;
        sim->vc[subject].returning -= value;
        ibn_simulate_adaptive_touch(sim, ibn_simulate_channel_of(sim, subject)->src);
        break;
    case EV_ARRIVE:
        arrive(sim, subject);
        break;
    case EV_DELIVER:
        deliver(sim, subject);
        break;
    case EV_FREE:
    case EV_EXPIRE:
        ibn_simulate_adaptive_touch(sim, sim->channel[subject].src);
        break;
    case EV_EXPOSE:
        show(sim, subject);
        break;
    case EV_SPARE:
        free_spare(sim, subject, value);
        break;
    case EV_HEAD:
        ibn_simulate_adaptive_check(sim, subject);
        break;
    case EV_SIGNAL:
        ibn_simulate_adaptive_signal(sim, subject, value);
        break;
    default:
        ibn_simulate_adaptive_sample(sim);
    }
}
