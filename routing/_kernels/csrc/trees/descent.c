/* Compute trees such that few pairs of flows share channels.
 *
 * In random traffic, two flows with different sources and destinations that share a channel cost each other about half
 * of their rate.  Two flows that share several channels in a row lose this only once.  So the cost of tables is the
 * difference of two sums.  The first sum adds, for each channel, the weight of the pairs of flows on the channel.  The
 * second sum adds, for each turn (two channels in a row), the weight of the pairs of flows on both channels.
 *
 * If all other flows stay, the cost is linear in the flow to one destination.  So the best tree of a destination is a
 * tree of cheapest paths, for suitable costs of channels.  The cost of a channel is the weight of the other flows on
 * the channel, except the flows that continue by the same next channel.
 *
 * The first pass routes all destinations in the order of their leaves.  Where no links are missing, successive
 * destinations take successive upper switches (D-mod-K), which is already the best choice.  Where links are missing,
 * the pass can start with other tables.
 *
 * Each further pass visits the destinations in random order, removes the tree of each destination, and computes the
 * tree again.  Channels whose utilisation is above their ceiling cost more from pass to pass, which balances all-to-all
 * traffic. */
#include "trees/descent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"
#include "trees/internal/descent_state.h"

/* The search for a lower peak utilisation ends after this number of attempts without success. */
#define FAILED_ROUNDS 10
/* Factors for the attempts to lower the peak utilisation.  Each attempt sets the common ceiling to one of the
 * factors times the lowest peak utilisation so far.  Two attempts use STEP, then two attempts use LONG_STEP, and so
 * on. */
#define STEP 0.998
#define LONG_STEP 0.99
/* Factor of a price.  In the attempts to lower the peak utilisation, a unit of utilisation above a ceiling costs
 * PEAK_PRICE times as much as in the last pass.  This is more than the cost of all flows that share channels. */
#define PEAK_PRICE 30.0
/* Two values count as equal if their relative difference is at most this value. */
#define ROUNDING 1e-6

static void release(descent_t *descent)
{
    for (int32_t u = 0; descent->root_row && descent->paths && u < descent->net->switches; u++)
        if (descent->root_row[u] >= 0)
            ibn_trees_descent_free_paths(&descent->paths[descent->root_row[u]]);
    ibn_core_arrays_free(&descent->arrays);
}

/* Fill `first` with the index of each switch's first turn in the array `turn`, unless `first` is NULL.  A few elements
 * at the beginning of `turn` stand for "no turn".  Returns the number of elements of `turn`. */
static size_t count_turns(const ibn_network *net, int32_t *first)
{
    size_t turns = 1;
    for (int32_t u = 0; u < net->switches; u++)
        turns = (size_t)(net->into_first[u + 1] - net->into_first[u]) > turns
                    ? (size_t)(net->into_first[u + 1] - net->into_first[u])
                    : turns;
    for (int32_t u = 0; u < net->switches; u++) {
        if (first)
            first[u] = (int32_t)turns;
        turns += (size_t)(net->into_first[u + 1] - net->into_first[u]) * (size_t)(net->first[u + 1] - net->first[u]);
    }
    return turns;
}

