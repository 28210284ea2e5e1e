#pragma once
#include <stdint.h>
/* Channels and routing tables of a simulation.
 *
 * Channels are sorted by sending device and out-port.  The switches have the lowest device numbers, followed by CAs and
 * routers.  A virtual channel (VC) is one VL of one channel, and has the number channel x vls + VL.  A block is 64
 * bytes. */
typedef struct {
    int32_t devices;     /* number of devices */
    int32_t switches;    /* number of switches, which are the first devices */
    int32_t channels;    /* number of channels */
    int32_t vls;         /* number of VLs */
    int32_t lids;        /* number of LIDs, including LID 0 */
    int32_t sl2vl_ports; /* lengths of the axes in-port and out-port of `sl2vl`; 0: all switches share one table */
    const int32_t *src;  /* [channels] device that sends */
    const int32_t *dst;  /* [channels] device that receives */
    const uint8_t *src_port; /* [channels] port number at the sending device */
    const uint8_t *dst_port; /* [channels] port number at the receiving device */
    const int32_t *reverse;  /* [channels] channel of the same link in the opposite direction */
    const int64_t *cost;     /* [channels] ticks that a byte takes, x 2^20 */
    const int32_t *wire;     /* [channels] ticks from one end of the cable to the other */
    const int32_t *buffer;   /* [channels][vls] size of the receiver's buffer for each VL in blocks */
    /* [devices] ticks from the arrival of a packet's head until the device can forward it */
    const int32_t *switch_delay;
    const uint8_t *lft;        /* [switches][lids] out-port of each switch towards each LID */
    const uint8_t *sl2vl;      /* [16] or [switches][in-port][out-port][16] VL that switches assign to each SL */
    const uint8_t *ca_sl2vl;   /* [16] VL that CAs assign to each SL */
    const uint8_t *sl;         /* [sl_rows][lids] SL of packets to each LID; a flow uses its row sl_row */
    int64_t sl_rows;           /* number of rows of `sl` */
    /* [switches][switches] number of hops from each switch to each switch; NULL if no port has a Loop Breaker */
    const uint8_t *distance;
    const int32_t *lid_switch; /* [lids] switch that delivers each LID, or -1 */
    const int32_t *lid_device; /* [lids] device that owns each LID, or -1 */
} ibn_sim_network;
/* Options of the simulated switches. */
typedef struct {
    /* order in which a channel serves inputs; 0: round robin, 1: by arrival, 2: random, 3: round robin of crossbar
     * inputs */
    int32_t arbitration;
    /* 1: each input has one queue for each VL; 0: each input has one queue for each output and VL (virtual output
     * queues) */
    int32_t single_fifo;
    /* number of packets that an input of a switch can send at one time, each to another output; 0: any number */
    int32_t speedup;
    int64_t fcp_period;     /* ticks between two flow control packets; 0: credits return at once */
    int32_t wheel_bits;     /* logarithm to base 2 of the number of slots of the timing wheel, one for each tick */
    int32_t stall_multiple; /* duration of a VL stall, as a multiple of the head-of-queue lifetime */
    uint64_t seed;          /* seed of the random generator */
    int64_t sample_period;  /* ticks between two searches for suspected VCs; 0: no port has a deadlock breaker */
    int64_t control_delay;  /* ticks that a switch takes to process a control message of a deadlock breaker */
    /* number of packets that the master, which Loop Breaker has elected, sends without credits */
    int32_t release_packets;
    /* 1: a port may become master although its flows have no other shortest path.  The master then moves flows from
     * other inputs of its switch to other paths. 0: such a port cannot become master */
    int32_t no_alternative;
    /* number of control messages that a suspected VC sends in an election round of Loop Breaker; 0: there is only one
     * round */
    int32_t rounds;
    /* with pauses: number of blocks in a buffer at which its sender is stopped; 0: the simulation uses credits instead
     * of pauses */
    int32_t xoff;
    int32_t xon; /* with pauses: number of blocks in a buffer at which, or below which, a stopped sender resumes */
    const int64_t *hoq; /* [channels] head-of-queue lifetime of packets in ticks, 0: no limit */
    /* [channels] number of packets dropped in a row at the heads of queues after which their VL is stalled, 0: never */
    const int32_t *stall_count;
    const int64_t *lifetime; /* [devices] longest time in ticks that a packet may stay in a switch, 0: no limit */
    /* [channels] deadlock breaker of the port that sends on each channel; 0: none, 1: Loop Breaker, 2: Deadlock
     * Breaker */
    const int32_t *breaker;
    /* [channels] number of ticks without progress after which a VC is suspected of being in a deadlock */
    const int64_t *detect;
    const int64_t *repeat;  /* [channels] ticks between two control messages of a suspected VC */
    const int64_t *release; /* [channels] number of ticks for which a rule of Deadlock Breaker is in force */
    const int32_t *extra;   /* [channels] number of blocks that a rule of Deadlock Breaker adds to a buffer */
    const int32_t *arbiter; /* [channels] row of `vlarb` that has the VL arbitration tables of the channel */
    int32_t arbiters;       /* number of rows of `vlarb`; 0: VLs are served in round robin */
    /* [arbiters][260] VL arbitration tables, each row in bytes: limit of high priority, number of entries of the
     * high-priority table, number of entries of the low-priority table, 0 (unused).  64 pairs (VL, weight) for the
     * high-priority table follow, and 64 pairs for the low-priority table */
    const uint8_t *vlarb;
    int32_t mechanisms;               /* number of mechanisms to be attached */
    const uint8_t *mechanism_names;   /* [mechanisms][16] name of each mechanism, padded with zeros */
    const int64_t *mechanism_counts;  /* [mechanisms] number of settings that each mechanism gets */
    const int64_t *mechanism_numbers; /* settings of all mechanisms, one mechanism after the other */
} ibn_simulate_options;
/* Traffic of a simulation: its flows and their messages. */
typedef struct {
    int32_t flows; /* number of flows */
    /* [flows][17] integer settings of each flow; FLOW_NUMBERS of simulation_arrays.py names the columns */
    const int64_t *numbers;
    /* [flows][6] real settings of each flow; FLOW_REALS of simulation_arrays.py names the columns */
    const double *reals;
    const int32_t *lists; /* [listed] destination LIDs of all flows, one flow after the other */
    /* [traced][3] tick, LID and size in bytes of each message, for flows whose messages are given */
    const int64_t *trace;
    int64_t listed; /* number of elements of `lists` */
    int64_t traced; /* number of rows of `trace` */
} ibn_sim_traffic;
typedef struct ibn_sim ibn_sim;
/* Create a simulation, whose first tick is tick 0.  All arrays are copied.  Return 0, 1 if memory runs out, or 3 if a
 * mechanism is unknown.  *made receives the simulation if 0 is returned. */
