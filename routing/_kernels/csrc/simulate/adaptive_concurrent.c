/* Adaptive routing: concurrent recovery (scheme CONCURRENT), in which any number of blocked packets move to their
 * destinations through spare buffers at the same time.
 *
 * The spare buffers have an order, and a packet only moves to spare buffers that come later in this order.  So the
 * packets in spare buffers never wait for each other in a cycle, and a token is not needed.  The order follows from an
 * order of the switches, as for Up*\/Down* routing.  A packet first moves to earlier switches, through their spare
 * buffers 0.  Then it moves to later switches, through their spare buffers 1.
 *
 * Source: Pinkston, Deadlock characterization and resolution in interconnection networks, section 13.3.1 D (Disha
 * Concurrent).  The source demands an order, and does not state one. */
#include "simulate/internal/adaptive.h"

/* Return the number of the spare buffer (0 or 1) that receives a packet which is sent without credits by channel c.  In
 * scheme CONCURRENT, the number is 1 if channel c leads to a later switch in the order of the switches.  Otherwise, the
 * number is 0. */
int ibn_simulate_adaptive_spare_after(const ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    return sim->adaptive->scheme == SCHEME_CONCURRENT
           && sim->adaptive->recovery_rank[channel->dst] > sim->adaptive->recovery_rank[channel->src];
}

/* Return the channel by which packet p continues on its recovery path from spare buffer k of switch s to another
 * switch.  Return IBN_NONE if switch s is the last switch of the path. */
int32_t ibn_simulate_adaptive_recovery_ahead(const ibn_sim *sim, int32_t p, int32_t s, int32_t k)
{
    int32_t last = sim->lid_switch[sim->packet[p].lid];
    return s == last ? IBN_NONE : sim->adaptive->recovery_next[((int64_t)k * sim->switches + s) * sim->switches + last];
}

/* Send packet p along its recovery path from switch s, if the channel and the next spare buffer are free.
 * From the last switch of the path, the packet goes to its CA.
 *
 * The packet is in a spare buffer (`from` is IBN_NONE), or it is the head packet of VC `from` and a suspect.  Return 1
 * if the packet was sent, else 0. */
int ibn_simulate_adaptive_send_on_recovery(ibn_sim *sim, int32_t s, int32_t p, int32_t from)
{
    int32_t k = from == IBN_NONE ? ibn_simulate_adaptive_spare_of(sim, s, p) : 0;
    int32_t c = ibn_simulate_adaptive_recovery_ahead(sim, p, s, k);
    if (from != IBN_NONE && (c == IBN_NONE || !ibn_simulate_adaptive_is_suspect(sim, p, from)))
        return 0;
    c = c == IBN_NONE ? sim->adaptive->lid_channel[sim->packet[p].lid] : c;
    const ibn_channel *channel = &sim->channel[c];
    if (channel->busy > sim->now)
        return 0;
    int after = channel->to_switch ? ibn_simulate_adaptive_spare_after(sim, c) : 0;
    if (channel->to_switch && sim->adaptive->device[channel->dst].spare_state[after] != SPARE_FREE)
        return 0;
    sim->adaptive->diverted += from != IBN_NONE;
    ibn_simulate_adaptive_send(sim, p, from, c, IBN_NONE);
    return 1;
}
