#ifndef IBNUE_CLIMB_H
#define IBNUE_CLIMB_H

#include <stdint.h>

/* What a packet meets on its way, and the places that are said to climb. */
typedef struct {
    int32_t lids;
    int32_t channels;
    int32_t vls;                /* V */
    int32_t ports;              /* P; 0: sl2vl is uint8 [16] */
    int32_t threads;
    const uint8_t *lft;         /* [S, L] */
    const int32_t *at_port;     /* [S, 256] */
    const int32_t *dst;         /* [C] */
    const uint8_t *dst_port;    /* [C] */
    const uint8_t *sl2vl;       /* [S, P, P, 16] or [16] */
    const int32_t *order;       /* [V, C] */
} climb_tables;

/*
 * Walk every packet, one by one, and see that its places climb.
 *
 * entry_switch: int32 [N], entry_port: uint8 [N], sls: uint16 [N, L], the SLs on which packets for each LID enter there.
 * fault: int32 [N, 4]: for the first packet of each entry that does not climb its LID, SL, and the channel and VL on
 * which it does not; LID -1 if all do.
 */
int ibn_climb(const climb_tables *tables, int32_t entries, const int32_t *entry_switch, const uint8_t *entry_port,
              const uint16_t *sls, int32_t *fault);

#endif
