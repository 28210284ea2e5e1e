/* Work queue of numbered items, which threads take in ascending order. */
#ifndef IBNUE_TAKE_H
#define IBNUE_TAKE_H

#include <stdatomic.h>
#include <stdint.h>

/* Return the number of the next item that no thread has taken.  The memory order is relaxed on purpose, so that the
 * operation synchronises no other data.  Therefore ThreadSanitizer still reports data races on other data. */
static inline int32_t ibn_core_next_item(atomic_int *next)
{
    return atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
}

#endif
