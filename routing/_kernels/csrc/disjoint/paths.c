/* Compute properties of the paths in trees: shared links, hops, load, and the switch orders that allow each path. */
#include <stdlib.h>
#include <string.h>

#include "core/internal/random.h"
#include "disjoint/internal/disjoint_job.h"

/* Mark the links of the paths from switch s to switch d in several trees.  `trees` is the set of these trees, as
 * bits. */
void ibn_disjoint_mark_paths(disjoint_job *job, int32_t d, int32_t s, uint32_t trees)
{
    const disjoint_request *net = job->net;
    job->now++;
    for (int32_t j = 0; j < net->trees; j++) {
        const uint8_t *next = job->next + disjoint_row(job, d, j);
        for (int32_t v = s; trees >> j & 1 && v != d;) {
            const int32_t c = disjoint_hop(job, next, v), e = net->link[c];
            if (job->stamp[e] != job->now) {
                job->stamp[e] = job->now;
                job->mark[e] = 0;
            }
            job->mark[e] |= (uint8_t)(1u << j);
            v = net->dst[c];
        }
    }
}

/* Return the trees, as bits, whose marked path shares a link with a section of a given path.  The marked paths are
 * those of the last call of ibn_disjoint_mark_paths.  The section leads from switch `from` to switch `to`, on a path
 * to destination d.  The entries of the tree that has this path begin at index `row` of job->next. */
uint8_t ibn_disjoint_marked(disjoint_job *job, int32_t d, int64_t row, int32_t from, int32_t to)
{
    const disjoint_request *net = job->net;
    uint8_t hit = 0;
    for (int32_t v = from; v != to && v != d;) {
        const int32_t c = disjoint_hop(job, job->next + row, v), e = net->link[c];
        if (job->stamp[e] == job->now)
            hit |= job->mark[e];
        v = net->dst[c];
    }
    return hit;
}

/* Record which other trees have a path from s to d that shares a link with the path in tree `tree`.  `hit` is the set
 * of these trees, as bits. */
void ibn_disjoint_set_conflict(disjoint_job *job, int32_t d, int32_t s, int32_t tree, uint8_t hit)
{
    const int32_t k = job->net->trees;
    uint8_t *conflict = job->conflict + ((int64_t)d * job->net->switches + s) * k;
    for (int32_t j = 0; j < k; j++)
        if (j == tree)
            conflict[j] = hit;
        else if (hit >> j & 1)
            conflict[j] |= (uint8_t)(1u << tree);
        else
            conflict[j] &= (uint8_t)~(1u << tree);
}

/* For each switch and each tree, record the other trees whose path to destination d shares a link with this tree's
 * path. */
void ibn_disjoint_fill_conflicts(disjoint_job *job, int32_t d)
{
    const disjoint_request *net = job->net;
    for (int32_t s = 0; s < net->switches; s++) {
        if (s == d || job->next[disjoint_row(job, d, 0) + s] == DISJOINT_NONE)
            continue;
        ibn_disjoint_mark_paths(job, d, s, EVERY_TREE);
        for (int32_t j = 0; j < net->trees; j++)
            job->conflict[((int64_t)d * net->switches + s) * net->trees + j] =
                (uint8_t)(ibn_disjoint_marked(job, d, disjoint_row(job, d, j), s, d) & ~(1u << j));
    }
}

/* Return the size of the largest set of trees whose paths share no link with one another.  The count stops at `wanted`.
 * Only trees in the set `open` (bits) are used.  conflict[k] is the set of trees, as bits, whose paths share a link
 * with the path in tree k. */
static int32_t largest(const uint8_t *conflict, uint32_t open, int32_t wanted)
{
    int32_t best = 0;
    for (int32_t j = 0; open >> j && best < wanted; j++) {
        if (!(open >> j & 1))
            continue;
        open &= ~(1u << j);
        const uint32_t rest = open & ~(uint32_t)conflict[j];
        const int32_t found = wanted > 1 && rest ? 1 + largest(conflict, rest, wanted - 1) : 1;
        if (found > best)
            best = found;
    }
    return best;
}

