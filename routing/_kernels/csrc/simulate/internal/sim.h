/* State of a packet simulation; see docs/simulation.md for the model.
 *
 * A virtual channel (VC) is one VL of one channel: the sender's credits, and the input buffer of that VL at the
 * receiver.  Identifiers call a VC `vc` or `l`; VC l belongs to channel l / vls.  A block is 64 bytes. */
#ifndef IBNUE_INTERNAL_SIM_H
#define IBNUE_INTERNAL_SIM_H

#include <stdint.h>

#include "simulate/sim.h"

enum {
    EV_FREE,    /* subject: channel that has finished sending a packet */
    EV_CREDIT,  /* subject: VC, value: blocks of credit that reach its sender */
    EV_FREED,   /* subject: VC, value: blocks freed in its buffer that the sender does not know of yet */
    EV_ARRIVE,  /* subject: packet whose head may be forwarded */
    EV_DELIVER, /* subject: packet whose tail has reached a CA */
    EV_INJECT,  /* subject: flow whose next message is due or whose window is open again */
    EV_EXPOSE,  /* subject: VC whose single FIFO offers its next packet */
    EV_PAUSE,   /* subject: VC, value: number of the pause message that reaches its sender */
    EV_LATER,   /* kinds from here on are handled after the others of the tick, sorted by kind, subject and value */
    EV_HEAD = EV_LATER, /* subject: VC with a head packet that may have exceeded a lifetime limit */
    EV_UNSTALL,         /* subject: VC that stops dropping all packets */
    EV_RULE_END,        /* Deadlock Breaker's rule ends; subject: output VC, value: input VC */
    EV_CONTROL,         /* subject: control message that reaches the other end of its channel */
    EV_CLCM,            /* subject: VC that sends its next control message, value: its episode */
    EV_SAMPLE,          /* breakers look for VCs that make no progress */
    EV_FCP,             /* all receivers send flow control packets */
    EV_KINDS
};

enum { ARBITER_ROUND_ROBIN, ARBITER_ARRIVAL, ARBITER_RANDOM };
enum { BREAKER_NONE, BREAKER_LOOP, BREAKER_DEADLOCK };
enum { PROCESS_PERSISTENT, PROCESS_POISSON, PROCESS_BERNOULLI, PROCESS_BURSTY, PROCESS_TRACE };
enum { PATTERN_CYCLE, PATTERN_UNIFORM, PATTERN_HOTSPOT };
enum {
    LOG_HOQ_DROP,
    LOG_STALLED,
    LOG_UNSTALLED,
    LOG_SUSPECTED,
    LOG_CLEARED,
    LOG_CLCM,
    LOG_REPLACED,
    LOG_MASTER,
    LOG_REROUTED,
    LOG_RELEASED,
    LOG_OVERRUN,
    LOG_FOUND,
    LOG_RULE,
    LOG_RULE_END,
    LOG_ROUND,
    LOG_FAILED,
    LOG_RESTORED
};
enum { STOP_TIME, STOP_EMPTY, STOP_STANDSTILL, STOP_EVENTS };

/* The compiler makes a copy of such a function for each constant argument. */
#define IBN_SPECIALIZED static inline __attribute__((always_inline))

#define IBN_COST_BITS 20
#define IBN_NONE (-1)
#define IBN_BATCH 16 /* entries of a batch, one of them the link to the previous batch; a batch fills two cache lines */
#define IBN_NEVER INT64_MAX
#define IBN_SLOT 16          /* kinds of events that a slot of the wheel has room for: a cache line */
#define IBN_CLCM_PORTS 64    /* most entries of a control message */
#define IBN_LOG_WIDTH 6      /* columns of the log: tick, kind, four numbers */
#define IBN_LOG_MOST 4000000 /* rows of the log; later rows are only counted */

typedef struct {
    int32_t subject, value; /* see the kinds of events */
} ibn_event;

