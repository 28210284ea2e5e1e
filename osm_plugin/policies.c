/* Set HOQLife and VLStallCount of ports after every sweep, where the rules of the configuration differ from the values
 * that OpenSM sets.
 *
 * The worker applies the rules to the subnet.  The requests to the ports are sent through OpenSM, so that OpenSM stores
 * the answers in its own tables. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define PORTS 256
/* Maximum number of attempts to set a value at a port that answers but does not accept the value.  After these
 * attempts, the plugin tries again only when the rules demand another value, or after the port has been down. */
#define TRIES 3

/* Maximum wait in milliseconds for the answers to all requests.  OpenSM itself gives up its retries long before this
 * limit. */
#define TIMEOUT_MS 60000

/* The value that the rules demand of a port, and the state of the attempts to set it. */
struct demand {
    /* mask: the bits of vl_stall_life that the rules set, 0 if no rule applies.  value: the values of these bits.
     * vl_stall_life is a byte of PortInfo: HOQLife in bits 0 to 4, VLStallCount in bits 5 to 7. */
    uint8_t mask, value;
    uint8_t asked;       /* vl_stall_life in the last request */
    /* mask of the fields (HOQLife, VLStallCount) in which the port did not accept the demanded value */
    uint8_t refused;
    /* number of consecutive requests that the port did not accept.  When this number reaches TRIES, the fields in
     * `refused` are not requested again. */
    uint8_t tries;
    uint8_t sent; /* whether a request was sent in this sweep */
};

struct ibnue_policies {
    uint32_t switches;     /* number of switches */
    uint64_t *guid;        /* [switches], GUIDs in ascending order, in host order */
    struct demand *demand; /* [switches][PORTS], the value that the rules demand of each port */
};

/* Numbers of ports in one sweep, for the log. */
struct tally {
    /* Numbers of ports.  covered: ports with a rule.  correct: ports that already had the demanded value.  written:
     * ports to which a request was sent.  verified: ports that have the requested value afterwards.  skipped: ports
     * that have refused a field TRIES times, so that this field was not requested.  failed: ports to which the request
     * could not be sent. */
    unsigned covered, correct, written, verified, skipped, failed;
    osm_physp_t *first;  /* the first port that did not accept the requested value, NULL: none */
    uint8_t first_asked; /* value of vl_stall_life in the request to the port `first` */
};

void ibnue_policies_drop(struct ibnue_plugin *plugin)
{
    if (!plugin->policies)
        return;
    free(plugin->policies->guid);
    free(plugin->policies->demand);
    free(plugin->policies);
    plugin->policies = NULL;
}

/* Return the row of a switch by its GUID, or -1 if the policies do not contain the switch. */
static int row_of(const struct ibnue_policies *policies, uint64_t guid)
{
    uint32_t low = 0, high = policies ? policies->switches : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (policies->guid[middle] < guid)
            low = middle + 1;
        else
            high = middle;
    }
    return policies && low < policies->switches && policies->guid[low] == guid ? (int)low : -1;
}

/* Write a request into the memory of a worker, followed by the LFTs that the switches have acknowledged. */
int ibnue_request_with_tables(struct ibnue_plugin *plugin, struct ibnue_memory *memory, int fd, uint64_t generation,
                              char *why)
{
    uint32_t lids = plugin->osm->subn.max_ucast_lid_ho + 1u;
    struct ibnue_request *request;
    struct ibnue_policy_request *extra;
    struct ibnue_walk walk;
    size_t tables;
    uint8_t *lft;

    if (ibnue_walk_open(plugin, &walk, why))
        return -1;
    tables = (size_t)walk.switches * lids;
    if (ibnue_memory_map(memory, fd, generation, walk.room + sizeof(*extra) + tables + 16, why)) {
        ibnue_walk_close(&walk);
        return -1;
    }
    ibnue_request_write(plugin, &walk, memory->bytes);
    ibnue_walk_close(&walk);
    request = (struct ibnue_request *)memory->bytes;
    extra = (struct ibnue_policy_request *)(memory->bytes + (request->end + 7) / 8 * 8);
    lft = (uint8_t *)(extra + 1);
    for (uint32_t row = 0; row < plugin->rows.switches; row++, lft += lids) {
        const osm_switch_t *sw = plugin->rows.row[row];
        uint32_t known = sw->lft ? (lids < sw->lft_size ? lids : sw->lft_size) : 0;
        if (known)
            memcpy(lft, sw->lft, known);
        memset(lft + known, OSM_NO_PATH, lids - known);
    }
    extra->magic = IBNUE_POLICY_REQUEST_MAGIC;
    extra->lids = lids;
    extra->unused = 0;
    request->end = (uint64_t)(lft - memory->bytes);
    return 0;
}

