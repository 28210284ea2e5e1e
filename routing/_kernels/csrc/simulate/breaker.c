/* Common part of Loop Breaker and Deadlock Breaker.  With these protocols, ports detect a credit loop and break it.
 *
 * A VC that makes no progress is suspected of being in a deadlock.  The port of a suspected VC sends control messages.
 * The functions of this file find suspected VCs, send their control messages, and pass each message that arrives to its
 * protocol.
 *
 * Source: Shpiner, Zahavi, Zdornov, Anker, Kadosh: Unlocking Credit Loop Deadlocks, HotNets 2016, section 3. */
#include "simulate/internal/sim.h"

/* Record that VC l is suspected of being in a deadlock, and send its first control message. */
static void suspect(ibn_sim *sim, int32_t l)
{
    ibn_watch *watch = &sim->watch[l];
    watch->suspected = 1;
    watch->episode++;
    ibn_simulate_draw(sim, l, 0);
    ibn_simulate_note(sim, LOG_SUSPECTED, l, watch->own, 0, 0);
    ibn_simulate_clcm(sim, l, watch->episode);
}

/* Find the VCs that are suspected of being in a deadlock, and schedule the next search.  A VC is suspected if packets
 * were queued for it during the whole detection time, but none was sent in this time. */
void ibn_simulate_sample(ibn_sim *sim)
{
    for (int32_t c = 0; c < sim->channels; c++) {
        if (sim->breaker[c] == BREAKER_NONE)
            continue;
        for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls; l++) {
            int64_t before = sim->now - sim->detect[c];
            const ibn_vc *vc = &sim->vc[l];
            int stuck = vc->waiting && sim->watch[l].since <= before && vc->sent <= before;
            if (stuck && !sim->watch[l].suspected) {
                suspect(sim, l);
            } else if (!stuck && sim->watch[l].suspected) {
                sim->watch[l].suspected = 0;
                ibn_simulate_note(sim, LOG_CLEARED, l, 0, 0, 0);
            }
        }
    }
    ibn_simulate_at(sim, sim->now + sim->options.sample_period, EV_PERIODIC, PERIODIC_SAMPLE, 0);
}

/* Send a control message (CLCM) of suspected VC l, and schedule the next control message.  With Loop Breaker, a control
 * message carries the smallest identifier that the VC knows.  The largest possible identifier stands for a VC that must
 * not become the master (see ibn_simulate_draw), so this identifier is not sent.
 *
 * The function handles an event that was scheduled earlier.  ibn_watch.episode is a counter that increases when the VC
 * becomes suspected or the master.  `episode` is its value at the time when the event was scheduled.  If the counter
 * has increased since, the event is out of date and is ignored. */
void ibn_simulate_clcm(ibn_sim *sim, int32_t l, int32_t episode)
{
    ibn_watch *watch = &sim->watch[l];
    int32_t c = l / sim->vls;
    if (!watch->suspected || watch->episode != episode)
        return;
    if (sim->options.rounds && watch->sends++ == sim->options.rounds) {
        ibn_simulate_draw(sim, l, watch->round + 1);
        ibn_simulate_note(sim, LOG_ROUND, l, watch->own, watch->round, 0);
    }
    if (sim->breaker[c] == BREAKER_DEADLOCK || watch->spuid != UINT32_MAX) {
        int32_t m = ibn_simulate_new_clcm(sim);
        if (m == IBN_NONE)
            return;
        sim->clcm[m].kind = sim->breaker[c];
        sim->clcm[m].spuid = watch->spuid;
        sim->clcm[m].index = sim->breaker[c] == BREAKER_LOOP ? watch->round : 0;
        ibn_simulate_send_clcm(sim, m, l);
    }
    ibn_simulate_at(sim, sim->now + sim->repeat[c], EV_CLCM, l, episode);
}

/* Handle a control message that has reached the other end of its channel.  CAs and failed links discard control
 * messages. */
void ibn_simulate_control(ibn_sim *sim, int32_t message)
{
    const ibn_clcm *clcm = &sim->clcm[message];
    const ibn_channel *channel = &sim->channel[clcm->vc / sim->vls];
    if (!channel->to_switch || channel->busy == IBN_NEVER)
        ibn_simulate_drop_clcm(sim, message);
    else if (clcm->kind == BREAKER_LOOP)
        ibn_simulate_loop_clcm(sim, message);
    else
        ibn_simulate_deadlock_clcm(sim, message);
}
