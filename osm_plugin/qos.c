/* Find out which SLs the administrator's QoS policy assigns.  Add entries to the VL arbitration tables for all VLs
 * that the engine's tables use. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <opensm/osm_qos_policy.h>
#include <opensm/osm_sm.h>

/* Number of the first block of a port's high-priority VL arbitration table.  Blocks 0 and 1 are the low-priority table,
 * and blocks 2 and 3 the high-priority table. */
#define HIGH_BLOCK 2
#define USUAL_WEIGHT 4 /* weight of most VLs in OpenSM's default low-priority table */
#define UNUSED_VL 255  /* value in `like` (see find_used) for a VL that carries no data */

/* This symbol is weak.  If OpenSM does not export the function, the policy of the previous sweep is used. */
extern int osm_qos_parse_policy_file(osm_subn_t *subn) __attribute__((weak));

static uint32_t sls_of_policy(const osm_subn_t *subn, int *open);

/* Read the QoS policy file again if it has changed.  OpenSM itself reads the file after routing, which is too late for
 * the tables of the first sweep.  OpenSM's parser drops the policy if the file is gone or has an error.  If the file
 * has an error, the plugin keeps the SLs of the last policy, so that the error does not replace all tables.  This
 * function is called in a sweep, with OpenSM's exclusive lock held. */
void ibnue_qos_refresh(struct ibnue_plugin *plugin)
{
    osm_subn_t *subn = &plugin->osm->subn;
    const char *file = subn->opt.qos_policy_file;
    struct ibnue_stamp now = {.size = -1};
    struct stat about;

    if (!subn->opt.qos || !file || !osm_qos_parse_policy_file)
        return;
    if (!stat(file, &about))
        now = (struct ibnue_stamp){about.st_mtim.tv_sec, about.st_mtim.tv_nsec, about.st_size, (long)about.st_ino};
    if (!memcmp(&now, &plugin->policy_file, sizeof(now)))
        return;
    plugin->policy_file = now;
    /* If there is neither a file nor a policy, the parser is not called.  It would have nothing to drop, and would only
     * log once more that the file is missing. */
    if (now.size >= 0 || subn->p_qos_policy)
        osm_qos_parse_policy_file(subn);
    if (subn->p_qos_policy || now.size < 0) {
        plugin->policy_open = 0;
        plugin->policy_sls = sls_of_policy(subn, &plugin->policy_open);
    } else if (plugin->policy_sls) {
        SAY(plugin, OSM_LOG_INFO,
            "ibnue: QoS: %s has an error, so OpenSM assigns no SLs by it; the tables stay those for the last policy\n",
            file);
    }
}

/* Return a mask with the SL of a QoS level.  If the level has no SL, return 0 and set *open to 1. */
static uint32_t sl_of_level(const osm_qos_level_t *level, int *open)
{
    if (level && level->sl_set)
        return 1u << (level->sl & 15);
    *open = 1;
    return 0;
}

/* Return a mask of the SLs of all QoS levels that a match rule or the default uses, 0 without a policy.  The function
 * reads the match rules, because no other list contains the levels of ULP rules.  Set *open if one of the levels has no
 * SL, so that the SL of the partition applies. */
static uint32_t sls_of_policy(const osm_subn_t *subn, int *open)
{
    const osm_qos_policy_t *policy = subn->opt.qos ? subn->p_qos_policy : NULL;
    uint32_t sls = 0;

    if (!policy)
        return 0;
    for (cl_list_iterator_t i = cl_list_head(&policy->qos_match_rules); i != cl_list_end(&policy->qos_match_rules);
         i = cl_list_next(i)) {
        const osm_qos_match_rule_t *rule = cl_list_obj(i);
        sls |= rule ? sl_of_level(rule->p_qos_level, open) : 0;
    }
    return sls | sl_of_level(policy->p_default_qos_level, open);
}

/* Determine which SLs OpenSM's SA may propose for paths when it asks an engine.  Set *policy to a mask of the SLs in
 * the QoS policy.  Set *partitions to a mask of the partitions' SLs, or to 0 if these SLs do not matter. */
void ibnue_qos_sls(const struct ibnue_plugin *plugin, uint32_t *policy, uint32_t *partitions)
{
    const osm_subn_t *subn = &plugin->osm->subn;
    int open = plugin->policy_open;

    *policy = plugin->policy_sls;
    if (subn->p_qos_policy || !subn->opt.qos) {
        open = 0;
        *policy = sls_of_policy(subn, &open);
    }
    *partitions = ibnue_partitions_sls(plugin);
    if ((*policy && !open) || (!*policy && *partitions == 1))
        /* The SLs of partitions do not matter in two cases.  The QoS policy gives an SL to every path, or the QoS
         * policy has no SL and all partitions have the default SL 0. */
        *partitions = 0;
}

/* Sum of the weights of each VL in one arbitration table of a port. */
struct weights {
    /* [VL], sum of the weights in opensm.conf; entries that do not fit into the port's table are not counted */
    unsigned of[16];
};

