/* Compute the mean distance of every switch from the destinations of each layer (VL). */
#include <stdlib.h>
#include <string.h>

#include "trees/switch_order.h"
#include "core/parallel.h"

typedef struct {
    int32_t switches;
    const int32_t *first, *dst;
    const int64_t *weight; /* [layers, S] by layer and switch: weight of the switch as a destination in the layer */
    /* [layers, S] by layer and switch: weighted mean of the hops from the switch to the destinations of the layer */
    double *mean;
    int32_t failed; /* whether memory ran out */
} survey_t;

/* Compute the hops from one switch to all other switches, -1: not connected. */
static void breadth_first(const survey_t *survey, int32_t from, int32_t *distance, int32_t *queue)
{
    int32_t tail = 0;
    memset(distance, 0xFF, (size_t)survey->switches * sizeof *distance);
    distance[from] = 0;
    queue[tail++] = from;
    for (int32_t head = 0; head < tail; head++)
        for (int32_t c = survey->first[queue[head]]; c < survey->first[queue[head] + 1]; c++)
            if (distance[survey->dst[c]] < 0) {
                distance[survey->dst[c]] = distance[queue[head]] + 1;
                queue[tail++] = survey->dst[c];
            }
}

/* Compute the mean distance of every switch to the destinations of one layer. */
static void survey_layer(void *context, int32_t layer)
{
    survey_t *survey = context;
    size_t switches = (size_t)survey->switches;
    const int64_t *weight = survey->weight + (size_t)layer * switches;
    int32_t *distance = malloc((switches + 1) * sizeof *distance), *queue = malloc((switches + 1) * sizeof *queue);
    int64_t *sum = calloc(switches + 1, sizeof *sum), total = 0;
    if (!distance || !queue || !sum)
        __atomic_store_n(&survey->failed, 1, __ATOMIC_RELAXED);
    for (int32_t root = 0; root < survey->switches && distance && queue && sum; root++) {
        if (weight[root] == 0)
            continue;
        total += weight[root];
        breadth_first(survey, root, distance, queue);
        for (size_t u = 0; u < switches; u++)
            sum[u] += weight[root] * (distance[u] < 0 ? survey->switches : distance[u]);
    }
    for (size_t u = 0; u < switches && sum; u++)
        survey->mean[(size_t)layer * switches + u] = total ? (double)sum[u] / (double)total : 0.0;
    free(distance);
    free(queue);
    free(sum);
}

/* Compute mean distances.
 *
 * weight: int64 [layers, S], weight of each switch as a destination of each layer.
 * mean: double [layers, S], output: weighted mean of the hops from each switch to the destinations of each layer.
 *
 * A switch in another connected part counts as S hops away.  Cost: O(C) for each layer and each switch with a weight.
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_mean_distance(int32_t switches, const int32_t *first, const int32_t *dst, int32_t layers,
                            const int64_t *weight, int32_t threads, double *mean)
{
    survey_t survey = {switches, first, dst, weight, mean, 0};
    return ibn_core_parallel(threads, layers, survey_layer, &survey) || survey.failed;
}