static int allocate(descent_t *descent, tree_survey *survey)
{
    size_t switches = (size_t)descent->net->switches + 1, channels = (size_t)descent->net->channels + 1;
    size_t turns = count_turns(descent->net, NULL);
    array_list *arrays = &descent->arrays;
    descent->channel = ibn_core_arrays_add(arrays, channels, sizeof *descent->channel);
    descent->turn = ibn_core_arrays_add(arrays, turns, sizeof *descent->turn);
    descent->paths = ibn_core_arrays_add(arrays, switches, sizeof *descent->paths);
    descent->root_row = ibn_core_arrays_add(arrays, switches, sizeof *descent->root_row);
    descent->lmc_group_of =
        ibn_core_arrays_add(arrays, (size_t)descent->targets->count + 1, sizeof *descent->lmc_group_of);
    descent->sequence = ibn_core_arrays_add(arrays, switches, sizeof *descent->sequence);
    descent->shuffled = ibn_core_arrays_add(arrays, switches, sizeof *descent->shuffled);
    descent->load = ibn_core_arrays_add(arrays, channels, sizeof *descent->load);
    descent->turn_first = ibn_core_arrays_add(arrays, switches, sizeof *descent->turn_first);
    descent->path = ibn_core_arrays_add(arrays, switches, sizeof *descent->path);
    descent->through = ibn_core_arrays_add(arrays, switches, sizeof *descent->through);
    descent->meeting = ibn_core_arrays_add(arrays, switches, sizeof *descent->meeting);
    descent->before = ibn_core_arrays_add(arrays, switches, sizeof *descent->before);
    survey->hops = ibn_core_arrays_add(arrays, switches, sizeof *survey->hops);
    survey->below = ibn_core_arrays_add(arrays, switches, sizeof *survey->below);
    survey->direction = ibn_core_arrays_add(arrays, switches, sizeof *survey->direction);
    survey->queue = ibn_core_arrays_add(arrays, switches, sizeof *survey->queue);
    if (descent->root_row)
        memset(descent->root_row, -1, switches * sizeof *descent->root_row);
    return arrays->failed;
}

/* Fill the data of the channels, the LMC group of each destination, and the allowed channels towards each root.  A root
 * is a switch that delivers a destination with flow.  Returns 1 if memory is exhausted, otherwise 0. */
static int prepare(descent_t *descent, tree_survey *survey)
{
    const ibn_network *net = descent->net;
    const ibn_targets *targets = descent->targets;
    int32_t rows = 0;
    if (allocate(descent, survey))
        return 1;
    for (int32_t u = 0; u < net->switches; u++)
        for (int32_t k = net->into_first[u]; k < net->into_first[u + 1]; k++)
            descent->channel[net->into[k]] = (descent_channel){0.0, u, k - net->into_first[u]};
    for (int32_t c = 0; c < net->channels; c++)
        descent->load[c] = (descent_load){0.0, net->inverse_capacity[c], descent->options->ceiling[c]};
    count_turns(net, descent->turn_first);
    for (int32_t u = 0; u < net->switches; u++)
        descent->sequence[descent->options->position[u]] = u;
    for (int32_t group = 0; group < targets->lmc_groups; group++)
        for (int32_t t = targets->lmc_group_first[group]; t < targets->lmc_group_first[group + 1]; t++)
            descent->lmc_group_of[t] = group;
    survey->net = net;
    survey->position = descent->options->position;
    survey->sequence = descent->sequence;
    for (int32_t t = 0; t < targets->count; t++) {
        int32_t root = targets->root[t];
        if (targets->share[t] == 0.0 || descent->root_row[root] >= 0)
            continue;
        descent->root_row[root] = rows;
        if (ibn_trees_descent_find_paths(descent, survey, root, &descent->paths[rows++]))
            return 1;
    }
    return 0;
}

/* Return the allowed channels of all switches towards the root of a destination.  The destination must have flow. */
static const descent_paths *paths_of(const descent_t *descent, int32_t target)
{
    return &descent->paths[descent->root_row[descent->targets->root[target]]];
}

/* Remove the tree of a destination, and compute it again.  Returns whether a switch that sends or forwards flow has got
 * another next hop. */
static int route_again(descent_t *descent, int32_t target, const descent_paths *paths)
{
    const ibn_network *net = descent->net;
    const uint8_t *next = descent->next + (int64_t)target * net->switches;
    memcpy(descent->before, next, (size_t)net->switches);
    ibn_trees_descent_move(descent, target, paths, -1.0, 1);
    ibn_trees_descent_route(descent, target, paths);
    ibn_trees_descent_move(descent, target, paths, 1.0, 0);
    for (int32_t i = paths->count - 1; i >= 0; i--) {
        int32_t u = paths->order[i];
        if (descent->through[u] != 0.0 && next[u] != descent->before[u])
            return 1;
    }
    return 0;
}