/* Return the size of the largest set of trees whose paths share no link with one another.  The count stops at `wanted`.
 * conflict[k] is the set of trees, as bits, whose paths share a link with the path in tree k. */
int32_t ibn_disjoint_most(const uint8_t *conflict, int32_t trees, int32_t wanted)
{
    return largest(conflict, (1u << trees) - 1, wanted);
}

/* Fill job->queue with destination d, followed by the switches that reach the destination, nearest first.  Switches at
 * equal distance are in random order. */
void ibn_disjoint_by_distance(disjoint_job *job, int32_t d)
{
    const int32_t switches = job->net->switches;
    const uint16_t *hops = job->net->distance + (int64_t)d * switches;
    memset(job->count, 0, ((size_t)switches + 1) * sizeof *job->count);
    ibn_core_shuffle(job->turn, switches, &job->random);
    for (int32_t s = 0; s < switches; s++)
        if (hops[s] != DISJOINT_UNREACHED)
            job->count[hops[s] + 1]++;
    for (int32_t h = 0; h < switches; h++)
        job->count[h + 1] += job->count[h];
    for (int32_t i = 0; i < switches; i++) {
        const int32_t s = job->turn[i];
        if (hops[s] != DISJOINT_UNREACHED)
            job->queue[job->count[hops[s]]++] = s;
    }
    /* From here on, job->count[h] is the number of switches that are at most h hops from the destination. */
}

/* Follow the path of a tree from every switch to destination d.  For each path, store the number of hops, and the
 * switch orders that allow the path, as bits. */
void ibn_disjoint_trace_tree(disjoint_job *job, int32_t d, int32_t tree)
{
    const disjoint_request *net = job->net;
    const int64_t row = disjoint_row(job, d, tree);
    const uint8_t *next = job->next + row;
    for (int32_t s = 0; s < net->switches; s++)
        job->depth[row + s] = s == d ? 0 : DISJOINT_UNREACHED;
    job->mask[row + d] = 255;
    for (int32_t s = 0; s < net->switches; s++) {
        /* First follow the next hops up to a switch whose hops are known.  Then compute the hops and switch orders of
         * the switches on this path, from the last one to switch s.  The computation for a switch uses the result of
         * its next switch. */
        int32_t top = 0;
        for (int32_t v = s; job->depth[row + v] == DISJOINT_UNREACHED && next[v] != DISJOINT_NONE;) {
            job->count[top++] = v;
            v = net->dst[disjoint_hop(job, next, v)];
        }
        while (top > 0) {
            const int32_t v = job->count[--top], c = disjoint_hop(job, next, v);
            job->depth[row + v] = (uint16_t)(job->depth[row + net->dst[c]] + 1);
            job->mask[row + v] = disjoint_mask_over(job, d, row, c);
        }
    }
}

/* Change the loads of the channels by the all-to-all traffic to destination d in one tree: add this traffic (sign 1) or
 * subtract it (sign -1). */
void ibn_disjoint_add_load(disjoint_job *job, int32_t d, int32_t tree, double sign)
{
    const disjoint_request *net = job->net;
    const uint8_t *next = job->next + disjoint_row(job, d, tree);
    if (!(net->weight[d] > 0))
        return;
    for (int32_t s = 0; s < net->switches; s++) {
        const double flow = sign * net->weight[s] * net->weight[d];
        for (int32_t v = s; v != d && next[v] != DISJOINT_NONE && flow != 0;) {
            const int32_t c = disjoint_hop(job, next, v);
            if (tree == 0)
                job->load[0][c] += flow * net->inverse_capacity[c];
            job->load[1][c] += flow * net->inverse_capacity[c];
            v = net->dst[c];
        }
    }
}

/* Replace the path from switch s to destination d in one tree by the path from s to d in the first tree. */
void ibn_disjoint_copy_first(const disjoint_request *net, uint8_t *next, int32_t d, int32_t tree, int32_t s)
{
    const uint8_t *base = next + (int64_t)d * net->trees * net->switches;
    uint8_t *row = next + ((int64_t)d * net->trees + tree) * net->switches;
    for (int32_t v = s; v != d && base[v] != DISJOINT_NONE; v = net->dst[net->first[v] + base[v]])
        row[v] = base[v];
}
