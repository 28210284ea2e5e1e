/* Layering with pairs of switches: all paths between two switches, in both directions, get one layer. */
#include <stdlib.h>
#include <string.h>

#include "layering/internal/layering_job.h"

/* List in job->step the CDG edges of all paths between switches a and b, and compute the flow on these paths.  Returns
 * the number of hops of the longest of these paths, or 0 if a path is missing. */
int32_t ibn_layering_path_between(layering_job *job, int32_t a, int32_t b, double *flow)
{
    const ibn_path_set *paths = job->paths;
    int32_t longest = 0;
    job->steps = 0;
    *flow = 0.0;
    for (int32_t dependency = 0; dependency < 2; dependency++) {
        int32_t from = dependency ? b : a, to = dependency ? a : b;
        for (int32_t i = paths->at_first[to]; i < paths->at_first[to + 1]; i++) {
            int32_t t = paths->at[i];
            int32_t hops = job->hops[(int64_t)t * job->net.switches + from];
            if (hops == NO_PATH || ibn_layering_collect_edges(job, t, ibn_layering_next_channel(job, t, from)))
                return 0;
            longest = hops > longest ? hops : longest;
            *flow += paths->sources[from] * paths->share[t];
        }
    }
    return longest;
}

/* Return whether switch `from` forwards packets of another switch to a target at switch `to`. */
static int is_passed(const layering_job *job, int32_t from, int32_t to)
{
    const ibn_path_set *paths = job->paths;
    for (int32_t i = paths->at_first[to]; i < paths->at_first[to + 1]; i++) {
        const uint8_t *next = job->next + (int64_t)paths->at[i] * job->net.switches;
        for (int32_t j = job->net.into_first[from]; j < job->net.into_first[from + 1]; j++) {
            int32_t c = job->net.into[j], w = job->net.src[c];
            if (next[w] != NO_CHANNEL && job->net.first[w] + next[w] == c)
                return 1;
        }
    }
    return 0;
}

/* Add (sign 1) or remove (sign -1) the flow of all paths from switch `from` to the targets at switch `to`. */
static void move_between(layering_job *job, int32_t from, int32_t to, double sign)
{
    const ibn_path_set *paths = job->paths;
    for (int32_t i = paths->at_first[to]; i < paths->at_first[to + 1]; i++) {
        int32_t t = paths->at[i];
        ibn_layering_add_flow(job, t, ibn_layering_next_channel(job, t, from),
                              sign * paths->sources[from] * paths->share[t]);
    }
}

/* Distribute the targets at switch `to` over channel c of switch `from` and the channels parallel to c.  The targets
 * choose one after the other.  Each target takes the channel that has the lowest utilisation at this time. */
static void send_over(layering_job *job, int32_t from, int32_t to, int32_t c)
{
    const ibn_path_set *paths = job->paths;
    double extra[256] = {0.0};
    for (int32_t i = paths->at_first[to]; i < paths->at_first[to + 1]; i++) {
        int32_t t = paths->at[i], best = -1;
        double least = INFINITY;
        for (int32_t e = job->net.first[from]; e < job->net.first[from + 1]; e++) {
            double full = (job->load[e] + extra[e - job->net.first[from]]) * paths->inverse_capacity[e];
            if (job->net.dst[e] == job->net.dst[c] && full < least) {
                least = full;
                best = e - job->net.first[from];
            }
        }
        extra[best] += paths->sources[from] * paths->share[t];
        job->next[(int64_t)t * job->net.switches + from] = (uint8_t)best;
    }
}

/* List in `found` the first channels of all shortest paths from switch `from` to switch `to`, sorted by the highest
 * utilisation on their paths.  Of parallel channels only one is listed.  Returns the number of listed channels. */
static int32_t first_hops(const layering_job *job, int32_t from, int32_t to, first_hop *found)
{
    int32_t count = 0, t = job->paths->at[job->paths->at_first[to]];
    const uint16_t *hops = job->hops + (int64_t)t * job->net.switches;
    for (int32_t c = job->net.first[from]; c < job->net.first[from + 1]; c++) {
        int known = 0;
        for (int32_t i = 0; i < count; i++)
            known |= job->net.dst[found[i].channel] == job->net.dst[c];
        if (!known && hops[job->net.dst[c]] + 1 == hops[from])
            found[count++] = (first_hop){.worst = ibn_layering_peak_on_path(job, t, c, 0.0), .channel = c};
    }
    qsort(found, (size_t)count, sizeof *found, ibn_layering_by_peak);
    return count;
}

