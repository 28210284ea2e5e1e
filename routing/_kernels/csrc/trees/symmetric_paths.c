/* Compute balanced shortest paths between switches, such that each reply path is the path of the request in reverse.
 *
 * Pairs of switches are routed in the order of their distance, nearest pairs first.  The path of a pair consists of a
 * first hop and the path of a nearer pair.  So the next hop of a switch depends on the destination alone, both for
 * requests and for replies.
 *
 * A first hop is possible if the reply path can be the reverse of the path.  Of the possible first hops, the first hop
 * with the cheapest path is taken: high loads on a path make the path expensive.  The flow of the pair is added at
 * once.  If no first hop is possible, each direction gets its path separately.
 *
 * Later passes recompute the paths of some pairs.  A path stays if it is a section of another pair's path. */
#include "trees/symmetric_paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"

#define NO_CHANNEL 255
#define UNREACHED (UINT16_MAX - 1)
/* Number of routed pairs of switches after which the peak utilisation is measured again. */
#define PEAK_EVERY 512

/* Number of times that the utilisation of a channel is squared to get its cost, for each pass.  Few squarings spread
 * the flow.  With many squarings, only channels close to the peak utilisation are costly. */
static const int32_t SCHEDULE[] = {2, 3, 4, 5};
#define SCHEDULED (int32_t)(sizeof SCHEDULE / sizeof *SCHEDULE)

typedef struct {
    int32_t switches;
    /* the fabric: the channels of switch s are first[s] to first[s + 1] - 1.
     * dst: [C], switch where each channel ends.
     * reverse: [C], channel of the same link in the opposite direction. */
    const int32_t *first, *dst, *reverse;
    const double *inverse_capacity,
        /* inverse_capacity: [C], inverse capacity of each channel.
         * sources: [S], weight of each switch; the flow between two switches is the product of their weights. */
        *sources;
    uint8_t *next;      /* [S, S] by destination and switch: index of the next channel among the switch's channels */
    double *load;       /* [C] flow on each channel */
    uint16_t *distance; /* [S, S] hops between two switches, UNREACHED: there is no path */
    /* [S, S] for switches a < b: number of longer paths that end with the path between a and b, after one hop to a or
     * b */
    int32_t *relied;
    int32_t *pair;       /* [pairs] connected pairs of switches a < b, each as a * S + b, sorted by distance */
    int64_t pairs;       /* number of connected pairs of switches */
    int32_t *queue;      /* [S] scratch: switches to be visited in a search */
    double inverse_peak; /* 1 / peak utilisation, as it was measured last */
    int32_t squarings; /* number of times that the utilisation is squared to get the cost of a channel, see SCHEDULE */
} job_t;

/* Return the channel by which switch u sends towards switch `to`. */
static int32_t hop(const job_t *job, int32_t to, int32_t u)
{
    return job->first[u] + job->next[(int64_t)to * job->switches + u];
}

/* Compute the hops from all switches to one root. */
static void survey(job_t *job, int32_t root)
{
    uint16_t *distance = job->distance + (int64_t)root * job->switches;
    int32_t tail = 0;
    for (int32_t u = 0; u < job->switches; u++)
        distance[u] = UNREACHED;
    distance[root] = 0;
    job->queue[tail++] = root;
    for (int32_t head = 0; head < tail; head++) {
        int32_t u = job->queue[head];
        for (int32_t c = job->first[u]; c < job->first[u + 1]; c++)
            if (distance[job->dst[c]] == UNREACHED) {
                distance[job->dst[c]] = (uint16_t)(distance[u] + 1);
                job->queue[tail++] = job->dst[c];
            }
    }
}

/* List all connected pairs of switches a < b, sorted by distance. starts: int64 [S + 2], output: index of the first
 * pair at each distance. */
