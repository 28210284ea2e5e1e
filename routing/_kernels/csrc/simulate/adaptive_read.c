/* Read the state of adaptive switches: head packets and the wait-for graph. */
#include "simulate/internal/adaptive.h"

/* Return the tick at which packet p in the queue of VC l became the head packet, or -1 if it is not the head packet. */
int64_t ibn_simulate_adaptive_headed(const ibn_sim *sim, int32_t l, int32_t p)
{
    return p == ibn_simulate_adaptive_shown(sim, l) ? sim->adaptive->input[l].since : -1;
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

/* Return 1 if VC l will have room for packet p once the credits of all blocks that are leaving its buffer have arrived.
 * Otherwise, add an edge to the wait-for graph, and return 0.  The edge leads from `vertex`, the vertex of packet p, to
 * vertex l, the vertex of the head packet of VC l.  Return 0 without an edge if the link of VC l is down, or if l is
 * IBN_NONE. */
static int may_enter(const ibn_sim *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t l)
{
    if (l == IBN_NONE || ibn_simulate_channel_of(sim, l)->busy == IBN_NEVER)
        return 0;
    if (ibn_simulate_credits(&sim->vc[l]) + sim->vc[l].returning >= sim->packet[p].blocks)
        return 1;
    add_edge(wait_edges, vertex, l);
    return 0;
}

/* Return 1 if the next spare buffer on the recovery path of packet p is free, or if the packet in it is leaving.
 * Otherwise, add an edge to the wait-for graph, and return 0.  The edge leads from `vertex`, the vertex of packet p, to
 * the vertex of the packet in the next spare buffer.  Return 0 without an edge if the recovery path has no next
 * channel, or if the link of this channel is down. */
static int may_recover(const ibn_sim *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t s, int32_t k)
{
    int32_t c = ibn_simulate_adaptive_recovery_ahead(sim, p, s, k);
    if (c == IBN_NONE || sim->channel[c].busy == IBN_NEVER)
        return 0;
    int32_t next = sim->channel[c].dst;
    int after = ibn_simulate_adaptive_spare_after(sim, c), state = sim->adaptive->device[next].spare_state[after];
    if (state == SPARE_FREE || state == SPARE_LEAVING)
        return 1;
    add_edge(wait_edges, vertex, (int32_t)sim->vcs + after * sim->switches + next);
    return 0;
}

/* Find the VCs on which suspect p can leave switch s by deflection: the VCs of all channels to other switches, on VLs
 * for adaptive routing.  Add to the wait-for graph an edge from `vertex`, which stands for the suspect, to each of
 * these VCs without room.  Return whether any of these VCs has or will have room. */
static int may_deflect(const ibn_sim *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t s)
{
    int goes = 0;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++)
        for (int vl = 0; vl < sim->adaptive->adaptive_vls && sim->channel[c].to_switch; vl++)
            goes |= may_enter(sim, wait_edges, vertex, p, c * sim->vls + vl);
    return goes;
}

/* Add to the wait-for graph an edge from `vertex`, which stands for packet p at a switch, to every VC and spare buffer
 * for which the packet waits.  `from` is the VC whose queue holds the packet.  Return 1 if the packet can leave, or
 * will be lost because links are down; else 0. */
static int may_continue(const ibn_sim *sim, wait_edges *wait_edges, int32_t vertex, int32_t p, int32_t from)
{
    int32_t s = sim->channel[sim->packet[p].channel].dst, count, goes = 0;
    int scheme = sim->adaptive->scheme;
    if (sim->lid_switch[sim->packet[p].lid] == s || p == sim->adaptive->holder
        || ibn_simulate_adaptive_is_cut(sim, s, p, from))
        return 1;
    if (scheme == SCHEME_CONCURRENT && from == IBN_NONE)
        return may_recover(sim, wait_edges, vertex, p, s, ibn_simulate_adaptive_spare_of(sim, s, p));
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    int first = ibn_simulate_adaptive_first_vl(sim, p),
        end = scheme == SCHEME_GROUPS ? first + 1 : sim->adaptive->adaptive_vls;
    end = ibn_simulate_adaptive_only_escape(sim, from) ? 0 : end;
    for (int32_t i = 0; i < count; i++)
        for (int vl = first; vl < end; vl++)
            goes |= may_enter(sim, wait_edges, vertex, p, choice[i] * sim->vls + vl);
    uint8_t sl;
    if (scheme == SCHEME_ESCAPE)
        goes |= may_enter(sim, wait_edges, vertex, p, ibn_simulate_adaptive_escape(sim, p, from, s, &sl));
    int may_be_suspect = from != IBN_NONE && ibn_simulate_channel_of(sim, from)->from_switch;
    if (scheme == SCHEME_CONCURRENT && may_be_suspect)
        goes |= may_recover(sim, wait_edges, vertex, p, s, 0);
    if (scheme == SCHEME_DEFLECT && may_be_suspect)
        goes |= may_deflect(sim, wait_edges, vertex, p, s);
    return goes;
}

/* Write the wait-for graph, and return the number of its edges.
 *
 * Each vertex stands for a packet.  The first vertices stand for the head packets of all VCs.  The next vertices stand
 * for the packets in spare buffers 0 of all switches, and the last vertices for the packets in spare buffers 1.
 * most: number of edges that fit into `waiter` and `awaited`, which receive the two vertices of each edge.
 * can_move: output, for each vertex: 1 if its packet can leave or will be lost, or if no packet is at the place of the
 * vertex; else 0. */
int64_t ibn_simulate_adaptive_wait_edges(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                         uint8_t *can_move)
{
    wait_edges wait_edges = {0, most, waiter, awaited};
    for (int32_t l = 0; l < sim->vcs; l++) {
        int32_t p = ibn_simulate_channel_of(sim, l)->to_switch ? ibn_simulate_adaptive_shown(sim, l) : IBN_NONE;
        can_move[l] = p == IBN_NONE || may_continue(sim, &wait_edges, l, p, l);
    }
    for (int32_t i = 0; i < IBN_SPARES * sim->switches; i++) {
        const ibn_device *device = &sim->adaptive->device[i % sim->switches];
        int32_t k = i / sim->switches, vertex = (int32_t)sim->vcs + i;
        int32_t p = device->spare_state[k] == SPARE_READY ? device->spare[k] : IBN_NONE;
        can_move[vertex] = p == IBN_NONE || may_continue(sim, &wait_edges, vertex, p, IBN_NONE);
    }
    return wait_edges.count;
}
