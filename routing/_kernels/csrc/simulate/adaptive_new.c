/* Create and free a simulation with adaptive routing. */
#include "simulate/internal/adaptive.h"

#include <stdlib.h>
#include <string.h>

/* Allocate `bytes` bytes, and fill them with a copy of `from`, or with zeros if `from` is NULL.  If memory runs out,
 * set sim->failed. */
static void *copy(ibn_adaptive *sim, const void *from, int64_t bytes)
{
    void *to = calloc(1, (size_t)(bytes > 0 ? bytes : 1));
    if (!to)
        sim->failed = 1;
    else if (from && bytes > 0)
        memcpy(to, from, (size_t)bytes);
    return to;
}

static void copy_tables(ibn_adaptive *sim, const ibn_sim_network *network, const ibn_simulate_adaptive_options *options)
{
    int64_t ports = sim->sl2vl_ports, rows = (int64_t)sim->switches * options->columns;
    sim->lft = copy(sim, network->lft, (int64_t)sim->switches * sim->lids);
    sim->sl2vl = copy(sim, network->sl2vl, ports ? 16 * sim->switches * ports * ports : 16);
    sim->enter_sl = copy(sim, options->enter_sl, (int64_t)sim->switches * sim->lids);
    sim->enter_port = copy(sim, options->enter_port, sim->switches);
    sim->lid_switch = copy(sim, network->lid_switch, 4LL * sim->lids);
    sim->lid_channel = copy(sim, options->lid_channel, 4LL * sim->lids);
    sim->lid_column = copy(sim, options->lid_column, 4LL * sim->lids);
    sim->choice_first = copy(sim, options->choice_first, 4 * (rows + 1));
    sim->choice = copy(sim, options->choice, 4LL * options->choice_first[rows]);
    if (options->scheme == SCHEME_CONCURRENT) {
        sim->recovery_next = copy(sim, options->recovery_next, 8LL * sim->switches * sim->switches);
        sim->recovery_rank = copy(sim, options->recovery_rank, 4LL * sim->switches);
    }
}

/* Allocate the arrays of a simulation, and copy the destination lists and traces of its traffic. */
static void make_room(ibn_adaptive *sim, const ibn_sim_traffic *traffic)
{
    sim->channel = copy(sim, NULL, (int64_t)sizeof *sim->channel * sim->channels);
    sim->vc = copy(sim, NULL, (int64_t)sizeof *sim->vc * sim->vcs);
    sim->device = copy(sim, NULL, (int64_t)sizeof *sim->device * sim->devices);
    sim->out_first = copy(sim, NULL, 4LL * (sim->devices + 1));
    sim->at_port = copy(sim, NULL, 4LL * 256 * sim->devices);
    sim->touched = copy(sim, NULL, 4LL * sim->devices);
    sim->turns = copy(sim, NULL, (int64_t)sizeof *sim->turns * sim->devices);
    sim->order = copy(sim, NULL, 4LL * 256 * sim->vls);
    sim->rank = copy(sim, NULL, 8LL * 256 * sim->vls);
    sim->flow = copy(sim, NULL, (int64_t)sizeof *sim->flow * sim->flows);
    sim->by_device = copy(sim, NULL, 4LL * sim->flows);
    sim->lists = copy(sim, traffic->lists, 4 * traffic->listed);
    sim->trace = copy(sim, traffic->trace, 24 * traffic->traced);
}

