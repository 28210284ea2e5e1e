/* Index a request: the peer of each switch port, the owner of each LID, and the switch and port that deliver each LID.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>

void ibnue_view_close(struct view *view)
{
    free(view->peer);
    free(view->owner);
    free(view->switch_of);
    free(view->port_of);
}

/* Set the owner of a base LID and of the further LIDs that its LMC adds. */
static void own(struct view *view, uint32_t lid, uint8_t lmc, uint32_t owner)
{
    for (uint32_t i = lid; lid && i < lid + (1u << lmc) && i < LIDS; i++)
        view->owner[i] = owner;
}

/* Set the peer of a switch port. */
static void lead(struct view *view, uint32_t row, uint8_t port, uint32_t device, uint8_t device_port)
{
    view->peer[(size_t)row * PORTS + port] = (struct peer){device, device_port};
}

/* Fill in the peers of all switch ports from the cables.  Cables that OpenSM considers unhealthy are left out. */
static void index_cables(struct view *view)
{
    for (size_t i = 0; i < (size_t)view->head->switches * PORTS; i++)
        view->peer[i].device = GONE;
    for (uint32_t k = 0; k < view->head->cables; k++)
        for (int end = 0; end < 2; end++) {
            const struct ibnue_cable *cable = view->cable + k;
            if (cable->device[end] < view->head->switches && !cable->sick)
                lead(view, cable->device[end], cable->port[end], cable->device[1 - end], cable->port[1 - end]);
        }
}

/* Fill in the owners of all LIDs. */
static void index_owners(struct view *view)
{
    memset(view->owner, 0xff, LIDS * sizeof(*view->owner));
    for (uint32_t row = 0; row < view->head->switches; row++)
        own(view, view->device[row].lid, 0, row);
    for (uint32_t i = 0; i < view->head->endports; i++)
        own(view, view->endport[i].lid, view->endport[i].lmc, view->head->devices + i);
}

/* Return the index of the end port with a given port number on a device, GONE if there is no such end port.  End ports
 * are sorted by device, then by port. */
static uint32_t endport_at(const struct view *view, uint32_t device, uint8_t port)
{
    uint32_t low = 0, high = view->head->endports;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct ibnue_endport *here = view->endport + middle;
        if (here->device < device || (here->device == device && here->port < port))
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->head->endports && view->endport[low].device == device && view->endport[low].port == port ? low
                                                                                                               : GONE;
}

/* For each LID, fill in the switch that delivers the LID, and the port by which it does so.  This is port 0 for the LID
 * of the switch itself. */
static void index_rows(struct view *view)
{
    for (uint32_t lid = 0; lid < LIDS; lid++)
        view->switch_of[lid] = view->owner[lid] < view->head->switches ? (int32_t)view->owner[lid] : -1;
    memset(view->port_of, 0, LIDS);
    for (uint32_t row = 0; row < view->head->switches; row++)
        for (uint32_t port = 1; port < PORTS; port++) {
            const struct peer *peer = peer_of(view, row, (uint8_t)port);
            const struct ibnue_endport *endport;
            uint32_t number;
            if (peer->device == GONE || peer->device < view->head->switches ||
                (number = endport_at(view, peer->device, peer->port)) == GONE)
                continue;
            endport = view->endport + number;
            for (uint32_t i = endport->lid; endport->lid && i < endport->lid + (1u << endport->lmc) && i < LIDS; i++) {
                view->switch_of[i] = (int32_t)row;
                view->port_of[i] = (uint8_t)port;
            }
        }
}

int ibnue_view_open(struct view *view, const uint8_t *bytes)
{
    const struct ibnue_request *head = (const struct ibnue_request *)bytes;

    view->head = head;
    view->device = (const struct ibnue_device *)(bytes + head->device_at);
    view->endport = (const struct ibnue_endport *)(bytes + head->endport_at);
    view->cable = (const struct ibnue_cable *)(bytes + head->cable_at);
    view->peer = malloc(((size_t)head->switches * PORTS + 1) * sizeof(*view->peer));
    view->owner = malloc(LIDS * sizeof(*view->owner));
    view->switch_of = malloc(LIDS * sizeof(*view->switch_of));
    view->port_of = malloc(LIDS);
    if (!view->peer || !view->owner || !view->switch_of || !view->port_of)
        return -1;
    index_cables(view);
    index_owners(view);
    index_rows(view);
    return 0;
}
