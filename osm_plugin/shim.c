/* The plugin as OpenSM sees it: one library that registers the engines `ibnue-*` and lives until OpenSM ends.
 *
 * Python is used to keep the worker process, and for nothing that OpenSM calls from its SA threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_version.h>

#include "host.h"

/* How often a wait looks whether OpenSM is to end. */
#define SLICE_MS 200

#define SAY(plugin, level, ...) osm_log(&(plugin)->osm->log, level, __VA_ARGS__)

/* OpenSM loads a library once, however often it is named, and Python starts once in a process. */
static atomic_flag taken = ATOMIC_FLAG_INIT;

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

/* OpenSM opens plugins without RTLD_GLOBAL, and extension modules look for Python's symbols among the global ones. */
static int show_python(char *why)
{
    Dl_info python;

    if (!dladdr((void *)(uintptr_t)&Py_IsInitialized, &python) || !python.dli_fname) {
        snprintf(why, IBNUE_WHY, "cannot tell where libpython is");
        return -1;
    }
    if (!dlopen(python.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD)) {
        snprintf(why, IBNUE_WHY, "cannot make the symbols of %s visible: %s", python.dli_fname, dlerror());
        return -1;
    }
    return 0;
}

/* Start Python as the interpreter of the virtual environment would start, deaf to PYTHON* variables and to signals. */
static int start_python(char *why)
{
    PyConfig config;
    PyStatus status;

    if (Py_IsInitialized())
        return 0;
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    config.pathconfig_warnings = 0;
    status = PyConfig_SetBytesString(&config, &config.program_name, IBNUE_PYTHON);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.executable, IBNUE_PYTHON);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        snprintf(why, IBNUE_WHY, "Python (%s) does not start: %s", IBNUE_PYTHON,
                 status.err_msg ? status.err_msg : "no reason given");
        return -1;
    }
    PyEval_SaveThread(); /* every thread takes the lock for itself from here on */
    return 0;
}

static int lid_matrices(void *context)
{
    (void)context;
    return 0; /* hops come with the forwarding tables; OpenSM need not compute its own */
}

int ibnue_wait_for_worker(struct ibnue_plugin *plugin, char *note)
{
    int code = IBNUE_PENDING;

    while (code == IBNUE_PENDING && !osm_exit_flag)
        code = ibnue_host_wait(plugin->sequence, SLICE_MS, note, IBNUE_WHY);
    if (code == IBNUE_PENDING)
        snprintf(note, IBNUE_WHY, "OpenSM is about to end");
    return code == IBNUE_TOKEN ? 0 : -1;
}

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
    times->collect = seconds_since(&start);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (ibnue_host_send(engine->name, plugin->sequence, note, IBNUE_WHY) != IBNUE_TOKEN)
        return -1;
    ibnue_memory_prepare(plugin);
    if (ibnue_wait_for_worker(plugin, note))
        return -1;
    times->wait = seconds_since(&start);
    return ibnue_memory_map(memory, memory->fd, memory->generation, memory->size, note);
}

/* Headers of the same version may still have been configured otherwise.  These pointers lie far behind all members that
 * may come and go. */
static int same_layout(const osm_opensm_t *osm)
{
    return osm->subn.p_osm == osm && osm->sm.p_subn == &osm->subn && osm->sm.p_log == &osm->log &&
           osm->sa.p_subn == &osm->subn && osm->sa.p_log == &osm->log;
}

