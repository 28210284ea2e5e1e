/* The plugin as OpenSM sees it: one library that registers the engines `ibnue-*` and lives until OpenSM ends. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_version.h>

#include "host.h"

/* OpenSM loads a library once, however often it is named, and Python starts once in a process. */
static atomic_flag taken = ATOMIC_FLAG_INIT;

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
    external_routing_engine_module_t module = {.setup = ibnue_engine_set_up, .context = engine};

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
    if (ibnue_python_start(note)) {
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
    if (event == OSM_EVENT_ID_UCAST_ROUTING_DONE && ibnue_same_layout(plugin->osm)) {
        ibnue_rounds_go_on(plugin);
        ibnue_settle(plugin); /* hops are those of the last round */
    }
    if (event != OSM_EVENT_ID_HEAVY_SWEEP_START && event != OSM_EVENT_ID_SUBNET_UP)
        return;
    if (ibnue_host_tend(note, IBNUE_WHY) == IBNUE_TOKEN && note[0])
        SAY(plugin, OSM_LOG_INFO, "ibnue: %s\n", note);
    if (event == OSM_EVENT_ID_SUBNET_UP && ibnue_same_layout(plugin->osm))
        ibnue_policies_apply(plugin);
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
    .osm_version = OSM_VERSION,
    .create = create,
    .delete = delete,
    .report = report,
};
