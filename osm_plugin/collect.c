/* The subnet as flat arrays in shared memory: switches, CAs and routers, end ports, cables.
 *
 * Everything here runs while OpenSM's sweeper holds the exclusive lock, so that no object changes under the walk. */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct place {
    uint64_t guid;
    osm_node_t *node;
};

struct walk {
    struct place *place; /* switches by GUID, then all others by GUID */
    uint32_t switches, devices;
    uint32_t data_vls;
};

static int by_guid(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    return (one->guid > other->guid) - (one->guid < other->guid);
}

static int row_by_guid(const void *a, const void *b)
{
    uint64_t one = cl_ntoh64(osm_node_get_node_guid((*(osm_switch_t *const *)a)->p_node));
    uint64_t other = cl_ntoh64(osm_node_get_node_guid((*(osm_switch_t *const *)b)->p_node));
    return (one > other) - (one < other);
}

/* OpenSM recreates switch objects between sweeps, so the rows are sorted afresh each time. */
int ibnue_rows_sort(struct ibnue_plugin *plugin, char *why)
{
    struct ibnue_rows *rows = &plugin->rows;
    const cl_qmap_t *table = &plugin->osm->subn.sw_guid_tbl;
    size_t count = cl_qmap_count(table);
    uint32_t row = 0;

    if (count > rows->room) {
        osm_switch_t **grown = realloc(rows->row, count * sizeof(*grown));
        if (!grown) {
            snprintf(why, IBNUE_WHY, "out of memory");
            return -1;
        }
        rows->row = grown;
        rows->room = count;
    }
    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item))
        rows->row[row++] = (osm_switch_t *)item;
    rows->switches = row;
    qsort(rows->row, row, sizeof(*rows->row), row_by_guid);
    return 0;
}

void ibnue_memory_unmap(struct ibnue_memory *memory)
{
    if (memory->bytes)
        munmap(memory->bytes, memory->size);
    memory->bytes = NULL;
    memory->size = 0;
}

/* Map all of the file behind `fd`, which is made to hold `least` bytes.  It never shrinks: the host sealed it. */
int ibnue_memory_map(struct ibnue_memory *memory, int fd, uint64_t generation, size_t least, char *why)
{
    struct stat about;
    void *bytes;

    if (fstat(fd, &about) || ((size_t)about.st_size < least && (ftruncate(fd, (off_t)least) || fstat(fd, &about)))) {
        snprintf(why, IBNUE_WHY, "the shared memory cannot hold %zu bytes: %s", least, strerror(errno));
        return -1;
    }
    if (memory->bytes && memory->generation == generation && memory->size == (size_t)about.st_size)
        return 0;
    ibnue_memory_unmap(memory);
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        snprintf(why, IBNUE_WHY, "the shared memory cannot be mapped: %s", strerror(errno));
        return -1;
    }
    *memory = (struct ibnue_memory){.fd = fd, .generation = generation, .bytes = bytes, .size = (size_t)about.st_size};
    return 0;
}

/* Have the pages there that the answer will most likely take, while the worker computes: their first touch is not free.
 * Only a help, so that failures do not matter; the worker grows the file by itself where it must. */
void ibnue_memory_prepare(struct ibnue_plugin *plugin)
{
    const struct ibnue_request *request = (const struct ibnue_request *)plugin->memory.bytes;
    size_t table = (size_t)request->switches * (plugin->osm->subn.max_ucast_lid_ho + 1u);
    size_t from = (request->end + 4095) / 4096 * 4096, to = from + 2 * table + 32 * 4096;
    char why[IBNUE_WHY];

    if (to <= plugin->memory.size ||
        ibnue_memory_map(&plugin->memory, plugin->memory.fd, plugin->memory.generation, to, why))
        return;
    madvise(plugin->memory.bytes + from, to - from, MADV_POPULATE_WRITE);
}

/* An upper bound of what the request takes. */
size_t ibnue_request_room(const osm_subn_t *subn)
{
    const cl_qmap_t *table = &subn->node_guid_tbl;
    size_t ports = 0;

    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item))
        ports += osm_node_get_num_physp((osm_node_t *)item);
    return sizeof(struct ibnue_request) + cl_qmap_count(table) * sizeof(struct ibnue_device) +
           ports * (sizeof(struct ibnue_endport) + sizeof(struct ibnue_cable)) + 64;
}