/* Make the first sweep: compute the trees of all destinations with flow, in the given order. */
static void sweep_first(descent_t *descent, const int32_t *order, int32_t count)
{
    descent->is_first = 1;
    for (int32_t i = 0; i < count; i++) {
        const descent_paths *paths = paths_of(descent, order[i]);
        descent->digit = i;
        ibn_trees_descent_route(descent, order[i], paths);
        ibn_trees_descent_move(descent, order[i], paths, 1.0, 0);
    }
    descent->is_first = 0;
}

/* Make a further sweep: compute the trees of all destinations with flow again, in random order.  Returns whether any
 * tree changed. */
static int sweep_again(descent_t *descent, int32_t *order, int32_t count)
{
    int changed = 0;
    ibn_core_shuffle(order, count, &descent->random);
    for (int32_t i = 0; i < count; i++)
        changed |= route_again(descent, order[i], paths_of(descent, order[i]));
    return changed;
}

/* Return the common ceiling, which is the lowest ceiling of all channels. */
static double common_ceiling(const descent_t *descent)
{
    double lowest = INFINITY;
    for (int32_t c = 0; c < descent->net->channels; c++)
        lowest = fmin(lowest, descent->load[c].ceiling);
    return lowest;
}

/* Return the highest utilisation of the channels whose ceiling is the common ceiling. */
static double highest_common(const descent_t *descent, double common)
{
    double highest = 0.0;
    for (int32_t c = 0; c < descent->net->channels; c++)
        if (descent->load[c].ceiling <= common)
            highest = fmax(highest, descent->load[c].load * descent->load[c].inverse);
    return highest;
}

static void move_common_ceiling(descent_t *descent, double common, double ceiling)
{
    for (int32_t c = 0; c < descent->net->channels; c++)
        if (descent->load[c].ceiling <= common)
            descent->load[c].ceiling = ceiling;
}

/* Return whether a destination's tree uses a channel that has the common ceiling and a utilisation above this
 * ceiling. */
static int is_over(const descent_t *descent, int32_t target, const descent_paths *paths, double common)
{
    const ibn_network *net = descent->net;
    const uint8_t *next = descent->next + (int64_t)target * net->switches;
    for (int32_t i = 0; i < paths->count; i++) {
        int32_t u = paths->order[i];
        const descent_load *load = &descent->load[net->first[u] + next[u]];
        if (load->ceiling <= common && load->load * load->inverse > common)
            return 1;
    }
    return 0;
}

/* Visit the trees in random order.  Compute a tree again if it uses a channel that has the common ceiling and a
 * utilisation above this ceiling.  Compute at most `left` trees.  Returns `left` minus the number of trees that were
 * computed. */
static int64_t sweep_peak(descent_t *descent, int32_t *order, int32_t count, double common, int64_t left)
{
    ibn_core_shuffle(order, count, &descent->random);
    for (int32_t i = 0; i < count && left > 0; i++) {
        const descent_paths *paths = paths_of(descent, order[i]);
        if (is_over(descent, order[i], paths, common)) {
            route_again(descent, order[i], paths);
            left--;
        }
    }
    return left;
}

/* Lower the highest utilisation in several attempts.  Each attempt sets the common ceiling a little below the lowest
 * peak utilisation so far.  Then the attempt computes those trees again that use channels above this ceiling.  The
 * trees of the best attempt are kept.  Returns 1 if memory is exhausted, otherwise 0. */
static int lower_peak(descent_t *descent, int32_t *order, int32_t count)
{
    const ibn_descent_options *options = descent->options;
    size_t bytes = (size_t)descent->targets->count * (size_t)descent->net->switches;
    double common = common_ceiling(descent), best = highest_common(descent, common);
    int64_t left = (int64_t)count * (options->sweeps + 1) / 2;
    uint8_t *kept = malloc(bytes + 1);
    if (!kept)
        return 1;
    memcpy(kept, descent->next, bytes);
    for (int32_t round = 0, failures = 0; failures < FAILED_ROUNDS && left > 0; round++) {
        double ceiling = fmax(best * (round % 4 < 2 ? STEP : LONG_STEP), options->least_peak);
        if (best <= options->least_peak * (1.0 + ROUNDING))
            break;
        move_common_ceiling(descent, common, ceiling);
        common = ceiling;
        descent->discount = round % 2 ? 1.0 : 0.5;
        left = sweep_peak(descent, order, count, common, left);
        double highest = highest_common(descent, common);
        failures++;
        if (highest < best * (1.0 - ROUNDING)) {
            best = highest;
            failures = 0;
            memcpy(kept, descent->next, bytes);
        }
    }
    memcpy(descent->next, kept, bytes);
    free(kept);
    return 0;
}

