#ifndef IBNUE_SIM_H
#define IBNUE_SIM_H
#include <stdint.h>
typedef struct {
    int32_t devices;
    int32_t switches;
    int32_t channels;
    int32_t vls;
    int32_t lids;
    int32_t sl2vl_ports;
    const int32_t *src;
    const int32_t *dst;
    const uint8_t *src_port;
    const uint8_t *dst_port;
    const int32_t *reverse;
    const int64_t *cost;
    const int32_t *wire;
    const int32_t *buffer;
    const int32_t *switch_delay;
    const uint8_t *lft;
    const uint8_t *sl2vl;
    const uint8_t *ca_sl2vl;
    const uint8_t *sl;
    int64_t sl_rows;
    const uint8_t *distance;
    const int32_t *lid_switch;
    const int32_t *lid_device;
} ibn_sim_network;
typedef struct {
    int32_t arbitration;
    int32_t single_fifo;
    int64_t fcp_period;
    int32_t wheel_bits;
    int32_t stall_multiple;
    uint64_t seed;
    int64_t sample_period;
    int64_t control_delay;
    int32_t release_packets;
    int32_t no_alternative;
    int32_t rounds;
    const int64_t *hoq;
    const int32_t *stall_count;
    const int64_t *lifetime;
    const int32_t *breaker;
    const int64_t *detect;
    const int64_t *repeat;
    const int64_t *release;
    const int32_t *extra;
    const int32_t *arbiter;
    int32_t arbiters;
    const uint8_t *vlarb;
} ibn_sim_options;
typedef struct {
    int32_t flows;
    const int64_t *numbers;
    const double *reals;
    const int32_t *lists;
    const int64_t *trace;
    int64_t listed;
    int64_t traced;
} ibn_sim_traffic;
typedef struct ibn_sim ibn_sim;
ibn_sim *ibn_sim_new(const ibn_sim_network *network, const ibn_sim_options *options, const ibn_sim_traffic *traffic);
void ibn_sim_free(ibn_sim *sim);
int ibn_sim_run(ibn_sim *sim, int64_t until, int64_t events, int32_t stop_at_standstill, int64_t *told);
void ibn_sim_totals(const ibn_sim *sim, int64_t *totals);
void ibn_sim_channels(const ibn_sim *sim, int64_t *counters);
void ibn_sim_lanes(const ibn_sim *sim, int64_t *lanes);
void ibn_sim_flows(const ibn_sim *sim, int64_t *flows);
int64_t ibn_sim_log(const ibn_sim *sim, int64_t from, int64_t most, int64_t *rows);
int64_t ibn_sim_packets(const ibn_sim *sim, int64_t most, int64_t *rows);
int64_t ibn_sim_waits(const ibn_sim *sim, int64_t most, int32_t *waiter, int32_t *awaited, uint8_t *can_move);
void ibn_sim_set_lft(ibn_sim *sim, const uint8_t *lft);
void ibn_sim_set_sl2vl(ibn_sim *sim, const uint8_t *sl2vl);
void ibn_sim_set_sl(ibn_sim *sim, const uint8_t *sl);
void ibn_sim_get_lft(const ibn_sim *sim, uint8_t *lft);
void ibn_sim_stop_flow(ibn_sim *sim, int32_t flow, int64_t at);
#endif
