/* State of the descent (descent.c): loads of the channels, and allowed channels towards each root.  A root is a
 * switch that delivers destinations. */
#ifndef IBNUE_DESCENT_STATE_H
#define IBNUE_DESCENT_STATE_H

#include <stdint.h>

#include "trees/descent.h"
#include "trees/internal/tree_survey.h"

#define NO_CHANNEL 255

/* Data of a channel that every comparison of two channels reads.  The struct is small, because most of the time goes
 * into these reads. */
typedef struct {
    /* weight of all flows on the channel (by which pairs of flows are counted), times the channel's inverse capacity */
    double meet;
    int32_t to;    /* switch where the channel ends */
    int32_t place; /* index of the channel among the channels into that switch */
} descent_channel;

/* Data of a channel that is read only to compare its utilisation with the ceiling. */
typedef struct {
    double load;    /* flow on the channel */
    double inverse; /* inverse capacity */
    double ceiling; /* utilisation up to which the channel costs nothing */
} descent_load;

/* A switch's path to the current destination. */
typedef struct {
    double cost;     /* cost of the path, per unit of weight */
    int32_t channel; /* first channel of the path; -1: the switch is the root, or has no path */
    int32_t row;     /* index in the array `turn` of the turns into this channel */
} descent_path;

/* Allowed channels of every switch towards one root. */
typedef struct {
    int32_t count;  /* number of switches with a path, without the root */
    int32_t *order; /* [count] the switches with a path, the nearest first */
    int32_t *group; /* [count] index after the last switch at the same distance from the root */
    /* [count + 1] for each switch, by its index in `order`: index in `allowed` of its first allowed channel */
    int32_t *first;
    uint8_t *allowed; /* index of each allowed channel among all channels of its switch */
} descent_paths;

typedef struct {
    const ibn_network *net;
    const ibn_targets *targets;
    const ibn_descent_options *options;
    descent_channel *channel; /* [C] data of each channel that every comparison reads */
    descent_load *load;       /* [C] load and ceiling of each channel */
    /* [turns] for each turn (two channels in a row): weight of the flows on both channels, times the inverse
     * capacity of the first channel.
     *
     * The array is sorted by the switch between the two channels, then by the second channel, then by `place` of the
     * first channel.  So the turns into one channel are neighbours in memory, which is good because they are used
     * together.  Row 0 stands for "no turn", and stays 0. */
    double *turn;
    int32_t *turn_first;    /* [S] index in `turn` of the first turn at each switch */
    descent_path *path;     /* [S] path of each switch to the current destination */
    uint8_t *next;          /* [D, S] index of the chosen next channel among the switch's channels */
    descent_paths *paths;   /* [roots] paths and allowed channels towards each root */
    int32_t *root_row;      /* [S] index of each root in `paths`; -1: the switch delivers no destination with flow */
    int32_t *lmc_group_of;  /* [D] LMC group (all LIDs of one port) of each destination */
    int32_t *sequence;      /* [S] switches, sorted by position */
    int32_t *shuffled;      /* [S] scratch: indices of the switches at one distance, in random order */
    double *through;        /* [S] scratch: flow of the current destination through each switch */
    double *meeting;        /* [S] scratch: weight of this flow, by which pairs of flows are counted */
    int is_first;           /* whether the current sweep is the first one, in which slots are preferred */
    int32_t digit;          /* index of the current destination in the order of the first sweep */
    uint8_t *before;        /* [S] scratch: copy of a tree that was removed */
    double discount, price; /* discount and price of the current sweep, see ibn_descent_options */
    uint64_t random;        /* state of the random generator */
} descent_t;

/* Return the index in `turn` of the turns into channel number `number` of switch `v`. */
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

#endif
