#ifndef IBNUE_SIM_ADAPTIVE_H
#define IBNUE_SIM_ADAPTIVE_H
#include "simulate/sim.h"
/* Options of adaptive routing: how virtual channels (VCs) are chosen, and how deadlock is avoided or resolved. */
typedef struct {
    /* scheme against deadlock; 0: none, 1: escape VLs, 2: token, 3: pings and bubbles, 4: port groups, where each
     * packet keeps its VL, 5: CAs relay blocked packets, 6: recovery paths, 7: deflection */
    int32_t scheme;
    /* number of VLs for adaptive routing, which are VL 0 and the next ones; escape VL n is VL adaptive_vls + n */
    int32_t adaptive_vls;
    int32_t ca_vls; /* number of VLs on which CAs send, which are VL 0 and the next ones */
    int32_t stay;   /* 1: a packet on an escape VL stays on escape VLs, 0: it may leave them */
    /* order in which a switch serves packets; 1: the packet that has waited longest first, 0: round robin of the
     * inputs */
    int32_t by_arrival;
    uint64_t seed;   /* seed of the random generator */
    int64_t detect;  /* number of ticks at the head of a queue after which a packet is suspected to be blocked */
    int64_t repeat;  /* smallest number of ticks between two pings from one queue */
    int64_t lasts;   /* number of ticks after which a mark expires; a mark reserves room on a channel for one packet */
    int64_t hold;    /* number of ticks after which a mark expires whose cycle has been found (a locked mark) */
    /* ticks between two searches for suspected packets; used only if `scheme` is 3 (pings and bubbles), 5 (relay), 6
     * (recovery paths) or 7 (deflection) */
    int64_t sample;
    int64_t step;    /* ticks that the token takes from one switch to the next; used only if `scheme` is 2 (token) */
    int32_t columns; /* number of destinations for which `choice` differs: one for each switch, or one for each LID */
    /* [switches][lids] SL of a packet that enters the escape VLs, or the fabric, at each switch */
    const uint8_t *enter_sl;
    /* [switches] in-port under which the SL2VL table is read for a packet that enters the escape VLs at the switch */
    const uint8_t *enter_port;
    const int32_t *lid_column; /* [lids] number of the destination (below `columns`) to which each LID belongs, or -1 */
    /* [switches x columns + 1] index in `choice` of the first channel for each pair of switch and destination; the pair
     * has number switch x columns + destination */
    const int32_t *choice_first;
    const int32_t *choice;      /* channels by which a packet may leave a switch, grouped by switch and destination */
    const int32_t *lid_channel; /* [lids] channel from the last switch to the end port that owns each LID, or -1 */
    /* [2][switches][switches] channel by which a packet in each spare buffer of each switch (first two indexes)
     * continues to each last switch, or -1; used only if `scheme` is 6 (recovery paths) */
    const int32_t *recovery_next;
    /* [switches] position of each switch in an order; a channel to a later switch leads to spare buffer 1 of this
     * switch, and a channel to an earlier switch leads to spare buffer 0 */
    const int32_t *recovery_rank;
} ibn_simulate_adaptive_options;
typedef struct ibn_adaptive ibn_adaptive;
/* The functions below do for adaptive routing what the functions with equal endings in sim.h do for routing by tables.
 * The Python wrapper adaptive.py names the columns of the rows that they write. */
ibn_adaptive *ibn_simulate_adaptive_new(const ibn_sim_network *network, const ibn_simulate_adaptive_options *options,
                                        const ibn_sim_traffic *traffic);
void ibn_simulate_adaptive_free(ibn_adaptive *sim);
int ibn_simulate_adaptive_run(ibn_adaptive *sim, int64_t until, int64_t events, int32_t stop_at_standstill,
                              int64_t *stop_info);
void ibn_simulate_adaptive_totals(const ibn_adaptive *sim, int64_t *totals);
void ibn_simulate_adaptive_latencies(const ibn_adaptive *sim, int64_t *buckets);
void ibn_simulate_adaptive_channels(const ibn_adaptive *sim, int64_t *rows);
void ibn_simulate_adaptive_vcs(const ibn_adaptive *sim, int64_t *rows);
void ibn_simulate_adaptive_flows(const ibn_adaptive *sim, int64_t *rows);
/* Write the wait-for graph in the format of ibn_simulate_wait_edges (sim.h).  The vertices of the graph are the VCs,
 * followed by spare buffers 0 of all switches, and by their spare buffers 1. */
int64_t ibn_simulate_adaptive_wait_edges(const ibn_adaptive *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                         uint8_t *can_move);
#endif
