/* Check that the structs of the running OpenSM have the layout of the headers with which this library was built.
 *
 * OpenSM itself compares only version strings.  But headers of the same version with another build configuration have
 * members at other offsets.  A pointer that is read from a wrong offset would crash OpenSM.  So members with known
 * values are compared before any other member is used.  All memory is read through a pipe, because write() reports
 * unreadable memory as EFAULT instead of crashing.
 *
 * A check uses only members that OpenSM has set at the time of the check: pointers back to a struct, keys of maps,
 * counts that must be equal, and texts.  Nodes, switches and ports are checked later than the other structs, because
 * OpenSM discovers them after it has loaded the plugin. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <opensm/osm_version.h>

#define CHUNK 1024u /* bytes per write to the pipe; a write of so few bytes is atomic */
#define ENOUGH 16u  /* number of nodes to check of each kind (switches, others); a wrong offset shows in every node */

struct probe {
    int fd[2];          /* file descriptors of the read end and the write end of the pipe */
    const char *differs; /* name of the first member whose offset differs from the headers, NULL: none */
};

static int open_probe(struct probe *probe)
{
    probe->differs = NULL;
    return pipe2(probe->fd, O_CLOEXEC | O_NONBLOCK);
}

static void close_probe(struct probe *probe)
{
    close(probe->fd[0]);
    close(probe->fd[1]);
}

/* Copy memory that may be unreadable from `from` to `to`.  Return whether it could be read. */
static int peek(struct probe *probe, const void *from, void *to, size_t size)
{
    for (size_t at = 0; at < size; at += CHUNK) {
        size_t part = size - at < CHUNK ? size - at : CHUNK;
        ssize_t done = write(probe->fd[1], (const char *)from + at, part);
        if (done > 0 && read(probe->fd[0], (char *)to + at, (size_t)done) != done)
            return 0;
        if (done != (ssize_t)part)
            return 0;
    }
    return 1;
}

static int readable(struct probe *probe, const void *from, size_t size)
{
    char part[CHUNK];

    for (size_t at = 0; at < size; at += CHUNK)
        if (!peek(probe, (const char *)from + at, part, size - at < CHUNK ? size - at : CHUNK))
            return 0;
    return 1;
}

/* Copy the text at `from` to a buffer, truncated to `room` bytes.  Return whether the text is readable and has no
 * control characters except tabs. */
static int peek_text(struct probe *probe, const char *from, char *text, size_t room)
{
    for (size_t at = 0; at + 1 < room; at++) {
        if (!peek(probe, from + at, text + at, 1))
            return 0;
        if (!text[at])
            return 1;
        if ((unsigned char)text[at] < ' ' && text[at] != '\t')
            return 0;
    }
    text[room - 1] = 0;
    return 1;
}

/* If `as_expected` is 0, record the member `what` as the first difference.  Later differences are ignored, because they
 * may be consequences of the first difference. */
static void expect(struct probe *probe, int as_expected, const char *what)
{
    if (!as_expected && !probe->differs)
        probe->differs = what;
}

/* Check that the pointer stored at `place` equals `wanted`; `what` names the member. */
static void expect_pointer(struct probe *probe, const void *place, const void *wanted, const char *what)
{
    const void *found = NULL;

    expect(probe, peek(probe, place, &found, sizeof(found)) && found == wanted, what);
}

/* Check that `map` is an initialized map of OpenSM's library complib (cl_qmap_t); `what` names the member. */
static void expect_map(struct probe *probe, const cl_qmap_t *map, const char *what)
{
    cl_qmap_t copy;

    expect(probe,
           peek(probe, map, &copy, sizeof(copy)) && copy.root.p_up == &map->root && copy.root.p_right == &map->nil &&
               copy.nil.p_left == &map->nil && copy.nil.p_right == &map->nil && copy.state == CL_INITIALIZED,
           what);
}

/* Check that the pointer stored at `place` leads to a text that contains `part`.  If `part` is NULL, any text and also
 * a null pointer are accepted.  `what` names the member. */
static void expect_text(struct probe *probe, char *const *place, const char *part, const char *what)
{
    char *pointer = NULL, text[256] = "";
    int found = peek(probe, place, &pointer, sizeof(pointer)) &&
                (pointer ? peek_text(probe, pointer, text, sizeof(text)) : !part);

    expect(probe, found && (!part || strstr(text, part)), what);
}

/* Check the options of opensm.conf in OpenSM's memory.  Texts must be readable, and numbers must be in the ranges to
 * which OpenSM limits them.  OpenSM limits max_vls only if QoS is on, so max_vls is checked only then.  max_op_vls is
 * not checked, because it can have any value. */
