/* The callbacks of a routing engine: request tables from the worker, check them and give them to OpenSM.  If this
 * fails, fall back on the last proven tables. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static int lid_matrices(void *context)
{
    (void)context;
    return 0; /* The hop counts come with the LFTs, so OpenSM need not compute hop counts. */
}

/* Durations in milliseconds for the log: writing the request, waiting for the worker, and giving the tables to OpenSM.
 */
struct times {
    double collect, wait, publish;
};

/* Write the request, without LFTs, into private memory, which no other process can change. */
static int keep_request(struct ibnue_plugin *plugin, const struct ibnue_walk *walk, char *why)
{
    struct ibnue_asked *asked = &plugin->asked;

    if (walk->room > asked->room) {
        free(asked->bytes);
        asked->room = 0;
        if (!(asked->bytes = malloc(walk->room))) {
            snprintf(why, IBNUE_WHY, "out of memory");
            return -1;
        }
        asked->room = walk->room;
    }
    ibnue_request_write(plugin, walk, asked->bytes);
    asked->sequence = plugin->sequence;
    return 0;
}

/* Write the request, with LFTs, into the memory that is shared with the worker. */
static int write_request(struct ibnue_plugin *plugin, const struct ibnue_walk *walk, int fd, uint64_t generation,
                         char *why)
{
    struct ibnue_memory *memory = &plugin->memory;
    const struct ibnue_request *request = (const struct ibnue_request *)plugin->asked.bytes;

    if (ibnue_memory_map(memory, fd, generation, walk->room + ibnue_copies_room(plugin), why))
        return -1;
    memcpy(memory->bytes, request, request->end);
    ibnue_copies_write(plugin, memory->bytes);
    plugin->asked.answer_at = (((const struct ibnue_request *)memory->bytes)->end + 4095) / 4096 * 4096;
    return 0;
}

/* Describe the subnet in a request, and write the request into the memory that is shared with the worker.  If the
 * worker has just been started, wait until it is ready.  Return 0, or another value with the reason in `note`. */
static int share_request(struct ibnue_engine *engine, struct times *times, char *note)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_walk walk;
    struct timespec start;
    uint64_t generation = 0;
    int fd = -1, failed;

    if (ibnue_walk_open(plugin, &walk, note))
        return -1;
    /* Switches may answer late, so their LFTs are read before ibnue_host_memory starts the deadline of the request. */
    ibnue_copies_read(plugin);
    clock_gettime(CLOCK_MONOTONIC, &start);
    failed = ibnue_host_memory(&fd, &generation, note, IBNUE_WHY) != IBNUE_TOKEN;
    times->wait = ibnue_ms_since(&start);
    failed = failed || keep_request(plugin, &walk, note) || write_request(plugin, &walk, fd, generation, note);
    plugin->asked.engine = engine;
    ibnue_walk_close(&walk);
    return failed;
}

/* Send a request to the worker and wait for its answer.  Return 0, or -1 with the reason in `note`. */
static int ask_worker(struct ibnue_engine *engine, struct times *times, char *note)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_memory *memory = &plugin->memory;
    struct timespec start;
    int code;

    clock_gettime(CLOCK_MONOTONIC, &start);
    plugin->asked.replaced = 0;
    plugin->asked.left = NULL;
    if (share_request(engine, times, note))
        return -1;
    times->collect = ibnue_ms_since(&start) - times->wait;
    clock_gettime(CLOCK_MONOTONIC, &start);
    code = ibnue_host_send(engine->name, plugin->asked.sequence, note, IBNUE_WHY);
    if (code != IBNUE_TOKEN) {
        plugin->asked.replaced = code == IBNUE_REPLACED;
        return -1;
    }
    ibnue_memory_prepare(plugin);
    if (ibnue_wait_for_worker(plugin, note))
        return -1;
    times->wait += ibnue_ms_since(&start);
    return ibnue_memory_map(memory, memory->fd, memory->generation, memory->size, note);
}

