/* Loop Breaker: the ports of a credit loop elect a master, and the master resolves the loop.
 *
 * Each suspected VC draws a random identifier.  The VC with the smallest identifier on the loop becomes the master.
 * The master moves flows to other shortest paths, and sends packets without credits. */
#include "simulate/internal/sim.h"

/* Choose at random a channel of a switch on a shortest path to a LID, other than channel `except`.  The link of the
 * channel must be up.  Return IBN_NONE if there is no such channel. */
static int32_t other_port(const ibn_sim *sim, int32_t device, int32_t lid, int32_t except, uint64_t number)
{
    int32_t last_switch = sim->lid_switch[lid], found = 0, choice[256];
    if (last_switch < 0 || last_switch == device)
        return IBN_NONE;
    int far = sim->distance[(int64_t)device * sim->switches + last_switch];
    for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
        int32_t c = sim->out_channel[i];
        if (c != except && sim->channel[c].to_switch && sim->channel[c].busy != IBN_NEVER
            && sim->distance[(int64_t)sim->channel[c].dst * sim->switches + last_switch] + 1 == far)
            choice[found++] = c;
    }
    return found ? choice[((number >> 32) * (uint64_t)found) >> 32] : IBN_NONE;
}

/* Return the queues of VC l, which belongs to channel c.  Each input has its own queue. */
static const ibn_fifo *queues_of(const ibn_sim *sim, int32_t c, int32_t l)
{
    return &sim->queue[sim->channel[c].queues + (l - c * sim->vls) * sim->channel[c].inputs];
}

/* Return 1 if VC l has an input whose queued packets can all take another shortest path, else 0.  The input must come
 * from another switch, and must have at least one packet queued for VC l. */
static int can_reroute(const ibn_sim *sim, int32_t l)
{
    int32_t c = l / sim->vls;
    const ibn_fifo *queue = queues_of(sim, c, l);
    for (int32_t input = 0; input < sim->channel[c].inputs; input++) {
        int32_t p = queue[input].head;
        if (p == IBN_NONE || !sim->channel[sim->packet[p].channel].from_switch)
            continue;
        while (p != IBN_NONE && other_port(sim, sim->channel[c].src, sim->packet[p].lid, c, 0) != IBN_NONE)
            p = sim->packet[p].next;
        if (p == IBN_NONE)
            return 1;
    }
    return 0;
}

/* Let suspected VC l draw a random identifier, and begin election round number `round`.  The VC sends the identifier in
 * its control messages. */
void ibn_simulate_draw(ibn_sim *sim, int32_t l, int32_t round)
{
    ibn_watch *watch = &sim->watch[l];
    uint64_t number = ibn_simulate_number(ibn_simulate_key(sim->options.seed, 5, (uint64_t)l), (uint64_t)round) >> 32;
    watch->round = round;
    watch->sends = 0;
    watch->own = (uint32_t)number % (UINT32_MAX - 1);
    if (sim->breaker[l / sim->vls] == BREAKER_LOOP && !sim->options.no_alternative && !can_reroute(sim, l))
        /* This VC cannot move packets to other paths, so it must not become the master.  The smallest identifier wins
         * the election.  So this VC gets the largest possible identifier, and only passes on the identifiers of other
         * VCs. */
        watch->own = UINT32_MAX;
    watch->spuid = watch->own;
}

/* Change the LFT entries for the LIDs of all packets that an input has queued for VC l, so that later packets to these
 * LIDs take another shortest path.  Return the number of queued packets for which no other shortest path exists. */
static int32_t move_input(ibn_sim *sim, int32_t c, int32_t l, int32_t input)
{
    int32_t device = sim->channel[c].src, stuck = 0;
    uint8_t *lft = sim->lft + (int64_t)device * sim->lids;
    for (int32_t p = queues_of(sim, c, l)[input].head; p != IBN_NONE; p = sim->packet[p].next) {
        int32_t lid = sim->packet[p].lid;
        if (sim->at_port[device * 256 + lft[lid]] != c)
            continue; /* An earlier packet of the queue had this LID, so its LFT entry has been changed already. */
        uint64_t number =
            ibn_simulate_number(ibn_simulate_key(sim->options.seed, 7, (uint64_t)device), (uint64_t)sim->picks++);
        int32_t other = other_port(sim, device, lid, c, number);
        stuck += other == IBN_NONE;
        for (int port = 1; other != IBN_NONE && port < 256; port++) {
            if (sim->at_port[device * 256 + port] == other) {
                lft[lid] = (uint8_t)port;
                ibn_simulate_note(sim, LOG_REROUTED, device, lid, port, l);
                break;
            }
        }
    }
    return stuck;
}