/* Set up the channels and their VCs.  Channels are sorted by sending device and port. */
static void set_channels(ibn_adaptive *sim, const ibn_sim_network *network)
{
    for (int32_t c = 0; c < sim->channels; c++) {
        ibn_adaptive_channel *channel = &sim->channel[c];
        channel->mark.until = -1;
        channel->src = network->src[c];
        channel->dst = network->dst[c];
        channel->dst_port = network->dst_port[c];
        channel->reverse = network->reverse[c];
        channel->cost = network->cost[c];
        channel->wire = network->wire[c];
        channel->from_switch = channel->src < sim->switches;
        channel->to_switch = channel->dst < sim->switches;
        channel->hop = channel->wire + network->switch_delay[channel->dst];
        sim->at_port[channel->src * 256 + network->src_port[c]] = c;
        sim->out_first[channel->src + 1]++;
    }
    for (int32_t d = 0; d < sim->devices; d++) {
        sim->out_first[d + 1] += sim->out_first[d];
        for (int k = 0; k < IBN_SPARES; k++)
            sim->device[d].spare[k] = IBN_NONE;
        sim->device[d].relay.head = IBN_NONE;
    }
    for (int32_t l = 0; l < sim->vcs; l++) {
        ibn_adaptive_vc *vc = &sim->vc[l];
        vc->buffer = vc->credits = network->buffer[l];
        vc->channel = l / sim->vls;
        vc->vl = l % sim->vls;
        vc->suspect = -1;
        vc->queue.head = IBN_NONE;
    }
}

/* Set up the flows, sort them by CA, and prepare the first packet of each flow. */
static void set_flows(ibn_adaptive *sim, const ibn_sim_traffic *traffic)
{
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_flow *flow = &sim->flow[f];
        ibn_simulate_flow_set(flow, traffic, f);
        ibn_simulate_flow_start(flow, sim->options.seed, sim->trace);
        sim->device[sim->channel[flow->channel].src].flows++;
    }
    for (int32_t d = 1; d < sim->devices; d++)
        sim->device[d].flows_first = sim->device[d - 1].flows_first + sim->device[d - 1].flows;
    for (int32_t d = 0; d < sim->devices; d++)
        sim->device[d].flows = 0;
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_adaptive_device *device = &sim->device[sim->channel[sim->flow[f].channel].src];
        sim->by_device[device->flows_first + device->flows++] = f;
        ibn_simulate_adaptive_prepare(sim, f);
    }
}

ibn_adaptive *ibn_simulate_adaptive_new(const ibn_sim_network *network, const ibn_simulate_adaptive_options *options,
                               const ibn_sim_traffic *traffic)
{
    ibn_adaptive *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->devices = network->devices;
    sim->switches = network->switches;
    sim->channels = network->channels;
    sim->vls = network->vls;
    sim->lids = network->lids;
    sim->sl2vl_ports = network->sl2vl_ports;
    sim->vcs = (int64_t)sim->channels * sim->vls;
    sim->flows = traffic->flows;
    sim->options = *options;
    sim->now = -1; /* the tick before tick 0, because a run begins with the next tick */
    sim->event_free = sim->packet_free = sim->ping_free = sim->holder = IBN_NONE;
    for (int32_t i = 0; i < AV_SLOTS; i++)
        sim->slot[i] = IBN_NONE;
    copy_tables(sim, network, options);
    make_room(sim, traffic);
    if (!sim->failed) {
        set_channels(sim, network);
        set_flows(sim, traffic);
    }
    if (options->scheme == SCHEME_TOKEN && !sim->failed)
        ibn_simulate_adaptive_at(sim, 0, AV_TOKEN, 0, 0);
    int searches = options->scheme == SCHEME_BUBBLE || options->scheme >= SCHEME_RELAY;
    if (searches && !sim->failed)
        ibn_simulate_adaptive_at(sim, 0, AV_SAMPLE, 0, 0);
    if (sim->failed) {
        ibn_simulate_adaptive_free(sim);
        return NULL;
    }
    return sim;
}

void ibn_simulate_adaptive_free(ibn_adaptive *sim)
{
    void *parts[] = {
        sim->channel,   sim->vc,          sim->device,     sim->out_first,  sim->at_port,
        sim->lft,       sim->sl2vl,       sim->enter_sl,   sim->enter_port, sim->choice_first,
        sim->choice,    sim->lid_channel, sim->lid_column, sim->lid_switch, sim->flow,
        sim->by_device, sim->lists,       sim->trace,      sim->event,      sim->later,
        sim->touched,   sim->order,       sim->rank,       sim->packet,     sim->ping,
        sim->recovery_next, sim->recovery_rank, sim->turns,
    };
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    free(sim);
}
