/* Arrays that a kernel allocates one after the other and frees together. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Header before each array in memory.  The header is as large as the strictest alignment, so that the array after it is
 * aligned. */
typedef union array_header {
    union array_header *before; /* header of the array that was allocated before, or NULL */
    max_align_t alignment;
} array_header;

/* A list of arrays.  All bytes of an empty list are zero. */
typedef struct {
    array_header *last; /* header of the array that was allocated last, or NULL */
    bool failed;        /* whether an array could not be allocated */
} array_list;

/* Allocate an array of `count` elements of `size` bytes, all zero, and add it to a list.  Returns NULL and sets
 * `failed` if memory ran out. */
static inline void *ibn_core_arrays_add(array_list *list, size_t count, size_t size)
{
    size_t bytes;
    const bool fits = !__builtin_mul_overflow(count, size, &bytes)
                      && !__builtin_add_overflow(bytes, sizeof(array_header), &bytes);
    array_header *header = fits ? calloc(1, bytes) : NULL;
    list->failed |= !header;
    if (!header)
        return NULL;
    header->before = list->last;
    list->last = header;
    return header + 1;
}

/* Free all arrays of a list, which is empty afterwards. */
static inline void ibn_core_arrays_free(array_list *list)
{
    while (list->last) {
        array_header *before = list->last->before;
        free(list->last);
        list->last = before;
    }
}