/* Compute the loads of all channels from the trees. */
static void sum_loads(descent_t *descent, const int32_t *order, int32_t count)
{
    for (int32_t c = 0; c < descent->net->channels; c++)
        descent->load[c].load = 0.0;
    for (int32_t i = 0; i < count; i++)
        ibn_trees_descent_move(descent, order[i], paths_of(descent, order[i]), 1.0, 1);
}

/* Compute the trees of all destinations in each of options->sweeps passes.  End early if a pass changes nothing and all
 * channels with the common ceiling have a utilisation of at most this ceiling.  Afterwards, lower the highest
 * utilisation.  Returns nonzero if memory is exhausted. */
static int run_sweeps(descent_t *descent, int32_t *order, int32_t count)
{
    const ibn_descent_options *options = descent->options;
    double common = common_ceiling(descent);
    int changed = 1;
    for (int32_t number = 0; number < options->sweeps; number++) {
        if (!changed && highest_common(descent, common) <= common)
            break;
        descent->discount = options->discount[number];
        descent->price = options->price[number];
        if (number == 0)
            sweep_first(descent, order, count);
        else
            changed = sweep_again(descent, order, count);
    }
    descent->price = PEAK_PRICE * options->price[options->sweeps - 1];
    return lower_peak(descent, order, count);
}

/* Compute the trees of the destinations without flow.  At each root, one of these destinations gets a tree, and all
 * others copy this tree.  Returns nonzero if memory is exhausted. */
static int route_unloaded(descent_t *descent, const tree_survey *survey)
{
    const ibn_targets *targets = descent->targets;
    size_t switches = (size_t)descent->net->switches;
    int32_t *example = malloc((switches + 1) * sizeof *example);
    if (!example)
        return 1;
    memset(example, -1, (switches + 1) * sizeof *example);
    for (int32_t t = 0; t < targets->count; t++) {
        int32_t root = targets->root[t];
        if (targets->share[t] != 0.0)
            continue;
        if (example[root] >= 0) {
            memcpy(descent->next + (size_t)t * switches, descent->next + (size_t)example[root] * switches, switches);
            continue;
        }
        descent_paths paths;
        int failed = ibn_trees_descent_find_paths(descent, survey, root, &paths);
        if (!failed)
            ibn_trees_descent_route(descent, t, &paths);
        ibn_trees_descent_free_paths(&paths);
        if (failed) {
            free(example);
            return 1;
        }
        example[root] = t;
    }
    free(example);
    return 0;
}

/* Compute the trees of all destinations.
 *
 * next: uint8 [D, S], output: by destination and switch, the index of the next channel among the switch's channels
 * (255: none).
 * load: double [C], output: flow on each channel.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_descend(const ibn_network *network, const ibn_targets *targets, const ibn_descent_options *options,
                      uint8_t *next, double *load)
{
    descent_t descent = {.net = network, .targets = targets, .options = options, .next = next};
    descent.random = options->seed;
    tree_survey survey = {0};
    int32_t *order = malloc(((size_t)targets->count + 1) * sizeof *order), count = 0;
    int failed = prepare(&descent, &survey) || !order;
    if (!failed) {
        memset(next, NO_CHANNEL, (size_t)targets->count * (size_t)network->switches);
        for (int32_t i = 0; i < targets->count; i++)
            if (targets->share[options->order[i]] != 0.0)
                order[count++] = options->order[i];
        failed = run_sweeps(&descent, order, count);
    }
    if (!failed) {
        sum_loads(&descent, order, count);
        for (int32_t c = 0; c < network->channels; c++)
            load[c] = descent.load[c].load;
        failed = route_unloaded(&descent, &survey);
    }
    release(&descent);
    free(order);
    return failed;
}
