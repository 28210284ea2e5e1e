/* Give packets a new SL, if a change of an LFT entry would close a CDG cycle on their VL.  The new SL has another VL.
 * On this VL, the previous and the new paths of the packets together close no cycle.  So all senders can use the new
 * SLs before the entry changes.  The terms are explained in internal/repair_state.h. */
#include "repair/internal/repair_state.h"

#include <string.h>

/* Rule for the paths to be listed.  A path follows the LFTs in `table`, except at switch `at`, where it takes channel
 * `instead`. */
typedef struct {
    const uint8_t *table;
    int32_t at, instead;
} path_choice;

/* Append the CDG edges of a path to `steps`, except edges that are listed already.  Returns the new number of edges. */
static int32_t list_path(repair_state *job, int32_t s, int32_t lid, path_choice by, int32_t count)
{
    const repair_fabric *f = job->f;
    int32_t last = -1;
    for (int32_t hops = 0; hops <= f->switches && s != f->lid_switch[lid]; hops++) {
        const int32_t c = s == by.at ? by.instead : f->at_port[(int64_t)s * 256 + by.table[(int64_t)s * f->lids + lid]];
        if (c < 0 || !f->alive[c])
            break;
        if (last >= 0) {
            const int32_t edge = job->graph.turn_first[last] + c - f->first[s];
            if (job->listed_step[edge] != job->step_stamp)
                job->steps[count++] = (acyclic_step){last, edge};
            job->listed_step[edge] = job->step_stamp;
        }
        last = c;
        s = f->dst[c];
    }
    return count;
}

/* Append to `steps` the CDG edges of the paths from one switch to all LIDs of another switch.  To each LID, two paths
 * are followed: the path of the previous tables and the path of the present tables.  The present path to the current
 * LID is followed as if switch job->queue[0] already sent over channel c.  Returns the new number of edges. */
static int32_t list_pair(repair_state *job, int32_t from, int32_t to, int32_t c, int32_t count)
{
    const repair_fabric *f = job->f;
    for (int32_t i = f->lids_at_first[to]; i < f->lids_at_first[to + 1]; i++) {
        const int32_t lid = f->lids_at[i];
        count = list_path(job, from, lid, (path_choice){f->preferred, -1, -1}, count);
        count = list_path(job, from, lid, (path_choice){job->lft, lid == job->lid ? job->queue[0] : -1, c}, count);
    }
    return count;
}

/* Switch job->queue[0] is to send over channel c.  List in `steps` the CDG edges of all packets that would move from VL
 * `vl` to another VL.  Returns the number of edges.
 *
 * These packets travel from switches of the subtree to the current LID.  If replies must be free of credit loops too,
 * further packets between these switches and the target switch are included.  These are the packets from each of these
 * switches to all LIDs of the target switch, and the packets from the target switch to all LIDs of these switches. */
static int32_t list_all(repair_state *job, int32_t c, int32_t vl)
{
    const repair_fabric *f = job->f;
    int32_t count = 0;
    job->step_stamp++;
    for (int32_t i = 0; i < job->subtree_size; i++) {
        const int32_t s = job->queue[i];
        if (!(ibn_repair_vls_of(job, s) >> vl & 1))
            continue;
        if (f->replies) {
            count = list_pair(job, s, job->target, c, count);
            count = list_pair(job, job->target, s, c, count);
        } else {
            count = list_path(job, s, job->lid, (path_choice){f->preferred, -1, -1}, count);
            count = list_path(job, s, job->lid, (path_choice){job->lft, job->queue[0], c}, count);
        }
    }
    return count;
}

bool ibn_repair_prepare_sls(repair_state *job, int32_t c, int32_t vl)
{
    const int32_t count = list_all(job, c, vl), used = job->vls[0];
    /* Try the VLs that the subtree already uses before all other VLs.  The fewer VLs a subtree uses, the easier is its
     * next repair. */
    for (int32_t rest = 0; rest < 2; rest++)
        for (int32_t other = 0; other < job->f->vls; other++)
            if (other != vl && (used >> other & 1) != rest && job->f->sl_of_vl[other] != NO_SL
                && ibn_repair_fits(job, count, other)) {
                job->vl_of_vl[vl] = (int8_t)other;
                return true;
            }
    return false;
}

/* Replace an SL if the packets with this SL move to another VL. */
static void replace_sl(const repair_state *job, uint8_t *sl)
{
    const uint32_t bit = job->f->vl_bit[*sl];
    const int8_t other = bit ? job->vl_of_vl[__builtin_ctz(bit)] : KEEPS_VL;
    if (other != KEEPS_VL)
        *sl = job->f->sl_of_vl[other];
}

void ibn_repair_set_prepared_sls(repair_state *job)
{
    const repair_fabric *f = job->f;
    for (int32_t i = 0; i < job->subtree_size; i++) {
        const int32_t s = job->queue[i];
        replace_sl(job, job->sl + (int64_t)s * f->lids + job->lid);
        for (int32_t k = f->lids_at_first[s]; f->replies && k < f->lids_at_first[s + 1]; k++)
            replace_sl(job, job->sl + (int64_t)job->target * f->lids + f->lids_at[k]);
    }
    ibn_repair_collect_subtree(job, job->queue[0]);
}
