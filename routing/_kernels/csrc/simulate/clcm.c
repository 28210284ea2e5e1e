/* Functions for both deadlock breakers: query the state of a suspected VC, and send a control message. */
#include "simulate/internal/sim.h"

#define CLCM_BYTES 64
#define CLCM_ENTRY_BYTES 8

/* Return whether VC l is suspected, has had packets queued during the whole detection time, and has sent none in this
 * time. */
int ibn_simulate_still_suspected(const ibn_sim *sim, int32_t l)
{
    int64_t before = sim->now - sim->detect[l / sim->vls];
    const ibn_vc *vc = &sim->vc[l];
    return sim->watch[l].suspected && vc->waiting && sim->watch[l].since <= before && vc->sent <= before;
}

/* Return whether a packet in the input buffer of VC vc_in is queued to leave on VC vc_out. */
int ibn_simulate_wants(const ibn_sim *sim, int32_t vc_in, int32_t vc_out)
{
    int32_t c = vc_out / sim->vls, input = sim->channel[vc_in / sim->vls].in_index;
    const ibn_channel *channel = &sim->channel[c];
    int32_t p = sim->queue[channel->queues + (vc_out - c * sim->vls) * channel->inputs + input].head;
    while (p != IBN_NONE && sim->packet[p].vc != vc_in)
        p = sim->packet[p].next;
    return p != IBN_NONE;
}

/* Send a control message over VC l.  It arrives after the delay of the cable and the processing time of a switch. */
void ibn_simulate_send_clcm(ibn_sim *sim, int32_t message, int32_t l)
{
    ibn_clcm *clcm = &sim->clcm[message];
    int32_t c = l / sim->vls;
    clcm->vc = l;
    sim->counters[c].control += CLCM_BYTES + CLCM_ENTRY_BYTES * clcm->count;
    ibn_simulate_note(sim, LOG_CLCM, l, clcm->spuid, clcm->phase, clcm->index);
    ibn_simulate_at(sim, sim->now + sim->channel[c].wire + sim->options.control_delay, EV_CONTROL, message, 0);
}
