/* State of a packet simulation.  docs/simulation.md explains the model.
 *
 * A virtual channel (VC) is one VL of one channel: the sender's credits, and the input buffer of that VL at the
 * receiver.  In names, a VC is `vc` or `l`.  VC l belongs to channel l / vls.  A block is 64 bytes. */
#ifndef IBNUE_INTERNAL_SIM_H
#define IBNUE_INTERNAL_SIM_H

#include <stdint.h>

#include "simulate/sim.h"

enum {
    EV_FREE,   /* a channel has finished sending a packet; subject: channel */
    EV_CREDIT, /* credits reach the sender of a VC; subject: VC, value: blocks */
    /* room in a buffer becomes free at the receiver, but the sender does not know this yet; subject: VC, value:
     * blocks */
    EV_FREED,
    EV_ARRIVE,  /* the head of a packet can be forwarded; subject: packet */
    EV_DELIVER, /* the tail of a packet has reached a CA; subject: packet */
    EV_INJECT,  /* a flow can send its next packet; subject: flow */
    EV_EXPOSE,  /* the next packet of a single FIFO can be forwarded; subject: VC */
    EV_INPUT,   /* an input of a switch has finished sending a packet; subject: channel into the switch */
    EV_PAUSE,   /* a pause message reaches its sender; subject: VC, value: number of the message */
    EV_LATER,   /* first of the kinds of events that are handled after all other events of a tick, in sorted order */
    EV_HEAD = EV_LATER, /* a head packet may have exceeded a lifetime limit; subject: VC */
    EV_UNSTALL,         /* a VL stall ends; subject: VC */
    EV_RULE_END,        /* a rule of Deadlock Breaker ends; subject: output VC, value: input VC */
    EV_CONTROL,         /* a breaker's control message reaches the other end of its channel; subject: message */
    EV_CLCM,            /* a suspected VC sends its next control message; subject: VC, value: number of the suspicion */
    /* a periodic step, PERIODIC_...; subject: the step */
    EV_PERIODIC,
    EV_TIMER, /* a timer of a mechanism; subject: mechanism and its own subject, value: its own value */
    EV_KINDS
};
enum {
    PERIODIC_SAMPLE, /* breakers search for VCs that make no progress */
    PERIODIC_FCP     /* all receivers send flow control packets */
};
/* Hooks that are tested at run time, as bits of sim->hooks; see mechanism.h. */
enum {
    IBN_HOOK_GATE = 1,
    IBN_HOOK_MADE = 2,
    IBN_HOOK_SENT = 4,
    IBN_HOOK_QUEUED = 8,
    IBN_HOOK_DELIVERED = 16,
    IBN_HOOK_LOST = 32
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

/* The compiler makes a specialised copy of a function with this attribute for each constant argument, such as plain =
 * 1. */
#define IBN_SPECIALIZED static inline __attribute__((always_inline))

#define IBN_COST_BITS 20
#define IBN_NONE (-1)
#define IBN_BATCH 16 /* number of entries in a batch of events; one of them is the link to the previous batch */
#define IBN_NEVER INT64_MAX
#define IBN_LATENCY_BUCKETS \
    2048 /* number of buckets in a histogram of latencies, see ibn_simulate_latency_bucket in flow.h */
/* number of event kinds for which a slot of the timing wheel has room; they fill a cache line */
#define IBN_SLOT 16
#define IBN_CLCM_PORTS 64    /* largest number of entries in a control message */
#define IBN_LOG_WIDTH 6      /* number of columns of the log: tick, kind, four numbers */
#define IBN_LOG_MOST 4000000 /* largest number of rows of the log; further rows are counted, but not stored */

/* An event that is due at a later tick.  Its tick and kind follow from the place where it is stored. */
typedef struct {
    int32_t subject, /* VC, packet, channel or flow to which the event belongs, depending on its kind */
        value;       /* further number that events of some kinds need, such as blocks */
} ibn_event;

/* An event too far in the future for the timing wheel. */
typedef struct {
    int64_t time;    /* tick at which the event is due */
    int32_t kind;    /* kind of event: EV_... */
    ibn_event event; /* subject and value of the event */
} ibn_distant;

/* A packet of the simulation, in one cache line. */
typedef struct {
    int64_t born, /* tick at which the packet's message was due */
        entered,  /* tick at which the packet began to leave its CA */
        ready,    /* first tick at which the present device could forward the packet's head */
        tail,     /* tick at which the packet's tail reaches the present device */
        /* tick at which the packet became the first one in its queue; in simulations with adaptive routing, the
         * packet's serial number */
        headed;
    int32_t next,   /* next packet in the queue, or next packet in the free list; IBN_NONE: none */
        flow,       /* flow of the packet */
        channel,    /* channel by which the packet arrived, IBN_NONE at its source */
        vc;         /* VC by which the packet arrived, IBN_NONE at its source */
    uint16_t bytes, /* size in bytes */
        blocks,     /* size in blocks, rounded up */
        lid;        /* destination LID */
    uint8_t sl,     /* service level */
        last;       /* 1: the packet is the last one of its message, else 0 */
} ibn_packet;

/* A queue of packets, linked by ibn_packet.next. */
typedef struct {
    int32_t head, /* first packet, IBN_NONE if the queue is empty */
        tail;     /* last packet; undefined if the queue is empty */
} ibn_fifo;

/* State of a virtual channel (VC) that every hop of a packet needs, in one cache line. */
typedef struct {
    uint32_t fctbs, /* blocks sent since the start; wraps around */
        fccl;       /* value of fctbs up to which blocks may be sent; wraps around */
    int32_t held,   /* blocks in the receiver's buffer that have not begun to leave */
        flying,     /* blocks on the way to the buffer */
        returning;  /* blocks that have left the buffer, but whose credit has not reached the sender */
    /* present size of the buffer in blocks, which is the number of credits + `held` + `flying` + `returning` */
    int32_t buffer;
    int32_t waiting;    /* packets queued at the sender for this VC */
    int32_t next_input; /* input that round robin serves next */
    /* one bit per input, set if the input has packets queued; used only if one 64-bit word has enough bits for all
     * inputs */
    uint64_t mask;
    int64_t sent;   /* tick at which the tail of the last packet left; -1: no packet was sent */
    int32_t only;   /* the only input that is served under a rule of Deadlock Breaker, or IBN_NONE */
    int16_t pass,   /* number of packets that may be sent without credit (Loop Breaker) */
        pass_input; /* input whose packets may be sent without credit */
    /* number of blocks by which the buffer may exceed its size; negative with pauses, see pause.c */
    int32_t reserve;
    uint16_t stalled,   /* 1: the VL is stalled, so every packet for this VC is dropped; else 0 */
        dropped_in_row; /* number of head packets dropped since the last packet was sent */
} ibn_vc;

/* Part of a VC's state for optional features: dropping of old packets, pause messages, breakers, and single FIFOs. */
typedef struct {
    uint32_t own,      /* used by deadlock breakers: random identifier that the suspected VC has drawn */
        spuid;         /* used by deadlock breakers: smallest identifier that the VC has drawn or received */
    int64_t since;     /* tick since which packets have been queued for the VC; valid only if sim->aging */
    int32_t
        /* used by deadlock breakers: how often the VC has been suspected; an event with a lower number is out of date */
        episode,
        unsent,        /* blocks freed in the buffer that the next flow control packet will report */
        extra,         /* blocks that a rule of Deadlock Breaker has added to the buffer */
        round,         /* used by Loop Breaker: number of the present election round */
        sends;         /* used by Loop Breaker: control messages sent in this round */
    uint8_t suspected, /* 1: the last search found that the VC makes no progress, else 0 */
        timed,         /* 1: an EV_HEAD event is pending, else 0 */
        busy_input;    /* with a single FIFO: 1 if a packet of this buffer is in an output queue or leaves it, else 0 */
    uint8_t to_check;  /* 1: the VC is in sim->to_check, else 0 */
    int32_t last_message, /* with pauses: number of the last pause message that the receiver has sent */
        heard;            /* with pauses: number of the last pause message that has reached the sender */
    ibn_fifo hidden;      /* with a single FIFO: packets of the buffer that are not in an output queue yet */
} ibn_watch;

/* State of one channel: one direction of a link.  It takes two cache lines.  The second line is seldom used. */
typedef struct {
    int64_t busy;        /* tick from which on the channel can send again; IBN_NEVER: its link is down */
    int64_t cost,        /* ticks per byte x 2^IBN_COST_BITS */
        bytes,           /* bytes sent since the start */
        packets,         /* packets sent since the start */
        wait;            /* ticks during which packets were queued but none was sent */
    int32_t carry,       /* fraction of a tick that remained after the last packet, x 2^IBN_COST_BITS */
        queues,          /* position of the channel's queues [vls][inputs] in sim->queue */
        inputs;          /* inputs of the sending device: channels into a switch, or flows of a CA */
    int32_t wire,        /* delay of the cable in ticks, from one end to the other */
        hop;             /* ticks from sending a packet's head until the next switch can forward it; 0: leads to a CA */
    uint16_t vls;        /* one bit per VL, set if it has packets queued */
    uint8_t called,      /* 1: an EV_FREE event is pending, else 0 */
        next_vl;         /* VL that round robin serves next */
    int32_t src,         /* device that sends */
        dst,             /* device that receives */
        reverse,         /* channel of the opposite direction */
        in_index,        /* number of this channel among the inputs of dst */
        high_left,       /* used by VL arbitration: blocks left of the weight of the present entry of the high table */
        low_left,        /* used by VL arbitration: blocks left of the weight of the present entry of the low table */
        high_limit_left; /* used by VL arbitration: blocks that the high table may still send before the low table */
    uint8_t high_at,     /* used by VL arbitration: present entry of the high table */
        low_at,          /* used by VL arbitration: present entry of the low table */
        arbiter,         /* row of sim->vlarb (VL arbitration tables) that applies to the channel */
        from_switch,     /* 1: the sender is a switch, 0: a CA or router */
        to_switch,       /* 1: the receiver is a switch, 0: a CA or router */
        dst_port,        /* port number at the receiver */
        ages,            /* 1: packets queued for the channel have a lifetime limit, else 0 */
        sending;       /* packets that the channel's input at the receiver is sending; counted if there is a speedup */
    uint8_t spare[28]; /* unused bytes, which fill the second cache line */
} ibn_channel;

/* Part of a channel's state that the receiving device needs to forward a packet, copied to a smaller array. */
typedef struct {
    int32_t device, /* device that receives */
        reverse,    /* channel of the opposite direction */
        in_index,   /* number of the channel among the inputs of the device */
        port;       /* port number at the device */
} ibn_far_end;

/* Counters of a channel for rare events, such as drops. */
typedef struct {
    int64_t discards, /* packets dropped at this output */
        hoq,          /* packets among `discards` that exceeded the head-of-queue lifetime */
        lifetime,     /* packets among `discards` that exceeded the switch lifetime */
        stalled,      /* packets among `discards` whose VL was stalled */
        overrun,      /* packets that arrived by this channel and found no room in the buffer */
        relay,        /* packets that arrived at a switch without a route, or at a CA that does not own the LID */
        control,      /* bytes of breakers' control messages sent */
        down;         /* packets lost because the link went down or was down */
} ibn_counters;

/* A flow of messages from one CA, in both kinds of simulations.  ibn_simulate_flow_set sets the fields up to `hot`. */
typedef struct {
    int32_t channel, /* channel by which the CA sends */
        index,       /* number of the flow among the flows of this channel */
        process,     /* arrival process of messages: PROCESS_... */
        pattern,     /* rule for the choice of destinations: PATTERN_... */
        list,        /* position of its destinations in sim->lists; PROCESS_TRACE: first row of sim->trace */
        count,       /* number of destinations */
        /* index of the sender's own LID in the list of destinations, which is skipped; -1: not in the list */
        self, hot_list, /* position of its hot destinations in sim->lists */
        hot_count,      /* number of hot destinations */
        bytes,          /* size of a message in bytes */
        mtu;            /* size of the largest packet in bytes */
    int64_t sl_row,     /* row of the SL table */
        start,          /* first tick of the flow */
        stop,           /* tick from which on no message begins */
        messages,       /* largest number of messages */
        slot,           /* PROCESS_BERNOULLI: ticks of a slot */
        window;         /* largest number of packets in flight */
    /* PROCESS_POISSON: mean ticks between messages; PROCESS_BURSTY: ticks between messages of a burst */
    double mean, factor,  /* PROCESS_BERNOULLI: 1 / log(1 - probability); 0 for probability 1 */
        burst,            /* PROCESS_BURSTY: mean number of messages of a burst */
        gap,              /* PROCESS_BURSTY: mean ticks between bursts */
        hot;              /* PATTERN_HOTSPOT: fraction of messages that go to hot destinations */
    uint64_t key;         /* key of the flow's stream of random numbers */
    int64_t made,         /* messages begun */
        due,              /* tick at which the next message is due */
        born,             /* tick at which the current message was due */
        slots;            /* PROCESS_BERNOULLI: slot of the next message, counted from 1 */
    double clock;         /* due time of the next message in ticks after `start`, not rounded */
    int32_t left,         /* bytes of the current message that are not in a packet yet */
        head,             /* packet at the CA's port, or IBN_NONE */
        lid,              /* destination LID of the current message */
        called,           /* 1: an injection event is pending, else 0 */
        shut,             /* 1: the number of packets in flight has reached `window`, else 0 */
        gated;            /* 1: a gate of a mechanism stops the flow's next packet, else 0 */
    int64_t sent_packets, /* packets that the CA has sent */
        sent_bytes,       /* bytes that the CA has sent */
        packets,          /* number of packets delivered */
        bytes_got,        /* bytes delivered */
        latency,          /* ticks from the due time of its message to delivery, summed over delivered packets */
        network,          /* ticks from leaving the CA to delivery, summed over delivered packets */
        worst,            /* largest time in ticks from the due time to the delivery of a packet */
        dropped,          /* packets lost */
        messages_got;     /* messages whose last packet was delivered */
} ibn_flow;

/* A control message of a deadlock breaker. */
typedef struct {
    int32_t vc, /* VC by which the message was sent */
        kind,   /* used by deadlock breakers: BREAKER_LOOP or BREAKER_DEADLOCK */
        phase,  /* Deadlock Breaker, 0: the message searches for a loop, 1: it goes around the loop and sets rules */
        /* Loop Breaker: election round; Deadlock Breaker: entry of the next switch in phase 1, else `count` */
        index, count,                /* used by Deadlock Breaker: number of entries, one for each switch visited */
        next;                        /* next message in the free list, or IBN_NONE */
    uint32_t spuid;                  /* used by Loop Breaker: identifier that the VC passes on */
    uint32_t spuids[IBN_CLCM_PORTS]; /* [count] Deadlock Breaker: identifiers of the switches visited */
    int32_t egress[IBN_CLCM_PORTS];  /* [count] Deadlock Breaker: VC by which the message left each of these switches */
} ibn_clcm;

typedef struct ibn_attached ibn_attached;

/* A packet that was queued at a switch in the present tick, for the hooks of mechanisms. */
typedef struct {
    int32_t vc, /* VC for which the packet is queued */
        input,  /* input of the switch from which it is queued */
        packet; /* the packet */
} ibn_arrival;

/* State of a packet simulation that forwards by tables. */
struct ibn_sim {
    int32_t devices, /* number of devices: switches first, then CAs and routers */
        switches,    /* number of switches */
        channels,    /* number of channels */
        vls,         /* number of VLs */
        lids,        /* number of LIDs, including LID 0 */
        sl2vl_ports, /* ports of a switch in `sl2vl`; 0: one SL2VL table for all switches */
        flows,       /* number of flows */
        words;       /* number of 64-bit words of a mask with one bit per input */
    int64_t now,     /* present tick */
        vcs;         /* number of VCs: channels x vls */

