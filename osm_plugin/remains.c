/* Find out which entries of the last proven tables are still valid after the subnet has changed.
 *
 * An entry is still valid if its port leads to the same neighbour as before, and its LID belongs to the same port.
 * Every path over such entries is a path of the earlier tables, or the beginning of such a path.  So the dependencies
 * of these paths are a subset of an acyclic set of dependencies.  Therefore the valid entries need no new proof, and no
 * worker process. */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The old subnet, for which the tables were proven, and the current subnet.  Maps relate their devices, switches and
 * LIDs. */
struct cut {
    struct view old, now; /* the subnet of the last proven tables, and the current subnet, each with its indexes */
    /* [devices of the old subnet], index in the current subnet, GONE: the device no longer exists */
    uint32_t *new_device;
    uint32_t *old_row;  /* [switches of the current subnet], row in the old subnet; GONE: not a switch of the old subnet */
    uint8_t *lid_stays; /* [LIDS], whether the LID belongs to the same port as before */
    uint8_t *torn;      /* [LIDS], whether an entry for the LID was dropped */
    /* [switches of the current subnet], scratch: rows of the switches on the path that is being followed */
    uint32_t *path;
    const struct ibnue_answer *before; /* head of the worker's answer that contains the old tables */
    const uint8_t *bytes;              /* the old request, and the arrays to which `before` has offsets */
};

/* Find the current device with the GUID and kind of each old device, and store its index in `new_device`.  The old
 * devices are those from `from` to `to` - 1.  The current devices are those from `now_from` to `now_to` - 1.  Both
 * ranges are sorted by GUID. */
static void match_devices(struct cut *cut, uint32_t from, uint32_t to, uint32_t now_from, uint32_t now_to)
{
    uint32_t now = now_from;

    for (uint32_t old = from; old < to; old++) {
        const struct ibnue_device *device = cut->old.device + old;
        while (now < now_to && cut->now.device[now].guid < device->guid)
            now++;
        cut->new_device[old] = GONE;
        if (now < now_to && cut->now.device[now].guid == device->guid && cut->now.device[now].kind == device->kind)
            cut->new_device[old] = now;
    }
}

/* Return whether a LID belongs to the same switch or end port as before. */
static int owner_stays(const struct cut *cut, uint32_t lid)
{
    uint32_t was = cut->old.owner[lid], is = cut->now.owner[lid];
    const struct ibnue_endport *old, *now;

    if (was == GONE || is == GONE)
        return 0;
    if (was < cut->old.head->devices)
        return cut->new_device[was] == is;
    if (is < cut->now.head->devices)
        return 0;
    old = cut->old.endport + (was - cut->old.head->devices);
    now = cut->now.endport + (is - cut->now.head->devices);
    return cut->new_device[old->device] == now->device && old->port == now->port && old->lid == now->lid;
}

static void cut_close(struct cut *cut)
{
    ibnue_view_close(&cut->old);
    ibnue_view_close(&cut->now);
    free(cut->new_device);
    free(cut->old_row);
    free(cut->lid_stays);
    free(cut->torn);
    free(cut->path);
}

/* Compute the maps from the subnet of the last tables to the subnet of the request `now`.  Return 0, or -1 if memory
 * allocation fails. cut_close must be called in either case. */