static int walk_open(struct walk *walk, const osm_subn_t *subn)
{
    const cl_qmap_t *table = &subn->node_guid_tbl;
    size_t count = cl_qmap_count(table);
    uint32_t low = 0, high = 0;

    walk->place = malloc((count + 1) * sizeof(*walk->place));
    if (!walk->place)
        return -1;
    high = (uint32_t)count;
    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item)) {
        osm_node_t *node = (osm_node_t *)item;
        struct place here = {cl_ntoh64(osm_node_get_node_guid(node)), node};
        if (osm_node_get_type(node) != IB_NODE_TYPE_SWITCH)
            walk->place[--high] = here;
        else if (node->sw) /* a switch whose SwitchInfo never came has no tables to fill */
            walk->place[low++] = here;
    }
    memmove(walk->place + low, walk->place + high, (count - high) * sizeof(*walk->place));
    walk->switches = low;
    walk->devices = low + (uint32_t)(count - high);
    qsort(walk->place, low, sizeof(*walk->place), by_guid);
    qsort(walk->place + low, walk->devices - low, sizeof(*walk->place), by_guid);
    return 0;
}

static int device_of(const struct walk *walk, const osm_node_t *node)
{
    struct place wanted = {cl_ntoh64(osm_node_get_node_guid(node)), NULL};
    int is_switch = osm_node_get_type(node) == IB_NODE_TYPE_SWITCH;
    const struct place *from = walk->place + (is_switch ? 0 : walk->switches);
    size_t count = is_switch ? walk->switches : walk->devices - walk->switches;
    const struct place *found = bsearch(&wanted, from, count, sizeof(*from), by_guid);
    return found ? (int)(found - walk->place) : -1;
}

static double lane_speed(const osm_physp_t *port)
{
    const ib_port_info_t *info = &port->port_info;

    switch (ib_port_info_get_link_speed_ext_active(info)) {
    case 1: return 14.0625;
    case 2: return 25.78125;
    case 4: return 53.125;
    case 8: return 106.25;
    default: break;
    }
    if (port->ext_port_info.link_speed_active & FDR10)
        return 10.3125;
    switch (ib_port_info_get_link_speed_active(info)) {
    case IB_LINK_SPEED_ACTIVE_5: return 5.0;
    case IB_LINK_SPEED_ACTIVE_10: return 10.0;
    default: return 2.5;
    }
}

static uint8_t lanes(const osm_physp_t *port)
{
    switch (port->port_info.link_width_active) {
    case IB_LINK_WIDTH_ACTIVE_4X: return 4;
    case IB_LINK_WIDTH_ACTIVE_8X: return 8;
    case IB_LINK_WIDTH_ACTIVE_12X: return 12;
    case IB_LINK_WIDTH_ACTIVE_2X: return 2;
    default: return 1;
    }
}

static uint32_t vls_of_code(uint8_t code)
{
    static const uint8_t count[] = {1, 1, 2, 4, 8, 15};
    return code < sizeof(count) ? count[code] : 15;
}

