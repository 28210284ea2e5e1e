/* Turn paths between switches into paths to LIDs, by a choice among parallel channels.  Each LID takes the parallel
 * channel with the lowest utilisation so far, including the flow to the LID.  At each switch, the LIDs with the
 * largest flows are handled first. */
#include <stdlib.h>
#include <string.h>

#include "trees/symmetric_paths.h"

#define NO_CHANNEL 255

/* The flow that passes one switch towards an end port at switch `root`, before it is divided among the end port's
 * LIDs. */
typedef struct {
    double flow;
    int32_t root;
} item_t;

/* Compare two flows for qsort: the larger flow comes first. */
static int largest_first(const void *a, const void *b)
{
    const item_t *x = a, *y = b;
    if (x->flow != y->flow)
        return x->flow > y->flow ? -1 : 1;
    return x->root - y->root;
}

/* Return the next hop of switch u in the tree `hop`, whose entries are bundles of parallel channels. far[b] is the
 * switch where bundle b ends. */
static int32_t behind(const ibn_link_bundles *f, const int32_t *far, const uint8_t *hop, int32_t u)
{
    return far[f->bundle_first[u] + hop[u]];
}

/* Sum up in `through` the flow through each switch in the tree `hop` towards a root: the flow of the switch itself and
 * of all switches upstream.  `children` and `queue` are scratch. */
static void gather(const ibn_link_bundles *f, const int32_t *far, const uint8_t *hop, double *through,
                   int32_t *children, int32_t *queue)
{
    int32_t tail = 0;
    memset(children, 0, (size_t)f->switches * sizeof *children);
    for (int32_t u = 0; u < f->switches; u++) {
        through[u] = f->sources[u];
        if (hop[u] != NO_CHANNEL)
            children[behind(f, far, hop, u)]++;
    }
    for (int32_t u = 0; u < f->switches; u++)
        if (children[u] == 0)
            queue[tail++] = u;
    for (int32_t head = 0; head < tail; head++) {
        int32_t u = queue[head];
        if (hop[u] == NO_CHANNEL)
            continue;
        int32_t v = behind(f, far, hop, u);
        through[v] += through[u];
        if (--children[v] == 0)
            queue[tail++] = v;
    }
}

/* Return the channel of a bundle that has the lowest utilisation after `flow` is added. */
static int32_t least_loaded(const ibn_link_bundles *f, const double *load, int32_t u, int32_t bundle, double flow)
{
    int32_t best = -1;
    double least = 0.0;
    for (int32_t c = f->first[u]; c < f->first[u + 1]; c++) {
        double full = (load[c] + flow) * f->inverse_capacity[c];
        if (f->bundle[c] == bundle && (best < 0 || full < least)) {
            best = c;
            least = full;
        }
    }
    return best;
}

/* Choose the channels by which switch u sends to all LIDs, and add the flow to each LID to the loads.
 *
 * item: [S], flow through switch u towards each switch. */
static void spread_at(const ibn_link_bundles *f, int32_t u, const uint8_t *hop, item_t *item, uint8_t *next,
                      double *load)
{
    qsort(item, (size_t)f->switches, sizeof *item, largest_first);
    for (int32_t i = 0; i < f->switches; i++) {
        int32_t root = item[i].root, k = hop[(int64_t)root * f->switches + u];
        for (int32_t j = f->at_first[root]; j < f->at_first[root + 1] && k != NO_CHANNEL; j++) {
            double flow = item[i].flow * f->share[f->at[j]];
            int32_t c = least_loaded(f, load, u, f->bundle_first[u] + k, flow);
            next[(int64_t)f->at[j] * f->switches + u] = (uint8_t)(c - f->first[u]);
            load[c] += flow;
        }
    }
}

/* Choose for every LID one channel of each bundle of parallel channels.
 *
 * hop: uint8 [S, S], by destination and switch, the index of the next bundle among the switch's bundles.
 * next: uint8 [D, S], output: by LID and switch, the index of the next channel among the switch's channels (255: none).
 * load: double [C], output: flow on each channel.
 *
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_spread_parallel(const ibn_link_bundles *f, const uint8_t *hop, uint8_t *next, double *load)
{
    size_t switches = (size_t)f->switches;
    double *through = malloc((switches * switches + 1) * sizeof *through);
    int32_t *children = malloc((switches + 1) * sizeof *children), *queue = malloc((switches + 1) * sizeof *queue);
    int32_t *far = malloc(((size_t)f->channels + 1) * sizeof *far);
    item_t *item = malloc((switches + 1) * sizeof *item);
    int failed = !through || !children || !queue || !far || !item;
    for (int32_t c = 0; c < f->channels && !failed; c++)
        far[f->bundle[c]] = f->dst[c];
    for (size_t root = 0; root < switches && !failed; root++)
        gather(f, far, hop + root * switches, through + root * switches, children, queue);
    memset(next, NO_CHANNEL, (size_t)f->targets * switches);
    memset(load, 0, (size_t)f->channels * sizeof *load);
    for (int32_t u = 0; u < f->switches && !failed; u++) {
        for (int32_t root = 0; root < f->switches; root++)
            item[root] = (item_t){.flow = through[(size_t)root * switches + (size_t)u], .root = root};
        spread_at(f, u, hop, item, next, load);
    }
    free(through);
    free(children);
    free(queue);
    free(far);
    free(item);
    return failed;
}
