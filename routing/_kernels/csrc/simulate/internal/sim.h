/* State of a packet simulation.  docs/simulation.md explains the model.
 *
 * Switches have output queues (switch.c, arbiter.c), or they are adaptive (internal/adaptive.h).
 *
 * A virtual channel (VC) is one VL of one channel.  A VC consists of the sender's credits, and of the receiver's input
 * buffer of this VL.  Variables with the number of a VC are called `vc` or `l`.  If there are `vls` VLs, VC l belongs
 * to channel l / vls.  A block is 64 bytes. */
#pragma once

#include <stdint.h>

#include "simulate/sim.h"

enum {
    EV_FREE,   /* Kind of event: a channel has finished sending a packet.  Subject: the channel. */
    EV_CREDIT, /* Kind of event: credits reach the sender of a VC.  Subject: the VC.  Value: number of blocks. */
    /* Kind of event: room becomes free in the receiver's buffer of a VC.  The sender does not know this yet.  Subject:
     * the VC.  Value: number of blocks. */
    EV_FREED,
    EV_ARRIVE,  /* Kind of event: the head of a packet can be forwarded.  Subject: the packet. */
    EV_DELIVER, /* Kind of event: the tail of a packet has reached a CA.  Subject: the packet. */
    EV_INJECT,  /* Kind of event: a flow can send its next packet.  Subject: the flow. */
    EV_EXPOSE,  /* Kind of event: the next packet in the single queue (FIFO) of an input can be forwarded.  Subject:
                 * the VC whose buffer has the queue. */
    /* Kind of event: an input for which a channel has waited can send another packet now.  Subject: the channel. */
    EV_INPUT,
    /* Kind of event: a pause or resume message reaches the sender of a VC.  Subject: the VC.  Value: number of the
     * message; a pause message has an odd number, a resume message an even number. */
    EV_PAUSE,
    /* First kind whose events are sorted by subject and value.  In each tick, the kinds before EV_LATER are handled
     * first, one after the other.  The events of one of these kinds are handled in any order.  Then the events of each
     * kind from EV_LATER on are sorted and handled.  Exception: in simulations with pauses, EV_FREED events are the last of a tick. */
    EV_LATER,
    EV_HEAD = EV_LATER, /* Kind of event: a head packet may have exceeded a lifetime limit.  Subject: the VC. */
    EV_UNSTALL,         /* Kind of event: the stall of a VL ends.  Subject: the VC. */
    /* Kind of event: one of the two effects of a rule of Deadlock Breaker ends.  Subject: the output VC of the rule.
     * Value: if the room that the rule has added to a buffer is removed, the VC of this buffer (the input VC of the
     * rule); if the output VC serves all inputs again, IBN_NONE. */
    EV_RULE_END,
    /* Kind of event: a control message of a breaker reaches the other end of its channel.  Subject: the message. */
    EV_CONTROL,
    /* Kind of event: a suspected VC sends its next control message.  Subject: the VC.  Value: ibn_watch.episode of the
     * VC at the time when the event was scheduled. */
    EV_CLCM,
    /* Kind of event: a periodic step of the simulation.  Subject: the step, one of PERIODIC_... */
    EV_PERIODIC,
    /* Kind of event: a timer of a mechanism.  Subject: number of the mechanism, together with a number that the
     * mechanism has chosen.  Value: a second number that the mechanism has chosen. */
    EV_TIMER,
    EV_KINDS
};
enum {
    PERIODIC_SAMPLE, /* periodic step: breakers search for VCs that make no progress */
    PERIODIC_FCP     /* periodic step: all receivers send flow control packets */
};
/* Bits of sim->hooks, one for each hook of mechanism.h.  A bit is set if at least one mechanism of the simulation has
 * the hook. */
enum {
    IBN_HOOK_GATE = 1,
    IBN_HOOK_MADE = 2,
    IBN_HOOK_SENT = 4,
    IBN_HOOK_QUEUED = 8,
    IBN_HOOK_DELIVERED = 16,
    IBN_HOOK_LOST = 32,
    IBN_HOOK_ROOM = 64,
    IBN_HOOK_ARRIVED = 128,
    IBN_HOOK_VL = 256,
    IBN_HOOK_OUTPUT = 512
};

enum { ARBITER_ROUND_ROBIN, ARBITER_ARRIVAL, ARBITER_RANDOM, ARBITER_CROSSBAR };
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

/* Attribute of a function with an argument that is a constant in every call, such as plain = 1.  The compiler makes a
 * separate copy of the function for each constant. */
#define IBN_SPECIALIZED static inline __attribute__((always_inline))

#define IBN_COST_BITS 20
#define IBN_NONE (-1)
#define IBN_BATCH 32 /* number of entries of a batch of events, including one entry that links to the previous batch */
#define IBN_NEVER INT64_MAX
#define IBN_LATENCY_BUCKETS \
    2048 /* number of buckets in a histogram of latencies, see ibn_simulate_latency_bucket in flow.h */
/* number of kinds of events that fit into a slot of the timing wheel; such a slot fills one cache line */
#define IBN_SLOT 16
#define IBN_CLCM_PORTS 64    /* largest number of VCs that a control message of Deadlock Breaker can list */
#define IBN_LOG_WIDTH 6      /* number of columns of the event log: tick, kind, and four numbers */
#define IBN_LOG_MOST 4000000 /* largest number of rows of the event log; further rows are counted, but not stored */

