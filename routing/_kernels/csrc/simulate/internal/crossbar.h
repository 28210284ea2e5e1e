/* Limit of a switch's crossbar: an input may send only options.speedup packets at one time, each on a different
 * channel.
 *
 * If options.speedup is 0, an input may send any number of packets.  An event is scheduled for the time at which an
 * input can send again, but only if a channel waits for the input.  Inputs and outputs of a switch are numbered alike:
 * the channels into and out of the same port have the same number. */
#pragma once

#include "simulate/internal/sim.h"

#define IBN_PORT_WORDS 4 /* number of 64-bit words in a mask with one bit for each port of a switch */

/* Return the tick from which on an input can send another packet, or 0 if the number of packets has no limit.  `input`
 * is the number of the input at the device that sends on channel c. */
static inline int64_t ibn_simulate_input_free_at(const ibn_sim *sim, int32_t c, int32_t input)
{
    if (!sim->options.speedup || !sim->channel[c].from_switch)
        return 0;
    return sim->input_ends[(int64_t)(sim->out_first[sim->channel[c].src] + input) * sim->options.speedup];
}

/* Record that channel c waits for an input that is busy until tick `time`, when channel c is arbitrated again. */
static inline void ibn_simulate_await_input(ibn_sim *sim, int32_t c, int64_t time)
{
    ibn_channel *channel = &sim->channel[c];
    if (channel->awaits && channel->awaits <= time)
        return;
    channel->awaits = time;
    ibn_simulate_at(sim, time, EV_INPUT, c, 0);
}

/* Record that an input of a switch sends one more packet until tick `end`.  Channel c enters the switch by this input.
 *
 * The row of the input in sim->input_ends has the ticks at which its last options.speedup packets leave.  The earliest
 * tick comes first, the others are in any order.  The packet of the earliest tick has left already, so the tick `end`
 * replaces the earliest tick. */
static inline void ibn_simulate_occupy_input(ibn_sim *sim, int32_t c, int64_t end)
{
    int32_t count = sim->options.speedup, least = 0;
    int64_t *ends = &sim->input_ends[(int64_t)sim->channel[c].reverse * count];
    ends[0] = end;
    for (int32_t i = 1; i < count; i++)
        least = ends[i] < ends[least] ? i : least;
    ends[0] = ends[least];
    ends[least] = end;
}
