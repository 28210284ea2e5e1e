/* Pauses (IEEE 802.1Qbb) instead of credits.
 *
 * A buffer that fills to the threshold xoff stops its sender.  The sender resumes when the buffer has emptied to the
 * threshold xon.
 *
 * Arbitration tests only credits.  So pauses are expressed by credits: a VC that may send gets more additional credits
 * than it can use, and a paused VC has negative credits.  The field `buffer` includes the additional credits.  The
 * field `reserve` is minus the number of the additional credits, so that buffer + reserve is the real size. */
#include "simulate/internal/sim.h"

#define ENDLESS (1 << 24)

/* Let all VCs send, at the start of a simulation with pauses. */
void ibn_simulate_open(ibn_sim *sim)
{
    for (int64_t l = 0; l < sim->vcs; l++) {
        sim->vc[l].buffer += ENDLESS;
        sim->vc[l].fccl += ENDLESS;
        sim->vc[l].reserve = -ENDLESS;
    }
}

/* Return the number of blocks in the buffer of a VC.  A packet counts with its full size until its tail has left. */
static int32_t inside(const ibn_vc *vc)
{
    return vc->held + vc->returning;
}

/* Record that the occupancy of a VC's buffer has changed.  The occupancy is compared with the thresholds in this
 * tick. */
void ibn_simulate_look_at(ibn_sim *sim, int32_t l)
{
    if (!sim->watch[l].to_check) {
        sim->watch[l].to_check = 1;
        sim->to_check[sim->checks++] = l;
    }
}

/* Send the next pause or resume message from the receiver of VC l to the sender.
 *
 * Messages are numbered.  Odd messages stop the sender, and even messages let the sender resume.  Only the message with
 * the highest number counts. */
static void send_message(ibn_sim *sim, int32_t l)
{
    ibn_simulate_at(sim, sim->now + sim->channel[l / sim->vls].wire, EV_PAUSE, l, ++sim->watch[l].last_message);
}

/* Pause the senders whose buffers have filled to the threshold xoff.  In each tick, the function is called after heads
 * have arrived and before tails leave. */
void ibn_simulate_look_full(ibn_sim *sim)
{
    for (int32_t i = 0; i < sim->checks; i++)
        if (!(sim->watch[sim->to_check[i]].last_message & 1) && inside(&sim->vc[sim->to_check[i]]) >= sim->options.xoff)
            send_message(sim, sim->to_check[i]);
}

/* Let the senders resume whose buffers have emptied to the threshold xon.  In each tick, the function is called after
 * tails have left. */
void ibn_simulate_look_empty(ibn_sim *sim)
{
    for (int32_t i = 0; i < sim->checks; i++) {
        int32_t l = sim->to_check[i];
        sim->watch[l].to_check = 0;
        if ((sim->watch[l].last_message & 1) && inside(&sim->vc[l]) <= sim->options.xon)
            send_message(sim, l);
    }
    sim->checks = 0;
}

/* Apply pause or resume message number `word` at the sender of VC l. */
void ibn_simulate_pause(ibn_sim *sim, int32_t l, int32_t word)
{
    ibn_vc *vc = &sim->vc[l];
    if (word < sim->watch[l].heard)
        return; /* A message with a higher number has arrived in this tick, and was handled earlier. */
    sim->watch[l].heard = word;
    int32_t change = (word & 1 ? ENDLESS : -ENDLESS) - vc->reserve;
    vc->reserve += change;
    vc->buffer -= change;
    vc->fccl -= (uint32_t)change;
    if (vc->waiting && sim->channel[l / sim->vls].busy <= sim->now)
        ibn_simulate_touch(sim, l / sim->vls);
}

/* Return 1 if the sender of VC l may send now, or is certain to get permission later, even if no further packet
 * begins to move.  Permission is certain in two cases: a resume message is on the wire, or the buffer will reach the
 * threshold xon when the packets that are leaving have left. */
int ibn_simulate_may_resume(const ibn_sim *sim, int32_t l)
{
    return sim->vc[l].reserve < 0 || !(sim->watch[l].last_message & 1) || sim->vc[l].held <= sim->options.xon;
}