/* Replace the demanded values of all ports by the values in the worker's answer.  If the demanded value of a port is
 * unchanged, the count of attempts at this port is kept.  Return 0, or -1 with the reason in `why`. */
static int read_answer(struct ibnue_plugin *plugin, char *why)
{
    const struct ibnue_request *request = (const struct ibnue_request *)plugin->memory.bytes;
    uint64_t at = (request->end + 4095) / 4096 * 4096, size = plugin->memory.size, bytes;
    struct ibnue_policies *made, *old = plugin->policies;
    struct ibnue_policy_answer answer;
    const uint16_t *want;

    if (at > size || size - at < sizeof(answer)) {
        snprintf(why, IBNUE_WHY, "the worker left no values");
        return -1;
    }
    memcpy(&answer, plugin->memory.bytes + at, sizeof(answer));
    bytes = (uint64_t)answer.switches * PORTS * sizeof(*want);
    if (answer.magic != IBNUE_POLICY_ANSWER_MAGIC || answer.sequence != plugin->sequence
        || answer.switches != plugin->rows.switches || answer.want_at % 8 || answer.want_at > size
        || bytes > size - answer.want_at) {
        snprintf(why, IBNUE_WHY, "the worker's values do not belong to this subnet");
        return -1;
    }
    made = calloc(1, sizeof(*made));
    if (!made || !(made->guid = calloc(answer.switches + 1, sizeof(*made->guid)))
        || !(made->demand = calloc((size_t)answer.switches * PORTS + 1, sizeof(*made->demand)))) {
        if (made)
            free(made->guid);
        free(made);
        snprintf(why, IBNUE_WHY, "out of memory");
        return -1;
    }
    made->switches = answer.switches;
    want = (const uint16_t *)(plugin->memory.bytes + answer.want_at);
    for (uint32_t row = 0; row < made->switches; row++) {
        int before;
        made->guid[row] = cl_ntoh64(osm_node_get_node_guid(plugin->rows.row[row]->p_node));
        before = row_of(old, made->guid[row]);
        for (unsigned port = 0; port < PORTS; port++, want++) {
            struct demand *demand = made->demand + (size_t)row * PORTS + port;
            /* Each value in the shared memory is read only once, because the worker can change it at any time. */
            uint16_t bits = *(const volatile uint16_t *)want;
            uint8_t mask = (uint8_t)(bits >> 8), value = (uint8_t)(bits & mask);
            if (before >= 0)
                *demand = old->demand[(size_t)before * PORTS + port];
            if (mask != demand->mask || value != demand->value)
                *demand = (struct demand){.mask = mask, .value = value};
        }
    }
    ibnue_policies_drop(plugin);
    plugin->policies = made;
    return 0;
}

/* Ask the worker to apply the rules to the subnet, and wait for its answer.  OpenSM's lock is held only while the
 * subnet is copied.  Return 0, or -1 with the reason in `note`. */
static int ask_policies(struct ibnue_plugin *plugin, char *note)
{
    uint64_t generation = 0;
    int fd = -1, bad;

    if (plugin->asked.late) {
        snprintf(note, IBNUE_WHY, "the worker still computes tables");
        return -1;
    }
    if (ibnue_host_memory(&fd, &generation, note, IBNUE_WHY) != IBNUE_TOKEN)
        return -1;
    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    bad = ibnue_request_with_tables(plugin, &plugin->memory, fd, generation, note);
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    plugin->asked.engine = NULL;
    plugin->asked.sequence = plugin->sequence;
    if (bad || ibnue_host_send(IBNUE_POLICIES, plugin->sequence, note, IBNUE_WHY) != IBNUE_TOKEN
        || ibnue_wait_for_worker(plugin, note) || ibnue_memory_map(&plugin->memory, fd, generation, 1, note))
        return -1;
    return 0;
}

/* Return a mask of the fields of vl_stall_life (HOQLife, VLStallCount) that have at least one bit in `bits`.  The mask
 * has all bits of such a field. */