/* An event that is due at a later tick.  The tick and the kind of an event follow from where the event is stored. */
typedef struct {
    int32_t subject, /* VC, packet, channel or flow that the event concerns, depending on its kind */
        value;       /* a further number for some kinds of events, for instance a number of blocks */
} ibn_event;

/* An event that is due so late that the timing wheel has no slot for its tick yet. */
typedef struct {
    int64_t time;    /* tick at which the event is due */
    int32_t kind;    /* kind of the event, one of EV_... */
    ibn_event event; /* subject and value of the event */
} ibn_distant;

/* A packet of the simulation.  The struct fills one cache line. */
typedef struct {
    /* tick at which the message of the packet was due.  A flow with PROCESS_PERSISTENT begins each message as soon as
     * it has sent the previous one.  Such a message has no due time, so this is the tick at which it began */
    int64_t born,
        entered,  /* tick at which the packet began to leave its CA */
        ready,    /* first tick at which the device that holds the packet could forward the packet's head */
        tail,     /* tick at which the tail of the packet reaches the device to which the packet was sent last */
        /* tick at which the packet became the first packet in its queue.  With adaptive switches: not a tick, but a
         * number that identifies the packet */
        headed;
    int32_t next,   /* next packet in the queue, or next unused packet; IBN_NONE: none */
        flow,       /* flow to which the packet belongs */
        channel,    /* channel by which the packet was sent last; IBN_NONE: the packet is at its source CA */
        vc;         /* VC on which the packet was sent last; IBN_NONE: the packet is at its source CA, or an adaptive
                     * switch has sent it without credits */
    uint16_t bytes, /* size of the packet in bytes */
        blocks,     /* size of the packet in blocks, rounded up */
        lid;        /* destination LID of the packet */
    uint8_t sl,     /* service level (SL) of the packet */
        last;       /* 1: the packet is the last packet of its message, else 0 */
} ibn_packet;

/* A queue of packets, linked by the field `next` of ibn_packet. */
typedef struct {
    int32_t head, /* first packet, IBN_NONE if the queue is empty */
        tail;     /* last packet; undefined if the queue is empty */
} ibn_fifo;

/* The part of a VC's state that every hop of a packet needs.  The struct fills one cache line. */
typedef struct {
    uint32_t fctbs, /* number of blocks sent since the start, as a counter that wraps around (InfiniBand: FCTBS) */
        /* largest value that `fctbs` may reach with the credits that have arrived (InfiniBand: FCCL); a counter that
         * wraps around */
        fccl;
    /* The fast code (sim->plain is 1) does not keep the next three fields up to date.  Instead, count_blocks of read.c
     * computes their values before they are read.  Until then, the values have no meaning and may wrap around: with
     * the option speedup, they change when a packet is sent, but not when it arrives. */
    int32_t held,   /* number of blocks in the receiver's buffer whose packets have not begun to leave */
        flying,     /* number of blocks that were sent and have not reached the buffer yet */
        returning;  /* number of blocks whose packets have begun to leave the buffer, but whose credits have not reached
                     * the sender yet */
    /* present size of the buffer in blocks: the credits of the sender plus the fields `held`, `flying` and
     * `returning` */
    int32_t buffer;
    int32_t waiting;    /* number of packets that are queued at the sender for this VC */
    int32_t next_input; /* input at which the next round-robin search begins; the value ibn_channel.inputs means input
                         * 0 */
    /* bit n is set if input n has packets queued for this VC; used only if one 64-bit word has enough bits for all
     * inputs */
    uint64_t mask;
    int64_t sent;   /* tick at which the tail of the last packet left; -1: no packet was sent */
    /* the only input that this VC serves, because of a rule of Deadlock Breaker; IBN_NONE: all inputs are served */
    int32_t only;
    int16_t pass,   /* number of further packets that may be sent without credits (Loop Breaker) */
        pass_input; /* the input whose packets may be sent without credits, as long as the field `pass` is above 0 */
    /* with credits: number of blocks that the buffer accepts beyond its size `buffer`.  With pauses: number of credits
     * that pause.c has taken from the VC; negative if pause.c has added credits */
    int32_t reserve;
    uint16_t stalled,   /* 1: the VL is stalled, so that every packet for this VC is dropped; else 0 */
        /* number of packets dropped in a row at the heads of the queues, since the last packet was sent */
        dropped_in_row;
} ibn_vc;

/* The part of a VC's state for optional features: dropping of old packets, pause messages, deadlock breakers, and
 * inputs with a single queue (FIFO). */
