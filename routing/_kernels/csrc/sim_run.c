/* The clock: tick by tick, everything that happens, then every channel that was touched.
 *
 * What happens in one tick does not depend on the order in which it is handled: the first kinds of events commute, the
 * later ones are sorted, and channels are arbitrated when all is done. */
#include "internal/sim.h"

/* The next tick at which something happens, or -1. */
static int64_t next_tick(const ibn_sim *sim)
{
    int64_t heap = sim->heap_size ? sim->event[sim->heap[0]].time : -1;
    int32_t words = sim->slots >> 6, start = (int32_t)((sim->now + 1) & (sim->slots - 1));
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

static void fcp(ibn_sim *sim)
{
    for (int64_t l = 0; l < sim->lanes; l++) {
        int32_t blocks = sim->watch[l].unsent;
        if (!blocks)
            continue;
        sim->watch[l].unsent = 0;
        sim->moving--;
        ibn_at(sim, sim->now + sim->channel[l / sim->vls].wire, EV_CREDIT, (int32_t)l, blocks);
    }
    ibn_at(sim, sim->now + sim->options.fcp_period, EV_FCP, 0, 0);
}

static void freed(ibn_sim *sim, int32_t l, int32_t blocks)
{
    int before = sim->watch[l].unsent != 0;
    sim->watch[l].unsent += blocks;
    sim->moving += (sim->watch[l].unsent != 0) - before;
}

static inline void credit(ibn_sim *sim, int32_t l, int32_t blocks)
{
    ibn_lane *lane = &sim->lane[l];
    lane->fccl += (uint32_t)blocks;
    lane->returning -= blocks;
    if (lane->waiting) {
        int32_t c = l / sim->vls;
        if (sim->channel[c].busy <= sim->now)
            ibn_touch(sim, c);
    }
}

static void handle_later(ibn_sim *sim, int type, int32_t subject, int32_t value)
{
    switch (type) {
    case EV_HEAD:
        ibn_sim_head(sim, subject);
        break;
    case EV_UNSTALL:
        ibn_sim_unstall(sim, subject);
        break;
    case EV_RULE_END:
        ibn_sim_rule_end(sim, subject, value);
        break;
    case EV_CONTROL:
        ibn_sim_control(sim, subject);
        break;
    case EV_CLCM:
        ibn_sim_clcm(sim, subject, value);
        break;
    case EV_SAMPLE:
        ibn_sim_sample(sim);
        break;
    default:
        fcp(sim);
    }
}

static inline void handle(ibn_sim *sim, int type, int32_t subject, int32_t value)
{
    switch (type) {
    case EV_FREE:
        sim->channel[subject].called = 0;
        if (sim->channel[subject].waiting)
            ibn_touch(sim, subject);
        break;
    case EV_CREDIT:
        credit(sim, subject, value);
        break;
    case EV_FREED:
        freed(sim, subject, value);
        break;
    case EV_ARRIVE:
        ibn_sim_arrive(sim, subject);
        break;
    case EV_DELIVER:
        ibn_sim_deliver(sim, subject);
        break;
    case EV_INJECT:
        sim->flow[subject].called = 0;
        ibn_sim_prepare(sim, subject);
        break;
    default:
        ibn_sim_expose(sim, subject);
    }
}

static inline void free_event(ibn_sim *sim, int32_t e)
{
    sim->event[e].next = sim->event_free;
    sim->event_free = e;
}

/* Large networks do not fit the caches: ask for what the next event and the next channel will touch. */
static inline void fetch_event(const ibn_sim *sim, int32_t e)
{
    const ibn_event *event = &sim->event[e];
    if (event->type == EV_ARRIVE || event->type == EV_DELIVER)
        __builtin_prefetch(&sim->packet[event->subject]);
    else if (event->type == EV_CREDIT)
        __builtin_prefetch(&sim->lane[event->subject]);
    else if (event->type == EV_FREE)
        __builtin_prefetch(&sim->channel[event->subject]);
}

static inline void fetch_channel(const ibn_sim *sim, int32_t c)
{
    const ibn_channel *channel = &sim->channel[c];
    __builtin_prefetch(&sim->counters[c]);
    if (channel->vls) {
        int64_t l = (int64_t)c * sim->vls + __builtin_ctz(channel->vls);
        __builtin_prefetch(&sim->lane[l]);
        __builtin_prefetch(&sim->mask[l * sim->words]);
    }
}

static void handle_events(ibn_sim *sim, int32_t e)
{
    while (e != IBN_NONE) {
        ibn_event event = sim->event[e];
        if (event.next != IBN_NONE)
            fetch_event(sim, event.next);
        sim->handled++;
        sim->moving -= ibn_moves(event.type);
        if (event.type < EV_LATER) {
            free_event(sim, e);
            handle(sim, event.type, event.subject, event.value);
        } else {
            ibn_sim_later(sim, e);
        }
        e = event.next;
    }
}

static void tick(ibn_sim *sim, int64_t time)
{
    int32_t at = (int32_t)(time & (sim->slots - 1)), first = IBN_NONE;
    sim->now = time;
    if ((sim->busy_slots[at >> 6] >> (at & 63)) & 1) {
        first = sim->slot[at];
        sim->slot[at] = IBN_NONE;
        sim->busy_slots[at >> 6] &= ~(1ull << (at & 63));
    }
    while (sim->heap_size && sim->event[sim->heap[0]].time == time) {
        int32_t e = ibn_sim_heap_pop(sim);
        sim->event[e].next = first;
        first = e;
    }
    handle_events(sim, first);
    if (sim->laters > 1)
        ibn_sim_sort_later(sim);
    for (int32_t i = 0; i < sim->laters; i++) {
        ibn_event event = sim->event[sim->later[i]];
        free_event(sim, sim->later[i]);
        handle_later(sim, event.type, event.subject, event.value);
    }
    sim->laters = 0;
    for (int32_t i = 0; i < sim->touches; i++) {
        if (i + 2 < sim->touches)
            fetch_channel(sim, sim->touched[i + 2]);
        sim->channel[sim->touched[i]].touched = 0;
        ibn_sim_arbitrate(sim, sim->touched[i]);
    }
    sim->touches = 0;
}

/* Run to a time, to a number of events, or to an end; told: why, when, events handled. */
int ibn_sim_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *told)
{
    int64_t reason = STOP_TIME, most = sim->handled + events;
    for (;;) {
        int64_t inside = sim->injected - sim->delivered - sim->dropped, time;
        if (!sim->moving && !inside) {
            reason = STOP_EMPTY;
            break;
        }
        if (!sim->moving && stop_at_standstill) {
            reason = STOP_STANDSTILL;
            break;
        }
        time = next_tick(sim);
        if (time < 0 || time > until) {
            if (time < 0 && inside)
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
    told[0] = reason;
    told[1] = sim->now;
    told[2] = sim->handled;
    return 0;
}
