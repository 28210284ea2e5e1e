/* Entry points of the plugin, which OpenSM calls: creation, deletion and events.  On creation the plugin registers the
 * routing engines `ibnue-*`.  The plugin exists until OpenSM ends. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_version.h>

#include "host.h"

#define TEXT(option) ((option) ? (option) : "")

/* This flag is set while a plugin exists, so that `create` refuses a second plugin.  OpenSM calls `create` twice if the
 * option event_plugin_name contains the plugin twice.  But one process can have only one Python interpreter. */
static atomic_flag taken = ATOMIC_FLAG_INIT;

static void free_plugin(struct ibnue_plugin *plugin)
{
    while (plugin->engines) {
        struct ibnue_engine *engine = plugin->engines;
        plugin->engines = engine->next;
        ibnue_service_drop(engine);
        free(engine->name);
        free(engine);
    }
    ibnue_watch_end(plugin);
    ibnue_tables_drop(&plugin->taken);
    ibnue_tables_drop(&plugin->last);
    free(plugin->asked.bytes);
    ibnue_remains_drop(&plugin->remains);
    ibnue_policies_drop(plugin);
    ibnue_rounds_drop(plugin);
    ibnue_copies_drop(plugin);
    ibnue_memory_unmap(&plugin->memory);
    ibnue_memory_unmap(&plugin->shadow);
    free(plugin->rows.row);
    free(plugin->seen.node);
    free(plugin);
}

static void register_engine(struct ibnue_plugin *plugin, const char *name)
{
    struct ibnue_engine *engine = calloc(1, sizeof(*engine));
    external_routing_engine_module_t module = {.setup = ibnue_engine_set_up, .context = engine};

    if (!engine || !(engine->name = strdup(name))) {
        free(engine);
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN3: no memory for engine %s, which OpenSM cannot use; start OpenSM again\n", name);
        return;
    }
    engine->plugin = plugin;
    module.name = engine->name;
    if (osm_register_external_routing_engine(plugin->osm, &module, engine)) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN4: OpenSM does not take engine %s: another plugin has registered the name\n", name);
        free(engine->name);
        free(engine);
        return;
    }
    engine->next = plugin->engines;
    plugin->engines = engine;
}

/* Return the path of the file from which this library was loaded. */
static const char *library(void)
{
    Dl_info about;

    return dladdr(&taken, &about) && about.dli_fname ? about.dli_fname : "libibnue.so";
}

/* Return whether OpenSM's structs are as in the headers of the build.  If not, report the member that differs.  The
 * report always goes to the system log.  If OpenSM's log can be used safely, the report also goes to this log,
 * otherwise to standard error. */
static int is_for_this_opensm(const struct osm_opensm *osm)
{
    char why[IBNUE_WHY], line[2 * IBNUE_WHY];
    int log;

    if (!ibnue_abi_check_opensm(osm, &log, why))
        return 1;
    snprintf(line, sizeof(line),
             "ERR IBN21: ibnue is not available: %s was built with headers that are not this OpenSM's: %s; install its "
             "headers, then run 'ibnue plugin install' again",
             library(), why);
    if (log)
        osm_log((osm_log_t *)&osm->log, OSM_LOG_ERROR, "%s\n", line);
    else
        fprintf(stderr, "%s\n", line);
    syslog(LOG_DAEMON | LOG_ERR, "%s", line);
    return 0;
}

