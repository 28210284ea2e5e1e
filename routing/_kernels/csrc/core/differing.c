/* Compare two arrays byte by byte, and leave out parts that are known to be equal: see differing.h. */
#include "core/differing.h"

#include <string.h>

/* PART: number of bytes that are compared at once if the caller gives no pages.  BLOCK: number of bytes that are
 * compared at once within a part that differs, or within a page that may differ. */
enum { PART = 1 << 16, BLOCK = 64 };

static int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t ibn_core_differing(const uint8_t *one, const uint8_t *other, int64_t size, const uint8_t *pages, int64_t page,
                           int64_t *found, int64_t room)
{
    const int64_t part = pages ? page : PART;
    int64_t count = 0;
    for (int64_t from = 0; from < size; from += part) {
        const int64_t end = smaller(from + part, size);
        if (pages ? !pages[from / page] : !memcmp(one + from, other + from, (size_t)(end - from)))
            continue;
        for (int64_t block = from; block < end; block += BLOCK) {
            const int64_t stop = smaller(block + BLOCK, end);
            if (!memcmp(one + block, other + block, (size_t)(stop - block)))
                continue;
            for (int64_t at = block; at < stop; at++)
                if (one[at] != other[at]) {
                    if (count < room)
                        found[count] = at;
                    count++;
                }
        }
    }
    return count;
}
