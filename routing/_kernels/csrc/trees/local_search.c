/* Local search: move single next hops off the channel with the peak utilisation, one destination at a time.  A move
 * is made if it lowers the sum of all channel weights.  A pass recomputes whole trees and so may undo good choices;
 * this search does not. */
#include "trees/internal/load_account.h"

#define ROUNDS 64

/* Return whether switch `u` may take channel `c` as its next hop while all other next hops stay. */
static int allowed(const job_t *job, const uint8_t *next, int32_t target, int32_t u, int32_t c)
{
    const ibn_network *net = job->net;
    int32_t root = job->targets->root[target], v = net->dst[c];
    if (job->options->allowed)
        return ibn_turns_allow_change(job, next, target, u, c);
    if (!job->options->position) {
        const uint16_t *distance = job->distance + (int64_t)job->root_row[root] * net->switches;
        return ibn_is_allowed(job, distance, c, ibn_least_rank(job, distance, u));
    }
    const int32_t *position = job->options->position + (int64_t)job->targets->layer[target] * net->switches;
    if (position[v] < position[u])
        return position[net->dst[ibn_next_channel(job, next, u)]] < position[u] && (v == root || next[v] != NO_CHANNEL);
    return v == root || (next[v] != NO_CHANNEL && position[net->dst[ibn_next_channel(job, next, v)]] > position[v]);
}

/* Return the flow to a destination that passes switch `u`: its own flow, and that of all switches upstream. */
static double flow_through(const job_t *job, load_account *account, const uint8_t *next, int32_t target, int32_t u)
{
    const ibn_network *net = job->net;
    double flow = net->sources[u];
    int32_t tail = 0;
    account->queue[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = account->queue[head];
        for (int32_t i = net->into_first[v]; i < net->into_first[v + 1]; i++) {
            int32_t c = net->into[i], w = net->src[c];
            if (next[w] != NO_CHANNEL && ibn_next_channel(job, next, w) == c) {
                flow += net->sources[w];
                account->queue[tail++] = w;
            }
        }
    }
    return flow * job->targets->share[target];
}

/* Move the next hop of switch `u` for one destination to another channel, if that lowers the sum of all channel
 * weights.  Returns whether it was moved. */
static int improve(const job_t *job, load_account *account, int32_t target, int32_t u)
{
    const ibn_network *net = job->net;
    uint8_t *next = job->next + (int64_t)target * net->switches, kept = next[u];
    double flow = flow_through(job, account, next, target, u);
    if (flow == 0.0)
        return 0;
    double before = account->potential;
    int32_t taken = ibn_lmc_siblings(job, target, u, net->first[u] + kept);
    ibn_account_add_path(job, account, next, u, target, -flow);
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        next[u] = kept;
        if (c - net->first[u] == kept || !allowed(job, next, target, u, c)
            || ibn_lmc_siblings(job, target, u, c) > taken)
            continue;
        next[u] = (uint8_t)(c - net->first[u]);
        ibn_account_add_path(job, account, next, u, target, flow);
        if (account->potential < before - 1e-9)
            return 1;
        ibn_account_add_path(job, account, next, u, target, -flow);
    }
    next[u] = kept;
    ibn_account_add_path(job, account, next, u, target, flow);
    return 0;
}

/* Move the next hop for one destination off a channel.  Returns whether this was possible. */
static int relieve(const job_t *job, load_account *account, int32_t channel)
{
    const ibn_network *net = job->net;
    int32_t u = net->src[channel], moved = 0;
    uint8_t index = (uint8_t)(channel - net->first[u]);
    for (int32_t target = 0; target < job->targets->count; target++)
        if (job->next[(int64_t)target * net->switches + u] == index && improve(job, account, target, u)) {
            moved = 1;
            break;
        }
    return moved;
}

void ibn_trees_local_search(const job_t *job, load_account *account)
{
    const ibn_network *net = job->net;
    for (int32_t round = 0; round < ROUNDS; round++) {
        double peak = 0.0;
        for (int32_t c = 0; c < net->channels; c++)
            peak = fmax(peak, account->load[c] * net->inverse_capacity[c]);
        for (int32_t c = 0; c < net->channels; c++)
            if (account->load[c] * net->inverse_capacity[c] >= peak && !relieve(job, account, c))
                return; /* No move takes flow off this channel, so the peak utilisation stays. */
    }
}