/* An event too far in the future for the timing wheel. */
typedef struct {
    int64_t time;
    int32_t kind;
    ibn_event event;
} ibn_distant;

typedef struct {
    /* Ticks.  born: its message was due; entered: it began to leave its CA; ready: its head could be forwarded at the
     * present device; tail: its tail reaches the present device; headed: it became the head of its queue (with adaptive
     * routing: its serial number). */
    int64_t born, entered, ready, tail, headed;
    /* next: packet behind it in its queue or in the free list; channel, vc: the channel and VC by which it arrived,
     * or IBN_NONE at its source */
    int32_t next, flow, channel, vc;
    uint16_t bytes, blocks, lid; /* lid: destination */
    uint8_t sl, last;            /* last: it is the last packet of its message */
} ibn_packet;                    /* a cache line */

typedef struct {
    int32_t head, tail; /* packets; head is IBN_NONE if the queue is empty */
} ibn_fifo;

typedef struct {
    uint32_t fctbs, fccl; /* blocks sent, limit of blocks that may be sent; both wrap around */
    /* blocks in the receiver's buffer that have not begun to leave; on the way to it; freed there, but the credit has
     * not reached the sender */
    int32_t held, flying, returning;
    int32_t buffer;           /* present size of the buffer in blocks: credits + held + flying + returning */
    int32_t waiting;          /* packets queued at the sender for this VC */
    int32_t next_input;       /* input whose turn is next in round robin */
    uint64_t mask;            /* bit per input with a packet queued, if one word suffices for all inputs */
    int64_t sent;             /* tick at which the tail of the last packet left, -1: none was sent */
    int32_t only;             /* the only input that is served (Deadlock Breaker), or IBN_NONE */
    int16_t pass, pass_input; /* number of packets that may be sent without credit, and their input */
    int32_t reserve;          /* blocks by which the buffer may exceed its size; see pause.c */
    /* whether every packet for this VC is dropped; heads dropped since the last packet was sent */
    uint16_t stalled, dropped_in_row;
} ibn_vc; /* a cache line */

/* The part of a VC's state that only drops, pauses, breakers and single FIFOs use. */
typedef struct {
    uint32_t own, spuid; /* identifiers of a suspected VC: the number it drew; the smallest it drew or received */
    int64_t since;       /* tick since which packets have been queued for the VC; kept only if sim->aging */
    /* episode: number of the suspicion (events of earlier ones are ignored); unsent: blocks freed that the next flow
     * control packet reports; extra: blocks that a rule of Deadlock Breaker has added to the buffer; round: of Loop
     * Breaker's election; sends: control messages sent in the round */
    int32_t episode, unsent, extra, round, sends;
    /* suspected: at the last sample; timed: an EV_HEAD event is pending; busy_input: single FIFO, a packet of this
     * buffer is in an output queue or is leaving it */
    uint8_t suspected, timed, busy_input;
    uint8_t looked;      /* the VC is in sim->looked */
    int32_t told, heard; /* pauses: numbers of the last message that the receiver sent, and that the sender received */
    ibn_fifo hidden;     /* single FIFO: packets behind the one in an output queue */
} ibn_watch;

typedef struct {
    int64_t busy; /* the channel can send from this tick on; IBN_NEVER: its link is down */
    /* ticks per byte x 2^IBN_COST_BITS; sent; ticks during which packets were queued and it did not send */
    int64_t cost, bytes, packets, wait;
    /* carry: fraction of a tick left over from the last packet, x 2^IBN_COST_BITS; queues: its first queue in
     * sim->queue, where it has [vls][inputs] */
    int32_t carry, queues, inputs;
    int32_t wire, hop; /* ticks to its other end; ticks until a head can be forwarded there, 0 if it leads to a CA */
    uint16_t vls;      /* bit per VL with packets queued */
    uint8_t called, next_vl; /* whether an EV_FREE event is pending; VL whose turn is next */
    /* a cache line so far; the next one is seldom used */
    /* src, dst: devices; reverse: the channel of the opposite direction; in_index: number of this channel among the
     * inputs of dst; high_left, low_left: blocks left of the weight of the present entries of the VL arbitration
     * tables; high_limit_left: blocks that high entries may send before low ones get a packet */
    int32_t src, dst, reverse, in_index, high_left, low_left, high_limit_left;
    /* high_at, low_at: present entries; arbiter: row of sim->vlarb; from_switch, to_switch: whether src and dst are
     * switches; dst_port: port number at dst; ages: whether its packets have a lifetime limit */
    uint8_t high_at, low_at, arbiter, from_switch, to_switch, dst_port, ages;
    uint8_t spare[29];
} ibn_channel;

