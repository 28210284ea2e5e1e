/* Report facts about a sweep that only the C part of the plugin knows: which engine gave which tables to OpenSM, and
 * which errors were logged.  The status file contains these facts.
 *
 * The code of this file writes no file.  A thread of the Python part (the host) writes files, so that a file system
 * that does not respond blocks neither a sweep nor OpenSM. */
#include "shim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opensm/osm_version.h>

#include "host.h"

#define FACTS 8192
#define ERROR_HEAD "ERR "

/* Acquire the spin lock of the error counts and of `standby`.  Threads of OpenSM's SA and the sweeper can log errors at
 * the same time. */
static void lock(struct ibnue_status *status)
{
    while (atomic_flag_test_and_set_explicit(&status->busy, memory_order_acquire))
        ;
}

static void unlock(struct ibnue_status *status)
{
    atomic_flag_clear_explicit(&status->busy, memory_order_release);
}

/* Count the error code of a log line that begins with ERROR_HEAD, and keep the line as the last error. */
static void count_error(struct ibnue_status *status, const char *text)
{
    const char *code = text + sizeof(ERROR_HEAD) - 1;
    size_t length = strcspn(code, ": ");
    unsigned i = 0;

    if (length >= IBNUE_CODE)
        return;
    lock(status);
    while (i < status->codes && (strncmp(status->code[i].name, code, length) || status->code[i].name[length]))
        i++;
    if (i < IBNUE_CODES) {
        memcpy(status->code[i].name, code, length);
        status->code[i].count++;
        status->codes = i == status->codes ? i + 1 : status->codes;
    }
    snprintf(status->error, sizeof(status->error), "%s", text);
    unlock(status);
}

/* Write a line to OpenSM's log.  If the line begins with an error code, count it. */
void ibnue_say(struct ibnue_plugin *plugin, osm_log_level_t level, const char *format, ...)
{
    char text[2 * IBNUE_WHY + 512];
    va_list rest;

    va_start(rest, format);
    vsnprintf(text, sizeof(text), format, rest);
    va_end(rest);
    osm_log(&plugin->osm->log, level, "%s", text);
    if (!strncmp(text, ERROR_HEAD, sizeof(ERROR_HEAD) - 1))
        count_error(&plugin->status, text);
}

/* Return the name of the engine whose tables OpenSM uses, or "none" if all engines have failed. */
static const char *in_force(const struct ibnue_plugin *plugin)
{
    const struct osm_routing_engine *used = plugin->osm->routing_engine_used;
    return used && used->name ? used->name : "none";
}

/* Return the ibnue engine whose tables OpenSM uses, or NULL if OpenSM uses the tables of another engine. */
static const struct ibnue_engine *ours_in_force(const struct ibnue_plugin *plugin)
{
    const struct osm_routing_engine *used = plugin->osm->routing_engine_used;

    for (const struct ibnue_engine *engine = plugin->engines; engine && used; engine = engine->next)
        if (used->context == engine)
            return engine;
    return NULL;
}

/* Append a line "key value" to the facts, if the line fits.  Control characters in the value are left out, because a
 * line break would end the line early. */
static void put(char *facts, const char *key, const char *value)
{
    size_t at = strlen(facts);

    if (at + strlen(key) + strlen(value) + 3 > FACTS)
        return;
    at += (size_t)sprintf(facts + at, "%s ", key);
    for (; *value; value++)
        if ((unsigned char)*value >= ' ')
            facts[at++] = *value;
    facts[at++] = '\n';
    facts[at] = 0;
}

static void put_number(char *facts, const char *key, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    put(facts, key, text);
}

static void put_errors(struct ibnue_status *status, char *facts)
{
    char text[IBNUE_CODE + 32];

    lock(status);
    for (unsigned i = 0; i < status->codes; i++) {
        snprintf(text, sizeof(text), "%s %llu", status->code[i].name, (unsigned long long)status->code[i].count);
        put(facts, "error", text);
    }
    put(facts, "last_error", status->error);
    unlock(status);
}

