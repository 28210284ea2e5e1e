/* Fill missing LFT entries such that few other entries change: see min_change_paths.h. */
#include "repair/min_change_paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { NONE = -1 };

/* An incomplete path, which begins at a switch with a missing entry.  The search extends the path channel by channel.
 * Only the last channel is stored here.  The array `reached` gives the channels before it. */
typedef struct {
    /* changes: number of entries that the path changes; hops: number of its channels; last: number of the last channel
     * of the path so far */
    int32_t changes, hops, last;
} step;

typedef struct {
    const missing_entries *given;
    int32_t *channel; /* [S]: next channel of each switch towards the current LID; NONE: no entry */
    int32_t *hops;    /* [S]: hops to the target; NONE: the switch has no path */
    int32_t *cut;     /* [S]: switches that have no path to the target yet */
    int32_t cuts;
    int32_t *root; /* [S]: switches whose entry is missing, in ascending order */
    int32_t roots;
    /* [S]: for a switch with a missing entry, the channel to the neighbour whose path to the target is shortest; NONE:
     * no neighbour has a path */
    int32_t *direct;
    int32_t *seen; /* [S]: value of `visit` when the switch was last visited */
    int32_t visit; /* number of the current walk along entries, or of the current search */
    /* [S]: channel by which the current search reached each switch; NONE at the switch where the search began */
    int32_t *reached;
    /* [2 S]: in the first half, the channels of the best path so far; in the second half, the channels of the path that
     * is compared with it.  The function walk uses the first half as scratch */
    int32_t *path;
    step *heap; /* [C]: binary heap of the paths that the search has not extended yet */
    int32_t size;
} fewest_job;

/* Compare two paths of equal length by their channel numbers, from the first channel on.  The last channels of the two
 * paths are c and d.  Returns a negative number, 0 or a positive number, like memcmp. */
static int32_t compare_paths(const fewest_job *job, int32_t c, int32_t d)
{
    const int32_t *src = job->given->src;
    int32_t order = 0;
    while (c != d) {
        order = c < d ? -1 : 1;
        if (src[c] == src[d])
            break;
        c = job->reached[src[c]];
        d = job->reached[src[d]];
    }
    return order;
}

static bool is_before(const fewest_job *job, step a, step b)
{
    if (a.changes != b.changes)
        return a.changes < b.changes;
    if (a.hops != b.hops)
        return a.hops < b.hops;
    return compare_paths(job, a.last, b.last) < 0;
}

static void push(fewest_job *job, step entry)
{
    int32_t at = job->size++;
    for (; at > 0 && is_before(job, entry, job->heap[(at - 1) / 2]); at = (at - 1) / 2)
        job->heap[at] = job->heap[(at - 1) / 2];
    job->heap[at] = entry;
}

static step pop(fewest_job *job)
{
    const step least = job->heap[0], last = job->heap[--job->size];
    int32_t at = 0;
    for (int32_t child = 1; child < job->size; child = 2 * at + 1) {
        if (child + 1 < job->size && is_before(job, job->heap[child + 1], job->heap[child]))
            child++;
        if (!is_before(job, job->heap[child], last))
            break;
        job->heap[at] = job->heap[child];
        at = child;
    }
    job->heap[at] = last;
    return least;
}

/* Write the channels of the path that ends with channel `last` to `path`, in the order in which packets use them.
 * Returns the number of channels. */
static int32_t write_path(const fewest_job *job, int32_t last, int32_t *path)
{
    int32_t length = 0, at;
    for (int32_t c = last; c != NONE; c = job->reached[job->given->src[c]])
        length++;
    at = length;
    for (int32_t c = last; c != NONE; c = job->reached[job->given->src[c]])
        path[--at] = c;
    return length;
}

/* The best path that has been found so far from any switch with a missing entry.  A length of 0 means that no path has
 * been found. */
typedef struct {
    int32_t changes, hops, length;
    int32_t *path;
} found_path;