typedef struct {
    /* for deadlock breakers: random identifier that the suspected VC has drawn */
    uint32_t own,
        /* for deadlock breakers: smallest identifier that the suspected VC has drawn or received in the present
         * election round.  Loop Breaker elects a master in rounds, and the suspected VCs draw new identifiers in each
         * round */
        spuid;
    /* tick since which there has always been a packet in the queues for the VC; valid only if sim->aging is 1 */
    int64_t since;
    /* tick of the pending EV_HEAD event of the VC, which drops packets that are too old; 0: none is pending.  EV_HEAD
     * events of the VC at other ticks are ignored. */
    int64_t check;
    int32_t
        /* for deadlock breakers: counter that increases when the VC becomes suspected or the master; an EV_CLCM event
         * with a lower value is out of date */
        episode,
        /* number of blocks that have become free in the buffer and that the next flow control packet will report */
        unsent,
        extra,         /* number of blocks that a rule of Deadlock Breaker has added to the buffer */
        round,         /* for Loop Breaker: number of the present election round */
        sends; /* for Loop Breaker: number of control messages that the VC has sent in the present election round */
    uint8_t suspected, /* 1: the last search has found that the VC makes no progress, else 0 */
        busy_input; /* if inputs have a single queue (FIFO): 1 while a packet of this buffer is in an output queue or is
                     * being sent, else 0.  With adaptive switches: 1 while a packet is leaving this buffer, else 0 */
    uint8_t to_check;  /* 1: the VC is listed in sim->to_check, else 0 */
    int32_t last_message, /* with pauses: number of the last pause or resume message that the receiver has sent */
        heard;            /* with pauses: number of the last pause or resume message that has reached the sender */
    ibn_fifo hidden;      /* packets of the buffer that are not in an output queue; used for inputs with a single queue
                           * (FIFO), for adaptive switches, and for CAs where a mechanism leaves packets in the
                           * buffer */
} ibn_watch;

/* State of one channel, which is one direction of a link.  The struct takes two cache lines, of which the second is
 * seldom used. */
typedef struct {
    int64_t busy;        /* tick from which on the channel can send again; IBN_NEVER: its link is down */
    int64_t cost,        /* ticks that a byte takes on the channel, x 2^IBN_COST_BITS */
        bytes,           /* number of bytes sent since the start */
        packets,         /* number of packets sent since the start */
        wait;            /* number of ticks during which packets were queued for the channel, but none was sent */
    int32_t carry,       /* part of a tick by which the last packet's time was rounded down; it is added to the time of
                          * the next packet; x 2^IBN_COST_BITS */
        queues,          /* index in sim->queue of the channel's first queue; the channel has [vls][inputs] queues, one
                          * for each VL and input */
        inputs;          /* number of inputs of the sending device: channels into a switch, or flows of a CA */
    int32_t wire,        /* delay of the cable in ticks, from one end to the other */
        /* ticks from the beginning of sending a packet until the next switch can forward it; 0: the channel leads to a
         * CA */
        hop;
    /* The next four fields are parts of one 32-bit number, because separate bytes would make the code slower.  The
     * compiler assumes that a write to a byte may change any pointer, so it would load the pointers again. */
    uint32_t vls : 16,   /* VLs, as bits, that have packets queued at this channel */
        next_vl : 8,     /* VL at which the next round-robin search begins; if it equals the number of VLs: VL 0 */
        called : 1,      /* 1: an EV_FREE event (the channel has finished sending) is pending, else 0 */
        touched : 1;     /* 1: the channel is listed in sim->touched, else 0 */
    int32_t src,         /* device that sends */
        dst,             /* device that receives */
        reverse,         /* channel of the same link in the opposite direction */
        in_index,        /* number of this channel among the inputs of the device that receives */
        /* for VL arbitration: number of blocks that the present entry of the high-priority table may still send */
        high_left,
        low_left, /* for VL arbitration: number of blocks that the present entry of the low-priority table may still
                   * send */
        /* for VL arbitration: number of blocks that the high-priority table may still send before the low-priority
         * table is served */
        high_limit_left;
    uint8_t high_at,     /* for VL arbitration: index of the present entry in the high-priority table */
        low_at,          /* for VL arbitration: index of the present entry in the low-priority table */
        arbiter,         /* row of sim->vlarb that has the VL arbitration tables of the channel */
        from_switch,     /* 1: the sender is a switch, 0: a CA or router */
        to_switch,       /* 1: the receiver is a switch, 0: a CA or router */
        dst_port,        /* port number at the receiver */
        ages;            /* 1: packets that are queued for the channel have a lifetime limit, else 0 */
    int64_t awaits;    /* tick of the channel's first pending EV_INPUT event (a busy input can send again); 0: no such
                        * event is pending */
    int32_t next_crossbar_input; /* with ARBITER_CROSSBAR: crossbar input at which the next search begins */
    uint8_t spare[12]; /* bytes that are not used, so that the struct fills its second cache line */
} ibn_channel;

/* Copy of some data of a channel.  The device at the end of the channel needs these data to forward a packet and to
 * return the packet's credits.  An array of these copies is smaller than the array of channels. */
typedef struct {
    int32_t device, /* device at which the channel ends */
        reverse,    /* channel of the same link in the opposite direction */
        in_index,   /* number of the channel among the inputs of the device at which it ends */
        wire,       /* delay of the cable in ticks, from one end to the other */
        /* number of elements of sim->sl2vl from the row of one out-port to the row of the next out-port; 0: all
         * out-ports share one row */
        sl2vl_step;
    int64_t sl2vl_row; /* index in sim->sl2vl of the row for packets that arrive by the channel and leave by port 0 */
} ibn_far_end;

