#ifndef IBNUE_SIM_H
#define IBNUE_SIM_H
#include <stdint.h>
/* Channels, sorted by source device and out-port, and the routing tables.  Devices are numbered switches first.  A
 * virtual channel (VC) is one VL of one channel; VC number = channel x vls + VL.  A block is 64 bytes. */
typedef struct {
    int32_t devices;
    int32_t switches;
    int32_t channels;
    int32_t vls;
    int32_t lids;
    int32_t sl2vl_ports; /* ports of an SL2VL table, 0 if one row is for all switches */
    /* by channel: devices and ports at its ends, the channel of the opposite direction */
    const int32_t *src;
    const int32_t *dst;
    const uint8_t *src_port;
    const uint8_t *dst_port;
    const int32_t *reverse;
    const int64_t *cost;         /* [channels] ticks per byte x 2^20 */
    const int32_t *wire;         /* [channels] ticks from end to end */
    const int32_t *buffer;       /* [channels][vls] blocks of the receiver's buffer */
    const int32_t *switch_delay; /* [devices] ticks from the arrival of a head until it can be forwarded */
    const uint8_t *lft;          /* [switches][lids] out-port */
    const uint8_t *sl2vl;        /* [16] or [switches][sl2vl_ports in][sl2vl_ports out][16] */
    const uint8_t *ca_sl2vl;     /* [16] */
    const uint8_t *sl;           /* [sl_rows][lids] SL by row of the flow and destination */
    int64_t sl_rows;
    const uint8_t *distance;   /* [switches][switches] hops, NULL if no port has a Loop Breaker */
    const int32_t *lid_switch; /* [lids] switch that delivers a LID, or -1 */
    const int32_t *lid_device; /* [lids] device that owns a LID, or -1 */
} ibn_sim_network;
/* Behaviour of the switches; times are in ticks. */
typedef struct {
    int32_t arbitration;    /* 0: round robin, 1: by arrival, 2: random */
    int32_t single_fifo;    /* 1: one queue per input and VL, 0: one per input, output and VL */
    int64_t fcp_period;     /* between flow control packets, 0: credits return at once */
    int32_t wheel_bits;     /* log2 of the ticks that the timing wheel covers */
    int32_t stall_multiple; /* duration of a VL stall in head-of-queue lifetimes */
    uint64_t seed;
    int64_t sample_period;   /* between searches for suspected VCs, 0: no port has a breaker */
    int64_t control_delay;   /* to process a control message */
    int32_t release_packets; /* packets that a master of Loop Breaker sends without credit */
    int32_t no_alternative;  /* 1: a port whose flows have no other shortest path may be master, and moves others */
    int32_t rounds;          /* control messages of a port before it draws a new number, 0: it keeps the first */
    int32_t xoff;            /* pauses: blocks in a buffer that stop its sender, 0: credits are used instead */
    int32_t xon;        /* with pause flow control: the sender resumes when the buffer holds at most so many blocks */
    const int64_t *hoq; /* [channels] head-of-queue lifetime, 0: none */
    const int32_t *stall_count; /* [channels] heads dropped in a row that stall a VL, 0: never */
    const int64_t *lifetime;    /* [devices] most time in a switch, 0: no limit */
    const int32_t *breaker;     /* [channels] 0: none, 1: Loop Breaker, 2: Deadlock Breaker */
    const int64_t *detect;      /* [channels] without progress until a VC is suspected */
    const int64_t *repeat;      /* [channels] between control messages */
    const int64_t *release;     /* [channels] duration of a rule of Deadlock Breaker */
    const int32_t *extra;       /* [channels] blocks that Deadlock Breaker adds to a buffer */
    const int32_t *arbiter;     /* [channels] row of vlarb */
    int32_t arbiters;           /* rows of vlarb, 0: VLs are served in turn */
    const uint8_t *vlarb;       /* [arbiters][260] limit, entries of the high and low table, 0, 2 x 64 (VL, weight) */
} ibn_sim_options;
typedef struct {
    int32_t flows;
    const int64_t *numbers; /* [flows][17] FLOW_NUMBERS of running.py */
    const double *reals;    /* [flows][6] FLOW_REALS of running.py */
    const int32_t *lists;   /* [listed] destination LIDs */
    const int64_t *trace;   /* [traced][3] tick, LID, bytes */
    int64_t listed;
    int64_t traced;
} ibn_sim_traffic;
typedef struct ibn_sim ibn_sim;
/* Return a simulation at tick 0, which copies all arrays; NULL if memory runs out. */
ibn_sim *ibn_sim_new(const ibn_sim_network *network, const ibn_sim_options *options, const ibn_sim_traffic *traffic);
void ibn_sim_free(ibn_sim *sim);
/* Run to tick `until` or for `events` more events; told[3]: reason for stopping, tick, events handled so far.  Return 1
 * if memory runs out. */
int ibn_sim_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *told);
/* Read totals and the rows of channels, VCs and flows; the columns are listed in simulate.py. */
void ibn_sim_totals(const ibn_sim *sim, int64_t *totals);
void ibn_sim_channels(const ibn_sim *sim, int64_t *counters);
void ibn_sim_lanes(const ibn_sim *sim, int64_t *lanes);
void ibn_sim_flows(const ibn_sim *sim, int64_t *flows);
/* Write up to `most` rows and return how many there are. */
int64_t ibn_sim_log(const ibn_sim *sim, int64_t from, int64_t most, int64_t *rows);
int64_t ibn_sim_packets(const ibn_sim *sim, int64_t most, int64_t *rows);
/* Write up to `most` edges of the wait-for graph of VCs and can_move[VCs]; return how many edges there are. */
int64_t ibn_sim_waits(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move);
/* Replace a table; its shape must stay the same. */
void ibn_sim_set_lft(ibn_sim *sim, const uint8_t *lft);
void ibn_sim_set_sl2vl(ibn_sim *sim, const uint8_t *sl2vl);
void ibn_sim_set_sl(ibn_sim *sim, const uint8_t *sl);
void ibn_sim_get_lft(const ibn_sim *sim, uint8_t *lft);
/* Take a link down or up in both directions; fail returns the packets lost.  Both return -1 if there is no change. */
int64_t ibn_sim_fail(ibn_sim *sim, int32_t channel);
int ibn_sim_restore(ibn_sim *sim, int32_t channel);
/* Let a flow begin no message at tick `at` or later. */
void ibn_sim_stop_flow(ibn_sim *sim, int32_t flow, int64_t at);
#endif
