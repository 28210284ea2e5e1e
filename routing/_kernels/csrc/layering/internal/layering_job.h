/* State of the layering kernel, shared by its parts. */
#ifndef IBNUE_LAYERING_JOB_H
#define IBNUE_LAYERING_JOB_H

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
    acyclic graph;      /* CDG of the placed paths, by layer */
    uint8_t *next;      /* [D, S] index of each switch's channel among its own, NO_CHANNEL: none */
    uint16_t *hops;     /* [D, S] hops of each path, NO_PATH: no path */
    uint8_t *layer;     /* [D, S] layer of each path, with `mutual` [S, S] */
    uint16_t *length;   /* [S, S] hops of the longest path between two switches, with `mutual` only */
    double *load;       /* [C] load of each channel */
    acyclic_step *step; /* CDG edges of the current unit */
    int32_t steps;      /* length of `step` */
    int64_t room;       /* allocated length of `step` */
    ibn_layers *result;
    int hasty;      /* whether to stop after the first path length at which a unit finds no layer */
    int64_t budget; /* value of graph.visited from which on nothing more is placed */
    int failed;     /* whether memory ran out */
} layering_job;

/* A first hop, and the highest utilisation on its path. */
typedef struct {
    double worst;
    int32_t channel;
} first_hop;

/* Return whether memory ran out, or the work limit is exceeded. */
static inline int ibn_layering_is_over(const layering_job *job)
{
    return job->failed || job->graph.visited > job->budget;
}

/* Return the next channel of a switch towards a target. */
static inline int32_t ibn_layering_next_channel(const layering_job *job, int32_t target, int32_t u)
{
    return job->net.first[u] + job->next[(int64_t)target * job->net.switches + u];
}

/* Return the layer at which the search for the paths to a target begins. */
static inline int32_t ibn_layering_first_layer(const layering_job *job, int32_t target)
{
    return job->paths->region ? job->paths->region[job->paths->root[target]] : 0;
}

/* Return the layer at which the search for the paths from switch a to switch b begins. */
static inline int32_t ibn_layering_first_layer_between(const layering_job *job, int32_t a, int32_t b)
{
    return !job->paths->region  ? 0
           : job->paths->mutual ? job->paths->region[a] + job->paths->region[b]
                                : job->paths->region[b];
}

/* Return whether the path from a switch to a target counts. */
static inline int ibn_layering_is_counted(const ibn_path_set *paths, int32_t target, int32_t u)
{
    return paths->counted[u] || paths->counted[paths->root[target]];
}

/* Return the highest utilisation on the path that begins with channel c, with `flow` added. */
static inline double ibn_layering_peak_on_path(const layering_job *job, int32_t target, int32_t c, double flow)
{
    double worst = 0.0;
    for (;; c = ibn_layering_next_channel(job, target, job->net.dst[c])) {
        worst = fmax(worst, (job->load[c] + flow) * job->paths->inverse_capacity[c]);
        if (job->net.dst[c] == job->paths->root[target])
            return worst;
    }
}

/* Add flow along the path that begins with channel c. */
static inline void ibn_layering_add_flow(layering_job *job, int32_t target, int32_t c, double flow)
{
    for (;; c = ibn_layering_next_channel(job, target, job->net.dst[c])) {
        job->load[c] += flow;
        if (job->net.dst[c] == job->paths->root[target])
            return;
    }
}

/* Order first hops by the highest utilisation on their paths. */
static inline int ibn_layering_by_peak(const void *a, const void *b)
{
    const first_hop *x = a, *y = b;
    if (x->worst != y->worst)
        return x->worst < y->worst ? -1 : 1;
    return x->channel - y->channel;
}

/* Functions of place.c. */
void ibn_layering_measure_hops(layering_job *job);
int ibn_layering_collect_edges(layering_job *job, int32_t target, int32_t from);
int32_t ibn_layering_place(layering_job *job, int32_t vls, int avoid, int32_t start);
/* Functions of paths.c. */
int64_t ibn_layering_place_paths(layering_job *job, int32_t vls, int avoid, int counted);
/* Functions of symmetric.c. */
int32_t ibn_layering_path_between(layering_job *job, int32_t a, int32_t b, double *flow);
void ibn_layering_measure_lengths(layering_job *job);
int64_t ibn_layering_place_pairs(layering_job *job, int32_t vls, int avoid, int counted);
/* Functions of unload.c. */
void ibn_layering_unload(layering_job *job, int32_t rounds, int32_t *queue, int32_t *behind);
/* rebalance.c */
int ibn_layering_rebalance(layering_job *job);

#endif
