/* Find out which LFTs the switches have, and read the unknown parts from the switches.
 *
 * OpenSM keeps a copy of each switch's LFT (`lft`), which every acknowledged block updates.  OpenSM's copy can differ
 * from the LFT in the switch in four cases: OpenSM has just started, another SM was the master, the switch came back or
 * lost power, or a block was not acknowledged.  Blocks that may differ are read from the switches before tables are
 * computed. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK IB_SMP_DATA_SIZE /* number of entries of an LFT block, and its size in bytes */
/* Maximum number of read requests that are sent to a switch at once.  A switch that leaves one request unanswered gets
 * no more requests. */
#define BATCH 8
/* Time limit in milliseconds for reading blocks.  Blocks that are not read by then remain unknown. */
#define READ_MS 5000

/* Number of LIDs above the highest LID in use whose entries are read as well.  Switches may still forward packets to
 * these LIDs. */
#define BEYOND 8192

/* OpenSM exports this function, but no installed header declares it. */
extern int wait_for_pending_transactions(osm_stats_t *stats) __attribute__((weak));

/* Fill a block with a pattern that no switch returns, in which two port numbers alternate.  No switch has ports
 * with these numbers.  If OpenSM's copy of a block still has the pattern later, the switch has not answered. */
static void fill_mark(uint8_t *mark)
{
    for (unsigned i = 0; i < BLOCK; i++)
        mark[i] = (uint8_t)(0xFE - (i & 1));
}

static int all_of(const uint8_t *block, uint8_t value)
{
    for (unsigned i = 0; i < BLOCK; i++)
        if (block[i] != value)
            return 0;
    return 1;
}

/* Return the number of blocks in OpenSM's copy of a switch's LFT. */
static uint32_t blocks_of(const osm_switch_t *sw)
{
    uint32_t blocks = sw->lft ? sw->lft_size / BLOCK : 0;
    return blocks < IBNUE_BLOCKS ? blocks : IBNUE_BLOCKS;
}

/* Return the record of the switch with a GUID, NULL if there is no record. */
static struct ibnue_copy *copy_of(const struct ibnue_copies *copies, uint64_t guid)
{
    uint32_t low = 0, high = copies->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (copies->of[middle].guid < guid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < copies->count && copies->of[low].guid == guid ? copies->of + low : NULL;
}

/* Return whether OpenSM's copy of a block is known to equal the block in the switch.  Before OpenSM writes a block to a
 * switch, OpenSM sets its copy to zeros.  When the switch acknowledges the write, OpenSM fills the copy again.  So a
 * copy of zeros means that the switch has not acknowledged the write. */
static int is_known(const struct ibnue_copy *copy, const osm_switch_t *sw, uint32_t block)
{
    return copy && block < blocks_of(sw) && copy->known[block] && !all_of(sw->lft + block * BLOCK, 0);
}

static int compare_copies(const void *a, const void *b)
{
    const struct ibnue_copy *one = a, *other = b;
    return (one->guid > other->guid) - (one->guid < other->guid);
}

/* Make the list of records (struct ibnue_copy) match the switches that OpenSM has now.  Switches that had a record keep
 * their known blocks.  If memory is short, all records are dropped. */
static void follow_switches(struct ibnue_plugin *plugin)
{
    const cl_qmap_t *table = &plugin->osm->subn.sw_guid_tbl;
    struct ibnue_copies *copies = &plugin->copies, fresh = {.served = copies->served};

    fresh.of = calloc(cl_qmap_count(table) + 1, sizeof(*fresh.of));
    for (cl_map_item_t *item = cl_qmap_head(table); fresh.of && item != cl_qmap_end(table); item = cl_qmap_next(item)) {
        struct ibnue_copy *copy = fresh.of + fresh.count++, *old;
        copy->guid = cl_ntoh64(osm_node_get_node_guid(((osm_switch_t *)item)->p_node));
        old = copy_of(copies, copy->guid);
        if (old)
            *copy = *old;
    }
    qsort(fresh.of, fresh.of ? fresh.count : 0, sizeof(*fresh.of), compare_copies);
    free(copies->of);
    *copies = fresh;
}

/* Return whether all external ports of a switch are in the state DOWN or INIT.  Such a switch forwards no data packet.
 * The switch may have lost its LFT: after a loss of power, its ports stay in these states until an SM changes them. */
static int is_idle(const osm_switch_t *sw)
{
    for (uint32_t p = 1; p < osm_node_get_num_physp(sw->p_node); p++) {
        const osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, p);
        if (port && osm_physp_is_valid(port) && osm_physp_get_port_state(port) > IB_LINK_INIT)
            return 0;
    }
    return 1;
}

/* Return whether OpenSM has just created its object of a switch.  OpenSM then knows nothing about the LFT of the switch,
 * and writes every block. */