static void check_options(struct probe *probe, const osm_subn_opt_t *opt)
{
    const osm_qos_options_t *qos[] = {&opt->qos_options, &opt->qos_ca_options, &opt->qos_sw0_options,
                                      &opt->qos_swe_options, &opt->qos_rtr_options};
    uint8_t lmc = 0;
    boolean_t flag = 0;

    expect_text(probe, &opt->event_plugin_name, "ibnue", "osm_subn_opt_t.event_plugin_name");
    expect_text(probe, &opt->event_plugin_options, NULL, "osm_subn_opt_t.event_plugin_options");
    expect_text(probe, &opt->log_file, NULL, "osm_subn_opt_t.log_file");
    expect(probe, peek(probe, &opt->lmc, &lmc, 1) && lmc <= 7, "osm_subn_opt_t.lmc");
    expect(probe, peek(probe, &opt->qos, &flag, sizeof(flag)) && (flag == 0 || flag == 1), "osm_subn_opt_t.qos");
    for (size_t i = 0; i < sizeof(qos) / sizeof(*qos); i++) {
        unsigned most = 0;
        expect(probe, peek(probe, &qos[i]->max_vls, &most, sizeof(most)) && (most <= 15 || !flag), "osm_qos_options_t.max_vls");
        expect_text(probe, &qos[i]->sl2vl, NULL, "osm_qos_options_t.sl2vl");
    }
}

/* Check OpenSM's main structs before their first use.  Return 0, or -1 with the name of the differing member in `why`.
 * Set *log to whether OpenSM's log, osm->log, can be used safely. */
int ibnue_abi_check_opensm(const osm_opensm_t *osm, int *log, char *why)
{
    const osm_subn_t *subn = &osm->subn;
    struct probe probe;
    cl_fmap_item_t groups;

    *log = 0;
    if (open_probe(&probe)) {
        snprintf(why, IBNUE_WHY, "no pipe to compare OpenSM's structs: %s", strerror(errno));
        return -1;
    }
    expect_text(&probe, (char *const *)&osm->osm_version, OSM_VERSION, "osm_opensm_t.osm_version");
    expect_pointer(&probe, &osm->sm.p_log, &osm->log, "osm_sm_t.p_log");
    expect_pointer(&probe, &osm->sa.p_log, &osm->log, "osm_sa_t.p_log");
    *log = !probe.differs;
    expect_pointer(&probe, &subn->p_osm, osm, "osm_subn_t.p_osm");
    expect_pointer(&probe, &osm->sm.p_subn, subn, "osm_sm_t.p_subn");
    expect_pointer(&probe, &osm->sm.p_lock, &osm->lock, "osm_sm_t.p_lock");
    expect_pointer(&probe, &osm->sm.ucast_mgr.p_subn, subn, "osm_ucast_mgr_t.p_subn");
    expect_pointer(&probe, &osm->sa.p_subn, subn, "osm_sa_t.p_subn");
    expect_pointer(&probe, &osm->vl15.p_stats, &osm->stats, "osm_vl15_t.p_stats");
    expect_map(&probe, &subn->sw_guid_tbl, "osm_subn_t.sw_guid_tbl");
    expect_map(&probe, &subn->node_guid_tbl, "osm_subn_t.node_guid_tbl");
    expect_map(&probe, &subn->port_guid_tbl, "osm_subn_t.port_guid_tbl");
    expect(&probe, peek(&probe, &subn->mgrp_mgid_tbl.root, &groups, sizeof(groups)) &&
           groups.p_up == &subn->mgrp_mgid_tbl.root, "osm_subn_t.mgrp_mgid_tbl");
    check_options(&probe, &subn->opt);
    close_probe(&probe);
    if (probe.differs)
        snprintf(why, IBNUE_WHY, "%s is at another offset than in the headers", probe.differs);
    return probe.differs ? -1 : 0;
}

/* Check the struct of one port of a node. */
static void probe_port(struct probe *probe, const osm_node_t *node, const osm_physp_t *port, uint8_t number)
{
    osm_physp_t copy, far;

    if (!peek(probe, port, &copy, sizeof(copy))) {
        expect(probe, 0, "osm_node_t.physp_table");
        return;
    }
    if (!copy.port_guid)
        return; /* OpenSM has not discovered this port. */
    expect(probe, copy.p_node == node, "osm_physp_t.p_node");
    expect(probe, copy.port_num == number, "osm_physp_t.port_num");
    expect(probe, copy.healthy == TRUE || copy.healthy == FALSE, "osm_physp_t.healthy");
    expect(probe, copy.dr_path.hop_count < IB_SUBNET_PATH_HOPS_MAX, "osm_physp_t.dr_path");
    if (copy.p_remote_physp)
        expect(probe, peek(probe, copy.p_remote_physp, &far, sizeof(far)) && far.p_node && far.port_guid,
               "osm_physp_t.p_remote_physp");
}

/* Check the osm_switch_t of a node with `ports` ports, including port 0. */
static void check_switch(struct probe *probe, const osm_node_t *node, const osm_switch_t *sw, uint32_t ports)
{
    osm_switch_t copy;

    if (!peek(probe, sw, &copy, sizeof(copy))) {
        expect(probe, 0, "osm_node_t.sw");
        return;
    }
    expect(probe, copy.p_node == node, "osm_switch_t.p_node");
    expect(probe, copy.num_ports == ports, "osm_switch_t.num_ports");
    expect(probe, copy.max_lid_ho < 0xC000, "osm_switch_t.max_lid_ho");
    expect(probe, !copy.mcast_tbl.num_entries || copy.mcast_tbl.num_ports == ports, "osm_switch_t.mcast_tbl");
    expect(probe, !copy.lft || readable(probe, copy.lft, copy.lft_size), "osm_switch_t.lft");
    expect(probe, !copy.new_lft || readable(probe, copy.new_lft, copy.lft_size), "osm_switch_t.new_lft");
    expect(probe, !copy.hops || readable(probe, copy.hops, copy.num_hops * sizeof(*copy.hops)), "osm_switch_t.hops");
}

