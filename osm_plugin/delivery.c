/* Check the hop counts in an answer, in one pass over the LFTs.  Each hop count must be the number of hops from a
 * switch to the switch that delivers the LID.
 *
 * The hop count of each entry is compared with the hop count at the next switch.  Usually, the hop count at the next
 * switch is one smaller.  A path on which this is so at each switch ends at the switch that delivers the LID.  If the
 * hop count at a next switch is not one smaller, the path of the entry is followed to its end. */
#include "view.h"

#include <stdlib.h>

#define MOST_HOPS 254 /* hop count that stands for 254 or more hops */

struct tables {
    const struct view *view; /* the request with its indexes */
    const uint8_t *lft, *hops; /* [switches][lids] lft: LFTs of the answer; hops: hop counts of the answer */
    const int32_t *next;       /* [switches][PORTS], row of the switch at the other end of each port's cable, or -1 */
    uint32_t switches, lids; /* dimensions of the arrays `lft` and `hops` */
};

/* Return whether a switch delivers a LID.  Its entry for the LID must lead to the port with this LID: an end port or
 * the switch's own port 0. */
static int delivers(const struct tables *tables, uint32_t row, uint32_t lid)
{
    return tables->view->switch_of[lid] == (int32_t)row &&
           tables->lft[(size_t)row * tables->lids + lid] == tables->view->port_of[lid];
}

enum { GOES_ROUND = -2, ENDS = -1 };

/* Follow the path from a switch to a LID.  Return the number of hops to the switch that delivers, GOES_ROUND if the
 * path is a forwarding loop, or ENDS if the path stops earlier. */
static int64_t follow(const struct tables *tables, uint32_t row, uint32_t lid)
{
    for (int64_t steps = 0; steps <= tables->switches; steps++) {
        int32_t next = tables->next[(size_t)row * PORTS + tables->lft[(size_t)row * tables->lids + lid]];
        if (delivers(tables, row, lid))
            return steps;
        if (next < 0)
            return ENDS;
        row = (uint32_t)next;
    }
    return GOES_ROUND;
}

/* Follow the path of an entry, and return whether the hop count of the entry is right.  If the path stops before it
 * reaches the LID, the entry must have no hop count.  If the path is a forwarding loop, no hop count is right. */
static int check_entry(const struct tables *tables, uint32_t row, uint32_t lid)
{
    uint8_t hops = tables->hops[(size_t)row * tables->lids + lid];
    int64_t found = follow(tables, row, lid);

    if (found < 0)
        return found == ENDS && hops == OSM_NO_PATH;
    return hops == (found < MOST_HOPS ? found : MOST_HOPS);
}

/* Return whether the hop counts of all entries of a switch are right. */
static int check_row(const struct tables *tables, uint32_t row)
{
    const uint8_t *lft = tables->lft + (size_t)row * tables->lids, *hops = tables->hops + (size_t)row * tables->lids;
    const int32_t *next = tables->next + (size_t)row * PORTS;

    for (uint32_t lid = 0; lid < tables->lids; lid++) {
        int32_t to = next[lft[lid]];
        uint8_t rest = to < 0 ? OSM_NO_PATH : tables->hops[(size_t)to * tables->lids + lid];
        if (rest < MOST_HOPS - 1 && hops[lid] == rest + 1)
            continue;
        if (lft[lid] == OSM_NO_PATH && hops[lid] == OSM_NO_PATH)
            continue;
        if (!check_entry(tables, row, lid))
            return 0;
    }
    return 1;
}

/* Check the hop counts of an answer.  Return 0 if all hop counts are right, so that the LFTs have no forwarding loop.
 * Return 1 if a hop count is wrong, or -1 if memory allocation fails. */
int ibnue_delivery_check(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    struct tables tables = {view, bytes + answer->lft_at, bytes + answer->hops_at, NULL, answer->switches, answer->lids};
    size_t count = (size_t)answer->switches * PORTS;
    int32_t *next = malloc((count + 1) * sizeof(*next));
    int wrong = 0;

    if (!next)
        return -1;
    for (size_t i = 0; i < count; i++)
        next[i] = view->peer[i].device < answer->switches && view->peer[i].device != i / PORTS
                      ? (int32_t)view->peer[i].device
                      : -1;
    tables.next = next;
    for (uint32_t row = 0; row < answer->switches && !wrong; row++)
        wrong = !check_row(&tables, row);
    free(next);
    return wrong;
}

/* Count the pairs of a switch and an end port for which the switch has no path to the end port's base LID.  End ports
 * without a cable to a switch are left out. */
uint64_t ibnue_delivery_missing(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes)
{
    const uint8_t *hops = bytes + answer->hops_at;
    uint64_t missing = 0;

    for (uint32_t row = 0; row < answer->switches; row++, hops += answer->lids)
        for (uint32_t i = 0; i < view->head->endports; i++) {
            uint16_t lid = view->endport[i].lid;
            missing += lid && lid < LIDS && view->switch_of[lid] >= 0 &&
                       (lid >= answer->lids || hops[lid] == OSM_NO_PATH);
        }
    return missing;
}