static uint32_t vls_cap(const osm_physp_t *port)
{
    return vls_of_code(ib_port_info_get_vl_cap(&port->port_info));
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Without QoS nothing sets up SL-to-VL tables, so that only what rides on one VL is safe. */
static uint32_t vls_allowed(const osm_subn_opt_t *opt)
{
    const osm_qos_options_t *options[] = {&opt->qos_options, &opt->qos_ca_options, &opt->qos_sw0_options,
                                          &opt->qos_swe_options, &opt->qos_rtr_options};
    uint32_t vls = vls_of_code(opt->max_op_vls);

    if (!opt->qos)
        return 1;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (options[i]->max_vls > 0)
            vls = least(vls, options[i]->max_vls);
    return vls;
}

static void write_device(struct ibnue_device *device, osm_node_t *node)
{
    osm_physp_t *zero = node->sw ? osm_node_get_physp_ptr(node, 0) : NULL;

    memset(device, 0, sizeof(*device));
    device->guid = cl_ntoh64(osm_node_get_node_guid(node));
    device->ports = node->node_info.num_ports;
    device->kind = IBNUE_CA;
    if (osm_node_get_type(node) == IB_NODE_TYPE_SWITCH)
        device->kind = IBNUE_SWITCH;
    else if (osm_node_get_type(node) == IB_NODE_TYPE_ROUTER)
        device->kind = IBNUE_ROUTER;
    if (zero) {
        device->lid = cl_ntoh16(osm_physp_get_base_lid(zero));
        device->lmc = osm_physp_get_lmc(zero);
    }
    snprintf(device->name, sizeof(device->name), "%s", node->print_desc ? node->print_desc : "");
}

/* The far end, if the cable leads to a node that counts.  Cables between switches that OpenSM holds to be sick do not. */
static osm_physp_t *far_end(const struct walk *walk, osm_physp_t *port, int *device)
{
    osm_physp_t *far = osm_physp_get_remote(port);

    if (!far || far == port || !osm_physp_is_valid(far) || far->p_remote_physp != port)
        return NULL;
    if (port->p_node->sw && far->p_node->sw && !osm_link_is_healthy(port))
        return NULL;
    *device = device_of(walk, far->p_node);
    return *device < 0 ? NULL : far;
}

static void write_ports(struct walk *walk, uint32_t device, struct ibnue_request *request,
                        struct ibnue_endport *endport, struct ibnue_cable *cable)
{
    osm_node_t *node = walk->place[device].node;

    for (uint32_t p = 1; p < osm_node_get_num_physp(node); p++) {
        osm_physp_t *port = osm_node_get_physp_ptr(node, p), *far;
        int peer;
        if (!port || !(far = far_end(walk, port, &peer)))
            continue;
        walk->data_vls = least(walk->data_vls, vls_cap(port));
        if (device >= walk->switches)
            endport[request->endports++] = (struct ibnue_endport){
                .guid = cl_ntoh64(osm_physp_get_port_guid(port)),
                .device = device,
                .lid = cl_ntoh16(osm_physp_get_base_lid(port)),
                .port = (uint8_t)p,
                .lmc = osm_physp_get_lmc(port),
            };
        if (device < (uint32_t)peer || (device == (uint32_t)peer && p < osm_physp_get_port_num(far)))
            cable[request->cables++] = (struct ibnue_cable){
                .device = {device, (uint32_t)peer},
                .port = {(uint8_t)p, osm_physp_get_port_num(far)},
                .width = lanes(port),
                .speed = lane_speed(port),
            };
    }
}

/* Write the request into memory, which holds ibnue_request_room() bytes. */
int ibnue_request_write(struct ibnue_plugin *plugin, uint8_t *bytes, char *why)
{
    const osm_subn_t *subn = &plugin->osm->subn;
    struct walk walk = {.data_vls = vls_allowed(&subn->opt)};
    struct ibnue_request *request = (struct ibnue_request *)bytes;
    struct ibnue_device *device;
    struct ibnue_endport *endport;
    struct ibnue_cable *cable;
    size_t ports = 0;

    if (walk_open(&walk, subn)) {
        snprintf(why, IBNUE_WHY, "out of memory");
        return -1;
    }
    for (uint32_t d = walk.switches; d < walk.devices; d++)
        ports += osm_node_get_num_physp(walk.place[d].node);
    *request = (struct ibnue_request){.switches = walk.switches, .devices = walk.devices, .qos = subn->opt.qos};
    request->device_at = sizeof(*request);
    request->endport_at = request->device_at + walk.devices * sizeof(*device);
    request->cable_at = request->endport_at + ports * sizeof(*endport);
    device = (struct ibnue_device *)(bytes + request->device_at);
    endport = (struct ibnue_endport *)(bytes + request->endport_at);
    cable = (struct ibnue_cable *)(bytes + request->cable_at);
    for (uint32_t d = 0; d < walk.devices; d++) {
        write_device(device + d, walk.place[d].node);
        write_ports(&walk, d, request, endport, cable);
    }
    request->data_vls = walk.data_vls;
    request->end = request->cable_at + request->cables * sizeof(*cable);
    request->sequence = ++plugin->sequence;
    request->magic = IBNUE_REQUEST_MAGIC;
    free(walk.place);
    if (walk.switches != plugin->rows.switches) {
        snprintf(why, IBNUE_WHY, "OpenSM has %u switches in one table and %u in another", plugin->rows.switches,
                 walk.switches);
        return -1;
    }
    return 0;
}