/* The part of a channel that forwarding needs about a packet that arrived by it: dst, reverse, in_index, dst_port. */
typedef struct {
    int32_t device, reverse, in_index, port;
} ibn_far_end;

/* Counters of a channel for rare events, in packets except `control`. */
typedef struct {
    /* discards: packets dropped at this output; hoq, lifetime, stalled: of these, by head-of-queue lifetime, switch
     * lifetime and VL stall; overrun: arrived without room in the buffer; relay: arrived at a switch without a route
     * for them, or at a CA that does not own the LID; control: bytes of breakers' messages sent; down: lost because the
     * link went down or is down */
    int64_t discards, hoq, lifetime, stalled, overrun, relay, control, down;
} ibn_counters;

typedef struct {
    /* The first fields are set by ibn_flow_set.  channel, index: the CA's channel, and the number of the flow among
     * those of the channel; list, count: first place in sim->lists and number of the destinations (PROCESS_TRACE: first
     * row of sim->trace); self: place of the sender's own LID among them, which is skipped, or -1; hot_list, hot_count:
     * hot destinations; bytes: of a message; mtu: bytes of the largest packet */
    int32_t channel, index, process, pattern, list, count, self, hot_list, hot_count, bytes, mtu;
    /* sl_row: row of the SL table; start, stop: ticks, no message begins at stop or later; messages: most messages;
     * slot: ticks of a Bernoulli slot; window: most packets in flight */
    int64_t sl_row, start, stop, messages, slot, window;
    /* mean: mean ticks between messages (Poisson), ticks between messages of a burst (bursty); factor: Bernoulli,
     * 1 / log(1 - probability), or 0; burst, gap: mean messages of a burst, mean ticks between bursts; hot: fraction of
     * messages to hot destinations */
    double mean, factor, burst, gap, hot;
    uint64_t key; /* stream of random numbers */
    /* made: messages begun; due: tick at which the next one is due; born: tick at which the current one was due;
     * slots: Bernoulli slot of the next message, counted from 1 */
    int64_t made, due, born, slots;
    double clock; /* due time of the next message in ticks after start, not rounded */
    /* left: bytes of the current message not yet cut; head: packet at the CA's port, or IBN_NONE; lid: destination;
     * called: an EV_INJECT event is pending; shut: the window is full */
    int32_t left, head, lid, called, shut;
    /* sent_*: by the CA; packets, bytes_got, messages_got: delivered; latency, network: sums of ticks from `born` and
     * from `entered` to delivery; worst: largest from `born`; dropped: packets lost */
    int64_t sent_packets, sent_bytes, packets, bytes_got, latency, network, worst, dropped, messages_got;
} ibn_flow;

/* A control message of a breaker. */
typedef struct {
    /* vc: VC by which it was sent; kind: BREAKER_...; phase: Deadlock Breaker, 0 while the message searches for a
     * loop, 1 while it releases one; index: Loop Breaker, the round; Deadlock Breaker, the entry to release, or `count`
     * while it searches; count: entries, one for each switch visited; next: in the free list */
    int32_t vc, kind, phase, index, count, next;
    uint32_t spuid;                  /* Loop Breaker: identifier of the sending VC */
    uint32_t spuids[IBN_CLCM_PORTS]; /* Deadlock Breaker: identifiers of the switches visited */
    int32_t egress[IBN_CLCM_PORTS];  /* VC by which it left each of them */
} ibn_clcm;

