/* A request, and indexes built from it: the peer of each switch port, the owner of each LID, and the switch and port
 * that deliver each LID. */
#pragma once

#include "shim.h"

#define LIDS 0xC000     /* all unicast LIDs are below this number */
#define PORTS 256       /* length of the rows of arrays that are indexed by port */
#define GONE UINT32_MAX /* value for a missing device, row or owner */

/* The other end of a cable. */
struct peer {
    uint32_t device; /* index of the device at the other end, GONE: there is no cable */
    uint8_t port; /* number of the device's port at the other end */
};

/* The indexes of a request.  Pointers to const point into the request itself.  The view owns all other arrays. */
struct view {
    const struct ibnue_request *head; /* head of the request */
    const struct ibnue_device *device;   /* [devices], the devices of the request */
    const struct ibnue_endport *endport; /* [endports], the end ports of the request */
    const struct ibnue_cable *cable;     /* [cables], the cables of the request */
    struct peer *peer;  /* [switches][PORTS], the peer of each switch port; unhealthy cables are left out */
    uint32_t *owner;    /* [LIDS], owner of each LID: row of the switch, or `devices` + index of the end port; GONE: no
                         * owner */
    int32_t *switch_of; /* [LIDS], row of the switch that delivers the LID, or -1 */
    uint8_t *port_of; /* [LIDS], port of the switch `switch_of` by which this switch delivers the LID, 0 for the LID of
                       * the switch itself */
};

/* Build the indexes of a request.  Return 0, or -1 if memory allocation fails.  ibnue_view_close must be called in
 * either case. */
IBNUE_HIDDEN int ibnue_view_open(struct view *view, const uint8_t *bytes);
IBNUE_HIDDEN void ibnue_view_close(struct view *view);

/* The next two functions are in delivery.c.  The first one checks that the hop counts of an answer are the lengths of
 * the paths in its LFTs.  The second one counts the pairs of a switch and an end port that have no path. */
IBNUE_HIDDEN int ibnue_delivery_check(const struct view *view, const struct ibnue_answer *answer, const uint8_t *bytes);
IBNUE_HIDDEN uint64_t ibnue_delivery_missing(const struct view *view, const struct ibnue_answer *answer,
                                             const uint8_t *bytes);

static inline const struct peer *peer_of(const struct view *view, uint32_t row, uint8_t port)
{
    return view->peer + (size_t)row * PORTS + port;
}
