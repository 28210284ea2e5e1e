/* Arrays that a kernel allocates one after the other and frees together. */
#ifndef IBNUE_ARRAYS_H
#define IBNUE_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* A list of arrays.  An empty list is all zero. */
typedef struct {
    void **array; /* [room] the arrays, of which the first `count` are in use */
    int count,    /* number of arrays */
        room;     /* number of arrays for which the list has room */
    bool failed;  /* whether an array could not be allocated */
} array_list;

/* Allocate an array of `count` elements of `size` bytes, all zero, and append it to a list.  Returns NULL and sets
 * `failed` if memory ran out. */
static inline void *ibn_core_arrays_add(array_list *list, size_t count, size_t size)
{
    if (list->count == list->room) {
        const int room = 2 * list->room + 16;
        void **larger = realloc(list->array, (size_t)room * sizeof *larger);
        if (larger) {
            list->array = larger;
            list->room = room;
        }
    }
    void *array = list->count < list->room ? calloc(count, size) : NULL;
    if (array)
        list->array[list->count++] = array;
    list->failed |= !array;
    return array;
}

/* Free all arrays of a list, which is empty afterwards. */
static inline void ibn_core_arrays_free(array_list *list)
{
    while (list->count > 0)
        free(list->array[--list->count]);
    free(list->array);
    list->array = NULL;
    list->room = 0;
}

#endif
