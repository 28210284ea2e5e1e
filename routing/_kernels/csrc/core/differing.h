#pragma once
#include <stdint.h>

/* Find the elements in which two arrays of `size` bytes differ.
 *
 * pages: for each part of `page` bytes, whether the arrays may differ in this part; NULL: they may differ anywhere.
 * found: [room], receives the indices of the first `room` differing elements in ascending order.
 *
 * Returns the number of all differing elements, which may be larger than `room`. */
int64_t ibn_core_differing(const uint8_t *one, const uint8_t *other, int64_t size, const uint8_t *pages, int64_t page,
                           int64_t *found, int64_t room);
