/* Recovery from deadlock with adaptive routing: by a token, or by pings and bubbles.
 *
 * With the token, one blocked packet at a time moves to its destination through the spare buffers of switches.
 *
 * A ping is a message that follows packets which wait for each other, in order to find a cycle.  One packet of the
 * cycle then moves to a spare buffer.  The room that it leaves (the bubble) lets the other packets of the cycle
 * advance.
 *
 * Source: Pinkston, Deadlock characterization and resolution in interconnection networks, section 13.3.1 D. */
#include "simulate/internal/adaptive.h"

#include <stdlib.h>

/* Add a ping to the list of unused pings. */
static void free_ping(ibn_adaptive *model, int32_t ping)
{
    model->ping[ping].next = model->ping_free;
    model->ping_free = ping;
}

/* Return an unused ping.  Return IBN_NONE if memory runs out. */
static int32_t new_ping(ibn_sim *sim)
{
    ibn_adaptive *model = sim->adaptive;
    if (model->ping_free == IBN_NONE) {
        int32_t made = model->pings_made, room = made ? 2 * made : 1024;
        ibn_ping *larger = realloc(model->ping, (size_t)room * sizeof *larger);
        if (!larger) {
            sim->failed = 1;
            return IBN_NONE;
        }
        model->ping = larger;
        model->pings_made = room;
        for (int32_t n = made; n < room; n++)
            free_ping(model, n);
    }
    int32_t n = model->ping_free;
    model->ping_free = model->ping[n].next;
    return n;
}

/* Return whether the head packet of VC l has waited for the detection time or longer, so that it may be in a
 * deadlock. */
static int stuck(const ibn_sim *sim, int32_t l)
{
    int32_t p = ibn_simulate_adaptive_shown(sim, l);
    return p != IBN_NONE && sim->now - sim->adaptive->input[l].since >= sim->adaptive->detect;
}

/* Handle the arrival of the token at switch s.  Of the head packets that have waited for the detection time or longer,
 * the packet that has waited longest gets the token.  If there is no such packet, the token moves on to the next
 * switch. */
static void token(ibn_sim *sim, int32_t s)
{
    const ibn_input *input = sim->adaptive->input;
    int32_t oldest = IBN_NONE;
    for (int32_t c = sim->out_first[s]; c < sim->out_first[s + 1]; c++) {
        int32_t first = sim->channel[c].reverse * sim->vls;
        for (int32_t l = first; l < first + sim->vls; l++)
            if (stuck(sim, l) && (oldest == IBN_NONE || input[l].since < input[oldest].since))
                oldest = l;
    }
    if (oldest == IBN_NONE) {
        ibn_simulate_at(sim, sim->now + sim->adaptive->step, EV_SIGNAL, s + 1 < sim->switches ? s + 1 : 0, 0);
        return;
    }
    sim->adaptive->holder = ibn_simulate_adaptive_shown(sim, oldest);
    sim->adaptive->seized++;
    ibn_simulate_adaptive_touch(sim, s);
}

/* Return a random number from 0 to count - 1.  Each ping has its own stream of random numbers. */
static int32_t draw(const ibn_sim *sim, ibn_ping *ping, int32_t count)
{
    uint64_t number =
        ibn_simulate_number(ibn_simulate_key(sim->options.seed, 8, (uint64_t)ping->id), (uint64_t)ping->step++) >> 32;
    return (int32_t)((number * (uint64_t)count) >> 32);
}

/* Return whether channel c has enough credits for packet p on some VL, and its link is not down. */
static int has_room(const ibn_sim *sim, int32_t c, int32_t p)
{
    for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls && sim->channel[c].busy != IBN_NEVER; l++)
        if (ibn_simulate_credits(&sim->vc[l]) >= sim->packet[p].blocks)
            return 1;
    return 0;
}

/* Choose at random one of the channels by which packet p may leave switch s.
 *
 * Return IBN_NONE if the packet does not wait for another switch: one of these channels has room for the packet, or
 * switch s is the last switch of the packet's path. */
static int32_t one_ahead(const ibn_sim *sim, int32_t s, int32_t p, ibn_ping *ping)
{
    int32_t count;
    if (sim->lid_switch[sim->packet[p].lid] == s)
        return IBN_NONE;
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    for (int32_t i = 0; i < count; i++)
        if (has_room(sim, choice[i], p))
            return IBN_NONE;
    return choice[draw(sim, ping, count)];
}

