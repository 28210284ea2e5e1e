/* Packets that are lost, on whatever grounds: counted, and their room given back. */
#include "internal/sim_flow.h"
#include "internal/sim_queue.h"

/* A packet is lost that is in no queue any more. */
void ibn_sim_gone(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    sim->dropped++;
    sim->dropped_bytes += packet->bytes;
    sim->flow[packet->flow].dropped++;
    if (ibn_flow_opens(&sim->flow[packet->flow]))
        ibn_at(sim, sim->now + 1, EV_INJECT, packet->flow, 0);
    ibn_free_packet(sim, p);
}

/* The same, and its room comes back. */
void ibn_sim_lose(ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    int64_t when = packet->tail > sim->now ? packet->tail : sim->now;
    ibn_give_back(sim, packet->channel, packet->lane, packet->blocks, when, 0);
    ibn_sim_gone(sim, p);
}
