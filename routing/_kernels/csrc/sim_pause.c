/* Pauses (IEEE 802.1Qbb) instead of credits: a buffer that fills up to one threshold stops its sender, until it has
 * emptied down to another.
 *
 * An open lane has more credits than it can use, a stopped one fewer than none, so that arbitration asks for credits
 * alone.  reserve undoes what is added, and buffer + reserve is the room that there is. */
#include "internal/sim.h"

#define ENDLESS (1 << 24)

void ibn_sim_open(ibn_sim *sim)
{
    for (int64_t l = 0; l < sim->lanes; l++) {
        sim->lane[l].buffer += ENDLESS;
        sim->lane[l].fccl += ENDLESS;
        sim->lane[l].reserve = -ENDLESS;
    }
}

/* Of a packet that leaves, all counts until its tail has left. */
static int32_t inside(const ibn_lane *lane)
{
    return lane->held + lane->returning;
}

/* What is inside a buffer has changed. */
void ibn_sim_look_at(ibn_sim *sim, int32_t l)
{
    if (!sim->watch[l].looked) {
        sim->watch[l].looked = 1;
        sim->looked[sim->looks++] = l;
    }
}

/* The receiver's word is numbered, and the last one counts: the odd ones tell the sender to stop. */
static void tell(ibn_sim *sim, int32_t l)
{
    ibn_at(sim, sim->now + sim->channel[l / sim->vls].wire, EV_PAUSE, l, ++sim->watch[l].told);
}

/* When all heads of a tick have arrived, and its tails are still there: which buffers are too full? */
void ibn_sim_look_full(ibn_sim *sim)
{
    for (int32_t i = 0; i < sim->looks; i++)
        if (!(sim->watch[sim->looked[i]].told & 1) && inside(&sim->lane[sim->looked[i]]) >= sim->options.xoff)
            tell(sim, sim->looked[i]);
}

/* When the tails have gone: which are empty enough again? */
void ibn_sim_look_empty(ibn_sim *sim)
{
    for (int32_t i = 0; i < sim->looks; i++) {
        int32_t l = sim->looked[i];
        sim->watch[l].looked = 0;
        if ((sim->watch[l].told & 1) && inside(&sim->lane[l]) <= sim->options.xon)
            tell(sim, l);
    }
    sim->looks = 0;
}

/* The sender is told. */
void ibn_sim_pause(ibn_sim *sim, int32_t l, int32_t word)
{
    ibn_lane *lane = &sim->lane[l];
    if (word < sim->watch[l].heard)
        return; /* both came in the same tick */
    sim->watch[l].heard = word;
    int32_t change = (word & 1 ? ENDLESS : -ENDLESS) - lane->reserve;
    lane->reserve += change;
    lane->buffer -= change;
    lane->fccl -= (uint32_t)change;
    if (lane->waiting && sim->channel[l / sim->vls].busy <= sim->now)
        ibn_touch(sim, l / sim->vls);
}

/* Is the sender of a lane free to go on, or will it be told so by itself? */
int ibn_sim_may_resume(const ibn_sim *sim, int32_t l)
{
    return sim->lane[l].reserve < 0 || !(sim->watch[l].told & 1) || sim->lane[l].held <= sim->options.xon;
}
