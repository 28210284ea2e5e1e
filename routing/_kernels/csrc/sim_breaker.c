/* What Loop Breaker and Deadlock Breaker share: suspicion, and control messages on their own lane.
 *
 * Shpiner, Zahavi, Zdornov, Anker, Kadosh: Unlocking Credit Loop Deadlocks, HotNets 2016, section 3. */
#include "internal/sim.h"

#define CLCM_BYTES 64
#define CLCM_ENTRY_BYTES 8

/* The flag is as old as the last sample; the lane may have sent since. */
int ibn_sim_still_suspected(const ibn_sim *sim, int32_t l)
{
    int64_t before = sim->now - sim->detect[l / sim->vls];
    const ibn_lane *lane = &sim->lane[l];
    return sim->watch[l].suspected && lane->waiting && sim->watch[l].since <= before && lane->sent <= before;
}

/* Is a packet from the buffer of one lane waiting for the other? */
int ibn_sim_wants(const ibn_sim *sim, int32_t lane_in, int32_t lane_out)
{
    int32_t c = lane_out / sim->vls, input = sim->channel[lane_in / sim->vls].in_index;
    const ibn_channel *channel = &sim->channel[c];
    int32_t p = sim->queue[channel->queues + (lane_out - c * sim->vls) * channel->inputs + input].head;
    while (p != IBN_NONE && sim->packet[p].lane != lane_in)
        p = sim->packet[p].next;
    return p != IBN_NONE;
}

/* A number that identifies a switch in Deadlock Breaker's messages. */
uint32_t ibn_sim_switch_id(const ibn_sim *sim, int32_t device)
{
    return (uint32_t)(ibn_number(ibn_key(sim->options.seed, 6, (uint64_t)device), 0) >> 32);
}

/* The number that a lane sends of its own in a round. */
void ibn_sim_draw(ibn_sim *sim, int32_t l, int32_t round)
{
    ibn_watch *watch = &sim->watch[l];
    uint64_t number = ibn_number(ibn_key(sim->options.seed, 5, (uint64_t)l), (uint64_t)round) >> 32;
    watch->round = round;
    watch->sends = 0;
    watch->own = (uint32_t)number % (UINT32_MAX - 1);
    if (sim->breaker[l / sim->vls] == BREAKER_LOOP && !sim->options.no_alternative && !ibn_sim_can_reroute(sim, l))
        watch->own = UINT32_MAX; /* passes on what it receives, and is never chosen */
    watch->spuid = watch->own;
}

static void suspect(ibn_sim *sim, int32_t l)
{
    ibn_watch *watch = &sim->watch[l];
    watch->suspected = 1;
    watch->episode++;
    ibn_sim_draw(sim, l, 0);
    ibn_sim_note(sim, LOG_SUSPECTED, l, watch->own, 0, 0);
    ibn_sim_clcm(sim, l, watch->episode);
}

/* Every lane out of a switch that has a breaker: sent nothing, and something was waiting, all the time? */
void ibn_sim_sample(ibn_sim *sim)
{
    for (int32_t c = 0; c < sim->channels; c++) {
        if (sim->breaker[c] == BREAKER_NONE)
            continue;
        for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls; l++) {
            int64_t before = sim->now - sim->detect[c];
            const ibn_lane *lane = &sim->lane[l];
            int stuck = lane->waiting && sim->watch[l].since <= before && lane->sent <= before;
            if (stuck && !sim->watch[l].suspected) {
                suspect(sim, l);
            } else if (!stuck && sim->watch[l].suspected) {
                sim->watch[l].suspected = 0;
                ibn_sim_note(sim, LOG_CLEARED, l, 0, 0, 0);
            }
        }
    }
    ibn_at(sim, sim->now + sim->options.sample_period, EV_SAMPLE, 0, 0);
}

void ibn_sim_send_clcm(ibn_sim *sim, int32_t message, int32_t l)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t c = l / sim->vls;
    clcm->lane = l;
    sim->counters[c].control += CLCM_BYTES + CLCM_ENTRY_BYTES * clcm->count;
    ibn_sim_note(sim, LOG_CLCM, l, clcm->spuid, clcm->phase, clcm->index);
    ibn_at(sim, sim->now + sim->channel[c].wire + sim->options.control_delay, EV_CONTROL, message, 0);
}

/* A suspected lane's port sends its message, and again after a while. */
void ibn_sim_clcm(ibn_sim *sim, int32_t l, int32_t episode)
{
    ibn_watch *watch = &sim->watch[l];
    int32_t c = l / sim->vls;
    if (!watch->suspected || watch->episode != episode)
        return;
    if (sim->options.rounds && watch->sends++ == sim->options.rounds) {
        ibn_sim_draw(sim, l, watch->round + 1);
        ibn_sim_note(sim, LOG_ROUND, l, watch->own, watch->round, 0);
    }
    if (sim->breaker[c] == BREAKER_DEADLOCK || watch->spuid != UINT32_MAX) {
        int32_t m = ibn_sim_new_clcm(sim);
        if (m == IBN_NONE)
            return;
        sim->clcm[m].kind = sim->breaker[c];
        sim->clcm[m].spuid = watch->spuid;
        sim->clcm[m].index = sim->breaker[c] == BREAKER_LOOP ? watch->round : 0;
        ibn_sim_send_clcm(sim, m, l);
    }
    ibn_at(sim, sim->now + sim->repeat[c], EV_CLCM, l, episode);
}

/* A message has reached the other end of its channel. */
void ibn_sim_control(ibn_sim *sim, int32_t message)
{
    const ibn_clcm *clcm = &sim->clcm[message];
    const ibn_channel *channel = &sim->channel[clcm->lane / sim->vls];
    if (!channel->to_switch || channel->busy == IBN_NEVER)
        ibn_sim_drop_clcm(sim, message);
    else if (clcm->kind == BREAKER_LOOP)
        ibn_sim_loop_clcm(sim, message);
    else
        ibn_sim_deadlock_clcm(sim, message);
}