/* Report the facts about an event to the host.  `engine` is the engine to which the event belongs, or NULL. */
static void hand_over(struct ibnue_plugin *plugin, const char *event, const struct ibnue_engine *engine)
{
    char facts[FACTS] = "", note[IBNUE_WHY] = "", build[32];

    snprintf(build, sizeof(build), "%016" PRIx64, ibnue_abi_hash());
    put(facts, "event", event);
    put(facts, "opensm", OSM_VERSION);
    put(facts, "build", build);
    put_number(facts, "sweep", plugin->status.sweep);
    if (engine) {
        put(facts, "engine", engine->name);
        put_number(facts, "sequence", engine->status.sequence);
    }
    if (!strcmp(event, "up")) {
        put(facts, "in_force", in_force(plugin));
        put_number(facts, "ours", ours_in_force(plugin) != NULL);
    }
    put_errors(&plugin->status, facts);
    /* The result is ignored, because a missing status file must not stop routing. */
    ibnue_host_status(facts, note, IBNUE_WHY);
}

/* Log a line at level OSM_LOG_SYS when an engine begins to fail, and another line when it works again.  If `served` is
 * set, OpenSM got the last proven tables instead of new tables. */
static void report_change(struct ibnue_engine *engine, int failing, int served)
{
    struct ibnue_plugin *plugin = engine->plugin;
    char error[sizeof(plugin->status.error)];

    lock(&plugin->status);
    memcpy(error, plugin->status.error, sizeof(error));
    unlock(&plugin->status);
    if (failing && !engine->status.failing)
        ibnue_say(plugin, OSM_LOG_SYS, "ibnue: engine %s fails%s: %s\n", engine->name,
                  served ? ", and its last proven tables stay in use" : "", error);
    else if (!failing && engine->status.failing)
        ibnue_say(plugin, OSM_LOG_SYS, "ibnue: engine %s works again\n", engine->name);
    engine->status.failing = failing;
}

/* Record the result of an engine after OpenSM has called the engine for tables.  `code` is the result: 0 if the engine
 * has tables, otherwise -1.  Return `code`. */
int ibnue_status_asked(struct ibnue_engine *engine, int code)
{
    const struct ibnue_unsettled *left = &engine->plugin->unsettled;
    int published = !code && left->engine == engine, served = published && left->source != IBNUE_FROM_TAKEN;

    if (published)
        engine->status.sequence = left->answer.sequence;
    report_change(engine, !published || served, served);
    hand_over(engine->plugin, !published ? "failed" : served ? "served" : "routed", engine);
    return code;
}

/* Record whether OpenSM is a standby.  Return the value before. */
static int set_standby(struct ibnue_plugin *plugin, int standby)
{
    lock(&plugin->status);
    int before = plugin->status.standby;
    plugin->status.standby = standby;
    unlock(&plugin->status);
    return before;
}

/* Report the beginning or the end of a sweep to the host. */
void ibnue_status_event(struct ibnue_plugin *plugin, osm_epi_event_id_t event)
{
    if (event == OSM_EVENT_ID_HEAVY_SWEEP_START) {
        plugin->status.sweep++;
        set_standby(plugin, 0);
        hand_over(plugin, "begin", NULL);
    } else if (event == OSM_EVENT_ID_SUBNET_UP) {
        hand_over(plugin, "up", ours_in_force(plugin));
    }
}

/* Report to the host that OpenSM has become a standby.  OpenSM reports no event for this if it has handed over to another
 * SM, so the watch thread calls this function each second. */
void ibnue_status_watch(struct ibnue_plugin *plugin)
{
    int standby = plugin->osm->subn.sm_state == IB_SMINFO_STATE_STANDBY;

    if (!set_standby(plugin, standby) && standby)
        hand_over(plugin, "standby", NULL);
}