static int is_new(const osm_switch_t *sw)
{
    return sw->need_update == 2;
}

/* Return whether all switches are new and idle, as after power is switched on. */
static int is_cold_start(const struct ibnue_plugin *plugin)
{
    for (uint32_t row = 0; row < plugin->rows.switches; row++)
        if (!is_new(plugin->rows.row[row]) || !is_idle(plugin->rows.row[row]))
            return 0;
    return 1;
}

/* Mark all blocks of a switch as known and without entries, whatever the switch contains.  At a cold start, no packet
 * can follow the entries of a switch before OpenSM has written all blocks. */
static void treat_as_empty(struct ibnue_plugin *plugin, osm_switch_t *sw)
{
    struct ibnue_copy *copy = copy_of(&plugin->copies, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));

    if (!copy || !sw->lft)
        return;
    memset(sw->lft, OSM_NO_PATH, sw->lft_size);
    memset(copy->known, 1, sizeof(copy->known));
    copy->assumed = 1;
}

/* Undo treat_as_empty: mark all blocks as unknown.  If OpenSM has not written the LFT, the switch may still forward
 * packets by its old entries. */
static void end_assumption(struct ibnue_copy *copy)
{
    if (copy->assumed)
        memset(copy->known, 0, sizeof(copy->known));
    copy->assumed = 0;
}

/* Mark those blocks as unknown that may have changed since the last sweep.  OpenSM's sweeper calls this function after
 * each discovery, without OpenSM's lock. */
void ibnue_copies_discovered(struct ibnue_plugin *plugin)
{
    const osm_subn_t *subn = &plugin->osm->subn;
    struct ibnue_copies *copies = &plugin->copies;

    CL_PLOCK_EXCL_ACQUIRE(&plugin->osm->lock);
    if (subn->sm_state != IB_SMINFO_STATE_MASTER || subn->coming_out_of_standby || subn->first_time_master_sweep) {
        copies->count = 0;
        copies->served = NULL;
    }
    follow_switches(plugin);
    for (uint32_t i = 0; i < copies->count; i++) {
        const osm_switch_t *sw = osm_get_switch_by_guid(subn, cl_hton64(copies->of[i].guid));
        end_assumption(copies->of + i);
        if (!sw || is_new(sw) || is_idle(sw))
            memset(copies->of[i].known, 0, sizeof(copies->of[i].known));
    }
    CL_PLOCK_RELEASE(&plugin->osm->lock);
}

/* Mark those blocks as known that the switches have acknowledged.  This function is called after OpenSM has written the
 * LFTs of any engine, without OpenSM's lock. */
void ibnue_copies_written(struct ibnue_plugin *plugin)
{
    struct ibnue_copies *copies = &plugin->copies;

    CL_PLOCK_EXCL_ACQUIRE(&plugin->osm->lock);
    copies->served = plugin->osm->routing_engine_used;
    follow_switches(plugin);
    for (uint32_t i = 0; i < copies->count; i++) {
        struct ibnue_copy *copy = copies->of + i;
        const osm_switch_t *sw = osm_get_switch_by_guid(&plugin->osm->subn, cl_hton64(copy->guid));
        end_assumption(copy);
        for (uint32_t b = 0; sw && sw->new_lft && b < blocks_of(sw); b++) {
            const uint8_t *installed = sw->lft + b * BLOCK;
            /* A block without entries is not marked as known.  OpenSM may never have written such a block, so the
             * switch may still have old entries there. */
            if (!all_of(installed, 0) && !all_of(installed, OSM_NO_PATH)
                && !memcmp(installed, sw->new_lft + b * BLOCK, BLOCK))
                copy->known[b] = 1;
        }
    }
    CL_PLOCK_RELEASE(&plugin->osm->lock);
}

void ibnue_copies_drop(struct ibnue_plugin *plugin)
{
    free(plugin->copies.of);
    plugin->copies = (struct ibnue_copies){.of = NULL};
}

/* Let OpenSM's SA answer path queries from the tables in force while the lock is released.  The SA answers from
 * `new_lft` of each switch and from routing_engine_used.  OpenSM clears both before it calls an engine.  If `serve` is
 * 1, set both to the tables in force and to their engine.  If `serve` is 0, clear both again. */
static void serve_meanwhile(struct ibnue_plugin *plugin, int serve)
{
    for (uint32_t row = 0; row < plugin->rows.switches; row++) {
        osm_switch_t *sw = plugin->rows.row[row];
        if (sw->new_lft && sw->lft && serve)
            memcpy(sw->new_lft, sw->lft, sw->lft_size);
        else if (sw->new_lft)
            memset(sw->new_lft, OSM_NO_PATH, sw->lft_size);
    }
    plugin->osm->routing_engine_used = serve ? plugin->copies.served : NULL;
}