    /* The next fields describe the network: channels, buffers and routing tables. */
    ibn_channel *channel;   /* [channels] state of each channel */
    ibn_far_end *far_end;   /* [channels] data that the receiver of each channel needs */
    ibn_counters *counters; /* [channels] rare events of each channel */
    ibn_vc *vc;             /* [vcs] state of each VC */
    ibn_watch *watch;       /* [vcs] state of the deadlock breaker or of pauses at each VC */
    ibn_fifo *queue;        /* output queues; ibn_channel.queues is the position of a channel's queues */
    /* [vcs][words] one bit per input, set if the input has packets queued; NULL if `words` is 1, because ibn_vc.mask is
     * used then */
    uint64_t *mask;
    int32_t *at_port,    /* [devices][256] channel that leaves by a port, or IBN_NONE */
        *out_first,      /* [devices + 1] position in `out_channel` of the channels that each device sends by */
        *out_channel;    /* [channels] channels, grouped by sending device */
    uint8_t *lft,        /* [switches][lids] out-port */
        *sl2vl,          /* [16] or [switches][in-port][out-port][16] VL of an SL at switches */
        *ca_sl2vl,       /* [16] VL of an SL at CAs */
        *sl,             /* [sl_rows][lids] SL by row (each flow has one) and destination LID */
        *distance;       /* [switches][switches] hops, or empty if no port has a Loop Breaker */
    int32_t *lid_switch, /* [lids] switch that delivers to a LID, or -1 */
        *lid_device;     /* [lids] device that owns a LID, or -1 */
    int64_t sl_rows;     /* number of rows of `sl` */

