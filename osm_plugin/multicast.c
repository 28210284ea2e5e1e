/* Build the tree of a multicast group.  The tree of a group consists of those parts of the answer's multicast tree
 * that connect the group's members.  This code runs in two cases: in OpenSM's sweeper with the exclusive lock held,
 * and between sweeps when a port joins a group. */
#include "shim.h"

#include <stdlib.h>

#include <opensm/osm_log.h>
#include <opensm/osm_mcast_mgr.h>
#include <opensm/osm_multicast.h>

/* The tree of one group while it is built. */
struct growth {
    const struct ibnue_service *service; /* tables with the multicast tree */
    struct ibnue_plugin *plugin; /* the plugin, for log messages */
    uint16_t mlid;      /* multicast LID of the group, in host order */
    uint8_t *member;    /* [switches], whether the switch itself or a port cabled to the switch is a member */
    uint8_t *on;        /* [switches], whether the switch is on the tree of the group */
    uint32_t *branches; /* [switches], number of children of each switch on the tree of the group */
    int32_t *child;     /* [switches], row of a child of each switch; used only if the switch has one child */
};

static osm_switch_t *switch_of_row(const struct growth *growth, int32_t row)
{
    return osm_get_switch_by_guid(&growth->plugin->osm->subn, cl_hton64(growth->service->guid[row]));
}

/* Add a port to a switch's multicast entry of the group.  If this is not possible, log the reason and return -1;
 * otherwise return 0. */
static int set_port(const struct growth *growth, int32_t row, uint8_t port)
{
    osm_switch_t *sw = switch_of_row(growth, row);

    if (!sw || port >= sw->num_ports || !osm_switch_supports_mcast(sw)) {
        SAY(growth->plugin, OSM_LOG_ERROR, "ERR IBN8: MLID 0x%x: switch 0x%016" PRIx64 " %s; members behind it get no packets of the group\n",
            growth->mlid, growth->service->guid[row], sw ? "takes no multicast" : "is gone");
        return -1;
    }
    osm_mcast_tbl_set(&sw->mcast_tbl, growth->mlid, port);
    return 0;
}

/* Mark the switch of a member of the group, and add the switch port that leads to the member to the switch's multicast
 * entry.  Return 0, or -1 if the port cannot be added or the tables do not have the switch. */
static int add_member(const struct growth *growth, const osm_port_t *port)
{
    const osm_physp_t *physp = port->p_physp;
    uint8_t number = 0;
    int32_t row;

    if (!port->p_node->sw) {
        physp = physp ? physp->p_remote_physp : NULL;
        if (!physp || !physp->p_node->sw)
            return 0; /* The member has no cable to a switch, so no switch can forward packets to it. */
        number = physp->port_num;
    }
    row = ibnue_row_of_guid(growth->service, cl_ntoh64(osm_node_get_node_guid(physp->p_node)));
    if (row < 0)
        return -1;
    growth->member[row] = 1;
    return set_port(growth, row, number);
}

/* Mark all switches on the paths from the group's members to the root as part of the tree. */
static void mark_paths(const struct growth *growth)
{
    for (uint32_t start = 0; start < growth->service->switches; start++) {
        int32_t row = growth->member[start] ? (int32_t)start : -1;
        while (row >= 0 && !growth->on[row]) {
            int32_t up = growth->service->parent[row];
            growth->on[row] = 1;
            if (up >= 0) {
                growth->branches[up]++;
                growth->child[up] = row;
            }
            row = up;
        }
    }
}

/* Shorten the group's tree at its top.  Begin at `root`, a root of the answer's multicast tree, and go down.  Remove
 * each switch from the group's tree until a switch has a member or several children.  This switch becomes the root of
 * the group's tree. */
static void cut_above(const struct growth *growth, int32_t root)
{
    while (growth->on[root] && !growth->member[root] && growth->branches[root] == 1) {
        growth->on[root] = 0;
        root = growth->child[root];
    }
}

/* Add the ports at both ends of every edge of the group's tree to the multicast entries of their switches.  Return 0,
 * or another value if one of the ports could not be added. */
static int set_ports(const struct growth *growth)
{
    const struct ibnue_service *service = growth->service;
    int failed = 0;

    for (int32_t row = 0; row < (int32_t)service->switches; row++) {
        int32_t up = service->parent[row];
        if (up < 0 || !growth->on[row] || !growth->on[up])
            continue;
        failed |= set_port(growth, row, service->up_port[row]);
        failed |= set_port(growth, up, service->down_port[row]);
    }
    return failed;
}

/* Build the tree of the group for a list of members.  Return 0, or another value if a port could not be added to a
 * switch's multicast entry. */
static int grow(const struct growth *growth, cl_qlist_t *members)
{
    int failed = 0;

    for (cl_list_item_t *item = cl_qlist_head(members); item != cl_qlist_end(members); item = cl_qlist_next(item))
        failed |= add_member(growth, ((osm_mcast_work_obj_t *)item)->p_port);
    mark_paths(growth);
    for (int32_t row = 0; row < (int32_t)growth->service->switches; row++)
        if (growth->service->parent[row] < 0)
            cut_above(growth, row);
    return failed | set_ports(growth);
}

/* Build the tree of a multicast group (OpenSM's callback mcast_build_stree). */
ib_api_status_t ibnue_multicast(void *context, osm_mgrp_box_t *group)
{
    struct ibnue_engine *engine = context;
    struct growth growth = {.plugin = engine->plugin, .mlid = group->mlid};
    ib_api_status_t status = IB_ERROR;
    cl_qlist_t members;
    cl_qmap_t map;

    osm_purge_mtree(&growth.plugin->osm->sm, group); /* Remove the tree that another engine may have left. */
    if (osm_mcast_make_port_list_and_map(&members, &map, group)) {
        osm_mcast_drop_port_list(&members);
        return IB_INSUFFICIENT_MEMORY;
    }
    growth.service = ibnue_service_hold(engine);
    if (growth.service) {
        size_t switches = growth.service->switches;
        growth.member = calloc(switches, sizeof(*growth.member));
        growth.on = calloc(switches, sizeof(*growth.on));
        growth.branches = calloc(switches, sizeof(*growth.branches));
        growth.child = calloc(switches, sizeof(*growth.child));
        if (growth.member && growth.on && growth.branches && growth.child && !grow(&growth, &members))
            status = IB_SUCCESS;
        free(growth.member);
        free(growth.on);
        free(growth.branches);
        free(growth.child);
    }
    ibnue_service_release(engine);
    osm_mcast_drop_port_list(&members);
    return status;
}
