/* State of the descent: loads, and the allowed channels towards each root. */
#ifndef IBNUE_DESCENT_STATE_H
#define IBNUE_DESCENT_STATE_H

#include <stdint.h>

#include "trees/descent.h"
#include "trees/internal/tree_survey.h"

#define NO_CHANNEL 255

/* Data of a channel that every comparison of channels reads.  Most of the time goes into these reads, so the struct is
 * small. */
typedef struct {
    double meet;   /* weight of the flows on the channel, times its inverse capacity */
    int32_t to;    /* switch at the end of the channel */
    int32_t place; /* place of the channel among those into that switch */
} descent_channel;

/* Data of a channel that only the comparison of its utilisation with the ceiling reads. */
typedef struct {
    double load;    /* flow on the channel */
    double inverse; /* inverse capacity */
    double ceiling; /* highest utilisation that costs nothing */
} descent_load;

/* A switch's path to the current destination. */
typedef struct {
    double cost;     /* cost of the path, per unit of weight */
    int32_t channel; /* first channel of the path; -1: the switch is the root, or has no path */
    int32_t row;     /* where the turns into this channel begin in the array `turn` */
} descent_path;

/* Allowed channels of every switch towards one root. */
typedef struct {
    int32_t count;    /* switches with a path, without the root */
    int32_t *order;   /* [count] the switches with a path, the nearest first */
    int32_t *group;   /* [count] position after the last switch at the same distance */
    int32_t *first;   /* [count + 1] where the allowed channels of each switch begin, by its position in `order` */
    uint8_t *allowed; /* numbers of the allowed channels among all channels of the switch */
} descent_paths;

typedef struct {
    const ibn_network *net;
    const ibn_targets *targets;
    const ibn_descent_options *options;
    descent_channel *channel; /* [C] state of each channel for the search */
    descent_load *load;       /* [C] load of each channel */
    /* [turns] for each turn (two channels in a row): weight of the flows on both channels, times the inverse
     * capacity of the first.  The array is sorted by the switch between both channels, then by the second channel,
     * then by the place of the first.  So the turns into one channel, all of which one destination uses, are
     * neighbours.  Row 0 stands for "no turn", and stays 0. */
    double *turn;
    int32_t *turn_first;    /* [S] where the turns at each switch begin in turn */
    descent_path *path;     /* [S] path of each switch to the current destination */
    uint8_t *next;          /* [D, S] index of the chosen channel among those of the switch */
    descent_paths *paths;   /* [roots] allowed channels towards each root */
    int32_t *root_row;      /* [S] row of a root in paths; -1: not a root of a destination with flow */
    int32_t *family_of;     /* [D] LMC group of each destination */
    int32_t *sequence;      /* [S] switches in the order of their positions */
    int32_t *shuffled;      /* [S] scratch: places of the switches, in random order at one distance */
    double *through;        /* [S] scratch: flow through each switch */
    double *meeting;        /* [S] scratch: weight of the flow through each switch */
    int is_first;           /* whether the current sweep is the first, which prefers slots */
    int32_t digit;          /* number of the current destination in the first sweep */
    uint8_t *before;        /* [S] scratch: a tree before it was removed */
    double discount, price; /* discount and price of the current sweep, see ibn_descent_options */
    uint64_t random;        /* state of the random generator */
} descent_t;

/* Return where the turns into channel number `number` of switch `v` begin in turn. */
static inline int32_t ibn_descent_row(const descent_t *descent, int32_t v, int32_t number)
{
    const ibn_network *net = descent->net;
    return descent->turn_first[v] + number * (net->into_first[v + 1] - net->into_first[v]);
}

int ibn_descent_find_paths(const descent_t *descent, const tree_survey *survey, int32_t root, descent_paths *paths);
void ibn_descent_free_paths(descent_paths *paths);
void ibn_descent_move(descent_t *descent, int32_t target, const descent_paths *paths, double sign, int with_load);
void ibn_descent_route(descent_t *descent, int32_t target, const descent_paths *paths);

#endif
