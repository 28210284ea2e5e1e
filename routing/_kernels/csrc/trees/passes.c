/* Passes over the trees of all destinations (passes.h), and the local search between two passes. */
#include "trees/internal/passes.h"

#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"

#define BLOCK 16
#define ROUNDS 64
/* a channel counts as close to the peak if its utilisation is at least this part of the highest utilisation */
#define NEAR_PEAK 0.999

int ibn_trees_account_prepare(const ibn_network *net, load_account *account)
{
    size_t switches = (size_t)net->switches + 1, channels = (size_t)net->channels + 1;
    account->load = calloc(channels, sizeof *account->load);
    account->weight = calloc(channels, sizeof *account->weight);
    account->through = calloc(switches, sizeof *account->through);
    account->before = calloc(switches, sizeof *account->before);
    account->queue = calloc(switches, sizeof *account->queue);
    account->children = calloc(switches, sizeof *account->children);
    account->level = calloc(switches, sizeof *account->level);
    return !(account->load && account->weight && account->through && account->before && account->queue
             && account->children && account->level);
}

void ibn_trees_account_release(load_account *account)
{
    void *all[] = {account->load,         account->weight,   account->cost,  account->estimate, account->carries,
                   account->queue,        account->children, account->level, account->through,  account->before,
                   account->offers.entry, account->fixed,    account->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Add (sign 1) or remove (sign -1) a destination's flow on all channels of its tree.  Each switch is visited after all
 * switches upstream of it, and passes its flow on to its next hop. */
void ibn_trees_account_move_tree(const job_t *job, load_account *account, const uint8_t *next, int32_t target,
                                 double sign)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], tail = 0;
    memset(account->children, 0, (size_t)net->switches * sizeof *account->children);
    for (int32_t u = 0; u < net->switches; u++) {
        account->through[u] = net->sources[u] * job->targets->share[target] * sign;
        if (next[u] != NO_CHANNEL)
            account->children[net->dst[ibn_trees_next_channel(job, next, u)]]++;
    }
    for (int32_t u = 0; u < net->switches; u++)
        if (account->children[u] == 0 && next[u] != NO_CHANNEL)
            account->queue[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t u = account->queue[head], c = ibn_trees_next_channel(job, next, u), v = net->dst[c];
        if (account->through[u] != 0.0)
            ibn_trees_account_add(job, account, c, account->through[u]);
        account->through[v] += account->through[u];
        if (--account->children[v] == 0 && v != root)
            account->queue[tail++] = v;
    }
}

/* Return the flow to a destination that passes switch u: the flow of u itself and of all switches upstream of u.
 * scratch: [S]. */
double ibn_trees_flow_through(const job_t *job, int32_t *scratch, const uint8_t *next, int32_t target, int32_t u)
{
    const ibn_network *net = job->net;
    double flow = net->sources[u];
    int32_t tail = 0;
    scratch[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = scratch[head];
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t c = net->into[i], w = net->src[c];
            if (next[w] != NO_CHANNEL && ibn_trees_next_channel(job, next, w) == c) {
                flow += net->sources[w];
                scratch[tail++] = w;
            }
        }
    }
    return flow * job->targets->share[target];
}

/* Return whether a tree uses a channel whose utilisation is at least `near_peak` times the peak utilisation. */
static int is_near_peak(const job_t *job, const load_account *account, const uint8_t *next)
{
    const ibn_network *net = job->net;
    for (int32_t u = 0; u < net->switches; u++) {
        if (next[u] == NO_CHANNEL)
            continue;
        int32_t c = ibn_trees_next_channel(job, next, u);
        if (account->load[c] * net->inverse_capacity[c] * account->inverse_peak >= job->near_peak)
            return 1;
    }
    return 0;
}

/* Recompute the tree of a destination with flow, if the tree uses a channel close to the peak utilisation or the escape
 * tree.  If the new tree is worse, restore the old tree.  A tree is worse if more switches use the escape tree.  If
 * equally many switches use it, the tree with the higher sum of all channel costs is worse. */
static void reroute_target(const passes_t *passes, int32_t which, int32_t target)
{
    const job_t *job = passes->job;
    const pass_steps *steps = passes->steps;
    load_account *account = passes->account[which];
    const size_t switches = (size_t)job->net->switches;
    uint8_t *next = job->next + (size_t)target * switches;
    int32_t escaped = passes->escaped ? passes->escaped[target] : 0;
    if (job->targets->share[target] == 0.0 || (!escaped && !is_near_peak(job, account, next)))
        return;
    double before = account->potential;
    memcpy(account->before, next, switches);
    ibn_trees_account_move_tree(job, account, next, target, -1.0);
    if (steps->removed)
        steps->removed(passes->kernel, which, target);
    steps->grow(passes->kernel, which, target);
    int32_t now = passes->escaped ? passes->escaped[target] : 0;
    if (now < escaped || (now == escaped && account->potential <= before))
        return;
    ibn_trees_account_move_tree(job, account, next, target, -1.0);
    if (steps->removed)
        steps->removed(passes->kernel, which, target);
    memcpy(next, account->before, switches);
    if (passes->escaped)
        passes->escaped[target] = escaped;
    if (steps->restored)
        steps->restored(passes->kernel, which, target);
    ibn_trees_account_move_tree(job, account, next, target, 1.0);
}

