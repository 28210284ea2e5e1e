/* Write the subnet into a request as arrays of devices (switches, CAs and routers), end ports, and cables.
 *
 * OpenSM's lock is held while the functions of this file run, so that no object changes meanwhile. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* This symbol is weak, because some versions of OpenSM do not export the function. */
extern boolean_t osm_link_is_throttled(osm_physp_t *port, const boolean_t has_fdr10) __attribute__((weak));

/* Return the active speed of one physical lane of a link, in Gb/s. */
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

/* Return the active width of a link, in physical lanes. */
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

/* Return the number of data VLs for a code in VLCap or OperationalVLs. */
static uint32_t vls_of_code(uint8_t code)
{
    static const uint8_t count[] = {1, 1, 2, 4, 8, 15};
    return code < sizeof(count) ? count[code] : 15;
}

/* Return the number of data VLs that a port supports. */
static uint32_t vls_cap(const osm_physp_t *port)
{
    return vls_of_code(ib_port_info_get_vl_cap(&port->port_info));
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Return the number of data VLs that OpenSM's options allow.  Without QoS, OpenSM writes no SL-to-VL tables, so only
 * tables with one VL are safe.  If max_op_vls is 0, OpenSM does not change the operational VLs of ports.  These VLs are
 * unknown, so only one VL is safe. */
static uint32_t vls_allowed(const osm_subn_opt_t *opt)
{
    const osm_qos_options_t *all = &opt->qos_options, *own[] = {&opt->qos_ca_options, &opt->qos_sw0_options,
                                                                &opt->qos_swe_options, &opt->qos_rtr_options};
    uint32_t vls = vls_of_code(opt->max_op_vls);

    if (!opt->qos)
        return 1;
    /* As in OpenSM, an option for one kind of port (such as qos_ca_max_vls) replaces the option for all ports
     * (qos_max_vls). */
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        uint32_t most = own[i]->max_vls > 0 ? own[i]->max_vls : all->max_vls;
        vls = most > 0 ? least(vls, most) : vls;
    }
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
    if (node->print_desc)
        memcpy(device->name, node->print_desc, strnlen(node->print_desc, sizeof(device->name) - 1));
}

/* Return the port at the other end of the cable of `port`, and store the index of that port's device in `*device`.
 * Return NULL if `port` has no cable, or if that device is not in the request. */
static osm_physp_t *far_end(const struct ibnue_walk *walk, osm_physp_t *port, int *device)
{
    osm_physp_t *far = osm_physp_get_remote(port);

    if (!far || far == port || !osm_physp_is_valid(far) || far->p_remote_physp != port)
        return NULL;
    *device = ibnue_device_of(walk, far->p_node);
    return *device < 0 ? NULL : far;
}

/* Return whether OpenSM considers a cable between two switches unhealthy. */
static uint8_t is_sick(const struct ibnue_walk *walk, uint32_t device, int peer, osm_physp_t *port)
{
    return device < walk->switches && (uint32_t)peer < walk->switches && !osm_link_is_healthy(port);
}

/* Return whether the option `avoid_throttled_links` applies to a cable.  The cable must join two switches, and be
 * slower than its ports allow. */
static uint8_t is_throttled(const struct ibnue_walk *walk, uint32_t device, int peer, osm_physp_t *port)
{
    const osm_subn_opt_t *opt = walk->opt;

    return opt->avoid_throttled_links && osm_link_is_throttled && device < walk->switches &&
           (uint32_t)peer < walk->switches && osm_link_is_throttled(port, opt->fdr10 == 1);
}

/* Append the end ports and the cables of a device to a request.  A cable is appended only if its first end is at the
 * device (see struct ibnue_cable), so that the request has each cable once.  If a port of the device supports fewer VLs
 * than `data_vls` of the request, lower `data_vls`.  Ports of sick links do not count for this. */
static void write_ports(const struct ibnue_walk *walk, uint32_t device, struct ibnue_request *request,
                        struct ibnue_endport *endport, struct ibnue_cable *cable)
{
    osm_node_t *node = walk->place[device].node;

    for (uint32_t p = 1; p < osm_node_get_num_physp(node); p++) {
        osm_physp_t *port = osm_node_get_physp_ptr(node, p), *far;
        uint8_t sick;
        int peer;
        if (!port || !(far = far_end(walk, port, &peer)))
            continue;
        if (!(sick = is_sick(walk, device, peer, port)))
            request->data_vls = least(request->data_vls, vls_cap(port));
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
                .throttled = is_throttled(walk, device, peer, port),
                .sick = sick,
                .speed = lane_speed(port),
            };
    }
}

/* Write a request without LFTs to `bytes`, a buffer of at least `walk->room` bytes. */
void ibnue_request_write(struct ibnue_plugin *plugin, const struct ibnue_walk *walk, uint8_t *bytes)
{
    const osm_subn_opt_t *opt = &plugin->osm->subn.opt;
    struct ibnue_request *request = (struct ibnue_request *)bytes;
    struct ibnue_device *device;
    struct ibnue_endport *endport;
    struct ibnue_cable *cable;

    *request = (struct ibnue_request){.switches = walk->switches, .devices = walk->devices, .qos = opt->qos};
    request->data_vls = vls_allowed(opt);
    request->device_at = sizeof(*request);
    request->endport_at = request->device_at + walk->devices * sizeof(*device);
    request->cable_at = request->endport_at + walk->endports * sizeof(*endport);
    device = (struct ibnue_device *)(bytes + request->device_at);
    endport = (struct ibnue_endport *)(bytes + request->endport_at);
    cable = (struct ibnue_cable *)(bytes + request->cable_at);
    for (uint32_t d = 0; d < walk->devices; d++) {
        ibnue_walk_ahead(walk, d);
        write_device(device + d, walk->place[d].node);
        write_ports(walk, d, request, endport, cable);
    }
    request->conf_at = (request->cable_at + request->cables * sizeof(*cable) + 7) / 8 * 8;
    request->conf_bytes = ibnue_options_write(plugin, (char *)bytes + request->conf_at, IBNUE_OPTIONS_ROOM);
    request->end = request->conf_at + request->conf_bytes;
    request->sequence = ++plugin->sequence;
    request->magic = IBNUE_REQUEST_MAGIC;
}