static int cut_open(struct cut *cut, const struct ibnue_tables *last, const uint8_t *now)
{
    const struct ibnue_request *a = (const struct ibnue_request *)last->bytes, *b = (const struct ibnue_request *)now;

    cut->before = &last->answer;
    cut->bytes = last->bytes;
    cut->new_device = malloc((a->devices + 1u) * sizeof(*cut->new_device));
    cut->old_row = malloc((b->switches + 1u) * sizeof(*cut->old_row));
    cut->path = malloc((b->switches + 1u) * sizeof(*cut->path));
    cut->lid_stays = calloc(LIDS, 1);
    cut->torn = calloc(LIDS, 1);
    if (ibnue_view_open(&cut->old, last->bytes) || ibnue_view_open(&cut->now, now) || !cut->new_device || !cut->old_row
        || !cut->path || !cut->lid_stays || !cut->torn)
        return -1;
    match_devices(cut, 0, a->switches, 0, b->switches);
    match_devices(cut, a->switches, a->devices, b->switches, b->devices);
    memset(cut->old_row, 0xff, (b->switches + 1u) * sizeof(*cut->old_row));
    for (uint32_t row = 0; row < a->switches; row++)
        if (cut->new_device[row] != GONE)
            cut->old_row[cut->new_device[row]] = row;
    for (uint32_t lid = 0; lid < LIDS; lid++)
        cut->lid_stays[lid] = (uint8_t)owner_stays(cut, lid);
    return 0;
}

/* Return the port at the other end of the cable of a switch port.  Return NULL if the switch port has no cable, has a
 * cable to the same switch, or had no cable to this other port before. */
static const struct peer *peer_stays(const struct cut *cut, uint32_t old_row, uint32_t row, uint8_t port)
{
    const struct peer *was = peer_of(&cut->old, old_row, port), *is = peer_of(&cut->now, row, port);

    if (was->device == GONE || is->device == GONE || cut->new_device[was->device] != is->device || was->port != is->port
        || is->device == row)
        return NULL;
    return is;
}

/* Return whether a switch's entry for a LID is still valid.  `port` is the out-port of the entry. */
static int entry_stays(const struct cut *cut, uint32_t old_row, uint32_t row, uint32_t lid, uint8_t port)
{
    const struct peer *peer;

    if (!cut->lid_stays[lid])
        return 0;
    if (port == 0)
        return cut->now.owner[lid] == row;
    if (!(peer = peer_stays(cut, old_row, row, port)))
        return 0;
    return peer->device < cut->now.head->switches
           || (cut->now.switch_of[lid] == (int32_t)row && cut->now.port_of[lid] == port);
}

/* Reserve room for a part with `bytes` bytes at the end of the answer.  Return the offset of the part. */
static uint64_t place(struct ibnue_answer *answer, uint64_t bytes)
{
    uint64_t at = answer->end;

    answer->end = (at + bytes + 7) / 8 * 8;
    return at;
}

/* Set the offsets of all parts of an answer whose head is at `start`. */
static void set_layout(struct ibnue_answer *answer, uint32_t switches, uint32_t lids, uint64_t start)
{
    uint64_t table = (uint64_t)switches * lids;

    answer->switches = switches;
    answer->lids = lids;
    answer->end = (start + sizeof(*answer) + 7) / 8 * 8;
    answer->lft_at = place(answer, table);
    answer->hops_at = place(answer, table);
    answer->sl_at = place(answer, ibnue_sl_bytes(answer));
    answer->sl2vl_at = place(answer, ibnue_sl2vl_bytes(answer));
    answer->switch_of_at = place(answer, lids * sizeof(int32_t));
    answer->parent_at = place(answer, switches * sizeof(int32_t));
    answer->up_port_at = place(answer, switches);
    answer->down_port_at = place(answer, switches);
    answer->classes_at = place(answer, sizeof(struct ibnue_classes));
    answer->deferred_at = place(answer, answer->deferred * sizeof(struct ibnue_deferred));
}

/* Copy the entries that are still valid, and the hop counts.  Count the entries that are not valid any more, and mark
 * their LIDs in `torn`.
 *
 * If the last update schedule may not be complete, the entries of its later rounds are copied, too.  ibnue_rounds_begin
 * then removes these entries from the new LFTs, and each entry is written in its round. */
