/* Copy the worker's answer (the tables for a request) and check it, before anything in OpenSM is changed. */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the size of an answer's SL table, in bytes. */
uint64_t ibnue_sl_bytes(const struct ibnue_answer *answer)
{
    uint64_t lids = answer->lids;

    switch (answer->sl_kind) {
    case IBNUE_SL_BY_DESTINATION: return lids;
    case IBNUE_SL_BY_SWITCH: return lids * answer->switches;
    default: return lids * lids;
    }
}

/* Return the size of an answer's SL-to-VL tables, in bytes. */
uint64_t ibnue_sl2vl_bytes(const struct ibnue_answer *answer)
{
    uint64_t ports = answer->sl2vl_ports;
    return ports ? answer->switches * ports * ports * 16 : 16;
}

/* Return whether a part of an answer has a valid place.  The part has `bytes` bytes and begins at offset `at`.  `at`
 * must be a multiple of 8.  The part must come after the answer's head, which is at offset `least`.  The part must end
 * inside the shared memory, which has `size` bytes. */
static int inside(const struct ibnue_answer *answer, uint64_t least, uint64_t size, uint64_t at, uint64_t bytes)
{
    return at % 8 == 0 && at >= least + sizeof(*answer) && at <= size && bytes <= size - at;
}

/* Return the larger of two offsets: `extent`, where the parts considered so far end, and the end of one more part.  The
 * additional part has `bytes` bytes and begins at offset `at`. */
static size_t further(size_t extent, uint64_t at, uint64_t bytes)
{
    return at + bytes > extent ? at + bytes : extent;
}

/* Return the offset at which the last part of an answer ends. */
static size_t extent_of(const struct ibnue_answer *answer)
{
    uint64_t table = (uint64_t)answer->switches * answer->lids;
    size_t extent = further(0, answer->lft_at, table);

    extent = further(extent, answer->hops_at, table);
    extent = further(extent, answer->sl_at, ibnue_sl_bytes(answer));
    extent = further(extent, answer->sl2vl_at, ibnue_sl2vl_bytes(answer));
    extent = further(extent, answer->switch_of_at, answer->lids * sizeof(int32_t));
    extent = further(extent, answer->parent_at, answer->switches * sizeof(int32_t));
    extent = further(extent, answer->up_port_at, answer->switches);
    extent = further(extent, answer->classes_at, sizeof(struct ibnue_classes));
    extent = further(extent, answer->deferred_at, answer->deferred * sizeof(struct ibnue_deferred));
    return further(extent, answer->down_port_at, answer->switches);
}

/* Return whether every entry of a switch's LFT row is a port of the switch or OSM_NO_PATH.  `ports` includes port 0. */
static int ports_exist(const uint8_t *lft, uint32_t lids, uint8_t ports)
{
    unsigned bad = 0;

    for (uint32_t lid = 0; lid < lids; lid++)
        bad |= (unsigned)(lft[lid] != OSM_NO_PATH) & (unsigned)(lft[lid] >= ports);
    return !bad;
}