/* Parse a list "VL:weight,..." of opensm.conf as OpenSM does.  A port uses the first `entries` entries, with each VL
 * masked by `vl_mask`. */
static struct weights read_weights(const char *list, unsigned entries, unsigned vl_mask)
{
    struct weights found = {{0}};
    char *end;

    for (unsigned i = 0; i < entries && *list; i++) {
        unsigned vl = (unsigned)(strtoul(list, &end, 0) % 15) & vl_mask;
        list = *end ? end + 1 : end;
        found.of[vl] += (uint8_t)strtoul(list, &end, 0);
        list = *end ? end + 1 : end;
    }
    return found;
}

/* Return the QoS options of opensm.conf that apply to a port. */
static const osm_qos_options_t *options_of(const osm_subn_opt_t *opt, const osm_physp_t *port, uint8_t number)
{
    switch (osm_node_get_type(port->p_node)) {
    case IB_NODE_TYPE_SWITCH:
        return number ? &opt->qos_swe_options : &opt->qos_sw0_options;
    case IB_NODE_TYPE_ROUTER:
        return &opt->qos_rtr_options;
    default:
        return &opt->qos_ca_options;
    }
}

/* Return whether the VL of an entry has an earlier entry with a weight in the same block. */
static int occurs_before(const ib_vl_arb_table_t *block, unsigned entry)
{
    for (unsigned i = 0; i < entry; i++)
        if (block->vl_entry[i].vl == block->vl_entry[entry].vl && block->vl_entry[i].weight)
            return 1;
    return 0;
}

/* Write an entry for a VL into a block.  `used` is a mask of the VLs that can carry data.  The new entry replaces an
 * entry that has no weight, or whose VL is not in `used`.  If the block has neither, the new entry replaces an entry
 * whose VL also has an earlier entry with a weight in the block.  Return 0, or -1 if no entry can be replaced. */
static int add_entry(ib_vl_arb_table_t *block, unsigned length, uint8_t vl, unsigned weight, uint32_t used)
{
    for (int last_resort = 0; last_resort < 2; last_resort++)
        for (unsigned i = 0; i < length; i++) {
            ib_vl_arb_element_t *entry = block->vl_entry + i;
            int needless = !entry->weight || !(used >> entry->vl & 1);
            if (needless || (last_resort && occurs_before(block, i))) {
                *entry = (ib_vl_arb_element_t){.vl = vl, .weight = (uint8_t)(weight > 255 ? 255 : weight)};
                return 0;
            }
        }
    return -1;
}

/* Fill the array `like` for a port, with one element for each VL.  If VL n cannot carry data, like[n] is UNUSED_VL.
 * Otherwise, like[n] is a VL, called the model VL of n.  If the VL arbitration tables have no entry for VL n, VL n gets
 * the weight of its model VL. */
static void find_used(const struct ibnue_service *service, const char *sl2vl, unsigned mask, uint8_t *like)
{
    char *end;
    uint8_t first = UNUSED_VL;

    if (service->vls > 1) {
        memcpy(like, service->classes.vl_like, sizeof(service->classes.vl_like));
        return;
    }
    /* If all paths use one VL, the administrator's SL-to-VL table is kept.  So a path can use any VL of that table. */
    memset(like, UNUSED_VL, sizeof(service->classes.vl_like));
    for (unsigned sl = 0; sl < 16; sl++) {
        unsigned vl = (unsigned)strtoul(sl2vl, &end, 0) & 15;
        sl2vl = *end ? end + 1 : end;
        if (vl == 15)
            continue;
        first = first == UNUSED_VL ? (uint8_t)(vl & mask) : first;
        like[vl & mask] = first;
    }
}

/* Return the first of three values that is set: `own`, the option for one kind of port; `all`, the option for all
 * ports; `usual`, OpenSM's default. */
static const char *chosen(const char *own, const char *all, const char *usual)
{
    return own ? own : all ? all : usual;
}

/* Add entries to `block` for VLs that can carry data, but have no entry with a weight in either table of the
 * administrator.  A port never serves a VL without an entry, and ignores entries with weight 0.  A VL without an
 * entry gets the weight of its model VL (see find_used).  If the model VL has no entry either, the weight is
 * USUAL_WEIGHT.  The new entry belongs to the high-priority table if the model VL has an entry there, otherwise to the
 * low-priority table.  `high` states whether `block` belongs to the high-priority table. */