static void fill_tables(struct cut *cut, struct ibnue_remains *remains)
{
    const struct ibnue_answer *a = cut->before, *b = &remains->answer;

    for (uint32_t row = 0; row < b->switches; row++) {
        uint32_t old_row = cut->old_row[row];
        uint8_t *lft = remains->bytes + b->lft_at + (size_t)row * b->lids;
        uint8_t *hops = remains->bytes + b->hops_at + (size_t)row * b->lids;
        const uint8_t *was;
        memset(lft, OSM_NO_PATH, b->lids);
        memset(hops, OSM_NO_PATH, b->lids);
        if (old_row == GONE)
            continue;
        memcpy(hops, cut->bytes + a->hops_at + (size_t)old_row * a->lids, b->lids);
        was = cut->bytes + a->lft_at + (size_t)old_row * a->lids;
        for (uint32_t lid = 0; lid < b->lids; lid++) {
            if (was[lid] == OSM_NO_PATH)
                continue;
            if (entry_stays(cut, old_row, row, lid, was[lid])) {
                lft[lid] = was[lid];
                continue;
            }
            cut->torn[lid] = 1;
            remains->dropped++;
        }
    }
}

enum { UNKNOWN, LOST, REACHED };

/* Follow the path from a switch to a LID, until the path ends or meets a switch whose result is already in `state`.
 * The result is REACHED if the path reaches the LID, otherwise LOST.  Store the result in `state` for all switches on
 * the path.  If the result is LOST, clear the hop counts of these switches. */
static void walk_from(struct cut *cut, const struct ibnue_remains *remains, uint32_t row, uint32_t lid, uint8_t *state)
{
    const struct ibnue_answer *b = &remains->answer;
    const uint8_t *lft = remains->bytes + b->lft_at + lid;
    uint32_t length = 0, found = UNKNOWN;

    while (!found && !(found = state[row])) {
        uint8_t port = lft[(size_t)row * b->lids];
        const struct peer *peer = peer_of(&cut->now, row, port);
        /* Switches on the path count as LOST until the result is known.  If the path returns to such a switch, it is a
         * forwarding loop, and the result is LOST. */
        state[row] = LOST;
        cut->path[length++] = row;
        if (port == OSM_NO_PATH)
            found = LOST;
        else if (port == 0 || peer->device >= b->switches)
            found = REACHED;
        else
            row = peer->device;
    }
    while (length--) {
        state[cut->path[length]] = (uint8_t)found;
        if (found == LOST)
            remains->bytes[b->hops_at + (size_t)cut->path[length] * b->lids + lid] = OSM_NO_PATH;
    }
}

/* Clear the hop counts of all paths with an entry that became invalid.  Other paths keep their hop counts, so only the
 * paths to LIDs with an invalid entry are followed.  New switches have neither entries nor hop counts.  Return 0, or -1
 * if memory allocation fails. */
static int fill_hops_of_rows(struct cut *cut, const struct ibnue_remains *remains)
{
    uint8_t *state = malloc(remains->answer.switches + 1u);

    if (!state)
        return -1;
    for (uint32_t lid = 0; lid < remains->answer.lids; lid++) {
        if (!cut->torn[lid])
            continue;
        memset(state, UNKNOWN, remains->answer.switches);
        for (uint32_t row = 0; row < remains->answer.switches; row++)
            walk_from(cut, remains, row, lid, state);
    }
    free(state);
    return 0;
}

/* Copy the SLs.  If SLs depend on the source switch, new switches get SL 0. */
static void fill_sls(const struct cut *cut, const struct ibnue_remains *remains)
{
    const struct ibnue_answer *a = cut->before, *b = &remains->answer;
    const uint8_t *from = cut->bytes + a->sl_at;
    uint8_t *to = remains->bytes + b->sl_at;

    if (b->sl_kind == IBNUE_SL_BY_DESTINATION)
        memcpy(to, from, b->lids);
    else if (b->sl_kind == IBNUE_SL_BY_LIDS)
        for (uint32_t lid = 0; lid < b->lids; lid++)
            memcpy(to + (size_t)lid * b->lids, from + (size_t)lid * a->lids, b->lids);
    else
        for (uint32_t row = 0; row < b->switches; row++)
            if (cut->old_row[row] != GONE)
                memcpy(to + (size_t)row * b->lids, from + (size_t)cut->old_row[row] * a->lids, b->lids);
}

