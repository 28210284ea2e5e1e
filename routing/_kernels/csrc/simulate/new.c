/* Create and free a simulation, and replace its routing tables during a run. */
#include "simulate/internal/crossbar.h"
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <stdlib.h>
#include <string.h>

#define VLARB_WIDTH 260
#define CACHE_LINE 64

/* Allocate `bytes` bytes that begin at a cache line.  Fill them with a copy of `from`, or with zeros if `from` is NULL.
 * If memory runs out, set *failed. */
static void *copy(const void *from, int64_t bytes, int *failed)
{
    size_t size = ((size_t)(bytes > 0 ? bytes : 1) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *to = aligned_alloc(CACHE_LINE, size);
    if (!to) {
        *failed = 1;
        return NULL;
    }
    memset(to, 0, size);
    if (from && bytes > 0)
        memcpy(to, from, (size_t)bytes);
    return to;
}

/* Allocate an array of `count` 32-bit numbers, all IBN_NONE, that begins at a cache line.  If memory runs out, set
 * *failed. */
static void *none(int64_t count, int *failed)
{
    void *to = copy(NULL, count * 4, failed);
    if (to)
        memset(to, 0xFF, (size_t)count * 4);
    return to;
}

static void copy_options(ibn_sim *sim, const ibn_simulate_options *options)
{
    int *failed = &sim->failed;
    int32_t channels = sim->channels;
    sim->options = *options;
    sim->freed_first = options->fcp_period || options->xoff;
    sim->hoq = copy(options->hoq, 8LL * channels, failed);
    sim->stall_count = copy(options->stall_count, 4LL * channels, failed);
    sim->lifetime = copy(options->lifetime, 8LL * sim->devices, failed);
    sim->breaker = copy(options->breaker, 4LL * channels, failed);
    sim->detect = copy(options->detect, 8LL * channels, failed);
    sim->repeat = copy(options->repeat, 8LL * channels, failed);
    sim->release = copy(options->release, 8LL * channels, failed);
    sim->extra = copy(options->extra, 4LL * channels, failed);
    sim->vlarb = copy(options->vlarb, (int64_t)VLARB_WIDTH * options->arbiters, failed);
}

static int64_t sl2vl_bytes(const ibn_sim *sim)
{
    return sim->sl2vl_ports ? 16LL * sim->switches * sim->sl2vl_ports * sim->sl2vl_ports : 16;
}

static void copy_network(ibn_sim *sim, const ibn_sim_network *network)
{
    int *failed = &sim->failed;
    int64_t square = network->distance ? (int64_t)sim->switches * sim->switches : 0;
    sim->lft = copy(network->lft, (int64_t)sim->switches * sim->lids, failed);
    sim->sl2vl = copy(network->sl2vl, sl2vl_bytes(sim), failed);
    sim->ca_sl2vl = copy(network->ca_sl2vl, 16, failed);
    sim->sl = copy(network->sl, network->sl_rows * sim->lids, failed);
    sim->sl_rows = network->sl_rows;
    sim->distance = copy(network->distance, square, failed);
    sim->lid_switch = copy(network->lid_switch, 4LL * sim->lids, failed);
    sim->lid_device = copy(network->lid_device, 4LL * sim->lids, failed);
    sim->at_port = none(256LL * sim->devices, failed);
    sim->out_first = copy(NULL, 4LL * (sim->devices + 1), failed);
    sim->out_channel = copy(NULL, 4LL * sim->channels, failed);
    sim->channel = copy(NULL, (int64_t)sizeof(ibn_channel) * sim->channels, failed);
    sim->far_end = copy(NULL, (int64_t)sizeof(ibn_far_end) * sim->channels, failed);
    sim->counters = copy(NULL, (int64_t)sizeof(ibn_counters) * sim->channels, failed);
    sim->vc = copy(NULL, (int64_t)sizeof(ibn_vc) * sim->vcs, failed);
    sim->watch = copy(NULL, (int64_t)sizeof(ibn_watch) * sim->vcs, failed);
    sim->touched = copy(NULL, 4LL * sim->channels, failed);
    sim->input_ends = copy(NULL, 8LL * sim->channels * sim->options.speedup, failed);
    sim->outputs = copy(NULL, sim->options.speedup ? 8LL * IBN_PORT_WORDS * sim->switches : 0, failed);
    sim->competing = copy(NULL, 4LL * sim->switches, failed);
    sim->to_check = copy(NULL, sim->options.xoff ? 4 * sim->vcs : 0, failed);
}

/* Set up the channels.  Channels are sorted by sending device and port.  The inputs of a device are numbered by
 * in-port. */
static void set_channels(ibn_sim *sim, const ibn_sim_network *network, const ibn_simulate_options *options)
{
    for (int32_t c = 0; c < sim->channels; c++) {
        ibn_channel *channel = &sim->channel[c];
        channel->src = network->src[c];
        channel->dst = network->dst[c];
        channel->dst_port = network->dst_port[c];
        channel->reverse = network->reverse[c];
        channel->cost = network->cost[c];
        channel->wire = network->wire[c];
        channel->from_switch = channel->src < sim->switches;
        channel->ages = channel->from_switch && (sim->hoq[c] || sim->lifetime[channel->src]);
        channel->to_switch = channel->dst < sim->switches;
        channel->hop = channel->to_switch ? channel->wire + network->switch_delay[channel->dst] : 0;
        sim->aging |= channel->ages || options->sample_period;
        channel->arbiter = (uint8_t)options->arbiter[c];
        sim->at_port[channel->src * 256 + network->src_port[c]] = c;
        sim->out_channel[c] = c;
        sim->out_first[channel->src + 1]++;
    }
    for (int32_t d = 0; d < sim->devices; d++)
        sim->out_first[d + 1] += sim->out_first[d];
    for (int32_t c = 0; c < sim->channels; c++) {
        ibn_channel *back = &sim->channel[sim->channel[c].reverse];
        /* Channel `back` ends at the port where channel c begins.  Inputs and outputs of a device are numbered by port.
         * So `back` has the same number among the inputs as channel c among the outputs. */
        back->in_index = c - sim->out_first[sim->channel[c].src];
        sim->channel[c].inputs = sim->out_first[sim->channel[c].src + 1] - sim->out_first[sim->channel[c].src];
    }
    for (int32_t c = 0; c < sim->channels; c++) {
        const ibn_channel *channel = &sim->channel[c];
        int64_t ports = sim->sl2vl_ports, row = ((int64_t)channel->dst * ports + channel->dst_port) * ports * 16;
        sim->far_end[c] = (ibn_far_end){channel->dst,  channel->reverse, channel->in_index,
                                        channel->wire, ports ? 16 : 0,   row};
    }
}

/* Set up the output queues of all channels.  The inputs of a CA's channel are the flows of this CA. */
static void set_queues(ibn_sim *sim)
{
    int64_t queues = 0;
    int32_t most = 1;
    for (int32_t c = 0; c < sim->channels; c++)
        if (!sim->channel[c].from_switch)
            sim->channel[c].inputs = 0;
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_channel *channel = &sim->channel[sim->flow[f].channel];
        if (sim->flow[f].index >= channel->inputs)
            channel->inputs = sim->flow[f].index + 1;
    }
    for (int32_t c = 0; c < sim->channels; c++) {
        ibn_channel *channel = &sim->channel[c];
        channel->queues = (int32_t)queues;
        queues += (int64_t)channel->inputs * sim->vls;
        if (channel->inputs > most)
            most = channel->inputs;
    }
    sim->words = (most + 63) / 64;
    sim->in_turn = sim->words == 1 && sim->options.arbitration == ARBITER_ROUND_ROBIN;
    uint32_t others = IBN_HOOK_QUEUED | IBN_HOOK_ROOM | IBN_HOOK_ARRIVED | IBN_HOOK_VL | IBN_HOOK_OUTPUT;
    sim->plain = sim->in_turn && !sim->options.arbiters && !sim->options.single_fifo && !sim->freed_first && !sim->aging
                 && !(sim->hooks & others);
    sim->queues = queues;
    sim->failed |= queues > INT32_MAX;
    sim->queue = sim->failed ? NULL : none(2 * queues, &sim->failed);
    sim->next_queue = copy(NULL, sim->options.arbitration == ARBITER_CROSSBAR ? queues : 0, &sim->failed);
    sim->mask = sim->words > 1 ? copy(NULL, 8LL * sim->vcs * sim->words, &sim->failed) : NULL;
}

