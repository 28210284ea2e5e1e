#include "core/internal/acyclic.h"
#include "transition/internal/rounds.h"
#include "transition/internal/paths.h"
#include "transition/transition.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const transition_tables *t;
    const transition_net *net;
    transition_paths paths;
    transition_round stage;
    acyclic_net where;
    acyclic graph;
    uint32_t *flow; /* [S]: VLs, as bits, of the packets to the current LID that may pass each switch */
    int32_t *from;  /* [X]: switch where each extended channel begins */
    /* [4 S]: dependencies that packets to the current LID can have while the entries towards this LID change */
    round_dependency *found;
    acyclic_step *dependency; /* [4 S]: the dependencies in `found`, each as a numbered edge of `graph` */
    uint32_t *vls;            /* [4 S]: VLs, as bits, on which packets can have each dependency in `found` */
    acyclic_step *step;       /* [4 S]: edges for the current LFT column that the CDG of one VL does not have yet */
    /* [4 S * V]: edges that were added for the current LFT column, to be removed again if the column is not admitted */
    int32_t *undo;
    int32_t turns; /* number of dependencies in `found` */
} job;

/* List every dependency that packets to the current LID can have if each switch may use its old or its new entry.
 * Returns the number of dependencies. */
static int32_t any_turns(const job *j, round_dependency *dependency)
{
    int32_t count = 0;
    for (int32_t u = 0; u < j->t->switches; u++)
        for (int path = 0; path < 2; path++) {
            const int32_t x = j->paths.x[path][u], v = x < 0 ? -1 : j->paths.next[path][u];
            for (int then = 0; v >= 0 && then < 2; then++)
                if (j->paths.x[then][v] >= 0)
                    dependency[count++] = (round_dependency){x, j->paths.x[then][v], j->flow[u]};
        }
    return count;
}

/* Store the dependencies of the current LFT column in j->dependency.  Store the VLs on which packets can have each
 * dependency in j->vls.  enter[s] is the set (bits) of VLs of the packets to the current LID that enter at switch s.
 * round[s] is the round in which the entry of switch s is written.  If `round` is NULL, entries are written in any
 * order. */
static void list_turns(job *j, const uint32_t *enter, const uint8_t *round)
{
    const transition_tables *t = j->t;
    const transition_net *net = j->net;
    if (!round)
        ibn_transition_spread_flow(&j->paths, enter, j->flow);
    j->turns = round ? ibn_transition_round_dependencies(&j->stage, &j->paths, enter, round, j->found)
                     : any_turns(j, j->found);
    for (int32_t i = 0; i < j->turns; i++) {
        const int32_t u = j->from[j->found[i].x], v = t->xdst[j->found[i].x];
        const int32_t c = net->first[u] + j->found[i].x - t->xfirst[u];
        j->dependency[i] = (acyclic_step){c, j->graph.turn_first[c] + j->found[i].y - t->xfirst[v]};
        j->vls[i] = j->found[i].vls;
    }
}

/* Add the edges of the current LFT column to the CDG of one VL, unless these edges close a cycle.  Returns whether the
 * edges were added.  Edges that the CDG has already are skipped.  The added edges are appended to j->undo, which has
 * *undone elements. */
static int fits(job *j, int32_t vl, int32_t *undone)
{
    int32_t count = 0;
    for (int32_t i = 0; i < j->turns; i++)
        if (j->vls[i] >> vl & 1 && !(j->graph.used[j->dependency[i].dependency] >> vl & 1))
            j->step[count++] = j->dependency[i];
    if (!ibn_core_acyclic_fits(&j->graph, vl, j->step, count))
        return 0;
    for (int32_t i = 0; i < count; i++)
        j->undo[(*undone)++] = j->step[i].dependency;
    return 1;
}

/* Add the edges of the current LFT column to the CDGs of all VLs.  If the edges close a cycle on some VL, no CDG
 * changes.  Returns whether the edges were added. */
static int admit(job *j)
{
    int32_t added[33] = {0}, all = 0, vl = 0;
    while (vl < j->net->vls && fits(j, vl, &all))
        added[++vl] = all;
    if (vl == j->net->vls)
        return 1;
    while (vl-- > 0)
        for (int32_t i = added[vl]; i < added[vl + 1]; i++)
            j->graph.used[j->undo[i]] &= ~(UINT32_C(1) << vl);
    return 0;
}

static void run(job *j, const uint32_t *enter, const uint8_t *round, uint8_t *admitted)
{
    for (int32_t k = 0; k < j->t->columns; k++) {
        const size_t row = (size_t)k * j->t->switches;
        ibn_transition_read_column(&j->paths, k);
        list_turns(j, enter + row, round ? round + row : NULL);
        admitted[k] = (uint8_t)admit(j);
    }
}

/* Fill the CDGs with the dependencies that exist before the first LFT column is admitted. */
static void load(job *j)
{
    const transition_net *net = j->net;
    for (int32_t c = 0; c < net->channels; c++) {
        const int32_t v = net->dst[c], slot = j->t->dep_first[j->t->xfirst[net->src[c]] + c - net->first[net->src[c]]];
        for (int32_t k = 0; k < net->first[v + 1] - net->first[v]; k++)
            j->graph.used[j->graph.turn_first[c] + k] = net->dep[slot + k];
    }
}

static int prepare(job *j)
{
    const transition_tables *t = j->t;
    const transition_net *net = j->net;
    j->where = (acyclic_net){t->switches, net->channels, net->first, net->src, net->dst, net->into, net->into_first};
    const size_t most = 4 * ((size_t)t->switches + 1);
    int failed = ibn_transition_prepare_paths(&j->paths, t);
    failed |= ibn_transition_round_prepare(&j->stage, t);
    failed |= ibn_core_acyclic_prepare(&j->graph, &j->where, NULL, NULL);
    array_list *arrays = &j->graph.arrays;
    j->flow = ibn_core_arrays_add(arrays, (size_t)t->switches + 1, sizeof *j->flow);
    j->from = ibn_core_arrays_add(arrays, (size_t)t->xfirst[t->switches] + 1, sizeof *j->from);
    j->found = ibn_core_arrays_add(arrays, most, sizeof *j->found);
    j->dependency = ibn_core_arrays_add(arrays, most, sizeof *j->dependency);
    j->vls = ibn_core_arrays_add(arrays, most, sizeof *j->vls);
    j->step = ibn_core_arrays_add(arrays, most, sizeof *j->step);
    j->undo = ibn_core_arrays_add(arrays, most * ((size_t)net->vls + 1), sizeof *j->undo);
    failed |= arrays->failed;
    for (int32_t s = 0; s < t->switches && !failed; s++)
        for (int32_t x = t->xfirst[s]; x < t->xfirst[s + 1]; x++)
            j->from[x] = s;
    return failed;
}

static void dispose(job *j)
{
    ibn_transition_dispose_paths(&j->paths);
    ibn_transition_round_dispose(&j->stage);
    ibn_core_acyclic_dispose(&j->graph);
}

int ibn_transition_admit(const transition_tables *t, const transition_net *net, const uint32_t *enter,
                         const uint8_t *round, uint8_t *admitted)
{
    job j = {.t = t, .net = net};
    int failed = prepare(&j);
    if (!failed)
        failed = net->vls && ibn_core_acyclic_open(&j.graph, net->vls - 1, net->order, net->vls);
    if (!failed) {
        load(&j);
        run(&j, enter, round, admitted);
    }
    dispose(&j);
    return failed;
}