/* Copy the SL-to-VL tables, and the SLs and VLs of the QoS classes, from the last answer to the answer in `remains`. */
static void fill_sl2vl(const struct cut *cut, const struct ibnue_remains *remains)
{
    const struct ibnue_answer *a = cut->before, *b = &remains->answer;
    size_t size = (size_t)b->sl2vl_ports * b->sl2vl_ports * 16;

    memcpy(remains->bytes + b->classes_at, cut->bytes + a->classes_at, sizeof(struct ibnue_classes));
    if (!size)
        memcpy(remains->bytes + b->sl2vl_at, cut->bytes + a->sl2vl_at, 16);
    for (uint32_t row = 0; size && row < b->switches; row++)
        if (cut->old_row[row] != GONE)
            memcpy(remains->bytes + b->sl2vl_at + row * size, cut->bytes + a->sl2vl_at + cut->old_row[row] * size,
                   size);
}

/* Copy the edges of the multicast tree that still exist.  A switch that has lost its edge becomes the root of a
 * separate tree. */
static void fill_tree(const struct cut *cut, struct ibnue_remains *remains)
{
    const struct ibnue_answer *a = cut->before, *b = &remains->answer;
    const int32_t *was = (const int32_t *)(cut->bytes + a->parent_at);
    int32_t *parent = (int32_t *)(remains->bytes + b->parent_at);
    uint8_t *up = remains->bytes + b->up_port_at, *down = remains->bytes + b->down_port_at;

    for (uint32_t row = 0; row < b->switches; row++) {
        uint32_t old_row = cut->old_row[row];
        const struct peer *peer;
        parent[row] = -1;
        up[row] = down[row] = OSM_NO_PATH;
        if (old_row != GONE && was[old_row] < 0)
            continue;
        peer = old_row == GONE ? NULL : peer_stays(cut, old_row, row, cut->bytes[a->up_port_at + old_row]);
        if (!peer || peer->device != cut->new_device[was[old_row]]
            || peer->port != cut->bytes[a->down_port_at + old_row]) {
            remains->cut_off++;
            continue;
        }
        parent[row] = (int32_t)peer->device;
        up[row] = cut->bytes[a->up_port_at + old_row];
        down[row] = peer->port;
    }
}

/* Copy the deferred entries of rounds that may not be complete, except entries that are not valid any more.  A copied
 * entry has no out-port until its round. */
static void fill_rounds(const struct cut *cut, struct ibnue_remains *remains)
{
    const struct ibnue_answer *a = cut->before;
    struct ibnue_answer *b = &remains->answer;
    const struct ibnue_deferred *was = (const struct ibnue_deferred *)(cut->bytes + a->deferred_at);
    struct ibnue_deferred *deferred = (struct ibnue_deferred *)(remains->bytes + b->deferred_at);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->deferred; i++) {
        uint32_t row = cut->new_device[was[i].row];
        if (row == GONE || was[i].lid >= b->lids
            || remains->bytes[b->lft_at + (size_t)row * b->lids + was[i].lid] == OSM_NO_PATH)
            continue;
        deferred[kept] = was[i];
        deferred[kept].port = OSM_NO_PATH;
        deferred[kept++].row = row;
    }
    b->deferred = kept;
}

/* Fill in the switch that delivers each LID.  Count the end ports that are new, or at another switch port than before.
 * The proof does not cover traffic from these end ports. */
