#include "cdg/check_certificate.h"
#include "core/parallel.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const certificate_tables *t;
    const int32_t *entry_switch;
    const uint8_t *entry_port;
    const uint16_t *sls;
    int32_t *fault;
} job;

/* Follow a packet to its LID, and return whether the packet uses channels in strictly increasing order.  If not,
 * `fault` receives the LID, the SL, and the channel and VL at which the order is violated.  The function also ends if
 * the packet circulates, because the positions of the channels cannot increase for ever. */
static bool follows_order(const certificate_tables *t, int32_t s, int32_t in, int32_t lid, int32_t sl, int32_t *fault)
{
    int64_t last = INT64_MIN;
    for (;;) {
        const int32_t out = t->lft[(size_t)s * t->lids + lid], channel = t->at_port[(size_t)s * 256 + out];
        if (channel < 0)
            return true;
        const size_t dependency = t->ports ? ((size_t)s * t->ports + in) * t->ports + out : 0;
        const int32_t vl = t->sl2vl[dependency * 16 + sl];
        if (vl >= 15)
            return true;
        if (vl >= t->vls || t->order[(size_t)vl * t->channels + channel] <= last) {
            fault[0] = lid, fault[1] = sl, fault[2] = channel, fault[3] = vl;
            return false;
        }
        last = t->order[(size_t)vl * t->channels + channel];
        s = t->dst[channel];
        in = t->dst_port[channel];
    }
}

static void walk_entry(void *context, int32_t n)
{
    const job *j = context;
    const uint16_t *sls = j->sls + (size_t)n * j->t->lids;
    int32_t *fault = j->fault + (size_t)n * 4;
    fault[0] = -1;
    for (int32_t lid = 0; lid < j->t->lids; lid++)
        for (unsigned left = sls[lid]; left; left &= left - 1)
            if (!follows_order(j->t, j->entry_switch[n], j->entry_port[n], lid, __builtin_ctz(left), fault))
                return;
}

typedef struct {
    const certificate_tables *t;
    uint8_t *bad;
} next_hops_job;

static void check_switch(void *context, int32_t s)
{
    const next_hops_job *j = context;
    const certificate_tables *t = j->t;
    uint8_t *bad = j->bad + (size_t)s * t->vls;
    for (int32_t lid = 0; lid < t->lids; lid++) {
        const int32_t channel = t->at_port[(size_t)s * 256 + t->lft[(size_t)s * t->lids + lid]];
        if (channel < 0)
            continue;
        const int32_t next = t->dst[channel];
        const int32_t then = t->at_port[(size_t)next * 256 + t->lft[(size_t)next * t->lids + lid]];
        for (int32_t vl = 0; then >= 0 && vl < t->vls; vl++) {
            const int32_t *place = t->order + (size_t)vl * t->channels;
            bad[vl] |= place[channel] >= place[then];
        }
    }
}

int ibn_cdg_check_next_hops(const certificate_tables *tables, int32_t switches, uint8_t *bad)
{
    next_hops_job j = {tables, bad};
    return ibn_core_parallel(tables->threads, switches, check_switch, &j);
}

int ibn_cdg_check_certificate(const certificate_tables *tables, int32_t entries, const int32_t *entry_switch,
                              const uint8_t *entry_port, const uint16_t *sls, int32_t *fault)
{
    job j = {tables, entry_switch, entry_port, sls, fault};
    return ibn_core_parallel(tables->threads, entries, walk_entry, &j);
}
