/* State of a packet simulation; see docs/simulation.md for the model.
 *
 * A lane is one VL of one channel: its sender's credits, and the input buffer of that VL at its receiver. */
#ifndef IBNUE_INTERNAL_SIM_H
#define IBNUE_INTERNAL_SIM_H

#include <stdint.h>

#include "../sim.h"

enum {
    EV_FREE,    /* subject: channel, which has sent its packet */
    EV_CREDIT,  /* subject: lane, value: blocks, which have come back to the sender */
    EV_FREED,   /* the same, waiting for the next flow control packet */
    EV_ARRIVE,  /* subject: packet, whose head may be forwarded */
    EV_DELIVER, /* subject: packet, whose tail has reached a CA */
    EV_INJECT,  /* subject: flow, whose next message is due or whose window is open again */
    EV_EXPOSE,  /* subject: lane, whose single FIFO shows its next packet */
    EV_PAUSE,   /* subject: lane, value: number of the word that its sender hears */
    EV_LATER,   /* from here on: after the others of the tick, by type and subject */
    EV_HEAD = EV_LATER, /* subject: lane, whose head may have waited too long */
    EV_UNSTALL,         /* subject: lane */
    EV_RULE_END,        /* subject: lane out, value: lane in */
    EV_CONTROL,         /* subject: control message */
    EV_CLCM,            /* subject: lane, value: episode */
    EV_SAMPLE,
    EV_FCP,
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

/* Compiled once more for each constant that it is called with. */
#define IBN_SPECIALIZED static inline __attribute__((always_inline))

#define IBN_COST_BITS 20
#define IBN_NONE (-1)
#define IBN_BATCH 16 /* events, with the link to the batch before: two cache lines */
#define IBN_NEVER INT64_MAX
#define IBN_SLOT 16 /* kinds of events that a slot of the wheel has room for: a cache line */
#define IBN_CLCM_PORTS 64
#define IBN_LOG_WIDTH 6
#define IBN_LOG_MOST 4000000

typedef struct {
    int32_t subject, value;
} ibn_event;

/* An event beyond the timing wheel. */
typedef struct {
    int64_t time;
    int32_t kind;
    ibn_event event;
} ibn_distant;

typedef struct {
    int64_t born, entered, ready, tail, headed;
    int32_t next, flow, channel, lane; /* the channel it came by and its lane, or IBN_NONE at its source */
    uint16_t bytes, blocks, lid;
    uint8_t sl, last;
} ibn_packet; /* a cache line */

typedef struct {
    int32_t head, tail;
} ibn_fifo;

typedef struct {
    uint32_t fctbs, fccl;             /* blocks sent, limit of blocks that may be sent */
    int32_t held, flying, returning;  /* blocks in the buffer, on the way to it, given back but not known yet */
    int32_t buffer;                   /* blocks that the buffer has now */
    int32_t waiting;                  /* packets at the sender that want this lane */
    int32_t next_input;               /* round robin */
    uint64_t mask;                    /* inputs with something waiting, where a word is enough for all */
    int64_t sent;                     /* end of the last packet on this lane */
    int32_t only;                     /* input that alone is served, or IBN_NONE */
    int16_t pass, pass_input;         /* packets that may go without credit, and the input that they come from */
    int32_t reserve;                  /* blocks that the buffer can be made larger by; see sim_pause.c */
    uint16_t stalled, dropped_in_row; /* everything is dropped; heads dropped since the last packet was sent */
} ibn_lane; /* a cache line */

/* What only drops and breakers look at. */
typedef struct {
    uint32_t own, spuid; /* as generated, as sent */
    int64_t since; /* something has been waiting for the lane since then, where there are breakers */
    int32_t episode, unsent, extra, round, sends;
    uint8_t suspected, timed, busy_input;
    uint8_t looked;      /* on the list of buffers to be looked at */
    int32_t told, heard; /* pauses: words of the receiver to the sender, and the last that came */
    ibn_fifo hidden; /* single FIFO: packets behind the one that shows */
} ibn_watch;

typedef struct {
    int64_t busy; /* is free from then on; while something waits: could have sent from then on */
    int64_t cost, bytes, packets, wait;
    int32_t carry, queues, inputs;
    int32_t wire, hop; /* ticks to its other end; until a head can go on from there, 0 to a CA */
    uint16_t vls;      /* with something waiting */
    uint8_t called, next_vl;
    /* a cache line so far; the next one is seldom looked at */
    int32_t src, dst, reverse, in_index, high_left, low_left, high_limit_left;
    uint8_t high_at, low_at, arbiter, from_switch, to_switch, dst_port, ages; /* ages: heads can get too old */
    uint8_t spare[29];
} ibn_channel;

/* What forwarding looks up of the channel that a packet came by. */
typedef struct {
    int32_t device, reverse, in_index, port;
} ibn_far_end;

/* What happens to few packets. */
typedef struct {
    int64_t discards, hoq, lifetime, stalled, overrun, relay, control, down;
} ibn_counters;

typedef struct {
    int32_t channel, index, process, pattern, list, count, self, hot_list, hot_count, bytes, mtu;
    int64_t sl_row, start, stop, messages, slot, window;
    double mean, factor, burst, gap, hot;
    uint64_t key;
    int64_t made, due, born, slots;
    double clock;
    int32_t left, head, lid, called, shut; /* shut: it has come to its window */
    int64_t sent_packets, sent_bytes, packets, bytes_got, latency, network, worst, dropped, messages_got;
} ibn_flow;

typedef struct {
    int32_t lane, kind, phase, index, count, next;
    uint32_t spuid;
    uint32_t spuids[IBN_CLCM_PORTS];
    int32_t egress[IBN_CLCM_PORTS]; /* lanes */
} ibn_clcm;

struct ibn_sim {
    int32_t devices, switches, channels, vls, lids, sl2vl_ports, flows, words;
    int64_t now, lanes;
    /* the network */
    ibn_channel *channel;
    ibn_far_end *far_end;
    ibn_counters *counters;
    ibn_lane *lane;
    ibn_watch *watch;
    ibn_fifo *queue;
    uint64_t *mask;
    int32_t *at_port, *out_first, *out_channel;
    uint8_t *lft, *sl2vl, *ca_sl2vl, *sl, *distance;
    int32_t *lid_switch, *lid_device;
    int64_t sl_rows;
    /* options */
    ibn_sim_options options;
    int64_t *hoq, *lifetime, *detect, *repeat, *release;
    int32_t *stall_count, *breaker, *extra;
    uint8_t *vlarb;
    /* traffic */
    ibn_flow *flow;
    int32_t *lists;
    int64_t *trace;
    /* events */
    /* Events of one kind at one tick stand in a chain of batches and are handled together, in any order.  All batches
     * but the last are full.  The first place of a batch is its link: its subject is the batch before, or 0. */
    ibn_event *event;
    int32_t batches_made, batch_free;
    int32_t *slot; /* the place of the next event of each kind: 0 or behind a full batch where there is no room */
    int32_t *touched, *looked;
    ibn_distant *heap;
    ibn_event *later;
    uint64_t *busy_slots;
    int32_t in_turn; /* inputs are served in turn, and a word has a bit for each of them */
    int32_t plain;   /* and no rule, timer, table or pause can change a hop: it takes a copy of the code without them */
    int32_t aging; /* heads can get too old somewhere, or there are breakers */
    uint16_t *marked; /* channels that stand in touched */
    int32_t slots, heap_size, heap_room, later_room, touches, looks;
    int32_t freed_first; /* room that is free again is known to the receiver before its sender */
    int64_t moving; /* pending events that move data: 0 with packets around is a standstill */
    /* packets and messages */
    ibn_packet *packet;
    int32_t packets_made, packet_free;
    ibn_clcm *clcm;
    int32_t clcms_made, clcm_free;
    int64_t *log;
    int64_t logged, log_room, log_lost, picks;
    int failed;
    /* totals */
    int64_t injected, delivered, dropped, injected_bytes, delivered_bytes, dropped_bytes, hops, handled, last_move;
};

_Static_assert(EV_KINDS <= IBN_SLOT, "every kind of event has a place in a slot");
_Static_assert(sizeof(ibn_packet) == 64 && sizeof(ibn_lane) == 64, "a cache line each");
_Static_assert(sizeof(ibn_event) * IBN_BATCH == 128, "two cache lines");
_Static_assert(sizeof(ibn_channel) == 128, "two cache lines");

static inline uint64_t ibn_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The n-th number of a stream; streams of different keys have nothing in common. */
static inline uint64_t ibn_number(uint64_t key, uint64_t n)
{
    return ibn_mix(key + (n + 1) * 0x9E3779B97F4A7C15u);
}

static inline uint64_t ibn_key(uint64_t seed, uint64_t kind, uint64_t stream)
{
    return ibn_mix(ibn_mix(seed * 3 + kind) + (stream + 1) * 0xD1B54A32D192ED03u);
}

static inline int32_t ibn_credits(const ibn_lane *lane)
{
    return (int32_t)(lane->fccl - lane->fctbs);
}

#pragma GCC visibility push(hidden)
/* sim_events.c */
int ibn_sim_more_batches(ibn_sim *sim);
void ibn_sim_heap_push(ibn_sim *sim, int64_t time, int kind, ibn_event event);
void ibn_sim_heap_pop(ibn_sim *sim);
int32_t ibn_sim_gather(ibn_sim *sim, int32_t place);
void ibn_sim_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d);
int32_t ibn_sim_new_clcm(ibn_sim *sim);
void ibn_sim_drop_clcm(ibn_sim *sim, int32_t message);
int ibn_sim_more_packets(ibn_sim *sim);

