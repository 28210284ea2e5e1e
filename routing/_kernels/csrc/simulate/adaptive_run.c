/* Main loop of a simulation with adaptive routing.  In each tick, all events are handled before the devices that the
 * events concern are served.
 *
 * The result does not depend on the order in which the events of a tick were scheduled.  Events of the kinds before
 * AV_LATER (in the enum of internal/adaptive.h) may be handled in any order.  Events of AV_LATER and of the kinds after
 * it are sorted.  Devices are served in random order, because switches compete for the spare buffers of their neighbours
 * (scheme CONCURRENT). */
#include "simulate/internal/adaptive.h"

#include <stdlib.h>

/* Give the sender of VC l the credits for `blocks` blocks, which have arrived at the sender. */
static void credit(ibn_adaptive *sim, int32_t l, int32_t blocks)
{
    sim->vc[l].credits += blocks;
    sim->vc[l].returning -= blocks;
    ibn_simulate_adaptive_touch(sim, sim->channel[sim->vc[l].channel].src);
}

/* Record that spare buffer k of a switch is free.  The neighbours of the switch are served, because their packets may
 * wait for this buffer. */
static void spare(ibn_adaptive *sim, int32_t s, int32_t k)
{
    sim->device[s].spare_state[k] = SPARE_FREE;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++)
        ibn_simulate_adaptive_touch(sim, sim->channel[c].dst);
}

static void handle(ibn_adaptive *sim, int kind, int32_t subject, int32_t value)
{
    switch (kind) {
    case AV_CREDIT:
        credit(sim, subject, value);
        break;
    case AV_ARRIVE:
        ibn_simulate_adaptive_arrive(sim, subject);
        break;
    case AV_DELIVER:
        ibn_simulate_adaptive_deliver(sim, subject);
        break;
    case AV_FREE:
    case AV_EXPIRE:
        ibn_simulate_adaptive_touch(sim, sim->channel[subject].src);
        break;
    case AV_SHOW:
        ibn_simulate_adaptive_show(sim, subject);
        break;
    case AV_SPARE:
        spare(sim, subject, value);
        break;
    case AV_INJECT:
        sim->flow[subject].called = 0;
        ibn_simulate_adaptive_prepare(sim, subject);
        break;
    case AV_TOKEN:
        ibn_simulate_adaptive_token(sim, subject);
        break;
    case AV_PING:
        ibn_simulate_adaptive_ping(sim, subject, value);
        break;
    default:
        if (sim->options.scheme == SCHEME_BUBBLE)
            ibn_simulate_adaptive_sample(sim);
        else
            ibn_simulate_adaptive_mark_suspects(sim);
    }
}

/* Compare two events for qsort by kind, subject and the sort key that keep_for_later has stored. */
static int compare(const void *left, const void *right)
{
    const ibn_adaptive_event *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->subject != b->subject)
        return a->subject < b->subject ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

static void keep_for_later(ibn_adaptive *sim, ibn_adaptive_event event)
{
    /* The tick of the event is no longer needed, so the field `time` holds the last sort key instead. */
    event.time = event.kind == AV_PING ? sim->ping[event.value].id : 0;
    if (sim->later_count == sim->later_room) {
        if (ibn_simulate_adaptive_more((void **)&sim->later, sim->later_room, sizeof *sim->later)) {
            sim->failed = 1;
            return;
        }
        sim->later_room = sim->later_room ? 2 * sim->later_room : 1024;
    }
    sim->later[sim->later_count++] = event;
}

/* Handle all events of the present tick.
 *
 * The slot of the present tick may also contain events that are due one or more turns of the timing wheel later.  Such
 * events stay in the slot. */
static void happen(ibn_adaptive *sim)
{
    int32_t *slot = &sim->slot[sim->now & (AV_SLOTS - 1)], e = *slot;
    *slot = IBN_NONE;
    sim->later_count = 0;
    while (e != IBN_NONE) {
        ibn_adaptive_event event = sim->event[e];
        if (event.time != sim->now) {
            sim->event[e].next = *slot;
            *slot = e;
            e = event.next;
            continue;
        }
        sim->event[e].next = sim->event_free;
        sim->event_free = e;
        e = event.next;
        sim->pending--;
        sim->handled++;
        if (event.kind >= AV_LATER) {
            keep_for_later(sim, event);
            continue;
        }
        sim->moving--;
        sim->crediting -= event.kind == AV_CREDIT;
        handle(sim, event.kind, event.subject, event.value);
    }
    if (sim->later_count > 1)
        qsort(sim->later, (size_t)sim->later_count, sizeof *sim->later, compare);
    for (int32_t i = 0; i < sim->later_count; i++)
        handle(sim, sim->later[i].kind, sim->later[i].subject, sim->later[i].value);
}

