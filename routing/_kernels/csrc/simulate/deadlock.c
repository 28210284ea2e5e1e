/* Deadlock Breaker: a message that returns to a switch has found a credit loop.
 *
 * It then goes around the loop again and enlarges each buffer on it by one packet for a limited time. */
#include "simulate/internal/queue.h"

/* Let VC l serve only the input of VC lane_in for a limited time, and enlarge the buffer of lane_in by one packet. */
static void rule(ibn_sim *sim, int32_t lane_in, int32_t l)
{
    int32_t c = l / sim->vls, from = lane_in / sim->vls;
    ibn_watch *watch = &sim->watch[lane_in];
    if (sim->vc[l].only != IBN_NONE || watch->extra)
        return; /* a rule is in force here already */
    watch->extra = sim->extra[from];
    sim->vc[l].only = sim->channel[from].in_index;
    sim->vc[lane_in].buffer += watch->extra;
    ibn_give_back(sim, from, lane_in, watch->extra, sim->now, 0);
    ibn_sim_note(sim, LOG_RULE, l, lane_in, watch->extra, 0);
    ibn_at(sim, sim->now + sim->release[c], EV_RULE_END, l, lane_in);
    ibn_touch(sim, c);
}

/* End a rule: take the extra room back.  If the sender has used it, its credits become negative. */
void ibn_sim_rule_end(ibn_sim *sim, int32_t l, int32_t lane_in)
{
    ibn_watch *watch = &sim->watch[lane_in];
    sim->vc[l].only = IBN_NONE;
    sim->vc[lane_in].buffer -= watch->extra;
    ibn_give_back(sim, lane_in / sim->vls, lane_in, -watch->extra, sim->now, 0);
    watch->extra = 0;
    ibn_sim_note(sim, LOG_RULE_END, l, lane_in, 0, 0);
    ibn_touch(sim, l / sim->vls);
}

/* Return a random suspected VC for which packets of lane_in are queued, or IBN_NONE (reservoir sampling). */
static int32_t next_egress(ibn_sim *sim, int32_t device, int32_t lane_in)
{
    int32_t chosen = IBN_NONE;
    uint64_t found = 0, key = ibn_key(sim->options.seed, 8, (uint64_t)device);
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t c = sim->out_channel[i];
        for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls && sim->breaker[c] == BREAKER_DEADLOCK; l++) {
            if (!ibn_sim_still_suspected(sim, l) || !ibn_sim_wants(sim, lane_in, l))
                continue;
            found++;
            if (found == 1 || ((ibn_number(key, (uint64_t)sim->picks++) >> 32) * found) >> 32 == 0)
                chosen = l;
        }
    }
    return chosen;
}

/* Second pass around the loop: apply a rule here, then send the message on until its last entry. */
static void release(ibn_sim *sim, int32_t message, int32_t lane_in)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t l = clcm->egress[clcm->index];
    rule(sim, lane_in, l);
    if (++clcm->index < clcm->count)
        ibn_sim_send_clcm(sim, message, l);
    else
        ibn_sim_drop_clcm(sim, message);
}

/* Handle a Deadlock Breaker message that reached a switch.
 *
 * If the message has visited this switch before, a loop is found and the second pass begins.  Otherwise the switch adds
 * an entry and forwards the message by a suspected VC. */
void ibn_sim_deadlock_clcm(ibn_sim *sim, int32_t message)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t lane_in = clcm->vc, device = sim->channel[lane_in / sim->vls].dst, at = 0;
    uint32_t own = ibn_sim_switch_id(sim, device);
    if (clcm->phase) {
        release(sim, message, lane_in);
        return;
    }
    while (at < clcm->count && clcm->spuids[at] != own)
        at++;
    if (at < clcm->count) {
        int32_t l = clcm->egress[at];
        if (!ibn_sim_still_suspected(sim, l) || !ibn_sim_wants(sim, lane_in, l)) {
            ibn_sim_drop_clcm(sim, message);
            return;
        }
        clcm->phase = 1;
        clcm->index = at;
        ibn_sim_note(sim, LOG_FOUND, l, lane_in, clcm->count - at, device);
        release(sim, message, lane_in);
        return;
    }
    int32_t l = clcm->count < IBN_CLCM_PORTS ? next_egress(sim, device, lane_in) : IBN_NONE;
    if (l == IBN_NONE) {
        ibn_sim_drop_clcm(sim, message);
        return;
    }
    clcm->spuids[clcm->count] = own;
    clcm->egress[clcm->count++] = l;
    clcm->index = clcm->count;
    ibn_sim_send_clcm(sim, message, l);
}
