/* Record inputs of a switch that become free, and sort the channels that compete for inputs. */
#include "simulate/internal/crossbar.h"

#define KEY_PORTS 256

/* Record that an input has finished sending a packet.  All channels that wait for an input of the switch are arbitrated
 * again. */
void ibn_simulate_input_free(ibn_sim *sim, int32_t c)
{
    ibn_channel *channel = &sim->channel[c];
    int32_t device = channel->dst, input = channel->in_index;
    channel->sending--;
    sim->full_inputs[device * IBN_PORT_WORDS + (input >> 6)] &= ~(1ull << (input & 63));
    for (int32_t w = 0; w < IBN_PORT_WORDS; w++) {
        uint64_t *awaiting = &sim->awaiting[device * IBN_PORT_WORDS + w];
        for (; *awaiting; *awaiting &= *awaiting - 1)
            ibn_simulate_touch(sim, sim->out_first[device] + w * 64 + __builtin_ctzll(*awaiting));
    }
}

/* Return the sort key of channel c.  The channels out of one switch follow each other in cyclic order, beginning with a
 * random channel. */
static int64_t key_of(const ibn_sim *sim, int32_t c)
{
    int32_t device = sim->channel[c].src, first = sim->out_first[device];
    int32_t outputs = sim->out_first[device + 1] - first;
    uint64_t number =
        ibn_simulate_number(ibn_simulate_key(sim->options.seed, 8, (uint64_t)device), (uint64_t)sim->now) >> 32;
    int32_t start = (int32_t)((number * (uint64_t)outputs) >> 32), turn = c - first - start;
    return (int64_t)device * KEY_PORTS + (turn < 0 ? turn + outputs : turn);
}

/* Sort the channels that are arbitrated in this tick.
 *
 * An input serves the first channel that wants it.  Because the channels are sorted, the result does not depend on the
 * order of events within a tick.  The function uses Shell sort, like events.c. */
void ibn_simulate_order_touched(ibn_sim *sim)
{
    int32_t gap = 1;
    for (int32_t i = 0; i < sim->touches; i++)
        sim->touch_key[i] = key_of(sim, sim->touched[i]);
    while (gap < sim->touches / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int32_t i = gap; i < sim->touches; i++) {
            int64_t key = sim->touch_key[i];
            int32_t c = sim->touched[i], at = i;
            for (; at >= gap && key < sim->touch_key[at - gap]; at -= gap) {
                sim->touch_key[at] = sim->touch_key[at - gap];
                sim->touched[at] = sim->touched[at - gap];
            }
            sim->touch_key[at] = key;
            sim->touched[at] = c;
        }
    }
}
