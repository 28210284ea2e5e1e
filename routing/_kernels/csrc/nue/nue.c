/* Nue: compute trees on the complete channel dependency graph of each layer (VL), such that no credit loop can arise
 * (J. Domke, T. Hoefler, S. Matsuoka, "Routing on the Dependency Graph", HPDC 2016).  Unlike in the paper, each path is
 * chosen by the load on all of its channels.
 *
 * The functions of trees/passes.c make the passes over all destinations.  Each layer belongs to one of two load
 * accounts (trees/internal/load_account.h).  Within a block of destinations, the two accounts are updated independently
 * of each other. */
#include "nue/nue.h"

#include <stdlib.h>
#include <string.h>

#include "nue/internal/nue_job.h"

#define IDLE_PASSES 3     /* stop after this number of successive passes without a lower peak utilisation */
#define MOST_CHANNELS 256 /* largest number of channels out of one switch */

/* Number of times that the utilisation of a channel is squared to get its cost, for each pass.  Few squarings spread
 * the flow.  With many squarings, only channels close to the peak utilisation are costly. */
static const int32_t SCHEDULE[] = {2, 4, 4, 4, 5};
#define SCHEDULED (int32_t)(sizeof SCHEDULE / sizeof *SCHEDULE)

typedef struct {
    nue_t *nue;
    passes_t passes;
    grower_t grower[ACCOUNTS];
    uint8_t *best_next; /* [D, S] trees of the best pass so far */
    /* [D] number of switches that use the escape tree towards each destination, in the best pass so far */
    int32_t *best_escaped;
    /* best_load: [C] flow on each channel in the best pass so far.
     * least: highest utilisation of a channel in the best pass so far. */
    double *best_load, least;
} run_t;

static layer_t *layer_of(const nue_t *nue, int32_t target)
{
    return &nue->layer[nue->target_layer[target]];
}

static const uint8_t *tree_of(const nue_t *nue, int32_t target)
{
    return nue->job.next + (int64_t)target * nue->job.net->switches;
}

/* Compute the tree of a destination.  In the second and later passes, trees have been removed.  So all blocked
 * dependencies of the destination's layer are tested again. */
static void grow(void *kernel, int32_t which, int32_t target)
{
    run_t *run = kernel;
    const nue_t *nue = run->nue;
    if (nue->job.pass > 0)
        ibn_nue_layer_unblock(nue, layer_of(nue, target));
    ibn_nue_grow_tree(nue, layer_of(nue, target), &run->grower[which], target);
}

/* Subtract the tree of a destination from the counts of used dependencies in its layer. */
static void removed(void *kernel, int32_t which, int32_t target)
{
    const nue_t *nue = ((run_t *)kernel)->nue;
    (void)which;
    ibn_nue_layer_count(nue, layer_of(nue, target), tree_of(nue, target), nue->job.targets->root[target], -1);
}

/* Count the dependencies of a restored tree as used in its layer again. */
static void restored(void *kernel, int32_t which, int32_t target)
{
    run_t *run = kernel;
    const nue_t *nue = run->nue;
    ibn_nue_layer_readmit(nue, layer_of(nue, target), &run->grower[which], tree_of(nue, target),
                          nue->job.targets->root[target]);
}

static int move(void *kernel, int32_t target, int32_t u)
{
    run_t *run = kernel;
    return ibn_nue_move_next_hop(run->nue, &run->grower[0], target, u);
}

static void unblock_layers(void *kernel)
{
    const nue_t *nue = ((run_t *)kernel)->nue;
    for (int32_t l = 0; l < nue->options->layers; l++)
        ibn_nue_layer_unblock(nue, &nue->layer[l]);
}

static const pass_steps STEPS = {
    .grow = grow, .removed = removed, .restored = restored, .move = move, .begin_round = unblock_layers};

/* Fill the queues of both load accounts with LMC groups, in the order of the present pass.  The layer of an LMC group
 * determines the account to which the group goes.  With `with_flow`, only groups with flow are queued, otherwise only
 * groups without flow. */