static void *create(struct osm_opensm *osm)
{
    struct ibnue_plugin *plugin;
    const osm_subn_opt_t *opt = &osm->subn.opt;
    char note[IBNUE_WHY] = IBNUE_PYTHON_FAILED;
    char names[4096] = IBNUE_ENGINES, *rest = NULL;

    if (!is_for_this_opensm(osm))
        return NULL;
    if (atomic_flag_test_and_set(&taken)) {
        osm_log(&osm->log, OSM_LOG_ERROR, "ERR IBN5: ibnue is loaded already; name it once in event_plugin_name\n");
        return NULL;
    }
    plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return NULL;
    plugin->osm = osm;
    plugin->memory.fd = plugin->shadow.fd = -1;
    ibnue_watch_prepare(plugin);
    SAY(plugin, OSM_LOG_INFO, "ibnue: %s, ibnue %s, built for %s, layout %016" PRIx64 ", protocol %s\n", library(),
        IBNUE_PACKAGE, OSM_VERSION, ibnue_abi_hash(), IBNUE_PROTOCOL);
    if (ibnue_python_start(note)) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN6: ibnue is not available: %s\n", note);
        free_plugin(plugin);
        atomic_flag_clear(&taken);
        return NULL;
    }
    if (ibnue_host_start(TEXT(opt->event_plugin_options), TEXT(opt->log_file), TEXT(opt->routing_engine_names), names,
                         sizeof(names), note, IBNUE_WHY)
        != IBNUE_TOKEN)
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN7: %s; no engine of ibnue routes until this is corrected, or until a slow worker has started\n", note);
    else
        SAY(plugin, OSM_LOG_INFO, "ibnue: %s\n", note);
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        register_engine(plugin, name);
    return plugin;
}

static void delete(void *data)
{
    ibnue_watch_end(data); /* The watch thread calls the host, so the thread must end before the host. */
    ibnue_host_stop();
    free_plugin(data);
    atomic_flag_clear(&taken);
}

/* Let the host check the worker, and log the lines that the host returns. */
void ibnue_worker_check(struct ibnue_plugin *plugin)
{
    char note[IBNUE_WHY] = "";

    while (ibnue_host_check_worker(note, IBNUE_WHY) == IBNUE_TOKEN && note[0])
        SAY(plugin, strncmp(note, "ERR", 3) ? OSM_LOG_INFO : OSM_LOG_ERROR, "%s%s\n",
            strncmp(note, "ERR", 3) ? "ibnue: " : "", note);
}

/* Return whether OpenSM's structs of nodes, switches and ports have the layout of the headers.  The engines of ibnue
 * check this layout, too.  But the plugin also uses these structs while another engine routes, perhaps before any
 * engine of ibnue has checked them. */
static int may_use_nodes(struct ibnue_plugin *plugin)
{
    char why[IBNUE_WHY];
    int fits;

    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    fits = !ibnue_abi_fits(plugin, why);
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    return fits;
}

/* Handle an event that OpenSM reports to its plugins. */
static void report(void *data, osm_epi_event_id_t event, void *about)
{
    struct ibnue_plugin *plugin = data;

    (void)about;
    if (event == OSM_EVENT_ID_UCAST_ROUTING_DONE && plugin->layout_known) {
        ibnue_rounds_go_on(plugin);
        ibnue_copies_written(plugin);
        /* ibnue_settle sets OpenSM's hop counts by the final tables.  So ibnue_settle comes after ibnue_rounds_go_on,
         * which writes the last round. */
        ibnue_settle(plugin);
    }
    if (event == OSM_EVENT_ID_HEAVY_SWEEP_DONE && may_use_nodes(plugin))
        ibnue_copies_discovered(plugin);
    if (event == OSM_EVENT_ID_HEAVY_SWEEP_START)
        /* `narrow` counts the SL-to-VL tables whose VLs OpenSM masks, because ports have fewer operational VLs than the
         * tables use.  Each heavy sweep counts from 0, even if the sweep before has failed. */
        plugin->narrow = 0;
    ibnue_status_event(plugin, event);
    if (event != OSM_EVENT_ID_HEAVY_SWEEP_START && event != OSM_EVENT_ID_SUBNET_UP)
        return;
    ibnue_worker_check(plugin);
    ibnue_watch_start(plugin);
    if (event == OSM_EVENT_ID_SUBNET_UP && may_use_nodes(plugin)) {
        ibnue_arbitration_report(plugin);
        ibnue_sl2vl_report(plugin);
        ibnue_policies_apply(plugin);
        ibnue_shadow_look(plugin);
    }
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
    .osm_version = OSM_VERSION,
    .create = create,
    .delete = delete,
    .report = report,
};