static void sort_pairs(job_t *job, int64_t *starts)
{
    int32_t switches = job->switches;
    memset(starts, 0, ((size_t)switches + 2) * sizeof *starts);
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = a + 1; b < switches; b++)
            if (job->distance[(int64_t)a * switches + b] < UNREACHED)
                starts[job->distance[(int64_t)a * switches + b] + 1]++;
    for (int32_t i = 1; i <= switches + 1; i++)
        starts[i] += starts[i - 1];
    for (int32_t a = 0; a < switches; a++)
        for (int32_t b = a + 1; b < switches; b++) {
            uint16_t far = job->distance[(int64_t)a * switches + b];
            if (far < UNREACHED)
                job->pair[starts[far]++] = a * switches + b;
        }
    job->pairs = starts[switches];
    memmove(starts + 1, starts, ((size_t)switches + 1) * sizeof *starts);
    starts[0] = 0;
}

/* Return the cost of channel c, by which paths are compared.  The cost is close to 0 unless the utilisation of the
 * channel is close to the peak. */
static double weigh(const job_t *job, int32_t c)
{
    double x = job->load[c] * job->inverse_capacity[c] * job->inverse_peak;
    for (int32_t i = 0; i < job->squarings; i++)
        x *= x;
    return x;
}

/* Return the cost of the path to switch `to` that begins with channel c.
 *
 * If `back` is not negative, `back` is the switch where the path begins, and the cost of the reply path to `back` is
 * added.  The reply path must be the reverse of the path.  This requires that each switch between both ends already
 * sends towards `back` on the reverse path.  Otherwise, the result is INFINITY. */
static double cost_of(const job_t *job, int32_t c, int32_t to, int32_t back)
{
    double cost = weigh(job, c) + (back >= 0 ? weigh(job, job->reverse[c]) : 0.0);
    while (job->dst[c] != to) {
        int32_t u = job->dst[c];
        if (back >= 0 && hop(job, back, u) != job->reverse[c])
            return INFINITY;
        c = hop(job, to, u);
        cost += weigh(job, c) + (back >= 0 ? weigh(job, job->reverse[c]) : 0.0);
    }
    return cost;
}

/* Return the first channel of the cheapest shortest path from switch `from` to switch `to`, or -1 if there is no such
 * path.  With `mirrored`, only paths are considered whose reverse can be the reply path. */
