/* Read the results of a simulation with adaptive routing: totals, one row for each channel, VC and flow, and the
 * wait-for graph. */
#include "simulate/internal/adaptive.h"

#include <string.h>

/* Return the number of packets that have left their source CA and have not been delivered yet. */
static int64_t in_flight(const ibn_adaptive *sim)
{
    int64_t count = sim->packets_made - ibn_simulate_flow_pressing(sim->flow, sim->flows);
    for (int32_t p = sim->packet_free; p != IBN_NONE; p = sim->packet[p].next)
        count--;
    return count;
}

/* Return the number of VCs whose counts contradict each other; it is 0 unless there is a bug.  The numbers of blocks of
 * a VC must add up to the size of its buffer, and must match the packets in its queue. */
static int64_t broken_vcs(const ibn_adaptive *sim)
{
    int64_t broken = 0;
    for (int32_t l = 0; l < sim->vcs; l++) {
        const ibn_adaptive_vc *vc = &sim->vc[l];
        int32_t held = 0;
        for (int32_t p = vc->queue.head; p != IBN_NONE; p = sim->packet[p].next)
            held += sim->packet[p].blocks;
        broken +=
            held != vc->held || vc->credits < 0 || vc->credits + vc->held + vc->flying + vc->returning != vc->buffer;
    }
    return broken;
}

void ibn_simulate_adaptive_totals(const ibn_adaptive *sim, int64_t *totals)
{
    int64_t sheltered = 0;
    for (int32_t s = 0; s < sim->switches; s++)
        sheltered += sim->device[s].spare != IBN_NONE;
    const int64_t values[] = {
        sim->now,       sim->injected,       sim->delivered,       in_flight(sim),  sim->hops,   sim->handled,
        sim->last_move, sim->injected_bytes, sim->delivered_bytes, broken_vcs(sim), sim->moving, sim->escapes,
        sim->seized,    sim->pings,          sim->loops,           sim->bubbles,    sheltered,  sim->relayed,
    };
    memcpy(totals, values, sizeof values);
}

void ibn_simulate_adaptive_latencies(const ibn_adaptive *sim, int64_t *buckets)
{
    memcpy(buckets, sim->latencies, sizeof sim->latencies);
}

void ibn_simulate_adaptive_channels(const ibn_adaptive *sim, int64_t *rows)
{
    for (int32_t c = 0; c < sim->channels; c++, rows += 3) {
        const int64_t row[] = {sim->channel[c].bytes, sim->channel[c].packets, sim->channel[c].saved};
        memcpy(rows, row, sizeof row);
    }
}

void ibn_simulate_adaptive_vcs(const ibn_adaptive *sim, int64_t *rows)
{
    for (int32_t l = 0; l < sim->vcs; l++, rows += 5) {
        const ibn_adaptive_vc *vc = &sim->vc[l];
        const int64_t row[] = {vc->credits, vc->held, vc->flying, vc->returning, vc->buffer};
        memcpy(rows, row, sizeof row);
    }
}

void ibn_simulate_adaptive_flows(const ibn_adaptive *sim, int64_t *rows)
{
    for (int32_t f = 0; f < sim->flows; f++, rows += 8) {
        const ibn_flow *flow = &sim->flow[f];
        const int64_t row[] = {
            flow->made,      flow->sent_packets, flow->sent_bytes, flow->packets,
            flow->bytes_got, flow->latency,      flow->network,    flow->worst,
        };
        memcpy(rows, row, sizeof row);
    }
}

/* Edges of the wait-for graph that have been found so far. */
typedef struct {
    int64_t count,   /* number of edges found so far */
        most;        /* number of edges that fit into the arrays `waiter` and `awaited` */
    int32_t *waiter, /* [most] vertex where each edge begins: the vertex that waits */
        *awaited;    /* [most] vertex where each edge ends: the vertex that is waited for */
} wait_edges;

/* Return 1 if VC l will have room for packet p once all credits on the wire have arrived.  Otherwise, add to the
 * wait-for graph an edge from `vertex`, which stands for packet p, to VC l, and return 0. */
static int may_enter(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t l)
{
    if (sim->vc[l].credits + sim->vc[l].returning >= sim->packet[p].blocks)
        return 1;
    if (wait_edges->count < wait_edges->most) {
        wait_edges->waiter[wait_edges->count] = vertex;
        wait_edges->awaited[wait_edges->count] = l;
    }
    wait_edges->count++;
    return 0;
}

/* Add to the wait-for graph an edge from `vertex`, which stands for packet p at a switch, to every VC for which the
 * packet waits.  `from` is the VC whose queue holds the packet.  Return whether the packet can leave on some VC. */
static int may_continue(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t from)
{
    int32_t s = sim->channel[sim->packet[p].channel].dst, count, goes = 0;
    if (sim->lid_switch[sim->packet[p].lid] == s || p == sim->holder)
        return 1;
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    int first = ibn_simulate_adaptive_first_vl(sim, p),
        end = sim->options.scheme == SCHEME_GROUPS ? first + 1 : sim->options.adaptive_vls;
    end = ibn_simulate_adaptive_only_escape(sim, from) ? 0 : end;
    for (int32_t i = 0; i < count; i++)
        for (int vl = first; vl < end; vl++)
            goes |= may_enter(sim, wait_edges, vertex, p, choice[i] * sim->vls + vl);
    uint8_t sl;
    if (sim->options.scheme == SCHEME_ESCAPE)
        goes |= may_enter(sim, wait_edges, vertex, p, ibn_simulate_adaptive_escape(sim, p, from, s, &sl));
    return goes;
}

/* Write the wait-for graph, and return the number of its edges.
 *
 * A vertex stands for a packet.  The first vertices stand for the head packets of all VCs.  The other vertices stand
 * for the packets in the spare buffers of all switches.  A vertex can move if there is no such packet.  It can also
 * move if some VC that the packet may take will have room. */
int64_t ibn_simulate_adaptive_wait_edges(const ibn_adaptive *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                uint8_t *can_move)
{
    wait_edges wait_edges = {0, most, waiter, awaited};
    for (int32_t l = 0; l < sim->vcs; l++) {
        int32_t p = sim->channel[sim->vc[l].channel].to_switch ? ibn_simulate_adaptive_shown(sim, l) : IBN_NONE;
        can_move[l] = p == IBN_NONE || may_continue(sim, &wait_edges, l, p, l);
    }
    for (int32_t s = 0; s < sim->switches; s++) {
        int32_t p = sim->device[s].spare_state == SPARE_READY ? sim->device[s].spare : IBN_NONE;
        can_move[sim->vcs + s] = p == IBN_NONE || may_continue(sim, &wait_edges, (int32_t)sim->vcs + s, p, IBN_NONE);
    }
    return wait_edges.count;
}
