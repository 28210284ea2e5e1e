/* Thread pool for numbered items of work.  Any thread may take any item, so the result of an item must not depend on
 * the thread.  Under this condition, a kernel has the same output with any number of threads. */
#include "core/internal/work_queue.h"
#include "core/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Number of times that an idle thread checks for a new round of work before it sleeps.  These checks take a few
 * microseconds, which is about the time of a wake-up. */
#define SPINS 2000
/* Array accesses for which one more thread is worthwhile: starting and joining a thread takes about as long as 3,000
 * accesses.  A piece of work gets one thread, and one more thread for each VISITS accesses. */
#define VISITS 8192

struct ibn_team {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    pthread_t *helper; /* [helpers] threads of the team besides the caller's thread */
    int32_t helpers;
    int ending;       /* set when the threads have to end; accessed only under the lock */
    atomic_int round; /* number of rounds of work that have begun; written under the lock, read without the lock */
    atomic_int busy;  /* number of helper threads that have not finished the present round */
    atomic_int next;  /* number of the next item that no thread has taken */
    int32_t items;
    ibn_job job;
    void *context;
};

static void drain(ibn_team *team)
{
    int item;
    while ((item = ibn_core_next_item(&team->next)) < team->items)
        team->job(team->context, item);
}

/* Wait until the next round of work begins.  `seen` is the number of rounds that have begun so far.  Returns 0 if the
 * thread has to end instead, otherwise 1. */
static int wait_for_more(ibn_team *team, int seen)
{
    for (int i = 0; i < SPINS && atomic_load_explicit(&team->round, memory_order_relaxed) == seen; i++)
        atomic_signal_fence(memory_order_seq_cst);
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->round) == seen && !team->ending)
        pthread_cond_wait(&team->more, &team->lock);
    int ending = team->ending;
    pthread_mutex_unlock(&team->lock);
    return !ending;
}

static void *help(void *argument)
{
    ibn_team *team = argument;
    for (int seen = 0; wait_for_more(team, seen); seen++) {
        drain(team);
        if (atomic_fetch_sub(&team->busy, 1) == 1) {
            pthread_mutex_lock(&team->lock);
            pthread_cond_signal(&team->done);
            pthread_mutex_unlock(&team->lock);
        }
    }
    return NULL;
}

/* Return how many of `threads` available threads a piece of work should use.  `visits` is the number of array elements
 * that the work reads or writes, each of which takes about 30 ns.  The number of threads never changes the result of
 * the work. */
int32_t ibn_core_worthwhile(int32_t threads, int64_t visits)
{
    const int64_t worth = 1 + visits / VISITS;
    return threads < worth ? threads : (int32_t)worth;
}

/* Start a team of up to `threads` threads, including the caller's thread.  If a thread cannot be started, the other
 * threads do all the work.  Returns NULL if memory is exhausted. */
ibn_team *ibn_core_team_new(int32_t threads)
{
    ibn_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->helper = malloc((size_t)(threads > 1 ? threads : 1) * sizeof *team->helper);
    if (!team->helper) {
        free(team);
        return NULL;
    }
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->more, NULL);
    pthread_cond_init(&team->done, NULL);
    while (team->helpers < threads - 1 && pthread_create(&team->helper[team->helpers], NULL, help, team) == 0)
        team->helpers++;
    return team;
}

/* Call job(context, i) for every i from 0 to items - 1, once each, in the threads of a team.  Returns after all calls
 * have ended. */
void ibn_core_team_run(ibn_team *team, int32_t items, ibn_job job, void *context)
{
    team->job = job;
    team->context = context;
    team->items = items;
    atomic_store(&team->next, 0);
    if (team->helpers > 0 && items > 1) {
        pthread_mutex_lock(&team->lock);
        atomic_store(&team->busy, team->helpers);
        atomic_fetch_add(&team->round, 1);
        pthread_cond_broadcast(&team->more);
        pthread_mutex_unlock(&team->lock);
    }
    drain(team);
    for (int i = 0; i < SPINS && atomic_load(&team->busy) > 0; i++)
        atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load(&team->busy) == 0)
        return;
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->busy) > 0)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* End the threads of a team and free the team's memory.  `team` may be NULL. */
void ibn_core_team_free(ibn_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    team->ending = 1;
    pthread_cond_broadcast(&team->more);
    pthread_mutex_unlock(&team->lock);
    for (int32_t i = 0; i < team->helpers; i++)
        pthread_join(team->helper[i], NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->more);
    pthread_mutex_destroy(&team->lock);
    free(team->helper);
    free(team);
}

/* Call job(context, i) for every i from 0 to items - 1, in threads that are started for this call only.  Returns 0,
 * or 1 if memory is exhausted. */
int ibn_core_parallel(int32_t threads, int32_t items, ibn_job job, void *context)
{
    ibn_team *team = ibn_core_team_new(threads < items ? threads : items);
    if (!team)
        return 1;
    ibn_core_team_run(team, items, job, context);
    ibn_core_team_free(team);
    return 0;
}
