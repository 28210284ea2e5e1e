#include "trees/load.h"

#include "core/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, MAX_SLICES = 64 };

static int32_t channel_of(const struct ibn_routes *routes, int32_t at, int32_t lid)
{
    const uint8_t port = routes->lft[(size_t)at * routes->lids + lid];
    return routes->at_port[(size_t)at * 256 + port];
}

/* Return whether packets to a LID are delivered once they have reached the LID's switch.  The LFT entry of this switch
 * must be the port to the LID's owner. */
static int delivers(const struct ibn_routes *routes, int32_t lid)
{
    const int32_t at = routes->lid_switch[lid];
    return at >= 0 && routes->lft[(size_t)at * routes->lids + lid] == routes->lid_port[lid];
}

/* A job consists of items, such as traffic patterns.  The items are divided into slices, which threads process.  Each
 * slice has its own scratch memory. */

struct slices {
    void (*work)(void *job, int32_t from, int32_t to, void *own);
    void *job;
    int32_t items, slices;
    char *memory; /* scratch memory of all slices, one slice after the other */
    size_t bytes; /* size in bytes of the scratch memory of one slice */
};

static void run_slice(void *context, int32_t slice)
{
    const struct slices *all = context;
    const int32_t from = (int32_t)((int64_t)all->items * slice / all->slices);
    const int32_t to = (int32_t)((int64_t)all->items * (slice + 1) / all->slices);
    all->work(all->job, from, to, all->memory + all->bytes * (size_t)slice);
}

static int32_t slices_of(int32_t threads, int32_t items)
{
    const int32_t most = items < MAX_SLICES ? items : MAX_SLICES;
    const int32_t wanted = threads < most ? threads : most;
    return wanted < 1 ? 1 : wanted;
}

/* Round up the size of a slice's scratch memory, such that no two slices write to one cache line. */
static size_t padded(size_t bytes)
{
    return (bytes + 127) & ~(size_t)63;
}

/* The functions from here on compute loads of all-to-all traffic. */

struct all_to_all {
    const struct ibn_routes *routes;
    const int64_t *lid_weight; /* [lids] flow that every source sends to each LID */
    const int64_t *sources;    /* [switches] number of sources (end ports) at each switch */
    int want_hops;
};

/* Scratch memory of one slice: sums over the LIDs of the slice, and arrays for a block of LIDs and for the tree of one
 * LID. */
struct tree_memory {
    /* load: [channels], flow on each channel, summed over the LIDs of the slice.
     * hop_count: [switches], element n is the total flow on routes with n channels, summed over the LIDs of the slice.
     * flow: [switches], flow through each switch to one LID. */
    int64_t *load, *hop_count, *flow;
    int32_t *out; /* [BLOCK][switches] channel by which each switch sends towards each LID of the block, -1: none */
    /* order: [switches + 1] switches, each before its next hop.
     * waiting: [switches] number of upstream neighbours that are not in `order` yet.
     * hops: [switches] hops to the switch of the LID, -1: no path. */
    int32_t *order, *waiting, *hops;
};

static size_t tree_bytes(const struct ibn_routes *routes)
{
    const size_t s = (size_t)routes->switches, c = (size_t)routes->channels;
    return padded(8 * (c + 2 * s) + 4 * ((size_t)BLOCK * s + 3 * s + 1));
}

static struct tree_memory tree_layout(const struct ibn_routes *routes, char *memory)
{
    const size_t s = (size_t)routes->switches, c = (size_t)routes->channels;
    struct tree_memory own;
    own.load = (int64_t *)memory;
    own.hop_count = own.load + c;
    own.flow = own.hop_count + s;
    own.out = (int32_t *)(own.flow + s);
    own.order = own.out + (size_t)BLOCK * s;
    own.waiting = own.order + s + 1;
    own.hops = own.waiting + s;
    return own;
}