static uint8_t fields_of(uint8_t bits)
{
    return (uint8_t)((bits & 0x1F ? 0x1F : 0) | (bits & 0xE0 ? 0xE0 : 0));
}

/* Return `now` with the bits of the mask replaced by the bits of `value`. */
static uint8_t with(uint8_t now, uint8_t mask, uint8_t value)
{
    return (uint8_t)((now & ~mask) | (value & mask));
}

/* Return a port if it is cabled and not down, otherwise NULL.  OpenSM itself configures only such ports. */
static osm_physp_t *live_port(const osm_node_t *node, unsigned port)
{
    osm_physp_t *physp = port < osm_node_get_num_physp(node) ? osm_node_get_physp_ptr((osm_node_t *)node, port) : NULL;
    osm_physp_t *far = physp && osm_physp_is_valid(physp) ? osm_physp_get_remote(physp) : NULL;

    if (!far || !osm_physp_is_valid(far) || osm_physp_get_port_state(physp) == IB_LINK_DOWN)
        return NULL;
    return physp;
}

/* Send a request that sets vl_stall_life of a port.  All other fields keep the values that OpenSM has read.  The port
 * states are set to "no change", and no client reregistration is requested.  Return 0, or another value if sending
 * fails. */
static int request_set(struct ibnue_plugin *plugin, osm_physp_t *physp, uint8_t stall_life)
{
    osm_node_t *node = osm_physp_get_node_ptr(physp);
    osm_physp_t *zero = osm_node_get_physp_ptr(node, 0);
    ib_port_info_t info = physp->port_info;
    ib_net32_t modifier = cl_hton32(osm_physp_get_port_num(physp));
    osm_madw_context_t context;

    info.vl_stall_life = stall_life;
    info.state_info2 &= 0x0F;
    ib_port_info_set_port_state(&info, IB_LINK_NO_CHANGE);
    ib_port_info_set_client_rereg(&info, 0);
    memset(&context, 0, sizeof(context));
    context.pi_context.node_guid = osm_node_get_node_guid(node);
    context.pi_context.port_guid = osm_physp_get_port_guid(physp);
    context.pi_context.set_method = TRUE;
    if (zero->port_info.capability_mask & IB_PORT_CAP_HAS_EXT_SPEEDS)
        modifier |= cl_hton32(1u << 31);
    return osm_req_set(&plugin->osm->sm, osm_physp_get_dr_path_ptr(physp), (uint8_t *)&info, sizeof(info),
                       IB_MAD_ATTR_PORT_INFO, modifier, FALSE, ib_port_info_get_m_key(&zero->port_info), 0,
                       CL_DISP_MSGID_NONE, &context)
           != IB_SUCCESS;
}

/* Send a request to a port, unless the port already has the demanded value.  Fields that the port has refused TRIES
 * times are not requested again. */
static void request_port(struct ibnue_plugin *plugin, osm_physp_t *physp, struct demand *demand, struct tally *tally)
{
    uint8_t now = physp->port_info.vl_stall_life, left = demand->tries >= TRIES ? demand->refused : 0;
    uint8_t wanted = with(now, demand->mask & (uint8_t)~left, demand->value);

    tally->covered++;
    if (with(now, demand->mask, demand->value) != wanted)
        tally->skipped++;
    else if (now == wanted)
        tally->correct++;
    if (now == wanted)
        return;
    if (request_set(plugin, physp, wanted)) {
        tally->failed++;
        return;
    }
    tally->written++;
    demand->asked = wanted;
    demand->sent = 1;
}

/* Check whether a port has accepted the requested value, after the answers to all requests have arrived.  OpenSM has
 * stored the port's vl_stall_life from the answer.  Record the result in `tally` and `demand`. */
static void check_port(osm_physp_t *physp, struct demand *demand, struct tally *tally)
{
    uint8_t now = physp->port_info.vl_stall_life;

    if (!demand->sent)
        return;
    demand->sent = 0;
    if (now == demand->asked) {
        tally->verified++;
        if (demand->tries < TRIES)
            demand->tries = 0;
        return;
    }
    demand->refused |= fields_of(now ^ demand->asked);
    demand->tries = (uint8_t)(demand->tries + (demand->tries < TRIES));
    if (!tally->first) {
        tally->first = physp;
        tally->first_asked = demand->asked;
    }
}

