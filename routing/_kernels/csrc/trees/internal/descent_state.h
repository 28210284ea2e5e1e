/* State of the descent (descent.c): loads of the channels, and allowed channels towards each root.  A root is a
 * switch that delivers a destination with flow. */
#pragma once

#include "core/internal/arrays.h"
#include <stdint.h>

#include "trees/descent.h"
#include "trees/internal/tree_survey.h"

#define NO_CHANNEL 255

/* The data of a channel that is read whenever two channels are compared.  The struct is small, because most of the time
 * goes into these reads. */
typedef struct {
    /* sum of the weights of all flows on the channel, times the inverse capacity of the channel: a measure of the pairs
     * that a further flow would form with the flows on the channel */
    double meet;
    int32_t to;    /* switch where the channel ends */
    int32_t place; /* index of the channel among the channels into the switch `to` */
} descent_channel;

/* The data of a channel that is read only to compare its utilisation with its ceiling. */
typedef struct {
    double load;    /* flow on the channel */
    double inverse; /* inverse capacity of the channel */
    double ceiling; /* highest utilisation at which the channel has no extra cost */
} descent_load;

/* The path of a switch to the destination whose tree is being computed. */
typedef struct {
    double cost;     /* cost of the path for a flow of weight 1 */
    int32_t channel; /* first channel of the path; -1: the switch is the root, or has no path */
    int32_t row;     /* index in the array `turn` of the first turn whose second channel is `channel` */
} descent_path;

/* The channels by which each switch may send towards one root: its allowed channels. */
typedef struct {
    int32_t count;  /* number of switches with a path to the root, not counting the root */
    int32_t *order; /* [count] the switches with a path, sorted by hops to the root */
    /* [count] for each switch in `order`: index in `order` of the first switch that is farther from the root than this
     * switch */
    int32_t *group;
    /* [count + 1] for each switch in `order`: index in `allowed` of its first allowed channel */
    int32_t *first;
    /* allowed channels of all switches in `order`, each as an index among the channels of its switch */
    uint8_t *allowed;
} descent_paths;

typedef struct {
    const ibn_network *net;
    const ibn_targets *targets;
    const ibn_descent_options *options;
    descent_channel *channel; /* [C] the data of each channel that is read whenever two channels are compared */
    descent_load *load;       /* [C] load and ceiling of each channel */
    /* [turns] for each turn (two consecutive channels of a path): sum of the weights of the flows that take both
     * channels, times the inverse capacity of the first channel.
     *
     * The turns are sorted by the switch between the two channels, then by the second channel, then by `place` of the
     * first channel.  So turns with the same second channel are side by side in memory, because they are read together.
     * The elements before the first turn stand for "no turn", and stay 0. */
    double *turn;
    int32_t *turn_first; /* [S] index in `turn` of the first turn at each switch */
    descent_path *path;  /* [S] path of each switch to the destination whose tree is being computed */
    uint8_t *next; /* [D, S] by destination and switch: index of the chosen next channel among the switch's channels */
    descent_paths *paths; /* [roots] for each root: the channels by which each switch may send towards this root */
    /* [S] by switch: the index in `paths` at which the paths to this switch are stored; -1: the switch delivers no
     * destination with flow, so it is not a root */
    int32_t *root_row;
    int32_t *lmc_group_of; /* [D] index of each destination's LMC group (all LIDs of one end port) */
    int32_t *sequence;     /* [S] switches in the order of options->position */
    int32_t *shuffled;     /* [S] scratch: indices of the switches at one distance from the root, in random order */
    double *through;       /* [S] scratch: flow through each switch to one destination */
    /* [S] scratch: for each switch, the sum of the weights (options->meet_source) of all switches whose flow to one
     * destination passes it */
    double *meeting;
    /* whether this is the first pass.  In the first pass, `digit` selects a slot (the number of a switch in its group)
     * at each switch.  The switch prefers the channels up that lead to a switch with this slot */
    int is_first;
    int32_t digit;   /* in the first pass: index, in the order of the pass, of the destination that is routed now */
    uint8_t *before; /* [S] scratch: copy of a destination's tree that has been removed */
    /* Values for the present pass (ibn_descent_options has them for all passes), or for the attempts to lower the peak
     * utilisation after the last pass.
     *
     * discount: fraction, from 0 to 1, of the weight of two flows.  If both flows use the same two channels in a row,
     * this fraction is left out of the cost at the first of these channels.
     * price: cost of a unit of utilisation above a channel's ceiling. */
    double discount, price;
    uint64_t random; /* state of the random generator */
    /* allocation of all arrays above, except arrays that the caller or a tree_survey owns */
    array_list arrays;
} descent_t;

/* Return the index, in the array `turn`, of the first turn to a given second channel: channel number `number` of switch
 * v. */
static inline int32_t ibn_trees_descent_row(const descent_t *descent, int32_t v, int32_t number)
{
    const ibn_network *net = descent->net;
    return descent->turn_first[v] + number * (net->into_first[v + 1] - net->into_first[v]);
}

int ibn_trees_descent_find_paths(const descent_t *descent, const tree_survey *survey, int32_t root,
                                 descent_paths *paths);
void ibn_trees_descent_free_paths(descent_paths *paths);
void ibn_trees_descent_move(descent_t *descent, int32_t target, const descent_paths *paths, double sign, int with_load);
void ibn_trees_descent_route(descent_t *descent, int32_t target, const descent_paths *paths);