static void deal(run_t *run, int with_flow)
{
    const nue_t *nue = run->nue;
    passes_t *passes = &run->passes;
    passes->count[0] = passes->count[1] = 0;
    for (int32_t i = 0; i < nue->job.targets->lmc_groups; i++) {
        int32_t group = nue->job.order[i], target = nue->job.targets->lmc_group_first[group];
        if ((nue->job.targets->share[target] > 0.0) != with_flow || nue->target_layer[target] < 0)
            continue;
        int32_t which = nue->target_layer[target] % ACCOUNTS;
        passes->queue[which][passes->count[which]++] = group;
    }
}

static int prepare_grower(const ibn_network *net, grower_t *grower)
{
    size_t switches = (size_t)net->switches + 1, channels = (size_t)net->channels + 1;
    array_list *arrays = &grower->arrays;
    grower->hop = ibn_core_arrays_add(arrays, switches, sizeof *grower->hop);
    grower->depth = ibn_core_arrays_add(arrays, switches, sizeof *grower->depth);
    grower->seen = ibn_core_arrays_add(arrays, switches, sizeof *grower->seen);
    grower->mark = ibn_core_arrays_add(arrays, channels, sizeof *grower->mark);
    for (int side = 0; side < 2; side++)
        grower->found[side] = ibn_core_arrays_add(arrays, channels, sizeof *grower->found[side]);
    grower->both = ibn_core_arrays_add(arrays, 2 * channels, sizeof *grower->both);
    grower->log = ibn_core_arrays_add(arrays, switches, sizeof *grower->log);
    grower->candidate = ibn_core_arrays_add(arrays, MOST_CHANNELS, sizeof *grower->candidate);
    grower->cost = ibn_core_arrays_add(arrays, MOST_CHANNELS, sizeof *grower->cost);
    grower->escape = ibn_core_arrays_add(arrays, switches, sizeof *grower->escape);
    grower->on_escape = ibn_core_arrays_add(arrays, switches, sizeof *grower->on_escape);
    return arrays->failed;
}

/* Make one pass: compute the trees of each LMC group that receives flow. */
static void run_pass(run_t *run, double *load)
{
    ibn_trees_passes_shuffle(&run->passes);
    deal(run, 1);
    ibn_trees_passes_run(&run->passes, load);
}

/* Fill part_size: for every switch, the number of switches in its connected part.  The parts are found by breadth-first
 * searches. */
static void measure_parts(nue_t *nue, int32_t *queue)
{
    const ibn_network *net = nue->job.net;
    for (int32_t start = 0; start < net->switches; start++) {
        if (nue->part_size[start])
            continue;
        int32_t tail = 0;
        queue[tail++] = start;
        nue->part_size[start] = 1;
        for (int32_t head = 0; head < tail; head++)
            for (int32_t c = net->first[queue[head]]; c < net->first[queue[head] + 1]; c++)
                if (!nue->part_size[net->dst[c]]) {
                    nue->part_size[net->dst[c]] = 1;
                    queue[tail++] = net->dst[c];
                }
        for (int32_t i = 0; i < tail; i++)
            nue->part_size[queue[i]] = tail;
    }
}

