/* Read the results of a simulation: totals, counters, VCs, flows, packets, and the wait-for graph.  Also check that no
 * packets or credits were lost by mistake. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <string.h>

/* Return the number of unused packets. */
static int64_t free_packets(const ibn_sim *sim)
{
    int64_t count = 0;
    for (int32_t p = sim->packet_free; p != IBN_NONE; p = sim->packet[p].next)
        count++;
    return count;
}

/* Return the number of packets that have left their source CA and were neither delivered nor lost. */
static int64_t in_flight(const ibn_sim *sim)
{
    return sim->packets_made - free_packets(sim) - ibn_simulate_flow_pressing(sim->flow, sim->flows);
}

/* Add the blocks of a pending event to the field `flying` or `returning` of its VC, if the event is the arrival of a
 * packet or of credits. */
static void count_event(const ibn_sim *sim, int kind, ibn_event event)
{
    if (kind == EV_CREDIT)
        sim->vc[event.subject].returning += event.value;
    else if (kind == EV_ARRIVE || kind == EV_DELIVER)
        sim->vc[sim->packet[event.subject].vc].flying += sim->packet[event.subject].blocks;
}

/* Add the blocks of all pending events of one kind and tick to the fields of their VCs, as count_event does.  `place`
 * is the index in sim->event after the last of these events; 0: no such event. */
static void count_events(const ibn_sim *sim, int kind, uint32_t place)
{
    for (uint32_t first; place; place = ibn_simulate_end_before(sim, first)) {
        first = ibn_simulate_first_event(place);
        for (uint32_t i = first; i < place; i++)
            count_event(sim, kind, sim->event[i]);
    }
}

/* If the fast code runs, set the fields `held`, `flying` and `returning` of all VCs, because the fast code does not
 * keep these fields up to date.
 *
 * The blocks are counted from the queued packets and the pending events. */
static void count_blocks(const ibn_sim *sim)
{
    if (!sim->plain)
        return;
    for (int64_t l = 0; l < sim->vcs; l++)
        sim->vc[l].held = sim->vc[l].flying = sim->vc[l].returning = 0;
    for (int64_t q = 0; q < sim->queues; q++)
        for (int32_t p = sim->queue[q].head; p != IBN_NONE; p = sim->packet[p].next)
            if (sim->packet[p].vc != IBN_NONE)
                sim->vc[sim->packet[p].vc].held += sim->packet[p].blocks;
    for (int64_t s = 0; s < sim->slots; s++)
        for (int kind = 0; kind < EV_LATER && sim->busy_slots[s >> 6] >> (s & 63) & 1; kind++)
            count_events(sim, kind, sim->slot[s * IBN_SLOT + kind]);
    for (int32_t h = 0; h < sim->heap_size; h++)
        count_event(sim, sim->heap[h].kind, sim->heap[h].event);
}

/* Return the number of VCs whose numbers of blocks do not add up to the size of their buffer.  The result is 0 unless
 * there is a bug. */
static int64_t broken_vcs(const ibn_sim *sim)
{
    int64_t broken = 0;
    for (int64_t l = 0; l < sim->vcs; l++) {
        const ibn_vc *vc = &sim->vc[l];
        broken += ibn_simulate_credits(vc) + vc->held + vc->flying + vc->returning != vc->buffer;
    }
    return broken;
}

/* Return the difference between the number of blocks that VCs count as held and the number of blocks of all queued
 * packets.  The result is 0 unless there is a bug. */
static int64_t misplaced(const ibn_sim *sim)
{
    int64_t difference = 0;
    for (int64_t l = 0; l < sim->vcs; l++)
        difference += sim->vc[l].held;
    for (int64_t q = 0; q < sim->queues; q++)
        for (int32_t p = sim->queue[q].head; p != IBN_NONE; p = sim->packet[p].next)
            difference -= sim->packet[p].vc == IBN_NONE ? 0 : sim->packet[p].blocks;
    for (int64_t l = 0; l < sim->vcs; l++)
        for (int32_t p = sim->watch[l].hidden.head; p != IBN_NONE; p = sim->packet[p].next)
            difference -= sim->packet[p].blocks;
    return difference;
}

