#ifndef IBNUE_PORT_GROUPS_H
#define IBNUE_PORT_GROUPS_H

#include <stdint.h>

/* Forwarding tables, and for each switch and LID the group of channels by which a packet may leave the switch.
 *
 * The targets are some of the LIDs.  A set of channels is a row of `row` bytes: channel c is bit c % 8 of byte c / 8.
 * Channels out of switch s are first[s] .. first[s + 1] - 1. */
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t lids;
    int32_t targets;
    int32_t grown;             /* number of targets whose groups are enlarged; these are the first ones in `target` */
    int32_t vls;
    int32_t row;               /* number of bytes of a set of channels */
    /* 1: a packet may have to wait for any one channel of its group; 0: it always waits for the channel of the tables
     * too, and takes the first channel that has room */
    int32_t commit;
    const int32_t *first;      /* [S + 1]: first channel out of each switch */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const int32_t *into;       /* [C]: channels, sorted by the switch where they end */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel into each switch */
    const int32_t *at_port;    /* [S, 256]: channel that leaves by each port, or -1 */
    const int32_t *edge_first; /* [C]: number of the first CDG edge of each channel (routing/edges.py) */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID, or -1 */
    const uint8_t *lft;        /* [S, L]: out-port of each switch towards each LID */
    const int32_t *target;     /* [targets]: LID of each target */
    const uint16_t *enter;     /* [targets, S]: VLs of the packets to each target that enter at each switch, as bits */
} ibn_port_groups;

/* Enlarge the groups of targets, one after the other, by all channels that close no dependency cycle with the groups so
 * far.
 *
 * order: int32 [vls, C], a topological order of the tables' dependencies on each VL.
 * member: uint8 [targets, row], zeroed by the caller; receives the union of each target's groups as a set of channels.
 * Returns 0, or 1 if memory has run out. */
int ibn_cdg_grow_port_groups(const ibn_port_groups *groups, const int32_t *order, uint8_t *member);

/* Collect the dependencies of packets that follow port groups.  The function shares no code with the computation of the
 * groups.
 *
 * member: uint8 [targets, row], the union of each target's groups as a set of channels.
 * masks: uint16 [edges], VLs on which each CDG edge is used, as bits; the caller zeroes the array.
 * counts: int64 [6], summed over the groups of switches where packets arrive: groups; channels in groups; groups of two
 * channels or more; empty groups (pairs of switch and target); groups without the channel of the tables; targets for
 * which packets can circulate.
 * first: int32 [2], target and switch of the first fault (one of the last three counts), or -1.
 * Returns 0, or 1 if memory has run out. */
int ibn_cdg_trace_port_groups(const ibn_port_groups *groups, const uint8_t *member, uint16_t *masks, int64_t *counts,
                              int32_t *first);

#endif
