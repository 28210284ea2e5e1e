/* Adaptive routing: choose the VC on which a packet continues. */
#include "simulate/internal/adaptive.h"

/* Return whether the next free room on a channel is reserved; a mark is void once its packet has taken another path. */
int ibn_av_marked(const ibn_adaptive *sim, int32_t c)
{
    const ibn_mark *mark = &sim->channel[c].mark;
    return mark->until > sim->now
           && (ibn_av_serial(sim, ibn_av_shown(sim, mark->from)) == mark->packet
               || ibn_av_serial(sim, sim->device[sim->channel[c].src].spare) == mark->packet);
}

/* Return whether the next free room on a channel is reserved for a packet other than p. */
int ibn_av_for_other(const ibn_adaptive *sim, int32_t c, int32_t p)
{
    return ibn_av_marked(sim, c) && sim->channel[c].mark.packet != ibn_av_serial(sim, p);
}

/* Return the VC with the most credits among `best` and the VCs of channel c on VLs below `vls`; IBN_NONE if packet p
 * fits none.  Ties go to the earlier VC. */
int32_t ibn_av_better(const ibn_adaptive *sim, int32_t best, int32_t c, int32_t vls, int32_t p)
{
    int32_t most = best == IBN_NONE ? sim->packet[p].blocks - 1 : sim->vc[best].credits;
    for (int32_t l = c * sim->vls; l < c * sim->vls + vls; l++) {
        if (sim->vc[l].credits > most) {
            most = sim->vc[l].credits;
            best = l;
        }
    }
    return best;
}

/* Return whether a packet arrived by an escape VC from another switch. */
static int on_escape(const ibn_adaptive *sim, int32_t from)
{
    return from != IBN_NONE && sim->vc[from].vl >= sim->options.adaptive_vls
           && sim->channel[sim->vc[from].channel].from_switch;
}

/* Return whether a packet has to stay on escape VCs. */
int ibn_av_only_escape(const ibn_adaptive *sim, int32_t from)
{
    return sim->options.stay && on_escape(sim, from);
}

/* Return the escape VC of a packet at switch s by the tables, and set *sl to its SL there.
 *
 * A packet on an escape VC keeps its SL and in-port; another one is treated as if it came from a CA of the switch. */
int32_t ibn_av_escape(const ibn_adaptive *sim, int32_t p, int32_t from, int32_t s, uint8_t *sl)
{
    const ibn_packet *packet = &sim->packet[p];
    int stays = on_escape(sim, from), port = sim->lft[(int64_t)s * sim->lids + packet->lid];
    int in = stays ? sim->channel[sim->vc[from].channel].dst_port : sim->enter_port[s];
    *sl = stays ? packet->sl : sim->enter_sl[(int64_t)s * sim->lids + packet->lid];
    int64_t row = sim->sl2vl_ports ? ((int64_t)s * sim->sl2vl_ports + in) * sim->sl2vl_ports + port : 0;
    return sim->at_port[s * 256 + port] * sim->vls + sim->options.adaptive_vls + sim->sl2vl[row * 16 + *sl];
}

/* Return the VC on which a packet at a switch can continue now, or IBN_NONE.
 *
 * from: the VC that holds the packet, or IBN_NONE if it is in the spare buffer.  Ties between VCs with equal credits go
 * to the first channel, counted from a start that rotates with every packet the switch sends. */
int32_t ibn_av_choose(const ibn_adaptive *sim, int32_t p, int32_t from)
{
    const ibn_packet *packet = &sim->packet[p];
    int32_t s = sim->channel[packet->channel].dst, best = IBN_NONE, count;
    if (sim->lid_switch[packet->lid] == s) {
        int32_t c = sim->lid_channel[packet->lid];
        return sim->channel[c].busy > sim->now ? IBN_NONE : ibn_av_better(sim, IBN_NONE, c, sim->vls, p);
    }
    const int32_t *way = ibn_av_ways(sim, s, p, &count);
    int32_t start = (int32_t)(sim->device[s].sends % (uint32_t)count);
    for (int32_t i = 0; i < count && !ibn_av_only_escape(sim, from); i++) {
        int32_t c = way[start + i < count ? start + i : start + i - count];
        if (sim->channel[c].busy <= sim->now && !ibn_av_for_other(sim, c, p))
            best = ibn_av_better(sim, best, c, sim->options.adaptive_vls, p);
    }
    if (best != IBN_NONE || sim->options.scheme != SCHEME_ESCAPE)
        return best;
    uint8_t sl;
    int32_t l = ibn_av_escape(sim, p, from, s, &sl);
    int fits = sim->channel[sim->vc[l].channel].busy <= sim->now && sim->vc[l].credits >= packet->blocks;
    return fits ? l : IBN_NONE;
}

/* Return the channel that the holder of the token takes now, or IBN_NONE: to its CA, or to a switch with a free spare
 * buffer. */
int32_t ibn_av_choose_saved(const ibn_adaptive *sim, int32_t p, int32_t s)
{
    int32_t count;
    if (sim->lid_switch[sim->packet[p].lid] == s) {
        int32_t c = sim->lid_channel[sim->packet[p].lid];
        return sim->channel[c].busy > sim->now ? IBN_NONE : c;
    }
    const int32_t *way = ibn_av_ways(sim, s, p, &count);
    int32_t start = (int32_t)(sim->device[s].sends % (uint32_t)count);
    for (int32_t i = 0; i < count; i++) {
        int32_t c = way[(start + i) % count];
        if (sim->channel[c].busy <= sim->now && sim->device[sim->channel[c].dst].spare_state == SPARE_FREE)
            return c;
    }
    return IBN_NONE;
}
