/* Memory of a simulation with adaptive routing: events in a timing wheel, packets, and pings.  A timing wheel is an
 * array of slots.  An event that is due at tick t is in slot t modulo the number of slots. */
#include "simulate/internal/adaptive.h"

#include <stdlib.h>

/* Double the size of an array, or allocate 1024 entries if the array is empty.  Return 1 if memory runs out, else 0. */
int ibn_simulate_adaptive_more(void **array, int32_t made, size_t size)
{
    void *larger = realloc(*array, (size_t)(made ? 2 * made : 1024) * size);
    if (larger)
        *array = larger;
    return !larger;
}

/* Schedule an event for a tick later than the present one. */
void ibn_simulate_adaptive_at(ibn_adaptive *sim, int64_t time, int kind, int32_t subject, int32_t value)
{
    if (sim->event_free == IBN_NONE) {
        int32_t made = sim->events_made;
        if (ibn_simulate_adaptive_more((void **)&sim->event, made, sizeof *sim->event)) {
            sim->failed = 1;
            return;
        }
        sim->events_made = made ? 2 * made : 1024;
        for (int32_t e = made; e < sim->events_made; e++) {
            sim->event[e].next = sim->event_free;
            sim->event_free = e;
        }
    }
    int32_t e = sim->event_free, *slot = &sim->slot[time & (AV_SLOTS - 1)];
    sim->event_free = sim->event[e].next;
    sim->event[e] = (ibn_adaptive_event){time, kind, subject, value, *slot};
    *slot = e;
    sim->pending++;
    sim->moving += kind < AV_LATER;
    sim->crediting += kind == AV_CREDIT;
}

/* Return an unused packet.  Return IBN_NONE if memory runs out. */
int32_t ibn_simulate_adaptive_new_packet(ibn_adaptive *sim)
{
    if (sim->packet_free == IBN_NONE) {
        int32_t made = sim->packets_made;
        if (ibn_simulate_adaptive_more((void **)&sim->packet, made, sizeof *sim->packet)) {
            sim->failed = 1;
            return IBN_NONE;
        }
        sim->packets_made = made ? 2 * made : 1024;
        for (int32_t p = made; p < sim->packets_made; p++)
            ibn_simulate_adaptive_free_packet(sim, p);
    }
    int32_t p = sim->packet_free;
    sim->packet_free = sim->packet[p].next;
    return p;
}

void ibn_simulate_adaptive_free_packet(ibn_adaptive *sim, int32_t p)
{
    sim->packet[p].next = sim->packet_free;
    sim->packet_free = p;
}

/* Return an unused ping.  Return IBN_NONE if memory runs out. */
int32_t ibn_simulate_adaptive_new_ping(ibn_adaptive *sim)
{
    if (sim->ping_free == IBN_NONE) {
        int32_t made = sim->pings_made;
        if (ibn_simulate_adaptive_more((void **)&sim->ping, made, sizeof *sim->ping)) {
            sim->failed = 1;
            return IBN_NONE;
        }
        sim->pings_made = made ? 2 * made : 1024;
        for (int32_t n = made; n < sim->pings_made; n++)
            ibn_simulate_adaptive_free_ping(sim, n);
    }
    int32_t n = sim->ping_free;
    sim->ping_free = sim->ping[n].next;
    return n;
}

void ibn_simulate_adaptive_free_ping(ibn_adaptive *sim, int32_t ping)
{
    sim->ping[ping].next = sim->ping_free;
    sim->ping_free = ping;
}