static void set_vcs(ibn_sim *sim, const ibn_sim_network *network)
{
    for (int64_t l = 0; l < sim->vcs; l++) {
        sim->vc[l].buffer = network->buffer[l];
        sim->vc[l].fccl = (uint32_t)network->buffer[l];
        sim->vc[l].only = IBN_NONE;
        sim->vc[l].reserve = sim->extra[l / sim->vls];
        sim->vc[l].sent = -1;
        sim->watch[l].hidden.head = IBN_NONE;
    }
}

static void set_traffic(ibn_sim *sim, const ibn_sim_traffic *traffic)
{
    sim->flow = copy(NULL, (int64_t)sizeof(ibn_flow) * sim->flows, &sim->failed);
    sim->lists = copy(traffic->lists, 4 * traffic->listed, &sim->failed);
    sim->trace = copy(traffic->trace, 24 * traffic->traced, &sim->failed);
    for (int32_t f = 0; f < sim->flows && !sim->failed; f++)
        ibn_simulate_flow_set(&sim->flow[f], traffic, f);
}

static void set_events(ibn_sim *sim)
{
    sim->packet_free = sim->clcm_free = IBN_NONE;
    sim->slots = 1 << sim->options.wheel_bits;
    sim->slot = copy(NULL, 4LL * IBN_SLOT * sim->slots, &sim->failed);
    sim->failed |= ibn_simulate_more_batches(sim);
    sim->busy_slots = copy(NULL, sim->slots / 8, &sim->failed);
    sim->now = -1; /* A run begins with the tick after sim->now, so the first tick is tick 0. */
}

