/* Choice of the packet that a channel sends, with ARBITER_CROSSBAR: the channel serves the crossbar inputs in
 * cyclic order, whatever VL their packets leave on.
 *
 * Each input of the switch has n crossbar inputs, where n is the speedup or the number of VLs, whichever is
 * smaller.  If the speedup is 0 (no limit), n is the number of VLs.  Queue q of the input belongs to its crossbar
 * input q mod n. */
#include "simulate/internal/arbiter.h"

/* The crossbar input and the queue from which a packet comes.  For a packet of a CA, they are the flow and 0. */
typedef struct {
    /* number of the crossbar input; the numbers run over all inputs of the switch */
    int32_t number,
        /* number of the packet's queue in its input.  If the input has a single queue (FIFO) for each VL, this is the
         * VL on which the packet arrived.  Otherwise it is the VL on which the packet leaves. */
        queue;
    uint8_t *next_queue; /* the queue that the channel tries first when it next searches this crossbar input */
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

/* Return the turn of packet p at the channel: a number that is smaller for packets that are served earlier.  The
 * order of the crossbar inputs counts first, and then the order of the queues of one crossbar input.  Both orders
 * are cyclic, and begin after the crossbar input and the queue of the packet that was sent last. */
static int32_t turn_of(const ibn_sim *sim, const ibn_channel *channel, int32_t p, int32_t vl, int32_t input)
{
    crossbar_input_of from = crossbar_input(sim, channel, p, vl, input);
    int32_t turn = from.number - channel->next_crossbar_input, ahead = from.queue - *from.next_queue;
    turn += turn < 0 ? channel->inputs * crossbar_inputs(sim) : 0;
    return turn * sim->vls + (ahead < 0 ? ahead + sim->vls : ahead);
}

/* Replace the candidate `best` by a packet that an input has queued on a VL, if the packet's turn is smaller.  Packets
 * whose turn is at most `after` are skipped, because the caller has already examined them.
 *
 * If inputs have a single queue (FIFO) for each VL, only the first packet of such a queue is in an output queue.  Then
 * any two packets in an output queue come from different queues of the input, so every one of them is a candidate.
 * Otherwise, only the first packet of the output queue is a candidate. */
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
 * If a packet lacks credits, no packet with a later turn may leave on the same VL.  Otherwise smaller packets could
 * overtake the packet without end.  Loop Breaker may allow packets of one input to leave without credits.  Other
 * packets do not block these packets. */
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

/* Let the next search of a channel begin at the crossbar input after that of a packet that is sent now.  Within the
 * packet's crossbar input, let the next search begin at the queue after the packet's queue. */
void ibn_simulate_end_turn(ibn_sim *sim, ibn_channel *channel, const ibn_candidate *sent)
{
    crossbar_input_of from = crossbar_input(sim, channel, sent->p, sent->vl, sent->input);
    channel->next_crossbar_input = from.number + 1;
    *from.next_queue = (uint8_t)(from.queue + 1);
}
