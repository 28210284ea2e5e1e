/* Memory of a simulation's events: the overflow heap of the timing wheel, the log, packets. */
#include "internal/sim.h"

#include <stdlib.h>
#include <string.h>

/* Twice the room, or failed. */
static int grow(ibn_sim *sim, void **array, int64_t *room, size_t width)
{
    int64_t wanted = *room ? *room * 2 : 1024;
    void *larger = wanted > INT32_MAX ? NULL : realloc(*array, (size_t)wanted * width);
    if (!larger) {
        sim->failed = 1;
        return 1;
    }
    *array = larger;
    *room = wanted;
    return 0;
}

int ibn_sim_more_events(ibn_sim *sim)
{
    int64_t made = sim->events_made;
    if (grow(sim, (void **)&sim->event, &made, sizeof(ibn_event)))
        return 1;
    for (int32_t e = (int32_t)made - 1; e >= sim->events_made; e--) {
        sim->event[e].next = sim->event_free;
        sim->event_free = e;
    }
    sim->events_made = (int32_t)made;
    return 0;
}

int32_t ibn_sim_new_packet(ibn_sim *sim)
{
    if (sim->packet_free == IBN_NONE) {
        int64_t made = sim->packets_made;
        if (grow(sim, (void **)&sim->packet, &made, sizeof(ibn_packet)))
            return IBN_NONE;
        for (int32_t p = (int32_t)made - 1; p >= sim->packets_made; p--)
            ibn_free_packet(sim, p);
        sim->packets_made = (int32_t)made;
    }
    int32_t p = sim->packet_free;
    sim->packet_free = sim->packet[p].next;
    return p;
}

int32_t ibn_sim_new_clcm(ibn_sim *sim)
{
    if (sim->clcm_free == IBN_NONE) {
        int64_t made = sim->clcms_made;
        if (grow(sim, (void **)&sim->clcm, &made, sizeof(ibn_clcm)))
            return IBN_NONE;
        for (int32_t m = (int32_t)made - 1; m >= sim->clcms_made; m--)
            ibn_sim_drop_clcm(sim, m);
        sim->clcms_made = (int32_t)made;
    }
    int32_t m = sim->clcm_free;
    sim->clcm_free = sim->clcm[m].next;
    memset(&sim->clcm[m], 0, sizeof(ibn_clcm));
    return m;
}

void ibn_sim_drop_clcm(ibn_sim *sim, int32_t message)
{
    sim->clcm[message].next = sim->clcm_free;
    sim->clcm_free = message;
}

void ibn_sim_heap_push(ibn_sim *sim, int32_t e)
{
    if (sim->heap_size == sim->heap_room) {
        int64_t room = sim->heap_room;
        if (grow(sim, (void **)&sim->heap, &room, sizeof(int32_t)))
            return;
        sim->heap_room = (int32_t)room;
    }
    int32_t at = sim->heap_size++;
    while (at > 0) {
        int32_t above = (at - 1) / 2;
        if (sim->event[sim->heap[above]].time <= sim->event[e].time)
            break;
        sim->heap[at] = sim->heap[above];
        at = above;
    }
    sim->heap[at] = e;
}

int32_t ibn_sim_heap_pop(ibn_sim *sim)
{
    int32_t first = sim->heap[0], e = sim->heap[--sim->heap_size], at = 0;
    int64_t time = sim->event[e].time;
    for (;;) {
        int32_t below = 2 * at + 1;
        if (below >= sim->heap_size)
            break;
        if (below + 1 < sim->heap_size && sim->event[sim->heap[below + 1]].time < sim->event[sim->heap[below]].time)
            below++;
        if (sim->event[sim->heap[below]].time >= time)
            break;
        sim->heap[at] = sim->heap[below];
        at = below;
    }
    sim->heap[at] = e;
    return first;
}

static int before(const ibn_event *a, const ibn_event *b)
{
    if (a->type != b->type)
        return a->type < b->type;
    return a->subject != b->subject ? a->subject < b->subject : a->value < b->value;
}

/* Keep an event for the end of its tick. */
void ibn_sim_later(ibn_sim *sim, int32_t e)
{
    if (sim->laters == sim->later_room) {
        int64_t room = sim->later_room;
        if (grow(sim, (void **)&sim->later, &room, sizeof(int32_t)))
            return;
        sim->later_room = (int32_t)room;
    }
    sim->later[sim->laters++] = e;
}

/* By type, subject and value (Shell sort; mostly there are none, sometimes thousands). */
void ibn_sim_sort_later(ibn_sim *sim)
{
    int32_t gap = 1;
    while (gap < sim->laters / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int32_t i = gap; i < sim->laters; i++) {
            int32_t e = sim->later[i], at = i;
            for (; at >= gap && before(&sim->event[e], &sim->event[sim->later[at - gap]]); at -= gap)
                sim->later[at] = sim->later[at - gap];
            sim->later[at] = e;
        }
    }
}

void ibn_sim_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
    if (sim->logged >= IBN_LOG_MOST) {
        sim->log_lost++;
        return;
    }
    if (sim->logged == sim->log_room && grow(sim, (void **)&sim->log, &sim->log_room, IBN_LOG_WIDTH * sizeof(int64_t)))
        return;
    int64_t *row = sim->log + sim->logged++ * IBN_LOG_WIDTH;
    row[0] = sim->now;
    row[1] = kind;
    row[2] = a;
    row[3] = b;
    row[4] = c;
    row[5] = d;
}