struct ibn_sim {
    /* sl2vl_ports: ports of an SL2VL table, 0 if one row is for all switches; words: 64-bit words with a bit for each
     * input of any channel */
    int32_t devices, switches, channels, vls, lids, sl2vl_ports, flows, words;
    int64_t now, vcs; /* present tick; number of VCs: channels x vls */
    /* the network */
    ibn_channel *channel;
    ibn_far_end *far_end;
    ibn_counters *counters;
    ibn_vc *vc;
    ibn_watch *watch;
    ibn_fifo *queue; /* see ibn_channel */
    uint64_t *mask;  /* [VCs][words] inputs with packets queued; NULL if words is 1, then see ibn_vc */
    /* at_port: [devices][256] channel of a port, or IBN_NONE; the channels of device d are out_channel[out_first[d]] to
     * out_channel[out_first[d + 1] - 1] */
    int32_t *at_port, *out_first, *out_channel;
    /* [switches][lids]; [16] or [switches][sl2vl_ports][sl2vl_ports][16]; [16]; [sl_rows][lids]; hops between switches,
     * [switches][switches] or empty */
    uint8_t *lft, *sl2vl, *ca_sl2vl, *sl, *distance;
    int32_t *lid_switch, *lid_device; /* [lids] the switch that delivers a LID, the device that owns it, or -1 */
    int64_t sl_rows;
    /* options; the arrays are copies of those of ibn_sim_options */
    ibn_sim_options options;
    int64_t *hoq, *lifetime, *detect, *repeat, *release;
    int32_t *stall_count, *breaker, *extra;
    uint8_t *vlarb;
    /* traffic */
    ibn_flow *flow;
    int32_t *lists;
    int64_t *trace;
    /* events */
    /* Events of one kind at one tick are kept in a chain of batches and are handled together, in any order.  All
     * batches but the last are full.  The first entry of a batch is a link: its subject is the previous batch, or 0. */
    ibn_event *event;
    int32_t batches_made, batch_free; /* batches allocated; first free batch, or 0 */
    /* [slots][IBN_SLOT] entry for the next event of each kind; 0: there is no batch; a multiple of IBN_BATCH: the last
     * batch is full */
    int32_t *slot;
    int32_t *touched, *looked; /* channels to arbitrate in this tick; VCs whose buffers may begin or end a pause */
    ibn_distant *heap;         /* binary heap by time */
    ibn_event *later;          /* events of one kind while they are sorted */
    uint64_t *busy_slots;      /* bit per slot of the wheel with events */
    int32_t in_turn;           /* arbitration is round robin, and one word has a bit for each input */
    int32_t plain;    /* in_turn, and no option is set that needs the general code of a hop: use the specialized copy */
    int32_t aging;    /* some channel has a lifetime limit, or there are breakers */
    uint16_t *marked; /* [channels] whether a channel is in touched */
    /* slots: ticks of the wheel; heap_size, touches, looks: entries used; heap_room, later_room: entries allocated */
    int32_t slots, heap_size, heap_room, later_room, touches, looks;
    int32_t freed_first; /* freed room is handled at the receiver (EV_FREED) before credits go to the sender */
    int64_t moving;      /* pending events that move data: 0 while packets are in flight is a standstill */
    /* packets and messages */
    ibn_packet *packet;
    int32_t packets_made, packet_free; /* allocated; head of the free list, or IBN_NONE */
    ibn_clcm *clcm;
    int32_t clcms_made, clcm_free;
    int64_t *log; /* [logged][IBN_LOG_WIDTH] */
    /* rows written; rows allocated; rows not written because the log is full; random numbers drawn by breakers */
    int64_t logged, log_room, log_lost, picks;
    int failed; /* out of memory */
    /* totals; hops: packets sent by channels; handled: events; last_move: tick at which a packet was last sent */
    int64_t injected, delivered, dropped, injected_bytes, delivered_bytes, dropped_bytes, hops, handled, last_move;
};

