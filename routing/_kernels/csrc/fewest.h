#ifndef IBNUE_FEWEST_H
#define IBNUE_FEWEST_H

#include <stdint.h>

/* Columns of tables with holes: switches that have lost their way to the LID of a column. */
typedef struct {
    int32_t switches;
    int32_t channels;
    int32_t columns;           /* N */
    const int32_t *first;      /* [S + 1] */
    const int32_t *src;        /* [C] */
    const int32_t *dst;        /* [C] */
    const uint8_t *port;       /* [C] */
    const int32_t *into;       /* [C] */
    const int32_t *into_first; /* [S + 1] */
    const int32_t *at_port;    /* [S, 256] */
    const int32_t *target;     /* [N], the switch that delivers each LID */
    const uint8_t *hole;       /* [N, S] */
} holes_to_fill;

/*
 * Give each hole a way on which the fewest entries change, of those the shortest, of those the one whose channels have
 * the lower numbers from its first on; in each column the least of all first.
 *
 * entry: uint8 [N, S], out-ports; what is filled goes in.  A hole from which no way leads to the target stays one.
 */
int ibn_fewest(const holes_to_fill *given, uint8_t *entry);

#endif
