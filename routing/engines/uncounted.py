"""Route end ports that count in no traffic pattern, such as aggregation nodes, without a further VL.

An engine routes the fabric without these end ports.  Then each of their LIDs takes the LFT column and the SLs of
another LID at its switch.  So the paths between all other end ports are the same as in a fabric without these end
ports.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routing.engines.base import Engine, EngineOptions, Promise
from routing.engines.inner_pairs import connect_inner_switches
from routing.fabric import Fabric
from routing.tables import Routing

Self = TypeVar("Self", bound=Engine)
Route = Callable[[Self, Fabric, EngineOptions], Routing]


@dataclass(frozen=True, eq=False)
class Uncounted:
    """LIDs of end ports that count in no traffic pattern, and the LIDs whose routes are used for them.

    Attributes
    ----------
    fabric
        The fabric without the end ports of these LIDs.  Its LID table is as long as the LID table of the whole fabric.
    lid, model
        int64[K] each: the K LIDs, and for each of them a LID that the same switch delivers.
    """

    fabric: Fabric
    lid: npt.NDArray[np.int64]
    model: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fabric: Fabric) -> Uncounted | None:
        """Return the LIDs of end ports that count in no traffic pattern; None if no such end port can be left out of
        the fabric.

        An uncounted end port stays in the fabric if its switch delivers no other LID.
        """
        lids = fabric.lids
        owned = np.flatnonzero((lids.endport >= 0) & (lids.switch >= 0))
        silent = owned[~fabric.counted[lids.endport[owned]]]
        if not len(silent):
            return None
        model_at = np.full(fabric.switches, -1, np.int64)
        heard = owned[fabric.counted[lids.endport[owned]]]
        # The model of a LID is a LID of a counted end port at the same switch, or else the LID of the switch.
        for others in (np.flatnonzero(lids.port == 0), heard):
            model_at[lids.switch[others[::-1]]] = others[::-1]
        silent = silent[model_at[lids.switch[silent]] >= 0]
        if not len(silent):
            return None
        cables = np.unique(fabric.endport_link[lids.endport[silent]])
        rest = fabric.without_links(cables.tolist()).with_lids(len(lids))
        return cls(rest, silent, model_at[lids.switch[silent]])

    def senders(self, fabric: Fabric) -> npt.NDArray[np.bool_]:
        """Return bool[S], the switches with uncounted end ports and without counted end ports."""
        found = np.zeros(fabric.switches, np.bool_)
        found[fabric.lids.switch[self.lid]] = True
        return np.asarray(found & (self.fabric.terminals_at == 0))

    def complete(self, fabric: Fabric, routing: Routing) -> Routing:
        """Add routes to the uncounted end ports to ``routing``, the tables of the fabric without these end ports.
        Return the complete tables.
        """
        lft, sl = routing.lft.copy(), routing.sl.copy()
        lft[:, self.lid] = lft[:, self.model]
        lft[fabric.lids.switch[self.lid], self.lid] = fabric.lids.port[self.lid]
        sl[..., self.lid] = sl[..., self.model]
        if routing.service_levels.by_source_lid:
            sl[self.lid] = sl[self.model]
        return replace(routing, lft=lft, sl=sl, provenance=replace(routing.provenance, fabric_digest=fabric.digest))


def without_uncounted(route: Route[Self]) -> Route[Self]:
    """Decorate the method ``route`` of an engine such that it routes the fabric without uncounted end ports.

    Routes to the uncounted end ports are then added to the tables that ``route`` returns.

    If the engine promises tables without a credit loop, the routes between the uncounted end ports must keep this
    promise on the VLs in use.  If no such routes are found, ``route`` is called again for the whole fabric.
    """

    @functools.wraps(route)
    def routed(self: Self, fabric: Fabric, options: EngineOptions) -> Routing:
        uncounted = Uncounted.of(fabric)
        if uncounted is None:
            return route(self, fabric, options)
        routing = route(self, uncounted.fabric, options)
        senders = uncounted.senders(fabric)
        if self.promise is Promise.DEADLOCK_FREE and senders.any():
            # Switches whose end ports are all uncounted still need paths between each other.  The search for such paths
            # supports only tables by which packets keep their VL.
            if not routing.sl_to_vl.uniform:
                return route(self, fabric, options)
            connected = connect_inner_switches(uncounted.fabric, routing, senders, reversible=options.reversible)
            if connected is None:
                return route(self, fabric, options)
            routing = connected
        return uncounted.complete(fabric, routing)

    return routed