/* Save the next hops of switch `from` towards the targets at switch `to` in `kept`.  With `back`, restore the saved
 * next hops instead. */
static void keep(layering_job *job, int32_t from, int32_t to, uint8_t *kept, int back)
{
    for (int32_t i = job->paths->at_first[to]; i < job->paths->at_first[to + 1]; i++) {
        uint8_t *next = job->next + (int64_t)job->paths->at[i] * job->net.switches + from;
        uint8_t *slot = kept + (i - job->paths->at_first[to]);
        *(back ? next : slot) = *(back ? slot : next);
    }
}

/* Give the paths between switches a and b other first hops, such that all these paths fit into one of the first `vls`
 * layers.  The paths do not become longer.  Nothing changes if the path of another switch leads through a to b, or
 * through b to a.  Returns the layer, or -1 if no layer was found or nothing may change. */
static int32_t place_pair_elsewhere(layering_job *job, int32_t a, int32_t b, int32_t vls)
{
    const int32_t *at_first = job->paths->at_first;
    int32_t at_a = at_first[a + 1] - at_first[a], at_b = at_first[b + 1] - at_first[b], vl = -1;
    if (at_a == 0 || at_b == 0 || is_passed(job, a, b) || is_passed(job, b, a))
        return -1;
    uint8_t *kept = malloc((size_t)(at_a + at_b));
    if (!kept) {
        job->failed = 1;
        return -1;
    }
    keep(job, a, b, kept, 0);
    keep(job, b, a, kept + at_b, 0);
    move_between(job, a, b, -1.0);
    move_between(job, b, a, -1.0);
    first_hop out[256], back[256];
    int32_t outs = first_hops(job, a, b, out), backs = first_hops(job, b, a, back);
    for (int32_t i = 0; i < outs * backs && vl < 0 && !job->failed; i++) {
        double flow;
        send_over(job, a, b, out[i / backs].channel);
        send_over(job, b, a, back[i % backs].channel);
        ibn_layering_path_between(job, a, b, &flow);
        vl = ibn_layering_place(job, vls, 0, ibn_layering_first_layer_between(job, a, b));
    }
    if (vl < 0) {
        keep(job, a, b, kept, 1);
        keep(job, b, a, kept + at_b, 1);
    }
    move_between(job, a, b, 1.0);
    move_between(job, b, a, 1.0);
    job->result->rechosen += vl >= 0;
    free(kept);
    return vl;
}

/* Fill job->length: for every two switches a < b, the hops of the longest path between them in either direction. */
void ibn_layering_measure_lengths(layering_job *job)
{
    int32_t switches = job->net.switches;
    double flow;
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = a + 1; b < switches && !job->failed; b++)
            job->length[(int64_t)a * switches + b] = (uint16_t)ibn_layering_path_between(job, a, b, &flow);
}

/* Place all pairs of switches without a layer into the first `vls` layers.  The pairs with the longest paths are placed
 * first.  If `avoid` is set, no layer gets a CDG edge that paths->avoid forbids for this layer.  With `counted`, only
 * pairs with counted paths are placed.  Returns the number of pairs that fit into no layer. */
int64_t ibn_layering_place_pairs(layering_job *job, int32_t vls, int avoid, int counted)
{
    int32_t switches = job->net.switches, longest = 0;
    int64_t left = 0;
    double flow;
    for (int64_t i = 0; i < (int64_t)switches * switches; i++)
        longest = job->length[i] > longest ? job->length[i] : longest;
    for (int32_t length = longest; length > 0 && !(left && job->hasty); length--)
        for (int32_t a = 0; a < switches; a++)
            for (int32_t b = a + 1; b < switches && !ibn_layering_is_over(job); b++) {
                uint8_t *layer = job->layer + (int64_t)a * switches + b;
                if (job->length[(int64_t)a * switches + b] != length || *layer != NO_LAYER)
                    continue;
                if (counted && !job->paths->counted[a] && !job->paths->counted[b])
                    continue;
                ibn_layering_path_between(job, a, b, &flow);
                int32_t vl = ibn_layering_place(job, vls, avoid, ibn_layering_first_layer_between(job, a, b));
                if (vl < 0 && job->paths->rechoose && !avoid)
                    vl = place_pair_elsewhere(job, a, b, vls);
                left += vl < 0;
                if (vl >= 0)
                    *layer = (uint8_t)vl;
            }
    return left + ibn_layering_is_over(job);
}