static void fill_places(const struct cut *cut, struct ibnue_remains *remains)
{
    const struct ibnue_answer *b = &remains->answer;

    memcpy(remains->bytes + b->switch_of_at, cut->now.switch_of, b->lids * sizeof(int32_t));
    for (uint32_t i = 0; i < cut->now.head->endports; i++) {
        uint16_t lid = cut->now.endport[i].lid;
        int32_t row = lid && lid < LIDS ? cut->now.switch_of[lid] : -1;
        remains->moved +=
            row >= 0
            && (cut->old_row[row] == GONE || !peer_stays(cut, cut->old_row[row], (uint32_t)row, cut->now.port_of[lid]));
    }
}

/* Count the ordered pairs of end ports (by their base LIDs), and the pairs that have a path. */
static void count_pairs(const struct cut *cut, struct ibnue_remains *remains)
{
    const struct ibnue_answer *b = &remains->answer;
    const int32_t *switch_of = (const int32_t *)(remains->bytes + b->switch_of_at);
    uint64_t ends = 0;

    for (uint32_t row = 0; row < b->switches; row++) {
        const uint8_t *hops = remains->bytes + b->hops_at + (size_t)row * b->lids;
        uint64_t here = 0, reached = 0, own = 0;
        for (uint32_t i = 0; i < cut->now.head->endports; i++) {
            uint16_t lid = cut->now.endport[i].lid;
            int at_hand = lid && lid < b->lids && hops[lid] != OSM_NO_PATH;
            int is_here = lid && lid < b->lids && switch_of[lid] == (int32_t)row;
            reached += at_hand;
            here += is_here;
            own += at_hand && is_here;
        }
        remains->served += here * reached - own;
    }
    for (uint32_t i = 0; i < cut->now.head->endports; i++)
        ends += cut->now.endport[i].lid != 0;
    remains->pairs = ends ? ends * (ends - 1) : 0;
}

void ibnue_remains_drop(struct ibnue_remains *remains)
{
    free(remains->bytes);
    *remains = (struct ibnue_remains){.bytes = NULL};
}

/* Fill in all parts of the answer for the current subnet.  Return 0, or -1 if memory allocation fails. */
static int make(struct cut *cut, const struct ibnue_plugin *plugin, const uint8_t *now, struct ibnue_remains *remains)
{
    const struct ibnue_request *head = (const struct ibnue_request *)now;
    uint32_t lids = cut->before->lids, most = plugin->osm->subn.max_ucast_lid_ho + 1u;

    remains->answer = *cut->before;
    remains->answer.deferred = plugin->last.unfinished ? cut->before->deferred : 0;
    set_layout(&remains->answer, head->switches, lids < most ? lids : most, (head->end + 4095) / 4096 * 4096);
    remains->bytes = calloc(1, remains->answer.end);
    if (!remains->bytes)
        return -1;
    fill_tables(cut, remains);
    if (fill_hops_of_rows(cut, remains))
        return -1;
    fill_sls(cut, remains);
    fill_sl2vl(cut, remains);
    fill_tree(cut, remains);
    fill_rounds(cut, remains);
    fill_places(cut, remains);
    count_pairs(cut, remains);
    return 0;
}

/* Reduce the last proven tables to the entries that are still valid on the subnet of the request `now`.  The result is
 * the answer in `remains`. */
int ibnue_remains_make(struct ibnue_plugin *plugin, const uint8_t *now, char *why)
{
    const struct ibnue_request *head = (const struct ibnue_request *)now;
    const struct ibnue_tables *last = &plugin->last;
    struct ibnue_remains *remains = &plugin->remains;
    struct cut cut = {.before = NULL};
    int failed;

    ibnue_remains_drop(remains);
    if (last->answer.vls > head->data_vls) {
        snprintf(why, IBNUE_WHY, "the last tables use %u VLs, but OpenSM sets up only %u", last->answer.vls,
                 head->data_vls);
        return -1;
    }
    failed = cut_open(&cut, last, now) || make(&cut, plugin, now, remains);
    cut_close(&cut);
    if (failed) {
        ibnue_remains_drop(remains);
        snprintf(why, IBNUE_WHY, "out of memory");
        return -1;
    }
    return 0;
}
