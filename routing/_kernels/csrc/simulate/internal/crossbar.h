/* Limit of a switch's crossbar: an input may send only a given number of packets at one time, each to another channel.
 *
 * The functions of this file are used only if options.speedup is above 0.  In the masks, bit n stands for input or
 * output number n of a switch. */
#ifndef IBNUE_INTERNAL_SIM_CROSSBAR_H
#define IBNUE_INTERNAL_SIM_CROSSBAR_H

#include "simulate/internal/sim.h"

#define IBN_PORT_WORDS 4 /* number of 64-bit words in a mask with one bit for each port of a switch */

/* Return whether an input of a switch already sends as many packets as the crossbar allows at one time. */
static inline int ibn_simulate_input_full(const ibn_sim *sim, int32_t device, int32_t input)
{
    return sim->full_inputs[device * IBN_PORT_WORDS + (input >> 6)] >> (input & 63) & 1;
}

/* Record that channel c waits for an input that is busy with other packets.  When an input of the switch becomes free,
 * channel c is arbitrated again. */
static inline void ibn_simulate_await_input(ibn_sim *sim, int32_t c)
{
    int32_t device = sim->channel[c].src, output = c - sim->out_first[device];
    sim->awaiting[device * IBN_PORT_WORDS + (output >> 6)] |= 1ull << (output & 63);
}

/* Record that the input of channel c sends one more packet until tick `end`. */
static inline void ibn_simulate_occupy_input(ibn_sim *sim, int32_t c, int64_t end)
{
    ibn_channel *channel = &sim->channel[c];
    if (++channel->sending == sim->options.speedup)
        sim->full_inputs[channel->dst * IBN_PORT_WORDS + (channel->in_index >> 6)] |= 1ull << (channel->in_index & 63);
    ibn_simulate_at(sim, end, EV_INPUT, c, 0);
}

#endif