/* Return the channel that the ping with identifier `id` has marked for the head packet of VC l, or IBN_NONE. */
static int32_t marked_ahead(const ibn_sim *sim, int32_t l, int64_t id)
{
    int32_t count, p = ibn_simulate_adaptive_shown(sim, l), s = ibn_simulate_channel_of(sim, l)->dst;
    if (p == IBN_NONE || sim->lid_switch[sim->packet[p].lid] == s)
        return IBN_NONE;
    const int32_t *choice = ibn_simulate_adaptive_choices(sim, s, p, &count);
    for (int32_t i = 0; i < count; i++) {
        const ibn_mark *mark = &sim->adaptive->mark[choice[i]];
        if (ibn_simulate_adaptive_marked(sim, choice[i]) && mark->ping == id && mark->from == l)
            return choice[i];
    }
    return IBN_NONE;
}

/* Mark channel c for the head packet of VC l, and send ping `number` along channel c.  `locked` is 1 if the ping has
 * found a cycle, so that no other ping may replace the mark; else 0.  Return 1, because the ping continues. */
static int mark_and_go(ibn_sim *sim, int32_t number, int32_t c, int32_t l, int locked)
{
    int64_t until = sim->now + (locked ? sim->adaptive->hold : sim->adaptive->lasts);
    int64_t packet = ibn_simulate_adaptive_serial(sim, ibn_simulate_adaptive_shown(sim, l));
    sim->adaptive->mark[c] = (ibn_mark){sim->adaptive->ping[number].id, until, packet, l, locked};
    ibn_simulate_at(sim, until, EV_EXPIRE, c, 0);
    ibn_simulate_at(sim, sim->now + sim->channel[c].hop, EV_SIGNAL, c, number);
    return 1;
}

/* Handle a ping that searches for a cycle and has reached VC l.  Return whether the ping continues.
 *
 * The ping marks a channel for which the head packet of VC l waits, and continues along this channel.  If the ping has
 * marked this channel before, it has found a cycle.  In this case, the ping goes around the cycle a second time to lock
 * the marks of the cycle. */
static int trace(ibn_sim *sim, int32_t l, int32_t number)
{
    ibn_ping *ping = &sim->adaptive->ping[number];
    int32_t p = ibn_simulate_adaptive_shown(sim, l),
            ahead = one_ahead(sim, ibn_simulate_channel_of(sim, l)->dst, p, ping);
    if (ahead == IBN_NONE)
        return 0;
    const ibn_mark *mark = &sim->adaptive->mark[ahead];
    int there = ibn_simulate_adaptive_marked(sim, ahead), closes = there && mark->ping == ping->id;
    if (there && (mark->locked || mark->ping > ping->id))
        return 0; /* The ping ends at a channel whose mark is locked or was set by a ping with a larger identifier. */
    if (closes) {
        sim->adaptive->loops++;
        ping->phase = 1;
        ping->closer = l;
        ping->culprit = sim->packet[p].headed;
    }
    return mark_and_go(sim, number, ahead, l, closes);
}

/* Move the head packet of VC l to the spare buffer of its switch, to resolve a cycle.
 *
 * The room that the packet leaves is the bubble.  The bubble moves around the cycle until it reaches the VC for which
 * the packet waits. */
static void shelter(ibn_sim *sim, int32_t l)
{
    const ibn_channel *channel = ibn_simulate_channel_of(sim, l);
    int32_t p = ibn_simulate_adaptive_shown(sim, l), s = channel->dst;
    int64_t length = sim->packet[p].bytes * channel->cost >> IBN_COST_BITS, end = sim->now + (length ? length : 1);
    ibn_simulate_adaptive_take(sim, l, end > sim->packet[p].tail ? end : sim->packet[p].tail);
    sim->packet[p].vc = IBN_NONE;
    sim->adaptive->device[s].spare[0] = p;
    sim->adaptive->device[s].spare_state[0] = SPARE_READY;
    ibn_simulate_adaptive_arm_spare(sim, s, 0);
    sim->adaptive->bubbles++;
    sim->last_move = sim->now;
    ibn_simulate_adaptive_touch(sim, s);
}

/* Handle a ping that goes around a cycle a second time, and lock the next mark of the cycle.  Return whether the ping
 * continues.
 *
 * When the ping returns to the VC where it found the cycle, the head packet of this VC moves to a spare buffer. */
static int lock(ibn_sim *sim, int32_t c, int32_t number)
{
    ibn_ping *ping = &sim->adaptive->ping[number];
    for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls; l++) {
        int32_t ahead = marked_ahead(sim, l, ping->id);
        if (ahead == IBN_NONE)
            continue;
        if (l == ping->closer) {
            if (sim->adaptive->mark[ahead].packet == ping->culprit
                && sim->adaptive->device[sim->channel[c].dst].spare_state[0] == SPARE_FREE)
                shelter(sim, l);
            return 0;
        }
        return mark_and_go(sim, number, ahead, l, 1);
    }
    return 0;
}

