#include "internal/acyclic.h"
#include "internal/mixed_rounds.h"
#include "internal/mixed_ways.h"
#include "mixed.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const mixed_tables *t;
    const mixed_net *net;
    mixed_ways ways;
    mixed_stage stage;
    acyclic_net where;
    acyclic graph;
    uint32_t *flow;         /* [S]: mask of the traffic that passes each switch */
    int32_t *from;          /* [X]: source switch of each extended channel */
    mixed_turn *found;      /* [4 S]: dependencies of the current column */
    acyclic_step *turn;     /* [4 S]: these dependencies as edges of the graph */
    uint32_t *lanes;        /* [4 S]: mask of the VLs that have each of them */
    acyclic_step *step;     /* [4 S]: edges that are new to one VL */
    int32_t *undo;          /* [4 S * V]: edges that were added */
    int32_t turns;          /* number of dependencies of the current column */
} job;

/* List every dependency that any mixture of the column's entries can have.  Returns their number. */
static int32_t any_turns(const job *j, mixed_turn *turn)
{
    int32_t count = 0;
    for (int32_t u = 0; u < j->t->switches; u++)
        for (int way = 0; way < 2; way++) {
            const int32_t x = j->ways.x[way][u], v = x < 0 ? -1 : j->ways.next[way][u];
            for (int then = 0; v >= 0 && then < 2; then++)
                if (j->ways.x[then][v] >= 0)
                    turn[count++] = (mixed_turn){x, j->ways.x[then][v], j->flow[u]};
        }
    return count;
}

/* List the dependencies of the current column, as edges of the graph with the VLs that have them. */
static void list_turns(job *j, const uint32_t *enter, const uint8_t *round)
{
    const mixed_tables *t = j->t;
    const mixed_net *net = j->net;
    if (!round)
        ibn_mixed_spread(&j->ways, enter, j->flow);
    j->turns = round ? ibn_stage_turns(&j->stage, &j->ways, enter, round, j->found) : any_turns(j, j->found);
    for (int32_t i = 0; i < j->turns; i++) {
        const int32_t u = j->from[j->found[i].x], v = t->xdst[j->found[i].x];
        const int32_t c = net->first[u] + j->found[i].x - t->xfirst[u];
        j->turn[i] = (acyclic_step){c, j->graph.turn_first[c] + j->found[i].y - t->xfirst[v]};
        j->lanes[i] = j->found[i].lanes;
    }
}

/* Add the new edges to one VL, unless they close a cycle.  Returns whether they were added. */
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

/* Add the column's edges to all VLs, or to none if they close a cycle in one.  Returns whether they were added. */
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

static void run(job *j, const uint32_t *enter, const uint8_t *round, uint8_t *admitted)
{
    for (int32_t k = 0; k < j->t->columns; k++) {
        const size_t row = (size_t)k * j->t->switches;
        ibn_mixed_read(&j->ways, k);
        list_turns(j, enter + row, round ? round + row : NULL);
        admitted[k] = (uint8_t)admit(j);
    }
}

/* Load the existing dependencies into the graph. */
static void load(job *j)
{
    const mixed_net *net = j->net;
    for (int32_t c = 0; c < net->channels; c++) {
        const int32_t v = net->dst[c], slot = j->t->dep_first[j->t->xfirst[net->src[c]] + c - net->first[net->src[c]]];
        for (int32_t k = 0; k < net->first[v + 1] - net->first[v]; k++)
            j->graph.used[j->graph.turn_first[c] + k] = net->dep[slot + k];
    }
}

static int prepare(job *j)
{
    const mixed_tables *t = j->t;
    const mixed_net *net = j->net;
    j->where = (acyclic_net){t->switches, net->channels, net->first, net->src, net->dst, net->into, net->into_first};
    const size_t most = 4 * ((size_t)t->switches + 1);
    int failed = ibn_mixed_prepare(&j->ways, t);
    failed |= ibn_stage_prepare(&j->stage, t);
    failed |= ibn_acyclic_prepare(&j->graph, &j->where);
    j->flow = malloc(((size_t)t->switches + 1) * sizeof *j->flow);
    j->from = malloc(((size_t)t->xfirst[t->switches] + 1) * sizeof *j->from);
    j->found = malloc(most * sizeof *j->found);
    j->turn = malloc(most * sizeof *j->turn);
    j->lanes = malloc(most * sizeof *j->lanes);
    j->step = malloc(most * sizeof *j->step);
    j->undo = malloc(most * ((size_t)net->lanes + 1) * sizeof *j->undo);
    failed |= !(j->flow && j->from && j->found && j->turn && j->lanes && j->step && j->undo);
    for (int32_t s = 0; s < t->switches && !failed; s++)
        for (int32_t x = t->xfirst[s]; x < t->xfirst[s + 1]; x++)
            j->from[x] = s;
    return failed;
}

static void dispose(job *j)
{
    ibn_mixed_dispose(&j->ways);
    ibn_stage_dispose(&j->stage);
    ibn_acyclic_dispose(&j->graph);
    free(j->flow);
    free(j->from);
    free(j->found);
    free(j->turn);
    free(j->lanes);
    free(j->step);
    free(j->undo);
}

int ibn_mixed_admit(const mixed_tables *t, const mixed_net *net, const uint32_t *enter, const uint8_t *round,
                    uint8_t *admitted)
{
    job j = {.t = t, .net = net};
    int failed = prepare(&j);
    if (!failed)
        failed = net->lanes && ibn_acyclic_open(&j.graph, net->lanes - 1, net->order, net->lanes);
    if (!failed) {
        load(&j);
        run(&j, enter, round, admitted);
    }
    dispose(&j);
    return failed;
}
