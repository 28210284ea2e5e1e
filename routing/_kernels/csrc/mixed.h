#ifndef IBNUE_MIXED_H
#define IBNUE_MIXED_H

#include <stdint.h>

/*
 * A fabric whose tables are being replaced: any switch may send a packet by its entry of before or by that of after.
 * Channels, extended channels and slots are those of cdg.h.
 */
typedef struct {
    int32_t switches;           /* S */
    int32_t columns;            /* K, the LIDs looked at */
    int32_t slots;
    int32_t threads;
    const uint8_t *before;      /* [K, S], out-port of each switch towards each of these LIDs */
    const uint8_t *after;       /* [K, S] */
    const uint8_t *exit;        /* [S, 256] */
    const int32_t *xfirst;      /* [S + 1] */
    const int32_t *xdst;        /* [X] */
    const int32_t *dep_first;   /* [X] */
} mixed_tables;

/* What must be known besides where a packet's VL may change on the way. */
typedef struct {
    int32_t ports;                  /* P */
    int32_t vls;                    /* V, highest VL in either table + 1, at most 15 */
    int32_t entries;                /* N, ports at which packets enter */
    const uint8_t *sl2vl_before;    /* [S, P, P, 16] */
    const uint8_t *sl2vl_after;     /* [S, P, P, 16]; the same address: they do not differ */
    const uint8_t *xport;           /* [X], out-port */
    const uint8_t *xin;             /* [X], in-port of the next switch */
    const int32_t *entry_switch;    /* [N] */
    const uint8_t *entry_port;      /* [N] */
} mixed_lanes;

/*
 * Collect what can wait for what while the tables are mixed, where the VL of a packet stays.
 *
 * enter: uint32 [K, S], VLs on which packets enter at each switch, any 32 bits.
 * dep: uint32 [slots], or-ed to: for each turn the bits of enter that may take it.
 * circles: uint8 [K], 1 where packets for a LID may run in a circle from switch to switch.
 */
int ibn_mixed_trace(const mixed_tables *tables, const uint32_t *enter, uint32_t *dep, uint8_t *circles);

/* The same where the VL may change.  enter: uint16 [K, N], SLs of what enters; dep: uint16 [slots, V], for each turn and
 * each VL before it the VLs after it. */
int ibn_mixed_trace_lanes(const mixed_tables *tables, const mixed_lanes *lanes, const uint16_t *enter, uint16_t *dep,
                          uint8_t *circles);

/* Where channels lie, and an order of what waits already; VLs stay. */
typedef struct {
    int32_t channels;               /* C */
    int32_t lanes;                  /* V, at most 32: bits of enter and dep that count, from the lowest on */
    const int32_t *first, *src, *dst, *into, *into_first;   /* as in a fabric's channels */
    const int32_t *order;           /* [V, C], a topological order of dep in each lane */
    const uint32_t *dep;            /* [slots], what waits already, without a cycle in any lane */
} mixed_net;

/*
 * Admit one column after the other, if no lane gets a cycle by what its mixture makes wait on top of all before.
 *
 * enter: as in ibn_mixed_trace.  round: uint8 [K, S], the round in which each entry that changes is written, from 1 on,
 * 0 for the others, or NULL: any entry at any time.  admitted: uint8 [K], 1 for those that are.
 */
int ibn_mixed_admit(const mixed_tables *tables, const mixed_net *net, const uint32_t *enter, const uint8_t *round,
                    uint8_t *admitted);

/*
 * Rounds in which no packet circles: on a circle of mixed entries a switch is written after all that change on its new
 * way, elsewhere not before them.
 *
 * outward: not 0 to do so everywhere.  round: uint8 [K, S], as above; most: uint8 [K], the last of each column.
 */
int ibn_mixed_rounds(const mixed_tables *tables, int32_t outward, uint8_t *round, uint8_t *most);

#endif
