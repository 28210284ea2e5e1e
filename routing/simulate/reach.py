"""Check that the tables have a path for all traffic of a simulation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.deadlock.traffic_sources import lid_name
from routing.errors import TableError
from routing.fabric import NO_PORT
from routing.simulate.network import Network
from routing.simulate.traffic import Process, Traffic

DELIVERED, LOST = -1, -2


def _next_switch(network: Network, lids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the next switch towards each of D LIDs, int32[S, D].

    An entry is DELIVERED if the next device is the owner of the LID, or LOST if the LFT entry leads nowhere.
    """
    arrays, fabric = network.arrays, network.fabric
    far = np.full((fabric.switches, 256), -1, np.int32)
    from_switch = arrays.src < fabric.switches
    far[arrays.src[from_switch], arrays.src_port[from_switch]] = arrays.dst[from_switch]
    port = arrays.lft[:, lids]
    to = far[np.arange(fabric.switches)[:, None], port]
    found = np.where((to >= 0) & (to < fabric.switches), to, LOST)
    found[(to == arrays.lid_device[lids][None, :]) & (to >= 0)] = DELIVERED
    found[port == NO_PORT] = LOST
    return found.astype(np.int32)


def check_routes(network: Network, traffic: Traffic) -> None:
    """Check that the tables have a path from the source of every flow to each of its destination LIDs.

    The values of the flows must have been checked before.

    Raises
    ------
    TableError
        A source has no path to a destination, or the path is a forwarding loop.  The error names the first such pair.

    Notes
    -----
    Cost: O(S D diameter) for S switches and D destinations.
    """
    fabric = network.fabric
    per_flow = [
        {lid for _, lid, _ in flow.trace} if flow.process is Process.TRACE else {*flow.destinations, *flow.hot}
        for flow in traffic.flows
    ]
    lids = np.asarray(sorted(set().union(*per_flow)), np.int64)
    step = _next_switch(network, lids)
    column = {lid: number for number, lid in enumerate(lids.tolist())}
    at = np.tile(np.arange(fabric.switches, dtype=np.int32)[:, None], (1, len(lids)))
    for _ in range(fabric.switches):
        going = at >= 0
        if not going.any():
            break
        at = np.where(going, step[np.maximum(at, 0), np.arange(len(lids))[None, :]], at)
    for flow, wanted in zip(traffic.flows, per_flow, strict=True):
        switch, own = int(fabric.endport_switch[flow.source]), int(fabric.endport_lid[flow.source])
        if switch < 0:
            continue
        for lid in sorted(wanted - {own}):
            if at[switch, column[lid]] != DELIVERED:
                how = "has no path" if at[switch, column[lid]] == LOST else "runs into a forwarding loop"
                raise TableError(
                    f"traffic from {fabric.endport_label[flow.source]} to {lid_name(fabric, lid)} (LID {lid}) {how}",
                    remedy="leave the pair out, or use other tables",
                )