/* Compare a complete path with the best path found so far, and replace the best path if the complete path is better. */
static void offer_path(fewest_job *job, step end, found_path *best)
{
    int32_t *path = job->path + job->given->switches;
    if (best->length && (end.changes > best->changes || (end.changes == best->changes && end.hops > best->hops)))
        return;
    const int32_t length = write_path(job, end.last, path);
    if (best->length && end.changes == best->changes && end.hops == best->hops) {
        int32_t i = 0;
        while (i < length && i < best->length && path[i] == best->path[i])
            i++;
        if (i == best->length || (i < length && path[i] > best->path[i]))
            return;
    }
    memcpy(best->path, path, (size_t)length * sizeof *path);
    *best = (found_path){end.changes, end.hops, length, best->path};
}

/* Extend a path, which changes `changes` entries and has `hops` hops, by each channel out of its last switch s.  A path
 * is complete if its new channel leads to a switch that has a path to the target. */
static void expand(fewest_job *job, int32_t s, int32_t changes, int32_t hops, found_path *best)
{
    const missing_entries *given = job->given;
    for (int32_t c = given->first[s]; c < given->first[s + 1]; c++) {
        const int32_t t = given->dst[c];
        step next = {changes + (c != job->channel[s]), hops + 1, c};
        if (job->hops[t] != NONE) {
            next.hops += job->hops[t];
            offer_path(job, next, best);
        } else if (job->seen[t] != job->visit && (!best->length || next.changes < best->changes)) {
            push(job, next);
        }
    }
}

/* Search for the best path from a switch with a missing entry to any switch that has a path to the target (Dijkstra's
 * algorithm).  Paths are compared by the number of changed entries.  Ties are decided by the number of hops, and
 * further ties by the channel numbers. */
static void search(fewest_job *job, int32_t root, found_path *best)
{
    job->visit++;
    job->size = 0;
    job->seen[root] = job->visit;
    job->reached[root] = NONE;
    expand(job, root, 0, 0, best);
    while (job->size > 0 && (!best->length || job->heap[0].changes < best->changes)) {
        const step next = pop(job);
        const int32_t s = job->given->dst[next.last];
        if (job->seen[s] == job->visit)
            continue;
        job->seen[s] = job->visit;
        job->reached[s] = next.last;
        expand(job, s, next.changes, next.hops, best);
    }
}

/* Follow the entries from a switch to the next switch whose hops to the target are known.  Set the hops of all switches
 * that were passed.  If the entries lead to no such switch, no hops are set. */
static void walk(fewest_job *job, int32_t s)
{
    int32_t length = 0;
    for (; job->hops[s] == NONE && job->seen[s] != job->visit; s = job->given->dst[job->channel[s]]) {
        job->seen[s] = job->visit;
        job->path[length++] = s;
        if (job->channel[s] == NONE)
            return;
    }
    for (int32_t known = job->hops[s]; known != NONE && length > 0;)
        job->hops[job->path[--length]] = ++known;
}

/* Offer switch s, which has a path to the target, as next hop to its neighbours with missing entries.  A neighbour
 * records its channel to s in `direct` if its path over s is shorter than its best path so far. */
static void offer_switch(fewest_job *job, int32_t s)
{
    const missing_entries *given = job->given;
    for (int32_t i = given->into_first[s]; i < given->into_first[s + 1]; i++) {
        const int32_t c = given->into[i], missing = given->src[c], other = job->direct[missing];
        const int32_t hops = other == NONE ? 0 : job->hops[given->dst[other]];
        if (job->hops[missing] == NONE && job->channel[missing] == NONE
            && (other == NONE || job->hops[s] < hops || (job->hops[s] == hops && c < other)))
            job->direct[missing] = c;
    }
}

/* After an entry was filled, set the hops of all switches that have a path to the target because of this entry. */
static void reconnect(fewest_job *job)
{
    int32_t left = 0;
    job->visit++;
    for (int32_t i = 0; i < job->cuts; i++)
        walk(job, job->cut[i]);
    for (int32_t i = 0; i < job->cuts; i++)
        if (job->hops[job->cut[i]] == NONE)
            job->cut[left++] = job->cut[i];
        else
            offer_switch(job, job->cut[i]);
    job->cuts = left;
}

/* Choose the missing entry that can be filled with the shortest path, such that no other entry changes: the switch
 * sends to a neighbour that has a path to the target.  Returns the index of the switch in `root`, or NONE if no switch
 * with a missing entry has such a neighbour. */