static inline int ibn_moves(int kind)
{
    return kind < EV_LATER || kind == EV_RULE_END;
}

/* Put an event into a slot of the wheel. */
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

/* The first event of a batch, given the place behind its events. */
static inline int32_t ibn_first_event(int32_t place)
{
    return (place - 1) / IBN_BATCH * IBN_BATCH + 1;
}

/* The place behind the batch before, or 0, given the place behind the events of a batch, which is free from now on. */
static inline int32_t ibn_batch_before(ibn_sim *sim, int32_t place)
{
    int32_t b = (place - 1) / IBN_BATCH, before = sim->event[b * IBN_BATCH].subject;
    sim->event[b * IBN_BATCH].subject = sim->batch_free;
    sim->batch_free = b;
    return before ? (before + 1) * IBN_BATCH : 0;
}

/* Something is to happen at that time, which is later than now. */
static inline void ibn_at(ibn_sim *sim, int64_t time, int kind, int32_t subject, int32_t value)
{
    sim->moving += ibn_moves(kind);
    if (time - sim->now < sim->slots)
        ibn_put(sim, (int32_t)(time & (sim->slots - 1)), kind, subject, value);
    else
        ibn_sim_heap_push(sim, time, kind, (ibn_event){subject, value});
}

/* The words with a bit for each input of a lane that has something waiting. */
static inline uint64_t *ibn_mask(const ibn_sim *sim, int32_t l)
{
    return sim->words == 1 ? &sim->lane[l].mask : &sim->mask[(int64_t)l * sim->words];
}