/* Choose at random a VC of channel c whose head packet has waited for the detection time or longer.  Return IBN_NONE if
 * the channel has no such VC. */
static int32_t one_stuck(const ibn_sim *sim, int32_t c, ibn_ping *ping)
{
    int32_t found[16], count = 0;
    for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls; l++)
        if (stuck(sim, l))
            found[count++] = l;
    return count ? found[draw(sim, ping, count)] : IBN_NONE;
}

/* Handle the arrival of a ping over channel c.  The ping is lost if the link of the channel is down. */
static void ping_arrives(ibn_sim *sim, int32_t c, int32_t ping)
{
    int goes_on = 0;
    if (sim->adaptive->ping[ping].phase && sim->channel[c].busy != IBN_NEVER) {
        goes_on = lock(sim, c, ping);
    } else if (sim->channel[c].busy != IBN_NEVER) {
        int32_t l = one_stuck(sim, c, &sim->adaptive->ping[ping]);
        goes_on = l != IBN_NONE && trace(sim, l, ping);
    }
    if (!goes_on)
        free_ping(sim->adaptive, ping);
}

/* Handle the arrival of the token or of a ping.  `subject` is the switch that the token reaches, or the channel by
 * which the ping arrives. */
void ibn_simulate_adaptive_signal(ibn_sim *sim, int32_t subject, int32_t ping)
{
    if (sim->adaptive->scheme == SCHEME_TOKEN)
        token(sim, subject);
    else
        ping_arrives(sim, subject, ping);
}

/* Sort the pings that arrive in this tick by channel and identifier.  Their events are sim->later[0] to
 * sim->later[count - 1], which are sorted by channel already. */
void ibn_simulate_adaptive_sort_pings(ibn_sim *sim, int32_t count)
{
    const ibn_ping *ping = sim->adaptive->ping;
    for (int32_t i = 1; i < count; i++) {
        ibn_event event = sim->later[i];
        int32_t at = i;
        for (; at > 0 && sim->later[at - 1].subject == event.subject
               && ping[sim->later[at - 1].value].id > ping[event.value].id; at--)
            sim->later[at] = sim->later[at - 1];
        sim->later[at] = event;
    }
}

/* Let the head packets that have waited for the detection time or longer become suspects.  Packets that came to the
 * switch directly from a CA do not become suspects.
 *
 * A suspect may take a path that other packets may not take: to a CA of its switch (scheme RELAY), by the recovery path
 * (scheme CONCURRENT), or away from its destination (scheme DEFLECT). */
static void mark_suspects(ibn_sim *sim)
{
    for (int32_t l = 0; l < sim->vcs; l++) {
        const ibn_channel *channel = ibn_simulate_channel_of(sim, l);
        if (!channel->to_switch || !channel->from_switch || !stuck(sim, l))
            continue;
        sim->adaptive->input[l].suspect = ibn_simulate_adaptive_serial(sim, ibn_simulate_adaptive_shown(sim, l));
        ibn_simulate_adaptive_touch(sim, channel->dst);
    }
}

/* Send a ping from every queue whose head packet has waited for the detection time or longer.  Queues of packets that
 * came to the switch directly from a CA send no pings.
 *
 * A queue sends at most one ping within the repeat time (`repeat`). */
static void send_pings(ibn_sim *sim)
{
    for (int32_t l = 0; l < sim->vcs; l++) {
        ibn_input *input = &sim->adaptive->input[l];
        const ibn_channel *channel = ibn_simulate_channel_of(sim, l);
        if (!channel->to_switch || !channel->from_switch || !stuck(sim, l) || input->next_ping > sim->now)
            continue;
        int32_t ping = new_ping(sim);
        if (ping == IBN_NONE)
            return;
        uint64_t rank =
            ibn_simulate_number(ibn_simulate_key(sim->options.seed, 7, (uint64_t)l), (uint64_t)sim->now) >> 33;
        sim->adaptive->ping[ping] = (ibn_ping){.id = (int64_t)(rank << 32 | (uint32_t)l)};
        input->next_ping = sim->now + sim->adaptive->repeat;
        sim->adaptive->pings++;
        if (!trace(sim, l, ping))
            free_ping(sim->adaptive, ping);
    }
}

/* Search for packets that have waited for the detection time or longer, and schedule the next search. */
void ibn_simulate_adaptive_sample(ibn_sim *sim)
{
    if (sim->adaptive->scheme == SCHEME_BUBBLE)
        send_pings(sim);
    else
        mark_suspects(sim);
    ibn_simulate_at(sim, sim->now + sim->adaptive->sample, EV_PERIODIC, PERIODIC_SAMPLE, 0);
}
