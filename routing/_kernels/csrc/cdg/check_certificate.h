#ifndef IBNUE_CHECK_CERTIFICATE_H
#define IBNUE_CHECK_CERTIFICATE_H

#include <stdint.h>

/* The tables that route packets, and the topological order (the certificate) to be checked. */
typedef struct {
    int32_t lids;
    int32_t channels;
    int32_t vls;   /* V: number of VLs */
    int32_t ports; /* P: number of ports of a switch; 0: sl2vl has one row, [16] */
    int32_t threads;
    const uint8_t *lft;      /* [S, L]: out-port of each switch towards each LID */
    const int32_t *at_port;  /* [S, 256]: channel out of each port, -1: none */
    const int32_t *dst;      /* [C]: switch where each channel ends */
    const uint8_t *dst_port; /* [C]: port at which each channel enters the switch dst[c] */
    /* [S, P, P, 16] by switch, in-port, out-port and SL, or [16] by SL: VL of a packet; 15 and more: dropped */
    const uint8_t *sl2vl;
    const int32_t *order; /* [V, C]: for each VL, the position of each channel in the VL's topological order */
} certificate_tables;

/* Follow the route of every packet, and check that it uses channels in strictly increasing order.
 *
 * entry_switch: int32 [N], entry_port: uint8 [N], the ports at which packets enter.
 * sls: uint16 [N, L], the SLs of the packets that enter at each port for each LID, as bits.
 * fault: int32 [N, 4], for each port the first packet that violates the order: its LID and SL, and the channel and
 * VL where the violation is; LID -1 if no packet violates the order. */
int ibn_cdg_check_certificate(const certificate_tables *tables, int32_t entries, const int32_t *entry_switch,
                              const uint8_t *entry_port, const uint16_t *sls, int32_t *fault);

#endif
