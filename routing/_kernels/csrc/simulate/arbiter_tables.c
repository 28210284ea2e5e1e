/* Choice of the VL that a channel serves, by the VL arbitration tables of InfiniBand. */
#include "simulate/internal/arbiter.h"

#define VLARB_ENTRIES 64
#define VLARB_WIDTH (4 + 4 * VLARB_ENTRIES)
#define VLARB_NO_LIMIT 255

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
int ibn_simulate_choose_by_tables(ibn_sim *sim, int32_t c, int32_t *input)
{
    int32_t inputs[16];
    unsigned can = 0;
    for (unsigned word = sim->channel[c].vls; word; word &= word - 1) {
        int vl = __builtin_ctz(word);
        if ((inputs[vl] = ibn_simulate_input_that_fits(sim, c, vl)) != IBN_NONE)
            can |= 1u << vl;
    }
    int vl = can ? vl_by_tables(sim, c, can, inputs) : IBN_NONE;
    if (vl != IBN_NONE)
        *input = inputs[vl];
    return vl;
}
