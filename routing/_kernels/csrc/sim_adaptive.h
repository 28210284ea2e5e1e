#ifndef IBNUE_SIM_ADAPTIVE_H
#define IBNUE_SIM_ADAPTIVE_H
#include "sim.h"
typedef struct {
    int32_t scheme;
    int32_t adaptive_vls;
    int32_t ca_vls;
    int32_t stay;
    int32_t by_arrival;
    uint64_t seed;
    int64_t detect;
    int64_t repeat;
    int64_t lasts;
    int64_t hold;
    int64_t sample;
    int64_t step;
    const uint8_t *enter_sl;
    const uint8_t *enter_port;
    const int32_t *way_first;
    const int32_t *way;
    const int32_t *lid_channel;
} ibn_adaptive_options;
typedef struct ibn_adaptive ibn_adaptive;
ibn_adaptive *ibn_adaptive_new(
    const ibn_sim_network *network, const ibn_adaptive_options *options, const ibn_sim_traffic *traffic);
void ibn_adaptive_free(ibn_adaptive *sim);
int ibn_adaptive_run(ibn_adaptive *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *told);
void ibn_adaptive_totals(const ibn_adaptive *sim, int64_t *totals);
void ibn_adaptive_channels(const ibn_adaptive *sim, int64_t *rows);
void ibn_adaptive_lanes(const ibn_adaptive *sim, int64_t *rows);
void ibn_adaptive_flows(const ibn_adaptive *sim, int64_t *rows);
int64_t ibn_adaptive_waits(
    const ibn_adaptive *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move);
#endif
