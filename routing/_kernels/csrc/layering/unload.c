/* Unload the channels with the peak utilisation.  To unload a channel, a switch gets another next hop towards a target.
 * This is done only if all changed paths still fit into layers: the path of this switch, and the paths of all switches
 * upstream. */

#include "layering/internal/layering_job.h"

/* List in `queue` switch u, followed by all switches whose path to a target leads through u.  Returns the number of
 * listed switches.  `queue` has room for S switches. */
static int32_t list_upstream(const layering_job *job, int32_t target, int32_t u, int32_t *queue)
{
    const uint8_t *next = job->next + (int64_t)target * job->net.switches;
    int32_t tail = 0;
    queue[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t v = queue[head];
        for (int32_t i = job->net.into_first[v]; i < job->net.into_first[v + 1]; i++) {
            int32_t c = job->net.into[i], w = job->net.src[c];
            if (next[w] != NO_CHANNEL && job->net.first[w] + next[w] == c)
                queue[tail++] = w;
        }
    }
    return tail;
}

/* Place the counted paths from the first `count` switches in `queue` to one target, each into a layer.  Returns whether
 * every one of these paths fits into a layer. */
static int all_fit(layering_job *job, int32_t target, const int32_t *queue, int32_t count)
{
    int32_t root = job->paths->root[target], vls = job->graph.vls;
    double flow;
    vls = vls > job->paths->have ? vls : job->paths->have;
    for (int32_t i = count - 1; i >= 0 && !job->failed; i--) {
        if (!ibn_layering_is_counted(job->paths, target, queue[i]))
            continue;
        job->steps = 0;
        if (job->paths->mutual)
            ibn_layering_path_between(job, queue[i], root, &flow);
        else if (ibn_layering_collect_edges(job, target, ibn_layering_next_channel(job, target, queue[i])))
            return 0;
        if (ibn_layering_place(job, vls, 0, ibn_layering_first_layer_between(job, queue[i], root)) < 0)
            return 0;
    }
    return !job->failed;
}

/* Give switch u another next hop towards a target.  The new path must be as short as the old path, and the utilisation
 * of its channels must stay below `peak`.  All counted paths through the switch to this target must still fit into a
 * layer.  Returns whether the next hop was moved. */
static int unload_at(layering_job *job, int32_t target, int32_t u, double peak, int32_t *queue)
{
    const uint16_t *hops = job->hops + (int64_t)target * job->net.switches;
    uint8_t *next = job->next + (int64_t)target * job->net.switches + u, kept = *next;
    int32_t count = list_upstream(job, target, u, queue);
    double flow = 0.0;
    for (int32_t i = 0; i < count; i++)
        flow += job->paths->sources[queue[i]] * job->paths->share[target];
    if (flow == 0.0)
        return 0;
    ibn_layering_add_flow(job, target, ibn_layering_next_channel(job, target, u), -flow);
    for (int32_t c = job->net.first[u]; c < job->net.first[u + 1]; c++) {
        if (c - job->net.first[u] == kept || hops[job->net.dst[c]] + 1 != hops[u]
            || ibn_layering_peak_on_path(job, target, c, flow) >= peak * (1.0 - 1e-9))
            continue;
        *next = (uint8_t)(c - job->net.first[u]);
        if (all_fit(job, target, queue, count)) {
            ibn_layering_add_flow(job, target, c, flow);
            job->result->unloaded++;
            return 1;
        }
        *next = kept;
    }
    ibn_layering_add_flow(job, target, ibn_layering_next_channel(job, target, u), flow);
    return 0;
}

/* Take flow to a target off the channel by which switch u sends to this target: give u, or a switch upstream of u,
 * another next hop.  The utilisation of each channel on the new path must stay below `peak`.  `queue` and `behind` are
 * scratch.  Returns whether a next hop was moved. */
static int relieve(layering_job *job, int32_t target, int32_t u, double peak, int32_t *queue, int32_t *behind)
{
    int32_t count = list_upstream(job, target, u, behind);
    for (int32_t i = 0; i < count; i++)
        if (unload_at(job, target, behind[i], peak, queue))
            return 1;
    return 0;
}

/* Unload the channels with the peak utilisation, in at most `rounds` rounds.  The function ends early if one of these
 * channels cannot be unloaded. */
void ibn_layering_unload(layering_job *job, int32_t rounds, int32_t *queue, int32_t *behind)
{
    for (int32_t round = 0; round < rounds; round++) {
        double peak = 0.0;
        for (int32_t c = 0; c < job->net.channels; c++)
            peak = fmax(peak, job->load[c] * job->paths->inverse_capacity[c]);
        for (int32_t c = 0; c < job->net.channels && !job->failed; c++) {
            int32_t u = job->net.src[c], k = c - job->net.first[u], moved = 0;
            if (job->load[c] * job->paths->inverse_capacity[c] < peak * (1.0 - 1e-9))
                continue;
            for (int32_t t = 0; t < job->paths->targets && !moved; t++)
                moved = job->next[(int64_t)t * job->net.switches + u] == k && relieve(job, t, u, peak, queue, behind);
            if (!moved)
                return; /* If no move takes flow off a channel with the peak utilisation, the peak cannot be lowered. */
        }
    }
}
