/* Compute balanced next hops: for every destination a tree of allowed channels, chosen by the load along the whole
 * path.
 *
 * A destination's tree is computed switch by switch.  A switch compares its allowed channels: the cost of a channel
 * includes the path that the switch at the channel's end has already chosen.  It takes the cheapest channel.  Its
 * own flow is added to every channel of its path at once, so that the next switch takes this flow into account.
 * Later passes remove a destination's flow and recompute its tree; a worse tree is undone.  The rules in
 * tree_shortest.c, tree_updown.c and tree_turns.c decide which channels are allowed.
 *
 * The destinations are divided between two load accounts (load_account), which are merged after every block.  There
 * are two accounts at any thread count: threads only decide whether both are processed at the same time.  So the
 * result does not depend on the number of threads. */
#include "trees/balance.h"

#include <stdlib.h>
#include <string.h>

#include "trees/internal/load_account.h"
#include "core/internal/random.h"
#include "core/parallel.h"

#define ACCOUNTS 2
#define BLOCK 16

/* Number of times that the utilisation is squared in each pass.  Few squarings spread the flow; many make only
 * channels close to the peak costly. */
static const int32_t SCHEDULE[] = {2, 2, 2, 5, 6};
#define SCHEDULED (int32_t)(sizeof SCHEDULE / sizeof *SCHEDULE)
#define SQUARINGS_FOR_BISECTION 1
/* Number of passes that recompute every tree; later passes recompute only trees that use a channel close to the
 * peak. */
#define FULL_PASSES 2

typedef struct {
    job_t *job;
    ibn_team *team;
    load_account account[ACCOUNTS];
} pair_t;

/* Add (sign 1) or remove (sign -1) a destination's flow on all channels of its tree.  The leaves come first, and
 * each switch passes the flow that arrives there on to its next hop. */
void ibn_account_move_tree(const job_t *job, load_account *account, const uint8_t *next, int32_t target, double sign)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], tail = 0;
    memset(account->children, 0, (size_t)net->switches * sizeof *account->children);
    for (int32_t u = 0; u < net->switches; u++) {
        account->through[u] = net->sources[u] * job->targets->share[target] * sign;
        if (next[u] != NO_CHANNEL)
            account->children[net->dst[ibn_next_channel(job, next, u)]]++;
    }
    for (int32_t u = 0; u < net->switches; u++)
        if (account->children[u] == 0 && next[u] != NO_CHANNEL)
            account->queue[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t u = account->queue[head], c = ibn_next_channel(job, next, u), v = net->dst[c];
        if (account->through[u] != 0.0)
            ibn_account_add(job, account, c, account->through[u]);
        account->through[v] += account->through[u];
        if (--account->children[v] == 0 && v != root)
            account->queue[tail++] = v;
    }
}

/* Compute the tree of one destination by the rule that the options select. */
static void route_target(const job_t *job, load_account *account, int32_t target)
{
    if (job->options->allowed)
        ibn_trees_grow_turns(job, account, target);
    else if (job->options->position)
        ibn_trees_grow_updown(job, account, target);
    else
        ibn_trees_grow_shortest(job, account, target);
}

/* Return whether a tree uses a channel whose utilisation, relative to the peak, is at least `near_peak`. */
static int is_near_peak(const job_t *job, const load_account *account, const uint8_t *next)
{
    const ibn_network *net = job->net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (next[u] == NO_CHANNEL)
            continue;
        int32_t c = ibn_next_channel(job, next, u);
        if (account->load[c] * net->inverse_capacity[c] * account->inverse_peak >= job->near_peak)
            return 1;
    }
    return 0;
}

/* Recompute the tree of a destination.  If this raises the sum of all channel weights, the old tree is restored. */
static void reroute_target(const job_t *job, load_account *account, int32_t target)
{
    size_t switches = (size_t)job->net->switches;
    uint8_t *next = job->next + (size_t)target * switches;
    if (job->targets->share[target] == 0.0 || !is_near_peak(job, account, next))
        return;
    double before = account->potential;
    memcpy(account->before, next, switches);
    ibn_account_move_tree(job, account, next, target, -1.0);
    route_target(job, account, target);
    if (account->potential > before) {
        ibn_account_move_tree(job, account, next, target, -1.0);
        memcpy(next, account->before, switches);
        ibn_account_move_tree(job, account, next, target, 1.0);
    }
}

/* Compute the trees of one half of the current block of LMC groups.  Each half has a load account of its own, so
 * that the two halves can be processed in two threads. */
static void route_block(void *context, int32_t which)
{
    pair_t *pair = context;
    const job_t *job = pair->job;
    load_account *account = &pair->account[which];
    for (int32_t k = 0; k < BLOCK; k++) {
        int32_t place = job->block + k * ACCOUNTS + which;
        if (place >= job->targets->families)
            return;
        int32_t family = job->order[place], first = job->targets->family_first[family];
        account->random = job->options->seed + ((uint64_t)job->pass << 40) + ((uint64_t)family << 8);
        for (int32_t target = first; target < job->targets->family_first[family + 1]; target++) {
            if (job->pass == 0)
                route_target(job, account, target);
            else
                reroute_target(job, account, target);
        }
    }
}

