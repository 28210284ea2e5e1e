/* Adaptive routing: deflection (scheme DEFLECT).  A packet that has waited too long takes any free channel to another
 * switch, even away from its destination.
 *
 * Source: Pinkston, Deadlock characterization and resolution in interconnection networks, section 13.3.1 D (deflective
 * recovery). */
#include "simulate/internal/adaptive.h"

/* Return the VC on which packet p, the head packet of VC `from`, leaves switch s away from its destination.  Return
 * IBN_NONE in three cases: packet p is not a suspect (a packet from another switch that has waited too long), switch s
 * is the last switch of its path, or no channel to another switch is free and has room.
 *
 * The channels are searched from a random channel on, and the first channel with room is taken, on the VL with the most
 * credits. */
int32_t ibn_simulate_adaptive_deflect(ibn_sim *sim, int32_t p, int32_t from, int32_t s)
{
    int32_t first = sim->out_first[s], count = sim->out_first[s + 1] - first;
    if (!ibn_simulate_adaptive_is_suspect(sim, p, from) || sim->lid_switch[sim->packet[p].lid] == s)
        return IBN_NONE;
    uint64_t key = ibn_simulate_key(sim->options.seed, 9, (uint64_t)s);
    uint64_t number = ibn_simulate_number(key, sim->adaptive->device[s].sends) >> 32;
    int32_t start = (int32_t)((number * (uint64_t)count) >> 32);
    for (int32_t i = 0; i < count; i++) {
        int32_t c = first + (start + i) % count;
        int free = sim->channel[c].to_switch && sim->channel[c].busy <= sim->now;
        int32_t l = free ? ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->adaptive->adaptive_vls, p) : IBN_NONE;
        if (l != IBN_NONE) {
            sim->adaptive->deflected++;
            return l;
        }
    }
    return IBN_NONE;
}
