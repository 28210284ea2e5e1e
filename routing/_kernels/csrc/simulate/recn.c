/* RECN-like set-aside queues: packets of a congestion tree use a separate VL.  Ports assign this VL only for the time
 * of the congestion.
 *
 * A channel is congested if its sender, a switch, has many packets queued for it although the receiver has room.  This
 * channel is the root of a congestion tree, and all packets whose paths lead through it belong to the tree.  The switch
 * notifies the devices that send it packets of the tree.  A notified device assigns one of its set-aside VLs to the
 * tree, so that packets of the tree do not take the buffers of other packets.  When many packets wait for a set-aside
 * VL, the devices further upstream are notified as well, up to the CAs.  A set-aside VL without packets is released.
 *
 * Source: regional explicit congestion notification (RECN) as it is generally described; see
 * routing/simulate/mechanisms/recn.py. */
#include "simulate/internal/mechanism.h"

#include <stdlib.h>

/* State of all set-aside VLs. */
typedef struct {
    int64_t threshold, /* smallest number of queued packets at which a channel is congested */
        spread,        /* smallest number of packets queued for a set-aside VL at which the devices that send these
                        * packets are notified, too */
        notice,        /* ticks until a notification arrives */
        release;       /* ticks between two checks of an assigned VL; a check releases the VL if it has no packets */
    int32_t count,     /* number of set-aside VLs, which are the last VLs */
        base,          /* first set-aside VL */
        used,          /* number of set-aside VLs that are assigned at present, at all channels together */
        most;          /* largest value of `used` so far */
    /* [channels][count] for each set-aside VL of each channel: root (the congested channel) of the congestion tree to
     * which the VL is assigned; IBN_NONE: the VL is not assigned */
    int32_t *root;
    int64_t assigned,  /* number of times that a set-aside VL was assigned to a congestion tree */
        refused,       /* number of notifications for which no set-aside VL was free */
        packets;       /* number of times that a packet was queued for a set-aside VL instead of its usual VL */
} recn;

static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    recn *state = self->state;
    state->count = (int32_t)numbers[0];
    state->base = sim->vls - state->count;
    state->threshold = numbers[1];
    state->spread = numbers[2];
    state->notice = numbers[3];
    state->release = numbers[4];
    int64_t vls = (int64_t)sim->channels * state->count;
    state->root = malloc((size_t)(vls + 1) * sizeof *state->root);
    if (!state->root)
        return 1;
    for (int64_t i = 0; i < vls; i++)
        state->root[i] = IBN_NONE;
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    free(((recn *)self->state)->root);
}

/* Hook: if packet p belongs to a congestion tree that has a set-aside VL of channel c, return this VL.  Otherwise
 * return VL `usual`.
 *
 * If packet p belongs to several trees, the function returns the VL of the tree whose root comes last on the path of
 * the packet. */
static int32_t vl(ibn_sim *sim, ibn_attached *self, int32_t p, int32_t c, int32_t usual)
{
    recn *state = self->state;
    const int32_t *roots = &state->root[c * state->count];
    int32_t device = sim->channel[c].dst, lid = sim->packet[p].lid, found = usual;
    /* Tables that are being changed can have a forwarding loop, so the number of hops is limited. */
    for (int32_t hops = 0; device < sim->switches && hops < sim->switches; hops++) {
        int32_t out = sim->at_port[device * 256 + sim->lft[(int64_t)device * sim->lids + lid]];
        if (out == IBN_NONE)
            break;
        for (int32_t k = 0; k < state->count; k++)
            found = roots[k] == out ? state->base + k : found;
        device = sim->far_end[out].device;
    }
    state->packets += found != usual;
    return found;
}

/* Hook: if many packets are queued for VC l, notify the device that has sent packet p to the switch. */
static void queued(ibn_sim *sim, ibn_attached *self, int32_t p, int32_t l)
{
    recn *state = self->state;
    const ibn_vc *vc = &sim->vc[l];
    int32_t c = l / sim->vls, k = l % sim->vls - state->base;
    int32_t root = k < 0 ? c : state->root[c * state->count + k];
    /* A channel without credits is not a root, because the packets wait for a channel further downstream. */
    if (k < 0 && ibn_simulate_credits(vc) < sim->packet[p].blocks)
        return;
    if (root != IBN_NONE && vc->waiting >= (k < 0 ? state->threshold : state->spread))
        ibn_simulate_timer(sim, self, sim->now + state->notice, sim->packet[p].channel, root);
}

/* Assign a free set-aside VL of channel c to the congestion tree with channel `root` as its root, unless the tree
 * already has a VL of channel c. */
static void assign(ibn_sim *sim, ibn_attached *self, int32_t c, int32_t root)
{
    recn *state = self->state;
    int32_t *roots = &state->root[c * state->count], unused = IBN_NONE;
    for (int32_t k = state->count - 1; k >= 0; k--) {
        if (roots[k] == root)
            return;
        if (roots[k] == IBN_NONE)
            unused = k;
    }
    if (unused == IBN_NONE) {
        state->refused++;
        return;
    }
    roots[unused] = root;
    state->assigned++;
    state->used++;
    state->most = state->used > state->most ? state->used : state->most;
    ibn_simulate_timer(sim, self, sim->now + state->release, c, -1 - unused);
}

/* Hook: handle a notification for channel c (value >= 0), or a check of one of its set-aside VLs (value < 0).
 *
 * In a notification, `value` is the root of the congestion tree.  A check concerns set-aside VL -1 - `value`, counted
 * from 0.  It releases the VL if no packet is queued for the VL, on the wire, or in its buffer. */
static void timer(ibn_sim *sim, ibn_attached *self, int32_t c, int32_t value)
{
    recn *state = self->state;
    if (value >= 0) {
        assign(sim, self, c, value);
        return;
    }
    int32_t k = -1 - value;
    const ibn_vc *vc = &sim->vc[c * sim->vls + state->base + k];
    if (vc->waiting || vc->held || vc->flying) {
        ibn_simulate_timer(sim, self, sim->now + state->release, c, value);
        return;
    }
    state->root[c * state->count + k] = IBN_NONE;
    state->used--;
}

/* Write five results: the fields `assigned`, `refused`, `used`, `most` and `packets` of the state. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const recn *state = self->state;
    if (most >= 5) {
        *numbers++ = state->assigned;
        *numbers++ = state->refused;
        *numbers++ = state->used;
        *numbers++ = state->most;
        *numbers++ = state->packets;
    }
    return 5;
}

IBN_MECHANISM(recn) = {
    .name = "recn", .bytes = sizeof(recn), .attach = attach, .detach = detach, .vl = vl, .queued = queued,
    .timer = timer, .read = read,
};
