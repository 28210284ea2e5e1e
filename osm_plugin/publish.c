/* Give checked tables to OpenSM: write the LFTs into OpenSM's tables, and replace the tables that the callbacks path_sl
 * and update_sl2vl read.
 *
 * All memory is allocated before anything in OpenSM is changed. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void service_free(struct ibnue_service *service)
{
    if (!service)
        return;
    free(service->guid);
    free(service->switch_of);
    free(service->sl);
    free(service->sl2vl);
    free(service->parent);
    free(service->up_port);
    free(service->down_port);
    free(service);
}

/* Return a copy of an array in new memory, NULL if memory allocation fails. */
static void *copied(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    return to ? memcpy(to, from, bytes) : NULL;
}

/* Copy those tables of an answer that are needed to answer OpenSM's queries.  Return the copy, NULL if memory
 * allocation fails. */
static struct ibnue_service *service_new(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer,
                                         const uint8_t *bytes)
{
    struct ibnue_service *service = calloc(1, sizeof(*service));

    if (!service)
        return NULL;
    service->switches = answer->switches;
    service->lids = answer->lids;
    service->vls = answer->vls;
    service->sl_kind = answer->sl_kind;
    service->sl2vl_ports = answer->sl2vl_ports;
    memcpy(&service->classes, bytes + answer->classes_at, sizeof(service->classes));
    service->guid = malloc((answer->switches + 1u) * sizeof(*service->guid));
    service->switch_of = copied(bytes + answer->switch_of_at, answer->lids * sizeof(int32_t));
    service->sl = copied(bytes + answer->sl_at, ibnue_sl_bytes(answer));
    service->sl2vl = copied(bytes + answer->sl2vl_at, ibnue_sl2vl_bytes(answer));
    service->parent = copied(bytes + answer->parent_at, answer->switches * sizeof(int32_t));
    service->up_port = copied(bytes + answer->up_port_at, answer->switches);
    service->down_port = copied(bytes + answer->down_port_at, answer->switches);
    if (!service->guid || !service->switch_of || !service->sl || !service->sl2vl || !service->parent ||
        !service->up_port || !service->down_port) {
        service_free(service);
        return NULL;
    }
    for (uint32_t row = 0; row < answer->switches; row++)
        service->guid[row] = cl_ntoh64(osm_node_get_node_guid(plugin->rows.row[row]->p_node));
    return service;
}

/* Replace the tables that answer OpenSM's queries.  A reader increments a counter before it loads the pointer to the
 * tables.  If the counter is 0 after the pointer was replaced, no reader uses an old copy, so all old copies are freed.
 * Otherwise, the old copies are kept until a later call. */
static void service_swap(struct ibnue_engine *engine, struct ibnue_service *fresh)
{
    struct ibnue_service *old = atomic_exchange(&engine->service, fresh);

    if (old) {
        old->retired = engine->retired;
        engine->retired = old;
    }
    if (atomic_load(&engine->readers))
        return;
    while ((old = engine->retired)) {
        engine->retired = old->retired;
        service_free(old);
    }
}

/* Return the tables that answer OpenSM's queries, NULL if the engine has no tables.  The tables stay valid until
 * ibnue_service_release, which must be called in either case. */
const struct ibnue_service *ibnue_service_hold(struct ibnue_engine *engine)
{
    atomic_fetch_add(&engine->readers, 1);
    return atomic_load(&engine->service);
}

/* End the use of the tables that ibnue_service_hold has returned. */
void ibnue_service_release(struct ibnue_engine *engine)
{
    atomic_fetch_sub(&engine->readers, 1);
}

void ibnue_service_drop(struct ibnue_engine *engine)
{
    service_swap(engine, NULL);
}

/* Copy the entries for the base LID of each switch to the further LIDs of this switch.  A switch has further LIDs if
 * its port 0 is an enhanced port 0 with an LMC. */
void ibnue_spread_port0(const struct ibnue_plugin *plugin)
{
    for (uint32_t row = 0; row < plugin->rows.switches; row++) {
        osm_physp_t *zero = osm_node_get_physp_ptr(plugin->rows.row[row]->p_node, 0);
        uint32_t lid = zero ? cl_ntoh16(osm_physp_get_base_lid(zero)) : 0;
        uint32_t count = zero ? 1u << osm_physp_get_lmc(zero) : 1;
        for (uint32_t other = 0; lid && count > 1 && other < plugin->rows.switches; other++) {
            osm_switch_t *sw = plugin->rows.row[other];
            for (uint32_t more = lid + 1; more < lid + count && more <= sw->max_lid_ho; more++)
                sw->new_lft[more] = sw->new_lft[lid];
        }
    }
}

/* Fill OpenSM's new LFT of a switch.  Entries for LIDs above the largest LID of the answer are cleared, because another
 * engine may have left such entries. */
static void fill_switch(osm_switch_t *sw, const uint8_t *lft, uint32_t lids)
{
    memcpy(sw->new_lft, lft, lids);
    memset(sw->new_lft + lids, OSM_NO_PATH, sw->lft_size - lids);
    sw->new_lft[0] = OSM_NO_PATH;
}