int ibn_simulate_new(const ibn_sim_network *network, const ibn_simulate_options *options,
                     const ibn_sim_traffic *traffic, ibn_sim **made)
{
    ibn_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return 1;
    sim->devices = network->devices;
    sim->switches = network->switches;
    sim->channels = network->channels;
    sim->vls = network->vls;
    sim->lids = network->lids;
    sim->sl2vl_ports = network->sl2vl_ports;
    sim->vcs = (int64_t)sim->channels * sim->vls;
    sim->flows = traffic->flows;
    copy_options(sim, options);
    sim->failed |= ibn_simulate_resolve_mechanisms(sim, options);
    copy_network(sim, network);
    set_traffic(sim, traffic);
    set_events(sim);
    if (!sim->failed) {
        set_channels(sim, network, options);
        set_queues(sim);
    }
    if (!sim->failed) {
        set_vcs(sim, network);
        if (sim->options.xoff)
            ibn_simulate_open(sim);
        sim->failed |= ibn_simulate_attach(sim, options);
    }
    if (!sim->failed) {
        ibn_simulate_start_flows(sim);
        if (sim->options.sample_period)
            ibn_simulate_at(sim, sim->options.sample_period, EV_PERIODIC, PERIODIC_SAMPLE, 0);
        if (sim->options.fcp_period)
            ibn_simulate_at(sim, sim->options.fcp_period, EV_PERIODIC, PERIODIC_FCP, 0);
    }
    int failed = sim->failed;
    if (failed)
        ibn_simulate_free(sim);
    else
        *made = sim;
    return failed;
}

void ibn_simulate_free(ibn_sim *sim)
{
    void *parts[] = {
        sim->channel,   sim->far_end,     sim->counters,    sim->vc,    sim->watch,    sim->queue,       sim->mask,
        sim->at_port,   sim->out_first,   sim->out_channel, sim->lft,   sim->sl2vl,    sim->ca_sl2vl,    sim->sl,
        sim->distance,  sim->lid_switch,  sim->lid_device,  sim->hoq,   sim->lifetime, sim->detect,      sim->repeat,
        sim->release,   sim->stall_count, sim->breaker,     sim->extra, sim->vlarb,    sim->flow,        sim->lists,
        sim->trace,     sim->event,       sim->slot,        sim->heap,  sim->later,    sim->touched,     sim->competing,
        sim->to_check,  sim->busy_slots,  sim->packet,      sim->clcm,  sim->log,      sim->input_ends,  sim->outputs,
        sim->next_queue,
    };
    ibn_simulate_detach(sim);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    free(sim);
}

void ibn_simulate_set_lft(ibn_sim *sim, const uint8_t *lft)
{
    memcpy(sim->lft, lft, (size_t)sim->switches * (size_t)sim->lids);
}

void ibn_simulate_get_lft(const ibn_sim *sim, uint8_t *lft)
{
    memcpy(lft, sim->lft, (size_t)sim->switches * (size_t)sim->lids);
}

void ibn_simulate_set_sl2vl(ibn_sim *sim, const uint8_t *sl2vl)
{
    memcpy(sim->sl2vl, sl2vl, (size_t)sl2vl_bytes(sim));
}

void ibn_simulate_set_sl(ibn_sim *sim, const uint8_t *sl)
{
    memcpy(sim->sl, sl, (size_t)(sim->sl_rows * sim->lids));
}
