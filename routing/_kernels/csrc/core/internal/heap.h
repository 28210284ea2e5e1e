/* Binary heap of numbered items.  The item with the smallest key is removed first.  Of several items with the smallest
 * key, the item with the smallest number is removed first. */
#pragma once

#include <stdint.h>

typedef struct {
    double key;
    int32_t of; /* number of the item: a switch or a channel */
} heap_entry;

typedef struct {
    /* the items in the heap; the caller allocates room for as many items as the heap ever holds, and frees the array */
    heap_entry *entry;
    int32_t size; /* number of items in the heap */
} ibn_heap;

/* Return whether item a of the heap is removed before item b. */
static inline int ibn_core_heap_before(heap_entry a, heap_entry b)
{
    return a.key < b.key || (a.key == b.key && a.of < b.of);
}

static inline void ibn_core_heap_push(ibn_heap *heap, double key, int32_t of)
{
    const heap_entry entry = {.key = key, .of = of};
    int32_t i = heap->size++;
    for (; i > 0 && ibn_core_heap_before(entry, heap->entry[(i - 1) / 2]); i = (i - 1) / 2)
        heap->entry[i] = heap->entry[(i - 1) / 2];
    heap->entry[i] = entry;
}

/* Remove the item with the smallest key from a heap that is not empty, and return the item. */
static inline heap_entry ibn_core_heap_pop(ibn_heap *heap)
{
    heap_entry top = heap->entry[0], last = heap->entry[--heap->size];
    int32_t i = 0;
    for (int32_t child = 1; child < heap->size; child = 2 * i + 1) {
        if (child + 1 < heap->size && ibn_core_heap_before(heap->entry[child + 1], heap->entry[child]))
            child++;
        if (!ibn_core_heap_before(heap->entry[child], last))
            break;
        heap->entry[i] = heap->entry[child];
        i = child;
    }
    heap->entry[i] = last;
    return top;
}
