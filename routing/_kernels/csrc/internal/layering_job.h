/* State of the layering kernel, shared by its parts. */
#ifndef IBNUE_LAYERING_JOB_H
#define IBNUE_LAYERING_JOB_H

#include <math.h>
#include <stdint.h>

#include "../layering.h"
#include "acyclic.h"

#define NO_CHANNEL 255
#define NO_LAYER 255
#define NO_WAY UINT16_MAX
#define EVERY UINT32_MAX

typedef struct {
    const ibn_ways *ways;
    acyclic_net net;
    acyclic graph; /* CDG of the placed paths, by layer */
    uint8_t *next;        /* [D, S] index of each switch's channel among its own, NO_CHANNEL: none */
    uint16_t *hops;       /* [D, S] hops of each path, NO_WAY: no path */
    uint8_t *layer;       /* [D, S] layer of each path, with `mutual` [S, S] */
    uint16_t *length;     /* [S, S] hops of the longest path between two switches, with `mutual` only */
    double *load; /* [C] */
    acyclic_step *step; /* CDG edges of the current unit */
    int32_t steps; /* length of `step` */
    int64_t room; /* allocated length of `step` */
    ibn_layers *result;
    int hasty; /* whether to stop after the first path length at which a unit finds no layer */
    int64_t budget; /* value of graph.visited from which on nothing more is placed */
    int failed; /* whether memory ran out */
} layering_job;

/* A first hop, and the highest utilisation on its path. */
typedef struct {
    double worst;
    int32_t channel;
} detour_t;

/* Return whether memory ran out, or the work limit is exceeded. */
static inline int ibn_is_over(const layering_job *job)
{
    return job->failed || job->graph.visited > job->budget;
}

/* Return the next channel of a switch towards a target. */
static inline int32_t ibn_channel_of(const layering_job *job, int32_t target, int32_t u)
{
    return job->net.first[u] + job->next[(int64_t)target * job->net.switches + u];
}

/* Return the layer at which the search for the paths to a target begins. */
static inline int32_t ibn_preferred(const layering_job *job, int32_t target)
{
    return job->ways->region ? job->ways->region[job->ways->root[target]] : 0;
}

/* Return the layer at which the search for the paths from switch a to switch b begins. */
static inline int32_t ibn_preferred_by(const layering_job *job, int32_t a, int32_t b)
{
    return !job->ways->region ? 0 : job->ways->mutual ? job->ways->region[a] + job->ways->region[b] : job->ways->region[b];
}

/* Return whether the path from a switch to a target counts. */
static inline int ibn_is_counted(const ibn_ways *ways, int32_t target, int32_t u)
{
    return ways->counted[u] || ways->counted[ways->root[target]];
}

/* Return the highest utilisation on the path that begins with channel c, with `flow` added. */
static inline double ibn_worst_along(const layering_job *job, int32_t target, int32_t c, double flow)
{
    double worst = 0.0;
    for (;; c = ibn_channel_of(job, target, job->net.dst[c])) {
        worst = fmax(worst, (job->load[c] + flow) * job->ways->slowness[c]);
        if (job->net.dst[c] == job->ways->root[target])
            return worst;
    }
}

/* Add flow along the path that begins with channel c. */
static inline void ibn_add_flow(layering_job *job, int32_t target, int32_t c, double flow)
{
    for (;; c = ibn_channel_of(job, target, job->net.dst[c])) {
        job->load[c] += flow;
        if (job->net.dst[c] == job->ways->root[target])
            return;
    }
}

/* Order first hops by the highest utilisation on their paths. */
static inline int ibn_by_load(const void *a, const void *b)
{
    const detour_t *x = a, *y = b;
    if (x->worst != y->worst)
        return x->worst < y->worst ? -1 : 1;
    return x->channel - y->channel;
}

/* layering_place.c */
void ibn_measure_hops(layering_job *job);
int ibn_collect(layering_job *job, int32_t target, int32_t from);
int32_t ibn_place(layering_job *job, int32_t lanes, int avoid, int32_t start);
/* layering_ways.c */
int64_t ibn_place_ways(layering_job *job, int32_t lanes, int avoid, int counted);
/* layering_pairs.c */
int32_t ibn_between(layering_job *job, int32_t a, int32_t b, double *flow);
void ibn_measure_lengths(layering_job *job);
int64_t ibn_place_pairs(layering_job *job, int32_t lanes, int avoid, int counted);
/* layering_ease.c */
void ibn_ease(layering_job *job, int32_t rounds, int32_t *queue, int32_t *behind);
/* layering_even.c */
int ibn_even_out(layering_job *job);

#endif