static int prepare(nue_t *nue, run_t *run)
{
    const ibn_network *net = nue->job.net;
    size_t count = (size_t)nue->job.targets->count + 1, channels = (size_t)net->channels + 1;
    array_list *arrays = &nue->arrays;
    run->passes = (passes_t){.job = &nue->job,
                             .kernel = run,
                             .steps = &STEPS,
                             .account = {&run->grower[0].account, &run->grower[1].account},
                             .escaped = nue->escaped,
                             .schedule = SCHEDULE,
                             .scheduled = SCHEDULED,
                             .full_passes = nue->options->full_passes,
                             .searches = 1};
    nue->slot_first = ibn_core_arrays_add(arrays, channels, sizeof *nue->slot_first);
    nue->into_index = ibn_core_arrays_add(arrays, channels, sizeof *nue->into_index);
    nue->part_size = ibn_core_arrays_add(arrays, (size_t)net->switches + 1, sizeof *nue->part_size);
    nue->layer = ibn_core_arrays_add(arrays, (size_t)nue->options->layers, sizeof *nue->layer);
    run->best_next = ibn_core_arrays_add(arrays, nue->options->passes > 0 ? count * (size_t)net->switches : 0, 1);
    run->best_escaped = ibn_core_arrays_add(arrays, count, sizeof *run->best_escaped);
    run->best_load = ibn_core_arrays_add(arrays, channels, sizeof *run->best_load);
    run->passes.team = ibn_core_team_new(nue->options->threads < ACCOUNTS ? nue->options->threads : ACCOUNTS);
    if (!run->passes.team || arrays->failed || ibn_trees_passes_prepare(&run->passes))
        return 1;
    for (int32_t which = 0; which < ACCOUNTS; which++)
        if (prepare_grower(net, &run->grower[which]))
            return 1;
    for (int32_t c = 0; c < net->channels; c++) {
        nue->slot_first[c] = (int32_t)nue->slots;
        nue->slots += net->first[net->dst[c] + 1] - net->first[net->dst[c]];
    }
    for (int32_t s = 0; s < net->switches; s++) {
        int32_t in = net->into_first[s + 1] - net->into_first[s], out = net->first[s + 1] - net->first[s];
        int32_t words = (in > out ? in : out) / 64 + 1;
        nue->words = words > nue->words ? words : nue->words;
        for (int32_t i = 0; i < in; i++)
            nue->into_index[net->into[net->into_first[s] + i]] = (uint8_t)i;
    }
    measure_parts(nue, run->grower[0].account.queue);
    for (int32_t l = 0; l < nue->options->layers; l++)
        if (ibn_nue_layer_prepare(nue, &nue->layer[l], l))
            return 1;
    return 0;
}

static void release(nue_t *nue, run_t *run)
{
    ibn_trees_passes_release(&run->passes);
    for (int32_t which = 0; which < ACCOUNTS; which++)
        ibn_core_arrays_free(&run->grower[which].arrays);
    ibn_core_arrays_free(&nue->arrays);
}

/* Compute the trees of destinations without flow.  If the switch of such a destination also delivers a destination with
 * flow, the tree of the destination with flow is copied.  A copied tree adds no dependencies.  Otherwise the tree is
 * grown, if possible over dependencies that are already in use. */
static void route_idle(run_t *run, double *load)
{
    nue_t *nue = run->nue;
    const ibn_targets *targets = nue->job.targets;
    size_t switches = (size_t)nue->job.net->switches;
    int32_t *twin = run->grower[0].depth;
    for (size_t u = 0; u < switches; u++)
        twin[u] = -1;
    for (int32_t target = targets->count - 1; target >= 0; target--)
        if (targets->share[target] > 0.0)
            twin[targets->root[target]] = target;
    for (int32_t target = 0; target < targets->count; target++) {
        int32_t other = twin[targets->root[target]];
        if (targets->share[target] > 0.0 || other < 0)
            continue;
        memcpy(nue->job.next + (size_t)target * switches, nue->job.next + (size_t)other * switches, switches);
        nue->escaped[target] = nue->escaped[other];
        nue->target_layer[target] = -1 - nue->target_layer[other];
    }
    unblock_layers(run);
    nue->job.pass = 0;
    deal(run, 0);
    ibn_trees_passes_run(&run->passes, load);
    for (int32_t target = 0; target < targets->count; target++)
        if (nue->target_layer[target] < 0)
            nue->target_layer[target] = -1 - nue->target_layer[target];
}

/* Save the trees and loads of the present pass, if its highest utilisation is lower than after all earlier passes. */
static void keep(run_t *run, const double *load, double worst)
{
    const nue_t *nue = run->nue;
    size_t count = (size_t)nue->job.targets->count;
    if (worst >= run->least)
        return;
    run->least = worst;
    memcpy(run->best_next, nue->job.next, count * (size_t)nue->job.net->switches);
    memcpy(run->best_escaped, nue->escaped, count * sizeof *nue->escaped);
    memcpy(run->best_load, load, (size_t)nue->job.net->channels * sizeof *load);
}