static int32_t next_direct(const fewest_job *job)
{
    int32_t best = NONE;
    for (int32_t i = 0, least = 0; i < job->roots; i++) {
        const int32_t c = job->direct[job->root[i]];
        if (c == NONE || (best != NONE && job->hops[job->given->dst[c]] >= least))
            continue;
        best = i;
        least = job->hops[job->given->dst[c]];
    }
    return best;
}

/* Choose the missing entry that is filled next, and write the path that begins there to job->path.  *length receives
 * the number of channels of the path.  Returns the index of the entry's switch in `root`, or NONE if no missing entry
 * has a path. */
static int32_t next_path(fewest_job *job, int32_t *length)
{
    found_path best = {.path = job->path};
    const int32_t nearest = next_direct(job);
    if (nearest != NONE) {
        job->path[0] = job->direct[job->root[nearest]];
        *length = 1;
        return nearest;
    }
    for (int32_t i = 0; i < job->roots; i++)
        search(job, job->root[i], &best);
    *length = best.length;
    for (int32_t i = 0; i < job->roots && best.length; i++)
        if (job->root[i] == job->given->src[best.path[0]])
            return i;
    return NONE;
}

/* Begin the repair of one LID.  Find the switches without a path to the target.  For each missing entry, find the
 * neighbour whose path to the target is shortest. */
static void begin(fewest_job *job, int32_t target, const uint8_t *missing, const uint8_t *entry)
{
    const int32_t switches = job->given->switches;
    job->roots = job->cuts = 0;
    job->visit++;
    for (int32_t s = 0; s < switches; s++) {
        job->channel[s] = s == target ? NONE : job->given->at_port[(int64_t)s * 256 + entry[s]];
        job->hops[s] = job->direct[s] = NONE;
        if (missing[s])
            job->root[job->roots++] = s;
    }
    job->hops[target] = 0;
    for (int32_t s = 0; s < switches; s++)
        walk(job, s);
    for (int32_t s = 0; s < switches; s++)
        if (job->hops[s] == NONE)
            job->cut[job->cuts++] = s;
    for (int32_t i = 0; i < job->roots; i++) {
        const int32_t root = job->root[i];
        for (int32_t c = job->given->first[root]; c < job->given->first[root + 1]; c++) {
            const int32_t t = job->given->dst[c], other = job->direct[root];
            if (job->hops[t] != NONE && (other == NONE || job->hops[t] < job->hops[job->given->dst[other]]))
                job->direct[root] = c;
        }
    }
}

/* Fill the missing entries of one LID one after the other.  Each step fills the entry that has the best path. */
static void fill(fewest_job *job, int32_t target, const uint8_t *missing, uint8_t *entry)
{
    int32_t place, length;
    begin(job, target, missing, entry);
    while ((place = next_path(job, &length)) != NONE) {
        for (int32_t i = 0; i < length; i++) {
            const int32_t c = job->path[i], s = job->given->src[c];
            job->channel[s] = c;
            entry[s] = job->given->port[c];
        }
        memmove(job->root + place, job->root + place + 1, (size_t)(--job->roots - place) * sizeof *job->root);
        reconnect(job);
    }
}

int ibn_repair_min_change_paths(const missing_entries *given, uint8_t *entry)
{
    const size_t switches = (size_t)given->switches + 1;
    int32_t *room = calloc(9 * switches, sizeof *room);
    fewest_job job = {.given = given, .heap = malloc(((size_t)given->channels + 1) * sizeof *job.heap)};
    int32_t **parts[] = {&job.channel, &job.hops, &job.cut, &job.root, &job.direct, &job.seen, &job.reached, &job.path};
    for (size_t i = 0; room && i < sizeof parts / sizeof *parts; i++)
        *parts[i] = room + i * switches;
    const bool failed = !room || !job.heap;
    for (int32_t n = 0; n < given->columns && !failed; n++) {
        const int64_t row = (int64_t)n * given->switches;
        fill(&job, given->target[n], given->missing + row, entry + row);
    }
    free(room);
    free(job.heap);
    return failed ? NO_MEMORY : OK;
}