/* Request a block of a switch's LFT.  Return 0, or another value if the request could not be sent. */
static int ask_for_block(struct ibnue_plugin *plugin, osm_switch_t *sw, uint32_t block)
{
    osm_physp_t *zero = osm_node_get_physp_ptr(sw->p_node, 0);
    osm_madw_context_t context = {.lft_context = {.node_guid = osm_node_get_node_guid(sw->p_node)}};

    return !zero
           || osm_req_get(&plugin->osm->sm, osm_physp_get_dr_path_ptr(zero), IB_MAD_ATTR_LIN_FWD_TBL, cl_hton32(block),
                          FALSE, ib_port_info_get_m_key(&zero->port_info), 0, CL_DISP_MSGID_NONE, &context)
                  != IB_SUCCESS;
}

/* Return the highest LID whose entry is read from a switch.  This LID can be above the highest LID in use, because the
 * switch may still have entries for LIDs that were in use before. */
static uint32_t last_lid(const osm_switch_t *sw)
{
    uint32_t top = cl_ntoh16(sw->switch_info.lin_top), most = sw->max_lid_ho + BEYOND;

    top = top < most ? top : most;
    top = top < IBNUE_BLOCKS * BLOCK - 1 ? top : IBNUE_BLOCKS * BLOCK - 1;
    return top > sw->max_lid_ho ? top : sw->max_lid_ho;
}

/* Enlarge OpenSM's tables of a switch to all LIDs whose entries are read, as OpenSM itself does for new LIDs. */
static void grow_tables(osm_switch_t *sw)
{
    uint16_t size = (uint16_t)((last_lid(sw) / BLOCK + 1) * BLOCK);
    uint8_t *lft, *new_lft;

    if (!sw->lft || !sw->new_lft || size <= sw->lft_size)
        return;
    if (!(new_lft = realloc(sw->new_lft, size)))
        return;
    sw->new_lft = new_lft;
    if (!(lft = realloc(sw->lft, size)))
        return;
    sw->lft = lft;
    memset(sw->lft + sw->lft_size, OSM_NO_PATH, size - sw->lft_size);
    memset(sw->new_lft + sw->lft_size, OSM_NO_PATH, size - sw->lft_size);
    sw->lft_size = size;
}

/* Request up to `most` unknown blocks of a switch.  Return the number of requested blocks. */
static unsigned ask_batch(struct ibnue_plugin *plugin, uint32_t row, unsigned most)
{
    osm_switch_t *sw = plugin->rows.row[row];
    struct ibnue_copy *copy = copy_of(&plugin->copies, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));
    uint32_t last = last_lid(sw) / BLOCK;
    unsigned asked = 0;

    if (!copy || copy->silent)
        return 0;
    for (uint32_t b = 0; b < blocks_of(sw) && b <= last && asked < most; b++) {
        if (is_known(copy, sw, b))
            continue;
        fill_mark(sw->lft + b * BLOCK);
        copy->known[b] = 0;
        copy->asked[b] = 1;
        asked++;
        if (ask_for_block(plugin, sw, b))
            copy->silent = 1;
    }
    return asked;
}

/* Examine the answers to the last requests to a switch.  Mark answered blocks as known.  If a request is unanswered,
 * mark the switch as silent. */
static void take_batch(struct ibnue_plugin *plugin, uint32_t row)
{
    osm_switch_t *sw = plugin->rows.row[row];
    struct ibnue_copy *copy = copy_of(&plugin->copies, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));
    uint8_t mark[BLOCK];

    fill_mark(mark);
    for (uint32_t b = 0; copy && b < blocks_of(sw); b++) {
        if (!copy->asked[b])
            continue;
        copy->asked[b] = 0;
        if (memcmp(sw->lft + b * BLOCK, mark, BLOCK)) {
            copy->known[b] = 1;
            /* OpenSM treats a block of zeros as not acknowledged.  So the value "no path" is stored instead of zeros.
             */
            if (all_of(sw->lft + b * BLOCK, 0))
                memset(sw->lft + b * BLOCK, OSM_NO_PATH, BLOCK);
        } else {
            memset(sw->lft + b * BLOCK, 0, BLOCK);
            copy->silent = 1;
        }
    }
}

/* Return whether all blocks of all switches are known. */
static int is_complete(const struct ibnue_plugin *plugin)
{
    for (uint32_t row = 0; row < plugin->rows.switches; row++) {
        const osm_switch_t *sw = plugin->rows.row[row];
        const struct ibnue_copy *copy = copy_of(&plugin->copies, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));
        for (uint32_t b = 0; b <= last_lid(sw) / BLOCK; b++)
            if (!is_known(copy, sw, b))
                return 0;
    }
    return 1;
}