_Static_assert(EV_KINDS <= IBN_SLOT, "every kind of event has a place in a slot");
_Static_assert(sizeof(ibn_packet) == 64 && sizeof(ibn_vc) == 64, "a cache line each");
_Static_assert(sizeof(ibn_event) * IBN_BATCH == 128, "two cache lines");
_Static_assert(sizeof(ibn_channel) == 128, "two cache lines");

static inline uint64_t ibn_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Return the n-th number of a random stream; streams of different keys are independent. */
static inline uint64_t ibn_number(uint64_t key, uint64_t n)
{
    return ibn_mix(key + (n + 1) * 0x9E3779B97F4A7C15u);
}

/* Return the key of a random stream: one of each kind of draw, for each channel, VC or device. */
static inline uint64_t ibn_key(uint64_t seed, uint64_t kind, uint64_t stream)
{
    return ibn_mix(ibn_mix(seed * 3 + kind) + (stream + 1) * 0xD1B54A32D192ED03u);
}

/* Return the blocks that the sender may send; unsigned subtraction allows for wrap-around. */
static inline int32_t ibn_credits(const ibn_vc *vc)
{
    return (int32_t)(vc->fccl - vc->fctbs);
}

#pragma GCC visibility push(hidden)
/* events.c */
int ibn_sim_more_batches(ibn_sim *sim);
void ibn_sim_heap_push(ibn_sim *sim, int64_t time, int kind, ibn_event event);
void ibn_sim_heap_pop(ibn_sim *sim);
int32_t ibn_sim_gather(ibn_sim *sim, int32_t place);
void ibn_sim_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d);
int32_t ibn_sim_new_clcm(ibn_sim *sim);
void ibn_sim_drop_clcm(ibn_sim *sim, int32_t message);
int ibn_sim_more_packets(ibn_sim *sim);

/* Return whether events of a kind move data, or can let data move again. */
static inline int ibn_moves(int kind)
{
    return kind < EV_LATER || kind == EV_RULE_END;
}

/* Add an event to slot `at` of the wheel. */
static inline void ibn_put(ibn_sim *sim, int32_t at, int kind, int32_t subject, int32_t value)
{
    int32_t *slot = &sim->slot[at * IBN_SLOT + kind], place = *slot;
    if (!(place & (IBN_BATCH - 1))) {
        if (!sim->batch_free && ibn_sim_more_batches(sim))
            return;
        int32_t full = place / IBN_BATCH - 1, b = sim->batch_free;
        place = b * IBN_BATCH;
        sim->batch_free = sim->event[place].subject;
        sim->event[place++].subject = full > 0 ? full : 0;
        sim->busy_slots[at >> 6] |= 1ull << (at & 63);
    }
    sim->event[place] = (ibn_event){subject, value};
    *slot = place + 1;
}

/* Return the entry of the first event of a batch, given the entry behind its last event. */
static inline int32_t ibn_first_event(int32_t place)
{
    return (place - 1) / IBN_BATCH * IBN_BATCH + 1;
}

/* Free a batch, given the entry behind its last event; return the entry behind the previous batch, or 0. */
static inline int32_t ibn_batch_before(ibn_sim *sim, int32_t place)
{
    int32_t b = (place - 1) / IBN_BATCH, before = sim->event[b * IBN_BATCH].subject;
    sim->event[b * IBN_BATCH].subject = sim->batch_free;
    sim->batch_free = b;
    return before ? (before + 1) * IBN_BATCH : 0;
}

/* Schedule an event; `time` must be later than now. */
static inline void ibn_at(ibn_sim *sim, int64_t time, int kind, int32_t subject, int32_t value)
{
    sim->moving += ibn_moves(kind);
    if (time - sim->now < sim->slots)
        ibn_put(sim, (int32_t)(time & (sim->slots - 1)), kind, subject, value);
    else
        ibn_sim_heap_push(sim, time, kind, (ibn_event){subject, value});
}

