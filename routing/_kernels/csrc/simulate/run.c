/* Main loop of a simulation.  In each tick, all events are handled before the channels that the events concern are
 * arbitrated.
 *
 * The result does not depend on the order in which the events of a tick were scheduled.  Events of the kinds before
 * EV_LATER (in the enum of internal/sim.h) may be handled in any order within their kind.  EV_DELIVER comes before
 * EV_INJECT, because a delivery opens the window of a flow.  Events of EV_LATER and of later kinds are sorted. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <string.h>

/* Return the next tick that has an event, or -1 if no event is pending. */
static int64_t next_tick(const ibn_sim *sim)
{
    int64_t heap = sim->heap_size ? sim->heap[0].time : -1;
    int32_t words = (int32_t)(sim->slots >> 6), start = (int32_t)((sim->now + 1) & (sim->slots - 1));
    for (int32_t step = 0; step <= words; step++) {
        int32_t w = ((start >> 6) + step) & (words - 1);
        uint64_t word = sim->busy_slots[w];
        if (!step)
            word &= ~0ull << (start & 63);
        if (!word)
            continue;
        int32_t at = w * 64 + __builtin_ctzll(word);
        int64_t time = sim->now + 1 + ((at - start) & (sim->slots - 1));
        return heap >= 0 && heap < time ? heap : time;
    }
    return heap;
}

/* Send a flow control packet from every receiver.  The flow control packet returns the credits of the blocks that have
 * become free since the previous flow control packet. */
static void fcp(ibn_sim *sim)
{
    for (int64_t l = 0; l < sim->vcs; l++) {
        int32_t blocks = sim->watch[l].unsent;
        if (!blocks)
            continue;
        sim->watch[l].unsent = 0;
        sim->moving--;
        ibn_simulate_at(sim, sim->now + sim->channel[l / sim->vls].wire, EV_CREDIT, (int32_t)l, blocks);
    }
    ibn_simulate_at(sim, sim->now + sim->options.fcp_period, EV_PERIODIC, PERIODIC_FCP, 0);
}

/* Account for blocks that have left the buffer of VC l.
 *
 * With credits, the next flow control packet reports these blocks to the sender.  With pauses, no report is needed,
 * because the sender reacts to pause messages. */
static void freed(ibn_sim *sim, int32_t l, int32_t blocks)
{
    if (sim->options.xoff) {
        sim->vc[l].returning -= blocks;
        sim->vc[l].fccl += (uint32_t)blocks;
        ibn_simulate_look_at(sim, l);
        return;
    }
    int before = sim->watch[l].unsent != 0;
    sim->watch[l].unsent += blocks;
    sim->moving += (sim->watch[l].unsent != 0) - before;
}

/* Give the sender of VC l the credits for `blocks` blocks, which have arrived at the sender. */
static inline void credit(ibn_sim *sim, int32_t l, int32_t blocks)
{
    ibn_vc *vc = &sim->vc[l];
    vc->fccl += (uint32_t)blocks;
    if (!sim->plain)
        vc->returning -= blocks;
    if (vc->waiting) {
        int32_t c = l / sim->vls;
        if (sim->channel[c].busy <= sim->now)
            ibn_simulate_touch(sim, c);
    }
}

static void handle_later(ibn_sim *sim, int kind, int32_t subject, int32_t value)
{
    if (sim->adaptive && kind != EV_TIMER && (kind != EV_PERIODIC || subject == PERIODIC_SAMPLE)) {
        ibn_simulate_adaptive_handle(sim, kind, subject, value);
        return;
    }
    switch (kind) {
    case EV_HEAD:
        ibn_simulate_head(sim, subject);
        break;
    case EV_UNSTALL:
        ibn_simulate_unstall(sim, subject);
        break;
    case EV_RULE_END:
        ibn_simulate_rule_end(sim, subject, value);
        break;
    case EV_CONTROL:
        ibn_simulate_control(sim, subject);
        break;
    case EV_CLCM:
        ibn_simulate_clcm(sim, subject, value);
        break;
    case EV_PERIODIC:
        if (subject == PERIODIC_SAMPLE)
            ibn_simulate_sample(sim);
        else
            fcp(sim);
        break;
    default:
        ibn_simulate_on_timer(sim, subject, value);
    }
}

static inline void handle(ibn_sim *sim, int kind, int32_t subject, int32_t value)
{
    switch (kind) {
    case EV_FREE:
        sim->channel[subject].called = 0;
        if (sim->channel[subject].vls)
            ibn_simulate_touch(sim, subject);
        break;
    case EV_CREDIT:
        credit(sim, subject, value);
        break;
    case EV_FREED:
        freed(sim, subject, value);
        break;
    case EV_INPUT:
        if (sim->channel[subject].awaits == sim->now)
            sim->channel[subject].awaits = 0;
        ibn_simulate_touch(sim, subject);
        break;
    case EV_INJECT:
        sim->flow[subject].called = 0;
        ibn_simulate_prepare(sim, subject);
        break;
    case EV_PAUSE:
        ibn_simulate_pause(sim, subject, value);
        break;
    default:
        ibn_simulate_expose(sim, subject);
    }
}

/* Handle the events of one kind that are due in this tick, in any order.  The kind comes before EV_LATER in the enum.
 * `place` is the index in sim->event after the last of these events; 0: no such event. */
