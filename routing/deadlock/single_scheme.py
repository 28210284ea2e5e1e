"""Single Scheme: install new tables while traffic that closes no credit loop continues, adapted to InfiniBand.

Source: Pinkston, Pang and Duato (2003).  In that publication, the routes of escape paths change.  Packets take the new
escape paths only after all older packets have left the old escape paths.  Packets on other paths continue.

An InfiniBand switch has one forwarding table for all VLs.  So here, senders send nothing to some LIDs until the older
packets to these LIDs have left the fabric and the new tables have been written.  Packets to all other LIDs continue.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.fabric import Fabric
from routing.tables import Routing


def lids_to_drain(fabric: Fabric, old: Routing, new: Routing, *, threads: int = 2) -> npt.NDArray[np.bool_]:
    """Return bool[L], the LIDs to which no packet may be in the fabric while the new tables are written.

    Packets to all other LIDs may meet old and new entries in any mixture.  These packets close no credit loop, not even
    together with packets to any LID on new routes.  So senders may continue to send to the other LIDs, and the switches
    may be written in any order.  The result is minimal: no LID of the result can be left out.  But a different set of
    fewer LIDs may exist.

    All LIDs are in the result if packets change their VLs along their paths, if the SL2VL tables change, or if the new
    routes with the old SLs have a credit loop.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Traffic from or to CAs and routers counts, without replies.  Cost: O(S) for each LID that changes, and one pass over
    the new tables.
    """
    mixture = Mixture.of(fabric, old, new)
    later = MixedGraphs(mixture.between(mixture.after, mixture.after), threads=threads)
    everything = np.ones(len(fabric.lids), bool)
    if not later.fixed or later.order(replies=False, switch_pairs=False) is None:
        return everything
    # LIDs of CAs are admitted first, because switches receive hardly any traffic.
    changed = mixture.changed[np.argsort(mixture.of_switch[mixture.changed], kind="stable")]
    admitted = later.admit(mixture.before, mixture.after, changed, replies=False)
    return np.isin(np.arange(len(fabric.lids)), changed[~admitted])
