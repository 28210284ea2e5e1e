/* Runs numbered jobs on a few threads.  Which thread takes which item is left to chance, so a job's result may depend on
 * its item only, never on the thread: that is what makes every kernel's output the same at any thread count. */
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct {
    ibn_job job;
    void *context;
    int32_t items;
    atomic_int next;
} queue_t;

static void *drain(void *argument)
{
    queue_t *queue = argument;
    int item;
    while ((item = atomic_fetch_add(&queue->next, 1)) < queue->items)
        queue->job(queue->context, item);
    return NULL;
}

/* Calls job(context, i) once for every i in 0..items-1, on up to `threads` threads including the caller's.  A thread that
 * cannot be started is done without: the others take its share.  Returns 0 or 1 (out of memory). */
int ibn_parallel(int32_t threads, int32_t items, ibn_job job, void *context)
{
    queue_t queue = {.job = job, .context = context, .items = items, .next = 0};
    int32_t extra = (threads < items ? threads : items) - 1;
    if (extra <= 0) {
        drain(&queue);
        return 0;
    }
    pthread_t *helpers = malloc((size_t)extra * sizeof *helpers);
    if (!helpers)
        return 1;
    int32_t started = 0;
    while (started < extra && pthread_create(&helpers[started], NULL, drain, &queue) == 0)
        started++;
    drain(&queue);
    for (int32_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    free(helpers);
    return 0;
}
