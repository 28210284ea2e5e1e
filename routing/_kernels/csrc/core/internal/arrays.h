/* Arrays that a kernel allocates one after the other and frees together. */
#ifndef IBNUE_ARRAYS_H
#define IBNUE_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { MOST_ARRAYS = 48 }; /* largest number of arrays in a list */

typedef struct {
    void *array[MOST_ARRAYS]; /* [count] the arrays */
    int count;
    bool failed; /* whether an array could not be allocated */
} array_list;

/* Allocate an array of `count` elements of `size` bytes, all zero, and append it to a list.  Returns NULL and sets
 * `failed` if memory ran out, or if the list is full. */
static inline void *ibn_core_arrays_add(array_list *list, size_t count, size_t size)
{
    void *array = list->count < MOST_ARRAYS ? calloc(count, size) : NULL;
    if (array)
        list->array[list->count++] = array;
    list->failed |= !array;
    return array;
}

/* Free all arrays of a list. */
static inline void ibn_core_arrays_free(array_list *list)
{
    while (list->count > 0)
        free(list->array[--list->count]);
}

#endif
