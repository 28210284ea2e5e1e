/* Adaptive switches: lose packets that exceed a lifetime limit, and packets that can leave only by links that are down.
 *
 * A head packet may still leave by one of several ports.  So the longest of the head-of-queue lifetimes of these ports
 * applies to the packet.  If links are down, the packet is lost only if the links of all these ports are down.  A lost
 * packet is counted at one of these ports only: the port with the lowest number. */
#include "simulate/internal/adaptive.h"
#include "simulate/internal/queue.h"

/* Return the channels by which packet p may leave switch s, including the channel to its CA.  *count receives the
 * number of these channels. */
static const int32_t *outputs(const ibn_sim *sim, int32_t s, int32_t p, int32_t *count)
{
    int32_t lid = sim->packet[p].lid;
    *count = 1;
    return sim->lid_switch[lid] == s ? &sim->adaptive->lid_channel[lid]
                                     : ibn_simulate_adaptive_choices(sim, s, p, count);
}

/* Return the tick at which packet p exceeds its head-of-queue lifetime or its switch lifetime.  Packet p has been the
 * head packet of a VC at switch s since tick `since`.  Return IBN_NEVER if no limit applies. */
static int64_t deadline(const ibn_sim *sim, int32_t s, int32_t p, int64_t since)
{
    int32_t count;
    const int32_t *output = outputs(sim, s, p, &count);
    int64_t hoq = sim->hoq[output[0]], lifetime = sim->lifetime[s];
    for (int32_t i = 1; i < count && hoq; i++)
        hoq = !sim->hoq[output[i]] || sim->hoq[output[i]] > hoq ? sim->hoq[output[i]] : hoq;
    int64_t in_queue = hoq ? since + hoq : IBN_NEVER;
    int64_t in_switch = lifetime ? sim->packet[p].ready + lifetime : IBN_NEVER;
    return in_queue < in_switch ? in_queue : in_switch;
}

static int is_down(const ibn_sim *sim, int32_t c)
{
    return c == IBN_NONE || sim->channel[c].busy == IBN_NEVER;
}

/* Return whether the links of all channels by which packet p may leave switch s are down.  The packet is the head
 * packet of VC `from`, or it is in a spare buffer if `from` is IBN_NONE. */
int ibn_simulate_adaptive_is_cut(const ibn_sim *sim, int32_t s, int32_t p, int32_t from)
{
    const ibn_adaptive *model = sim->adaptive;
    int32_t count;
    uint8_t sl;
    if (!model->links_down)
        return 0;
    if (model->scheme == SCHEME_CONCURRENT && from == IBN_NONE && sim->lid_switch[sim->packet[p].lid] != s)
        return is_down(
            sim, ibn_simulate_adaptive_recovery_ahead(sim, p, s, ibn_simulate_adaptive_spare_of(sim, s, p)));
    const int32_t *output = outputs(sim, s, p, &count);
    int only_escape = count && sim->channel[output[0]].to_switch && ibn_simulate_adaptive_only_escape(sim, from);
    for (int32_t i = 0; i < count && !only_escape; i++)
        if (!is_down(sim, output[i]))
            return 0;
    return model->scheme != SCHEME_ESCAPE || !sim->channel[output[0]].to_switch
           || ibn_simulate_adaptive_escape(sim, p, from, s, &sl) == IBN_NONE;
}

/* Schedule a check of VC l, unless a pending check of this VC is due at the same tick or earlier.
 *
 * The check is due at the tick at which the head packet exceeds a lifetime limit.  If the links of all ports that the
 * packet may take are down, the check is due in the next tick.  No limit applies to the packet that holds the token. */
void ibn_simulate_adaptive_schedule_check(ibn_sim *sim, int32_t l)
{
    int32_t p = ibn_simulate_adaptive_shown(sim, l), s = ibn_simulate_channel_of(sim, l)->dst;
    ibn_input *input = &sim->adaptive->input[l];
    if (p == IBN_NONE || s >= sim->switches)
        return;
    int64_t at = p == sim->adaptive->holder ? IBN_NEVER : deadline(sim, s, p, input->since);
    at = at <= sim->now || ibn_simulate_adaptive_is_cut(sim, s, p, l) ? sim->now + 1 : at;
    if (at >= input->check || at == IBN_NEVER)
        return;
    input->check = at;
    ibn_simulate_at(sim, at, EV_HEAD, l, 0);
}

/* Schedule a check of spare buffer k of switch s for the next tick, if the links of all ports that its packet may take
 * are down. */
void ibn_simulate_adaptive_arm_spare(ibn_sim *sim, int32_t s, int32_t k)
{
    const ibn_device *device = &sim->adaptive->device[s];
    if (device->spare_state[k] == SPARE_READY && ibn_simulate_adaptive_is_cut(sim, s, device->spare[k], IBN_NONE))
        ibn_simulate_at(sim, sim->now + 1, EV_HEAD, (int32_t)sim->vcs + k * sim->switches + s, 0);
}

/* Release the token if packet p holds it, because the packet is lost at switch s. */
static void release_token(ibn_sim *sim, int32_t s, int32_t p)
{
    if (p != sim->adaptive->holder)
        return;
    sim->adaptive->holder = IBN_NONE;
    ibn_simulate_at(sim, sim->now + sim->adaptive->step, EV_SIGNAL, s, 0);
}

