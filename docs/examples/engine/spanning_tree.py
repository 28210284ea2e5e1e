"""An engine for ibnue: all paths along one spanning tree.

A tree has no cycle of channels, so one VL is enough.  The load is poor: this is a template, not an engine to use.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibnue.engines import (
    NO_PORT,
    EngineOptions,
    Fabric,
    Offers,
    Promise,
    Provenance,
    Routing,
    identity_sl2vl,
    refuse_unsupported,
)


class SpanningTree:
    """Paths along a breadth-first tree from the first switch of each connected component."""

    name = "spanning-tree"
    summary = "all paths along one spanning tree; a template"
    promise = Promise.DEADLOCK_FREE
    """ibnue checks the promise on the finished tables.  Tables that break it are never written."""
    offers = Offers()
    """The engine supports none of the optional options, such as roots."""

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables.  Every switch has an entry for every LID of its connected component."""
        refuse_unsupported(self, options)
        lids = fabric.lids
        lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
        tree = tree_channels(fabric)
        for switch in range(fabric.switches):
            towards = ports_towards(fabric, tree, switch)
            for lid in np.flatnonzero(lids.switch == switch):
                lft[:, lid] = towards
                lft[switch, lid] = lids.port[lid]
        return Routing(
            lft=lft,
            sl=np.zeros(len(lids), np.uint8),
            sl2vl=identity_sl2vl(1),
            vls=1,
            vls_needed=1,
            provenance=Provenance(self.name, {"seed": options.seed}, fabric.digest),
        )


def tree_channels(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return bool[C], the channels of a breadth-first forest, in both directions."""
    channels = fabric.channels
    chosen, seen = np.zeros(len(channels), bool), np.zeros(fabric.switches, bool)
    for root in range(fabric.switches):
        if seen[root]:
            continue
        seen[root] = True
        waiting = [root]
        for here in waiting:
            for channel in range(channels.first[here], channels.first[here + 1]):
                if not seen[channels.dst[channel]]:
                    seen[channels.dst[channel]] = True
                    chosen[[channel, channels.reverse[channel]]] = True
                    waiting.append(int(channels.dst[channel]))
    return chosen


def ports_towards(fabric: Fabric, tree: npt.NDArray[np.bool_], switch: int) -> npt.NDArray[np.uint8]:
    """Return uint8[S], the out-port of each switch along the tree towards one switch; NO_PORT at that switch."""
    channels = fabric.channels
    ports = np.full(fabric.switches, NO_PORT, np.uint8)
    waiting = [switch]
    for here in waiting:
        for channel in channels.into[channels.into_first[here] : channels.into_first[here + 1]]:
            before = int(channels.src[channel])
            if tree[channel] and before != switch and ports[before] == NO_PORT:
                ports[before] = channels.port[channel]
                waiting.append(before)
    return ports