    /* The next fields are options of the switches. */
    ibn_simulate_options
        options;          /* the options; the arrays in them are not used, because the fields below have copies */
    int64_t *hoq,         /* [channels] head-of-queue lifetime in ticks, 0: no limit */
        *lifetime,        /* [devices] longest time of a packet in a switch in ticks, 0: no limit */
        *detect,          /* [channels] ticks without progress after which a VC is suspected of a deadlock */
        *repeat,          /* [channels] ticks between two control messages of a suspected VC */
        *release;         /* [channels] ticks for which a rule of Deadlock Breaker is in force */
    int32_t *stall_count, /* [channels] number of consecutively dropped heads after which a VL stalls, 0: never */
        *breaker,         /* [channels] deadlock breaker: BREAKER_... */
        *extra;           /* [channels] blocks that Deadlock Breaker adds to a buffer */
    uint8_t *vlarb;       /* [arbiters][260] VL arbitration tables, see ibn_simulate_options */

    /* The next fields describe the mechanisms, see mechanism.h. */
    ibn_attached *attached; /* [mechanisms] attached mechanisms */
    int32_t mechanisms;     /* number of attached mechanisms */
    uint32_t hooks;         /* hooks that some attached mechanism has: IBN_HOOK_... */
    int64_t gated;          /* flows whose next packet a gate stops */
    ibn_arrival *arrival;   /* [arrivals_room] packets queued in this tick, if a mechanism has the hook `queued` */
    int32_t arrivals,       /* number of these packets */
        arrivals_room;      /* allocated length of `arrival` */

