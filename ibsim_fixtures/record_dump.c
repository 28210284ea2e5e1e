/* OpenSM plugin that writes all SLs and SL2VL rows to one binary file, each time the subnet is up.
 *
 * The file has two kinds of data.  For every path between base LIDs, it has the SL that the routing engine in use
 * returns.  It also has the SL2VL rows that the switches have confirmed.  To read the file takes much less time than to
 * query each path.  A reader never finds an incomplete file: the plugin writes another file first, and renames that
 * file when it is complete. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

#define ROOM 4096

/* State of this OpenSM plugin. */
struct recorder {
    osm_opensm_t *osm; /* the OpenSM that has loaded the plugin */
    uint32_t sweeps;   /* number of sweeps that have brought the subnet up */
};

/* Header of the file that this plugin writes. */
struct head {
    char magic[8];   /* text "ibnue-r1" that identifies the file */
    uint32_t sweeps; /* how many sweeps had brought the subnet up when the file was written */
    /* number P of ports with a LID.  Two arrays follow this header: uint16 lid[P], the base LIDs of the ports, and
     * uint8 sl[P][P], the SLs by source and destination. */
    uint32_t ports;
    uint32_t rows; /* number of SL2VL rows, which come last in the file */
    uint32_t zero; /* padding, always 0 */
};

/* Row of an SL2VL table in the file that this plugin writes. */
struct row {
    uint64_t guid;   /* node GUID of the switch */
    uint8_t in;      /* in-port; 0: packets from the switch itself */
    uint8_t out;     /* out-port */
    uint8_t vl[16];  /* VL of each SL */
    uint8_t zero[6]; /* padding, always 0 */
};

/* Store the base LIDs of all ports in host byte order, and return their number. */
static uint32_t collect_lids(const osm_opensm_t *osm, uint16_t *lid)
{
    const cl_qmap_t *ports = &osm->subn.port_guid_tbl;
    uint32_t count = 0;

    for (cl_map_item_t *item = cl_qmap_head(ports); item != cl_qmap_end(ports); item = cl_qmap_next(item)) {
        uint16_t base = cl_ntoh16(osm_port_get_base_lid((osm_port_t *)item));

        if (base)
            lid[count++] = base;
    }
    return count;
}

static void fill_sls(const osm_opensm_t *osm, const uint16_t *lid, uint32_t count, uint8_t *sl)
{
    struct osm_routing_engine *engine = osm->routing_engine_used;

    if (!engine || !engine->path_sl)
        return; /* The engine has no SLs.  So all SLs are 0, which is what the SA answers without QoS policies. */
    for (uint32_t from = 0; from < count; from++)
        for (uint32_t to = 0; to < count; to++)
            sl[(size_t)from * count + to] =
                engine->path_sl(engine->context, 0, cl_hton16(lid[from]), cl_hton16(lid[to]));
}

/* Write the SL2VL rows between cabled ports, and the rows from port 0.  OpenSM writes no other rows to the switches.
 *
 * Return the number of rows.  If the file is NULL, only count the rows. */
static uint32_t write_rows(const osm_opensm_t *osm, FILE *file)
{
    const cl_qmap_t *switches = &osm->subn.sw_guid_tbl;
    uint32_t count = 0;

    for (cl_map_item_t *item = cl_qmap_head(switches); item != cl_qmap_end(switches); item = cl_qmap_next(item)) {
        const osm_node_t *node = ((osm_switch_t *)item)->p_node;
        uint8_t ports = osm_node_get_num_physp(node);

        for (uint8_t out = 1; out < ports; out++) {
            const osm_physp_t *leave = osm_node_get_physp_ptr((osm_node_t *)node, out);

            if (!leave || !osm_physp_get_remote(leave))
                continue;
            for (uint8_t in = 0; in < ports; in++) {
                const osm_physp_t *enter = osm_node_get_physp_ptr((osm_node_t *)node, in);
                struct row row = {.guid = cl_ntoh64(osm_node_get_node_guid(node)), .in = in, .out = out};

                if (in && (!enter || !osm_physp_get_remote(enter)))
                    continue;
                count++;
                if (!file)
                    continue;
                for (uint8_t sl = 0; sl < 16; sl++)
                    row.vl[sl] = ib_slvl_table_get(osm_physp_get_slvl_tbl(leave, in), sl);
                fwrite(&row, sizeof(row), 1, file);
            }
        }
    }
    return count;
}

static int write_all(const struct recorder *own, const char *path)
{
    const osm_opensm_t *osm = own->osm;
    struct head head = {.magic = "ibnue-r1", .sweeps = own->sweeps, .rows = write_rows(osm, NULL)};
    uint16_t *lid = calloc(cl_qmap_count(&osm->subn.port_guid_tbl) + 1, sizeof(*lid));
    uint8_t *sl = NULL;
    FILE *file = fopen(path, "w");
    int failed = -1;

    if (file && lid) {
        head.ports = collect_lids(osm, lid);
        sl = calloc((size_t)head.ports * head.ports + 1, 1);
    }
    if (sl) {
        fill_sls(osm, lid, head.ports, sl);
        fwrite(&head, sizeof(head), 1, file);
        fwrite(lid, sizeof(*lid), head.ports, file);
        fwrite(sl, head.ports, head.ports, file);
        write_rows(osm, file);
        failed = ferror(file);
    }
    if (file && fclose(file))
        failed = -1;
    free(lid);
    free(sl);
    return failed;
}

static void *create(osm_opensm_t *osm)
{
    struct recorder *own = calloc(1, sizeof(*own));

    if (own)
        own->osm = osm;
    return own;
}

static void report(void *context, osm_epi_event_id_t event, void *data)
{
    struct recorder *own = context;
    char beside[ROOM], path[ROOM];

    (void)data;
    if (event != OSM_EVENT_ID_SUBNET_UP)
        return;
    own->sweeps++;
    snprintf(path, sizeof(path), "%s/ibnue-records.bin", own->osm->subn.opt.dump_files_dir);
    snprintf(beside, sizeof(beside), "%s/.ibnue-records.new", own->osm->subn.opt.dump_files_dir);
    if (write_all(own, beside) || rename(beside, path))
        osm_log(&own->osm->log, OSM_LOG_ERROR, "ERR IBNE: %s cannot be written: %s\n", path, strerror(errno));
}

osm_event_plugin_t osm_event_plugin = {
    .osm_version = OSM_VERSION,
    .create = create,
    .delete = free,
    .report = report,
};
