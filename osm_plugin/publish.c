/* From the worker's answer into OpenSM: forwarding tables, and the tables that path_sl and update_sl2vl read.
 *
 * Nothing of OpenSM's is touched before every check has passed and every allocation was made. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sl_bytes(const struct ibnue_answer *answer)
{
    uint64_t lids = answer->lids;

    switch (answer->sl_kind) {
    case IBNUE_SL_BY_DESTINATION: return lids;
    case IBNUE_SL_BY_SWITCH: return lids * answer->switches;
    default: return lids * lids;
    }
}

static uint64_t sl2vl_bytes(const struct ibnue_answer *answer)
{
    uint64_t ports = answer->sl2vl_ports;
    return ports ? answer->switches * ports * ports * 16 : 16;
}

static int inside(const struct ibnue_answer *answer, uint64_t size, uint64_t at, uint64_t bytes)
{
    return at % 8 == 0 && at >= sizeof(*answer) && at <= size && bytes <= size - at;
}

static size_t further(size_t extent, uint64_t at, uint64_t bytes)
{
    return at + bytes > extent ? at + bytes : extent;
}

/* Where the last part of an answer ends that was checked. */
size_t ibnue_answer_extent(const struct ibnue_answer *answer)
{
    uint64_t table = (uint64_t)answer->switches * answer->lids;
    size_t extent = further(0, answer->lft_at, table);

    extent = further(extent, answer->hops_at, table);
    extent = further(extent, answer->sl_at, sl_bytes(answer));
    extent = further(extent, answer->sl2vl_at, sl2vl_bytes(answer));
    extent = further(extent, answer->switch_of_at, answer->lids * sizeof(int32_t));
    extent = further(extent, answer->parent_at, answer->switches * sizeof(int32_t));
    extent = further(extent, answer->up_port_at, answer->switches);
    extent = further(extent, answer->held_at, answer->held * sizeof(struct ibnue_held));
    return further(extent, answer->down_port_at, answer->switches);
}

static int ports_exist(const uint8_t *lft, uint32_t lids, uint8_t ports)
{
    unsigned bad = 0;

    for (uint32_t lid = 0; lid < lids; lid++)
        bad |= (unsigned)(lft[lid] != OSM_NO_PATH) & (unsigned)(lft[lid] >= ports);
    return !bad;
}

static int tree_fits(const int32_t *parent, uint32_t switches)
{
    for (uint32_t row = 0; row < switches; row++)
        if (parent[row] < -1 || parent[row] >= (int32_t)switches)
            return 0;
    return 1;
}

int ibnue_tables_fit(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer, const uint8_t *bytes,
                     char *why)
{
    const uint8_t *lft = bytes + answer->lft_at;

    if (!tree_fits((const int32_t *)(bytes + answer->parent_at), answer->switches)) {
        snprintf(why, IBNUE_WHY, "the worker's multicast tree leads out of the subnet");
        return -1;
    }
    for (uint32_t row = 0; row < answer->switches; row++, lft += answer->lids) {
        const osm_switch_t *sw = plugin->rows.row[row];
        if (!sw->new_lft || !sw->hops || answer->lids > sw->lft_size || answer->lids > sw->num_hops ||
            answer->lids > sw->max_lid_ho + 1u) {
            snprintf(why, IBNUE_WHY, "the tables go up to LID %u, OpenSM's for %s up to %u", answer->lids - 1,
                     sw->p_node->print_desc, sw->max_lid_ho);
            return -1;
        }
        if (!ports_exist(lft, answer->lids, sw->num_ports)) {
            snprintf(why, IBNUE_WHY, "the tables of %s name a port that it does not have", sw->p_node->print_desc);
            return -1;
        }
    }
    return 0;
}