void ibn_simulate_totals(const ibn_sim *sim, int64_t *totals)
{
    count_blocks(sim);
    const int64_t values[] = {
        sim->now,       sim->injected,  sim->delivered,      sim->dropped,         in_flight(sim),     sim->hops,
        sim->handled,   sim->last_move, sim->injected_bytes, sim->delivered_bytes, sim->dropped_bytes, broken_vcs(sim),
        misplaced(sim), sim->logged,    sim->log_lost,       sim->moving,
    };
    memcpy(totals, values, sizeof values);
}

void ibn_simulate_latencies(const ibn_sim *sim, int64_t *buckets)
{
    memcpy(buckets, sim->latencies, sizeof sim->latencies);
}

void ibn_simulate_channels(const ibn_sim *sim, int64_t *rows)
{
    for (int32_t c = 0; c < sim->channels; c++, rows += 12) {
        const ibn_channel *channel = &sim->channel[c];
        const ibn_counters *counters = &sim->counters[c];
        int64_t waits = channel->vls && sim->now > channel->busy ? sim->now - channel->busy : 0, waiting = 0;
        for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls; l++)
            waiting += sim->vc[l].waiting;
        const int64_t row[] = {
            channel->bytes,  channel->packets,   channel->wait + waits, counters->discards,
            counters->hoq,   counters->lifetime, counters->stalled,     counters->overrun,
            counters->relay, counters->control,  counters->down,        waiting,
        };
        memcpy(rows, row, sizeof row);
    }
}

void ibn_simulate_vcs(const ibn_sim *sim, int64_t *rows)
{
    count_blocks(sim);
    for (int64_t l = 0; l < sim->vcs; l++, rows += 14) {
        const ibn_vc *vc = &sim->vc[l];
        const ibn_watch *watch = &sim->watch[l];
        /* In simulations with pauses, pause.c adds many credits to a VC that may send, and takes many credits from a
         * paused VC.  These credits must not appear in the results, so `more` cancels them. */
        int32_t more = sim->options.xoff ? vc->reserve : 0;
        const int64_t row[] = {
            vc->fctbs,
            vc->fccl + (uint32_t)more,
            ibn_simulate_credits(vc) + more,
            vc->held,
            vc->flying,
            vc->returning,
            vc->buffer + more,
            vc->waiting,
            vc->sent,
            watch->suspected,
            watch->spuid,
            vc->stalled,
            sim->options.xoff && vc->reserve > 0,
            (watch->last_message + 1) / 2,
        };
        memcpy(rows, row, sizeof row);
    }
}

void ibn_simulate_flows(const ibn_sim *sim, int64_t *rows)
{
    for (int32_t f = 0; f < sim->flows; f++, rows += 10) {
        const ibn_flow *flow = &sim->flow[f];
        const int64_t row[] = {
            flow->made,    flow->sent_packets, flow->sent_bytes, flow->packets, flow->bytes_got,
            flow->dropped, flow->latency,      flow->network,    flow->worst,   flow->messages_got,
        };
        memcpy(rows, row, sizeof row);
    }
}

/* Copy up to `most` rows of the event log, beginning with row `from`.  Return the number of rows from row `from` to the
 * end of the log, or IBN_NONE if `from` is negative or greater than the number of rows. */
int64_t ibn_simulate_log(const ibn_sim *sim, int64_t from, int64_t most, int64_t *rows)
{
    if (from < 0 || from > sim->logged)
        return IBN_NONE;
    int64_t count = sim->logged - from < most ? sim->logged - from : most;
    if (count > 0)
        memcpy(rows, sim->log + from * IBN_LOG_WIDTH, (size_t)count * IBN_LOG_WIDTH * sizeof(int64_t));
    return sim->logged - from;
}

/* Write a row for queued packet p to `rows`, unless the `most` rows of this array are full.  Return count + 1.
 *
 * `count` is the number of earlier rows, and `out` the VC for which the packet is queued.  `headed` is the tick at
 * which the packet became the head of its queue, or -1. */
static int64_t add_packet(const ibn_sim *sim, int32_t p, int32_t out, int64_t headed, int64_t count, int64_t most,
                          int64_t *rows)
{
    const ibn_packet *packet = &sim->packet[p];
    const int64_t row[] = {packet->flow, packet->lid, packet->vc, out, packet->blocks, packet->ready, headed};
    if (count < most)
        memcpy(rows + count * 7, row, sizeof row);
    return count + 1;
}

