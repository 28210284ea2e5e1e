/* Adaptive routing: choose the virtual channel (VC) on which a packet continues from a switch. */
#include "simulate/internal/adaptive.h"

/* Return whether a mark reserves the next free buffer space on channel c for one packet.  A ping sets the mark.  The
 * mark has no effect once this packet has left by another channel. */
int ibn_simulate_adaptive_marked(const ibn_sim *sim, int32_t c)
{
    const ibn_mark *mark = &sim->adaptive->mark[c];
    if (mark->until <= sim->now)
        return 0;
    int32_t head = ibn_simulate_adaptive_shown(sim, mark->from);
    int32_t spare = sim->adaptive->device[sim->channel[c].src].spare[0];
    return ibn_simulate_adaptive_serial(sim, head) == mark->packet
           || ibn_simulate_adaptive_serial(sim, spare) == mark->packet;
}

/* Return whether a mark reserves the next free buffer space on channel c for a packet other than p. */
int ibn_simulate_adaptive_for_other(const ibn_sim *sim, int32_t c, int32_t p)
{
    return ibn_simulate_adaptive_marked(sim, c)
           && sim->adaptive->mark[c].packet != ibn_simulate_adaptive_serial(sim, p);
}

/* Return the lowest VL on which packet p may continue.  In the scheme GROUPS (see adaptive.h), packets keep their VL,
 * so this is the VL that follows from the SL that the source CA has set.  In all other schemes, the lowest VL is 0. */
int32_t ibn_simulate_adaptive_first_vl(const ibn_sim *sim, int32_t p)
{
    return sim->adaptive->scheme == SCHEME_GROUPS ? sim->sl2vl[sim->packet[p].sl] : 0;
}

/* Return the VC with the most credits among VC `best` and the VCs of channel c on VLs 0 to `vls` - 1.  If packets keep
 * their VL (scheme GROUPS), the VC of channel c on the VL of packet p is the only VC that is compared with `best`.
 *
 * If several of these VCs have the most credits, return `best` if it is one of them, otherwise the VC on the lowest VL.
 * If `best` is IBN_NONE and no VC of channel c has enough credits for packet p, return IBN_NONE. */
int32_t ibn_simulate_adaptive_better(const ibn_sim *sim, int32_t best, int32_t c, int32_t vls, int32_t p)
{
    int32_t most = best == IBN_NONE ? sim->packet[p].blocks - 1 : ibn_simulate_credits(&sim->vc[best]);
    int32_t first = ibn_simulate_adaptive_first_vl(sim, p),
            end = sim->adaptive->scheme == SCHEME_GROUPS ? first + 1 : vls;
    for (int32_t l = c * sim->vls + first; l < c * sim->vls + end; l++) {
        if (ibn_simulate_credits(&sim->vc[l]) > most) {
            most = ibn_simulate_credits(&sim->vc[l]);
            best = l;
        }
    }
    return best;
}

/* Return whether VC `from` is on an escape VL and on a channel from another switch.  The packets in its queue came to
 * their switch on this escape VL. */
static int on_escape(const ibn_sim *sim, int32_t from)
{
    return from != IBN_NONE && from % sim->vls >= sim->adaptive->adaptive_vls
           && ibn_simulate_channel_of(sim, from)->from_switch;
}

/* Return whether packets in the queue of VC `from` may continue only on escape VLs. */
int ibn_simulate_adaptive_only_escape(const ibn_sim *sim, int32_t from)
{
    return sim->adaptive->stay && on_escape(sim, from);
}

/* Return the VC of the escape path by which the tables route packet p from switch s.  *sl receives the SL with which
 * the packet leaves this switch.  Return IBN_NONE if the link of the VC is down.
 *
 * If packet p came on an escape VL from another switch, it keeps its SL, and SL2VL uses the in-port of the packet.  Any
 * other packet is treated as if it came from a CA of the switch. */
int32_t ibn_simulate_adaptive_escape(const ibn_sim *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl)
{
    const ibn_packet *packet = &sim->packet[p];
    int stays = on_escape(sim, from), port = sim->lft[(int64_t)s * sim->lids + packet->lid];
    int in = stays ? ibn_simulate_channel_of(sim, from)->dst_port : sim->adaptive->enter_port[s];
    *sl = stays ? packet->sl : sim->adaptive->enter_sl[(int64_t)s * sim->lids + packet->lid];
    int64_t row = sim->sl2vl_ports ? ((int64_t)s * sim->sl2vl_ports + in) * sim->sl2vl_ports + port : 0;
    int32_t c = sim->at_port[s * 256 + port];
    return c == IBN_NONE ? IBN_NONE : c * sim->vls + (int32_t)sim->adaptive->adaptive_vls + sim->sl2vl[row * 16 + *sl];
}