/* Add the flows from all switches to one LID to the channels of their routes.  `weight` is the flow from each source to
 * the LID.  Switches are visited after all switches upstream of them (Kahn's algorithm).  Fill `order` with the visited
 * switches, and return how many there are.  Switches on a forwarding loop are not visited. */
static int32_t flow_down(const struct all_to_all *job, int64_t weight, const int32_t *out,
                         const struct tree_memory *own)
{
    const int32_t switches = job->routes->switches, *dst = job->routes->channel_dst;
    int32_t filled = 0;
    memset(own->waiting, 0, sizeof(int32_t) * (size_t)switches);
    for (int32_t s = 0; s < switches; s++) {
        own->flow[s] = weight * job->sources[s];
        if (out[s] >= 0)
            own->waiting[dst[out[s]]]++;
    }
    /* In each step, the two loops below write a switch to order[filled].  They increase `filled` only if all switches
     * upstream of this switch have been visited; otherwise the next step overwrites the switch.  So the loops need no
     * branch, which the processor would often predict wrongly. */
    for (int32_t s = 0; s < switches; s++) {
        own->order[filled] = s;
        filled += own->waiting[s] == 0;
    }
    for (int32_t i = 0; i < filled; i++) {
        const int32_t channel = out[own->order[i]];
        if (channel < 0)
            continue;
        const int64_t flow = own->flow[own->order[i]];
        const int32_t next = dst[channel];
        own->load[channel] += flow;
        own->flow[next] += flow;
        own->order[filled] = next;
        filled += --own->waiting[next] == 0;
    }
    return filled;
}

/* Fill own->hops with the number of hops from each switch to the switch of a LID.  A switch gets -1 if its route does
 * not end at the switch of the LID.  For each number n, add to own->hop_count[n] the flow to the LID on routes with n
 * channels.  `filled` is the number of switches in own->order, the result of flow_down. */
static void count_hops(const struct all_to_all *job, int32_t lid, const int32_t *out, int32_t filled,
                       const struct tree_memory *own)
{
    const int32_t target = job->routes->lid_switch[lid], *dst = job->routes->channel_dst;
    const int64_t weight = job->lid_weight[lid];
    memset(own->hops, 0xff, sizeof(int32_t) * (size_t)job->routes->switches);
    for (int32_t i = filled - 1; i >= 0; i--) {
        const int32_t s = own->order[i];
        if (s == target)
            own->hops[s] = 0;
        else if (out[s] >= 0 && own->hops[dst[out[s]]] >= 0)
            own->hops[s] = own->hops[dst[out[s]]] + 1;
        if (own->hops[s] >= 0)
            own->hop_count[own->hops[s]] += weight * (job->sources[s] - (s == target));
    }
}

/* Correct own->load if some switches have no path to a LID: subtract all flows that flow_down has added, and add only
 * the flows that arrive.  The caller must have called count_hops for this LID.  `filled` is the number of switches in
 * own->order, the result of flow_down. */
static void write_arrivals(const struct all_to_all *job, int64_t weight, const int32_t *out, int32_t filled,
                           const struct tree_memory *own)
{
    const int32_t *dst = job->routes->channel_dst;
    for (int32_t i = 0; i < filled; i++)
        if (out[own->order[i]] >= 0)
            own->load[out[own->order[i]]] -= own->flow[own->order[i]];
    for (int32_t s = 0; s < job->routes->switches; s++)
        own->flow[s] = weight * job->sources[s];
    for (int32_t i = 0; i < filled; i++) {
        const int32_t s = own->order[i];
        if (own->hops[s] > 0) {
            own->load[out[s]] += own->flow[s];
            own->flow[dst[out[s]]] += own->flow[s];
        }
    }
}

/* Add the channel loads and the hops of all traffic to one LID.  `ends` is the number of switches that send packets for
 * the LID to no other switch.  If all paths are complete, only the switch of the LID is such a switch. */