static void complete(struct ibnue_engine *engine, const struct ibnue_service *service, osm_physp_t *port,
                     uint8_t number, ib_vl_arb_table_t *block, unsigned length, int high)
{
    const osm_subn_opt_t *opt = &engine->plugin->osm->subn.opt;
    const osm_qos_options_t *own = options_of(opt, port, number), *all = &opt->qos_options;
    /* If the code of a port's operational VLs is 0, which is so with max_op_vls 0, OpenSM masks no VLs of the port. */
    unsigned code = ib_port_info_get_op_vls(&port->port_info), mask = code ? (1u << (code - 1)) - 1 : 15;
    const ib_port_info_t *info = &port->port_info;
    struct weights table[2] = {
        read_weights(chosen(own->vlarb_low, all->vlarb_low, OSM_DEFAULT_QOS_VLARB_LOW), info->vl_arb_low_cap, mask),
        read_weights(chosen(own->vlarb_high, all->vlarb_high, OSM_DEFAULT_QOS_VLARB_HIGH), info->vl_arb_high_cap, mask),
    };
    struct ibnue_arbitration *arbitration = &engine->plugin->arbitration;
    uint8_t like[16];
    uint32_t used = 0;

    find_used(service, chosen(own->sl2vl, all->sl2vl, OSM_DEFAULT_QOS_SL2VL), mask, like);
    for (uint8_t vl = 0; vl < 15; vl++)
        used |= (uint32_t)(like[vl] != UNUSED_VL) << vl;
    for (uint8_t vl = 0; vl < 15; vl++) {
        if (!(used >> vl & 1) || vl > mask || table[0].of[vl] || table[1].of[vl]
            || (table[1].of[like[vl]] && info->vl_arb_high_cap) != high)
            continue;
        if (add_entry(block, length, vl, table[high].of[like[vl]] ? table[high].of[like[vl]] : USUAL_WEIGHT, used)) {
            arbitration->missing++;
            continue;
        }
        arbitration->vls |= 1u << vl;
        arbitration->entries++;
    }
}

/* Complete a block of a port's VL arbitration tables before OpenSM writes it (OpenSM's callback update_vlarb). */
void ibnue_update_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block, unsigned length,
                        unsigned block_number)
{
    struct ibnue_engine *engine = context;
    const struct ibnue_service *service = ibnue_service_hold(engine);

    /* The second block of each table is not changed.  The second block has the entries from the 33rd on. */
    if (service && (block_number == 0 || block_number == HIGH_BLOCK))
        complete(engine, service, port, number, block, length, block_number == HIGH_BLOCK);
    ibnue_service_release(engine);
}

/* Log at the end of a sweep how many entries were added to the VL arbitration tables, and for which VLs.  Also log for
 * how many entries the tables had no room.  Lines that the previous sweep has logged are not repeated. */
void ibnue_arbitration_report(struct ibnue_plugin *plugin)
{
    struct ibnue_arbitration *now = &plugin->arbitration, *last = &plugin->last_arbitration;

    if (now->entries && memcmp(now, last, sizeof(*now)))
        SAY(plugin, OSM_LOG_INFO,
            "ibnue: VL arbitration: VLs 0x%x can carry data and have no entry with a weight in qos_*vlarb_high or"
            " qos_*vlarb_low: %u %s added, each with the weight of the first VL of its class\n",
            now->vls, now->entries, ibnue_noun(now->entries, "entry", "entries"));
    if (now->missing && now->missing != last->missing)
        SAY(plugin, OSM_LOG_ERROR,
            "ERR IBN39: VL arbitration: tables of ports have no room for %u %s of VLs that can carry data; shorten"
            " qos_*vlarb_high and qos_*vlarb_low\n",
            now->missing, ibnue_noun(now->missing, "entry", "entries"));
    *last = *now;
    *now = (struct ibnue_arbitration){.vls = 0};
}

/* Log at the end of a sweep if OpenSM has cut SL-to-VL tables.  A table is cut if OpenSM masks its VLs, because the
 * port has fewer operational VLs than the table uses.  This also happens if OpenSM gives the port more operational VLs
 * in this sweep, because OpenSM writes the table first.  The first time, request a heavy sweep, which writes the whole
 * tables.  If OpenSM has cut tables in the previous sweep as well, log an error instead.  The error is repeated only if
 * the number of cut tables changes. */
void ibnue_sl2vl_report(struct ibnue_plugin *plugin)
{
    uint32_t now = plugin->narrow, last = plugin->last_narrow;

    plugin->last_narrow = now;
    if (now && !last) {
        plugin->reported_narrow = 0;
        SAY(plugin, OSM_LOG_INFO,
            "ibnue: SL-to-VL tables: ports had fewer VLs than the tables use, so OpenSM has cut %u tables; another sweep"
            " writes them as proven\n",
            now);
        plugin->osm->subn.force_heavy_sweep = TRUE;
        osm_sm_signal(&plugin->osm->sm, OSM_SIGNAL_SWEEP);
    } else if (now && now != plugin->reported_narrow) {
        plugin->reported_narrow = now;
        SAY(plugin, OSM_LOG_ERROR,
            "ERR IBN40: SL-to-VL tables: %u tables are still cut to the fewer VLs that their ports have; the tables in"
            " the switches are not the proven ones, and can have a credit loop; set max_op_vls to the VLs of these ports (as"
            " OpenSM's code: 1 to 5 for 1, 2, 4, 8 or 15 VLs)\n",
            now);
    }
}
