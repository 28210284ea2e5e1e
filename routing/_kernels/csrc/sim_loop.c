/* Loop Breaker: the master of a credit loop is elected, moves flows to other shortest ways, and lets packets go. */
#include "internal/sim.h"

/* Another port of a switch on a shortest way to a LID than this channel's, or IBN_NONE. */
static int32_t other_port(const ibn_sim *sim, int32_t device, int32_t lid, int32_t except, uint64_t number)
{
    int32_t home = sim->lid_switch[lid], found = 0, choice[256];
    if (home < 0 || home == device)
        return IBN_NONE;
    int far = sim->distance[(int64_t)device * sim->switches + home];
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t c = sim->out_channel[i];
        if (c != except && sim->channel[c].to_switch && sim->channel[c].busy != IBN_NEVER &&
            sim->distance[(int64_t)sim->channel[c].dst * sim->switches + home] + 1 == far)
            choice[found++] = c;
    }
    return found ? choice[((number >> 32) * (uint64_t)found) >> 32] : IBN_NONE;
}

static const ibn_fifo *queues_of(const ibn_sim *sim, int32_t c, int32_t l)
{
    return &sim->queue[sim->channel[c].queues + (l - c * sim->vls) * sim->channel[c].inputs];
}

/* Can all that waits for a lane at one of the inputs go another way? */
static int can_reroute(const ibn_sim *sim, int32_t l)
{
    int32_t c = l / sim->vls;
    const ibn_fifo *queue = queues_of(sim, c, l);
    for (int32_t input = 0; input < sim->channel[c].inputs; input++) {
        int32_t p = queue[input].head;
        if (p == IBN_NONE || !sim->channel[sim->packet[p].channel].from_switch)
            continue;
        while (p != IBN_NONE && other_port(sim, sim->channel[c].src, sim->packet[p].lid, c, 0) != IBN_NONE)
            p = sim->packet[p].next;
        if (p == IBN_NONE)
            return 1;
    }
    return 0;
}

/* The number that a lane sends of its own in a round. */
void ibn_sim_draw(ibn_sim *sim, int32_t l, int32_t round)
{
    ibn_watch *watch = &sim->watch[l];
    uint64_t number = ibn_number(ibn_key(sim->options.seed, 5, (uint64_t)l), (uint64_t)round) >> 32;
    watch->round = round;
    watch->sends = 0;
    watch->own = (uint32_t)number % (UINT32_MAX - 1);
    if (sim->breaker[l / sim->vls] == BREAKER_LOOP && !sim->options.no_alternative && !can_reroute(sim, l))
        watch->own = UINT32_MAX; /* passes on what it receives, and is never chosen */
    watch->spuid = watch->own;
}

/* Move the flows that wait at one input for a lane; how many could not be moved. */
static int32_t move_input(ibn_sim *sim, int32_t c, int32_t l, int32_t input)
{
    int32_t device = sim->channel[c].src, stuck = 0;
    uint8_t *lft = sim->lft + (int64_t)device * sim->lids;
    for (int32_t p = queues_of(sim, c, l)[input].head; p != IBN_NONE; p = sim->packet[p].next) {
        int32_t lid = sim->packet[p].lid;
        if (sim->at_port[device * 256 + lft[lid]] != c)
            continue; /* moved already */
        uint64_t number = ibn_number(ibn_key(sim->options.seed, 7, (uint64_t)device), (uint64_t)sim->picks++);
        int32_t other = other_port(sim, device, lid, c, number);
        stuck += other == IBN_NONE;
        for (int port = 1; other != IBN_NONE && port < 256; port++) {
            if (sim->at_port[device * 256 + port] == other) {
                lft[lid] = (uint8_t)port;
                ibn_sim_note(sim, LOG_REROUTED, device, lid, port, l);
                break;
            }
        }
    }
    return stuck;
}

/* This switch got its own number back: it moves the flows between the two ports, and lets packets go. */
static void be_master(ibn_sim *sim, int32_t lane_in, int32_t l)
{
    int32_t c = l / sim->vls, input = sim->channel[lane_in / sim->vls].in_index;
    ibn_sim_note(sim, LOG_MASTER, l, lane_in, sim->watch[l].own, sim->channel[c].src);
    if (move_input(sim, c, l, input) && sim->options.no_alternative)
        for (int32_t other = 0; other < sim->channel[c].inputs; other++)
            if (other != input)
                move_input(sim, c, l, other);
    sim->lane[l].pass = (int16_t)sim->options.release_packets;
    sim->lane[l].pass_input = (int16_t)input;
    sim->watch[l].suspected = 0;
    sim->watch[l].episode++;
    ibn_sim_note(sim, LOG_RELEASED, l, lane_in, sim->options.release_packets, 0);
    ibn_touch(sim, c);
}

/* What a message makes of one lane: it joins the round, is chosen (then 1), or takes the smaller number over. */
static int hear(ibn_sim *sim, int32_t lane_in, int32_t l, int step, uint32_t received, int32_t round)
{
    ibn_watch *watch = &sim->watch[l];
    if (!ibn_sim_still_suspected(sim, l))
        return 0;
    if (!step && watch->round < round)
        ibn_sim_draw(sim, l, round); /* what was heard in earlier rounds is forgotten */
    if (watch->round != round)
        return 0;
    if (step == 1 && watch->own == received && ibn_sim_wants(sim, lane_in, l)) {
        be_master(sim, lane_in, l);
        return 1;
    }
    if (step == 2 && watch->spuid > received) {
        watch->spuid = received;
        ibn_sim_note(sim, LOG_REPLACED, l, received, lane_in, 0);
    }
    return 0;
}

/* A message arrives: the smallest number on the way round wins.
 *
 * Rounds are not in the paper.  A port that stands still behind the loop, not on it, may have the smallest number: that
 * never comes back, and nobody is chosen.  So after some messages without an end every port draws again. */
void ibn_sim_loop_clcm(ibn_sim *sim, int32_t message)
{
    int32_t lane_in = sim->clcm[message].lane, device = sim->channel[lane_in / sim->vls].dst;
    int32_t round = sim->clcm[message].index;
    uint32_t received = sim->clcm[message].spuid;
    ibn_sim_drop_clcm(sim, message);
    for (int step = 0; step < 3; step++) {
        for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
            int32_t c = sim->out_channel[i];
            for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls && sim->breaker[c] == BREAKER_LOOP; l++)
                if (hear(sim, lane_in, l, step, received, round))
                    return;
        }
    }
}
