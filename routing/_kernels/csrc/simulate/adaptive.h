#ifndef IBNUE_SIM_ADAPTIVE_H
#define IBNUE_SIM_ADAPTIVE_H
#include "simulate/sim.h"
/* Options of adaptive routing: choice of VCs and handling of deadlock. */
typedef struct {
    int32_t scheme;          /* handling of deadlock; 0: none, 1: escape VLs, 2: token, 3: pings and bubbles,
                                    4: port groups, where each packet keeps its VL */
    int32_t adaptive_vls;    /* number of adaptive VLs, which are the first ones; escape VL n is adaptive_vls + n */
    int32_t ca_vls;          /* number of VLs that CAs send on; these are VL 0 and the next ones */
    int32_t stay;            /* 1: a packet on an escape VL stays on escape VLs, 0: it may leave them */
    int32_t by_arrival;      /* 1: the packet that has waited longest is served first, 0: round robin of inputs */
    uint64_t seed;           /* random seed */
    int64_t detect;          /* time in ticks at the head of a queue after which a packet is suspected to be blocked */
    int64_t repeat;          /* ticks between two pings of a queue */
    int64_t lasts;           /* ticks until a mark (reservation by a ping) expires */
    int64_t hold;            /* ticks until a locked mark expires */
    int64_t sample;          /* ticks between two searches for suspected packets (scheme 3) */
    int64_t step;            /* ticks of the token from one switch to the next (scheme 2) */
    int32_t columns;         /* number of destinations that have choices of their own: switches, or LIDs */
    const uint8_t *enter_sl; /* [switches][lids] SL of a packet that enters the escape VLs, or the fabric, there */
    const uint8_t *enter_port;   /* [switches] in-port by which such a packet is looked up in the SL2VL table */
    const int32_t *lid_column;   /* [lids] destination to which a LID belongs, or -1 */
    const int32_t *choice_first; /* [switches x columns + 1] start in `choice` for switch x columns + destination */
    const int32_t *choice;       /* channels by which a packet may leave a switch, grouped as choice_first says */
    const int32_t *lid_channel;  /* [lids] channel from the last switch to the owner of a LID, or -1 */
} ibn_simulate_adaptive_options;
typedef struct ibn_adaptive ibn_adaptive;
/* The functions below correspond to those in sim.h.  The rows that they write have the columns that adaptive.py, the
 * Python wrapper, names. */
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
/* Write the wait-for graph, in the form that ibn_simulate_wait_edges uses.  Its vertices are the VCs, followed by the
 * switches' spare buffers. */
int64_t ibn_simulate_adaptive_wait_edges(const ibn_adaptive *sim, int64_t most, int32_t *waiter, int32_t *awaited,
                                         uint8_t *can_move);
#endif
