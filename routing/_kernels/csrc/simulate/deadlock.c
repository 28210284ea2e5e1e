/* Deadlock Breaker: if a control message returns to a port that it has already left, it has found a credit loop.
 *
 * The message then goes around the loop a second time, and sets a rule at each switch of the loop.  A rule gives a
 * buffer room for one more packet for a limited time, so that the packets of the loop can advance. */
#include "simulate/internal/queue.h"

/* Set a rule at VC l.  For a limited time, VC l serves only the input of VC vc_in, and the buffer of vc_in has room for
 * one more packet.
 *
 * The added room ends first, and VC l serves all inputs again only later.  The reason is the rule of the next switch of
 * the loop.  It begins and ends later, and adds room to the buffer of VC l.  Until it ends, packets of other inputs
 * must not occupy this added room.  If they occupied it in every buffer of the loop, the next deadlock would be
 * permanent. */
static void rule(ibn_sim *sim, int32_t vc_in, int32_t l)
{
    int32_t c = l / sim->vls, from = vc_in / sim->vls;
    ibn_watch *watch = &sim->watch[vc_in];
    if (sim->vc[l].only != IBN_NONE || watch->extra)
        return; /* A rule that is already in force at VC l or VC vc_in is not changed. */
    watch->extra = sim->extra[from];
    sim->vc[l].only = sim->channel[from].in_index;
    sim->vc[vc_in].buffer += watch->extra;
    ibn_simulate_give_back(sim, from, vc_in, watch->extra, sim->now, 0);
    ibn_simulate_note(sim, LOG_RULE, l, vc_in, watch->extra, 0);
    int64_t end = sim->now + sim->release[c];
    ibn_simulate_at(sim, end, EV_RULE_END, l, vc_in);
    end += 2 * sim->channel[c].wire + sim->options.control_delay + sim->options.fcp_period;
    ibn_simulate_at(sim, end, EV_RULE_END, l, IBN_NONE);
    ibn_simulate_touch(sim, c);
}

/* End one of the two effects of a rule at VC l.
 *
 * First effect: vc_in is a VC.  Remove the room that the rule has added to the buffer of VC vc_in.  If packets still
 * occupy this room, the credits of the sender become negative.
 *
 * Second effect, which ends later: vc_in is IBN_NONE.  Let VC l serve all inputs again. */
void ibn_simulate_rule_end(ibn_sim *sim, int32_t l, int32_t vc_in)
{
    if (vc_in == IBN_NONE) {
        sim->vc[l].only = IBN_NONE;
        ibn_simulate_note(sim, LOG_RULE_END, l, 0, 0, 0);
        ibn_simulate_touch(sim, l / sim->vls);
        return;
    }
    ibn_watch *watch = &sim->watch[vc_in];
    sim->vc[vc_in].buffer -= watch->extra;
    ibn_simulate_give_back(sim, vc_in / sim->vls, vc_in, -watch->extra, sim->now, 0);
    watch->extra = 0;
}

/* Choose at random a suspected VC by which a switch sends.  Packets from VC vc_in must be queued for the chosen VC.
 * The VCs that meet these conditions have equal probability (reservoir sampling).  Return IBN_NONE if there is none. */
static int32_t next_egress(ibn_sim *sim, int32_t device, int32_t vc_in)
{
    int32_t chosen = IBN_NONE;
    uint64_t found = 0, key = ibn_simulate_key(sim->options.seed, 8, (uint64_t)device);
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t c = sim->out_channel[i];
        for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls && sim->breaker[c] == BREAKER_DEADLOCK; l++) {
            if (!ibn_simulate_still_suspected(sim, l) || !ibn_simulate_wants(sim, vc_in, l))
                continue;
            found++;
            if (found == 1 || ((ibn_simulate_number(key, (uint64_t)sim->picks++) >> 32) * found) >> 32 == 0)
                chosen = l;
        }
    }
    return chosen;
}

/* Handle a control message that goes around a loop a second time: set a rule at this switch, and send the message on.
 * The message ends when it has visited all switches of the loop. */
static void release(ibn_sim *sim, int32_t message, int32_t vc_in)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t l = clcm->egress[clcm->index];
    rule(sim, vc_in, l);
    if (++clcm->index < clcm->count)
        ibn_simulate_send_clcm(sim, message, l);
    else
        ibn_simulate_drop_clcm(sim, message);
}

/* Return the index of the first entry of a control message that closes a loop, or IBN_NONE if no entry does.  The
 * entries are the VCs over which switches have sent the message.
 *
 * An entry closes a loop if three conditions hold:
 * - The VC of the entry leaves the switch that the message has reached.
 * - This VC is still suspected.
 * - Packets that came by the message's last VC are queued for the VC of the entry.
 *
 * A loop may visit a switch several times.  So the search continues if an entry of this switch does not close a
 * loop. */
static int32_t closing_entry(const ibn_sim *sim, const ibn_clcm *clcm)
{
    int32_t device = sim->channel[clcm->vc / sim->vls].dst;
    for (int32_t at = 0; at < clcm->count; at++) {
        int32_t l = clcm->egress[at];
        if (sim->channel[l / sim->vls].src == device && ibn_simulate_still_suspected(sim, l)
            && ibn_simulate_wants(sim, clcm->vc, l))
            return at;
    }
    return IBN_NONE;
}

/* Handle a control message of Deadlock Breaker that has reached a switch.
 *
 * If the message has closed a loop, it goes around the loop a second time to set rules.  Otherwise, the switch adds a
 * suspected VC to the message, and sends the message on over this VC. */
void ibn_simulate_deadlock_clcm(ibn_sim *sim, int32_t message)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t vc_in = clcm->vc, device = sim->channel[vc_in / sim->vls].dst;
    int32_t at = clcm->phase ? IBN_NONE : closing_entry(sim, clcm);
    if (at != IBN_NONE) {
        clcm->phase = 1;
        clcm->index = at;
        ibn_simulate_note(sim, LOG_FOUND, clcm->egress[at], vc_in, clcm->count - at, device);
    }
    if (clcm->phase) {
        release(sim, message, vc_in);
        return;
    }
    int32_t l = clcm->count < IBN_CLCM_PORTS ? next_egress(sim, device, vc_in) : IBN_NONE;
    if (l == IBN_NONE) {
        ibn_simulate_drop_clcm(sim, message);
        return;
    }
    clcm->egress[clcm->count++] = l;
    clcm->index = clcm->count;
    ibn_simulate_send_clcm(sim, message, l);
}
