/* OpenSM plugin that writes the SL of every path to the file opensm-path-records.dump, each time OpenSM reports that
 * the subnet is up.
 *
 * The plugin asks the routing engine in use for the SLs.  If the engine states no SLs, the plugin writes SL 0 for all
 * paths.  Without a QoS policy, the SA also answers with SL 0.  The file is in the folder of OpenSM's other dumps.
 * A new file replaces the old file only when the new file is complete.
 * */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

#define ROOM 4096

static const char *kind_of(const osm_node_t *node)
{
    switch (osm_node_get_type(node)) {
    case IB_NODE_TYPE_SWITCH:
        return "Switch";
    case IB_NODE_TYPE_ROUTER:
        return "Router";
    default:
        return "Channel Adapter";
    }
}

static uint8_t sl_of(const osm_opensm_t *osm, uint16_t from, uint16_t to)
{
    struct osm_routing_engine *engine = osm->routing_engine_used;

    if (!engine || !engine->path_sl)
        return 0;
    return engine->path_sl(engine->context, 0, cl_hton16(from), cl_hton16(to));
}

static void write_paths(const osm_opensm_t *osm, osm_port_t *from, FILE *file)
{
    const cl_qmap_t *ports = &osm->subn.port_guid_tbl;
    uint16_t source = cl_ntoh16(osm_port_get_base_lid(from));

    fprintf(file, "%s 0x%016" PRIx64 ", base LID %u, \"%s\", port %u\n# LID  : SL\n", kind_of(from->p_node),
            cl_ntoh64(osm_port_get_guid(from)), source, from->p_node->print_desc, osm_physp_get_port_num(from->p_physp));
    for (cl_map_item_t *item = cl_qmap_head(ports); item != cl_qmap_end(ports); item = cl_qmap_next(item)) {
        osm_port_t *to = (osm_port_t *)item;
        uint16_t base = cl_ntoh16(osm_port_get_base_lid(to)), lids = (uint16_t)(1u << osm_port_get_lmc(to));

        for (uint16_t lid = base; base && lid < base + lids; lid++)
            fprintf(file, "0x%04X : %u\n", lid, sl_of(osm, source, lid));
    }
}

static int write_all(osm_opensm_t *osm, const char *path)
{
    const cl_qmap_t *ports = &osm->subn.port_guid_tbl;
    FILE *file = fopen(path, "w");

    if (!file)
        return -1;
    for (cl_map_item_t *item = cl_qmap_head(ports); item != cl_qmap_end(ports); item = cl_qmap_next(item))
        if (osm_port_get_base_lid((osm_port_t *)item))
            write_paths(osm, (osm_port_t *)item, file);
    return fclose(file);
}

static void *create(osm_opensm_t *osm)
{
    return osm;
}

static void ignore(void *context)
{
    (void)context;
}

static void report(void *context, osm_epi_event_id_t event, void *data)
{
    osm_opensm_t *osm = context;
    char beside[ROOM], path[ROOM];

    (void)data;
    if (event != OSM_EVENT_ID_SUBNET_UP)
        return;
    snprintf(path, sizeof(path), "%s/opensm-path-records.dump", osm->subn.opt.dump_files_dir);
    snprintf(beside, sizeof(beside), "%s/.opensm-path-records.new", osm->subn.opt.dump_files_dir);
    if (write_all(osm, beside) || rename(beside, path))
        osm_log(&osm->log, OSM_LOG_ERROR, "ERR PATHS: %s cannot be written: %s\n", path, strerror(errno));
}

osm_event_plugin_t osm_event_plugin = {
    .osm_version = OSM_VERSION,
    .create = create,
    .delete = ignore,
    .report = report,
};
