/* Request a heavy sweep when a worker becomes ready between sweeps.  The worker may have missed the deadline and
 * finished later, or it may have replaced another worker.  Also request a sweep after a pause, if the worker has more
 * entries to rebalance.
 *
 * A thread polls the host for both events, and then signals OpenSM as a trap does.  The thread ends with the plugin. */
#include "shim.h"

#include <opensm/osm_sm.h>

#include "host.h"

#define SLICE_MS 200 /* milliseconds between two polls of the host */
/* Maximum number of times that the delay before the next sweep is doubled, beginning with SLICE_MS.  From the second
 * consecutive failure on, the delay is doubled once per failure. */
#define MOST_DOUBLINGS 8

/* Return the time of CLOCK_MONOTONIC at which a number of milliseconds from now is over. */
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

/* Wait until the watch thread gets new orders, or the time is over.  The caller holds the lock. */
static void sleep_for(struct ibnue_watch *watch, int milliseconds)
{
    const unsigned orders = watch->orders;
    struct timespec until;

    until = in_milliseconds(milliseconds);
    while (watch->orders == orders && !watch->ending
           && pthread_cond_timedwait(&watch->change, &watch->lock, &until) == 0)
        ;
}

/* Signal OpenSM to start a heavy sweep, after a delay if engines have failed repeatedly.  If the watch thread gets new
 * orders during the delay, because another sweep has ended, OpenSM is not signalled.  The caller holds the lock. */
static void ask_for_sweep(struct ibnue_plugin *plugin)
{
    struct ibnue_watch *watch = &plugin->watch;
    const unsigned orders = watch->orders;
    int doublings = watch->fruitless < MOST_DOUBLINGS ? watch->fruitless : MOST_DOUBLINGS;

    if (doublings > 1)
        sleep_for(watch, SLICE_MS << doublings);
    if (watch->ending || osm_exit_flag || watch->orders != orders)
        return;
    watch->wanted = watch->spared = 0;
    plugin->osm->subn.force_heavy_sweep = TRUE;
    osm_sm_signal(&plugin->osm->sm, OSM_SIGNAL_SWEEP);
}

/* Main function of the watch thread: wait until another thread sets `wanted`, then poll the host until the worker is
 * ready, and then ask OpenSM for a sweep.  Repeat this until the plugin ends. */
static void *run(void *argument)
{
    struct ibnue_plugin *plugin = argument;
    struct ibnue_watch *watch = &plugin->watch;
    char note[IBNUE_WHY];

    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && !osm_exit_flag) {
        const unsigned orders = watch->orders;
        int code;
        if (!watch->wanted) {
            pthread_cond_wait(&watch->change, &watch->lock);
            continue;
        }
        pthread_mutex_unlock(&watch->lock);
        code = ibnue_host_awaited(note, IBNUE_WHY);
        pthread_mutex_lock(&watch->lock);
        if (watch->orders != orders)
            continue; /* A sweep has set new orders meanwhile, so the host's answer may be outdated. */
        if (code == IBNUE_PENDING && !is_overdue(watch))
            sleep_for(watch, SLICE_MS);
        else if (code == IBNUE_PENDING || code == IBNUE_TOKEN || watch->spared)
            ask_for_sweep(plugin);
        else
            watch->wanted = 0;
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Make the watch thread wait for the worker, and start the thread if it does not run.  The caller holds the lock. */
static void begin(struct ibnue_plugin *plugin)
{
    struct ibnue_watch *watch = &plugin->watch;

    watch->wanted = 1;
    watch->orders++;
    if (!watch->runs)
        watch->runs = !pthread_create(&watch->thread, NULL, run, plugin);
    pthread_cond_signal(&watch->change);
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

/* Make the watch thread wait until the worker can route again, because an engine has failed.  Then the thread requests
 * a sweep.  If the thread does not run and cannot be started, the plugin routes again in the next sweep that OpenSM
 * makes by itself. */
void ibnue_watch_begin(struct ibnue_plugin *plugin)
{
    pthread_mutex_lock(&plugin->watch.lock);
    plugin->watch.fruitless++;
    begin(plugin);
    pthread_mutex_unlock(&plugin->watch.lock);
}

/* Withdraw the request of ibnue_watch_spare, because a sweep asks the engines again now. */
void ibnue_watch_spare_no_more(struct ibnue_plugin *plugin)
{
    pthread_mutex_lock(&plugin->watch.lock);
    plugin->watch.spared = 0;
    plugin->watch.orders++;
    pthread_cond_signal(&plugin->watch.change);
    pthread_mutex_unlock(&plugin->watch.lock);
}

/* Request the next sweep even if no worker gets ready, because OpenSM could have tried another engine in this sweep.  If
 * `longest_pause` is not 0, request the next sweep at the latest after this number of milliseconds. */
void ibnue_watch_spare(struct ibnue_plugin *plugin, int longest_pause)
{
    pthread_mutex_lock(&plugin->watch.lock);
    plugin->watch.spared = 1;
    plugin->watch.until = longest_pause ? in_milliseconds(longest_pause) : (struct timespec){0, 0};
    begin(plugin); /* The worker may have ended since the thread began to wait for it. */
    pthread_mutex_unlock(&plugin->watch.lock);
}

/* Stop waiting for the worker, because an engine has tables.  If the worker has more entries to rebalance, wait instead
 * for the end of the pause before the next rebalancing. */
void ibnue_watch_calm(struct ibnue_plugin *plugin)
{
    char note[IBNUE_WHY];
    int pause = ibnue_host_awaited(note, IBNUE_WHY) == IBNUE_PENDING;

    for (struct ibnue_engine *engine = plugin->engines; engine; engine = engine->next)
        engine->lost = 0;
    pthread_mutex_lock(&plugin->watch.lock);
    plugin->watch.wanted = plugin->watch.fruitless = plugin->watch.spared = 0;
    plugin->watch.orders++;
    pthread_cond_signal(&plugin->watch.change);
    if (pause)
        begin(plugin);
    pthread_mutex_unlock(&plugin->watch.lock);
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