/* Return whether packet p, which was sent to a CA, is for another CA (scheme RELAY).  In this case, the CA has to send
 * the packet again. */
int ibn_simulate_adaptive_is_relayed(const ibn_sim *sim, int32_t p)
{
    const ibn_packet *packet = &sim->packet[p];
    return sim->adaptive->scheme == SCHEME_RELAY && sim->adaptive->lid_channel[packet->lid] != packet->channel;
}

/* Find a CA of switch s that can receive packet p now, in order to send it again later (scheme RELAY).  Packet p is the
 * head packet of VC `from`.  Return the VC to the CA.  Return IBN_NONE if no CA can receive the packet, or if the
 * packet is not a suspect. */
static int32_t to_relay(const ibn_sim *sim, int32_t p, int32_t from, int32_t s)
{
    if (!ibn_simulate_adaptive_is_suspect(sim, p, from))
        return IBN_NONE;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++) {
        int free = !sim->channel[c].to_switch && sim->channel[c].busy <= sim->now;
        int32_t l = free ? ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->vls, p) : IBN_NONE;
        if (l != IBN_NONE)
            return l;
    }
    return IBN_NONE;
}

/* Return the VC on which a packet can leave its switch now, or IBN_NONE.  `from` is the VC whose queue holds the
 * packet, or IBN_NONE if the packet is in a spare buffer.
 *
 * Choose the VC with the most credits.  If VCs have equal credits, choose the VC that is found first.  After every
 * packet that the switch sends, the search begins one channel later than before.
 *
 * If the packet cannot leave on a VC for adaptive routing, try a VC to another CA, which sends the packet again later
 * (scheme RELAY), or the VC of the escape path (scheme ESCAPE). */
int32_t ibn_simulate_adaptive_choose(const ibn_sim *sim, int32_t p, int32_t from)
{
    const ibn_packet *packet = &sim->packet[p];
    int32_t s = sim->channel[packet->channel].dst, best = IBN_NONE, count;
    if (sim->lid_switch[packet->lid] == s) {
        int32_t c = sim->adaptive->lid_channel[packet->lid];
        return sim->channel[c].busy > sim->now ? IBN_NONE : ibn_simulate_adaptive_better(sim, IBN_NONE, c, sim->vls, p);
    }
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    int32_t start = (int32_t)(sim->adaptive->device[s].sends % (uint32_t)count);
    for (int32_t i = 0; i < count && !ibn_simulate_adaptive_only_escape(sim, from); i++) {
        int32_t c = choice[start + i < count ? start + i : start + i - count];
        if (sim->channel[c].busy <= sim->now && !ibn_simulate_adaptive_for_other(sim, c, p))
            best = ibn_simulate_adaptive_better(sim, best, c, sim->adaptive->adaptive_vls, p);
    }
    if (best == IBN_NONE && sim->adaptive->scheme == SCHEME_RELAY)
        return to_relay(sim, p, from, s);
    if (best != IBN_NONE || sim->adaptive->scheme != SCHEME_ESCAPE)
        return best;
    uint8_t sl;
    int32_t l = ibn_simulate_adaptive_escape(sim, p, from, s, &sl);
    int fits = l != IBN_NONE && ibn_simulate_channel_of(sim, l)->busy <= sim->now
               && ibn_simulate_credits(&sim->vc[l]) >= packet->blocks;
    return fits ? l : IBN_NONE;
}

/* Return the channel by which the packet that holds the token can leave switch s now, or IBN_NONE.  The channel leads
 * to the packet's CA, or to a switch whose spare buffer is free. */
int32_t ibn_simulate_adaptive_choose_saved(const ibn_sim *sim, int32_t p, int32_t s)
{
    int32_t count;
    if (sim->lid_switch[sim->packet[p].lid] == s) {
        int32_t c = sim->adaptive->lid_channel[sim->packet[p].lid];
        return sim->channel[c].busy > sim->now ? IBN_NONE : c;
    }
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    int32_t start = (int32_t)(sim->adaptive->device[s].sends % (uint32_t)count);
    for (int32_t i = 0; i < count; i++) {
        int32_t c = choice[(start + i) % count];
        if (sim->channel[c].busy <= sim->now && sim->adaptive->device[sim->channel[c].dst].spare_state[0] == SPARE_FREE)
            return c;
    }
    return IBN_NONE;
}
