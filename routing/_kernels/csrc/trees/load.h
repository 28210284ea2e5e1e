#pragma once
#include <stdint.h>

/* Forwarding tables and fabric, as input of the functions below. */
struct ibn_routes {
    int32_t switches;
    int32_t lids;
    int32_t channels;
    const uint8_t *lft;         /* [switches][lids] out-port of each switch towards each LID */
    const int32_t *at_port;     /* [switches][256] channel that leaves each switch by each port, -1: none */
    const int32_t *channel_dst; /* [channels] switch where each channel ends */
    const int32_t *lid_switch;  /* [lids] switch that delivers each LID, -1: none */
    const uint8_t *lid_port;    /* [lids] port by which the switch delivers each LID */
};

/* Compute the channel loads of all-to-all traffic between end ports.
 *
 * lid_weight: [lids], flow that every source sends to each LID (0: none).
 * sources: [switches], number of end ports at each switch.
 * load: [channels], output: flow on each channel.
 * hop_count: [switches], output: element n is the total flow on routes with n channels; may be NULL.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_load_all_to_all(const struct ibn_routes *routes, const int64_t *lid_weight, const int64_t *sources,
                              int32_t threads, int64_t *load, int64_t *hop_count);

/* Compute the share of the reference rate that each flow of a traffic pattern gets.  A pattern consists of `flows`
 * flows, each from a source end port to a destination LID.
 *
 * source, target_lid: [patterns][flows], source end port and destination LID of each flow.
 * capacity: [channels], data rate of each channel, in units of the reference rate.
 * endport_rate: [end ports], data rate of each end port, in units of the reference rate.
 * mean, least: [patterns], output: the mean share and the lowest share of each pattern.
 *
 * A flow to the source's own LID is left out.  A flow that does not arrive has share 0.  Returns 0, or 1 if memory
 * is exhausted. */
int ibn_trees_load_shares(const struct ibn_routes *routes, const double *capacity, const int32_t *endport_switch,
                          const double *endport_rate, const int32_t *lid_endport, int32_t patterns, int32_t flows,
                          const int32_t *source, const int32_t *target_lid, int32_t threads, double *mean,
                          double *least);

/* Fill order [last - first][n] with random permutations of 0 to n - 1.  The permutations are number `first` to number
 * `last` - 1 of a sequence.  Each permutation depends only on the seed and on its number. */
void ibn_trees_draw_orders(uint64_t seed, int32_t first, int32_t last, int32_t n, int32_t *order);