int ibn_simulate_new(const ibn_sim_network *network, const ibn_simulate_options *options,
                     const ibn_sim_traffic *traffic, ibn_sim **made);
void ibn_simulate_free(ibn_sim *sim);
/* Run until tick `until`, or until `events` further events are handled.  Stop earlier if all traffic was delivered or
 * lost, or if no event is pending.  With `stop_at_standstill`, also stop when packets are in flight but no pending
 * event can move data.  Return 1 if memory runs out, else 0.
 *
 * stop_info[3]: output: the reason for stopping, the present tick, and the number of events handled since the start.
 * The reason is one of these numbers:
 * - 0: the run has reached tick `until`.
 * - 1: all traffic was delivered or lost.
 * - 2: standstill, or no event is pending.
 * - 3: the run has handled `events` events. */
int ibn_simulate_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *stop_info);
/* Write buckets[2][2048]: the number of packets (row 0) and of messages (row 1) with a latency in each bucket. */
void ibn_simulate_latencies(const ibn_sim *sim, int64_t *buckets);
/* ibn_simulate_totals writes the totals of the simulation.  The next three functions write one row for each channel, VC
 * or flow.  The Python wrapper simulate.py names the columns. */
void ibn_simulate_totals(const ibn_sim *sim, int64_t *totals);
void ibn_simulate_channels(const ibn_sim *sim, int64_t *counters);
void ibn_simulate_vcs(const ibn_sim *sim, int64_t *rows);
void ibn_simulate_flows(const ibn_sim *sim, int64_t *flows);
/* ibn_simulate_log writes the event log from row `from` on, and returns how many rows the log has from there on.
 * ibn_simulate_packets writes a row for each queued packet, and returns the number of these packets.  Both functions
 * write at most `most` rows. */
int64_t ibn_simulate_log(const ibn_sim *sim, int64_t from, int64_t most, int64_t *rows);
int64_t ibn_simulate_packets(const ibn_sim *sim, int64_t most, int64_t *rows);
/* Write up to `most` edges of the wait-for graph of the VCs.  Edge e means that VC waiter[e] waits for VC awaited[e].
 * can_move[VCs] receives whether each VC can move.  Return the number of edges that exist.  With adaptive switches, the
 * graph and can_move also have the spare buffers of the switches, which come after the VCs. */
int64_t ibn_simulate_wait_edges(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move);
/* The functions with `set` replace the LFTs, the SL2VL tables or the SLs by tables of equal shape.
 * ibn_simulate_get_lft writes the LFTs that the switches hold now to `lft`. */
void ibn_simulate_set_lft(ibn_sim *sim, const uint8_t *lft);
void ibn_simulate_set_sl2vl(ibn_sim *sim, const uint8_t *sl2vl);
void ibn_simulate_set_sl(ibn_sim *sim, const uint8_t *sl);
void ibn_simulate_get_lft(const ibn_sim *sim, uint8_t *lft);
/* Take both directions of a link down, or bring them up.
 *
 * ibn_simulate_fail returns the number of packets that are lost. ibn_simulate_restore returns 0.  Both functions return
 * -1 if the link is already in the requested state. */
int64_t ibn_simulate_fail(ibn_sim *sim, int32_t channel);
int ibn_simulate_restore(ibn_sim *sim, int32_t channel);
/* Give a command to a mechanism, or read up to `most` results of a mechanism.  `index` is the row of the mechanism in
 * `mechanism_names`.  ibn_simulate_read returns how many results the mechanism has. */
void ibn_simulate_command(ibn_sim *sim, int32_t index, const int64_t *numbers, int64_t count);
int64_t ibn_simulate_read(const ibn_sim *sim, int32_t index, int64_t most, int64_t *numbers);
/* Stop a flow: from tick `at` on, no further message of the flow begins. */
void ibn_simulate_stop_flow(ibn_sim *sim, int32_t flow, int64_t at);
