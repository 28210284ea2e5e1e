/* Arbitration of channels: choose a VL and an input, and send the first packet in the queue of this input.
 *
 * An input of a switch is a channel into the switch.  An input of a CA is a flow of the CA.
 *
 * Functions with the argument `plain` are compiled twice.  The copy for plain = 1 leaves out the code for rarely used
 * options. */
#include <string.h>

#include "simulate/internal/crossbar.h"
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

#define VLARB_ENTRIES 64
#define VLARB_WIDTH (4 + 4 * VLARB_ENTRIES)
#define VLARB_NO_LIMIT 255

/* The inputs among which arbitration chooses. */
typedef struct {
    const uint64_t *mask; /* [words] inputs that may be chosen, as bits: input n is bit n % 64 of word n / 64 */
    int32_t words,        /* number of 64-bit words of `mask` */
        attempt;          /* number of inputs that were already chosen and left out in this arbitration, because they
                           * may not send now */
} candidates_of;

/* Choose a candidate input at random. */
static int32_t input_at_random(const ibn_sim *sim, int32_t c, const candidates_of *from)
{
    int32_t count = 0;
    for (int32_t w = 0; w < from->words; w++)
        count += __builtin_popcountll(from->mask[w]);
    uint64_t key = ibn_simulate_key(sim->options.seed, from->attempt ? 10 + (uint64_t)from->attempt : 3, (uint64_t)c);
    uint64_t number = ibn_simulate_number(key, (uint64_t)sim->channel[c].packets) >> 32;
    int32_t left = (int32_t)((number * (uint64_t)count) >> 32);
    for (int32_t w = 0; w < from->words; w++) {
        uint64_t word = from->mask[w];
        int32_t here = __builtin_popcountll(word);
        if (left >= here) {
            left -= here;
            continue;
        }
        while (left--)
            word &= word - 1;
        return w * 64 + __builtin_ctzll(word);
    }
    return IBN_NONE;
}

/* Choose the next candidate input in cyclic order, beginning with input `first`. */
static inline int32_t input_in_turn(const candidates_of *from, int32_t first)
{
    /* The search begins in the word of from->mask that has the bit of input `first`.  This word is visited again at the
     * end, because it may have candidates with numbers below `first`. */
    for (int32_t step = 0; step <= from->words; step++) {
        int32_t w = ((first >> 6) + step) % from->words;
        uint64_t word = step ? from->mask[w] : from->mask[w] & (~0ull << (first & 63));
        if (word)
            return w * 64 + __builtin_ctzll(word);
    }
    return IBN_NONE;
}

/* Choose the candidate input whose first packet arrived earliest.  Of several such inputs, choose the first one in the
 * cyclic order that begins with input sim->vc[l].next_input. */
static int32_t input_by_arrival(const ibn_sim *sim, int32_t c, int32_t l, int32_t vl, const candidates_of *from)
{
    const ibn_channel *channel = &sim->channel[c];
    const ibn_fifo *queue = &sim->queue[channel->queues + vl * channel->inputs];
    int32_t best = IBN_NONE, first = sim->vc[l].next_input, best_turn = 0;
    int64_t best_time = 0;
    for (int32_t w = 0; w < from->words; w++) {
        for (uint64_t word = from->mask[w]; word; word &= word - 1) {
            int32_t input = w * 64 + __builtin_ctzll(word);
            int64_t time = sim->packet[queue[input].head].ready;
            int32_t turn = input >= first ? input - first : input - first + channel->inputs;
            if (best == IBN_NONE || time < best_time || (time == best_time && turn < best_turn)) {
                best = input;
                best_time = time;
                best_turn = turn;
            }
        }
    }
    return best;
}

/* Choose the candidate input that VC l serves next, by the arbitration method in the options.
 *
 * A rule of Deadlock Breaker may reserve the VC for one input.  In this case, return this input, or IBN_NONE if it is
 * not a candidate. */
static int32_t choose_input(const ibn_sim *sim, int32_t c, int32_t l, int32_t vl, const candidates_of *from)
{
    const ibn_vc *vc = &sim->vc[l];
    if (vc->only != IBN_NONE) {
        uint64_t word = (vc->only >> 6) < from->words ? from->mask[vc->only >> 6] : 0;
        return (word >> (vc->only & 63)) & 1 ? vc->only : IBN_NONE;
    }
    if (sim->options.arbitration == ARBITER_ROUND_ROBIN)
        return input_in_turn(from, vc->next_input);
    if (sim->options.arbitration == ARBITER_ARRIVAL)
        return input_by_arrival(sim, c, l, vl, from);
    return input_at_random(sim, c, from);
}