/* Return the tick of the next event, or `until` if no event is due before tick `until`.  All slots of the timing wheel
 * are searched. */
static int64_t earliest(const ibn_adaptive *sim, int64_t until)
{
    int64_t first = until;
    for (int32_t i = 0; i < AV_SLOTS; i++)
        for (int32_t e = sim->slot[i]; e != IBN_NONE; e = sim->event[e].next)
            if (sim->event[e].time < first)
                first = sim->event[e].time;
    return first;
}

static int compare_turns(const void *left, const void *right)
{
    const ibn_turn *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Serve the devices that events of this tick concern.
 *
 * Switches compete for the spare buffers of their neighbours (scheme CONCURRENT).  In this case, the order of service is
 * random.  A fixed order would give a spare buffer to the same switch each time. */
static void serve(ibn_adaptive *sim)
{
    for (int32_t i = 0; i < sim->touches && sim->options.scheme == SCHEME_CONCURRENT; i++) {
        int32_t d = sim->touched[i];
        uint64_t key = ibn_simulate_key(sim->options.seed, 10, (uint64_t)d);
        sim->turns[i] = (ibn_turn){ibn_simulate_number(key, (uint64_t)sim->now), d};
    }
    if (sim->options.scheme == SCHEME_CONCURRENT) {
        qsort(sim->turns, (size_t)sim->touches, sizeof *sim->turns, compare_turns);
        for (int32_t i = 0; i < sim->touches; i++)
            sim->touched[i] = sim->turns[i].device;
    }
    for (int32_t i = 0; i < sim->touches; i++) {
        ibn_simulate_adaptive_serve(sim, sim->touched[i]);
        /* The field `touched` is cleared only after the device was served.  A CA that is served prepares its next
         * packet, which lists the CA again if `touched` is 0.  This would be useless, because its channel is busy now. */
        sim->device[sim->touched[i]].touched = 0;
    }
    sim->touches = 0;
}

/* Run until tick `until` is reached, `events` events are handled, or the simulation ends.  With `stop_at_standstill`,
 * also stop when packets are in flight but no pending event can move data.  Return 1 if memory runs out, else 0.
 *
 * stop_info[3]: output: the reason for stopping (STOP_TIME, STOP_EMPTY, STOP_STANDSTILL or STOP_EVENTS), the present
 * tick, and the number of events handled since the start. */
int ibn_simulate_adaptive_run(ibn_adaptive *sim, int64_t until, int64_t events, int32_t stop_at_standstill,
                              int64_t *stop_info)
{
    int64_t reason = STOP_TIME, most = sim->handled + events, last = sim->now, handled = sim->handled;
    while (sim->now < until) {
        /* The simulation ends with the delivery of the last packet.  It does not wait for the credits of this
         * packet. */
        if (sim->moving == sim->crediting && sim->injected == sim->delivered
            && !ibn_simulate_flow_pressing(sim->flow, sim->flows)) {
            reason = STOP_EMPTY;
            break;
        }
        if (!sim->moving && (stop_at_standstill || !sim->pending)) {
            reason = STOP_STANDSTILL;
            if (!stop_at_standstill)
                sim->now = until;
            break;
        }
        if (sim->handled >= most) {
            reason = STOP_EVENTS;
            break;
        }
        if (sim->handled != handled) {
            handled = sim->handled;
            last = sim->now;
            /* No event was due during a full revolution of the timing wheel, so the simulation continues at the tick of
             * the next event. */
        } else if (sim->now - last >= AV_SLOTS) {
            last = sim->now = earliest(sim, until) - 1;
        }
        sim->now++;
        happen(sim);
        serve(sim);
        if (sim->failed)
            return 1;
    }
    stop_info[0] = reason;
    stop_info[1] = sim->now;
    stop_info[2] = sim->handled;
    return 0;
}
