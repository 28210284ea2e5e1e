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
        for (int k = 0; k < IBN_SPARES; k++)
            sheltered += sim->device[s].spare[k] != IBN_NONE;
    const int64_t values[] = {
        sim->now,       sim->injected,       sim->delivered,       in_flight(sim),  sim->hops,   sim->handled,
        sim->last_move, sim->injected_bytes, sim->delivered_bytes, broken_vcs(sim), sim->moving, sim->escapes,
        sim->seized,    sim->pings,          sim->loops,           sim->bubbles,    sheltered,  sim->relayed,
        sim->diverted,  sim->deflected,
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

static void add_edge(wait_edges *wait_edges, int32_t vertex, int32_t awaited)
{
    if (wait_edges->count < wait_edges->most) {
        wait_edges->waiter[wait_edges->count] = vertex;
        wait_edges->awaited[wait_edges->count] = awaited;
    }
    wait_edges->count++;
}

/* Return 1 if VC l will have room for packet p once all credits on the wire have arrived.  Otherwise, add to the
 * wait-for graph an edge from `vertex`, which stands for packet p, to VC l, and return 0. */
static int may_enter(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t l)
{
    if (sim->vc[l].credits + sim->vc[l].returning >= sim->packet[p].blocks)
        return 1;
    add_edge(wait_edges, vertex, l);
    return 0;
}

/* Return 1 if the next spare buffer on the recovery path of packet p is free or will become free.  Otherwise, add to
 * the wait-for graph an edge from `vertex` to this spare buffer, and return 0.  Also return 0 if there is no path. */
static int may_recover(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t s, int32_t k)
{
    int32_t c = ibn_simulate_adaptive_recovery_ahead(sim, p, s, k);
    if (c == IBN_NONE)
        return 0;
    int32_t next = sim->channel[c].dst;
    int after = ibn_simulate_adaptive_spare_after(sim, c), state = sim->device[next].spare_state[after];
    if (state == SPARE_FREE || state == SPARE_LEAVING)
        return 1;
    add_edge(wait_edges, vertex, (int32_t)sim->vcs + after * sim->switches + next);
    return 0;
}

/* Add to the wait-for graph an edge from `vertex`, which stands for suspect p at switch s, to every VC that the suspect
 * can take away from its destination.  Return whether the suspect can leave on some VC. */
static int may_deflect(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t s)
{
    int goes = 0;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++)
        for (int vl = 0; vl < sim->options.adaptive_vls && sim->channel[c].to_switch; vl++)
            goes |= may_enter(sim, wait_edges, vertex, p, c * sim->vls + vl);
    return goes;
}

/* Add to the wait-for graph an edge from `vertex`, which stands for packet p at a switch, to every VC and spare buffer
 * for which the packet waits.  `from` is the VC whose queue holds the packet.  Return whether the packet can leave. */
static int may_continue(const ibn_adaptive *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t from)
{
    int32_t s = sim->channel[sim->packet[p].channel].dst, count, goes = 0;
    int scheme = sim->options.scheme;
    if (sim->lid_switch[sim->packet[p].lid] == s || p == sim->holder)
        return 1;
    if (scheme == SCHEME_CONCURRENT && from == IBN_NONE)
        return may_recover(sim, wait_edges, vertex, p, s, ibn_simulate_adaptive_spare_of(sim, s, p));
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    int first = ibn_simulate_adaptive_first_vl(sim, p),
        end = scheme == SCHEME_GROUPS ? first + 1 : sim->options.adaptive_vls;
    end = ibn_simulate_adaptive_only_escape(sim, from) ? 0 : end;
    for (int32_t i = 0; i < count; i++)
        for (int vl = first; vl < end; vl++)
            goes |= may_enter(sim, wait_edges, vertex, p, choice[i] * sim->vls + vl);
    uint8_t sl;
    if (scheme == SCHEME_ESCAPE)
        goes |= may_enter(sim, wait_edges, vertex, p, ibn_simulate_adaptive_escape(sim, p, from, s, &sl));
    int may_be_suspect = from != IBN_NONE && sim->channel[sim->vc[from].channel].from_switch;
    if (scheme == SCHEME_CONCURRENT && may_be_suspect)
        goes |= may_recover(sim, wait_edges, vertex, p, s, 0);
    if (scheme == SCHEME_DEFLECT && may_be_suspect)
        goes |= may_deflect(sim, wait_edges, vertex, p, s);
    return goes;
}

/* Write the wait-for graph, and return the number of its edges.
 *
 * A vertex stands for a packet.  The first vertices stand for the head packets of all VCs.  The other vertices stand
 * for the packets in spare buffers 0 of all switches, followed by those in spare buffers 1.  A vertex can move if its
 * VC or spare buffer has no packet.  It can also move if some VC that its packet may take will have room. */
int64_t ibn_simulate_adaptive_wait_edges(const ibn_adaptive *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                uint8_t *can_move)
{
    wait_edges wait_edges = {0, most, waiter, awaited};
    for (int32_t l = 0; l < sim->vcs; l++) {
        int32_t p = sim->channel[sim->vc[l].channel].to_switch ? ibn_simulate_adaptive_shown(sim, l) : IBN_NONE;
        can_move[l] = p == IBN_NONE || may_continue(sim, &wait_edges, l, p, l);
    }
    for (int32_t i = 0; i < IBN_SPARES * sim->switches; i++) {
        const ibn_adaptive_device *device = &sim->device[i % sim->switches];
        int32_t k = i / sim->switches, vertex = (int32_t)sim->vcs + i;
        int32_t p = device->spare_state[k] == SPARE_READY ? device->spare[k] : IBN_NONE;
        can_move[vertex] = p == IBN_NONE || may_continue(sim, &wait_edges, vertex, p, IBN_NONE);
    }
    return wait_edges.count;
}
