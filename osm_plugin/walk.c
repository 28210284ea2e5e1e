/* List the subnet's nodes in the order of the rows of tables.  OpenSM's objects are prefetched during the walk.
 *
 * OpenSM keeps nodes in a tree, with each node in its own block of memory.  Without prefetching, a walk over all
 * nodes would spend most of its time on cache misses. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 8 /* distance, in nodes, between the node that is prefetched and the node that is read */

static int compare_places(const void *a, const void *b)
{
    const struct ibnue_place *one = a, *other = b;
    return (one->guid > other->guid) - (one->guid < other->guid);
}

/* Prefetch a node without its ports. */
static void fetch(const osm_node_t *node)
{
    for (size_t at = 0; at < offsetof(osm_node_t, physp_table); at += 64)
        __builtin_prefetch((const char *)node + at);
}

/* Allocate the arrays for `count` nodes.  Return 0, or -1 if memory allocation fails. */
static int grow_walk(struct ibnue_plugin *plugin, struct ibnue_walk *walk, size_t count)
{
    struct ibnue_rows *rows = &plugin->rows;
    struct ibnue_seen *seen = &plugin->seen;
    size_t entries = 2;

    while (entries < 2 * count)
        entries *= 2;
    walk->mask = (uint32_t)(entries - 1);
    walk->place = malloc((count + 1) * sizeof(*walk->place));
    walk->entry = calloc(entries, sizeof(*walk->entry));
    if (count > seen->room) {
        const osm_node_t **node = realloc(seen->node, count * sizeof(*node));
        osm_switch_t **row = realloc(rows->row, count * sizeof(*row));
        seen->node = node ? node : seen->node;
        rows->row = row ? row : rows->row;
        seen->room = node && row ? count : 0;
        seen->count = 0;
    }
    return walk->place && walk->entry && count <= seen->room ? 0 : -1;
}

/* List all nodes, switches first, and compute upper bounds for the size of a request.  Switches fill the list from the
 * front, and other nodes fill it from the back. */
static void gather(struct ibnue_walk *walk, struct ibnue_seen *seen, const cl_qmap_t *table)
{
    size_t count = cl_qmap_count(table), at = 0, known = seen->count, ports = 0;
    uint32_t low = 0, high = (uint32_t)count;

    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item), at++) {
        osm_node_t *node = (osm_node_t *)item;
        struct ibnue_place here = {cl_ntoh64(osm_node_get_node_guid(node)), node};
        if (at + AHEAD < known)
            fetch(seen->node[at + AHEAD]);
        seen->node[at] = node;
        ports += osm_node_get_num_physp(node);
        if (osm_node_get_type(node) != IB_NODE_TYPE_SWITCH) {
            walk->place[--high] = here;
            walk->endports += osm_node_get_num_physp(node);
        } else if (node->sw) { /* A switch without SwitchInfo has no tables, so it is not listed. */
            walk->place[low++] = here;
        }
    }
    seen->count = count;
    memmove(walk->place + low, walk->place + high, (count - high) * sizeof(*walk->place));
    walk->switches = low;
    walk->devices = low + (uint32_t)(count - high);
    walk->room = sizeof(struct ibnue_request) + count * sizeof(struct ibnue_device) +
                 ports * (sizeof(struct ibnue_endport) + sizeof(struct ibnue_cable)) + IBNUE_OPTIONS_ROOM + 64;
}

/* Return the slot of the hash table at which the search for a node's address begins. */
static uint32_t slot_of(const struct ibnue_walk *walk, const osm_node_t *node)
{
    return (uint32_t)(((uintptr_t)node >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 40) & walk->mask;
}

/* Fill the hash table that maps addresses of nodes to indexes of devices. */
static void index_places(struct ibnue_walk *walk)
{
    for (uint32_t device = 0; device < walk->devices; device++) {
        uint32_t slot = slot_of(walk, walk->place[device].node);
        while (walk->entry[slot].node)
            slot = (slot + 1) & walk->mask;
        walk->entry[slot] = (struct ibnue_entry){walk->place[device].node, device};
    }
}

/* Return the index of a node in a request, or -1 if the request does not contain the node. */
int ibnue_device_of(const struct ibnue_walk *walk, const osm_node_t *node)
{
    uint32_t slot = slot_of(walk, node);

    while (walk->entry[slot].node && walk->entry[slot].node != node)
        slot = (slot + 1) & walk->mask;
    return walk->entry[slot].node ? (int)walk->entry[slot].device : -1;
}

/* List the nodes: first the switches and then the other nodes, each sorted by GUID.  Store OpenSM's object of each
 * switch in the plugin, by row.  The function is called for each request, because OpenSM may recreate its objects
 * between sweeps. */
int ibnue_walk_open(struct ibnue_plugin *plugin, struct ibnue_walk *walk, char *why)
{
    const osm_subn_t *subn = &plugin->osm->subn;
    size_t switches = cl_qmap_count(&subn->sw_guid_tbl);

    *walk = (struct ibnue_walk){.place = NULL, .opt = &subn->opt};
    if (grow_walk(plugin, walk, cl_qmap_count(&subn->node_guid_tbl))) {
        snprintf(why, IBNUE_WHY, "out of memory");
        ibnue_walk_close(walk);
        return -1;
    }
    gather(walk, &plugin->seen, &subn->node_guid_tbl);
    if (walk->switches != switches) {
        snprintf(why, IBNUE_WHY, "OpenSM has %zu switches in one table and %u in another", switches, walk->switches);
        ibnue_walk_close(walk);
        return -1;
    }
    qsort(walk->place, walk->switches, sizeof(*walk->place), compare_places);
    qsort(walk->place + walk->switches, walk->devices - walk->switches, sizeof(*walk->place), compare_places);
    index_places(walk);
    plugin->rows.switches = walk->switches;
    for (uint32_t row = 0; row < walk->switches; row++)
        plugin->rows.row[row] = walk->place[row].node->sw;
    return 0;
}

void ibnue_walk_close(struct ibnue_walk *walk)
{
    free(walk->place);
    free(walk->entry);
    *walk = (struct ibnue_walk){.place = NULL};
}

/* Prefetch objects that will be read soon: the node three positions ahead, the ports of the node two positions ahead,
 * and the peers of the next node's ports.  OpenSM's object of a port takes 1.6 kB.  Only its members before the member
 * `dr_path` are read, so only these members are prefetched. */
void ibnue_walk_ahead(const struct ibnue_walk *walk, uint32_t device)
{
    if (device + 3 < walk->devices)
        fetch(walk->place[device + 3].node);
    if (device + 2 < walk->devices) {
        const osm_node_t *node = walk->place[device + 2].node;
        __builtin_prefetch(node->print_desc);
        for (uint32_t p = 1; p < node->physp_tbl_size; p++)
            for (size_t at = 0; at < offsetof(osm_physp_t, dr_path); at += 64)
                __builtin_prefetch((const char *)(node->physp_table + p) + at);
    }
    if (device + 1 < walk->devices) {
        const osm_node_t *node = walk->place[device + 1].node;
        for (uint32_t p = 1; p < node->physp_tbl_size; p++)
            if (node->physp_table[p].p_remote_physp)
                __builtin_prefetch(&node->physp_table[p].p_remote_physp->p_remote_physp);
    }
}
