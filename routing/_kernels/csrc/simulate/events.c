/* Memory of a simulation: events, packets, control messages, and the log.
 *
 * Events of the near future are in a timing wheel, which is an array with one slot for each tick.  A slot stores events
 * in batches.  Events that are due later are in a heap. */
#include "simulate/internal/mechanism.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

/* Double the length of an array that has *room elements of `width` bytes each.  The memory of the array begins at a
 * cache line.  If memory runs out, return 1 and set sim->failed.  Otherwise return 0. */
static int grow(ibn_sim *sim, void **array, int64_t *room, size_t width)
{
    int64_t wanted = *room ? *room * 2 : 1024;
    void *larger = wanted > INT32_MAX ? NULL : aligned_alloc(CACHE_LINE, (size_t)wanted * width);
    if (!larger) {
        sim->failed = 1;
        return 1;
    }
    if (*room)
        memcpy(larger, *array, (size_t)*room * width);
    free(*array);
    *array = larger;
    *room = wanted;
    return 0;
}

/* Allocate memory for more batches of events.  Return 1 if memory runs out, else 0.  Batch 0 is never used, because the
 * number 0 means "no batch". */
int ibn_simulate_more_batches(ibn_sim *sim)
{
    int64_t made = sim->batches_made;
    if (made > INT32_MAX / IBN_BATCH / 2) {
        sim->failed = 1;
        return 1;
    }
    if (grow(sim, (void **)&sim->event, &made, IBN_BATCH * sizeof(ibn_event)))
        return 1;
    for (int32_t b = (int32_t)made - 1; b >= sim->batches_made && b; b--) {
        sim->event[b * IBN_BATCH].subject = sim->batch_free;
        sim->batch_free = b;
    }
    sim->batches_made = (int32_t)made;
    return 0;
}

/* Allocate memory for more packets.  Return 1 if memory runs out. */
int ibn_simulate_more_packets(ibn_sim *sim)
{
    int64_t made = sim->packets_made;
    if (grow(sim, (void **)&sim->packet, &made, sizeof(ibn_packet)))
        return 1;
    for (int32_t p = (int32_t)made - 1; p >= sim->packets_made; p--)
        ibn_simulate_free_packet(sim, p);
    sim->packets_made = (int32_t)made;
    sim->failed |= ibn_simulate_more_tags(sim);
    return sim->failed;
}

/* Return an unused control message, with all fields cleared.  Return IBN_NONE if memory runs out. */
int32_t ibn_simulate_new_clcm(ibn_sim *sim)
{
    if (sim->clcm_free == IBN_NONE) {
        int64_t made = sim->clcms_made;
        if (grow(sim, (void **)&sim->clcm, &made, sizeof(ibn_clcm)))
            return IBN_NONE;
        for (int32_t m = (int32_t)made - 1; m >= sim->clcms_made; m--)
            ibn_simulate_drop_clcm(sim, m);
        sim->clcms_made = (int32_t)made;
    }
    int32_t m = sim->clcm_free;
    sim->clcm_free = sim->clcm[m].next;
    memset(&sim->clcm[m], 0, sizeof(ibn_clcm));
    return m;
}

/* Add a control message to the list of unused control messages. */
void ibn_simulate_drop_clcm(ibn_sim *sim, int32_t message)
{
    sim->clcm[message].next = sim->clcm_free;
    sim->clcm_free = message;
}

/* Add an event to the heap, which stores the events that are due too late to be in the timing wheel. */
void ibn_simulate_heap_push(ibn_sim *sim, int64_t time, int kind, ibn_event event)
{
    if (sim->heap_size == sim->heap_room) {
        int64_t room = sim->heap_room;
        if (grow(sim, (void **)&sim->heap, &room, sizeof(ibn_distant)))
            return;
        sim->heap_room = (int32_t)room;
    }
    int32_t at = sim->heap_size++;
    while (at > 0) {
        int32_t above = (at - 1) / 2;
        if (sim->heap[above].time <= time)
            break;
        sim->heap[at] = sim->heap[above];
        at = above;
    }
    sim->heap[at] = (ibn_distant){time, kind, event};
}

/* Remove the earliest event from the heap.  The event is not returned, so the caller reads the event before the
 * call. */
void ibn_simulate_heap_pop(ibn_sim *sim)
{
    ibn_distant last = sim->heap[--sim->heap_size];
    int32_t at = 0;
    for (;;) {
        int32_t below = 2 * at + 1;
        if (below >= sim->heap_size)
            break;
        if (below + 1 < sim->heap_size && sim->heap[below + 1].time < sim->heap[below].time)
            below++;
        if (sim->heap[below].time >= last.time)
            break;
        sim->heap[at] = sim->heap[below];
        at = below;
    }
    sim->heap[at] = last;
}

/* Return whether event a comes before event b of the same kind.  Events are ordered by subject, and then by value. */
static int before(ibn_event a, ibn_event b)
{
    return a.subject != b.subject ? a.subject < b.subject : a.value < b.value;
}

/* Store an event at index `at` of sim->later.  Return 1 if memory runs out, else 0. */
static int keep(ibn_sim *sim, int32_t at, ibn_event event)
{
    if (at == sim->later_room) {
        int64_t room = sim->later_room;
        if (grow(sim, (void **)&sim->later, &room, sizeof(ibn_event)))
            return 1;
        sim->later_room = (int32_t)room;
    }
    sim->later[at] = event;
    return 0;
}

/* Copy the events of one kind and tick to sim->later, and sort them by subject and value.  Return the number of events.
 *
 * `place` is the index in sim->event directly after the last of these events.  The function uses Shell sort, because
 * there is usually one event, but sometimes there are thousands. */
int32_t ibn_simulate_gather(ibn_sim *sim, uint32_t place)
{
    int32_t count = 0, gap = 1;
    for (; place; place = ibn_simulate_batch_before(sim, place))
        for (uint32_t i = ibn_simulate_first_event(place); i < place; i++)
            if (keep(sim, count++, sim->event[i]))
                return 0;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int32_t i = gap; i < count; i++) {
            ibn_event event = sim->later[i];
            int32_t at = i;
            for (; at >= gap && before(event, sim->later[at - gap]); at -= gap)
                sim->later[at] = sim->later[at - gap];
            sim->later[at] = event;
        }
    }
    return count;
}

/* Append a row to the event log.  If the log is full, count the row as lost instead. */
void ibn_simulate_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d)
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