enum late { NO_LATE_ANSWER, STILL_LATE, LATE_REFUSAL, LATE_ANSWER };

/* Wait for the answer to the request of an earlier sweep, if the worker still computes it.  Return LATE_ANSWER if the
 * answer has arrived.  Return STILL_LATE with the reason in `note` if the worker needs even more time.  Return
 * LATE_REFUSAL with the reason in `note` if the engine had no tables, and another engine should be tried.  Return
 * NO_LATE_ANSWER if no late answer is expected. */
static enum late take_late(const struct ibnue_engine *engine, char *note)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_memory *memory = &plugin->memory;
    uint64_t generation = 0;
    int fd = -1;

    if (!plugin->asked.late)
        return NO_LATE_ANSWER;
    plugin->asked.late = 0;
    if (ibnue_host_memory(&fd, &generation, note, IBNUE_WHY) != IBNUE_TOKEN || generation != memory->generation)
        /* The worker that computed the late answer has ended or was replaced. ask_worker will report this. */
        return NO_LATE_ANSWER;
    if (ibnue_wait_for_worker(plugin, note)) {
        if (plugin->asked.late)
            return STILL_LATE;
        /* If the worker computed for this engine again, the answer would be late again, and the next engine would never
         * get the worker. */
        if (!plugin->asked.replaced && plugin->asked.engine == engine && ibnue_another_follows(engine))
            return LATE_REFUSAL;
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN31: the late answer is lost, and the engine is asked again: %s\n", note);
        return NO_LATE_ANSWER;
    }
    if (!plugin->asked.engine || ibnue_memory_map(memory, memory->fd, memory->generation, memory->size, note))
        return NO_LATE_ANSWER;
    return LATE_ANSWER;
}

/* Log that an engine gives no tables to OpenSM.  The line has the error code `code` and the reason `why`. */
static void log_failure(const struct ibnue_engine *engine, const char *code, const char *why)
{
    SAY(engine->plugin, OSM_LOG_ERROR, "%s: %s routed nothing: %s\n", code, engine->name, why);
}

/* Give OpenSM the last proven tables, or their entries that are still valid, because an engine cannot route.  Return 0,
 * or -1 if OpenSM got no tables. */
static int fall_back(struct ibnue_engine *engine, const char *code, const char *why)
{
    struct ibnue_plugin *plugin = engine->plugin;
    char what[IBNUE_WHY] = "";

    engine->lost += plugin->asked.late || plugin->asked.replaced;
    ibnue_watch_begin(plugin);
    if (!osm_exit_flag && !ibnue_last_serve(engine, what)) {
        SAY(plugin, OSM_LOG_ERROR, "%s: %s %s, and routed nothing: %s\n", code, engine->name, what, why);
        return 0;
    }
    log_failure(engine, code, why);
    if (what[0])
        SAY(plugin, OSM_LOG_INFO, "%s keeps no tables: %s%s\n", engine->name, what,
            ibnue_another_follows(engine) ? "" : "; the switches keep their tables, and OpenSM answers no path queries");
    return -1;
}

/* Replace a worker that has computed wrong tables, and fall back on the last proven tables. */
static int refuse(struct ibnue_engine *engine, const char *why)
{
    char note[IBNUE_WHY] = "", both[2 * IBNUE_WHY];

    if (ibnue_host_discard(note, IBNUE_WHY) != IBNUE_TOKEN)
        snprintf(note, IBNUE_WHY, "no other worker can be started");
    snprintf(both, sizeof(both), "%s; %s", why, note);
    return fall_back(engine, "ERR IBN2", both);
}

