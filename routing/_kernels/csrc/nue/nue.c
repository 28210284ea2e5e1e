/* Nue: compute trees on the complete channel dependency graph of each layer, so that no credit loop can arise (J.
 * Domke, T. Hoefler, S. Matsuoka, "Routing on the Dependency Graph", HPDC 2016).  Unlike in the paper, paths are
 * chosen by the load along the whole path.
 *
 * Each layer belongs to one of two load accounts (load_account), which are merged after every block of destinations.
 * There are two accounts at any number of threads, so the result does not depend on this number. */
#include "nue/nue.h"

#include <stdlib.h>
#include <string.h>

#include "nue/internal/nue_job.h"
#include "core/internal/random.h"
#include "core/parallel.h"

#define ACCOUNTS 2
#define BLOCK 16
#define IDLE_PASSES 3 /* number of passes without a gain after which the kernel stops */
#define WORD 256      /* Upper bound of the channels of one switch. */

/* Number of times that the utilisation is squared in each pass.  Few squarings spread the flow; many make only
 * channels close to the peak costly. */
static const int32_t SCHEDULE[] = {2, 4, 4, 4, 5};
#define SCHEDULED (int32_t)(sizeof SCHEDULE / sizeof *SCHEDULE)

typedef struct {
    nue_t *nue;
    ibn_team *team;
    grower_t grower[ACCOUNTS];
    /* queue: families (ports that own LIDs) of each load account, in the order of this pass; count: their number */
    int32_t *queue[ACCOUNTS], count[ACCOUNTS];
    uint8_t *best_next;       /* [D, S] trees after the best pass so far */
    int32_t *best_escaped;    /* [D] number of switches on the escape tree, after the best pass so far */
    double *best_load, least; /* best_load: [C] loads after the best pass; least: their highest utilisation */
} run_t;

/* Remove a destination's tree: subtract its flow from the loads, and its dependencies from the counts. */
static void lift(const nue_t *nue, grower_t *grower, int32_t target)
{
    const uint8_t *next = nue->job.next + (int64_t)target * nue->job.net->switches;
    layer_t *layer = &nue->layer[nue->target_layer[target]];
    ibn_account_move_tree(&nue->job, &grower->account, next, target, -1.0);
    ibn_layer_count(nue, layer, next, nue->job.targets->root[target], -1);
}

/* Return whether a tree uses a channel whose utilisation, relative to the peak, is at least `near_peak`. */
static int is_near_peak(const nue_t *nue, const load_account *account, const uint8_t *next)
{
    const ibn_network *net = nue->job.net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (next[u] == NO_CHANNEL)
            continue;
        int32_t c = ibn_next_channel(&nue->job, next, u);
        if (account->load[c] * net->inverse_capacity[c] * account->inverse_peak >= nue->job.near_peak)
            return 1;
    }
    return 0;
}

/* Recompute the tree of a destination.  If the new tree is worse, the old one is restored. */
static void reroute_target(const nue_t *nue, grower_t *grower, int32_t target)
{
    const size_t switches = (size_t)nue->job.net->switches;
    uint8_t *next = nue->job.next + (size_t)target * switches;
    load_account *account = &grower->account;
    if (!nue->escaped[target] && !is_near_peak(nue, account, next))
        return;
    layer_t *layer = &nue->layer[nue->target_layer[target]];
    double before = account->potential;
    int32_t escaped = nue->escaped[target];
    memcpy(account->before, next, switches);
    lift(nue, grower, target);
    ibn_layer_unblock(nue, layer);
    ibn_nue_grow_tree(nue, layer, grower, target);
    if (nue->escaped[target] > escaped || (nue->escaped[target] == escaped && account->potential > before)) {
        lift(nue, grower, target);
        memcpy(next, account->before, switches);
        nue->escaped[target] = escaped;
        ibn_layer_readmit(nue, layer, grower, next, nue->job.targets->root[target]);
        ibn_account_move_tree(&nue->job, account, next, target, 1.0);
    }
}

