/* Choice of the input that a channel serves on one VL: round robin, by arrival or at random.
 *
 * An input of a switch is a channel into the switch.  An input of a CA is a flow of the CA. */
#include <string.h>

#include "simulate/internal/arbiter.h"

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

/* Choose the input that channel c serves on a VL.  Return IBN_NONE if no input may send, or if the first packet of the
 * chosen input needs more credits than the VC has.
 *
 * Packets that Loop Breaker allows to leave without credits come before all other packets.  An input is left out if the
 * crossbar or a mechanism does not allow the input to send its first packet now. */
int32_t ibn_simulate_input_that_fits(ibn_sim *sim, int32_t c, int32_t vl)
{
    const ibn_channel *channel = &sim->channel[c];
    int32_t l = c * sim->vls + vl;
    const ibn_vc *vc = &sim->vc[l];
    uint64_t rest[IBN_PORT_WORDS];
    candidates_of from = {ibn_simulate_mask(sim, l), sim->words, 0};
    if (vc->pass && (from.mask[vc->pass_input >> 6] >> (vc->pass_input & 63)) & 1
        && ibn_simulate_crossbar_allows(sim, c, vc->pass_input))
        return vc->pass_input;
    for (;;) {
        int32_t input = choose_input(sim, c, l, vl, &from);
        if (input == IBN_NONE)
            return input;
        int32_t p = sim->queue[channel->queues + vl * channel->inputs + input].head;
        if (sim->packet[p].blocks > ibn_simulate_credits(vc))
            return IBN_NONE;
        if (ibn_simulate_mechanisms_allow(sim, p, l) && ibn_simulate_crossbar_allows(sim, c, input))
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