static void load_tree(const struct all_to_all *job, int32_t lid, const int32_t *out, int32_t ends,
                      const struct tree_memory *own)
{
    const int64_t weight = job->lid_weight[lid];
    const int32_t filled = flow_down(job, weight, out, own);
    const int whole = filled == job->routes->switches && ends == 1;
    if (!whole || job->want_hops)
        count_hops(job, lid, out, filled, own);
    if (!whole)
        write_arrivals(job, weight, out, filled, own);
}

static void load_range(void *argument, int32_t from, int32_t to, void *memory)
{
    const struct all_to_all *job = argument;
    const struct ibn_routes *routes = job->routes;
    const struct tree_memory own = tree_layout(routes, memory);
    const size_t switches = (size_t)routes->switches;
    for (int32_t block = from; block < to; block++) {
        const int32_t first = block * BLOCK;
        const int32_t last = first + BLOCK < routes->lids ? first + BLOCK : routes->lids;
        /* The LFT is stored by switch, but is needed by LID.  So the entries are transposed for one block of LIDs after
         * the other. */
        int32_t ends[BLOCK] = {0}, wanted[BLOCK], count = 0;
        for (int32_t lid = first; lid < last; lid++)
            if (job->lid_weight[lid] > 0 && delivers(routes, lid))
                wanted[count++] = lid;
        for (int32_t s = 0; count > 0 && s < routes->switches; s++)
            for (int32_t i = 0; i < count; i++) {
                const int32_t channel = channel_of(routes, s, wanted[i]);
                own.out[(size_t)i * switches + (size_t)s] = channel;
                ends[i] += channel < 0;
            }
        for (int32_t i = 0; i < count; i++)
            load_tree(job, wanted[i], own.out + (size_t)i * switches, ends[i], &own);
    }
}

int ibn_trees_load_all_to_all(const struct ibn_routes *routes, const int64_t *lid_weight, const int64_t *sources,
                              int32_t threads, int64_t *load, int64_t *hop_count)
{
    const int32_t blocks = (routes->lids + BLOCK - 1) / BLOCK;
    struct all_to_all job = {routes, lid_weight, sources, hop_count != NULL};
    const size_t bytes = tree_bytes(routes);
    const int32_t slices = slices_of(threads, blocks);
    char *memory = calloc((size_t)slices, bytes);
    if (memory == NULL)
        return 1;
    struct slices all = {load_range, &job, blocks, slices, memory, bytes};
    const int code = ibn_core_parallel(threads, slices, run_slice, &all);
    for (int32_t t = 0; code == 0 && t < slices; t++) {
        const struct tree_memory own = tree_layout(routes, memory + bytes * (size_t)t);
        for (int32_t c = 0; c < routes->channels; c++)
            load[c] += own.load[c];
        for (int32_t h = 0; hop_count != NULL && h < routes->switches; h++)
            hop_count[h] += own.hop_count[h];
    }
    free(memory);
    return code;
}

/* The functions from here on compute the rate of each flow of a traffic pattern, as a share of the reference rate.  All
 * flows that use a channel get equal parts of its capacity. */

struct flow_shares {
    const struct ibn_routes *routes;
    const double *capacity;
    const int32_t *endport_switch;
    const double *endport_rate;
    const int32_t *lid_endport;
    int32_t flows;
    const int32_t *source, *target_lid;
    double *mean, *least;
};

/* Write the channels of the route from a switch to a LID to `path`.  Returns the number of channels, or -1 if the route
 * does not end at the LID's port. */
static int32_t walk(const struct ibn_routes *routes, int32_t at, int32_t lid, int32_t *path)
{
    int32_t length = 0;
    if (!delivers(routes, lid))
        return -1;
    while (at != routes->lid_switch[lid]) {
        const int32_t channel = channel_of(routes, at, lid);
        if (channel < 0 || length == routes->switches)
            return -1;
        path[length++] = channel;
        at = routes->channel_dst[channel];
    }
    return length;
}

/* Return the rate of one flow, as a share of the reference rate.  The rate is the lowest of these values: the rates of
 * the flow's two end ports, and, for each channel on the flow's route, the capacity divided by the number of flows on
 * the channel.  A flow that does not arrive has rate 0.
 *
 * count: [channels], number of flows on each channel.
 * path: [switches], scratch. */