/* Copy one row for each packet that is queued in a switch, up to `most` rows.  Return the number of these packets.
 *
 * The columns are: flow, LID, VC whose buffer holds the packet, VC for which the packet is queued (-1: adaptive
 * switches have not chosen it yet), blocks, first tick at which the switch could forward the packet, and tick at which
 * the packet became the head of its queue (-1: it is not the head). */
int64_t ibn_simulate_packets(const ibn_sim *sim, int64_t most, int64_t *rows)
{
    int64_t count = 0;
    for (int32_t c = 0; c < sim->channels; c++) {
        const ibn_channel *channel = &sim->channel[c];
        for (int32_t q = channel->queues; q < channel->queues + channel->inputs * sim->vls; q++) {
            int32_t out = c * sim->vls + (q - channel->queues) / channel->inputs, head = sim->queue[q].head;
            for (int32_t p = head; p != IBN_NONE; p = sim->packet[p].next)
                if (sim->packet[p].vc != IBN_NONE)
                    count = add_packet(sim, p, out, p == head ? sim->packet[p].headed : -1, count, most, rows);
        }
    }
    for (int32_t l = 0; l < sim->vcs && sim->adaptive; l++)
        for (int32_t p = sim->watch[l].hidden.head; p != IBN_NONE; p = sim->packet[p].next)
            count = add_packet(sim, p, IBN_NONE, ibn_simulate_adaptive_headed(sim, l, p), count, most, rows);
    return count;
}

/* Return whether packet p can be sent on VC `out` once the credits of all blocks that are leaving the buffer have
 * arrived.  With pauses: return whether the sender may send, or is certain to get permission later. */
static int could_go(const ibn_sim *sim, int32_t p, int32_t out)
{
    const ibn_vc *vc = &sim->vc[out];
    const ibn_packet *packet = &sim->packet[p];
    int32_t room = sim->hooks & IBN_HOOK_ROOM ? ibn_simulate_room(sim, p, out) : 0;
    if (sim->options.xoff)
        return ibn_simulate_may_resume(sim, out) || vc->pass;
    return packet->blocks + room <= ibn_simulate_credits(vc) + vc->returning + vc->pass;
}

/* Write the wait-for graph, and return the number of its edges.  An edge from one VC to another means that packets in
 * the buffer of the first VC wait for room in the buffer of the second VC.
 *
 * can_move[VCs] receives whether each VC can move.  A VC can move in each of four cases:
 * - The VC leads to a CA.  Exception: a mechanism has left packets in the CA's buffer, these packets wait for a VC, and
 *   no packets are on the wire to this buffer.
 * - The buffer of the VC is empty.
 * - Packets are on the wire to the buffer of the VC.
 * - A packet of the buffer is first in an output queue and can be sent. */
int64_t ibn_simulate_wait_edges(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move)
{
    int64_t count = 0;
    if (sim->adaptive)
        return ibn_simulate_adaptive_wait_edges(sim, most, waiter, awaited, can_move);
    count_blocks(sim);
    for (int64_t l = 0; l < sim->vcs; l++)
        can_move[l] = !sim->channel[l / sim->vls].to_switch || sim->vc[l].held == 0 || sim->vc[l].flying > 0;
    for (int32_t l = 0; l < sim->vcs && sim->hooks & IBN_HOOK_ARRIVED; l++) {
        /* Packets that a mechanism has left in the buffer of a CA wait for a VC by which the CA sends. */
        int32_t out = !can_move[l] || sim->channel[l / sim->vls].to_switch || !sim->vc[l].held
                          ? IBN_NONE : ibn_simulate_waits_for(sim, l);
        if (out == IBN_NONE)
            continue;
        can_move[l] = sim->vc[l].flying > 0;
        if (count < most) {
            waiter[count] = l;
            awaited[count] = out;
        }
        count++;
    }
    for (int32_t c = 0; c < sim->channels; c++) {
        const ibn_channel *channel = &sim->channel[c];
        for (int32_t q = channel->queues; q < channel->queues + channel->inputs * sim->vls; q++) {
            int32_t p = sim->queue[q].head;
            if (p == IBN_NONE || sim->packet[p].vc == IBN_NONE)
                continue;
            const ibn_packet *packet = &sim->packet[p];
            int32_t out = c * sim->vls + (q - channel->queues) / channel->inputs;
            if (could_go(sim, p, out)) {
                can_move[packet->vc] = 1;
                continue;
            }
            if (count < most) {
                waiter[count] = packet->vc;
                awaited[count] = out;
            }
            count++;
        }
    }
    return count;
}