/* Give OpenSM the worker's answer, which is in the private buffer `taken`. */
static int publish(struct ibnue_engine *engine, char *why)
{
    struct ibnue_tables *taken = &engine->plugin->taken;

    if (ibnue_tables_fit(engine->plugin, &taken->answer, taken->bytes, why)
        || ibnue_publish(engine, &taken->answer, taken->bytes, why))
        return -1;
    ibnue_settle_later(engine, &taken->answer, IBNUE_FROM_TAKEN);
    ibnue_rounds_begin(engine, &taken->answer, taken->bytes, 0);
    ibnue_watch_calm(engine->plugin);
    if (taken->missing)
        SAY(engine->plugin, OSM_LOG_INFO, "%s: %" PRIu64 " %s of a switch and an end port %s no path\n",
            engine->name, taken->missing, ibnue_noun(taken->missing, "pair", "pairs"),
            ibnue_noun(taken->missing, "has", "have"));
    return 0;
}

/* Use a late answer if it is for the current subnet and this engine.  Otherwise keep the late answer as the tables to
 * fall back on, if there are no such tables yet.
 *
 * Return 1 if the late answer is not used.  Otherwise return the result of the engine: 0, or -1 if it failed. */
static int publish_late(struct ibnue_engine *engine, const char *note)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_tables *taken = &plugin->taken;
    char why[IBNUE_WHY];
    uint8_t *now;
    /* fits: whether the answer is for the present subnet and this engine. replaces: whether the switches have tables of
     * another engine, which the answer would replace. */
    int fits, replaces;

    if (ibnue_answer_take(plugin, why))
        return refuse(engine, why);
    now = ibnue_subnet_now(plugin);
    replaces = plugin->copies.served && plugin->copies.served->context != engine;
    /* Another ibnue engine may have failed and given OpenSM the last proven tables, which this engine had computed.
     * Then the late answer replaces tables of this engine. */
    if (ibnue_copies_origin(plugin) == IBNUE_SERVED_OURS && plugin->last.engine == engine)
        replaces = 0;
    fits = now && taken->engine == engine && ibnue_same_subnet(now, taken->bytes);
    free(now);
    if (!fits && !plugin->last.bytes)
        ibnue_last_keep(plugin);
    if (!fits)
        return 1;
    /* The worker has found the rounds for a change from the tables that the switches had at the request.  It has also
     * judged whether this change is safe.  If another engine has routed since the request, the rounds and this verdict
     * do not apply any more. */
    if (replaces)
        taken->answer.deferred = 0;
    if (publish(engine, why))
        return refuse(engine, why);
    if (replaces)
        SAY(plugin, OSM_LOG_INFO,
            "%s: tables of a late answer replace the tables of another engine, which has routed meanwhile: all entries are "
            "written at once, and the transition is not judged (verdicts above compare with earlier tables)\n",
            engine->name);
    else
        SAY(plugin, OSM_LOG_INFO, "%s: %s (a late answer, for the unchanged subnet)\n", engine->name, note);
    return 0;
}

/* Return whether this engine must not ask the worker, because the worker still computes tables for another engine.  If
 * so, set `done` to the result of this engine: 0, or -1 if this engine failed.
 *
 * Without this rule, this engine would discard the late answer for the other engine, and ask the worker for its own
 * tables.  If its own answer is late as well, and is discarded in turn, no engine ever gets tables. */
static int leaves_worker_to_another(struct ibnue_engine *engine, int *done)
{
    struct ibnue_asked *asked = &engine->plugin->asked;
    char why[IBNUE_WHY];

    if (asked->engine == engine)
        asked->left = NULL;
    if (!asked->late || !asked->engine || asked->engine == engine)
        return 0;
    snprintf(why, sizeof(why), "the worker was still computing tables for %s", asked->engine->name);
    if (!ibnue_comes_later(engine, asked->engine)) {
        /* OpenSM has already called the other engine in this sweep, and the other engine has failed.  So this engine
         * only falls back on the last proven tables.  The other engine can use its late answer in the next sweep. */
        *done = fall_back(engine, "ERR IBN1", why);
        return 1;
    }
    /* asked->engine comes later in OpenSM's list than `engine`.  `engine` and all engines between these two fail, so
     * that OpenSM calls asked->engine.  asked->left is the first engine that has failed for this reason.  If OpenSM
     * calls asked->left a second time, OpenSM has not called asked->engine in between.  Then asked->left may ask the
     * worker. */
    if (asked->left == engine)
        return 0;
    if (!asked->left)
        asked->left = engine;
    log_failure(engine, "ERR IBN1", why);
    *done = -1;
    return 1;
}