/* Counters of rare events of a channel, such as dropped packets. */
typedef struct {
    int64_t discards, /* number of packets for this channel that were dropped, in its queues or before they were
                       * queued */
        hoq,          /* number of packets in `discards` that exceeded the head-of-queue lifetime */
        lifetime,     /* number of packets in `discards` that exceeded the switch lifetime */
        stalled,      /* number of packets in `discards` that were dropped because their VL was stalled */
        overrun,      /* number of packets that arrived by this channel and found no room in the buffer */
        /* number of packets from this channel that a switch could not route, or that reached a CA to which their LID
         * does not belong */
        relay,
        control,      /* number of bytes of control messages that breakers have sent by this channel */
        down;         /* number of packets that were lost because the link of the channel went down or was down */
} ibn_counters;

/* A flow of messages from one CA.  The function ibn_simulate_flow_set sets all fields from `channel` to `hot`. */
typedef struct {
    int32_t channel, /* channel by which the CA sends */
        index,       /* number of the flow among the flows that the CA sends by `channel` */
        process,     /* process by which messages become due, one of PROCESS_... */
        pattern,     /* rule by which the destination of a message is chosen, one of PATTERN_... */
        /* index in sim->lists of the flow's first destination; with PROCESS_TRACE: first row of the flow in
         * sim->trace */
        list,
        count,       /* number of destinations of the flow */
        /* index of the sender's own LID among the destinations; the flow does not choose this LID.  -1: the LID is not
         * among the destinations */
        self, hot_list, /* index in sim->lists of the flow's first hot destination */
        hot_count,      /* number of hot destinations of the flow */
        bytes,          /* size of a message in bytes */
        mtu;            /* size of the largest packet in bytes */
    int64_t sl_row,     /* row of sim->sl that has the SLs of the flow's packets */
        start,          /* first tick at which a message of the flow may begin */
        stop,           /* tick from which on no message of the flow begins */
        messages,       /* largest number of messages that the flow sends */
        slot,           /* with PROCESS_BERNOULLI: length of a slot in ticks; in a slot, at most one message is due */
        window;         /* largest number of packets of the flow that may be in flight at one time */
    /* mean: with PROCESS_POISSON, mean number of ticks between messages; with PROCESS_BURSTY, number of ticks between
     * the messages of a burst; unused with other processes.
     * factor: with PROCESS_BERNOULLI, 1 / log(1 - p), where p is the probability of a message in a slot; 0 if p is 1;
     * unused with other processes. */
    double mean, factor,
        burst,            /* with PROCESS_BURSTY: mean number of messages in a burst */
        gap,              /* with PROCESS_BURSTY: mean number of ticks between bursts */
        hot;              /* with PATTERN_HOTSPOT: fraction of the messages that go to hot destinations */
    uint64_t key;         /* key of the stream of random numbers that the flow uses */
    int64_t made,         /* number of messages that have begun */
        due,              /* tick at which the next message of the flow is due */
        born,             /* tick at which the message that the flow sends now was due; with PROCESS_PERSISTENT: tick
                           * at which this message began */
        slots;            /* with PROCESS_BERNOULLI: number of the next message's slot, counted from 1 */
    double clock;         /* due time of the next message in ticks after `start`, with fractions of a tick */
    int32_t left,         /* number of bytes of the current message that are not in a packet yet */
        head,             /* packet that waits at the port of the CA, or IBN_NONE */
        lid,              /* destination LID of the message that the flow sends now */
        called,           /* 1: an EV_INJECT event (the flow can send a packet) is pending, else 0 */
        shut,             /* 1: the flow waits, because the number of its packets in flight has reached `window`;
                           * else 0 */
        gated;            /* 1: a mechanism has stopped the flow's next packet, else 0 */
    int64_t sent_packets, /* number of packets of the flow that the CA has sent */
        sent_bytes,       /* number of bytes of the flow that the CA has sent */
        packets,          /* number of packets of the flow that were delivered */
        bytes_got,        /* number of bytes of the flow that were delivered */
        /* sum over the delivered packets: ticks from the due time of the message to the delivery of the packet */
        latency,
        network, /* sum over the delivered packets: ticks from the beginning of sending at the CA to the delivery */
        worst, /* largest number of ticks from the due time of a message to the delivery of one of its packets */
        dropped,          /* number of packets of the flow that were lost */
        messages_got;     /* number of messages of the flow whose last packet was delivered */
} ibn_flow;

/* A control message of a deadlock breaker (Loop Breaker or Deadlock Breaker). */
typedef struct {
    int32_t vc, /* VC over which the message was sent last */
        kind,   /* protocol of the message: BREAKER_LOOP or BREAKER_DEADLOCK */
        phase, /* for Deadlock Breaker; 0: the message searches for a loop, 1: it goes around the loop and sets rules */
        /* for Loop Breaker: number of the election round.  For Deadlock Breaker in phase 0: the value of `count`.  For
         * Deadlock Breaker in phase 1: index in `egress` of the VC over which the message will leave the next
         * switch. */
        index,
        count,      /* for Deadlock Breaker: number of VCs in `egress` */
        next;       /* next unused control message, or IBN_NONE */
    uint32_t spuid; /* for Loop Breaker: identifier that the sending VC passes on */
    /* [count] for Deadlock Breaker: VC over which the message has left each switch in phase 0, in which it searches for
     * a loop */
    int32_t egress[IBN_CLCM_PORTS];
} ibn_clcm;

