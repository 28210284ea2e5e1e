/* Count the link-disjoint paths in given tables: see disjoint.h. */
#include <stdlib.h>
#include <string.h>

#include "disjoint/internal/disjoint_job.h"

enum { MOST_PATHS = 128 };

typedef struct {
    uint64_t word[2]; /* a set of up to 128 paths, as bits */
} path_set;

typedef struct {
    int32_t switches, lids;
    const int32_t *dst, *at_port;
    const uint8_t *lft;
    const int32_t *link;
    /* [C]: for each link, the set of the paths that use the link.  Only paths from the current switch to the current
     * LID group are in the set */
    path_set *users;
    /* stamp: [C], for each link, the number (see `now`) of the pair for which `users` was last written.
     * now: number of the current pair of a switch and a LID group. */
    uint32_t *stamp, now;
    path_set conflict[MOST_PATHS]; /* for each path, the set of the paths that share a link with it */
    int32_t paths;                 /* number of paths from the current switch to the current LID group */
} count_job;

/* Follow the path with number `path` from switch s to a LID.  Without `collect`, add the path to users[link] for each
 * link of the path.  With `collect`, add all paths in users[link] to conflict[path], for each link of the path.
 * Returns whether the path arrives. */
static bool follow(count_job *job, int32_t s, int32_t lid, int32_t to, int32_t path, bool collect)
{
    for (int32_t left = job->switches; s != to; left--) {
        const int32_t c = job->at_port[(int64_t)s * 256 + job->lft[(int64_t)s * job->lids + lid]];
        if (c < 0 || left == 0)
            return false;
        const int32_t e = job->link[c];
        if (job->stamp[e] != job->now) {
            job->stamp[e] = job->now;
            job->users[e] = (path_set){{0, 0}};
        }
        if (collect) {
            job->conflict[path].word[0] |= job->users[e].word[0];
            job->conflict[path].word[1] |= job->users[e].word[1];
        } else {
            job->users[e].word[path / 64] |= UINT64_C(1) << path % 64;
        }
        s = job->dst[c];
    }
    return true;
}

/* Return the size of the largest set of paths of which no two share a link.  The count stops at `most`.  Only paths in
 * the set `open` whose number is at least `from` are used. */
static int32_t largest(const count_job *job, path_set open, int32_t from, int32_t most)
{
    int32_t best = 0;
    for (int32_t path = from; path < job->paths && best < most; path++) {
        if (!(open.word[path / 64] >> path % 64 & 1))
            continue;
        const path_set rest = {
            {open.word[0] & ~job->conflict[path].word[0], open.word[1] & ~job->conflict[path].word[1]}};
        const int32_t found = 1 + (most > 1 ? largest(job, rest, path + 1, most - 1) : 0);
        if (found > best)
            best = found;
    }
    return best;
}

/* Return how many link-disjoint paths a switch has to a group of LIDs, or 0 if a path does not arrive.  The count stops
 * at `most`. */
static uint8_t count_pair(count_job *job, int32_t s, int32_t to, const int32_t *lid, int32_t most)
{
    job->now++;
    for (int32_t path = 0; path < job->paths; path++)
        if (!follow(job, s, lid[path], to, path, false))
            return 0;
    for (int32_t path = 0; path < job->paths; path++) {
        job->conflict[path] = (path_set){{0, 0}};
        follow(job, s, lid[path], to, path, true);
    }
    return (uint8_t)largest(job, (path_set){{UINT64_MAX, UINT64_MAX}}, 0, most);
}

int ibn_disjoint_count(int32_t switches, int32_t channels, int32_t lids, const int32_t *dst, const int32_t *at_port,
                       const int32_t *link, const uint8_t *lft, const int32_t *lid_switch, int32_t groups,
                       const int32_t *group_first, const int32_t *group_lid, const uint8_t *source, int32_t most,
                       uint8_t *found)
{
    count_job job = {.switches = switches, .lids = lids, .dst = dst, .at_port = at_port, .lft = lft, .link = link};
    job.users = malloc(((size_t)channels + 1) * sizeof *job.users);
    job.stamp = calloc((size_t)channels + 1, sizeof *job.stamp);
    const int code = job.users && job.stamp ? DISJOINT_OK : DISJOINT_NO_MEMORY;
    for (int32_t g = 0; code == DISJOINT_OK && g < groups; g++) {
        const int32_t *lid = group_lid + group_first[g], to = lid_switch[lid[0]];
        job.paths = group_first[g + 1] - group_first[g];
        for (int32_t s = 0; s < switches; s++)
            found[(int64_t)g * switches + s] = source[s] && s != to ? count_pair(&job, s, to, lid, most) : 0;
    }
    free(job.users);
    free(job.stamp);
    return code;
}
