/* Count packets that are lost, and return the credits of their buffer space. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"
#include "simulate/internal/queue.h"

/* Count a lost packet and free its memory.  The caller has removed the packet from its queue. */
void ibn_simulate_gone(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    sim->dropped++;
    sim->dropped_bytes += packet->bytes;
    sim->flow[packet->flow].dropped++;
    if (ibn_simulate_flow_opens(&sim->flow[packet->flow]))
        ibn_simulate_at(sim, sim->now + 1, EV_INJECT, packet->flow, 0);
    if (sim->hooks & IBN_HOOK_LOST)
        ibn_simulate_on_lost(sim, p);
    ibn_simulate_free_packet(sim, p);
}

/* Return the credits of a lost packet, count the packet, and free its memory. */
void ibn_simulate_lose(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    int64_t when = packet->tail > sim->now ? packet->tail : sim->now;
    ibn_simulate_give_back(sim, packet->channel, packet->vc, packet->blocks, when, 0);
    ibn_simulate_gone(sim, p);
}