static double share_of(const struct flow_shares *job, int32_t source, int32_t lid, const int32_t *count, int32_t *path)
{
    const int32_t length = walk(job->routes, job->endport_switch[source], lid, path);
    const double here = job->endport_rate[source], there = job->endport_rate[job->lid_endport[lid]];
    double share = here < there ? here : there;
    if (length < 0)
        return 0.0;
    for (int32_t i = 0; i < length; i++) {
        const double part = job->capacity[path[i]] / count[path[i]];
        share = part < share ? part : share;
    }
    return share;
}

/* Compute the mean rate and the lowest rate of the flows of a pattern, as shares of the reference rate.  Flows to the
 * source's own LIDs are left out.
 *
 * count: [channels], scratch: number of flows on each channel.
 * path: [switches], scratch. */
static void share_pattern(const struct flow_shares *job, int32_t pattern, int32_t *count, int32_t *path)
{
    const int32_t *source = job->source + (size_t)pattern * job->flows;
    const int32_t *lid = job->target_lid + (size_t)pattern * job->flows;
    int32_t counted = 0;
    double sum = 0.0, least = 0.0;
    memset(count, 0, sizeof(int32_t) * (size_t)job->routes->channels);
    for (int32_t f = 0; f < job->flows; f++) {
        if (job->lid_endport[lid[f]] == source[f])
            continue;
        const int32_t length = walk(job->routes, job->endport_switch[source[f]], lid[f], path);
        for (int32_t i = 0; i < length; i++)
            count[path[i]]++;
    }
    for (int32_t f = 0; f < job->flows; f++) {
        if (job->lid_endport[lid[f]] == source[f])
            continue;
        const double share = share_of(job, source[f], lid[f], count, path);
        least = counted == 0 || share < least ? share : least;
        sum += share;
        counted++;
    }
    job->mean[pattern] = counted > 0 ? sum / counted : 0.0;
    job->least[pattern] = least;
}

static void share_range(void *argument, int32_t from, int32_t to, void *memory)
{
    const struct flow_shares *job = argument;
    int32_t *count = memory;
    for (int32_t pattern = from; pattern < to; pattern++)
        share_pattern(job, pattern, count, count + job->routes->channels);
}

int ibn_trees_load_shares(const struct ibn_routes *routes, const double *capacity, const int32_t *endport_switch,
                          const double *endport_rate, const int32_t *lid_endport, int32_t patterns, int32_t flows,
                          const int32_t *source, const int32_t *target_lid, int32_t threads, double *mean,
                          double *least)
{
    struct flow_shares job = {routes, capacity, endport_switch, endport_rate, lid_endport,
                              flows,  source,   target_lid,     mean,         least};
    const size_t bytes = padded(4 * ((size_t)routes->channels + (size_t)routes->switches));
    const int32_t slices = slices_of(threads, patterns);
    char *memory = calloc((size_t)slices, bytes);
    if (memory == NULL)
        return 1;
    struct slices all = {share_range, &job, patterns, slices, memory, bytes};
    const int code = ibn_core_parallel(threads, slices, run_slice, &all);
    free(memory);
    return code;
}

/* The functions from here on draw random permutations. */

/* SplitMix64 generator (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). */
static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mixed(*state);
}

void ibn_trees_draw_orders(uint64_t seed, int32_t first, int32_t last, int32_t n, int32_t *order)
{
    for (int32_t pattern = first; pattern < last; pattern++, order += n) {
        uint64_t state = mixed(mixed(seed) + (uint64_t)pattern);
        for (int32_t i = 0; i < n; i++)
            order[i] = i;
        for (int32_t i = n - 1; i > 0; i--) {
            const int32_t j = (int32_t)(((draw(&state) >> 32) * (uint64_t)(i + 1)) >> 32);
            const int32_t kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
    }
}