/* Return whether the crossbar allows an input to send to channel c now.  If not, record that channel c waits for the
 * input. */
static int crossbar_allows(ibn_sim *sim, int32_t c, int32_t input)
{
    int64_t time = ibn_simulate_input_free_at(sim, c, input);
    if (time > sim->now)
        ibn_simulate_await_input(sim, c, time);
    return time <= sim->now;
}

/* Return whether mechanisms allow packet p to be sent on VC l now.  The credits of the VC have to suffice for the
 * packet and for the blocks that the mechanisms require to stay free. */
static int mechanisms_allow(const ibn_sim *sim, int32_t p, int32_t l)
{
    return !(sim->hooks & IBN_HOOK_ROOM)
           || sim->packet[p].blocks + ibn_simulate_room(sim, p, l) <= ibn_simulate_credits(&sim->vc[l]);
}

/* Choose the input that channel c serves on a VL.  Return IBN_NONE if no input may send, or if the first packet of the
 * chosen input needs more credits than the VC has.
 *
 * Packets that Loop Breaker allows to leave without credits come before all other packets.  An input is left out if the
 * crossbar or a mechanism does not allow the input to send its first packet now. */
static int32_t input_that_fits(ibn_sim *sim, int32_t c, int32_t vl)
{
    const ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl;
    const ibn_vc *vc = &sim->vc[l];
    uint64_t rest[IBN_PORT_WORDS];
    candidates_of from = {ibn_simulate_mask(sim, l), sim->words, 0};
    if (vc->pass && (from.mask[vc->pass_input >> 6] >> (vc->pass_input & 63)) & 1
        && crossbar_allows(sim, c, vc->pass_input))
        return vc->pass_input;
    for (;;) {
        int32_t input = choose_input(sim, c, l, vl, &from);
        if (input == IBN_NONE)
            return input;
        int32_t p = sim->queue[channel->queues + vl * channel->inputs + input].head;
        if (sim->packet[p].blocks > ibn_simulate_credits(vc))
            return IBN_NONE;
        if (mechanisms_allow(sim, p, l) && crossbar_allows(sim, c, input))
            return input;
        if (!from.attempt++) {
            from.words = sim->words < IBN_PORT_WORDS ? sim->words : IBN_PORT_WORDS;
            memcpy(rest, from.mask, (size_t)from.words * sizeof *rest);
            from.mask = rest;
        }
        rest[input >> 6] &= ~(1ull << (input & 63));
        uint64_t left = 0;
        for (int32_t w = 0; w < from.words; w++)
            left |= rest[w];
        if (!left)
            return IBN_NONE;
    }
}

/* Return the size in blocks of the first packet in the queue of an input. */
static int head_blocks(const ibn_sim *sim, int32_t c, int32_t vl, int32_t input)
{
    const ibn_channel *channel = &sim->channel[c];
    return sim->packet[sim->queue[channel->queues + vl * channel->inputs + input].head].blocks;
}

/* Choose the VL that a VL arbitration table serves next, among the VLs in `can` (bits).
 *
 * *at is the index of the table entry that is served now, and *left is the number of blocks that this entry may still
 * send.  The function updates *at and *left. */
static int vl_of_table(const uint8_t *table, int entries, unsigned can, uint8_t *at, int32_t *left)
{
    for (int step = 0; step <= entries; step++) {
        if (step || *left <= 0) {
            *at = (uint8_t)(*at + 1 < entries ? *at + 1 : 0);
            *left = table[2 * *at + 1];
        }
        if (*left > 0 && (can >> table[2 * *at]) & 1)
            return table[2 * *at];
    }
    return IBN_NONE;
}

/* Return the VLs, as bits, to which a VL arbitration table gives a weight above 0. */
static unsigned vls_of_table(const uint8_t *table, int entries)
{
    unsigned vls = 0;
    for (int e = 0; e < entries; e++)
        if (table[2 * e + 1])
            vls |= 1u << table[2 * e];
    return vls;
}