    /* The next fields describe the traffic: flows and their messages. */
    ibn_flow *flow; /* [flows] state of each flow */
    int32_t *lists; /* destination LIDs of all flows */
    int64_t *trace; /* [][3] tick, LID and bytes of each message of flows with PROCESS_TRACE */

    /* The next fields store events.  Events of one kind at one tick are in one chain of batches.  They are handled
     * together, in any order.  All batches of a chain except the last are full.  The first entry of a batch is a link:
     * its subject is the previous batch, or 0. */
    ibn_event *event;     /* [batches_made][IBN_BATCH] batches of events, in use or free */
    int32_t batches_made, /* batches allocated */
        batch_free;       /* first batch of the free list, or 0 */
    /* [slots][IBN_SLOT] by tick and kind: index in `event` at which the next event is stored. 0: there is no batch;
     * another multiple of IBN_BATCH: the last batch is full */
    int32_t *slot;
    int32_t *touched,      /* [channels] channels to arbitrate in this tick */
        *to_check;         /* [vcs] VCs whose occupancy has changed in this tick, so that a pause may begin or end */
    ibn_distant *heap;     /* [heap_room] events beyond the timing wheel, a binary heap by time */
    ibn_event *later;      /* [later_room] events of one kind while they are sorted */
    uint64_t *full_inputs, /* [switches][4] bit set if an input sends as many packets as the speedup allows */
        *awaiting;         /* [switches][4] bit set if an output has packets that wait for such an input */
    int64_t *touch_key;    /* [channels] sort key of each channel in `touched`; allocated if there is a speedup */
    uint64_t *busy_slots;  /* [slots / 64] one bit per slot of the timing wheel, set if the slot has events */
    /* 1: arbitration is round robin, and the mask of inputs of each channel fits in one 64-bit word; else 0 */
    int32_t in_turn;
    int32_t plain;       /* 1: `in_turn` is 1, and no option is set that needs the general code at each hop; else 0 */
    int32_t aging;       /* 1: some channel has a lifetime limit, or there are breakers; else 0 */
    uint16_t *marked;    /* [channels] 1: the channel is in `touched`, else 0 */
    int32_t slots,       /* number of slots of the timing wheel, one for each tick */
        heap_size,       /* number of events in `heap` */
        heap_room,       /* events allocated in `heap` */
        later_room,      /* events allocated in `later` */
        touches,         /* number of channels in `touched` */
        checks;          /* number of VCs in `to_check` */
    int32_t freed_first; /* 1: freed room is handled at the receiver (EV_FREED) before its credits leave; else 0 */
    /* number of pending events that move data; if it is 0 while packets are in flight, the simulation is at a
     * standstill */
    int64_t moving, crediting; /* number of EV_CREDIT events among `moving` */

