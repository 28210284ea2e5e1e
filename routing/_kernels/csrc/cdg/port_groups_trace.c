/* Collect the dependencies of packets that follow given port groups (for adaptive routing).  This file shares no code
 * with the computation of the port groups.  For each target, the channels of all port groups must form no cycle, so
 * that packets cannot circulate.  Packets are followed in a topological order of the switches. */
#include "cdg/port_groups.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS, MEMBERS, CHOICES, DEAD_ENDS, WITHOUT_TABLE, CIRCULATING };

typedef struct {
    const ibn_port_groups *g;
    /* [row]: set of all channels in port groups of the current target, as bits (port_groups.h describes the format) */
    const uint8_t *member;
    /* [S]: number of channels into each switch that belong to a port group and have not been followed yet */
    int32_t *missing;
    int32_t *queue;  /* [S]: switches in topological order, each after all switches that may send to it */
    uint16_t *flow;  /* [S]: VLs, as bits, of the packets to the current target that pass each switch */
    uint16_t *masks; /* [edges]: VLs, as bits, on which each CDG edge is used */
    int64_t *counts; /* statistics, described at ibn_cdg_trace_port_groups in port_groups.h */
    int32_t *first;  /* [2] index of the target, and switch, of the first error; -1, -1: no error so far */
} tracer;

static int in_group(const tracer *w, int32_t c)
{
    return w->member[c >> 3] >> (c & 7) & 1;
}

static void fault(tracer *w, int kind, int32_t t, int32_t s)
{
    if (w->counts[DEAD_ENDS] + w->counts[WITHOUT_TABLE] + w->counts[CIRCULATING] == 0) {
        w->first[0] = t;
        w->first[1] = s;
    }
    w->counts[kind]++;
}

/* Record the dependencies of channel c, for packets to one LID, on the VLs in `vls` (bits).  Let s be the switch at
 * which channel c ends.  If a packet commits itself to one channel when it arrives, channel c depends on all channels
 * in the port group of s.  If a packet may take any channel with room (g->commit is 0), channel c depends only on the
 * channel of the LFT entry of s: a packet can always wait for this channel alone. */
static void follow(tracer *w, int32_t c, uint16_t vls, int32_t goal, int32_t lid)
{
    const ibn_port_groups *g = w->g;
    const int32_t s = g->dst[c];
    const int32_t table = g->at_port[s * 256 + g->lft[(int64_t)s * g->lids + lid]];
    for (int32_t n = g->first[s]; s != goal && n < g->first[s + 1]; n++)
        if (in_group(w, n) && (g->commit || n == table))
            w->masks[g->edge_first[c] + n - g->first[s]] |= vls;
}

/* Visit a switch for which the VLs of all arriving packets are known.  Follow the packets over each channel of the
 * switch's port group, and add the port group to the statistics in `counts`. */
static void pass(tracer *w, int32_t t, int32_t s, int32_t *tail)
{
    const ibn_port_groups *g = w->g;
    const int32_t lid = g->target[t], goal = g->lid_switch[lid];
    const int32_t table = g->at_port[s * 256 + g->lft[(int64_t)s * g->lids + lid]];
    int32_t members = 0, has_table = 0;
    for (int32_t c = g->first[s]; c < g->first[s + 1]; c++) {
        if (!in_group(w, c))
            continue;
        members++;
        has_table |= c == table;
        if (s != goal) {
            w->flow[g->dst[c]] |= w->flow[s];
            follow(w, c, w->flow[s], goal, lid);
        }
        if (--w->missing[g->dst[c]] == 0)
            w->queue[(*tail)++] = g->dst[c];
    }
    if (w->flow[s] == 0 || s == goal)
        return;
    if (members == 0) {
        fault(w, DEAD_ENDS, t, s);
        return;
    }
    w->counts[GROUPS]++;
    w->counts[MEMBERS] += members;
    w->counts[CHOICES] += members > 1;
    if (!has_table)
        fault(w, WITHOUT_TABLE, t, s);
}

static void trace_target(tracer *w, int32_t t)
{
    const ibn_port_groups *g = w->g;
    int32_t head = 0, tail = 0;
    memcpy(w->flow, g->enter + (int64_t)t * g->switches, (size_t)g->switches * sizeof *w->flow);
    memset(w->missing, 0, (size_t)g->switches * sizeof *w->missing);
    for (int32_t c = 0; c < g->channels; c++)
        w->missing[g->dst[c]] += in_group(w, c);
    for (int32_t s = 0; s < g->switches; s++)
        if (w->missing[s] == 0)
            w->queue[tail++] = s;
    while (head < tail) {
        const int32_t s = w->queue[head++];
        pass(w, t, s, &tail);
    }
    for (int32_t s = 0; tail < g->switches && s < g->switches; s++)
        if (w->missing[s] > 0) {
            fault(w, CIRCULATING, t, s);
            break;
        }
}

int ibn_cdg_trace_port_groups(const ibn_port_groups *g, const uint8_t *member, uint16_t *masks, int64_t *counts,
                              int32_t *first)
{
    size_t switches = (size_t)g->switches + 1;
    tracer w = {.g = g, .masks = masks, .counts = counts, .first = first};
    w.missing = malloc(switches * sizeof *w.missing);
    w.queue = malloc(switches * sizeof *w.queue);
    w.flow = malloc(switches * sizeof *w.flow);
    int failed = !w.missing || !w.queue || !w.flow;
    memset(counts, 0, 6 * sizeof *counts);
    first[0] = first[1] = -1;
    for (int32_t t = 0; !failed && t < g->targets; t++) {
        w.member = member + (int64_t)t * g->row;
        trace_target(&w, t);
    }
    free(w.missing);
    free(w.queue);
    free(w.flow);
    return failed;
}
