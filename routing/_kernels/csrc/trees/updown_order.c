/* Order the switches such that no dependency in use leads down and then up: see updown_order.h.
 *
 * The order is built from its end: the switch that is removed first gets the last position.  A switch may be removed if
 * no dependency in use leads from a remaining switch through this switch to a remaining switch.
 *
 * A switch that may be removed now may also be removed later.  So the sequence of the removals is free: if a valid
 * order exists, every sequence ends with such an order. */
#include "trees/updown_order.h"

#include <stdlib.h>

enum { OK, NO_MEMORY };
enum { WAITING, QUEUED, GONE };

typedef struct {
    const int32_t *first, *src, *dst, *into, *into_first, *slot;
    const uint16_t *dependencies;
    /* [S] number of dependencies in use that lead through each switch, from a switch that is not removed yet to another
     * such switch */
    int32_t *through;
    int32_t *queue; /* [S] switches in the sequence of their removal, last switch of the order first */
    /* [S] state of each switch.  WAITING: the switch is not in `queue` yet.  QUEUED: it is in `queue`, and will be
     * removed.  GONE: it has been removed, so its position in the order is known */
    uint8_t *state;
    int32_t tail;   /* number of switches in `queue` */
} job_t;

/* Return the number of dependencies in use that lead from channel c to channels into switches that are not removed
 * yet. */
static int32_t turns_from(const job_t *job, int32_t c)
{
    const int32_t s = job->dst[c];
    const uint16_t *dependencies = job->dependencies + job->slot[c] - job->first[s];
    int32_t count = 0;
    for (int32_t n = job->first[s]; n < job->first[s + 1]; n++)
        count += dependencies[n] && job->state[job->dst[n]] != GONE;
    return count;
}

/* Queue switch s for removal if no dependency in use leads through it any more. */
static void free_if_idle(job_t *job, int32_t s)
{
    if (job->through[s] == 0 && job->state[s] == WAITING) {
        job->state[s] = QUEUED;
        job->queue[job->tail++] = s;
    }
}

/* Remove switch s.  From the counts in `through` of the neighbours of s, subtract the dependencies that come from s or
 * lead to s.  Then queue the neighbours that may be removed now. */
static void take_out(job_t *job, int32_t s)
{
    for (int32_t c = job->first[s]; c < job->first[s + 1]; c++)
        job->through[job->dst[c]] -= turns_from(job, c);
    job->state[s] = GONE;
    for (int32_t i = job->into_first[s]; i < job->into_first[s + 1]; i++) {
        const int32_t n = job->into[i], at = job->src[n];
        for (int32_t k = job->into_first[at]; k < job->into_first[at + 1]; k++) {
            const int32_t c = job->into[k];
            job->through[at] -= job->dependencies[job->slot[c] + n - job->first[at]] && job->state[job->src[c]] != GONE;
        }
    }
    for (int32_t c = job->first[s]; c < job->first[s + 1]; c++)
        free_if_idle(job, job->dst[c]);
}

int ibn_trees_updown_order(int32_t switches, const int32_t *first, const int32_t *src, const int32_t *dst,
                           const int32_t *into, const int32_t *into_first, const int32_t *slot,
                           const uint16_t *dependencies, int32_t *position, int32_t *placed)
{
    job_t job = {.first = first,
                 .src = src,
                 .dst = dst,
                 .into = into,
                 .into_first = into_first,
                 .slot = slot,
                 .dependencies = dependencies};
    job.through = calloc((size_t)switches + 1, sizeof *job.through);
    job.queue = malloc(((size_t)switches + 1) * sizeof *job.queue);
    job.state = calloc((size_t)switches + 1, sizeof *job.state);
    const int code = job.through && job.queue && job.state ? OK : NO_MEMORY;
    *placed = 0;
    if (code == OK) {
        for (int32_t c = 0; c < first[switches]; c++)
            job.through[dst[c]] += turns_from(&job, c);
        for (int32_t s = 0; s < switches; s++)
            free_if_idle(&job, s);
        for (; *placed < job.tail; ++*placed) {
            position[job.queue[*placed]] = switches - 1 - *placed;
            take_out(&job, job.queue[*placed]);
        }
    }
    free(job.through);
    free(job.queue);
    free(job.state);
    return code;
}
