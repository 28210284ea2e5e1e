/* Choice of the packet that a channel sends, with ARBITER_CROSSBAR: the channel serves the inputs of the crossbar in
 * cyclic order, on all VLs together.
 *
 * With the option speedup, each input of the switch has that number of crossbar inputs, but at most one for each VL.
 * The queues of the input are divided among its crossbar inputs. */
#include "simulate/internal/arbiter.h"


/* A crossbar input of a switch, or a flow of a CA, with ARBITER_CROSSBAR. */
typedef struct {
    int32_t number, /* number of the crossbar input, among those of all inputs */
        queue;      /* queue of the input that has the packet: the VL on which the packet arrived if an input has a
                     * single queue (FIFO) for each VL, else the VL on which the packet leaves; 0 for a flow */
    /* the queue of the crossbar input at which the channel begins its next search */
    uint8_t *next_queue;
} crossbar_input_of;

/* Return the number of crossbar inputs that each input has. */
static int32_t crossbar_inputs(const ibn_sim *sim)
{
    return sim->options.speedup && sim->options.speedup < sim->vls ? sim->options.speedup : sim->vls;
}

/* Return the crossbar input of packet p, which an input has queued for a VL of the channel. */
static crossbar_input_of crossbar_input(const ibn_sim *sim, const ibn_channel *channel, int32_t p, int32_t vl,
                                        int32_t input)
{
    int32_t each = crossbar_inputs(sim), arrived = sim->packet[p].vc;
    int32_t queue = arrived == IBN_NONE ? 0 : sim->options.single_fifo ? arrived % sim->vls : vl;
    int32_t number = input * each + queue % each;
    return (crossbar_input_of){number, queue, &sim->next_queue[channel->queues + number]};
}

/* Return the position of packet p in the order in which the channel serves packets.  Crossbar inputs come in cyclic
 * order, and the queues of one crossbar input come in cyclic order. */
static int32_t turn_of(const ibn_sim *sim, const ibn_channel *channel, int32_t p, int32_t vl, int32_t input)
{
    crossbar_input_of from = crossbar_input(sim, channel, p, vl, input);
    int32_t turn = from.number - channel->next_crossbar_input, ahead = from.queue - *from.next_queue;
    turn += turn < 0 ? channel->inputs * crossbar_inputs(sim) : 0;
    return turn * sim->vls + (ahead < 0 ? ahead + sim->vls : ahead);
}

/* Replace the candidate `best` by a packet that an input has queued on a VL, if the packet's turn comes earlier.
 * Packets whose turn is not above `after` are left out.
 *
 * A single queue (FIFO) puts only its first packet into an output queue.  So each packet in an output queue is the
 * first packet of another queue of the input. */
static void consider(const ibn_sim *sim, const ibn_channel *channel, int32_t vl, int32_t input, int32_t after,
                     ibn_candidate *best)
{
    int32_t p = ibn_simulate_queue(sim, channel, vl, input)->head;
    for (; p != IBN_NONE; p = sim->options.single_fifo ? sim->packet[p].next : IBN_NONE) {
        int32_t turn = turn_of(sim, channel, p, vl, input);
        if (turn > after && turn < best->turn)
            *best = (ibn_candidate){p, vl, input, turn};
    }
}

/* Return the first candidate of channel c whose turn is above `after`.  Its field `p` is IBN_NONE if there is none. */
static ibn_candidate candidate_after(const ibn_sim *sim, int32_t c, int32_t after)
{
    const ibn_channel *channel = &sim->channel[c];
    ibn_candidate best = {IBN_NONE, 0, 0, INT32_MAX};
    for (unsigned vls = channel->vls; vls; vls &= vls - 1) {
        int32_t vl = __builtin_ctz(vls);
        const uint64_t *mask = ibn_simulate_mask(sim, c * sim->vls + vl);
        for (int32_t w = 0; w < sim->words; w++)
            for (uint64_t word = mask[w]; word; word &= word - 1)
                consider(sim, channel, vl, w * 64 + __builtin_ctzll(word), after, &best);
    }
    return best;
}

/* Choose the packet that channel c sends next.  The field `p` of the result is IBN_NONE if no packet can be sent.
 *
 * A packet that lacks credits blocks its VL, so that smaller packets cannot overtake it for ever.  If Loop Breaker
 * allows packets of an input to leave without credits, other packets of the VL do not block these packets. */
ibn_candidate ibn_simulate_choose_by_crossbar_input(ibn_sim *sim, int32_t c)
{
    unsigned blocked = 0;
    ibn_candidate next = candidate_after(sim, c, -1);
    for (; next.p != IBN_NONE; next = candidate_after(sim, c, next.turn)) {
        int32_t l = c * sim->vls + next.vl;
        const ibn_vc *vc = &sim->vc[l];
        int passes = vc->pass && vc->pass_input == next.input;
        if ((blocked >> next.vl) & 1 || (vc->only != IBN_NONE && vc->only != next.input))
            continue;
        if (!passes && sim->packet[next.p].blocks > ibn_simulate_credits(vc)) {
            blocked |= vc->pass ? 0 : 1u << next.vl;
            continue;
        }
        int allowed = passes || ibn_simulate_mechanisms_allow(sim, next.p, l);
        if (allowed && ibn_simulate_crossbar_allows(sim, c, next.input))
            break;
    }
    return next;
}

/* Let the next search of a channel begin after the crossbar input and the queue of a packet that is sent now. */
void ibn_simulate_end_turn(ibn_sim *sim, ibn_channel *channel, const ibn_candidate *sent)
{
    crossbar_input_of from = crossbar_input(sim, channel, sent->p, sent->vl, sent->input);
    channel->next_crossbar_input = from.number + 1;
    *from.next_queue = (uint8_t)(from.queue + 1);
}