/* Lose packet p of switch s.  The packet is the head packet of VC `from`, or it is in a spare buffer if `from` is
 * IBN_NONE.  *reason counts the packets that are lost for the same reason. */
static void lose(ibn_sim *sim, int32_t s, int32_t p, int32_t from, int64_t *reason)
{
    int32_t count;
    int64_t tail = sim->packet[p].tail;
    sim->counters[*outputs(sim, s, p, &count)].discards++;
    ++*reason;
    release_token(sim, s, p);
    ibn_simulate_adaptive_leave(sim, p, from, s, tail > sim->now ? tail : sim->now + 1);
    ibn_simulate_gone(sim, p);
    /* A mark for the lost packet has no effect any more, so other packets of the switch may be able to leave. */
    ibn_simulate_adaptive_touch(sim, s);
}

/* Lose the packet in a spare buffer if the links of all ports that the packet may take are down.  `number` is k * S + s
 * for spare buffer k of switch s. */
static void check_spare(ibn_sim *sim, int32_t number)
{
    int32_t s = number % sim->switches, k = number / sim->switches, p = sim->adaptive->device[s].spare[k], count;
    if (sim->adaptive->device[s].spare_state[k] == SPARE_READY && ibn_simulate_adaptive_is_cut(sim, s, p, IBN_NONE))
        lose(sim, s, p, IBN_NONE, &sim->counters[*outputs(sim, s, p, &count)].down);
}

/* Lose the head packet of VC l if it exceeds a lifetime limit, or if the links of all ports that it may take are down.
 * Otherwise schedule the next check.
 *
 * The present check does nothing if a check of VC l at an earlier tick has replaced it.  If l is at least sim->vcs, it
 * stands for a spare buffer instead of a VC: check spare buffer l - sim->vcs (see check_spare). */
void ibn_simulate_adaptive_check(ibn_sim *sim, int32_t l)
{
    if (l >= sim->vcs) {
        check_spare(sim, l - (int32_t)sim->vcs);
        return;
    }
    int32_t p = ibn_simulate_adaptive_shown(sim, l), count;
    const ibn_channel *channel = ibn_simulate_channel_of(sim, l);
    ibn_input *input = &sim->adaptive->input[l];
    if (input->check != sim->now)
        return;
    input->check = IBN_NEVER;
    /* A packet stays for at least one tick after it has become the head packet. */
    if (p == IBN_NONE || input->since == sim->now) {
        ibn_simulate_adaptive_arm(sim, l);
        return;
    }
    int64_t lifetime = sim->lifetime[channel->dst];
    ibn_counters *counters = &sim->counters[*outputs(sim, channel->dst, p, &count)];
    if (ibn_simulate_adaptive_is_cut(sim, channel->dst, p, l)) {
        lose(sim, channel->dst, p, l, &counters->down);
    } else if (p == sim->adaptive->holder || deadline(sim, channel->dst, p, input->since) > sim->now) {
        ibn_simulate_adaptive_arm(sim, l);
    } else if (lifetime && sim->packet[p].ready + lifetime <= sim->now) {
        lose(sim, channel->dst, p, l, &counters->lifetime);
    } else {
        ibn_simulate_note(sim, LOG_HOQ_DROP, l, sim->packet[p].lid, channel->in_index, 1);
        lose(sim, channel->dst, p, l, &counters->hoq);
    }
}

/* Free the spare buffer that is reserved for packet p, which was sent without credits and is lost on its link.  If the
 * packet holds the token, release the token. */
void ibn_simulate_adaptive_lose_saved(ibn_sim *sim, int32_t p)
{
    const ibn_channel *channel = &sim->channel[sim->packet[p].channel];
    if (!channel->to_switch)
        return;
    ibn_device *device = &sim->adaptive->device[channel->dst];
    int k = ibn_simulate_adaptive_spare_of(sim, channel->dst, p);
    device->spare[k] = IBN_NONE;
    device->spare_state[k] = SPARE_LEAVING;
    ibn_simulate_at(sim, sim->now + 1, EV_SPARE, channel->dst, k);
    release_token(sim, channel->src, p);
}

/* Count channel c as down (`down` is 1), or no longer count it as down (`down` is 0).  If channel c has gone down,
 * schedule checks of all head packets of the switch that sends by channel c, and of the packets in the switch's spare
 * buffers. */
void ibn_simulate_adaptive_link(ibn_sim *sim, int32_t c, int down)
{
    int32_t s = sim->channel[c].src;
    sim->adaptive->links_down += down ? 1 : -1;
    if (!down || s >= sim->switches)
        return;
    for (int32_t out = sim->out_first[s]; out < sim->out_first[s + 1]; out++)
        for (int32_t vl = 0; vl < sim->vls; vl++)
            ibn_simulate_adaptive_arm(sim, sim->channel[out].reverse * sim->vls + vl);
    for (int k = 0; k < IBN_SPARES; k++)
        ibn_simulate_adaptive_arm_spare(sim, s, k);
}