    /* The next fields store packets, control messages and the event log. */
    ibn_packet *packet;   /* [packets_made] packets, in use or free */
    int32_t packets_made, /* packets allocated */
        packet_free;      /* first packet of the free list, or IBN_NONE */
    ibn_clcm *clcm;       /* [clcms_made] control messages, in use or free */
    int32_t clcms_made,   /* control messages allocated */
        clcm_free;        /* first control message of the free list, or IBN_NONE */
    int64_t *log;         /* [logged][IBN_LOG_WIDTH] rows of the event log */
    int64_t logged,       /* rows written to the log */
        log_room,         /* rows allocated for the log */
        log_lost,         /* rows not written because the log is full */
        picks;            /* random numbers that breakers have drawn */
    int failed;           /* 1: memory has run out */

    /* The next fields are totals since the start. */
    int64_t injected,    /* packets sent by CAs */
        delivered,       /* packets delivered to CAs */
        dropped,         /* packets lost */
        injected_bytes,  /* bytes sent by CAs */
        delivered_bytes, /* bytes delivered to CAs */
        dropped_bytes,   /* bytes lost */
        hops,            /* packets sent by all channels */
        handled,         /* events handled */
        last_move;       /* tick at which a packet was last sent */

    /* [2][buckets] latencies since the due time of the message, counted by bucket: first of packets, then of messages
     * whose last packet was delivered */
    int64_t latencies[2][IBN_LATENCY_BUCKETS];
};

_Static_assert(EV_KINDS <= IBN_SLOT, "every kind of event has a place in a slot");
_Static_assert(sizeof(ibn_packet) == 64 && sizeof(ibn_vc) == 64, "a cache line each");
_Static_assert(sizeof(ibn_event) * IBN_BATCH == 128, "two cache lines");
_Static_assert(sizeof(ibn_channel) == 128, "two cache lines");

static inline uint64_t ibn_simulate_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Return the n-th number of the random stream with a given key.  Streams with different keys are independent. */
static inline uint64_t ibn_simulate_number(uint64_t key, uint64_t n)
{
    return ibn_simulate_mix(key + (n + 1) * 0x9E3779B97F4A7C15u);
}

/* Return the key of a random stream.  Each kind of draw has one stream for each channel, VC or device. */
static inline uint64_t ibn_simulate_key(uint64_t seed, uint64_t kind, uint64_t stream)
{
    return ibn_simulate_mix(ibn_simulate_mix(seed * 3 + kind) + (stream + 1) * 0xD1B54A32D192ED03u);
}

/* Return the number of blocks that the sender of a VC may send.  The unsigned subtraction is right even after a
 * wrap-around. */
static inline int32_t ibn_simulate_credits(const ibn_vc *vc)
{
    return (int32_t)(vc->fccl - vc->fctbs);
}

#pragma GCC visibility push(hidden)
/* Functions of events.c.  They store events, packets, control messages and the log. */
int ibn_simulate_more_batches(ibn_sim *sim);
void ibn_simulate_heap_push(ibn_sim *sim, int64_t time, int kind, ibn_event event);
void ibn_simulate_heap_pop(ibn_sim *sim);
int32_t ibn_simulate_gather(ibn_sim *sim, int32_t place);
void ibn_simulate_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d);
int32_t ibn_simulate_new_clcm(ibn_sim *sim);
void ibn_simulate_drop_clcm(ibn_sim *sim, int32_t message);
int ibn_simulate_more_packets(ibn_sim *sim);