typedef struct ibn_attached ibn_attached;
typedef struct ibn_adaptive ibn_adaptive;

/* A packet that was queued at a switch in the present tick; recorded for the hooks of mechanisms. */
typedef struct {
    int32_t vc, /* VC for which the packet is queued */
        input,  /* input of the switch by which the packet arrived */
        packet; /* the packet */
} ibn_arrival;

/* State of a packet simulation. */
struct ibn_sim {
    int32_t devices, /* number of devices: the switches come first, followed by CAs and routers */
        switches,    /* number of switches */
        channels,    /* number of channels */
        vls,         /* number of VLs */
        lids,        /* number of LIDs, including LID 0 */
        sl2vl_ports, /* lengths of the axes in-port and out-port of `sl2vl`; 0: all switches share one SL2VL table */
        flows,       /* number of flows */
        words;       /* number of 64-bit words of a mask that has one bit for each input */
    int64_t now,     /* present tick */
        vcs;         /* number of VCs: channels x vls */

    /* The next fields describe the network: channels, buffers and tables. */
    ibn_channel *channel;   /* [channels] state of each channel */
    ibn_far_end *far_end;   /* [channels] data of each channel that its receiver needs to forward a packet */
    ibn_counters *counters; /* [channels] counters of rare events of each channel */
    ibn_vc *vc;             /* [vcs] state of each VC */
    ibn_watch *watch;       /* [vcs] state of each VC for optional features, such as deadlock breakers and pauses */
    ibn_fifo *queue; /* output queues of all channels; ibn_channel.queues is the index of a channel's first queue */
    /* [queues] with ARBITER_CROSSBAR: for each channel and crossbar input of its device, the queue of the crossbar
     * input at which the next search begins.  ibn_channel.queues is the index of a channel's first element. */
    uint8_t *next_queue;
    int64_t queues;  /* number of elements of `queue` */
    /* [vcs][words] bit n is set if input n has packets queued for the VC; NULL if `words` is 1, because ibn_vc.mask is
     * used then */
    uint64_t *mask;
    int32_t *at_port,    /* [devices][256] channel that leaves each device by each port, or IBN_NONE */
        *out_first,      /* [devices + 1] index in `out_channel` of the first channel out of each device */
        *out_channel;    /* [channels] all channels, sorted by the sending device */
    uint8_t *lft,        /* [switches][lids] out-port of each switch towards each LID */
        *sl2vl,          /* [16] or [switches][in-port][out-port][16] VL that switches assign to each SL */
        *ca_sl2vl,       /* [16] VL that CAs assign to each SL */
        *sl,             /* [sl_rows][lids] SL of packets to each LID; ibn_flow.sl_row is the row that holds for the
                          * packets of a flow */
        /* [switches][switches] number of hops from each switch to each switch; empty if no port uses the breaker Loop
         * Breaker */
        *distance;
    int32_t *lid_switch, /* [lids] switch that delivers each LID, or -1 */
        *lid_device;     /* [lids] device that owns each LID, or -1 */
    int64_t sl_rows;     /* number of rows of `sl` */

    /* The next fields are options of the simulated switches. */
    ibn_simulate_options
        /* the options of the caller, without their arrays: the fields below have copies of these arrays */
        options;
    int64_t *hoq,         /* [channels] head-of-queue lifetime of packets in ticks, 0: no limit */
        *lifetime,        /* [devices] longest time in ticks that a packet may stay in a switch, 0: no limit */
        *detect, /* [channels] number of ticks without progress after which a VC is suspected of being in a deadlock */
        *repeat,          /* [channels] ticks between two control messages of a suspected VC */
        *release;         /* [channels] number of ticks for which a rule of Deadlock Breaker is in force */
    /* [channels] number of packets dropped in a row at the head of queues after which a VL is stalled, 0: never */
    int32_t *stall_count,
        *breaker,         /* [channels] deadlock breaker of the port that sends on each channel, one of BREAKER_... */
        *extra;           /* [channels] number of blocks that a rule of Deadlock Breaker adds to a buffer */
    uint8_t *vlarb;       /* [arbiters][260] VL arbitration tables in the format of ibn_simulate_options */

    /* The next fields belong to the mechanisms, which mechanism.h explains. */
    ibn_attached *attached; /* [mechanisms] mechanisms that are attached to the simulation */
    ibn_adaptive *adaptive; /* state of adaptive switches; NULL: switches have output queues */
    int32_t mechanisms;     /* number of attached mechanisms */
    uint32_t hooks;         /* hooks that at least one attached mechanism has, as a set of bits IBN_HOOK_... */
    int64_t gated;          /* number of flows whose next packet is stopped by a mechanism */
    /* [arrivals_room] packets that were queued in this tick; recorded only if a mechanism has the hook `queued` */
    ibn_arrival *arrival;
    int32_t arrivals,       /* number of elements in `arrival` */
        arrivals_room;      /* number of elements that fit into `arrival` */

    /* The next fields describe the traffic: flows and their messages. */
    ibn_flow *flow; /* [flows] state of each flow */
    int32_t *lists; /* destination LIDs of all flows, one flow after the other */
    int64_t *trace; /* [][3] tick, LID and size in bytes of each message, for flows with the process PROCESS_TRACE */

