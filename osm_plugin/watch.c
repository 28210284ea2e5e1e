/* Check the worker between sweeps, also while another SM is the master.  Replace a worker that has ended.  Request a
 * heavy sweep when the late answer of a worker has arrived, or when a new worker is ready after a failure.  Also
 * request a sweep after a pause, if the worker has more entries to rebalance.
 *
 * A thread polls the host for these events, and signals OpenSM as a trap does.  The thread ends with the plugin. */
#include "shim.h"

#include <opensm/osm_sm.h>

#include "host.h"

#define WAKE_MS 200 /* milliseconds between two polls of the host if a sweep may be needed soon */
#define IDLE_MS 1000 /* milliseconds between two polls of the host in all other cases */
/* After n consecutive failures of engines (n > 1), the thread waits for WAKE_MS x 2^n milliseconds before it requests
 * the next sweep.  MOST_DOUBLINGS is the largest n in this formula: after more failures, the wait is not longer. */
#define MOST_DOUBLINGS 8

/* Return the time (CLOCK_MONOTONIC) that is a number of milliseconds after now. */
static struct timespec in_milliseconds(int milliseconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return until;
}

/* Return whether a late worker has computed for so long that another engine should be tried.  The caller holds the
 * lock. */
static int is_overdue(const struct ibnue_watch *watch)
{
    return watch->spared && watch->until.tv_sec && ibnue_ms_since(&watch->until) >= 0;
}

/* Wait until the watch thread gets new orders (see order()), the plugin ends, or the time is over.  The caller holds
 * the lock. */
static void sleep_for(struct ibnue_watch *watch, int milliseconds)
{
    const unsigned orders = watch->orders;
    struct timespec until;

    until = in_milliseconds(milliseconds);
    while (watch->orders == orders && !watch->ending
           && pthread_cond_timedwait(&watch->change, &watch->lock, &until) == 0)
        ;
}

/* Signal OpenSM to start a heavy sweep.  If engines have failed repeatedly, wait for a delay first.  If another sweep
 * calls an engine during the delay, the watch thread gets new orders (see order()), and OpenSM is not signalled.  The
 * caller holds the lock. */
static void ask_for_sweep(struct ibnue_plugin *plugin)
{
    struct ibnue_watch *watch = &plugin->watch;
    const unsigned orders = watch->orders;
    int doublings = watch->fruitless < MOST_DOUBLINGS ? watch->fruitless : MOST_DOUBLINGS;

    if (doublings > 1)
        sleep_for(watch, WAKE_MS << doublings);
    if (watch->ending || osm_exit_flag || watch->orders != orders)
        return;
    watch->wanted = watch->spared = 0;
    watch->asked = 1;
    plugin->osm->subn.force_heavy_sweep = TRUE;
    osm_sm_signal(&plugin->osm->sm, OSM_SIGNAL_SWEEP);
}

/* Main function of the watch thread: poll the host, and ask OpenSM for a sweep when the host needs a sweep.  Repeat this
 * until the plugin ends.  After a request, the thread requests no other sweep until an engine has been called. */
static void *run(void *argument)
{
    struct ibnue_plugin *plugin = argument;
    struct ibnue_watch *watch = &plugin->watch;
    char note[IBNUE_WHY];

    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && !osm_exit_flag) {
        const unsigned orders = watch->orders;
        int code;
        pthread_mutex_unlock(&watch->lock);
        ibnue_worker_check(plugin);
        ibnue_status_watch(plugin);
        code = ibnue_host_awaited(note, IBNUE_WHY);
        pthread_mutex_lock(&watch->lock);
        if (watch->orders != orders)
            continue; /* An engine was called since the host was asked, so the host is asked again. */
        if (watch->wanted && code == IBNUE_PENDING && !is_overdue(watch))
            sleep_for(watch, WAKE_MS);
        else if ((code == IBNUE_TOKEN && !watch->asked) || (watch->wanted && (code == IBNUE_PENDING || watch->spared)))
            ask_for_sweep(plugin);
        else {
            watch->wanted = 0;
            sleep_for(watch, IDLE_MS);
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Start the watch thread if it does not run. */
void ibnue_watch_start(struct ibnue_plugin *plugin)
{
    struct ibnue_watch *watch = &plugin->watch;

    if (!watch->runs)
        watch->runs = !pthread_create(&watch->thread, NULL, run, plugin);
}

/* Give the watch thread new orders, because an engine was called.  Orders are new values of the members `wanted`,
 * `spared` and `fruitless`, which are the arguments. */
static void order(struct ibnue_watch *watch, int wanted, int spared, int fruitless)
{
    pthread_mutex_lock(&watch->lock);
    watch->wanted = wanted;
    watch->spared = spared;
    watch->fruitless = fruitless;
    watch->asked = 0;
    watch->orders++;
    pthread_cond_signal(&watch->change);
    pthread_mutex_unlock(&watch->lock);
}

/* Initialize the lock and the condition variable of the watch thread.  The waits of the thread use CLOCK_MONOTONIC.  A
 * wait by the system's clock would last longer if this clock is set back. */
void ibnue_watch_prepare(struct ibnue_plugin *plugin)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&plugin->watch.lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&plugin->watch.change, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Make the watch thread request a sweep as soon as the worker can route again, because an engine has failed.  If the
 * thread could not be started, the plugin routes again in the next sweep that OpenSM makes by itself. */
void ibnue_watch_begin(struct ibnue_plugin *plugin)
{
    order(&plugin->watch, 1, 0, plugin->watch.fruitless + 1);
}

/* Withdraw the request of ibnue_watch_spare for another sweep, because OpenSM calls an engine now. */
void ibnue_watch_spare_no_more(struct ibnue_plugin *plugin)
{
    order(&plugin->watch, 0, 0, plugin->watch.fruitless);
}

/* Make the watch thread request another sweep even if the worker does not get ready.  This is necessary because the
 * plugin has published old tables in this sweep, so OpenSM did not try another engine.  If `longest_pause` is not 0,
 * the thread requests the sweep at the latest after this number of milliseconds. */
void ibnue_watch_spare(struct ibnue_plugin *plugin, int longest_pause)
{
    pthread_mutex_lock(&plugin->watch.lock);
    plugin->watch.until = longest_pause ? in_milliseconds(longest_pause) : (struct timespec){0, 0};
    pthread_mutex_unlock(&plugin->watch.lock);
    order(&plugin->watch, 1, 1, plugin->watch.fruitless);
}

/* Stop waiting for the worker, because an engine has tables.  If the worker has more entries to rebalance, wait instead
 * for the end of the pause before the next rebalancing. */
void ibnue_watch_calm(struct ibnue_plugin *plugin)
{
    char note[IBNUE_WHY];
    int pause = ibnue_host_awaited(note, IBNUE_WHY) == IBNUE_PENDING;

    for (struct ibnue_engine *engine = plugin->engines; engine; engine = engine->next)
        engine->lost = 0;
    order(&plugin->watch, pause, 0, 0);
}

/* End the watch thread, and wait until it has ended. */
void ibnue_watch_end(struct ibnue_plugin *plugin)
{
    struct ibnue_watch *watch = &plugin->watch;

    pthread_mutex_lock(&watch->lock);
    watch->ending = 1;
    pthread_cond_signal(&watch->change);
    pthread_mutex_unlock(&watch->lock);
    if (watch->runs)
        pthread_join(watch->thread, NULL);
    watch->runs = 0;
}