static inline __attribute__((always_inline)) void handle_batches(ibn_sim *sim, int kind, uint32_t place, int adaptive)
{
    for (; place; place = ibn_simulate_batch_before(sim, place)) {
        uint32_t first = ibn_simulate_first_event(place);
        sim->handled += place - first;
        sim->moving -= place - first;
        sim->crediting -= kind == EV_CREDIT ? place - first : 0;
        if (adaptive && kind != EV_INJECT && kind != EV_FREED)
            for (uint32_t i = first; i < place; i++)
                ibn_simulate_adaptive_handle(sim, kind, sim->event[i].subject, sim->event[i].value);
        else if (kind == EV_ARRIVE)
            ibn_simulate_arrive(sim, first, place);
        else if (kind == EV_DELIVER)
            ibn_simulate_deliver(sim, first, place);
        else
            for (uint32_t i = first; i < place; i++)
                handle(sim, kind, sim->event[i].subject, sim->event[i].value);
    }
}

/* Handle the events of one kind that are due in this tick, sorted by subject and value.  The kind is EV_LATER or a
 * later kind in the enum.  `place` is the index in sim->event after the last of these events. */
static void handle_laters(ibn_sim *sim, int kind, uint32_t place)
{
    int32_t count = ibn_simulate_gather(sim, place);
    sim->handled += count;
    sim->moving -= ibn_simulate_moves(kind) ? count : 0;
    if (sim->adaptive && kind == EV_CONTROL)
        ibn_simulate_adaptive_sort_pings(sim, count);
    for (int32_t i = 0; i < count; i++)
        handle_later(sim, kind, sim->later[i].subject, sim->later[i].value);
}

/* Handle one tick's events of all kinds before EV_LATER.  In simulations with pauses, leave out the events of kind
 * EV_FREED, which are handled after the later kinds.
 *
 * places[]: for each kind, the index in sim->event after the last event of this kind; 0: no such event.
 * adaptive: 1: with adaptive routing, 0: without adaptive routing. */
IBN_SPECIALIZED void handle_soon(ibn_sim *sim, const uint32_t *places, int adaptive)
{
    handle_batches(sim, EV_CREDIT, places[EV_CREDIT], adaptive);
    handle_batches(sim, EV_ARRIVE, places[EV_ARRIVE], adaptive);
    handle_batches(sim, EV_DELIVER, places[EV_DELIVER], adaptive);
    handle_batches(sim, EV_FREE, places[EV_FREE], adaptive);
    handle_batches(sim, EV_INJECT, places[EV_INJECT], adaptive);
    if (!sim->options.xoff)
        handle_batches(sim, EV_FREED, places[EV_FREED], adaptive);
    handle_batches(sim, EV_EXPOSE, places[EV_EXPOSE], adaptive);
    handle_batches(sim, EV_INPUT, places[EV_INPUT], adaptive);
    handle_batches(sim, EV_PAUSE, places[EV_PAUSE], adaptive);
}

/* Handle all events of one tick, and afterwards arbitrate the channels that the events concern. */
static void tick(ibn_sim *sim, int64_t time)
{
    uint32_t places[EV_KINDS];
    int64_t at = time & (sim->slots - 1);
    sim->now = time;
    while (sim->heap_size && sim->heap[0].time == time) {
        ibn_distant distant = sim->heap[0];
        ibn_simulate_heap_pop(sim);
        ibn_simulate_put(sim, at, distant.kind, distant.event.subject, distant.event.value);
    }
    sim->busy_slots[at >> 6] &= ~(1ull << (at & 63));
    memcpy(places, &sim->slot[at * IBN_SLOT], sizeof places);
    memset(&sim->slot[at * IBN_SLOT], 0, sizeof places);
    if (sim->adaptive)
        handle_soon(sim, places, 1);
    else
        handle_soon(sim, places, 0);
    if (sim->arrivals)
        ibn_simulate_call_queued(sim);
    for (int kind = EV_LATER; kind < EV_KINDS; kind++)
        if (places[kind])
            handle_laters(sim, kind, places[kind]);
    if (sim->checks)
        ibn_simulate_look_full(sim);
    if (sim->options.xoff)
        handle_batches(sim, EV_FREED, places[EV_FREED], 0);
    ibn_simulate_arbitrate(sim);
    if (sim->checks)
        ibn_simulate_look_empty(sim);
}

/* Run until tick `until` is reached, `events` further events are handled, no event is pending, or the simulation ends.
 * With `stop_at_standstill`, also stop when packets are in flight but no pending event can move data.  Return 1 if
 * memory runs out, else 0.
 *
 * stop_info[3]: output: the reason for stopping (STOP_TIME, STOP_EMPTY, STOP_STANDSTILL or STOP_EVENTS), the present
 * tick, and the number of events handled since the start. */
int ibn_simulate_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *stop_info)
{
    int64_t reason = STOP_TIME, most = sim->handled + events;
    for (;;) {
        int64_t inside = sim->injected - sim->delivered - sim->dropped, time;
        /* The simulation ends with the delivery of the last packet.  It does not wait for the credits of this
         * packet. */
        if (sim->moving == sim->crediting && !inside && !sim->gated
            && !ibn_simulate_flow_pressing(sim->flow, sim->flows)) {
            reason = STOP_EMPTY;
            break;
        }
        if (!sim->moving && stop_at_standstill) {
            reason = STOP_STANDSTILL;
            break;
        }
        time = next_tick(sim);
        if (time < 0 || time > until) {
            if (time < 0)
                reason = STOP_STANDSTILL;
            sim->now = until;
            break;
        }
        if (sim->handled >= most) {
            reason = STOP_EVENTS;
            break;
        }
        tick(sim, time);
        if (sim->failed)
            return 1;
    }
    stop_info[0] = reason;
    stop_info[1] = sim->now;
    stop_info[2] = sim->handled;
    return 0;
}