/* Return the words with a bit for each input that has packets queued for a VC. */
static inline uint64_t *ibn_mask(const ibn_sim *sim, int32_t l)
{
    return sim->words == 1 ? &sim->vc[l].mask : &sim->mask[(int64_t)l * sim->words];
}

/* Mark a channel for arbitration after all events of this tick. */
static inline void ibn_touch(ibn_sim *sim, int32_t c)
{
    if (!sim->marked[c]) {
        sim->marked[c] = 1;
        sim->touched[sim->touches++] = c;
    }
}

/* Return a free packet, or IBN_NONE if memory runs out. */
static inline int32_t ibn_new_packet(ibn_sim *sim)
{
    if (sim->packet_free == IBN_NONE && ibn_sim_more_packets(sim))
        return IBN_NONE;
    int32_t p = sim->packet_free;
    sim->packet_free = sim->packet[p].next;
    return p;
}

static inline void ibn_free_packet(ibn_sim *sim, int32_t p)
{
    sim->packet[p].next = sim->packet_free;
    sim->packet_free = p;
}

/* switch.c */
void ibn_sim_arrive(ibn_sim *sim, int32_t from, int32_t to);
void ibn_sim_deliver(ibn_sim *sim, int32_t from, int32_t to);
void ibn_sim_expose(ibn_sim *sim, int32_t vc);
/* lose.c */
void ibn_sim_lose(ibn_sim *sim, int32_t p);
void ibn_sim_gone(ibn_sim *sim, int32_t p);
/* arbiter.c */
void ibn_sim_arbitrate(ibn_sim *sim);
/* source.c */
void ibn_sim_prepare(ibn_sim *sim, int32_t f);
void ibn_sim_start_flows(ibn_sim *sim);
/* drop.c */
void ibn_sim_arm(ibn_sim *sim, int32_t vc);
void ibn_sim_head(ibn_sim *sim, int32_t vc);
void ibn_sim_unstall(ibn_sim *sim, int32_t vc);
/* pause.c */
void ibn_sim_open(ibn_sim *sim);
void ibn_sim_look_at(ibn_sim *sim, int32_t vc);
void ibn_sim_look_full(ibn_sim *sim);
void ibn_sim_look_empty(ibn_sim *sim);
void ibn_sim_pause(ibn_sim *sim, int32_t vc, int32_t word);
int ibn_sim_may_resume(const ibn_sim *sim, int32_t vc);
/* fault.c */
int32_t ibn_sim_down_at(const ibn_sim *sim, int32_t device, int port);
/* drop.c */
void ibn_sim_drop(ibn_sim *sim, int32_t c, int32_t vc, int32_t input);
/* clcm.c */
int ibn_sim_still_suspected(const ibn_sim *sim, int32_t vc);
int ibn_sim_wants(const ibn_sim *sim, int32_t lane_in, int32_t lane_out);
uint32_t ibn_sim_switch_id(const ibn_sim *sim, int32_t device);
void ibn_sim_send_clcm(ibn_sim *sim, int32_t message, int32_t vc);
/* loop.c, deadlock.c */
void ibn_sim_draw(ibn_sim *sim, int32_t vc, int32_t round);
void ibn_sim_loop_clcm(ibn_sim *sim, int32_t message);
void ibn_sim_deadlock_clcm(ibn_sim *sim, int32_t message);
void ibn_sim_rule_end(ibn_sim *sim, int32_t lane_out, int32_t lane_in);
/* breaker.c */
void ibn_sim_sample(ibn_sim *sim);
void ibn_sim_clcm(ibn_sim *sim, int32_t vc, int32_t episode);
void ibn_sim_control(ibn_sim *sim, int32_t message);
#pragma GCC visibility pop

#endif