/* Add up the changes of both load accounts since the last block.  Both accounts begin the next block with the sum. */
static void merge(const job_t *job, pair_t *pair, double *load)
{
    const ibn_network *net = job->net;
    size_t bytes = (size_t)net->channels * sizeof *load;
    load_account *one = &pair->account[0], *two = &pair->account[1];
    for (int32_t c = 0; c < net->channels; c++)
        load[c] += (one->load[c] - load[c]) + (two->load[c] - load[c]);
    memcpy(one->load, load, bytes);
    memcpy(two->load, load, bytes);
    double peak = ibn_peak_utilisation(net, load);
    one->inverse_peak = two->inverse_peak = 1.0 / fmax(peak, 1.0);
    for (int32_t c = 0; c < net->channels; c++)
        one->weight[c] = ibn_channel_weight(job, one, c, load[c]);
    memcpy(two->weight, one->weight, bytes);
    one->potential = two->potential = 0.0;
}

/* Compute the trees of all LMC groups once.  After the first pass the local search follows, except for bisection
 * traffic. */
static void run_pass(job_t *job, pair_t *pair, double *load)
{
    uint64_t random = job->options->seed ^ ((uint64_t)(job->pass + 1) * 0xD1342543DE82EF95u);
    job->squarings = SCHEDULE[job->pass < SCHEDULED ? job->pass : SCHEDULED - 1];
    if (job->options->bisection)
        job->squarings = SQUARINGS_FOR_BISECTION;
    job->near_peak = job->pass < FULL_PASSES ? 0.0 : 0.999;
    ibn_shuffle(job->order, job->targets->families, &random);
    for (job->block = 0; job->block < job->targets->families; job->block += ACCOUNTS * BLOCK) {
        merge(job, pair, load);
        ibn_team_run(pair->team, ACCOUNTS, route_block, pair);
    }
    merge(job, pair, load);
    if (job->pass > 0 && !job->options->bisection) {
        ibn_trees_local_search(job, &pair->account[0]);
        memcpy(pair->account[1].load, load, (size_t)job->net->channels * sizeof *load);
        merge(job, pair, load);
    }
}

static int prepare_lane(const ibn_network *net, load_account *account)
{
    size_t switches = (size_t)net->switches + 1, channels = (size_t)net->channels + 1;
    account->load = calloc(channels, sizeof *account->load);
    account->weight = calloc(channels, sizeof *account->weight);
    account->cost = calloc(switches, sizeof *account->cost);
    account->estimate = calloc(switches, sizeof *account->estimate);
    account->carries = calloc(switches, sizeof *account->carries);
    account->through = calloc(switches, sizeof *account->through);
    account->before = calloc(switches, sizeof *account->before);
    account->queue = calloc(switches, sizeof *account->queue);
    account->children = calloc(switches, sizeof *account->children);
    account->level = calloc(switches, sizeof *account->level);
    account->heap = calloc(channels, sizeof *account->heap);
    account->fixed = calloc(switches, sizeof *account->fixed);
    account->down = calloc(switches, sizeof *account->down);
    return !(account->load && account->weight && account->cost && account->estimate && account->carries
             && account->through && account->before && account->queue && account->children && account->level
             && account->heap && account->fixed && account->down);
}

static void release(job_t *job, pair_t *pair)
{
    ibn_team_free(pair->team);
    for (int32_t which = 0; which < ACCOUNTS; which++) {
        load_account *account = &pair->account[which];
        free(account->load);
        free(account->weight);
        free(account->cost);
        free(account->estimate);
        free(account->carries);
        free(account->through);
        free(account->before);
        free(account->queue);
        free(account->children);
        free(account->level);
        free(account->heap);
        free(account->fixed);
        free(account->down);
    }
    free(job->distance);
    free(job->by_distance);
    free(job->root_row);
    free(job->sequence);
    free(job->turn_first);
    free(job->part);
    free(job->order);
    free(job->family_of);
    free(job->next);
}

static int prepare(job_t *job, pair_t *pair)
{
    size_t bytes = (size_t)job->targets->count * (size_t)job->net->switches;
    job->next = malloc(bytes + 1);
    job->order = malloc(((size_t)job->targets->families + 1) * sizeof *job->order);
    job->family_of = malloc(((size_t)job->targets->count + 1) * sizeof *job->family_of);
    const int64_t visits = (int64_t)bytes * (job->options->passes + 1);
    pair->team =
        ibn_team_new(ibn_worthwhile(job->options->threads < ACCOUNTS ? job->options->threads : ACCOUNTS, visits));
    if (!job->next || !job->order || !job->family_of || !pair->team)
        return 1;
    memset(job->next, NO_CHANNEL, bytes);
    for (int32_t family = 0; family < job->targets->families; family++) {
        job->order[family] = family;
        for (int32_t t = job->targets->family_first[family]; t < job->targets->family_first[family + 1]; t++)
            job->family_of[t] = family;
    }
    for (int32_t which = 0; which < ACCOUNTS; which++)
        if (prepare_lane(job->net, &pair->account[which]))
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
 * worst: double [passes + 1], output: the highest utilisation after each pass.  Trees and loads are those of the
 * best pass. */
int ibn_trees_balance(const ibn_network *network, const ibn_targets *targets, const ibn_balance_options *options,
                      uint8_t *next, double *load, double *worst)
{
    job_t job = {.net = network, .targets = targets, .options = options};
    pair_t pair = {.job = &job};
    double *current = calloc((size_t)network->channels + 1, sizeof *current);
    int failed = !current || prepare(&job, &pair);
    double best = INFINITY;
    for (job.pass = 0; job.pass <= options->passes && !failed; job.pass++) {
        run_pass(&job, &pair, current);
        worst[job.pass] = ibn_peak_utilisation(network, current);
        if (worst[job.pass] < best) {
            best = worst[job.pass];
            memcpy(next, job.next, (size_t)targets->count * (size_t)network->switches);
            memcpy(load, current, (size_t)network->channels * sizeof *load);
        }
    }
    release(&job, &pair);
    free(current);
    return failed;
}
