/* Do the work that has to wait until the switches have acknowledged the LFTs: set OpenSM's hop counts, and keep the
 * answer as the tables to fall back on.
 *
 * Only OpenSM's sweeper reads hop counts: for multicast, for the unicast cache and for dumps.  The sweeper reads them
 * after the event in which this work is done. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* Record tables that OpenSM has received.  ibnue_settle does the remaining work for these tables later. */
void ibnue_settle_later(struct ibnue_engine *engine, const struct ibnue_answer *answer, enum ibnue_source source)
{
    engine->plugin->unsettled = (struct ibnue_unsettled){.engine = engine, .answer = *answer, .source = source};
}

/* Keep the tables in the buffer `taken` as the tables to fall back on, if OpenSM has received them.  This function must
 * be called before another answer overwrites `taken`. */
void ibnue_settle_taken(struct ibnue_plugin *plugin)
{
    struct ibnue_unsettled *left = &plugin->unsettled;

    if (left->engine && left->source == IBNUE_FROM_TAKEN) {
        ibnue_last_keep(plugin);
        plugin->last.unfinished = left->rounds_open;
    }
    left->engine = NULL;
}

/* Set OpenSM's hop counts of a switch for the LIDs `lid`[count].  `hops` has the hop count of each LID.  OpenSM keeps a
 * hop count for each LID and each port of the switch.  Only two of them are set for a LID: those of port 0 and of the
 * port that OpenSM's LFT names for the LID.  Return 0, or -1 if memory allocation fails. */
static int fill_hops(osm_switch_t *sw, const uint8_t *hops, const uint16_t *lid, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t **row, port;
        if (lid[i] >= sw->num_hops || lid[i] >= sw->lft_size)
            continue;
        row = sw->hops + lid[i];
        port = sw->new_lft[lid[i]];
        if (!*row) {
            *row = malloc(sw->num_ports);
            if (!*row)
                return -1;
            memset(*row, OSM_NO_PATH, sw->num_ports);
        }
        if (port < sw->num_ports)
            (*row)[port] = (*row)[0] = hops[lid[i]];
    }
    return 0;
}

/* Return whether an engine is the first in OpenSM's list.  OpenSM clears the hop counts before it calls the first
 * engine.  For any other engine, the plugin has to clear them. */
static int is_first(const struct ibnue_engine *engine)
{
    const struct osm_routing_engine *first = engine->plugin->osm->routing_engine_list;
    return first && first->context == engine;
}

/* Set OpenSM's hop counts for the LIDs of switches.  OpenSM reads no other hop counts.  Return 0, or -1 if memory
 * allocation fails. */
static int set_hops(struct ibnue_engine *engine, const struct ibnue_answer *answer, const uint8_t *hops,
                    const struct ibnue_service *service)
{
    const osm_subn_t *subn = &engine->plugin->osm->subn;
    uint16_t *lid = malloc((service->switches + 1u) * sizeof(*lid));
    int failed = !lid, cleared = is_first(engine);
    uint32_t count = 0;

    for (uint32_t row = 0; row < service->switches && lid; row++) {
        const osm_switch_t *sw = osm_get_switch_by_guid(subn, cl_hton64(service->guid[row]));
        uint16_t own = sw ? cl_ntoh16(osm_node_get_base_lid(sw->p_node, 0)) : 0;
        if (own && own < answer->lids)
            lid[count++] = own;
    }
    for (uint32_t row = 0; row < service->switches && !failed; row++) {
        osm_switch_t *sw = osm_get_switch_by_guid(subn, cl_hton64(service->guid[row]));
        if (!sw || !sw->hops || !sw->new_lft)
            continue;
        if (!cleared)
            osm_switch_clear_hops(sw);
        failed = fill_hops(sw, hops + (size_t)row * answer->lids, lid, count);
    }
    free(lid);
    return failed ? -1 : 0;
}

/* Do the work that had to wait until the switches have acknowledged the LFTs.  The function runs in OpenSM's
 * sweeper, without OpenSM's lock. */
void ibnue_settle(struct ibnue_plugin *plugin)
{
    const struct ibnue_unsettled *left = &plugin->unsettled;
    const struct ibnue_service *service;
    const uint8_t *bytes;

    if (!left->engine)
        return;
    bytes = plugin->taken.bytes;
    if (left->source != IBNUE_FROM_TAKEN)
        bytes = left->source == IBNUE_FROM_LAST ? plugin->last.bytes : plugin->remains.bytes;
    CL_PLOCK_EXCL_ACQUIRE(&plugin->osm->lock);
    service = ibnue_service_hold(left->engine);
    if (bytes && service && service->switches == left->answer.switches &&
        set_hops(left->engine, &left->answer, bytes + left->answer.hops_at, service))
        SAY(plugin, OSM_LOG_ERROR, "ERR IBNE: no memory for hop counts; multicast may not reach all members until the next sweep\n");
    ibnue_service_release(left->engine);
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    ibnue_settle_taken(plugin);
}
