#ifndef IBNUE_SIM_H
#define IBNUE_SIM_H
#include <stdint.h>
/* Channels and routing tables of a simulation.
 *
 * Channels are sorted by sending device and out-port.  Devices are numbered: first the switches, then all others.  A
 * virtual channel (VC) is one VL of one channel, with the number channel x vls + VL.  A block is 64 bytes. */
typedef struct {
    int32_t devices;             /* number of devices */
    int32_t switches;            /* number of switches, which come first among the devices */
    int32_t channels;            /* number of channels */
    int32_t vls;                 /* number of VLs */
    int32_t lids;                /* number of LIDs, including LID 0 */
    int32_t sl2vl_ports;         /* ports of a switch in `sl2vl`; 0: one SL2VL table for all switches */
    const int32_t *src;          /* [channels] device that sends */
    const int32_t *dst;          /* [channels] device that receives */
    const uint8_t *src_port;     /* [channels] port number at the sender */
    const uint8_t *dst_port;     /* [channels] port number at the receiver */
    const int32_t *reverse;      /* [channels] channel of the opposite direction */
    const int64_t *cost;         /* [channels] ticks per byte x 2^20 */
    const int32_t *wire;         /* [channels] ticks from one end of the cable to the other */
    const int32_t *buffer;       /* [channels][vls] size of the receiver's buffer in blocks */
    const int32_t *switch_delay; /* [devices] ticks from the arrival of a packet's head until it can be forwarded */
    const uint8_t *lft;          /* [switches][lids] out-port of each switch towards each LID */
    const uint8_t *sl2vl;        /* [16] or [switches][in-port][out-port][16] VL of an SL at switches */
    const uint8_t *ca_sl2vl;     /* [16] VL of an SL at CAs */
    const uint8_t *sl;           /* [sl_rows][lids] SL by row (each flow has one) and destination LID */
    int64_t sl_rows;             /* number of rows of `sl` */
    const uint8_t *distance;     /* [switches][switches] hops; NULL if no port has a Loop Breaker */
    const int32_t *lid_switch;   /* [lids] switch that delivers to a LID, or -1 */
    const int32_t *lid_device;   /* [lids] device that owns a LID, or -1 */
} ibn_sim_network;
/* Options of the simulated switches. */
typedef struct {
    int32_t arbitration; /* order in which an output serves inputs; 0: round robin, 1: by arrival, 2: random */
    int32_t single_fifo; /* 1: one queue per input and VL, 0: one per input, output and VL (VOQ) */
    int32_t speedup;     /* packets that an input of a switch can send at once, to different outputs; 0: any number */
    int64_t fcp_period;  /* ticks between flow control packets, 0: credits return at once */
    int32_t wheel_bits;  /* log2 of the number of slots (ticks) of the timing wheel */
    int32_t stall_multiple;  /* duration of a VL stall, in head-of-queue lifetimes */
    uint64_t seed;           /* random seed */
    int64_t sample_period;   /* ticks between two searches for suspected VCs, 0: no port has a deadlock breaker */
    int64_t control_delay;   /* ticks that a switch takes to process a control message of a breaker */
    int32_t release_packets; /* packets that the master (the port elected by Loop Breaker) sends without credit */
    /* 1: a port whose flows have no other shortest path may become master, and moves other flows; 0: it may not */
    int32_t no_alternative;
    /* number of control messages that a port sends before it draws a new identifier, 0: it never draws one */
    int32_t rounds;
    /* with pauses: number of blocks in a buffer at which its sender is stopped; 0: the simulation uses credits instead
     * of pauses */
    int32_t xoff;
    int32_t xon;                /* with pauses: number of blocks in a buffer at which (or below) its sender resumes */
    const int64_t *hoq;         /* [channels] head-of-queue lifetime in ticks, 0: no limit */
    const int32_t *stall_count; /* [channels] number of consecutively dropped heads after which a VL stalls, 0: never */
    const int64_t *lifetime;    /* [devices] longest time of a packet in a switch in ticks, 0: no limit */
    const int32_t *breaker;     /* [channels] deadlock breaker; 0: none, 1: Loop Breaker, 2: Deadlock Breaker */
    const int64_t *detect;      /* [channels] ticks without progress after which a VC is suspected of a deadlock */
    const int64_t *repeat;      /* [channels] ticks between two control messages of a suspected VC */
    const int64_t *release;     /* [channels] ticks for which a rule of Deadlock Breaker is in force */
    const int32_t *extra;       /* [channels] blocks that Deadlock Breaker adds to a buffer */
    const int32_t *arbiter;     /* [channels] row of `vlarb` (VL arbitration tables) that applies to the channel */
    int32_t arbiters;           /* number of rows of `vlarb`, 0: VLs are served round robin */
    /* [arbiters][260] VL arbitration tables: limit, number of entries of the high and low table, 0, 2 x 64 pairs (VL,
     * weight) */
    const uint8_t *vlarb;
    int32_t mechanisms;               /* number of mechanisms to attach */
    const uint8_t *mechanism_names;   /* [mechanisms][16] name of each mechanism, padded with zeros */
    const int64_t *mechanism_counts;  /* [mechanisms] number of settings of each mechanism */
    const int64_t *mechanism_numbers; /* settings of all mechanisms, in order of the mechanisms */
} ibn_simulate_options;
/* Traffic of a simulation: its flows and their messages. */
typedef struct {
    int32_t flows;          /* number of flows */
    const int64_t *numbers; /* [flows][17] integers of each flow; FLOW_NUMBERS of simulation_handle.py names them */
    const double *reals;    /* [flows][6] real numbers of each flow; FLOW_REALS of simulation_handle.py names them */
    const int32_t *lists;   /* [listed] destination LIDs of all flows */
    const int64_t *trace;   /* [traced][3] tick, LID and bytes of each message of flows with given messages */
    int64_t listed;         /* number of entries of `lists` */
    int64_t traced;         /* number of rows of `trace` */
} ibn_sim_traffic;
typedef struct ibn_sim ibn_sim;
/* Create a simulation at tick 0.  All arrays are copied.  Return NULL if memory runs out. */
ibn_sim *ibn_simulate_new(const ibn_sim_network *network, const ibn_simulate_options *options,
                          const ibn_sim_traffic *traffic);
