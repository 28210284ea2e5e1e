#ifndef IBNUE_LOAD_H
#define IBNUE_LOAD_H
#include <stdint.h>

/* The routes as a kernel sees them: where every switch sends every LID, and where that leads. */
struct ibn_routes {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    const uint8_t *lft;          /* [switches][lids] out-port */
    const int32_t *at_port;      /* [switches][256] channel, or -1 */
    const int32_t *channel_dst;  /* [channels] */
    const int32_t *lid_switch;   /* [lids] delivering switch, or -1 */
    const uint8_t *lid_port;     /* [lids] port by which it delivers */
};

/* All-to-all between end ports.  lid_weight[lids] is the flow that every source sends towards a LID (0: none),
   sources[switches] the number of end ports at each switch.  load[channels] and hop_count[switches] get the flow on each
   channel and the flow that takes 0, 1, 2, ... channels (hop_count may be NULL). */
int ibn_all_to_all(const struct ibn_routes *routes, const int64_t *lid_weight, const int64_t *sources,
                     int32_t threads, int64_t *load, int64_t *hop_count);

/* Traffic patterns of `flows` flows each: source end port -> destination LID, [patterns][flows].  capacity[channels] and
   endport_rate[] are in units of the reference rate.  mean[patterns] and least[patterns] get the flows' shares;
   a flow to the source's own LID is left out, a flow that does not arrive has share 0. */
int ibn_flow_shares(const struct ibn_routes *routes, const double *capacity, const int32_t *endport_switch,
                      const double *endport_rate, const int32_t *lid_endport, int32_t patterns, int32_t flows,
                      const int32_t *source, const int32_t *target_lid, int32_t threads, double *mean, double *least);

/* Random orders of 0..n-1, [last - first][n]; each has a stream of its own, told by seed and number. */
void ibn_draw_orders(uint64_t seed, int32_t first, int32_t last, int32_t n, int32_t *order);

#endif
