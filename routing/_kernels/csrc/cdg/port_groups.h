#pragma once

#include <stdint.h>

/* Forwarding tables, and port groups for adaptive routing.  A port group is the set of channels by which a packet to a
 * given target may leave a given switch.  The targets are some of the LIDs.
 *
 * A set of channels is stored in `row` bytes: channel c is bit c % 8 of byte c / 8.  The channels out of switch s are
 * first[s] to first[s + 1] - 1. */
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t lids;
    int32_t targets;
    /* number of targets whose port groups are enlarged: the first `grown` elements of the array `target`.  The port
     * groups of the other targets have only the channel of the LFT entry */
    int32_t grown;
    int32_t vls;
    int32_t row; /* (C + 7) / 8: number of bytes in which a set of channels is stored */
    /* 1: a packet chooses one channel of its port group, and then waits for this channel alone.  0: a packet takes the
     * first channel of its port group that has room; in this case, each port group must contain the channel of the LFT
     * entry */
    int32_t commit;
    const int32_t *first;      /* [S + 1]: first channel out of each switch */
    const int32_t *src;        /* [C]: switch where each channel begins */
    const int32_t *dst;        /* [C]: switch where each channel ends */
    const int32_t *into;       /* [C]: channels, sorted by the switch that they enter */
    const int32_t *into_first; /* [S + 1]: index in `into` of the first channel into each switch */
    const int32_t *at_port;    /* [S, 256]: channel that leaves by each port, -1: none */
    const int32_t *edge_first; /* [C]: number of the first CDG edge of each channel (routing/edges.py) */
    const int32_t *lid_switch; /* [L]: switch that delivers each LID, -1: none */
    const uint8_t *lft;        /* [S, L]: out-port of each switch towards each LID */
    const int32_t *target;     /* [targets]: LID of each target */
    /* [targets, S]: VLs, as bits, of the packets to each target that enter the fabric at each switch */
    const uint16_t *enter;
} ibn_port_groups;

/* Compute the port groups of some LIDs (the targets).  A port group is the set of channels by which a packet to a
 * target may leave a switch.  At first, each port group has only the channel of the LFT entry.  Then the port groups of
 * the first groups->grown targets are enlarged, one target after the other.  A channel joins a port group if its new
 * dependencies close no cycle with the dependencies so far.
 *
 * order: int32 [vls, C], a topological order of the tables' dependencies on each VL.
 * member: uint8 [targets, (C + 7) / 8], zeroed by the caller; receives for each target the channels in its port groups,
 * as bits: channel c is bit c % 8 of byte c / 8.
 *
 * Returns 0, or 1 if memory has run out. */
int ibn_cdg_grow_port_groups(const ibn_port_groups *groups, const int32_t *order, uint8_t *member);

/* Collect the dependencies of packets that follow port groups.  The function shares no code with the computation of the
 * port groups.
 *
 * member: uint8 [targets, (C + 7) / 8], for each target the channels in its port groups, as bits: channel c is bit
 * c % 8 of byte c / 8.
 * masks: uint16 [edges], zeroed by the caller; receives the VLs, as bits, on which each CDG edge is used.
 * counts: int64 [6], output, summed over all targets.  Elements 0 to 4 consider only port groups of switches through
 * which packets to the target pass.  Elements 3 to 5 count errors.
 *   0: port groups that are not empty.
 *   1: channels in these port groups.
 *   2: port groups of two channels or more.
 *   3: empty port groups.
 *   4: port groups that lack the channel of the LFT entry, but are not empty.
 *   5: targets for which packets can circulate.
 * first: int32 [2], output: index of the target and switch of the first error; -1, -1: no error.
 *
 * Returns 0, or 1 if memory has run out. */
int ibn_cdg_trace_port_groups(const ibn_port_groups *groups, const uint8_t *member, uint16_t *masks, int64_t *counts,
                              int32_t *first);