    /* The next fields store events.  The events of one kind at one tick are in one chain of batches.  The order of the
     * events in a chain has no meaning.  All batches of a chain are full, except possibly the last batch.  The first
     * entry of each batch is not an event: its field `subject` holds the number of the previous batch in the chain, or
     * 0. */
    ibn_event *event;     /* [batches_made][IBN_BATCH] batches of events, and unused batches */
    int32_t batches_made, /* number of batches for which memory is allocated */
        batch_free;       /* number of the first unused batch; 0: all batches are in use (batch 0 itself is never
                           * used) */
    /* [slots][IBN_SLOT] for each tick and kind of event: index in `event`, counted over all batches, at which the next
     * event is stored.  The value 0 means that there is no batch yet.  If the value is any other multiple of IBN_BATCH,
     * it is the end of a full batch, so the next event needs a new batch. */
    uint32_t *slot;
    int32_t *touched,      /* [channels] channels that have to be arbitrated in this tick */
        *to_check; /* [vcs] VCs whose buffer occupancy has changed in this tick, so that a pause may begin or end */
    /* [heap_room] events that are due too late for the timing wheel, as a binary heap ordered by tick */
    ibn_distant *heap;
    ibn_event *later;      /* [later_room] events of one kind while they are being sorted */
    /* [channels][speedup] row c is for the input at the port from which channel c leaves a switch.  The row has the
     * ticks at which the last `speedup` packets leave this input.  The earliest tick comes first, the others are in any
     * order.  The array is allocated only if the option speedup is set. */
    int64_t *input_ends;
    /* [switches][4] mask of 256 bits for each switch: bit n is set if output n has to be arbitrated.  The mask is
     * allocated only if the option speedup is set. */
    uint64_t *outputs;
    int32_t *competing;    /* [switches] switches that have bits in `outputs` */
    uint64_t *busy_slots;  /* [slots / 64] one bit for each slot of the timing wheel, set if the slot has events */
    /* 1: arbitration is round robin, and one 64-bit word has enough bits for the inputs of each channel; else 0 */
    int32_t in_turn;
    /* 1: the fast code handles the hops of packets, 0: the general code.  The fast code is used if `in_turn` is 1,
     * unless an option or a mechanism needs the general code. */
    int32_t plain;
    int32_t aging;       /* 1: some channel has a lifetime limit, or some port has a breaker; else 0 */
    int64_t slots;       /* number of slots of the timing wheel, one for each tick */
    int32_t heap_size,   /* number of events in `heap` */
        heap_room,       /* number of events that fit into `heap` */
        later_room,      /* number of events that fit into `later` */
        touches,         /* number of channels in `touched` */
        checks;          /* number of VCs in `to_check` */
    /* 1: when room in a buffer becomes free, an EV_FREED event takes place at the receiver.  The sender learns of the
     * room later, by a flow control packet or a resume message.  0: an EV_CREDIT event at the sender takes place
     * instead, without an EV_FREED event */
    int32_t freed_first;
    /* number of pending events that can make data move, plus number of VCs whose credits wait for the next flow control
     * packet.  If the sum is 0 while packets are in flight, the simulation is at a standstill. */
    int64_t moving, crediting; /* number of pending EV_CREDIT events, which are included in `moving` */

    /* The next fields store packets, control messages and the event log. */
    ibn_packet *packet;   /* [packets_made] packets of the simulation, and unused packets */
    int32_t packets_made, /* number of packets for which memory is allocated */
        packet_free;      /* first unused packet, or IBN_NONE */
    ibn_clcm *clcm;       /* [clcms_made] control messages in flight, and unused control messages */
    int32_t clcms_made,   /* number of control messages for which memory is allocated */
        clcm_free;        /* first unused control message, or IBN_NONE */
    int64_t *log;         /* [logged][IBN_LOG_WIDTH] rows of the event log */
    int64_t logged,       /* number of rows that were written to the log */
        log_room,         /* number of rows of the log for which memory is allocated */
        log_lost,         /* number of rows that were not written because the log is full */
        picks;            /* number of random numbers that deadlock breakers have drawn to choose VCs or channels;
                           * random identifiers of VCs are not counted */
    int failed;           /* 1: memory has run out, 3: a mechanism is unknown, else 0 */

    /* The next fields are totals since the start of the simulation. */
    int64_t injected,    /* number of packets that CAs have sent */
        delivered,       /* number of packets that were delivered to CAs */
        dropped,         /* number of packets that were lost */
        injected_bytes,  /* number of bytes that CAs have sent */
        delivered_bytes, /* number of bytes that were delivered to CAs */
        dropped_bytes,   /* number of bytes that were lost */
        hops,            /* number of packets sent by all channels, each packet counted once for each channel */
        handled,         /* number of events that were handled */
        last_move;       /* tick at which a packet was last sent */

    /* [2][buckets] number of packets (row 0) and of messages (row 1) with a latency in each bucket.  The latency of a
     * packet is the time from the due time of its message to the delivery.  The latency of a message is the latency of
     * its last packet. */
    int64_t latencies[2][IBN_LATENCY_BUCKETS];
};

