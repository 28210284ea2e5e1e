/* Compare two arrays byte by byte, and leave out parts that are known to be equal: see differing.h. */
#include "core/differing.h"

#include <string.h>

/* The arrays are first compared in parts of PART bytes.  A part that differs is compared again in blocks of BLOCK
 * bytes. */
enum { PART = 1 << 10, BLOCK = 64 };

static int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Find the elements with the indices `from` to `end` - 1 in which the arrays differ.  `count` elements were found
 * before.  Returns the new number of found elements. */
static int64_t find(const uint8_t *one, const uint8_t *other, int64_t from, int64_t end, int64_t count, int64_t *found,
                    int64_t room)
{
    for (int64_t block = from; block < end; block += BLOCK) {
        const int64_t stop = smaller(block + BLOCK, end), part = smaller(PART, end - block);
        if ((block - from) % PART == 0 && !memcmp(one + block, other + block, (size_t)part)) {
            block += PART - BLOCK;
            continue;
        }
        if (!memcmp(one + block, other + block, (size_t)(stop - block)))
            continue;
        for (int64_t at = block; at < stop; at++)
            if (one[at] != other[at]) {
                if (count < room)
                    found[count] = at;
                count++;
            }
    }
    return count;
}

int64_t ibn_core_differing(const uint8_t *one, const uint8_t *other, int64_t size, const uint8_t *pages, int64_t page,
                           int64_t *found, int64_t room)
{
    const int64_t step = pages ? page : size;
    int64_t count = 0;
    for (int64_t from = 0; from < size; from += step)
        if (!pages || pages[from / step])
            count = find(one, other, from, smaller(from + step, size), count, found, room);
    return count;
}