/* Compute the trees of the LMC groups in the current block that belong to one load account. */
static void route_block(void *context, int32_t which)
{
    run_t *run = context;
    const nue_t *nue = run->nue;
    grower_t *grower = &run->grower[which];
    for (int32_t place = nue->job.block; place < nue->job.block + BLOCK && place < run->count[which]; place++) {
        int32_t family = run->queue[which][place], first = nue->job.targets->family_first[family];
        grower->account.random = nue->options->seed + ((uint64_t)nue->job.pass << 40) + ((uint64_t)family << 8);
        for (int32_t target = first; target < nue->job.targets->family_first[family + 1]; target++) {
            if (nue->job.pass == 0)
                ibn_nue_grow_tree(nue, &nue->layer[nue->target_layer[target]], grower, target);
            else
                reroute_target(nue, grower, target);
        }
    }
}

/* Add up the changes of both load accounts since the last block.  Both accounts begin the next block with the sum. */
static void merge(run_t *run, double *load)
{
    const nue_t *nue = run->nue;
    const ibn_network *net = nue->job.net;
    size_t bytes = (size_t)net->channels * sizeof *load;
    load_account *one = &run->grower[0].account, *two = &run->grower[1].account;
    for (int32_t c = 0; c < net->channels; c++)
        load[c] += (one->load[c] - load[c]) + (two->load[c] - load[c]);
    memcpy(one->load, load, bytes);
    memcpy(two->load, load, bytes);
    one->inverse_peak = two->inverse_peak = 1.0 / fmax(ibn_peak_utilisation(net, load), 1.0);
    for (int32_t c = 0; c < net->channels; c++)
        one->weight[c] = ibn_channel_weight(&nue->job, one, c, load[c]);
    memcpy(two->weight, one->weight, bytes);
    one->potential = two->potential = 0.0;
}

/* Distribute the families with flow, or those without, to the load accounts of their layers, in the order of this
 * pass. */
static void deal(run_t *run, int with_flow)
{
    const nue_t *nue = run->nue;
    run->count[0] = run->count[1] = 0;
    for (int32_t i = 0; i < nue->job.targets->families; i++) {
        int32_t family = nue->job.order[i], target = nue->job.targets->family_first[family];
        if ((nue->job.targets->share[target] > 0.0) != with_flow || nue->target_layer[target] < 0)
            continue;
        int32_t which = nue->target_layer[target] % ACCOUNTS;
        run->queue[which][run->count[which]++] = family;
    }
}

/* Compute the trees of all families with flow, or of all families without flow, once.  After the first pass of the
 * families with flow, the local search follows. */
static void run_pass(run_t *run, double *load, int with_flow)
{
    nue_t *nue = run->nue;
    job_t *job = &nue->job;
    uint64_t random = nue->options->seed ^ ((uint64_t)(job->pass + 1) * 0xD1342543DE82EF95u);
    job->squarings = SCHEDULE[job->pass < SCHEDULED ? job->pass : SCHEDULED - 1];
    job->near_peak = job->pass < nue->options->full_passes ? 0.0 : 0.999;
    if (with_flow)
        ibn_shuffle(job->order, job->targets->families, &random);
    deal(run, with_flow);
    int32_t longest = run->count[0] > run->count[1] ? run->count[0] : run->count[1];
    for (job->block = 0; job->block < longest; job->block += BLOCK) {
        merge(run, load);
        ibn_team_run(run->team, ACCOUNTS, route_block, run);
    }
    merge(run, load);
    if (job->pass > 0 && with_flow) {
        ibn_nue_local_search(nue, &run->grower[0]);
        memcpy(run->grower[1].account.load, load, (size_t)job->net->channels * sizeof *load);
        merge(run, load);
    }
}

