/* Holes of tables, filled with the fewest changes: see fewest.h. */
#include "fewest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_MEMORY };
enum { NONE = -1 };

/* A way into channel `last`; what led to it stands in `reached`. */
typedef struct {
    int32_t changes, hops, last;
} step;

typedef struct {
    const holes_to_fill *given;
    int32_t *channel; /* [S], what each switch takes in this column; NONE: nothing */
    int32_t *hops;    /* [S], to the target; NONE: the switch is cut off */
    int32_t *cut;     /* those that are cut off */
    int32_t cuts;
    int32_t *root;    /* holes that are left, by row */
    int32_t roots;
    int32_t *direct;  /* [S], of a hole: the channel to a switch that is not cut off with the fewest hops; NONE */
    int32_t *seen;    /* [S], the walk or search in which a switch was met last */
    int32_t turn;     /* which one that is now */
    int32_t *reached; /* [S], the channel by which a search came; NONE at its root */
    int32_t *way;     /* [2 S] */
    step *heap;
    int32_t size;
} fewest_job;

/* The way that ends in c before, or after, one of as many channels that ends in d: the first difference counts. */
static int32_t compare_ways(const fewest_job *job, int32_t c, int32_t d)
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
    return compare_ways(job, a.last, b.last) < 0;
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

/* Channels of a way from its root on; how many. */
static int32_t write_way(const fewest_job *job, int32_t last, int32_t *way)
{
    int32_t length = 0, at;
    for (int32_t c = last; c != NONE; c = job->reached[job->given->src[c]])
        length++;
    at = length;
    for (int32_t c = last; c != NONE; c = job->reached[job->given->src[c]])
        way[--at] = c;
    return length;
}

/* The best way that was found so far, from any root. */
typedef struct {
    int32_t changes, hops, length;
    int32_t *way;
} found_way;

static void offer_way(fewest_job *job, step end, found_way *best)
{
    int32_t *way = job->way + job->given->switches;
    if (best->length && (end.changes > best->changes || (end.changes == best->changes && end.hops > best->hops)))
        return;
    const int32_t length = write_way(job, end.last, way);
    if (best->length && end.changes == best->changes && end.hops == best->hops) {
        int32_t i = 0;
        while (i < length && i < best->length && way[i] == best->way[i])
            i++;
        if (i == best->length || (i < length && way[i] > best->way[i]))
            return;
    }
    memcpy(best->way, way, (size_t)length * sizeof *way);
    *best = (found_way){end.changes, end.hops, length, best->way};
}

/* Channels out of a switch that a search has come to: into one that is not cut off the way is whole. */
static void expand(fewest_job *job, int32_t s, int32_t changes, int32_t hops, found_way *best)
{
    const holes_to_fill *given = job->given;
    for (int32_t c = given->first[s]; c < given->first[s + 1]; c++) {
        const int32_t t = given->dst[c];
        step next = {changes + (c != job->channel[s]), hops + 1, c};
        if (job->hops[t] != NONE) {
            next.hops += job->hops[t];
            offer_way(job, next, best);
        } else if (job->seen[t] != job->turn && (!best->length || next.changes < best->changes)) {
            push(job, next);
        }
    }
}

/* Dijkstra's algorithm by changes, hops, and channels; the last change of a way is that into who is not cut off. */
static void search(fewest_job *job, int32_t root, found_way *best)
{
    job->turn++;
    job->size = 0;
    job->seen[root] = job->turn;
    job->reached[root] = NONE;
    expand(job, root, 0, 0, best);
    while (job->size > 0 && (!best->length || job->heap[0].changes < best->changes)) {
        const step next = pop(job);
        const int32_t s = job->given->dst[next.last];
        if (job->seen[s] == job->turn)
            continue;
        job->seen[s] = job->turn;
        job->reached[s] = next.last;
        expand(job, s, next.changes, next.hops, best);
    }
}

