/* Compute balanced trees: for every destination a tree of allowed channels, chosen by the load on whole paths.
 *
 * A tree is computed switch by switch.  A switch takes the cheapest of its allowed channels.  The cost of a channel
 * includes the cost of the path that the switch at the channel's end has already chosen.  The flow of the switch is
 * added to every channel of its path at once, so that the next switch takes this flow into account.
 *
 * Later passes remove the flow of a destination and compute its tree again.  If the new tree is worse, the old tree is
 * restored.
 *
 * The rules in tree_shortest.c, tree_updown.c and tree_turns.c decide which channels are allowed.  The functions of
 * passes.c make the passes over all destinations. */
#include "trees/balance.h"

#include <stdlib.h>
#include <string.h>

#include "trees/internal/passes.h"

/* Number of times that the utilisation of a channel is squared to get its cost, for each pass.  Few squarings spread
 * the flow.  With many squarings, only channels close to the peak utilisation are costly. */
static const int32_t SCHEDULE[] = {2, 2, 2, 5, 6};
#define SCHEDULED (int32_t)(sizeof SCHEDULE / sizeof *SCHEDULE)
static const int32_t SCHEDULE_FOR_BISECTION[] = {1};
#define FULL_PASSES 2

typedef struct {
    job_t job;
    load_account account[ACCOUNTS];
    passes_t passes;
} balance_t;

/* Compute the tree of a destination by the rule that the caller has selected. */
static void grow(void *kernel, int32_t which, int32_t target)
{
    balance_t *balance = kernel;
    const job_t *job = &balance->job;
    load_account *account = &balance->account[which];
    if (job->options->allowed)
        ibn_trees_grow_turns(job, account, target);
    else if (job->options->position)
        ibn_trees_grow_updown(job, account, target);
    else
        ibn_trees_grow_shortest(job, account, target);
}

static int move(void *kernel, int32_t target, int32_t u)
{
    balance_t *balance = kernel;
    return ibn_trees_move_next_hop(&balance->job, &balance->account[0], target, u);
}

static const pass_steps STEPS = {.grow = grow, .move = move};

/* Compute the trees of all LMC groups once (an LMC group is all LIDs of one end port).  The LMC groups go alternately
 * to the two load accounts. */
static void run_pass(passes_t *passes, double *load)
{
    const job_t *job = passes->job;
    ibn_trees_passes_shuffle(passes);
    passes->count[0] = passes->count[1] = 0;
    for (int32_t i = 0; i < job->targets->lmc_groups; i++)
        passes->queue[i % ACCOUNTS][passes->count[i % ACCOUNTS]++] = job->order[i];
    ibn_trees_passes_run(passes, load);
}

/* Allocate the arrays of a load account that only this kernel needs.  Returns 1 if memory is exhausted, otherwise 0. */
static int prepare_account(const ibn_network *net, load_account *account)
{
    size_t switches = (size_t)net->switches + 1;
    account->cost = calloc(switches, sizeof *account->cost);
    account->estimate = calloc(switches, sizeof *account->estimate);
    account->carries = calloc(switches, sizeof *account->carries);
    account->offers.entry = calloc((size_t)net->channels + 1, sizeof *account->offers.entry);
    account->fixed = calloc(switches, sizeof *account->fixed);
    account->down = calloc(switches, sizeof *account->down);
    return !(account->cost && account->estimate && account->carries && account->offers.entry && account->fixed
             && account->down);
}

static void release(balance_t *balance)
{
    job_t *job = &balance->job;
    ibn_trees_passes_release(&balance->passes);
    free(job->distance);
    free(job->by_distance);
    free(job->root_row);
    free(job->sequence);
    free(job->turn_first);
    free(job->part);
    free(job->next);
}

static int prepare(balance_t *balance)
{
    job_t *job = &balance->job;
    size_t bytes = (size_t)job->targets->count * (size_t)job->net->switches;
    int32_t threads = job->options->threads < ACCOUNTS ? job->options->threads : ACCOUNTS;
    balance->passes = (passes_t){.job = job,
                                 .kernel = balance,
                                 .steps = &STEPS,
                                 .account = {&balance->account[0], &balance->account[1]},
                                 .schedule = job->options->bisection ? SCHEDULE_FOR_BISECTION : SCHEDULE,
                                 .scheduled = job->options->bisection ? 1 : SCHEDULED,
                                 .full_passes = FULL_PASSES,
                                 .searches = !job->options->bisection};
    balance->passes.team = ibn_core_team_new(ibn_core_worthwhile(threads, (int64_t)bytes * (job->options->passes + 1)));
    job->next = malloc(bytes + 1);
    if (!job->next || !balance->passes.team || ibn_trees_passes_prepare(&balance->passes))
        return 1;
    memset(job->next, NO_CHANNEL, bytes);
    for (int32_t which = 0; which < ACCOUNTS; which++)
        if (prepare_account(job->net, &balance->account[which]))
            return 1;
    if (job->options->allowed)
        return ibn_trees_prepare_turns(job);
    return job->options->position ? ibn_trees_prepare_updown(job) : ibn_trees_prepare_shortest(job);
}

/* Compute the trees of all destinations.
 *
 * next: uint8 [D, S], output: by destination and switch, the index of the next channel among the switch's channels
 * (255: none).
 * load: double [C], output: flow on each channel.
 * worst: double [passes + 1], output: the highest utilisation after each pass.
 *
 * Trees and loads are the result of the best pass.  Returns 0, or 1 if memory is exhausted. */
int ibn_trees_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                      uint8_t *next, double *load, double *worst)
{
    balance_t balance = {.job = {.net = network, .targets = targets, .options = options}};
    job_t *job = &balance.job;
    double *current = calloc((size_t)network->channels + 1, sizeof *current);
    int failed = prepare(&balance) || !current;
    double best = INFINITY;
    for (job->pass = 0; job->pass <= options->passes && !failed; job->pass++) {
        run_pass(&balance.passes, current);
        worst[job->pass] = ibn_trees_peak_utilisation(network, current);
        if (worst[job->pass] < best) {
            best = worst[job->pass];
            memcpy(next, job->next, (size_t)targets->count * (size_t)network->switches);
            memcpy(load, current, (size_t)network->channels * sizeof *load);
        }
    }
    release(&balance);
    free(current);
    return failed;
}
