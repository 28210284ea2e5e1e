/* An engine as OpenSM calls it: ask the worker for tables, check them, publish them; or fall back on the last ones. */
#include "shim.h"

#include <stdio.h>

#include "host.h"

static int lid_matrices(void *context)
{
    (void)context;
    return 0; /* hops come with the forwarding tables; OpenSM need not compute its own */
}

/* In milliseconds. */
struct times {
    double collect, wait, publish;
};

/* Lay the subnet into the memory shared with the worker. */
static int lay_request(struct ibnue_plugin *plugin, char *note)
{
    struct ibnue_walk walk;
    uint64_t generation = 0;
    int fd = -1, failed;

    if (ibnue_host_memory(&fd, &generation, note, IBNUE_WHY) != IBNUE_TOKEN || ibnue_walk_open(plugin, &walk, note))
        return -1;
    failed = ibnue_memory_map(&plugin->memory, fd, generation, walk.room, note);
    if (!failed)
        ibnue_request_write(plugin, &walk, plugin->memory.bytes);
    ibnue_walk_close(&walk);
    return failed;
}

static int ask_worker(struct ibnue_engine *engine, struct times *times, char *note)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_memory *memory = &plugin->memory;
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (lay_request(plugin, note))
        return -1;
    times->collect = ibnue_ms_since(&start);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (ibnue_host_send(engine->name, plugin->sequence, note, IBNUE_WHY) != IBNUE_TOKEN)
        return -1;
    ibnue_memory_prepare(plugin);
    if (ibnue_wait_for_worker(plugin, note))
        return -1;
    times->wait = ibnue_ms_since(&start);
    return ibnue_memory_map(memory, memory->fd, memory->generation, memory->size, note);
}

/* Headers of the same version may still have been configured otherwise.  These pointers lie far behind all members that
 * may come and go. */
int ibnue_same_layout(const osm_opensm_t *osm)
{
    return osm->subn.p_osm == osm && osm->sm.p_subn == &osm->subn && osm->sm.p_log == &osm->log &&
           osm->sa.p_subn == &osm->subn && osm->sa.p_log == &osm->log;
}

/* Publish again what was proven for this very subnet.  Returns 0, or -1 if there is nothing. */
static int publish_last(struct ibnue_engine *engine)
{
    const struct ibnue_last *last = &engine->last;
    char why[IBNUE_WHY];

    if (!ibnue_last_holds(engine) || ibnue_tables_fit(engine->plugin, &last->answer, last->bytes, why) ||
        ibnue_publish(engine, &last->answer, last->bytes, why))
        return -1;
    ibnue_settle_later(engine, &last->answer, 1);
    if (last->unfinished)
        ibnue_rounds_begin(engine, &last->answer, last->bytes, 1);
    return 0;
}

/* What is left to an engine that cannot route: the tables that it had proven for the very same subnet. */
static int fall_back(struct ibnue_engine *engine, const char *code, const char *why)
{
    struct ibnue_plugin *plugin = engine->plugin;

    if (!osm_exit_flag && !publish_last(engine)) {
        SAY(plugin, OSM_LOG_ERROR, "%s: %s keeps its tables, proven for this very subnet, and routed nothing: %s\n",
            code, engine->name, why);
        return 0;
    }
    SAY(plugin, OSM_LOG_ERROR, "%s: %s routed nothing: %s\n", code, engine->name, why);
    return -1;
}

static int forwarding_tables(void *context)
{
    struct ibnue_engine *engine = context;
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_answer answer;
    struct times times = {0, 0, 0};
    struct timespec start;
    char note[IBNUE_WHY] = "Python failed inside of OpenSM; its message is on OpenSM's standard error", why[IBNUE_WHY];
    char both[2 * IBNUE_WHY];

    ibnue_rounds_drop(plugin);
    if (!ibnue_same_layout(plugin->osm)) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN9: %s routed nothing: built with headers that are not this OpenSM's\n",
            engine->name);
        return -1;
    }
    ibnue_settle_memory(plugin);
    if (ask_worker(engine, &times, note))
        return fall_back(engine, "ERR IBN1", note);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (ibnue_answer_check(plugin, &answer, why) || ibnue_publish(engine, &answer, plugin->memory.bytes, why)) {
        if (ibnue_host_discard(note, IBNUE_WHY) != IBNUE_TOKEN)
            snprintf(note, IBNUE_WHY, "no other worker can be started");
        snprintf(both, sizeof(both), "%s; %s", why, note);
        return fall_back(engine, "ERR IBN2", both);
    }
    ibnue_settle_later(engine, &answer, 0);
    ibnue_rounds_begin(engine, &answer, plugin->memory.bytes, 0);
    times.publish = ibnue_ms_since(&start);
    SAY(plugin, OSM_LOG_INFO, "%s: %s (subnet read in %.1f ms, worker %.1f ms, tables taken in %.1f ms)\n",
        engine->name, note, times.collect, times.wait, times.publish);
    return 0;
}

static void forget_tables(void *context)
{
    struct ibnue_engine *engine = context;

    ibnue_rounds_drop(engine->plugin);
    if (engine->plugin->unsettled.engine == engine)
        engine->plugin->unsettled.engine = NULL;
    ibnue_last_drop(engine);
    ibnue_service_drop(engine); /* the engine itself is freed with the plugin, which OpenSM deletes after this */
}

int ibnue_engine_set_up(struct osm_routing_engine *re, struct osm_opensm *osm)
{
    (void)osm;
    re->build_lid_matrices = lid_matrices;
    re->ucast_build_fwd_tables = forwarding_tables;
    re->path_sl = ibnue_path_sl;
    re->update_sl2vl = ibnue_update_sl2vl;
    re->mcast_build_stree = ibnue_multicast;
    re->destroy = forget_tables;
    return 0;
}