/* Check the structs of a node, its ports and its switch.  Return whether the node has an osm_switch_t.
 *
 * Parameters: `node` is the node in OpenSM's memory.  `copy` is a readable copy of those members of the node that come
 * before the member physp_table. */
static int check_node(struct probe *probe, const osm_node_t *node, const osm_node_t *copy)
{
    char text[256];
    int is_switch = copy->node_info.node_type == IB_NODE_TYPE_SWITCH;

    expect(probe, copy->map_item.key == copy->node_info.node_guid && copy->node_info.node_guid, "osm_node_t.node_info");
    expect(probe, copy->node_info.node_type >= 1 && copy->node_info.node_type <= 3, "osm_node_t.node_info.node_type");
    expect(probe, copy->physp_tbl_size == copy->node_info.num_ports + 1u, "osm_node_t.physp_tbl_size");
    expect(probe, !copy->print_desc || peek_text(probe, copy->print_desc, text, sizeof(text)), "osm_node_t.print_desc");
    expect(probe, is_switch || !copy->sw, "osm_node_t.sw");
    for (uint32_t p = 0; p < copy->physp_tbl_size && !probe->differs; p++)
        probe_port(probe, node, node->physp_table + p, (uint8_t)p);
    if (!probe->differs && copy->sw)
        check_switch(probe, node, copy->sw, copy->physp_tbl_size);
    return copy->sw != NULL;
}

/* Check the structs of a few nodes, switches and ports before their first use.  The caller holds OpenSM's lock.  Return
 * 0, or -1 with the name of the differing member in `why`.  Set *complete if nothing differs and a switch was among the
 * nodes. */
static int check_nodes(const osm_subn_t *subn, int *complete, char *why)
{
    const cl_map_item_t *end = cl_qmap_end(&subn->node_guid_tbl);
    const cl_list_item_t *item;
    struct probe probe;
    unsigned switches = 0, others = 0;

    *complete = 0;
    if (open_probe(&probe)) {
        snprintf(why, IBNUE_WHY, "no pipe to compare OpenSM's structs: %s", strerror(errno));
        return -1;
    }
    item = subn->node_guid_tbl.nil.pool_item.list_item.p_next;
    for (size_t left = cl_qmap_count(&subn->node_guid_tbl); left && !probe.differs; left--) {
        const osm_node_t *node = (const osm_node_t *)item;
        osm_node_t copy;
        if (item == &end->pool_item.list_item || (switches >= ENOUGH && others >= ENOUGH))
            break;
        if (!peek(&probe, node, &copy, offsetof(osm_node_t, physp_table))) {
            expect(&probe, 0, "osm_node_t");
            break;
        }
        if ((copy.node_info.node_type == IB_NODE_TYPE_SWITCH ? switches : others) < ENOUGH)
            *(check_node(&probe, node, &copy) ? &switches : &others) += 1;
        item = copy.map_item.pool_item.list_item.p_next;
    }
    close_probe(&probe);
    if (probe.differs)
        snprintf(why, IBNUE_WHY, "%s is at another offset than in the headers", probe.differs);
    *complete = switches && !probe.differs;
    return probe.differs ? -1 : 0;
}

/* Check that the structs of nodes, switches and ports may be used.  Return 0, or -1 with the reason in `why`.  Later
 * calls repeat the check until a checked node was a switch.  After that, calls return 0 without a check.  The caller
 * holds OpenSM's lock. */
int ibnue_abi_fits(struct ibnue_plugin *plugin, char *why)
{
    return plugin->layout_known ? 0 : check_nodes(&plugin->osm->subn, &plugin->layout_known, why);
}

/* Check that the struct of a new engine has the layout of the headers with which the plugin was built.  OpenSM passes
 * the struct when it sets up the engine.  At that time, OpenSM has set the name, but no callback.  Return 0 if the name
 * begins with `prefix`, and all callbacks that the plugin sets are zero.  Otherwise, or if the struct cannot be read,
 * return -1. */
int ibnue_abi_check_engine(const struct osm_routing_engine *re, const char *prefix)
{
    struct osm_routing_engine copy;
    struct probe probe;
    char name[64] = "";
    int fits;

    if (open_probe(&probe))
        return -1;
    fits = peek(&probe, re, &copy, sizeof(copy)) && peek_text(&probe, copy.name, name, sizeof(name)) &&
           !strncmp(name, prefix, strlen(prefix)) && !copy.build_lid_matrices && !copy.ucast_build_fwd_tables &&
           !copy.update_sl2vl && !copy.update_vlarb && !copy.path_sl && !copy.mcast_build_stree && !copy.destroy;
    close_probe(&probe);
    return fits ? 0 : -1;
}
