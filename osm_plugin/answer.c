/* What the worker answers, held against what was asked before anything of OpenSM's is touched. */
#include "shim.h"

#include <stdio.h>
#include <string.h>

uint64_t ibnue_sl_bytes(const struct ibnue_answer *answer)
{
    uint64_t lids = answer->lids;

    switch (answer->sl_kind) {
    case IBNUE_SL_BY_DESTINATION: return lids;
    case IBNUE_SL_BY_SWITCH: return lids * answer->switches;
    default: return lids * lids;
    }
}

uint64_t ibnue_sl2vl_bytes(const struct ibnue_answer *answer)
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
    extent = further(extent, answer->sl_at, ibnue_sl_bytes(answer));
    extent = further(extent, answer->sl2vl_at, ibnue_sl2vl_bytes(answer));
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

static int rounds_fit(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const struct ibnue_held *entry = (const struct ibnue_held *)(bytes + answer->held_at);

    for (uint32_t i = 0; i < answer->held; i++)
        if (entry[i].row >= answer->switches || entry[i].lid >= answer->lids || entry[i].round < 2 ||
            (entry[i].port != OSM_NO_PATH && entry[i].port >= plugin->rows.row[entry[i].row]->num_ports))
            return 0;
    return 1;
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
        !inside(a, size, a->sl_at, ibnue_sl_bytes(a)) || !inside(a, size, a->sl2vl_at, ibnue_sl2vl_bytes(a)) ||
        !inside(a, size, a->switch_of_at, a->lids * sizeof(int32_t)) ||
        !inside(a, size, a->parent_at, a->switches * sizeof(int32_t)) ||
        !inside(a, size, a->held_at, a->held * sizeof(struct ibnue_held)) ||
        !inside(a, size, a->up_port_at, a->switches) || !inside(a, size, a->down_port_at, a->switches)) {
        snprintf(why, IBNUE_WHY, "the worker's tables do not belong to this subnet");
        return -1;
    }
    if (!rounds_fit(plugin, a, plugin->memory.bytes)) {
        snprintf(why, IBNUE_WHY, "the worker's rounds do not fit its tables");
        return -1;
    }
    return ibnue_tables_fit(plugin, a, plugin->memory.bytes, why);
}