/* Read the unknown blocks of all switches, except at a cold start.  An engine calls this function when it begins to
 * route, in OpenSM's sweeper, with the exclusive lock held and the plugin's `rows` set.
 *
 * The lock is released while the switches answer, because the thread that processes the answers needs this lock.
 * OpenSM itself also releases the lock between the steps of a sweep.  `rows` stay valid, because only the sweeper
 * creates and removes switches. */
void ibnue_copies_read(struct ibnue_plugin *plugin)
{
    struct timespec start;
    unsigned most = 1; /* At first, one block per switch is requested, to find out which switches answer. */
    int cold = is_cold_start(plugin);

    for (uint32_t row = 0; row < plugin->rows.switches; row++) {
        grow_tables(plugin->rows.row[row]);
        if (cold)
            treat_as_empty(plugin, plugin->rows.row[row]);
    }
    if (!wait_for_pending_transactions || is_complete(plugin))
        return;
    for (uint32_t i = 0; i < plugin->copies.count; i++)
        plugin->copies.of[i].silent = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    serve_meanwhile(plugin, 1);
    while (!osm_exit_flag && ibnue_ms_since(&start) < READ_MS) {
        unsigned asked = 0;
        for (uint32_t row = 0; row < plugin->rows.switches; row++)
            asked += ask_batch(plugin, row, most);
        if (!asked)
            break;
        CL_PLOCK_RELEASE(&plugin->osm->lock);
        wait_for_pending_transactions(&plugin->osm->stats);
        CL_PLOCK_EXCL_ACQUIRE(&plugin->osm->lock);
        for (uint32_t row = 0; row < plugin->rows.switches; row++)
            take_batch(plugin, row);
        most = BATCH;
    }
    serve_meanwhile(plugin, 0);
}

/* Return the number of LFT columns in a request.  There is a column for each LID up to the highest LID that is read
 * from any switch. */
static uint32_t lids_of(const struct ibnue_plugin *plugin)
{
    uint32_t lids = 0;

    for (uint32_t row = 0; row < plugin->rows.switches; row++)
        if (last_lid(plugin->rows.row[row]) + 1 > lids)
            lids = last_lid(plugin->rows.row[row]) + 1;
    return lids;
}

/* Return the kind of engine that computed the tables which the switches acknowledged last, as enum ibnue_served. */
uint32_t ibnue_copies_origin(const struct ibnue_plugin *plugin)
{
    const struct osm_routing_engine *served = plugin->copies.served;

    if (!served)
        return IBNUE_SERVED_NOT_SAID;
    for (const struct ibnue_engine *engine = plugin->engines; engine; engine = engine->next)
        if (served->context == engine)
            return IBNUE_SERVED_OURS;
    return IBNUE_SERVED_OTHER;
}

/* Return an upper bound of the number of bytes that ibnue_copies_write appends. */
size_t ibnue_copies_room(const struct ibnue_plugin *plugin)
{
    return plugin->rows.switches * (size_t)(lids_of(plugin) + IBNUE_BLOCKS + sizeof(uint16_t)) + 64;
}

/* Append to a request the LFTs in the switches, and which of their blocks are known.  The request must have enough
 * room. */
void ibnue_copies_write(const struct ibnue_plugin *plugin, uint8_t *bytes)
{
    struct ibnue_request *request = (struct ibnue_request *)bytes;
    uint32_t switches = plugin->rows.switches, lids = lids_of(plugin), blocks = (lids + BLOCK - 1) / BLOCK;
    uint16_t *top = (uint16_t *)(bytes + (request->end + 7) / 8 * 8);
    uint8_t *known = (uint8_t *)(top + switches), *lft = known + (size_t)switches * blocks;

    request->lids = lids;
    request->served = ibnue_copies_origin(plugin);
    request->top_at = (uint64_t)((uint8_t *)top - bytes);
    request->known_at = (uint64_t)(known - bytes);
    request->lft_at = (uint64_t)(lft - bytes);
    request->end = request->lft_at + (uint64_t)switches * lids;
    for (uint32_t row = 0; row < switches; row++, known += blocks, lft += lids) {
        const osm_switch_t *sw = plugin->rows.row[row];
        const struct ibnue_copy *copy = copy_of(&plugin->copies, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));
        uint32_t have = blocks_of(sw) * BLOCK < lids ? blocks_of(sw) * BLOCK : lids;
        top[row] = cl_ntoh16(sw->switch_info.lin_top);
        for (uint32_t b = 0; b < blocks; b++)
            known[b] = (uint8_t)is_known(copy, sw, b);
        memset(lft, OSM_NO_PATH, lids);
        if (have)
            memcpy(lft, sw->lft, have);
    }
}
