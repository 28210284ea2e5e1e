#include "cdg/internal/forest.h"

#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { BLOCK = 64, DELIVERED = -1, LOST = 255, LOOPS = 256 };

bool ibn_cdg_forest_wanted(const cdg_tables *t, int32_t lid)
{
    return !t->has_endport || !t->lid_port[lid];
}

bool ibn_cdg_forest_any_wanted(const cdg_tables *t, int32_t lid, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (ibn_cdg_forest_wanted(t, lid + i))
            return true;
    return false;
}

int ibn_cdg_forest_prepare(cdg_forest *f, const cdg_tables *tables)
{
    size_t size = (size_t)tables->switches + 2;
    memset(f, 0, sizeof *f);
    f->t = tables;
    /* The length of a row is an odd number of cache lines (64 bytes each).  With an even number, the elements of one
     * switch in different rows could fall into the same few lines of the cache, and displace each other. */
    f->stride = (int64_t)(((size + 63) / 64 | 1) * 64);
    f->number = malloc(BLOCK * f->stride);
    f->far = malloc(BLOCK * f->stride);
    f->next = malloc(size * sizeof *f->next);
    f->degree = malloc(size * sizeof *f->degree);
    f->queue = malloc(size * sizeof *f->queue);
    f->hop = malloc(size * sizeof *f->hop);
    return f->number && f->far && f->next && f->degree && f->queue && f->hop ? OK : NO_MEMORY;
}

void ibn_cdg_forest_dispose(cdg_forest *f)
{
    free(f->number);
    free(f->far);
    free(f->next);
    free(f->degree);
    free(f->queue);
    free(f->hop);
}

/* Read the LFT entries of all switches towards LIDs `lid` to `lid` + `count` - 1 (at most 64).  Store the entries as
 * one row for each LID, which holds the channel numbers of all switches. */
void ibn_cdg_forest_load(cdg_forest *f, int32_t lid, int32_t count)
{
    const cdg_tables *t = f->t;
    for (int32_t s = 0; s < t->switches; s++) {
        const uint8_t *from = t->lft + (size_t)s * t->lids + lid;
        const uint8_t *exit = t->exit + (size_t)s * 256;
        uint8_t *to = f->number + s;
        for (int32_t i = 0; i < count; i++)
            to[i * f->stride] = exit[from[i]];
    }
}

/* Add to f->counts the numbers of switches whose packets to a LID are not delivered.  counts[0] counts the switches in
 * the LID's connected part, counts[1] the switches in other parts.  counts[2] counts all switches whose packets enter a
 * forwarding loop, in any part. */
static void count_lost(cdg_forest *f, int32_t lid)
{
    const cdg_tables *t = f->t;
    const int32_t part = t->part[t->lid_switch[lid]];
    for (int32_t s = 0; s < t->switches; s++) {
        f->counts[t->part[s] != part] += f->hop[s] >= LOST;
        f->counts[2] += f->hop[s] == LOOPS;
    }
}

/* Compute the hops from every switch to the LID, which is the i-th LID of its block.  Switches near the LID are visited
 * first.  So the hops of a switch's next switch are known when the switch is visited. */
static void count_hops(cdg_forest *f, int32_t lid, int32_t i)
{
    const int32_t switches = f->t->switches;
    const int32_t *restrict queue = f->queue, *restrict next = f->next;
    int16_t *restrict hop = f->hop;
    uint8_t *restrict far = f->far + i * f->stride;
    int32_t lost = 0;
    for (int32_t s = 0; f->sorted < switches && s < switches; s++)
        if (f->degree[s])
            hop[s] = LOOPS;
    hop[switches] = LOST;
    hop[switches + 1] = DELIVERED;
    for (int32_t k = f->sorted - 1; k >= 0; k--) {
        int32_t h = hop[next[queue[k]]];
        hop[queue[k]] = (int16_t)(h + (h < LOST - 1));
    }
    for (int32_t s = 0; s < switches; s++) {
        far[s] = (uint8_t)(hop[s] < LOST ? hop[s] : LOST);
        lost += hop[s] >= LOST;
    }
    if (lost)
        count_lost(f, lid);
}

/* Find the routes to one LID, which is the i-th LID of its block.  Sort the switches in `queue` such that each switch
 * comes after all switches upstream of it (Kahn's algorithm).  Switches on a forwarding loop are left out of the
 * queue. */
void ibn_cdg_forest_grow(cdg_forest *f, int32_t lid, int32_t i)
{
    const cdg_tables *t = f->t;
    const int32_t switches = t->switches, target = t->lid_switch[lid];
    const int32_t *restrict xfirst = t->xfirst, *restrict xdst = t->xdst;
    int32_t *restrict next = f->next, *restrict degree = f->degree, *restrict queue = f->queue;
    uint8_t *restrict number = f->number + i * f->stride;
    int32_t tail = 0;
    f->sorted = 0;
    if (target < 0) {
        memset(f->far + i * f->stride, LOST, switches);
        return;
    }
    number[switches] = number[switches + 1] = 0;
    memset(degree, 0, (switches + 2) * sizeof *degree);
    for (int32_t s = 0; s < switches; s++)
        degree[next[s] = xdst[xfirst[s] + number[s]]]++;
    if (t->lft[(size_t)target * t->lids + lid] == t->lid_port[lid])
        next[target] = switches + 1;
    degree[switches] = degree[switches + 1] = INT32_MAX;
    for (int32_t s = 0; s < switches; s++) {
        queue[tail] = s;
        tail += degree[s] == 0;
    }
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = next[queue[head]];
        queue[tail] = v;
        tail += --degree[v] == 0;
    }
    f->sorted = tail;
    count_hops(f, lid, i);
}

/* Copy the hops of a block of LIDs to the array `hops`, in which each switch has a row. */
void ibn_cdg_forest_store(cdg_forest *f, int32_t lid, int32_t count, uint8_t *hops)
{
    for (int32_t s = 0; s < f->t->switches; s++) {
        uint8_t *to = hops + (size_t)s * f->t->lids + lid;
        for (int32_t i = 0; i < count; i++)
            to[i] = f->far[i * f->stride + s];
    }
}