/* Return whether events of a kind move data, or can make data move again. */
static inline int ibn_simulate_moves(int kind)
{
    return kind < EV_LATER || kind == EV_RULE_END || kind == EV_TIMER;
}

/* Add an event to slot `at` of the timing wheel. */
static inline void ibn_simulate_put(ibn_sim *sim, int32_t at, int kind, int32_t subject, int32_t value)
{
    int32_t *slot = &sim->slot[at * IBN_SLOT + kind], place = *slot;
    if (!(place & (IBN_BATCH - 1))) {
        if (!sim->batch_free && ibn_simulate_more_batches(sim))
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

/* Return the index in sim->event of a batch's first event.  `place` is the index behind the batch's last event. */
static inline int32_t ibn_simulate_first_event(int32_t place)
{
    return (place - 1) / IBN_BATCH * IBN_BATCH + 1;
}

/* Free a batch of events, and go to the previous batch of the chain.
 *
 * `place` is the entry behind the last event of the batch.  The result is the index behind the last event of the
 * previous batch, or 0 if there is no previous batch. */
static inline int32_t ibn_simulate_batch_before(ibn_sim *sim, int32_t place)
{
    int32_t b = (place - 1) / IBN_BATCH, before = sim->event[b * IBN_BATCH].subject;
    sim->event[b * IBN_BATCH].subject = sim->batch_free;
    sim->batch_free = b;
    return before ? (before + 1) * IBN_BATCH : 0;
}

/* Schedule an event for a tick later than the present one. */
static inline void ibn_simulate_at(ibn_sim *sim, int64_t time, int kind, int32_t subject, int32_t value)
{
    sim->moving += ibn_simulate_moves(kind);
    sim->crediting += kind == EV_CREDIT;
    if (time - sim->now < sim->slots)
        ibn_simulate_put(sim, (int32_t)(time & (sim->slots - 1)), kind, subject, value);
    else
        ibn_simulate_heap_push(sim, time, kind, (ibn_event){subject, value});
}

/* Return the bit mask (sim->words words) of the inputs that have packets queued for a VC. */
static inline uint64_t *ibn_simulate_mask(const ibn_sim *sim, int32_t l)
{
    return sim->words == 1 ? &sim->vc[l].mask : &sim->mask[(int64_t)l * sim->words];
}

/* Mark a channel, so that it is arbitrated after all events of this tick. */
static inline void ibn_simulate_touch(ibn_sim *sim, int32_t c)
{
    if (!sim->marked[c]) {
        sim->marked[c] = 1;
        sim->touched[sim->touches++] = c;
    }
}

/* Take a packet from the free list.  Return IBN_NONE if memory runs out. */
static inline int32_t ibn_simulate_new_packet(ibn_sim *sim)
{
    if (sim->packet_free == IBN_NONE && ibn_simulate_more_packets(sim))
        return IBN_NONE;
    int32_t p = sim->packet_free;
    sim->packet_free = sim->packet[p].next;
    return p;
}

static inline void ibn_simulate_free_packet(ibn_sim *sim, int32_t p)
{
    sim->packet[p].next = sim->packet_free;
    sim->packet_free = p;
}

/* Functions of switch.c.  They handle packets that arrive at a switch or a CA. */
void ibn_simulate_arrive(ibn_sim *sim, int32_t from, int32_t to);
void ibn_simulate_deliver(ibn_sim *sim, int32_t from, int32_t to);
void ibn_simulate_expose(ibn_sim *sim, int32_t vc);
/* Functions of lose.c.  They count lost packets. */
void ibn_simulate_lose(ibn_sim *sim, int32_t p);
void ibn_simulate_gone(ibn_sim *sim, int32_t p);
/* Function of arbiter.c.  It arbitrates channels. */
void ibn_simulate_arbitrate(ibn_sim *sim);
/* Functions of crossbar.c.  They handle inputs that become free, and sort the outputs. */
void ibn_simulate_input_free(ibn_sim *sim, int32_t c);
void ibn_simulate_order_touched(ibn_sim *sim);
/* Functions of source.c.  They create the traffic. */
void ibn_simulate_prepare(ibn_sim *sim, int32_t f);
void ibn_simulate_start_flows(ibn_sim *sim);
/* Functions of drop.c.  They drop packets that are too old. */
void ibn_simulate_arm(ibn_sim *sim, int32_t vc);
void ibn_simulate_head(ibn_sim *sim, int32_t vc);
void ibn_simulate_unstall(ibn_sim *sim, int32_t vc);
/* Functions of pause.c.  They use pauses instead of credits. */
void ibn_simulate_open(ibn_sim *sim);
void ibn_simulate_look_at(ibn_sim *sim, int32_t vc);
void ibn_simulate_look_full(ibn_sim *sim);
void ibn_simulate_look_empty(ibn_sim *sim);
void ibn_simulate_pause(ibn_sim *sim, int32_t vc, int32_t word);
int ibn_simulate_may_resume(const ibn_sim *sim, int32_t vc);
/* Function of fault.c.  It finds links that are down. */
int32_t ibn_simulate_down_at(const ibn_sim *sim, int32_t device, int port);
/* Functions of drop.c.  They drop packets that are too old. */
void ibn_simulate_drop(ibn_sim *sim, int32_t c, int32_t vc, int32_t input);
/* Functions of clcm.c.  They send control messages for both breakers. */
int ibn_simulate_still_suspected(const ibn_sim *sim, int32_t vc);
int ibn_simulate_wants(const ibn_sim *sim, int32_t vc_in, int32_t vc_out);
uint32_t ibn_simulate_switch_id(const ibn_sim *sim, int32_t device);
void ibn_simulate_send_clcm(ibn_sim *sim, int32_t message, int32_t vc);
/* Functions of loop.c (Loop Breaker) and deadlock.c (Deadlock Breaker). */
void ibn_simulate_draw(ibn_sim *sim, int32_t vc, int32_t round);
void ibn_simulate_loop_clcm(ibn_sim *sim, int32_t message);
void ibn_simulate_deadlock_clcm(ibn_sim *sim, int32_t message);
void ibn_simulate_rule_end(ibn_sim *sim, int32_t vc_out, int32_t vc_in);
/* Functions of breaker.c, the common part of both breakers. */
void ibn_simulate_sample(ibn_sim *sim);
void ibn_simulate_clcm(ibn_sim *sim, int32_t vc, int32_t episode);
void ibn_simulate_control(ibn_sim *sim, int32_t message);
#pragma GCC visibility pop

#endif