void ibn_simulate_free(ibn_sim *sim);
/* Run to tick `until` or for `events` more events.  Return 1 if memory runs out, otherwise 0.
 *
 * stop_info[3]: reason for stopping, present tick, events handled since the start. */
int ibn_simulate_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *stop_info);
/* Write buckets[2][2048]: number of packets, and number of messages, with a latency in each bucket. */
void ibn_simulate_latencies(const ibn_sim *sim, int64_t *buckets);
/* Write totals, or one row for each channel, VC or flow.  The Python wrapper simulate.py names the columns. */
void ibn_simulate_totals(const ibn_sim *sim, int64_t *totals);
void ibn_simulate_channels(const ibn_sim *sim, int64_t *counters);
void ibn_simulate_vcs(const ibn_sim *sim, int64_t *rows);
void ibn_simulate_flows(const ibn_sim *sim, int64_t *flows);
/* Write up to `most` rows of the event log or of the queued packets.  Return the total number of rows. */
int64_t ibn_simulate_log(const ibn_sim *sim, int64_t from, int64_t most, int64_t *rows);
int64_t ibn_simulate_packets(const ibn_sim *sim, int64_t most, int64_t *rows);
/* Write the wait-for graph of the VCs: up to `most` edges, and can_move[VCs].  Return the total number of edges. */
int64_t ibn_simulate_wait_edges(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move);
/* Replace a routing table by a table of equal shape, or read the present LFTs. */
void ibn_simulate_set_lft(ibn_sim *sim, const uint8_t *lft);
void ibn_simulate_set_sl2vl(ibn_sim *sim, const uint8_t *sl2vl);
void ibn_simulate_set_sl(ibn_sim *sim, const uint8_t *sl);
void ibn_simulate_get_lft(const ibn_sim *sim, uint8_t *lft);
/* Take both directions of a link down, or bring them up.
 *
 * ibn_simulate_fail returns the number of packets lost, and ibn_simulate_restore returns 0.  Both functions return -1
 * if the link already was in the requested state. */
int64_t ibn_simulate_fail(ibn_sim *sim, int32_t channel);
int ibn_simulate_restore(ibn_sim *sim, int32_t channel);
/* Give a command to a mechanism, or read its results: up to `most` numbers.  `index` is its number in the options.
 *
 * ibn_simulate_read returns how many numbers there are. */
void ibn_simulate_command(ibn_sim *sim, int32_t index, const int64_t *numbers, int64_t count);
int64_t ibn_simulate_read(const ibn_sim *sim, int32_t index, int64_t most, int64_t *numbers);
/* Stop a flow: from tick `at` on, it begins no further message. */
void ibn_simulate_stop_flow(ibn_sim *sim, int32_t flow, int64_t at);
#endif