static int prepare_grower(const ibn_network *net, grower_t *grower)
{
    size_t switches = (size_t)net->switches + 1, channels = (size_t)net->channels + 1;
    load_account *account = &grower->account;
    account->load = calloc(channels, sizeof *account->load);
    account->weight = calloc(channels, sizeof *account->weight);
    account->through = calloc(switches, sizeof *account->through);
    account->before = calloc(switches, sizeof *account->before);
    account->queue = calloc(switches, sizeof *account->queue);
    account->children = calloc(switches, sizeof *account->children);
    account->level = calloc(switches, sizeof *account->level);
    grower->hop = calloc(switches, sizeof *grower->hop);
    grower->depth = calloc(switches, sizeof *grower->depth);
    grower->seen = calloc(switches, sizeof *grower->seen);
    grower->mark = calloc(channels, sizeof *grower->mark);
    grower->stack = calloc(channels, sizeof *grower->stack);
    grower->forward = calloc(channels, sizeof *grower->forward);
    grower->backward = calloc(channels, sizeof *grower->backward);
    grower->places = calloc(channels, sizeof *grower->places);
    grower->log = calloc(switches, sizeof *grower->log);
    grower->candidate = calloc(WORD, sizeof *grower->candidate);
    grower->cost = calloc(WORD, sizeof *grower->cost);
    grower->escape = calloc(switches, sizeof *grower->escape);
    grower->on_escape = calloc(switches, sizeof *grower->on_escape);
    return !(account->load && account->weight && account->through && account->before && account->queue
             && account->children && account->level && grower->hop && grower->depth && grower->seen && grower->mark
             && grower->stack && grower->forward && grower->backward && grower->places && grower->log
             && grower->candidate && grower->cost && grower->escape && grower->on_escape);
}

static void release_grower(grower_t *grower)
{
    void *all[] = {grower->account.load,
                   grower->account.weight,
                   grower->account.through,
                   grower->account.before,
                   grower->account.queue,
                   grower->account.children,
                   grower->account.level,
                   grower->depth,
                   grower->seen,
                   grower->mark,
                   grower->stack,
                   grower->forward,
                   grower->backward,
                   grower->places,
                   grower->candidate,
                   grower->cost,
                   grower->escape,
                   grower->on_escape,
                   grower->log,
                   grower->hop};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Fill part_size by a breadth-first search over each connected part. */
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
    size_t families = (size_t)nue->job.targets->families + 1, count = (size_t)nue->job.targets->count + 1;
    nue->slot_first = malloc(((size_t)net->channels + 1) * sizeof *nue->slot_first);
    nue->part_size = calloc((size_t)net->switches + 1, sizeof *nue->part_size);
    nue->layer = calloc((size_t)nue->options->layers, sizeof *nue->layer);
    nue->job.order = malloc(families * sizeof *nue->job.order);
    nue->job.family_of = malloc(count * sizeof *nue->job.family_of);
    run->best_next = malloc(nue->options->passes > 0 ? count * (size_t)net->switches + 1 : 1);
    run->best_escaped = malloc(count * sizeof *run->best_escaped);
    run->best_load = malloc(((size_t)net->channels + 1) * sizeof *run->best_load);
    run->team = ibn_team_new(nue->options->threads < ACCOUNTS ? nue->options->threads : ACCOUNTS);
    if (!run->team || !nue->slot_first || !nue->part_size || !nue->layer || !nue->job.order || !nue->job.family_of
        || !run->best_next || !run->best_escaped || !run->best_load)
        return 1;
    for (int32_t which = 0; which < ACCOUNTS; which++) {
        run->queue[which] = malloc(families * sizeof *run->queue[which]);
        if (!run->queue[which] || prepare_grower(net, &run->grower[which]))
            return 1;
    }
    for (int32_t family = 0; family < nue->job.targets->families; family++) {
        nue->job.order[family] = family;
        for (int32_t t = nue->job.targets->family_first[family]; t < nue->job.targets->family_first[family + 1]; t++)
            nue->job.family_of[t] = family;
    }
    for (int32_t c = 0; c < net->channels; c++) {
        nue->slot_first[c] = (int32_t)nue->slots;
        nue->slots += net->first[net->dst[c] + 1] - net->first[net->dst[c]];
    }
    measure_parts(nue, run->grower[0].account.queue);
    for (int32_t l = 0; l < nue->options->layers; l++)
        if (ibn_layer_prepare(nue, &nue->layer[l], l))
            return 1;
    return 0;
}

