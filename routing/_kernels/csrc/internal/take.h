/* Items that are handed out to whichever thread asks next. */
#ifndef IBNUE_TAKE_H
#define IBNUE_TAKE_H

#include <stdatomic.h>
#include <stdint.h>

/* The number of the next item that nobody has.  Taking one orders nothing else between threads: what they share beyond
 * that would be a mistake, and so ThreadSanitizer sees it. */
static inline int32_t ibn_take(atomic_int *next)
{
    return atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
}

#endif