/* Hops of a switch and of all on its way, if that leads to somebody who is not cut off. */
static void walk(fewest_job *job, int32_t s)
{
    int32_t length = 0;
    for (; job->hops[s] == NONE && job->seen[s] != job->turn; s = job->given->dst[job->channel[s]]) {
        job->seen[s] = job->turn;
        job->way[length++] = s;
        if (job->channel[s] == NONE)
            return;
    }
    for (int32_t known = job->hops[s]; known != NONE && length > 0;)
        job->hops[job->way[--length]] = ++known;
}

/* A switch that is not cut off may be the way of holes beside it. */
static void offer_switch(fewest_job *job, int32_t s)
{
    const holes_to_fill *given = job->given;
    for (int32_t i = given->into_first[s]; i < given->into_first[s + 1]; i++) {
        const int32_t c = given->into[i], hole = given->src[c], other = job->direct[hole];
        const int32_t hops = other == NONE ? 0 : job->hops[given->dst[other]];
        if (job->hops[hole] == NONE && job->channel[hole] == NONE
            && (other == NONE || job->hops[s] < hops || (job->hops[s] == hops && c < other)))
            job->direct[hole] = c;
    }
}

/* See who is cut off no longer. */
static void reconnect(fewest_job *job)
{
    int32_t left = 0;
    job->turn++;
    for (int32_t i = 0; i < job->cuts; i++)
        walk(job, job->cut[i]);
    for (int32_t i = 0; i < job->cuts; i++)
        if (job->hops[job->cut[i]] == NONE)
            job->cut[left++] = job->cut[i];
        else
            offer_switch(job, job->cut[i]);
    job->cuts = left;
}

/* The hole with the best way of one channel, by its place; NONE if there is none. */
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

/* The way of the next hole into job->way, and the hole's place; NONE if no hole has a way. */
static int32_t next_way(fewest_job *job, int32_t *length)
{
    found_way best = {.way = job->way};
    const int32_t nearest = next_direct(job);
    if (nearest != NONE) {
        job->way[0] = job->direct[job->root[nearest]];
        *length = 1;
        return nearest;
    }
    for (int32_t i = 0; i < job->roots; i++)
        search(job, job->root[i], &best);
    *length = best.length;
    for (int32_t i = 0; i < job->roots && best.length; i++)
        if (job->root[i] == job->given->src[best.way[0]])
            return i;
    return NONE;
}

static void begin(fewest_job *job, int32_t target, const uint8_t *hole, const uint8_t *entry)
{
    const int32_t switches = job->given->switches;
    job->roots = job->cuts = 0;
    job->turn++;
    for (int32_t s = 0; s < switches; s++) {
        job->channel[s] = s == target ? NONE : job->given->at_port[(int64_t)s * 256 + entry[s]];
        job->hops[s] = job->direct[s] = NONE;
        if (hole[s])
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

static void fill(fewest_job *job, int32_t target, const uint8_t *hole, uint8_t *entry)
{
    int32_t place, length;
    begin(job, target, hole, entry);
    while ((place = next_way(job, &length)) != NONE) {
        for (int32_t i = 0; i < length; i++) {
            const int32_t c = job->way[i], s = job->given->src[c];
            job->channel[s] = c;
            entry[s] = job->given->port[c];
        }
        memmove(job->root + place, job->root + place + 1, (size_t)(--job->roots - place) * sizeof *job->root);
        reconnect(job);
    }
}

int ibn_fewest(const holes_to_fill *given, uint8_t *entry)
{
    const size_t switches = (size_t)given->switches + 1;
    int32_t *room = calloc(9 * switches, sizeof *room);
    fewest_job job = {.given = given, .heap = malloc(((size_t)given->channels + 1) * sizeof *job.heap)};
    int32_t **parts[] = {&job.channel, &job.hops, &job.cut, &job.root, &job.direct, &job.seen, &job.reached, &job.way};
    for (size_t i = 0; room && i < sizeof parts / sizeof *parts; i++)
        *parts[i] = room + i * switches;
    const bool failed = !room || !job.heap;
    for (int32_t n = 0; n < given->columns && !failed; n++) {
        const int64_t row = (int64_t)n * given->switches;
        fill(&job, given->target[n], given->hole + row, entry + row);
    }
    free(room);
    free(job.heap);
    return failed ? NO_MEMORY : OK;
}
