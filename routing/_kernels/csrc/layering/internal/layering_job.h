/* State of the layering kernel, shared by its source files.
 *
 * A LAYER is a VL with its CDG.  A TARGET is a destination LID.  A UNIT is a set of paths that are put into one layer
 * together.  If `mutual` is set in the request, a unit consists of all paths between two switches, in both directions.
 * Otherwise each path is a unit. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "layering/layering.h"
#include "core/internal/acyclic.h"

#define NO_CHANNEL 255
#define NO_LAYER 255
#define NO_PATH UINT16_MAX
#define EVERY UINT32_MAX

typedef struct {
    const ibn_path_set *paths;
    acyclic_net net;
    acyclic graph; /* CDG of each layer, with the edges of the paths that have been placed there */
    /* [D, S] by target and switch: index of the next channel among the channels of the switch, NO_CHANNEL: none */
    uint8_t *next;
    uint16_t *hops; /* [D, S] by target and switch: hops of the path from the switch to the target, NO_PATH: no path */
    /* [D, S] by target and switch: layer of the path; if `mutual` is set: [S, S], layer of each pair of switches */
    uint8_t *layer;
    /* [S, S] hops of the longest path between switches a < b, in either direction; used only if `mutual` is set */
    uint16_t *length;
    double *load;       /* [C] flow on each channel */
    acyclic_step *step; /* CDG edges of the unit that is being placed in a layer */
    int32_t steps;      /* number of edges in `step` */
    int64_t room;       /* number of CDG edges for which the array `step` has room */
    ibn_layers *result;
    /* 1: give up early.  If a unit fits into no layer, the search still tries the other units of the same path length,
     * and then stops */
    int hasty;
    /* work limit: once cycle searches have visited more than this number of channels (graph.visited), no more units are
     * placed */
    int64_t budget;
    int failed; /* whether memory ran out */
} layering_job;

/* A possible first channel of a path (`channel`), and the highest utilisation of a channel on this path (`worst`). */
typedef struct {
    double worst;
    int32_t channel;
} first_hop;

/* Return whether the search must end, because memory ran out or the work limit is exceeded. */
static inline int ibn_layering_is_over(const layering_job *job)
{
    return job->failed || job->graph.visited > job->budget;
}

/* Return the channel by which switch u sends to a target. */
static inline int32_t ibn_layering_next_channel(const layering_job *job, int32_t target, int32_t u)
{
    return job->net.first[u] + job->next[(int64_t)target * job->net.switches + u];
}

/* Return the number of the layer that is tried first for the paths to a target. */
static inline int32_t ibn_layering_first_layer(const layering_job *job, int32_t target)
{
    return job->paths->region ? job->paths->region[job->paths->root[target]] : 0;
}

/* Return the number of the layer that is tried first for the paths from switch a to switch b. */
static inline int32_t ibn_layering_first_layer_between(const layering_job *job, int32_t a, int32_t b)
{
    return !job->paths->region  ? 0
           : job->paths->mutual ? job->paths->region[a] + job->paths->region[b]
                                : job->paths->region[b];
}

/* Return whether the path from switch u to a target is a counted path.  This is so if paths->counted is 1 for switch u
 * or for the switch that delivers the target. */
static inline int ibn_layering_is_counted(const ibn_path_set *paths, int32_t target, int32_t u)
{
    return paths->counted[u] || paths->counted[paths->root[target]];
}

/* Return the highest utilisation on a path, if `flow` is added to the path.  The path begins with channel c, and leads
 * to a target. */
static inline double ibn_layering_peak_on_path(const layering_job *job, int32_t target, int32_t c, double flow)
{
    double worst = 0.0;
    for (;; c = ibn_layering_next_channel(job, target, job->net.dst[c])) {
        worst = fmax(worst, (job->load[c] + flow) * job->paths->inverse_capacity[c]);
        if (job->net.dst[c] == job->paths->root[target])
            return worst;
    }
}

/* Add flow to all channels of a path.  The path begins with channel c, and leads to a target. */
static inline void ibn_layering_add_flow(layering_job *job, int32_t target, int32_t c, double flow)
{
    for (;; c = ibn_layering_next_channel(job, target, job->net.dst[c])) {
        job->load[c] += flow;
        if (job->net.dst[c] == job->paths->root[target])
            return;
    }
}

/* Compare two first hops for qsort: the first hop with the lower peak utilisation on its path comes first. */
static inline int ibn_layering_by_peak(const void *a, const void *b)
{
    const first_hop *x = a, *y = b;
    if (x->worst != y->worst)
        return x->worst < y->worst ? -1 : 1;
    return x->channel - y->channel;
}

/* Functions of place.c, which collect the CDG edges of a unit and find a layer for the unit. */
void ibn_layering_measure_hops(layering_job *job);
int ibn_layering_collect_edges(layering_job *job, int32_t target, int32_t from);
int32_t ibn_layering_place(layering_job *job, int32_t vls, int avoid, int32_t start);
/* Assign layers to single paths: see paths.c. */
int64_t ibn_layering_place_paths(layering_job *job, int32_t vls, int avoid, int counted);
/* Functions of symmetric.c, which assign layers to pairs of switches. */
int32_t ibn_layering_path_between(layering_job *job, int32_t a, int32_t b, double *flow);
void ibn_layering_measure_lengths(layering_job *job);
int64_t ibn_layering_place_pairs(layering_job *job, int32_t vls, int avoid, int counted);
/* Move next hops off the channels with the peak utilisation: see unload.c. */
void ibn_layering_unload(layering_job *job, int32_t rounds, int32_t *queue, int32_t *behind);
/* Balance the load of the layers: see rebalance.c. */
int ibn_layering_rebalance(layering_job *job);
