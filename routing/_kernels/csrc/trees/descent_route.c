/* Compute the cheapest tree of one destination, while the trees of all other destinations stay, and update the
 * loads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"
#include "trees/internal/descent_state.h"

/* Cost of a missed slot.  A slot is the number of a switch in its group.  At each switch, the destination selects a
 * slot of the level above.  Successive destinations select the slots in turn.  In the first pass, a channel up to a
 * switch with another slot has this additional cost (see the function misses_slot).  All other costs of a path together
 * are lower than this cost, except costs with the factor START. */
#define MISSED 1e12
/* Factor of a cost.  In the first pass, a channel has the additional cost START times MISSED if options->start prefers
 * another channel (see the function misses_start).  This is more than the cost of all missed slots on a path. */
#define START 64.0

/* List the allowed channels of all switches on paths towards a root.  Returns 1 if memory is exhausted, otherwise 0. */
int ibn_trees_descent_find_paths(const descent_t *descent, const tree_survey *survey, int32_t root,
                                 descent_paths *paths)
{
    const ibn_network *net = descent->net;
    size_t switches = (size_t)net->switches + 1;
    int32_t *by_hops = calloc(switches + 1, sizeof *by_hops), channels = 0;
    memset(paths, 0, sizeof *paths);
    paths->order = malloc(switches * sizeof *paths->order);
    paths->group = malloc(switches * sizeof *paths->group);
    paths->first = malloc(switches * sizeof *paths->first);
    ibn_trees_survey(survey, root);
    for (int32_t u = 0; u < net->switches; u++) {
        if (u == root || survey->direction[u] == NO_PATH)
            continue;
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++)
            channels += ibn_trees_survey_allows(survey, u, c);
        paths->count++;
        if (by_hops)
            by_hops[survey->hops[u] + 1]++;
    }
    paths->allowed = malloc((size_t)channels + 1);
    if (!by_hops || !paths->order || !paths->group || !paths->first || !paths->allowed) {
        free(by_hops);
        return 1;
    }
    for (int32_t h = 0; h < net->switches; h++)
        by_hops[h + 1] += by_hops[h];
    for (int32_t u = 0; u < net->switches; u++)
        if (u != root && survey->direction[u] != NO_PATH)
            paths->order[by_hops[survey->hops[u]]++] = u;
    channels = 0;
    for (int32_t i = 0; i < paths->count; i++) {
        int32_t u = paths->order[i];
        paths->group[i] = by_hops[survey->hops[u]];
        paths->first[i] = channels;
        for (int32_t c = net->first[u]; c < net->first[u + 1]; c++)
            if (ibn_trees_survey_allows(survey, u, c))
                paths->allowed[channels++] = (uint8_t)(c - net->first[u]);
    }
    paths->first[paths->count] = channels;
    free(by_hops);
    return 0;
}

void ibn_trees_descent_free_paths(descent_paths *paths)
{
    free(paths->order);
    free(paths->group);
    free(paths->first);
    free(paths->allowed);
}

/* Add a destination's tree to the weights of channels and turns (sign 1), or remove it from these weights (sign -1).
 * With `with_load`, the flow on the channels is updated too. */
void ibn_trees_descent_move(descent_t *descent, int32_t target, const descent_paths *paths, double sign, int with_load)
{
    const ibn_network *net = descent->net;
    const uint8_t *next = descent->next + (int64_t)target * net->switches;
    double share = sign * descent->targets->share[target], factor = sign * descent->options->meet_target[target];
    int32_t root = descent->targets->root[target];
    for (int32_t i = 0; i < paths->count; i++) {
        int32_t u = paths->order[i];
        descent->through[u] = net->sources[u];
        descent->meeting[u] = descent->options->meet_source[u];
    }
    for (int32_t i = paths->count - 1; i >= 0; i--) {
        int32_t u = paths->order[i], c = net->first[u] + next[u];
        double flow = descent->through[u], weight = descent->meeting[u];
        if (flow == 0.0)
            continue;
        descent_channel *channel = &descent->channel[c];
        double met = weight * factor * descent->load[c].inverse;
        channel->meet += met;
        if (with_load)
            descent->load[c].load += flow * share;
        int32_t v = channel->to;
        if (v == root)
            continue;
        descent->turn[ibn_trees_descent_row(descent, v, next[v]) + channel->place] += met;
        descent->through[v] += flow;
        descent->meeting[v] += weight;
    }
}

/* Return the utilisation above the ceilings that `flow` would add: the sum over channel c and all later channels of the
 * path.  If `flow` is 0, return the utilisation that is above the ceilings already. */
static double excess(const descent_t *descent, int32_t c, double flow)
{
    double sum = 0.0;
    while (c >= 0) {
        const descent_load *load = &descent->load[c];
        double over = (load->load + flow) * load->inverse - load->ceiling;
        if (over > 0.0)
            sum += flow > 0.0 && over > flow * load->inverse ? flow * load->inverse : over;
        c = descent->path[descent->channel[c].to].channel;
    }
    return sum;
}

/* Count the other LIDs of the destination's end port for which switch v is the next hop of switch u. */
static int32_t siblings(const descent_t *descent, int32_t target, int32_t u, int32_t v)
{
    const ibn_network *net = descent->net;
    const ibn_targets *targets = descent->targets;
    int32_t group = descent->lmc_group_of[target], found = 0;
    for (int32_t t = targets->lmc_group_first[group]; t < targets->lmc_group_first[group + 1]; t++) {
        uint8_t taken = descent->next[(int64_t)t * net->switches + u];
        found += t != target && taken != NO_CHANNEL && net->dst[net->first[u] + taken] == v;
    }
    return found;
}