/* Copies the header first: what was checked is what is used, whatever the worker does to the memory later. */
int ibnue_answer_check(const struct ibnue_plugin *plugin, struct ibnue_answer *copy, char *why)
{
    const struct ibnue_request *request = (const struct ibnue_request *)plugin->memory.bytes;
    uint64_t at = (request->end + 4095) / 4096 * 4096, size = plugin->memory.size, table;
    const struct ibnue_answer *a = copy;

    if (at > size || size - at < sizeof(*copy)) {
        snprintf(why, IBNUE_WHY, "the worker left no tables");
        return -1;
    }
    memcpy(copy, plugin->memory.bytes + at, sizeof(*copy));
    table = (uint64_t)a->switches * a->lids;
    if (a->magic != IBNUE_ANSWER_MAGIC || a->sequence != plugin->sequence || a->switches != plugin->rows.switches ||
        !a->lids || a->lids > 0xC000 || a->vls < 1 || a->vls > 15 || a->sl_kind > IBNUE_SL_BY_LIDS ||
        a->sl2vl_ports > 256 || !inside(a, size, a->lft_at, table) || !inside(a, size, a->hops_at, table) ||
        !inside(a, size, a->sl_at, sl_bytes(a)) || !inside(a, size, a->sl2vl_at, sl2vl_bytes(a)) ||
        !inside(a, size, a->switch_of_at, a->lids * sizeof(int32_t)) ||
        !inside(a, size, a->parent_at, a->switches * sizeof(int32_t)) ||
        !inside(a, size, a->held_at, a->held * sizeof(struct ibnue_held)) ||
        !inside(a, size, a->up_port_at, a->switches) || !inside(a, size, a->down_port_at, a->switches)) {
        snprintf(why, IBNUE_WHY, "the worker's tables do not belong to this subnet");
        return -1;
    }
    if (!ibnue_rounds_fit(plugin, a, plugin->memory.bytes)) {
        snprintf(why, IBNUE_WHY, "the worker's rounds do not fit its tables");
        return -1;
    }
    return ibnue_tables_fit(plugin, a, plugin->memory.bytes, why);
}

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

static void *copied(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    return to ? memcpy(to, from, bytes) : NULL;
}

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
    service->guid = malloc((answer->switches + 1u) * sizeof(*service->guid));
    service->switch_of = copied(bytes + answer->switch_of_at, answer->lids * sizeof(int32_t));
    service->sl = copied(bytes + answer->sl_at, sl_bytes(answer));
    service->sl2vl = copied(bytes + answer->sl2vl_at, sl2vl_bytes(answer));
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

/* Readers count themselves in before they load the pointer.  Once the pointer was exchanged, a count of zero means
 * that nobody can still hold an old one. */
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

const struct ibnue_service *ibnue_service_hold(struct ibnue_engine *engine)
{
    atomic_fetch_add(&engine->readers, 1);
    return atomic_load(&engine->service);
}

void ibnue_service_release(struct ibnue_engine *engine)
{
    atomic_fetch_sub(&engine->readers, 1);
}

void ibnue_service_drop(struct ibnue_engine *engine)
{
    service_swap(engine, NULL);
}

/* The further LIDs of an enhanced port 0 with an LMC are routed as its first one is. */
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

/* An engine that was tried before may have left something behind the last LID. */
static void fill_switch(osm_switch_t *sw, const uint8_t *lft, uint32_t lids)
{
    memcpy(sw->new_lft, lft, lids);
    memset(sw->new_lft + lids, OSM_NO_PATH, sw->lft_size - lids);
    sw->new_lft[0] = OSM_NO_PATH;
}

/* `bytes`: where the answer was checked, shared memory or a copy of it. */
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

static uint8_t look_up_sl(const struct ibnue_service *service, uint8_t hint, uint16_t from, uint16_t to)
{
    int32_t row;

    /* On one VL no SL can close a loop of credits: what the administrator's QoS policy asks for stays. */
    if (!service || service->vls == 1 || from >= service->lids || to >= service->lids)
        return hint;
    switch (service->sl_kind) {
    case IBNUE_SL_BY_DESTINATION:
        return service->sl[to];
    case IBNUE_SL_BY_SWITCH:
        row = service->switch_of[from];
        return row < 0 || (uint32_t)row >= service->switches ? hint : service->sl[(size_t)row * service->lids + to];
    default:
        return service->sl[(size_t)from * service->lids + to];
    }
}

/* Called by many threads of OpenSM's SA at once, and by the sweeper. */
uint8_t ibnue_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
    struct ibnue_engine *engine = context;
    uint8_t sl = look_up_sl(ibnue_service_hold(engine), hint, cl_ntoh16(slid), cl_ntoh16(dlid));

    ibnue_service_release(engine);
    return sl <= 15 ? sl : hint;
}

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

void ibnue_update_sl2vl(void *context, osm_physp_t *port, uint8_t in_port, uint8_t out_port, ib_slvl_table_t *table)
{
    struct ibnue_engine *engine = context;
    const struct ibnue_service *service = ibnue_service_hold(engine);

    if (service && service->vls > 1)
        set_sl2vl(service, port->p_node, in_port, out_port, table);
    ibnue_service_release(engine);
}