static void release(nue_t *nue, run_t *run)
{
    ibn_team_free(run->team);
    for (int32_t which = 0; which < ACCOUNTS; which++) {
        release_grower(&run->grower[which]);
        free(run->queue[which]);
    }
    for (int32_t l = 0; nue->layer && l < nue->options->layers; l++)
        ibn_layer_release(&nue->layer[l]);
    free(run->best_next);
    free(run->best_escaped);
    free(run->best_load);
    free(nue->layer);
    free(nue->slot_first);
    free(nue->part_size);
    free(nue->job.order);
    free(nue->job.family_of);
}

/* Compute the trees of destinations without flow.  Such a destination copies the tree of another destination at the
 * same switch if there is one, because its dependencies are in use.  Otherwise it gets a tree over dependencies that
 * are in use already, as far as possible. */
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
    for (int32_t l = 0; l < nue->options->layers; l++)
        ibn_layer_unblock(nue, &nue->layer[l]);
    nue->job.pass = 0;
    run_pass(run, load, 0);
    for (int32_t target = 0; target < targets->count; target++)
        if (nue->target_layer[target] < 0)
            nue->target_layer[target] = -1 - nue->target_layer[target];
}

/* Save the trees and loads of the current pass if they are better than those of all earlier passes. */
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

/* Add `step` (1 or -1) to the counts of the dependencies of all trees with flow. */
static void count_all(const nue_t *nue, int32_t step)
{
    const ibn_network *net = nue->job.net;
    for (int32_t target = 0; target < nue->job.targets->count; target++)
        if (nue->job.targets->share[target] > 0.0)
            ibn_layer_count(nue, &nue->layer[nue->target_layer[target]],
                            nue->job.next + (int64_t)target * net->switches, nue->job.targets->root[target], step);
}

/* Restore the trees and loads of the best pass, unless those of the last pass are as good. */
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
        failed = ibn_layer_sort(nue, &nue->layer[l], nue->options->rank + (int64_t)l * net->channels);
    return failed;
}

/* Count the dependencies and the flow of the trees that the caller passed to begin with.  They are known to be
 * acyclic in their layers. */
static int take_over(run_t *run, double *load)
{
    nue_t *nue = run->nue;
    int failed = 0;
    nue->job.squarings = SCHEDULE[0];
    merge(run, load);
    count_all(nue, 1);
    for (int32_t target = 0; target < nue->job.targets->count; target++)
        if (nue->job.targets->share[target] > 0.0)
            ibn_account_move_tree(&nue->job, &run->grower[0].account,
                                  nue->job.next + (int64_t)target * nue->job.net->switches, target, 1.0);
    for (int32_t l = 0; l < nue->options->layers && !failed; l++)
        failed = ibn_layer_sort(nue, &nue->layer[l], nue->options->rank + (int64_t)l * nue->job.net->channels);
    merge(run, load);
    return failed;
}

/* Compute the trees of all destinations.
 *
 * next: uint8 [D, S], by destination and switch, the index of the next channel among the switch's channels (255:
 * none); on entry the trees to begin with, if options->started.
 * layer: int32 [D], layer of each destination, input and output.
 * escaped: int32 [D], output: number of switches on the escape tree.
 * load: double [C], output: flow on each channel.
 * worst: double [passes + 1], output: the highest utilisation after each pass, 0 for passes that were skipped
 * because the last ones had gained nothing.  The result is that of the best pass. */
int ibn_nue_route(const ibn_network *network, const ibn_targets *targets, const ibn_nue_options *options, uint8_t *next,
                  int32_t *layer, int32_t *escaped, double *load, double *worst)
{
    ibn_balance_options common = {.hop_cost = options->hop_cost};
    nue_t nue = {.job = {.net = network, .targets = targets, .options = &common, .next = next},
                 .options = options,
                 .target_layer = layer,
                 .escaped = escaped};
    run_t run = {.nue = &nue, .least = INFINITY};
    double last = 0.0;
    int32_t idle = 0;
    int failed = prepare(&nue, &run);
    for (int32_t pass = 0; pass <= options->passes && !failed && idle < IDLE_PASSES; pass++) {
        nue.job.pass = pass;
        if (pass == 0 && options->started)
            failed = take_over(&run, load);
        else
            run_pass(&run, load, 1);
        worst[pass] = last = ibn_peak_utilisation(network, load);
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