/* If `check` is 0, send requests to all ports with a rule.  Otherwise send nothing, and compare the values of these
 * ports with the requests that were sent before. */
static void each_port(struct ibnue_plugin *plugin, struct tally *tally, int check)
{
    struct ibnue_policies *policies = plugin->policies;
    const cl_qmap_t *table = &plugin->osm->subn.sw_guid_tbl;

    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item)) {
        const osm_node_t *node = ((const osm_switch_t *)item)->p_node;
        int row = row_of(policies, cl_ntoh64(osm_node_get_node_guid(node)));
        for (unsigned port = 1; row >= 0 && port < PORTS; port++) {
            struct demand *demand = policies->demand + (size_t)row * PORTS + port;
            osm_physp_t *physp = demand->mask ? live_port(node, port) : NULL;
            if (physp && check)
                check_port(physp, demand, tally);
            else if (physp)
                request_port(plugin, physp, demand, tally);
            else
                demand->refused = demand->tries = demand->sent =
                    0; /* The port has no rule, or is down and may get another device: forget the earlier attempts. */
        }
    }
}

/* Wait until all of OpenSM's requests are answered.  Return 0, or -1 after TIMEOUT_MS or if OpenSM ends. */
static int wait_for_answers(const struct ibnue_plugin *plugin)
{
    const struct timespec nap = {0, 200000};
    const osm_stats_t *stats = &plugin->osm->stats;

    for (unsigned naps = 0; naps < TIMEOUT_MS * 5u && !osm_exit_flag; naps++) {
        if (!__atomic_load_n(&stats->qp0_mads_outstanding, __ATOMIC_ACQUIRE))
            return 0;
        nanosleep(&nap, NULL);
    }
    return -1;
}

static void log_tally(struct ibnue_plugin *plugin, const struct tally *tally, const char *note)
{
    SAY(plugin, OSM_LOG_INFO,
        "ibnue policies: %u %s covered by rules: %u already correct, %u updated (%u verified), %u skipped; %s\n",
        tally->covered, ibnue_noun(tally->covered, "port", "ports"), tally->correct, tally->written,
        tally->verified, tally->skipped, note);
    if (tally->first)
        SAY(plugin, OSM_LOG_ERROR,
            "ERR IBNA: %u %s new values, first %s port %u: HOQLife %u, VLStallCount %u"
            " instead of %u, %u\n",
            tally->written - tally->verified,
            ibnue_noun(tally->written - tally->verified, "port did not accept its", "ports did not accept their"),
            osm_physp_get_node_ptr(tally->first)->print_desc,
            osm_physp_get_port_num(tally->first), tally->first->port_info.vl_stall_life & 0x1F,
            tally->first->port_info.vl_stall_life >> 5, tally->first_asked & 0x1F, tally->first_asked >> 5);
    if (tally->failed)
        SAY(plugin, OSM_LOG_ERROR, "ERR IBNB: %u %s could not be sent; the ports keep their values until the next sweep\n", tally->failed,
            ibnue_noun(tally->failed, "request", "requests"));
}

/* Apply the rules for ports at the end of a sweep.  The function runs in OpenSM's sweeper. */
void ibnue_policies_apply(struct ibnue_plugin *plugin)
{
    struct tally tally = {0};
    char note[IBNUE_WHY] = IBNUE_PYTHON_FAILED;
    int code = ibnue_host_policies(note, IBNUE_WHY);

    if (code == IBNUE_PENDING) {
        ibnue_policies_drop(plugin);
        return; /* The configuration names no rules. */
    }
    if (code != IBNUE_TOKEN || ask_policies(plugin, note) || read_answer(plugin, note))
        SAY(plugin, OSM_LOG_ERROR, "ERR IBNC: no new values for ports, %s: %s\n",
            plugin->policies ? "the last ones stay" : "there were none before", note);
    if (!plugin->policies)
        return;
    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    each_port(plugin, &tally, 0);
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    if (tally.written && wait_for_answers(plugin))
        SAY(plugin, OSM_LOG_ERROR, "ERR IBND: answers to requests for ports are missing; the next sweep sends them again\n");
    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    each_port(plugin, &tally, 1);
    log_tally(plugin, &tally, note);
    CL_PLOCK_RELEASE(&plugin->osm->lock);
}