/* Add `step` (1 or -1) to the counts of used dependencies, for the trees of all destinations with flow. */
static void count_all(const nue_t *nue, int32_t step)
{
    for (int32_t target = 0; target < nue->job.targets->count; target++)
        if (nue->job.targets->share[target] > 0.0)
            ibn_nue_layer_count(nue, layer_of(nue, target), tree_of(nue, target), nue->job.targets->root[target], step);
}

/* Restore the trees and loads of the best pass, unless the last pass has reached the same highest utilisation.  Returns
 * nonzero if memory ran out. */
static int restore(run_t *run, double *load, double worst)
{
    nue_t *nue = run->nue;
    const ibn_network *net = nue->job.net;
    size_t count = (size_t)nue->job.targets->count;
    int failed = 0;
    if (worst <= run->least)
        return 0;
    count_all(nue, -1);
    memcpy(nue->job.next, run->best_next, count * (size_t)net->switches);
    memcpy(nue->escaped, run->best_escaped, count * sizeof *nue->escaped);
    memcpy(load, run->best_load, (size_t)net->channels * sizeof *load);
    count_all(nue, 1);
    for (int32_t which = 0; which < ACCOUNTS; which++)
        memcpy(run->grower[which].account.load, load, (size_t)net->channels * sizeof *load);
    for (int32_t l = 0; l < nue->options->layers && !failed; l++)
        failed = ibn_nue_layer_sort(nue, &nue->layer[l], nue->options->rank + (int64_t)l * net->channels);
    return failed;
}

/* Count the dependencies and the flow of the initial trees that the caller has passed.  The caller makes sure that
 * their dependencies are acyclic in each layer.  Returns nonzero if memory ran out. */
static int take_over(run_t *run, double *load)
{
    nue_t *nue = run->nue;
    int failed = 0;
    nue->job.squarings = SCHEDULE[0];
    ibn_trees_passes_merge(&run->passes, load);
    count_all(nue, 1);
    for (int32_t target = 0; target < nue->job.targets->count; target++)
        if (nue->job.targets->share[target] > 0.0)
            ibn_trees_account_move_tree(&nue->job, &run->grower[0].account, tree_of(nue, target), target, 1.0);
    for (int32_t l = 0; l < nue->options->layers && !failed; l++)
        failed = ibn_nue_layer_sort(nue, &nue->layer[l], nue->options->rank + (int64_t)l * nue->job.net->channels);
    ibn_trees_passes_merge(&run->passes, load);
    return failed;
}

/* Compute the trees of all destinations.
 *
 * next: uint8 [D, S], output: by destination and switch, the index of the next channel among the switch's channels
 * (255: none).  If options->started is set, the array holds initial trees on entry.
 * layer: int32 [D], layer of each destination, input and output.
 * escaped: int32 [D], output: number of switches that use the escape tree towards each destination.
 * load: double [C], output: flow on each channel.
 * worst: double [passes + 1], output: the highest utilisation after each pass.  The value is 0 for passes that were
 * left out, because earlier passes had not lowered the highest utilisation.
 *
 * Trees and loads come from the best pass.  Returns 0, or 1 if memory is exhausted. */
int ibn_nue_route(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
                  int32_t *layer, int32_t *escaped, double *load, double *worst)
{
    ibn_balance_options common = {.hop_cost = options->hop_cost, .seed = options->seed};
    nue_t nue = {.job = {.net = network, .targets = targets, .options = &common, .next = next},
                 .options = options,
                 .target_layer = layer,
                 .escaped = escaped,
                 .words = 1};
    run_t run = {.nue = &nue, .least = INFINITY};
    double last = 0.0;
    int32_t idle = 0;
    int failed = prepare(&nue, &run);
    for (int32_t pass = 0; pass <= options->passes && !failed && idle < IDLE_PASSES; pass++) {
        nue.job.pass = pass;
        if (pass == 0 && options->started)
            failed = take_over(&run, load);
        else
            run_pass(&run, load);
        worst[pass] = last = ibn_trees_peak_utilisation(network, load);
        idle = last < run.least ? 0 : idle + 1;
        if (!failed && options->passes > 0)
            keep(&run, load, last);
    }
    if (!failed && options->passes > 0)
        failed = restore(&run, load, last);
    if (!failed)
        route_idle(&run, load);
    release(&nue, &run);
    return failed;
}