/* A channel is looked at when everything of this tick has happened. */
static inline void ibn_touch(ibn_sim *sim, int32_t c)
{
    if (!sim->marked[c]) {
        sim->marked[c] = 1;
        sim->touched[sim->touches++] = c;
    }
}

/* IBN_NONE without memory. */
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

/* sim_switch.c */
void ibn_sim_arrive(ibn_sim *sim, int32_t from, int32_t to);
void ibn_sim_deliver(ibn_sim *sim, int32_t from, int32_t to);
void ibn_sim_expose(ibn_sim *sim, int32_t lane);
/* sim_lose.c */
void ibn_sim_lose(ibn_sim *sim, int32_t p);
void ibn_sim_gone(ibn_sim *sim, int32_t p);
/* sim_arbiter.c */
void ibn_sim_arbitrate(ibn_sim *sim);
/* sim_source.c */
void ibn_sim_prepare(ibn_sim *sim, int32_t f);
void ibn_sim_start_flows(ibn_sim *sim);
/* sim_drop.c */
void ibn_sim_arm(ibn_sim *sim, int32_t lane);
void ibn_sim_head(ibn_sim *sim, int32_t lane);
void ibn_sim_unstall(ibn_sim *sim, int32_t lane);
/* sim_pause.c */
void ibn_sim_open(ibn_sim *sim);
void ibn_sim_look_at(ibn_sim *sim, int32_t lane);
void ibn_sim_look_full(ibn_sim *sim);
void ibn_sim_look_empty(ibn_sim *sim);
void ibn_sim_pause(ibn_sim *sim, int32_t lane, int32_t word);
int ibn_sim_may_resume(const ibn_sim *sim, int32_t lane);
/* sim_fault.c */
int32_t ibn_sim_down_at(const ibn_sim *sim, int32_t device, int port);
/* sim_drop.c */
void ibn_sim_drop(ibn_sim *sim, int32_t c, int32_t lane, int32_t input);
/* sim_clcm.c */
int ibn_sim_still_suspected(const ibn_sim *sim, int32_t lane);
int ibn_sim_wants(const ibn_sim *sim, int32_t lane_in, int32_t lane_out);
uint32_t ibn_sim_switch_id(const ibn_sim *sim, int32_t device);
void ibn_sim_send_clcm(ibn_sim *sim, int32_t message, int32_t lane);
/* sim_loop.c, sim_deadlock.c */
void ibn_sim_draw(ibn_sim *sim, int32_t lane, int32_t round);
void ibn_sim_loop_clcm(ibn_sim *sim, int32_t message);
void ibn_sim_deadlock_clcm(ibn_sim *sim, int32_t message);
void ibn_sim_rule_end(ibn_sim *sim, int32_t lane_out, int32_t lane_in);
/* sim_breaker.c */
void ibn_sim_sample(ibn_sim *sim);
void ibn_sim_clcm(ibn_sim *sim, int32_t lane, int32_t episode);
void ibn_sim_control(ibn_sim *sim, int32_t message);
#pragma GCC visibility pop

#endif