/* Choose one of the VLs in `can` (bits) by the two VL arbitration tables of InfiniBand.  Weights are numbers of blocks.
 * inputs[vl] is the input whose packet is sent if VL `vl` is chosen.
 *
 * The high-priority table is served before the low-priority table, until the high-priority table has sent as many
 * blocks as its limit allows. */
static int vl_by_tables(ibn_sim *sim, int32_t c, unsigned can, const int32_t *inputs)
{
    ibn_channel *channel = &sim->channel[c];
    const uint8_t *tables = sim->vlarb + channel->arbiter * VLARB_WIDTH;
    const uint8_t *high = tables + 4, *low = tables + 4 + 2 * VLARB_ENTRIES;
    unsigned high_can = can & vls_of_table(high, tables[1]), low_can = can & vls_of_table(low, tables[2]);
    int limit = tables[0];
    if (high_can && (limit == VLARB_NO_LIMIT || channel->high_limit_left > 0 || !low_can)) {
        int vl = vl_of_table(high, tables[1], high_can, &channel->high_at, &channel->high_left);
        int blocks = head_blocks(sim, c, vl, inputs[vl]);
        channel->high_left -= blocks;
        if (channel->high_limit_left <= 0)
            channel->high_limit_left = limit ? limit * 64 : 1;
        channel->high_limit_left -= blocks;
        return vl;
    }
    channel->high_limit_left = limit ? limit * 64 : 1;
    if (!low_can)
        return IBN_NONE;
    int vl = vl_of_table(low, tables[2], low_can, &channel->low_at, &channel->low_left);
    channel->low_left -= head_blocks(sim, c, vl, inputs[vl]);
    return vl;
}

/* Choose the VL and the input that channel c serves, according to its VL arbitration tables.  Return IBN_NONE if no
 * packet can be sent. */
static int choose_by_tables(ibn_sim *sim, int32_t c, int32_t *input)
{
    int32_t inputs[16];
    unsigned can = 0;
    for (unsigned word = sim->channel[c].vls; word; word &= word - 1) {
        int vl = __builtin_ctz(word);
        if ((inputs[vl] = input_that_fits(sim, c, vl)) != IBN_NONE)
            can |= 1u << vl;
    }
    int vl = can ? vl_by_tables(sim, c, can, inputs) : IBN_NONE;
    if (vl != IBN_NONE)
        *input = inputs[vl];
    return vl;
}

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
        return input_that_fits(sim, c, vl);
    uint64_t ahead = vc->mask & (~0ull << (vc->next_input & 63));
    int32_t input = __builtin_ctzll(ahead ? ahead : vc->mask), p = ibn_simulate_queue(sim, channel, vl, input)->head;
    if (sim->packet[p].blocks > ibn_simulate_credits(vc))
        return IBN_NONE;
    return plain || ibn_simulate_input_free_at(sim, c, input) <= sim->now ? input : input_that_fits(sim, c, vl);
}

/* Choose the VL and the input that channel c serves.  Return IBN_NONE if no packet can be sent. */
IBN_SPECIALIZED int choose_vl(ibn_sim *sim, int32_t c, const ibn_channel *channel, int32_t *input, int plain)
{
    int32_t first = c * sim->vls;
    if (!plain && sim->options.arbiters)
        return choose_by_tables(sim, c, input);
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

/* Send the first packet in the queue of an input, on a VL of channel c. */
IBN_SPECIALIZED void send(ibn_sim *sim, int32_t c, ibn_channel *channel, int vl, int32_t input, int plain)
{
    ibn_fifo *queue = ibn_simulate_queue(sim, channel, vl, input);
    int32_t l = c * sim->vls + vl, p = queue->head;
    ibn_vc *vc = &sim->vc[l];
    ibn_packet *packet = &sim->packet[p];
    ibn_simulate_dequeue(sim, l, vl, input, channel, queue, plain);
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

/* Send one packet on channel c, if the channel is free and a packet can be sent. */
IBN_SPECIALIZED void arbitrate(ibn_sim *sim, int32_t c, int plain)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t input;
    if (!channel->vls || channel->busy > sim->now)
        return;
    int vl = choose_vl(sim, c, channel, &input, plain);
    if (vl == IBN_NONE)
        return;
    send(sim, c, channel, vl, input, plain);
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