/* Compute tables and give them to OpenSM.  Return 0, or -1 if the engine has no tables. */
static int route(void *context)
{
    struct ibnue_engine *engine = context;
    struct ibnue_plugin *plugin = engine->plugin;
    struct times times = {0, 0, 0};
    struct timespec start;
    char note[IBNUE_WHY] = IBNUE_PYTHON_FAILED, why[IBNUE_WHY];
    enum late late;
    int done;

    ibnue_rounds_drop(plugin);
    if (ibnue_abi_fits(plugin, why)) {
        SAY(plugin, OSM_LOG_ERROR,
            "ERR IBN9: %s routed nothing: built with headers that are not this OpenSM's: %s; "
            "install its headers, then run 'ibnue plugin install' again\n",
            engine->name, why);
        return -1;
    }
    ibnue_settle_taken(plugin);
    ibnue_qos_refresh(plugin);
    ibnue_partitions_refresh(plugin);
    ibnue_watch_spare_no_more(plugin);
    if (leaves_worker_to_another(engine, &done))
        return done;
    late = take_late(engine, note);
    if (late == STILL_LATE || late == LATE_REFUSAL)
        return fall_back(engine, "ERR IBN1", note);
    if (late == LATE_ANSWER && (done = publish_late(engine, note)) <= 0)
        return done;
    if (ask_worker(engine, &times, note))
        return fall_back(engine, "ERR IBN1", note);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (ibnue_answer_take(plugin, why) || publish(engine, why))
        return refuse(engine, why);
    times.publish = ibnue_ms_since(&start);
    SAY(plugin, OSM_LOG_INFO, "%s: %s (subnet read in %.1f ms, worker %.1f ms, tables published in %.1f ms)\n",
        engine->name, note, times.collect, times.wait, times.publish);
    return 0;
}

/* Route, and record the result (OpenSM's callback ucast_build_fwd_tables). */
static int forwarding_tables(void *context)
{
    return ibnue_status_asked(context, route(context));
}

/* Drop all tables of an engine (OpenSM's callback destroy). */
static void forget_tables(void *context)
{
    struct ibnue_engine *engine = context;

    ibnue_rounds_drop(engine->plugin);
    if (engine->plugin->unsettled.engine == engine)
        engine->plugin->unsettled.engine = NULL;
    if (engine->plugin->last.engine == engine)
        ibnue_tables_drop(&engine->plugin->last);
    ibnue_service_drop(engine); /* The engine itself is freed with the plugin, which OpenSM deletes later. */
}

/* Set the callbacks of an engine.  Return 0, or -1 if the layout of OpenSM's struct differs from the
 * headers of the build. */
int ibnue_engine_set_up(struct osm_routing_engine *re, struct osm_opensm *osm)
{
    if (ibnue_abi_check_engine(re, "ibnue-")) {
        osm_log(&osm->log, OSM_LOG_ERROR,
                "ERR IBN22: built with headers with another osm_routing_engine_t; install "
                "the headers of this OpenSM, then run 'ibnue plugin install' again\n");
        return -1;
    }
    re->build_lid_matrices = lid_matrices;
    re->ucast_build_fwd_tables = forwarding_tables;
    re->path_sl = ibnue_path_sl;
    re->update_sl2vl = ibnue_update_sl2vl;
    re->update_vlarb = ibnue_update_vlarb;
    re->mcast_build_stree = ibnue_multicast;
    re->destroy = forget_tables;
    return 0;
}