/* What is left to an engine that cannot route: the tables that it had proven for the very same subnet. */
static int fall_back(struct ibnue_engine *engine, const char *code, const char *why)
{
    struct ibnue_plugin *plugin = engine->plugin;

    if (!osm_exit_flag && !ibnue_last_again(engine)) {
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
    if (!same_layout(plugin->osm)) {
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
    times.publish = seconds_since(&start);
    SAY(plugin, OSM_LOG_INFO, "%s: %s (subnet read in %.1f ms, worker %.1f ms, tables taken in %.1f ms)\n",
        engine->name, note, times.collect * 1e3, times.wait * 1e3, times.publish * 1e3);
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

static int set_up(struct osm_routing_engine *re, struct osm_opensm *osm)
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

static void free_plugin(struct ibnue_plugin *plugin)
{
    while (plugin->engines) {
        struct ibnue_engine *engine = plugin->engines;
        plugin->engines = engine->next;
        ibnue_last_drop(engine);
        ibnue_service_drop(engine);
        free(engine->name);
        free(engine);
    }
    ibnue_policies_drop(plugin);
    ibnue_rounds_drop(plugin);
    ibnue_memory_unmap(&plugin->memory);
    free(plugin->rows.row);
    free(plugin->seen.node);
    free(plugin);
}

static void register_engine(struct ibnue_plugin *plugin, const char *name)
{
    struct ibnue_engine *engine = calloc(1, sizeof(*engine));
    external_routing_engine_module_t module = {.setup = set_up, .context = engine};

    if (!engine || !(engine->name = strdup(name))) {
        free(engine);
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN3: no memory for engine %s\n", name);
        return;
    }
    engine->plugin = plugin;
    module.name = engine->name;
    if (osm_register_external_routing_engine(plugin->osm, &module, engine)) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN4: OpenSM does not take engine %s: the name is in use\n", name);
        free(engine->name);
        free(engine);
        return;
    }
    engine->next = plugin->engines;
    plugin->engines = engine;
}

static void *create(struct osm_opensm *osm)
{
    struct ibnue_plugin *plugin;
    char note[IBNUE_WHY] = "Python failed inside of OpenSM; its message is on OpenSM's standard error";
    char names[4096] = IBNUE_ENGINES, *rest = NULL;
    const char *options = osm->subn.opt.event_plugin_options, *log_file = osm->subn.opt.log_file;

    if (atomic_flag_test_and_set(&taken)) {
        osm_log(&osm->log, OSM_LOG_ERROR, "ERR IBN5: ibnue is loaded already; name it once in event_plugin_name\n");
        return NULL;
    }
    plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return NULL;
    plugin->osm = osm;
    plugin->memory.fd = -1;
    if (show_python(note) || start_python(note)) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN6: ibnue is not available: %s\n", note);
        free_plugin(plugin);
        atomic_flag_clear(&taken);
        return NULL;
    }
    if (ibnue_host_start(options ? options : "", log_file ? log_file : "", names, sizeof(names), note, IBNUE_WHY) != IBNUE_TOKEN)
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN7: %s\n", note);
    else
        SAY(plugin, OSM_LOG_INFO, "ibnue: %s\n", note);
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        register_engine(plugin, name);
    return plugin;
}

static void delete(void *data)
{
    ibnue_host_stop();
    free_plugin(data);
    atomic_flag_clear(&taken);
}

static void report(void *data, osm_epi_event_id_t event, void *about)
{
    struct ibnue_plugin *plugin = data;
    char note[IBNUE_WHY] = "";

    (void)about;
    if (event == OSM_EVENT_ID_UCAST_ROUTING_DONE && same_layout(plugin->osm)) {
        ibnue_rounds_go_on(plugin);
        ibnue_settle(plugin); /* hops are those of the last round */
    }
    if (event != OSM_EVENT_ID_HEAVY_SWEEP_START && event != OSM_EVENT_ID_SUBNET_UP)
        return;
    if (ibnue_host_tend(note, IBNUE_WHY) == IBNUE_TOKEN && note[0])
        SAY(plugin, OSM_LOG_INFO, "ibnue: %s\n", note);
    if (event == OSM_EVENT_ID_SUBNET_UP && same_layout(plugin->osm))
        ibnue_policies_apply(plugin);
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
    .osm_version = OSM_VERSION,
    .create = create,
    .delete = delete,
    .report = report,
};