/* Give a checked answer to OpenSM.  The parts of the answer are in `bytes`, at the offsets that the answer states. */
int ibnue_publish(struct ibnue_engine *engine, const struct ibnue_answer *answer, const uint8_t *bytes, char *why)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_service *service = service_new(plugin, answer, bytes);

    if (!service) {
        snprintf(why, IBNUE_WHY, "out of memory");
        return -1;
    }
    for (uint32_t row = 0; row < answer->switches; row++)
        fill_switch(plugin->rows.row[row], bytes + answer->lft_at + (size_t)row * answer->lids, answer->lids);
    ibnue_spread_port0(plugin);
    service_swap(engine, service);
    return 0;
}

/* Return the SL for the path between two LIDs.  If the tables do not determine the SL, return the hint (the SL that
 * OpenSM proposes). */
static uint8_t look_up_sl(const struct ibnue_service *service, uint8_t hint, uint16_t from, uint16_t to)
{
    uint8_t own;
    int32_t row;

    /* If all paths use one VL, the SL has no influence on credit loops.  So the SL of the administrator's QoS policy
     * is kept. */
    if (!service || service->vls == 1 || from >= service->lids || to >= service->lids)
        return hint;
    switch (service->sl_kind) {
    case IBNUE_SL_BY_DESTINATION:
        own = service->sl[to];
        break;
    case IBNUE_SL_BY_SWITCH:
        row = service->switch_of[from];
        if (row < 0 || (uint32_t)row >= service->switches)
            return hint;
        own = service->sl[(size_t)row * service->lids + to];
        break;
    default:
        own = service->sl[(size_t)from * service->lids + to];
    }
    /* The SL in the tables, `own`, stands for a layer.  Return the SL that the QoS class of the hint has for this
     * layer.  The result is the hint itself if the hint is an SL of this layer. */
    return service->classes.sl_for[16 * (hint & 15) + (own & 15)];
}

/* Return the SL for a path (OpenSM's callback path_sl).  Threads of OpenSM's SA and the sweeper call this
 * concurrently. */
uint8_t ibnue_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
    struct ibnue_engine *engine = context;
    uint8_t sl = look_up_sl(ibnue_service_hold(engine), hint, cl_ntoh16(slid), cl_ntoh16(dlid));

    ibnue_service_release(engine);
    return sl <= 15 ? sl : hint;
}

/* Return the row of the switch with a GUID, or -1 if the tables do not contain this switch. */
int ibnue_row_of_guid(const struct ibnue_service *service, uint64_t guid)
{
    uint32_t low = 0, high = service->switches;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (service->guid[middle] < guid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < service->switches && service->guid[low] == guid ? (int)low : -1;
}

/* Fill the SL-to-VL table of a switch for an in-port and an out-port, or the table of a CA or router.  The tables in
 * `service` are either one row of 16 VLs for all devices, or separate tables for the ports of each switch.  In the
 * second case, a CA or router maps SL n to VL (n modulo the number of VLs). */
static void set_sl2vl(const struct ibnue_service *service, const osm_node_t *node, uint8_t in_port, uint8_t out_port,
                      ib_slvl_table_t *table)
{
    size_t ports = service->sl2vl_ports;
    const uint8_t *vl = service->sl2vl;
    int row = node->sw ? ibnue_row_of_guid(service, cl_ntoh64(osm_node_get_node_guid(node))) : -1;

    if (ports && node->sw) {
        if (row < 0 || in_port >= ports || out_port >= ports)
            return;
        vl += (((size_t)row * ports + in_port) * ports + out_port) * 16;
    }
    for (uint8_t sl = 0; sl < 16; sl++)
        ib_slvl_table_set(table, sl, ports && !node->sw ? sl % service->vls : vl[sl] & 15);
}

/* Return whether OpenSM will change VLs in an SL-to-VL table when it writes the table to a port.  OpenSM masks each VL
 * of the table to the VLs that are operational at the port.  If OpenSM raises the number of operational VLs in this
 * sweep, it does so only after it has written the table. */
static int is_cut(const osm_physp_t *port, const ib_slvl_table_t *table)
{
    unsigned code = ib_port_info_get_op_vls(&port->port_info), mask = code ? (1u << (code - 1)) - 1 : 0;
    int cut = 0;

    for (uint8_t sl = 0; sl < 16; sl++) {
        unsigned vl = ib_slvl_table_get(table, sl);
        cut |= vl != 15 && (vl & mask) != vl;
    }
    return cut;
}

/* Fill an SL-to-VL table (OpenSM's callback update_sl2vl).  If all paths use one VL, the administrator's table is
 * kept. */
void ibnue_update_sl2vl(void *context, osm_physp_t *port, uint8_t in_port, uint8_t out_port, ib_slvl_table_t *table)
{
    struct ibnue_engine *engine = context;
    const struct ibnue_service *service = ibnue_service_hold(engine);

    if (service && service->vls > 1) {
        set_sl2vl(service, port->p_node, in_port, out_port, table);
        /* Ports without a cable, and port 0 of switches, belong to no channel, so their tables are not counted. */
        engine->plugin->narrow += osm_physp_get_remote(port) && is_cut(port, table);
    }
    ibnue_service_release(engine);
}