_Static_assert(EV_KINDS <= IBN_SLOT, "every kind of event has a place in a slot");
_Static_assert(sizeof(ibn_packet) == 64 && sizeof(ibn_vc) == 64, "a cache line each");
_Static_assert(sizeof(ibn_event) * IBN_BATCH == 256, "four cache lines");
_Static_assert(sizeof(ibn_channel) == 128, "two cache lines");

static inline uint64_t ibn_simulate_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Return the n-th number of the stream of random numbers with a given key.  Streams with different keys are
 * independent. */
static inline uint64_t ibn_simulate_number(uint64_t key, uint64_t n)
{
    return ibn_simulate_mix(key + (n + 1) * 0x9E3779B97F4A7C15u);
}

/* Return the key of a stream of random numbers.  `kind` is the purpose of the stream, and `stream` the number of the
 * object that uses it, such as a channel, a VC or a device. */
static inline uint64_t ibn_simulate_key(uint64_t seed, uint64_t kind, uint64_t stream)
{
    return ibn_simulate_mix(ibn_simulate_mix(seed * 3 + kind) + (stream + 1) * 0xD1B54A32D192ED03u);
}

/* Return the credits of a VC: the number of blocks that its sender may send now.  The difference of the two counters is
 * right even after one of them has wrapped around, because both are unsigned. */
static inline int32_t ibn_simulate_credits(const ibn_vc *vc)
{
    return (int32_t)(vc->fccl - vc->fctbs);
}

#pragma GCC visibility push(hidden)
/* Functions of events.c, which store events, packets, control messages and the log. */
int ibn_simulate_more_batches(ibn_sim *sim);
void ibn_simulate_heap_push(ibn_sim *sim, int64_t time, int kind, ibn_event event);
void ibn_simulate_heap_pop(ibn_sim *sim);
int32_t ibn_simulate_gather(ibn_sim *sim, uint32_t place);
void ibn_simulate_note(ibn_sim *sim, int kind, int64_t a, int64_t b, int64_t c, int64_t d);
int32_t ibn_simulate_new_clcm(ibn_sim *sim);
void ibn_simulate_drop_clcm(ibn_sim *sim, int32_t message);
int ibn_simulate_more_packets(ibn_sim *sim);

/* Return whether events of a kind move data, or can cause data to move again. */
static inline int ibn_simulate_moves(int kind)
{
    return kind < EV_LATER || kind == EV_RULE_END || kind == EV_TIMER;
}

/* Add an event to the timing wheel.  `at` is the slot of the event's tick. */
static inline void ibn_simulate_put(ibn_sim *sim, int64_t at, int kind, int32_t subject, int32_t value)
{
    uint32_t *slot = &sim->slot[at * IBN_SLOT + kind], place = *slot;
    if (!(place & (IBN_BATCH - 1))) {
        if (!sim->batch_free && ibn_simulate_more_batches(sim))
            return;
        int32_t full = place ? (int32_t)(place / IBN_BATCH) - 1 : 0;
        place = (uint32_t)sim->batch_free * IBN_BATCH;
        sim->batch_free = sim->event[place].subject;
        sim->event[place++].subject = full;
        sim->busy_slots[at >> 6] |= 1ull << (at & 63);
    }
    sim->event[place] = (ibn_event){subject, value};
    *slot = place + 1;
}

/* Return the index in sim->event of the first event in a batch.  `place` is the index after the last event of the
 * batch. */
static inline uint32_t ibn_simulate_first_event(uint32_t place)
{
    return (place - 1) / IBN_BATCH * IBN_BATCH + 1;
}

/* Return the index after the last event of the batch that comes before a given batch in the same linked list.  Return 0
 * if no batch comes before.  `first` is the index of the first event of the given batch. */
static inline uint32_t ibn_simulate_end_before(const ibn_sim *sim, uint32_t first)
{
    uint32_t before = (uint32_t)sim->event[first - 1].subject;
    return before ? (before + 1) * IBN_BATCH : 0;
}

/* Free a batch of events, and go to the batch before it in the same linked list.
 *
 * `place` is the index after the last event of the batch to free.  Return the index after the last event of the batch
 * before it, or 0 if no batch comes before. */
static inline uint32_t ibn_simulate_batch_before(ibn_sim *sim, uint32_t place)
{
    uint32_t b = (place - 1) / IBN_BATCH, before = ibn_simulate_end_before(sim, b * IBN_BATCH + 1);
    sim->event[b * IBN_BATCH].subject = sim->batch_free;
    sim->batch_free = (int32_t)b;
    return before;
}

/* Schedule an event for a tick after the present tick. */
static inline void ibn_simulate_at(ibn_sim *sim, int64_t time, int kind, int32_t subject, int32_t value)
{
    sim->moving += ibn_simulate_moves(kind);
    sim->crediting += kind == EV_CREDIT;
    if (time - sim->now < sim->slots)
        ibn_simulate_put(sim, time & (sim->slots - 1), kind, subject, value);
    else
        ibn_simulate_heap_push(sim, time, kind, (ibn_event){subject, value});
}

/* Return the mask of the inputs that have packets queued for VC l.  The mask has sim->words words. */
static inline uint64_t *ibn_simulate_mask(const ibn_sim *sim, int32_t l)
{
    return sim->words == 1 ? &sim->vc[l].mask : &sim->mask[(int64_t)l * sim->words];
}

