/* Runs numbered jobs on a few threads.  Which thread takes which item is left to chance, so a job's result may depend on
 * its item only, never on the thread: that is what makes every kernel's output the same at any thread count. */
#include "internal/take.h"
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Looks at whether there is more to do before a helper goes to sleep: a few microseconds, as long as waking it takes. */
#define LOOKS 2000

struct ibn_team {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    pthread_t *helper;
    int32_t helpers;
    int ending;          /* under the lock */
    atomic_int round;    /* changed under the lock, looked at without */
    atomic_int busy;     /* helpers that are not done with this round */
    atomic_int next;     /* the next item that nobody has */
    int32_t items;
    ibn_job job;
    void *context;
};

static void drain(ibn_team *team)
{
    int item;
    while ((item = ibn_take(&team->next)) < team->items)
        team->job(team->context, item);
}

/* Waits for another round; 0 when there will be none. */
static int wait_for_more(ibn_team *team, int seen)
{
    for (int i = 0; i < LOOKS && atomic_load_explicit(&team->round, memory_order_relaxed) == seen; i++)
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

/* A team of up to `threads` threads, the caller's included.  A thread that cannot be started is done without: the others
 * take its share.  NULL: out of memory. */
ibn_team *ibn_team_new(int32_t threads)
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

/* Calls job(context, i) once for every i in 0..items-1, and returns when all calls have. */
void ibn_team_run(ibn_team *team, int32_t items, ibn_job job, void *context)
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
    for (int i = 0; i < LOOKS && atomic_load(&team->busy) > 0; i++)
        atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load(&team->busy) == 0)
        return;
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->busy) > 0)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* NULL is no team, and nothing to do. */
void ibn_team_free(ibn_team *team)
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

/* One round of a team that lives for it.  Returns 0 or 1 (out of memory). */
int ibn_parallel(int32_t threads, int32_t items, ibn_job job, void *context)
{
    ibn_team *team = ibn_team_new(threads < items ? threads : items);
    if (!team)
        return 1;
    ibn_team_run(team, items, job, context);
    ibn_team_free(team);
    return 0;
}
