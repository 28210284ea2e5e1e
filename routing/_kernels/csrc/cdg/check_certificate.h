#pragma once

#include <stdint.h>

/* The tables by which packets are routed, and the certificate to be checked: a topological order of the channels for
 * each VL. */
typedef struct {
    int32_t lids;
    int32_t channels;
    int32_t vls;   /* V: number of VLs */
    /* P: number of ports of a switch.  0: the VL of a packet depends only on its SL, and the shape of `sl2vl` is
     * [16] */
    int32_t ports;
    int32_t threads;
    const uint8_t *lft;      /* [S, L]: out-port of each switch towards each LID */
    const int32_t *at_port;  /* [S, 256]: channel that leaves by each port, -1: none */
    const int32_t *dst;      /* [C]: switch where each channel ends */
    const uint8_t *dst_port; /* [C]: port at which each channel enters the switch dst[c] */
    /* VL of a packet; the packet is dropped if the value is 15 or more.  The shape is [S, P, P, 16] (by switch,
     * in-port, out-port and SL) or [16] (by SL) */
    const uint8_t *sl2vl;
    const int32_t *order; /* [V, C]: position of each channel in the topological order of each VL */
} certificate_tables;

/* Follow every packet by the tables.  Check that each packet uses channels of strictly increasing positions in the
 * certificate.
 *
 * entries: N, number of ports at which packets enter (not LFT entries).
 * entry_switch: int32 [N], switch of each port at which packets enter.
 * entry_port: uint8 [N], number of each port at which packets enter.
 * sls: uint16 [N, L], SLs, as bits, of the packets that enter at each port for each LID.
 * fault: int32 [N, 4], output.  Each row is for one port, and describes the first packet from this port that violates
 * the order.  The elements are the LID and SL of the packet, and the channel and VL at which the order is violated.
 * The LID is -1 if no packet violates the order. */
int ibn_cdg_check_certificate(const certificate_tables *tables, int32_t entries, const int32_t *entry_switch,
                              const uint8_t *entry_port, const uint16_t *sls, int32_t *fault);

/* Check every next hop of the tables.  Towards each LID, a switch sends by one channel, and its next switch sends by
 * another channel.  In the topological order of each VL, the switch's channel must come before the next switch's
 * channel.
 *
 * bad: uint8 [S, V], output: 1 if a next hop of the switch violates the order of the VL; else 0.  If a VL has 0 at
 * all switches, no packet that keeps this VL violates its order. */
int ibn_cdg_check_next_hops(const certificate_tables *tables, int32_t switches, uint8_t *bad);