/* Mark channel c, so that it is arbitrated after all events of this tick. */
static inline void ibn_simulate_touch(ibn_sim *sim, int32_t c)
{
    if (!sim->channel[c].touched) {
        sim->channel[c].touched = 1;
        sim->touched[sim->touches++] = c;
    }
}

/* Return an unused packet.  Return IBN_NONE if memory runs out. */
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

/* Append packet p to a queue.  Return whether the queue was empty. */
static inline int ibn_simulate_append(ibn_sim *sim, ibn_fifo *queue, int32_t p)
{
    int empty = queue->head == IBN_NONE;
    sim->packet[p].next = IBN_NONE;
    if (empty)
        queue->head = p;
    else
        sim->packet[queue->tail].next = p;
    queue->tail = p;
    return empty;
}

/* Functions of switch.c, which handle packets that arrive at a switch or a CA. */
void ibn_simulate_arrive(ibn_sim *sim, uint32_t from, uint32_t to);
void ibn_simulate_deliver(ibn_sim *sim, uint32_t from, uint32_t to);
void ibn_simulate_expose(ibn_sim *sim, int32_t vc);
void ibn_simulate_got(ibn_sim *sim, int32_t p);
/* Functions of lose.c, which count lost packets. */
void ibn_simulate_lose(ibn_sim *sim, int32_t p);
void ibn_simulate_gone(ibn_sim *sim, int32_t p);
/* Arbitrate all channels that events of this tick concern: see arbiter.c. */
void ibn_simulate_arbitrate(ibn_sim *sim);
/* Functions of source.c, which create the traffic. */
void ibn_simulate_prepare(ibn_sim *sim, int32_t f);
void ibn_simulate_offer(ibn_sim *sim, int32_t p);
void ibn_simulate_start_flows(ibn_sim *sim);
/* Functions of drop.c, which drop packets that are too old. */
void ibn_simulate_arm(ibn_sim *sim, int32_t vc);
void ibn_simulate_head(ibn_sim *sim, int32_t vc);
void ibn_simulate_unstall(ibn_sim *sim, int32_t vc);
/* Functions of pause.c, which use pause messages instead of credits. */
void ibn_simulate_open(ibn_sim *sim);
void ibn_simulate_look_at(ibn_sim *sim, int32_t vc);
void ibn_simulate_look_full(ibn_sim *sim);
void ibn_simulate_look_empty(ibn_sim *sim);
void ibn_simulate_pause(ibn_sim *sim, int32_t vc, int32_t word);
int ibn_simulate_may_resume(const ibn_sim *sim, int32_t vc);
/* Return the channel that leaves a device by a port, if the link at this port is down.  Otherwise return IBN_NONE.  See
 * fault.c. */
int32_t ibn_simulate_down_at(const ibn_sim *sim, int32_t device, int port);
/* Drop the first packet in the queue of an input: see drop.c. */
void ibn_simulate_drop(ibn_sim *sim, int32_t c, int32_t vc, int32_t input);
/* Functions of adaptive_move.c and adaptive_recover.c, which the main loop calls for adaptive switches. */
void ibn_simulate_adaptive_handle(ibn_sim *sim, int kind, int32_t subject, int32_t value);
void ibn_simulate_adaptive_serve(ibn_sim *sim);
void ibn_simulate_adaptive_offer(ibn_sim *sim, int32_t p);
void ibn_simulate_adaptive_sort_pings(ibn_sim *sim, int32_t count);
/* Functions of adaptive_lose.c, which are called when a link of adaptive switches goes down or comes up. */
void ibn_simulate_adaptive_lose_saved(ibn_sim *sim, int32_t p);
void ibn_simulate_adaptive_link(ibn_sim *sim, int32_t c, int down);
/* Functions of adaptive_read.c, which read the state of adaptive switches. */
int64_t ibn_simulate_adaptive_headed(const ibn_sim *sim, int32_t l, int32_t p);
int64_t ibn_simulate_adaptive_wait_edges(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                         uint8_t *can_move);
/* Functions of clcm.c, which send control messages of both deadlock breakers. */
int ibn_simulate_still_suspected(const ibn_sim *sim, int32_t vc);
int ibn_simulate_wants(const ibn_sim *sim, int32_t vc_in, int32_t vc_out);
void ibn_simulate_send_clcm(ibn_sim *sim, int32_t message, int32_t vc);
/* Functions of loop.c (Loop Breaker) and of deadlock.c (Deadlock Breaker). */
void ibn_simulate_draw(ibn_sim *sim, int32_t vc, int32_t round);
void ibn_simulate_loop_clcm(ibn_sim *sim, int32_t message);
void ibn_simulate_deadlock_clcm(ibn_sim *sim, int32_t message);
void ibn_simulate_rule_end(ibn_sim *sim, int32_t vc_out, int32_t vc_in);
/* Functions of breaker.c, the common part of both deadlock breakers. */
void ibn_simulate_sample(ibn_sim *sim);
void ibn_simulate_clcm(ibn_sim *sim, int32_t vc, int32_t episode);
void ibn_simulate_control(ibn_sim *sim, int32_t message);
#pragma GCC visibility pop
