/* Work queue of numbered items, which threads take in ascending order. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Return the number of the next item that no thread has taken.  The relaxed memory order makes no other data of a
 * thread visible to other threads.  So ThreadSanitizer still finds data races that a stricter memory order would
 * conceal. */
static inline int32_t ibn_core_next_item(atomic_int *next)
{
    return atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
}
