"""Check whether replies are free of credit loops although the tables have no reversible certificate.

The LID offset of a packet is its destination LID minus the base LID of the destination port.  A ``forward`` certificate
covers replies, too, under two conditions.  First, each reply has the same LID offset as its request.  Second, for
each LID offset and any two end ports A and B, packets from A to B and packets from B to A have the same SL.
"""

from __future__ import annotations

import numpy as np

from routing.deadlock.proof import Proof
from routing.endports import attached
from routing.fabric import Fabric
from routing.tables import Routing

_PAIRS_AT_ONCE = 4_000_000


def replies_need_offset(fabric: Fabric, routing: Routing, proof: Proof) -> bool:
    """Return whether replies are proven safe only if each reply has the same LID offset as its request.

    The LID offset of a packet is its destination LID minus the base LID of the destination port.  If all end ports have
    LMC 0, all LID offsets are 0, and the result is False.  ``proof`` is the proof of the tables.
    """
    return proof.strength == "forward" and bool(fabric.endport_lmc.any()) and replies_follow_requests(fabric, routing)


def replies_follow_requests(fabric: Fabric, routing: Routing) -> bool:
    """Return whether each reply uses the same channels and VLs as a request from the sender of the reply.

    The LID offset of a packet is its destination LID minus the base LID of the destination port.  Each reply is assumed
    to have the same LID offset as its request.  The result is True if, for each LID offset and any two end ports A and
    B, packets from A to B and packets from B to A have the same SL.  A reply from B to A then has the path and SL of a
    request from B to A.  So a ``forward`` certificate covers these replies.  The certificate does not cover replies
    with another LID offset.

    If SLs depend on the LIDs of both end ports, the result is False without a check.

    Notes
    -----
    Cost: O(E^2) for E end ports and each LID offset.
    """
    sls = routing.service_levels
    if sls.by_source_lid:
        return False
    ports = attached(fabric)
    lmc = fabric.endport_lmc[ports].astype(np.int64)
    for offset in range(1 << int(lmc.max(initial=0))):
        some = ports[offset < 1 << lmc]
        switch, lid = fabric.endport_switch[some], fabric.endport_lid[some].astype(np.int64) + offset
        row = sls.row_of(switch, lid)
        step = max(1, _PAIRS_AT_ONCE // max(len(some), 1))
        for start in range(0, len(some), step):
            part = slice(start, start + step)
            equal = sls.matrix[np.ix_(row, lid[part])] == sls.matrix[np.ix_(row[part], lid)].T
            apart = switch[:, None] != switch[None, part]
            joined = fabric.component[switch][:, None] == fabric.component[switch[part]][None, :]
            if not equal[apart & joined].all():
                return False
    return True
