#include "internal/acyclic.h"
#include "internal/mixed_ways.h"
#include "mixed.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const mixed_tables *t;
    const mixed_net *net;
    mixed_ways ways;
    acyclic graph;
    uint32_t *flow;         /* [S] */
    acyclic_step *turn;     /* [4 S], turns of the column at hand */
    uint32_t *lanes;        /* [4 S], lanes that take them */
    acyclic_step *step;     /* [4 S], those of one lane that are new to it */
    int32_t *undo;          /* [4 S * V]: turns that were added */
    int32_t turns;
} job;

static void list_turns(job *j)
{
    const mixed_tables *t = j->t;
    const mixed_net *net = j->net;
    j->turns = 0;
    for (int32_t u = 0; u < t->switches; u++)
        for (int way = 0; way < 2; way++) {
            const int32_t x = j->ways.x[way][u], v = x < 0 ? -1 : j->ways.next[way][u];
            for (int then = 0; v >= 0 && then < 2; then++) {
                const int32_t y = j->ways.x[then][v], c = net->first[u] + x - t->xfirst[u];
                if (y < 0)
                    continue;
                j->turn[j->turns] = (acyclic_step){c, j->graph.turn_first[c] + y - t->xfirst[v]};
                j->lanes[j->turns++] = j->flow[u];
            }
        }
}

/* Puts what is new into one lane; says whether it fits. */
static int fits(job *j, int32_t lane, int32_t *undone)
{
    int32_t count = 0;
    for (int32_t i = 0; i < j->turns; i++)
        if (j->lanes[i] >> lane & 1 && !(j->graph.used[j->turn[i].turn] >> lane & 1))
            j->step[count++] = j->turn[i];
    if (!ibn_acyclic_fits(&j->graph, lane, j->step, count))
        return 0;
    for (int32_t i = 0; i < count; i++)
        j->undo[(*undone)++] = j->step[i].turn;
    return 1;
}

/* Into all lanes or none. */
static int admit(job *j)
{
    int32_t added[33] = {0}, all = 0, lane = 0;
    while (lane < j->net->lanes && fits(j, lane, &all))
        added[++lane] = all;
    if (lane == j->net->lanes)
        return 1;
    while (lane-- > 0)
        for (int32_t i = added[lane]; i < added[lane + 1]; i++)
            j->graph.used[j->undo[i]] &= ~(UINT32_C(1) << lane);
    return 0;
}

static void run(job *j, const uint32_t *enter, uint8_t *admitted)
{
    for (int32_t k = 0; k < j->t->columns; k++) {
        ibn_mixed_read(&j->ways, k);
        ibn_mixed_spread(&j->ways, enter + (size_t)k * j->t->switches, j->flow);
        list_turns(j);
        admitted[k] = (uint8_t)admit(j);
    }
}

/* What waits already. */
static void load(job *j)
{
    const mixed_net *net = j->net;
    for (int32_t c = 0; c < net->channels; c++) {
        const int32_t v = net->dst[c], slot = j->t->dep_first[j->t->xfirst[net->src[c]] + c - net->first[net->src[c]]];
        for (int32_t k = 0; k < net->first[v + 1] - net->first[v]; k++)
            j->graph.used[j->graph.turn_first[c] + k] = net->dep[slot + k];
    }
}

int ibn_mixed_admit(const mixed_tables *t, const mixed_net *net, const uint32_t *enter, uint8_t *admitted)
{
    const acyclic_net where = {t->switches, net->channels, net->first, net->src, net->dst, net->into, net->into_first};
    const size_t most = 4 * ((size_t)t->switches + 1);
    job j = {.t = t, .net = net};
    int failed = ibn_mixed_prepare(&j.ways, t);
    failed |= ibn_acyclic_prepare(&j.graph, &where);
    j.flow = malloc(((size_t)t->switches + 1) * sizeof *j.flow);
    j.turn = malloc(most * sizeof *j.turn);
    j.lanes = malloc(most * sizeof *j.lanes);
    j.step = malloc(most * sizeof *j.step);
    j.undo = malloc(most * ((size_t)net->lanes + 1) * sizeof *j.undo);
    failed |= !(j.flow && j.turn && j.lanes && j.step && j.undo);
    if (!failed)
        failed = net->lanes && ibn_acyclic_open(&j.graph, net->lanes - 1, net->order, net->lanes);
    if (!failed) {
        load(&j);
        run(&j, enter, admitted);
    }
    ibn_mixed_dispose(&j.ways);
    ibn_acyclic_dispose(&j.graph);
    free(j.flow);
    free(j.turn);
    free(j.lanes);
    free(j.step);
    free(j.undo);
    return failed;
}