/* Let VC l act as the master of a loop.  The identifier of VC l has gone around the loop, and has come back over VC
 * vc_in.
 *
 * Some packets that came over the channel of vc_in are queued for VC l.  LFT entries change, so that later packets to
 * the same LIDs take other paths.  A limited number of packets from the channel of vc_in may leave over VC l without
 * credits. */
static void be_master(ibn_sim *sim, int32_t vc_in, int32_t l)
{
    int32_t c = l / sim->vls, input = sim->channel[vc_in / sim->vls].in_index;
    ibn_simulate_note(sim, LOG_MASTER, l, vc_in, sim->watch[l].own, sim->channel[c].src);
    if (move_input(sim, c, l, input) && sim->options.no_alternative)
        for (int32_t other = 0; other < sim->channel[c].inputs; other++)
            if (other != input)
                move_input(sim, c, l, other);
    sim->vc[l].pass = (int16_t)sim->options.release_packets;
    sim->vc[l].pass_input = (int16_t)input;
    sim->watch[l].suspected = 0;
    sim->watch[l].episode++;
    ibn_simulate_note(sim, LOG_RELEASED, l, vc_in, sim->options.release_packets, 0);
    ibn_simulate_touch(sim, c);
}

/* Carry out one step in the handling of a received identifier, for suspected VC l of the switch.  Return 1 if VC l
 * becomes the master, else 0.
 *
 * The caller carries out three steps, each of them for all VCs.
 * Step 0: join the election round of the message.
 * Step 1: become the master if the VC's own identifier has returned.
 * Step 2: adopt the received identifier if it is smaller than all identifiers that the VC knows. */
static int hear(ibn_sim *sim, int32_t vc_in, int32_t l, int step, uint32_t received, int32_t round)
{
    ibn_watch *watch = &sim->watch[l];
    if (!ibn_simulate_still_suspected(sim, l))
        return 0;
    if (!step && watch->round < round)
        /* Drawing a new identifier also drops the identifiers that the VC has received in earlier rounds. */
        ibn_simulate_draw(sim, l, round);
    if (watch->round != round)
        return 0;
    if (step == 1 && watch->own == received && ibn_simulate_wants(sim, vc_in, l)) {
        be_master(sim, vc_in, l);
        return 1;
    }
    if (step == 2 && watch->spuid > received) {
        watch->spuid = received;
        ibn_simulate_note(sim, LOG_REPLACED, l, received, vc_in, 0);
    }
    return 0;
}

/* Handle a control message of Loop Breaker that has reached a switch.  The smallest identifier on the loop wins the
 * election.
 *
 * The published protocol has no election rounds.  Without rounds, the smallest identifier may belong to a port that
 * waits for the loop without being on the loop.  Such an identifier never returns to its port, so that no master is
 * elected.  Therefore ports draw new identifiers after a number of messages, which begins a new round. */
void ibn_simulate_loop_clcm(ibn_sim *sim, int32_t message)
{
    int32_t vc_in = sim->clcm[message].vc, device = sim->channel[vc_in / sim->vls].dst;
    int32_t round = sim->clcm[message].index;
    uint32_t received = sim->clcm[message].spuid;
    ibn_simulate_drop_clcm(sim, message);
    for (int step = 0; step < 3; step++) {
        for (int32_t i = sim->out_first[device]; i < sim->out_first[device + 1]; i++) {
            int32_t c = sim->out_channel[i];
            for (int32_t l = c * sim->vls; l < (c + 1) * sim->vls && sim->breaker[c] == BREAKER_LOOP; l++)
                if (hear(sim, vc_in, l, step, received, round))
                    return;
        }
    }
}