/* Count, for each allowed next hop of a switch, the other LIDs of the destination's end port with this next hop.
 * Return the lowest count.  `place` is the index of the switch in paths->order. */
static int32_t fewest_siblings(const descent_t *descent, int32_t target, const descent_paths *paths, int32_t place)
{
    int32_t u = paths->order[place], fewest = INT32_MAX;
    for (int32_t k = paths->first[place]; k < paths->first[place + 1]; k++) {
        int32_t c = descent->net->first[u] + paths->allowed[k];
        int32_t found = siblings(descent, target, u, descent->net->dst[c]);
        fewest = found < fewest ? found : fewest;
    }
    return fewest;
}

/* Return whether channel c leads up from switch u to a switch with a wrong slot (number in its group): another slot
 * than the one that the present destination selects. */
static int misses_slot(const descent_t *descent, int32_t u, int32_t c)
{
    const ibn_descent_options *options = descent->options;
    int32_t v = descent->channel[c].to;
    return options->level[v] > options->level[u]
           && options->slot[v] != descent->digit / options->stride[u] % options->slots[u];
}

/* Return whether the first pass should avoid channel `number` of a switch.  The channel is avoided if the start
 * tables use another channel of the switch, and this other channel is allowed.  `place` is the index of the switch
 * in paths->order. */
static int misses_start(const descent_t *descent, int32_t target, const descent_paths *paths, int32_t place,
                        uint8_t number)
{
    uint8_t start = descent->options->start[(int64_t)target * descent->net->switches + paths->order[place]];
    if (start == number)
        return 0;
    size_t allowed = (size_t)(paths->first[place + 1] - paths->first[place]);
    return start != NO_CHANNEL && memchr(paths->allowed + paths->first[place], start, allowed);
}

/* Choose the next channel of the switch at index `place` of paths->order.
 *
 * The cost of a channel is the weight of the flows on it.  A flow that also uses the next channel of the path counts
 * again there.  So a part of its weight, descent->discount, is left out at the first of the two channels.  A next hop
 * must not be chosen if more than `fewest` other LIDs of the destination's end port already use it.  If `fewest` is -1,
 * every allowed channel may be chosen. */
static void choose(descent_t *descent, int32_t target, const descent_paths *paths, int32_t place, int32_t fewest)
{
    int32_t u = paths->order[place], first = descent->net->first[u], taken = -1;
    double flow = descent->net->sources[u] * descent->targets->share[target], best = INFINITY, chosen = 0.0;
    double price = descent->price, discount = descent->discount;
    const double *turn = descent->turn;
    for (int32_t k = paths->first[place]; k < paths->first[place + 1]; k++) {
        int32_t c = first + paths->allowed[k];
        const descent_channel *channel = &descent->channel[c];
        const descent_path *path = &descent->path[channel->to];
        double cost = channel->meet + path->cost - discount * turn[path->row + channel->place];
        if (descent->is_first && misses_slot(descent, u, c))
            cost += MISSED;
        double priced = cost;
        if (descent->is_first && misses_start(descent, target, paths, place, paths->allowed[k]))
            priced += START * MISSED;
        if (priced >= best || (fewest >= 0 && siblings(descent, target, u, channel->to) > fewest))
            continue;
        if (price > 0.0) {
            priced += price * excess(descent, c, flow);
            if (priced >= best)
                continue;
        }
        best = priced;
        chosen = cost;
        taken = c;
    }
    if (taken < 0)
        taken = first + paths->allowed[paths->first[place]];
    uint8_t number = (uint8_t)(taken - first);
    descent->next[(int64_t)target * descent->net->switches + u] = number;
    descent->path[u] = (descent_path){chosen, taken, ibn_trees_descent_row(descent, u, number)};
    if (flow == 0.0)
        return;
    for (int32_t c = taken; c >= 0; c = descent->path[descent->channel[c].to].channel)
        descent->load[c].load += flow;
}

/* Compute the tree of a destination, and add its flow to the loads.  On entry, the loads must not contain this flow.
 *
 * Switches near the destination choose before switches farther away.  In the first pass, switches at equal distance
 * choose in the order of their rows.  In later passes they choose in random order, so that no switch always chooses
 * last. */
void ibn_trees_descent_route(descent_t *descent, int32_t target, const descent_paths *paths)
{
    const ibn_targets *targets = descent->targets;
    int32_t group = descent->lmc_group_of[target], *places = descent->shuffled;
    int has_siblings = targets->lmc_group_first[group + 1] - targets->lmc_group_first[group] > 1;
    memset(descent->next + (int64_t)target * descent->net->switches, NO_CHANNEL, (size_t)descent->net->switches);
    descent->path[targets->root[target]] = (descent_path){0.0, -1, 0};
    for (int32_t begin = 0; begin < paths->count;) {
        int32_t end = paths->group[begin];
        for (int32_t i = begin; i < end; i++)
            places[i - begin] = i;
        if (!descent->is_first)
            ibn_core_shuffle(places, end - begin, &descent->random);
        for (int32_t i = 0; i < end - begin; i++) {
            /* Switches with sending end ports take different next hops for the LIDs of one end port, if possible.  This
             * already makes the paths to these LIDs differ.  So switches without sending end ports may take equal next
             * hops. */
            int parts = has_siblings && descent->net->sources[paths->order[places[i]]] > 0.0;
            int32_t fewest = parts ? fewest_siblings(descent, target, paths, places[i]) : -1;
            choose(descent, target, paths, places[i], fewest);
        }
        begin = end;
    }
}