/* Check that the LFTs of an answer fit into OpenSM's tables and name only existing ports. */
int ibnue_tables_fit(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer, const uint8_t *bytes,
                     char *why)
{
    const uint8_t *lft = bytes + answer->lft_at;

    for (uint32_t row = 0; row < answer->switches; row++, lft += answer->lids) {
        const osm_switch_t *sw = plugin->rows.row[row];
        if (!sw->new_lft || !sw->hops || answer->lids > sw->lft_size || answer->lids > sw->num_hops ||
            answer->lids > sw->max_lid_ho + 1u) {
            snprintf(why, IBNUE_WHY, "the tables go up to LID %u, but OpenSM's tables of %s only up to %u", answer->lids - 1,
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

/* Return whether the rounds of an answer are valid: the writes after round 1 name existing entries and ports, and the
 * wait before a round is at most a minute. */
static int rounds_fit(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const struct ibnue_deferred *entry = (const struct ibnue_deferred *)(bytes + answer->deferred_at);

    for (uint32_t i = 0; i < answer->deferred; i++)
        if (entry[i].row >= answer->switches || entry[i].lid >= answer->lids || entry[i].round < 2 ||
            (entry[i].port != OSM_NO_PATH && entry[i].port > view->device[entry[i].row].ports))
            return 0;
    return answer->round_wait <= 60000;
}

/* Return whether the multicast tree of an answer is valid: each edge is a cable, and there is no cycle. */
static int tree_fits(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const int32_t *parent = (const int32_t *)(bytes + answer->parent_at);
    const uint8_t *up = bytes + answer->up_port_at, *down = bytes + answer->down_port_at;

    for (uint32_t row = 0; row < answer->switches; row++) {
        const struct peer *peer;
        if (parent[row] == -1)
            continue;
        peer = peer_of(view, row, up[row]);
        if (parent[row] < 0 || peer->device >= answer->switches || (uint32_t)parent[row] != peer->device ||
            down[row] != peer->port)
            return 0;
    }
    for (uint32_t row = 0; row < answer->switches; row++) {
        uint32_t steps = 0;
        for (int32_t at = (int32_t)row; at >= 0; at = parent[at])
            if (steps++ > answer->switches)
                return 0;
    }
    return 1;
}

/* Return whether the SLs and VLs that an answer assigns to the QoS classes are all valid. */
static int classes_fit(const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const struct ibnue_classes *classes = (const struct ibnue_classes *)(bytes + answer->classes_at);

    for (size_t i = 0; i < sizeof(classes->sl_for); i++)
        if (classes->sl_for[i] > 15)
            return 0;
    for (size_t vl = 0; vl < sizeof(classes->vl_like); vl++)
        if (classes->vl_like[vl] > 14 && classes->vl_like[vl] != 255)
            return 0;
    return 1;
}

static int all_below(const uint8_t *values, uint64_t count, uint8_t limit)
{
    unsigned bad = 0;

    for (uint64_t i = 0; i < count; i++)
        bad |= values[i] >= limit;
    return !bad;
}

/* Return whether the SL-to-VL tables use only VLs that every port supports.  VL 15 is valid too: it drops the packet.
 */
static int vls_fit(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const uint8_t *vl = bytes + answer->sl2vl_at;
    uint64_t count = ibnue_sl2vl_bytes(answer);
    unsigned bad = answer->vls > view->head->data_vls;

    for (uint64_t i = 0; i < count; i++)
        bad |= (unsigned)(vl[i] >= answer->vls) & (unsigned)(vl[i] != 15);
    return !bad;
}

/* Check the values in an answer.  Return a description of the first invalid value, or NULL if all are valid. */
static const char *wrong_values(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    int delivery;

    if (memcmp(bytes + answer->switch_of_at, view->switch_of, answer->lids * sizeof(int32_t)))
        return "the worker's LIDs are at other switches than OpenSM's";
    if (!all_below(bytes + answer->sl_at, ibnue_sl_bytes(answer), 16))
        return "the worker's tables have an SL over 15";
    if (!vls_fit(view, answer, bytes))
        return "the worker's tables use a VL that ports do not have";
    if (!classes_fit(answer, bytes))
        return "the worker's classes of traffic have SLs or VLs that do not exist";
    if (!tree_fits(view, answer, bytes))
        return "the worker's multicast tree is not one of this subnet";
    if (!rounds_fit(view, answer, bytes))
        return "the worker's rounds do not fit its tables";
    delivery = ibnue_delivery_check(view, answer, bytes);
    if (delivery)
        return delivery < 0 ? "out of memory" : "the worker's paths do not have the lengths that its hop counts state";
    return NULL;
}

/* Return whether the head of an answer matches the request, and all its parts are inside the shared memory. */
static int header_fits(const struct ibnue_plugin *plugin, const struct ibnue_answer *a)
{
    const struct ibnue_request *asked = (const struct ibnue_request *)plugin->asked.bytes;
    uint64_t size = plugin->memory.size, table = (uint64_t)a->switches * a->lids, least = plugin->asked.answer_at;

    return a->magic == IBNUE_ANSWER_MAGIC && a->sequence == plugin->asked.sequence && a->switches == asked->switches &&
           a->lids && a->lids <= LIDS && a->vls >= 1 && a->vls <= 15 && a->sl_kind <= IBNUE_SL_BY_LIDS &&
           a->sl2vl_ports <= 256 && a->certified <= 1 && inside(a, least, size, a->lft_at, table) &&
           inside(a, least, size, a->hops_at, table) && inside(a, least, size, a->sl_at, ibnue_sl_bytes(a)) &&
           inside(a, least, size, a->sl2vl_at, ibnue_sl2vl_bytes(a)) &&
           inside(a, least, size, a->switch_of_at, a->lids * sizeof(int32_t)) &&
           inside(a, least, size, a->parent_at, a->switches * sizeof(int32_t)) &&
           inside(a, least, size, a->classes_at, sizeof(struct ibnue_classes)) &&
           inside(a, least, size, a->deferred_at, a->deferred * sizeof(struct ibnue_deferred)) &&
           inside(a, least, size, a->up_port_at, a->switches) && inside(a, least, size, a->down_port_at, a->switches);
}

/* Make sure that a buffer has at least `size` bytes.  A buffer that is too small, or more than twice as large as
 * needed, is replaced.  Return 0, or -1 if memory allocation fails. */
int ibnue_tables_room(struct ibnue_tables *tables, size_t size)
{
    if (size <= tables->room && size >= tables->room / 2)
        return 0;
    ibnue_tables_drop(tables);
    tables->bytes = malloc(size);
    tables->room = tables->bytes ? size : 0;
    return tables->bytes ? 0 : -1;
}

void ibnue_tables_drop(struct ibnue_tables *tables)
{
    free(tables->bytes);
    *tables = (struct ibnue_tables){.bytes = NULL};
}

/* Subtract `by` from the offset of each part of an answer, because the parts were copied to the private buffer.  There,
 * the offset of each part is smaller by this number than in the shared memory. */
static void move(struct ibnue_answer *answer, uint64_t by)
{
    uint64_t *at[] = {&answer->lft_at, &answer->hops_at, &answer->sl_at, &answer->switch_of_at, &answer->sl2vl_at,
                      &answer->parent_at, &answer->up_port_at, &answer->down_port_at, &answer->deferred_at,
                      &answer->classes_at};

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        *at[i] -= by;
}

/* Copy the request (from the plugin's private copy) and its answer (from the shared memory) into the private buffer
 * `taken`.  All later checks use this buffer, because the worker can change the shared memory at any time.  Return 0,
 * or -1 with the reason in `why`. */
static int copy(struct ibnue_plugin *plugin, char *why)
{
    const struct ibnue_asked *asked = &plugin->asked;
    struct ibnue_tables *taken = &plugin->taken;
    const struct ibnue_request *request = (const struct ibnue_request *)asked->bytes;
    uint64_t at = asked->answer_at, size = plugin->memory.size, place = (request->end + 4095) / 4096 * 4096, extent;
    struct ibnue_answer answer;

    if (at > size || size - at < sizeof(answer)) {
        snprintf(why, IBNUE_WHY, "the worker left no tables");
        return -1;
    }
    memcpy(&answer, plugin->memory.bytes + at, sizeof(answer));
    if (!header_fits(plugin, &answer)) {
        snprintf(why, IBNUE_WHY, "the worker's tables do not belong to this subnet");
        return -1;
    }
    extent = extent_of(&answer);
    if (ibnue_tables_room(taken, place + (extent - at))) {
        snprintf(why, IBNUE_WHY, "out of memory");
        return -1;
    }
    memcpy(taken->bytes, asked->bytes, request->end);
    memcpy(taken->bytes + place, plugin->memory.bytes + at, extent - at);
    move(&answer, at - place);
    taken->answer = answer;
    taken->engine = asked->engine;
    taken->unfinished = 0;
    return 0;
}

/* Copy the worker's answer into the private buffer `taken`, and check it against the request. */
int ibnue_answer_take(struct ibnue_plugin *plugin, char *why)
{
    struct ibnue_tables *taken = &plugin->taken;
    const char *wrong = "out of memory";
    struct view view;

    if (copy(plugin, why))
        return -1;
    if (!ibnue_view_open(&view, taken->bytes))
        wrong = wrong_values(&view, &taken->answer, taken->bytes);
    if (!wrong)
        taken->missing = ibnue_delivery_missing(&view, &taken->answer, taken->bytes);
    ibnue_view_close(&view);
    if (wrong)
        snprintf(why, IBNUE_WHY, "%s", wrong);
    return wrong ? -1 : 0;
}