/* Compute the trees of the LMC groups of the present block that belong to one load account. */
static void route_block(void *context, int32_t which)
{
    const passes_t *passes = context;
    const job_t *job = passes->job;
    for (int32_t place = job->block; place < job->block + BLOCK && place < passes->count[which]; place++) {
        int32_t group = passes->queue[which][place], first = job->targets->lmc_group_first[group];
        passes->account[which]->random = job->options->seed + ((uint64_t)job->pass << 40) + ((uint64_t)group << 8);
        for (int32_t target = first; target < job->targets->lmc_group_first[group + 1]; target++) {
            if (job->pass == 0)
                passes->steps->grow(passes->kernel, which, target);
            else
                reroute_target(passes, which, target);
        }
    }
}

/* Add to `load` the changes that both load accounts have made since the last merge.  The two accounts begin the next
 * block with the merged loads. */
void ibn_trees_passes_merge(passes_t *passes, double *load)
{
    const job_t *job = passes->job;
    const ibn_network *net = job->net;
    size_t bytes = (size_t)net->channels * sizeof *load;
    load_account *one = passes->account[0], *two = passes->account[1];
    for (int32_t c = 0; c < net->channels; c++)
        load[c] += (one->load[c] - load[c]) + (two->load[c] - load[c]);
    memcpy(one->load, load, bytes);
    memcpy(two->load, load, bytes);
    one->inverse_peak = two->inverse_peak = 1.0 / fmax(ibn_trees_peak_utilisation(net, load), 1.0);
    for (int32_t c = 0; c < net->channels; c++)
        one->weight[c] = ibn_trees_channel_weight(job, one, c, load[c]);
    memcpy(two->weight, one->weight, bytes);
    one->potential = two->potential = 0.0;
}

/* Give the first switch of a channel another next hop towards one of the destinations whose trees use the channel.
 * The function tries these destinations one after the other, until a next hop is changed.  Returns whether a next
 * hop was changed. */
static int unload_channel(const passes_t *passes, int32_t channel)
{
    const job_t *job = passes->job;
    const ibn_network *net = job->net;
    int32_t u = net->src[channel];
    uint8_t index = (uint8_t)(channel - net->first[u]);
    for (int32_t target = 0; target < job->targets->count; target++)
        if (job->next[(int64_t)target * net->switches + u] == index && passes->steps->move(passes->kernel, target, u))
            return 1;
    return 0;
}

/* Local search: move single next hops off the channels with the peak utilisation, one destination at a time, in load
 * account 0.  Unlike a pass, the search recomputes no whole trees, so that good choices of other next hops stay. */
static void search(const passes_t *passes)
{
    const ibn_network *net = passes->job->net;
    const load_account *account = passes->account[0];
    for (int32_t round = 0; round < ROUNDS; round++) {
        if (passes->steps->begin_round)
            passes->steps->begin_round(passes->kernel);
        double peak = ibn_trees_peak_utilisation(net, account->load);
        for (int32_t c = 0; c < net->channels; c++)
            if (account->load[c] * net->inverse_capacity[c] >= peak && !unload_channel(passes, c))
                return; /* The channel keeps the peak utilisation, so further moves cannot lower the peak. */
    }
}

int ibn_trees_passes_prepare(passes_t *passes)
{
    job_t *job = passes->job;
    size_t groups = (size_t)job->targets->lmc_groups + 1;
    job->order = malloc(groups * sizeof *job->order);
    job->lmc_group_of = malloc(((size_t)job->targets->count + 1) * sizeof *job->lmc_group_of);
    if (!job->order || !job->lmc_group_of)
        return 1;
    for (int32_t which = 0; which < ACCOUNTS; which++) {
        passes->queue[which] = malloc(groups * sizeof *passes->queue[which]);
        if (!passes->queue[which] || ibn_trees_account_prepare(job->net, passes->account[which]))
            return 1;
    }
    for (int32_t group = 0; group < job->targets->lmc_groups; group++) {
        job->order[group] = group;
        for (int32_t t = job->targets->lmc_group_first[group]; t < job->targets->lmc_group_first[group + 1]; t++)
            job->lmc_group_of[t] = group;
    }
    return 0;
}

void ibn_trees_passes_release(passes_t *passes)
{
    ibn_core_team_free(passes->team);
    for (int32_t which = 0; which < ACCOUNTS; which++) {
        free(passes->queue[which]);
        ibn_trees_account_release(passes->account[which]);
    }
    free(passes->job->order);
    free(passes->job->lmc_group_of);
}

/* Shuffle the LMC groups for the present pass. */
void ibn_trees_passes_shuffle(passes_t *passes)
{
    const job_t *job = passes->job;
    uint64_t random = job->options->seed ^ ((uint64_t)(job->pass + 1) * 0xD1342543DE82EF95u);
    ibn_core_shuffle(job->order, job->targets->lmc_groups, &random);
}

/* Make one pass: compute or recompute the trees of the LMC groups in the queues of both load accounts.  After each pass
 * except the first one, make the local search if the kernel wants it (`searches`).
 *
 * load: [C], flow on each channel, input and output. */
void ibn_trees_passes_run(passes_t *passes, double *load)
{
    job_t *job = passes->job;
    job->squarings = passes->schedule[job->pass < passes->scheduled ? job->pass : passes->scheduled - 1];
    job->near_peak = job->pass < passes->full_passes ? 0.0 : NEAR_PEAK;
    int32_t longest = passes->count[0] > passes->count[1] ? passes->count[0] : passes->count[1];
    for (job->block = 0; job->block < longest; job->block += BLOCK) {
        ibn_trees_passes_merge(passes, load);
        ibn_core_team_run(passes->team, ACCOUNTS, route_block, passes);
    }
    ibn_trees_passes_merge(passes, load);
    if (job->pass > 0 && passes->searches) {
        search(passes);
        memcpy(passes->account[1]->load, load, (size_t)job->net->channels * sizeof *load);
        ibn_trees_passes_merge(passes, load);
    }
}