static int32_t cheapest(const job_t *job, int32_t from, int32_t to, int mirrored)
{
    const uint16_t *distance = job->distance + (int64_t)to * job->switches;
    int32_t best = -1;
    double least = INFINITY;
    for (int32_t c = job->first[from]; c < job->first[from + 1]; c++) {
        if (distance[job->dst[c]] + 1 != distance[from])
            continue;
        double cost = cost_of(job, c, to, mirrored ? from : -1);
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Add `more` to the counter of a pair of switches in job->relied.  The counter is the number of longer
 * paths that consist of one hop to a switch of the pair, and then of the pair's path. */
static void rely(job_t *job, int32_t a, int32_t b, int32_t more)
{
    job->relied[(int64_t)(a < b ? a : b) * job->switches + (a < b ? b : a)] += more;
}

/* Add (sign 1) or remove (sign -1) the flow on the path from switch `from` to switch `to`. */
static void move_flow(job_t *job, int32_t from, int32_t to, int32_t sign)
{
    double flow = sign * job->sources[from] * job->sources[to];
    rely(job, job->dst[hop(job, to, from)], to, sign);
    for (int32_t u = from; u != to; u = job->dst[hop(job, to, u)])
        job->load[hop(job, to, u)] += flow;
}

/* Set the next hop of switch `from` towards switch `to`. */
static void take(job_t *job, int32_t from, int32_t to, int32_t c)
{
    job->next[(int64_t)to * job->switches + from] = (uint8_t)(c - job->first[from]);
}

/* Compute both paths between two switches, as reverses of each other if possible, and add their flow. */
static void route_pair(job_t *job, int32_t a, int32_t b)
{
    int32_t out = cheapest(job, a, b, 1);
    if (out >= 0) {
        int32_t last = out;
        while (job->dst[last] != b)
            last = hop(job, b, job->dst[last]);
        take(job, a, b, out);
        take(job, b, a, job->reverse[last]);
    } else {
        take(job, a, b, cheapest(job, a, b, 0));
        take(job, b, a, cheapest(job, b, a, 0));
    }
    move_flow(job, a, b, 1);
    move_flow(job, b, a, 1);
}

/* Return the highest utilisation of all channels. */
static double peak_of(const job_t *job)
{
    double peak = 0.0;
    for (int32_t c = 0; c < job->first[job->switches]; c++)
        peak = fmax(peak, job->load[c] * job->inverse_capacity[c]);
    return peak;
}

/* Compute the paths of all pairs of switches in the first pass.  In later passes, recompute only the pairs whose path
 * is not a section of another pair's path. */
static void run_pass(job_t *job, const int64_t *starts, int32_t pass, uint64_t seed)
{
    uint64_t random = seed ^ ((uint64_t)(pass + 1) * 0xD1342543DE82EF95u);
    int32_t switches = job->switches;
    job->squarings = SCHEDULE[pass < SCHEDULED ? pass : SCHEDULED - 1];
    for (int32_t far = 1; far < switches; far++)
        ibn_core_shuffle(job->pair + starts[far], (int32_t)(starts[far + 1] - starts[far]), &random);
    for (int64_t i = 0; i < job->pairs; i++) {
        int32_t a = job->pair[i] / switches, b = job->pair[i] % switches;
        if (i % PEAK_EVERY == 0 || (i & (i - 1)) == 0) {
            double peak = peak_of(job);
            job->inverse_peak = peak > 0.0 ? 1.0 / peak : 0.0;
        }
        if (pass > 0) {
            if (job->relied[(int64_t)a * switches + b] > 0)
                continue;
            move_flow(job, a, b, -1);
            move_flow(job, b, a, -1);
        }
        route_pair(job, a, b);
    }
}

/* Run all passes, and restore the result of the best pass.  Returns nonzero if memory is exhausted. */
static int run(job_t *job, int64_t *starts, uint8_t *best, double *load, double *worst, int32_t passes, uint64_t seed)
{
    size_t all = (size_t)job->switches * (size_t)job->switches;
    for (int32_t root = 0; root < job->switches; root++)
        survey(job, root);
    sort_pairs(job, starts);
    memset(job->next, NO_CHANNEL, all);
    memset(best, NO_CHANNEL, all);
    for (int32_t pass = 0; pass <= passes; pass++) {
        run_pass(job, starts, pass, seed);
        double peak = peak_of(job);
        if (pass > 0 && peak >= *worst)
            continue;
        *worst = peak;
        memcpy(best, job->next, all);
        memcpy(load, job->load, (size_t)job->first[job->switches] * sizeof *load);
    }
    return 0;
}

/* Compute paths between all switches.
 *
 * next: uint8 [S, S], output: by destination and switch, the index of the next channel among the switch's channels
 * (255: none).
 * load: double [C], output: flow on each channel.
 * worst: output: highest utilisation of a channel.
 * reverse: int32 [C], channel of the same link in the opposite direction; no two channels may be parallel.
 *
 * The result comes from the best pass.  Returns 0, or 1 if memory is exhausted. */
int ibn_trees_symmetric_paths(int32_t switches, const int32_t *first, const int32_t *dst, const int32_t *reverse,
                              const double *inverse_capacity, const double *sources, int32_t passes, uint64_t seed,
                              uint8_t *next, double *load, double *worst)
{
    size_t room = (size_t)switches + 3, all = (size_t)switches * (size_t)switches + 1;
    job_t job = {.switches = switches,
                 .first = first,
                 .dst = dst,
                 .reverse = reverse,
                 .inverse_capacity = inverse_capacity,
                 .sources = sources};
    int64_t *starts = malloc(room * sizeof *starts);
    job.next = malloc(all);
    job.load = calloc((size_t)first[switches] + 1, sizeof *job.load);
    job.distance = malloc(all * sizeof *job.distance);
    job.relied = calloc(all, sizeof *job.relied);
    job.pair = malloc((all / 2 + 1) * sizeof *job.pair);
    job.queue = malloc(room * sizeof *job.queue);
    int failed = !starts || !job.next || !job.load || !job.distance || !job.relied || !job.pair || !job.queue;
    failed = failed || run(&job, starts, next, load, worst, passes, seed);
    free(starts);
    free(job.next);
    free(job.load);
    free(job.distance);
    free(job.relied);
    free(job.pair);
    free(job.queue);
    return failed;
}
