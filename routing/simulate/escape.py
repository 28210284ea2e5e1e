"""Check escape paths for adaptive routing.

Escape paths are the paths of tables that a packet may start to follow at any switch.  The channel dependencies of all
such paths must be acyclic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from routing.deadlock.waitfor import WaitFor
from routing.errors import OptionError
from routing.simulate.network import Network
from routing.tables import SlToVl

FAR = 255
"""Hop count that means "no path" between two switches."""


def injection_points(network: Network) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the SLs and in-ports of packets that enter the escape VLs at each switch.

    SL and in-port determine the VL of the packet in the SL2VL table.  A packet enters the escape VLs as if it came from
    the first end port of the switch.  Its SL is then the SL from this end port to the destination.  Its in-port is the
    switch port to which this end port is cabled.  If the switch has no end ports, the packet gets the SL from the
    switch itself to the destination, and in-port 0.

    Returns
    -------
    sl
        uint8[S, L]: SL by switch and destination LID.
    port
        uint8[S]: in-port for the SL2VL table.
    """
    fabric, sls = network.fabric, network.routing.service_levels
    port, lid = np.zeros(fabric.switches, np.uint8), fabric.switch_lid.astype(np.int64).copy()
    for endport in range(fabric.endports - 1, -1, -1):
        switch = int(fabric.endport_switch[endport])
        if switch >= 0:
            port[switch] = fabric.endport_switch_port[endport]
            lid[switch] = fabric.endport_lid[endport]
    return sls.matrix[sls.row_of(np.arange(fabric.switches), lid)], port


def check_escape(network: Network, adaptive_vls: int, *, stay: bool) -> None:
    """Check that escape paths lead from every switch to every CA, and that their dependencies are acyclic.

    A packet may enter the escape VLs at any switch, not only at the source's switch.  So there are dependencies that
    the proof of the tables does not cover.

    Parameters
    ----------
    network
        Network whose tables define the escape paths.
    adaptive_vls
        Number of adaptive VLs; VL n of the tables is VL ``adaptive_vls + n``.
    stay
        Whether packets on escape VLs stay on escape VLs until they are delivered.

    Raises
    ------
    OptionError
        An escape path is missing, the paths close a credit loop, or a path is not a shortest path although packets may
        leave it: such packets might never arrive.

    Notes
    -----
    Cost: O(S L diameter).  Source: Duato (1993), who requires a connected routing subfunction with acyclic
    dependencies.  Indirect dependencies do not occur: a buffer holds whole packets, so a waiting packet occupies only
    one virtual channel.
    """
    arrays, fabric = network.arrays, network.fabric
    enter_sl, enter_port = injection_points(network)
    lids = np.flatnonzero((fabric.lids.endport >= 0) & (arrays.lid_switch >= 0))
    at, lid = (grid.ravel() for grid in np.meshgrid(np.arange(fabric.switches), lids, indexing="ij"))
    step = _Step(
        at, lid, enter_port[at].astype(np.int64), enter_sl[at, lid].astype(np.int64), np.full(len(at), -1, np.int64)
    )
    waits, number = [np.zeros((0, 2), np.int64)], network.channels * network.vls
    for _ in range(fabric.switches + 1):
        hops = arrays.distance[step.at, arrays.lid_switch[step.lid]]
        step = step.of((hops > 0) & (hops < FAR))
        if not len(step.at):
            break
        before, step = step.vc, _next_step(network, step, adaptive_vls, stay=stay)
        pairs = np.unique(before[before >= 0] * number + step.vc[before >= 0])
        waits.append(np.stack(np.divmod(pairs, number), axis=1))
    if len(step.at):
        raise OptionError("escape paths form a forwarding loop", remedy="use tables that deliver")
    every = np.concatenate(waits)
    if WaitFor.of(every[:, 0], every[:, 1], number).on_cycle.any():
        raise OptionError(
            "the escape paths close a loop when packets may enter them at any switch",
            remedy="use tables whose VL depends on the switch and the destination alone, such as updn's",
        )


class _Step(NamedTuple):
    """Positions of n packets on their escape paths, int64[n] each.  All packets advance together, one hop at a time.

    Attributes
    ----------
    at, lid
        Present switch and destination LID.
    in_port, sl
        In-port at the present switch, and SL of the packet.
    vc
        Virtual channel (channel x V + VL) by which the packet arrived, or -1 at its first switch.
    """

    at: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    in_port: npt.NDArray[np.int64]
    sl: npt.NDArray[np.int64]
    vc: npt.NDArray[np.int64]

    def of(self, chosen: npt.NDArray[np.bool_]) -> _Step:
        """Return the positions of those packets for which ``chosen`` (bool[n]) is true."""
        return _Step(*(part[chosen] for part in self))


def _next_step(network: Network, step: _Step, adaptive_vls: int, *, stay: bool) -> _Step:
    """Return the positions of all packets after one more hop on their escape paths.

    ``step`` has the positions before this hop.  The simulation has ``adaptive_vls`` adaptive VLs, and after them the
    VLs of the tables: VL n of the tables is VL ``adaptive_vls + n`` of the simulation.  ``stay`` states whether packets
    on escape VLs stay on escape VLs until they are delivered.

    Raises
    ------
    OptionError
        A path is missing or leads to a VL that does not exist.  Or ``stay`` is false, and an escape path is not a
        shortest path.
    """
    arrays, fabric = network.arrays, network.fabric
    channel_at = np.full((arrays.devices, 256), -1, np.int64)
    channel_at[arrays.src, arrays.src_port] = np.arange(network.channels)
    port = arrays.lft[step.at, step.lid].astype(np.int64)
    out = channel_at[step.at, port]
    lost = (out < 0) | (arrays.dst[out] >= fabric.switches)
    if lost.any():
        switch = fabric.labels[int(step.at[lost][0])]
        raise OptionError(f"an escape path to LID {int(step.lid[lost][0])} ends at {switch}", remedy="use whole tables")
    goal, to = arrays.lid_switch[step.lid], arrays.dst[out].astype(np.int64)
    if not stay and (arrays.distance[to, goal].astype(int) + 1 != arrays.distance[step.at, goal]).any():
        raise OptionError(
            "some escape paths are not shortest paths, and a packet that leaves and enters them might never arrive",
            remedy="let packets stay on the escape VLs, or use tables with shortest paths",
        )
    vl = SlToVl(arrays.sl2vl).vl(step.at, step.in_port, port, step.sl)
    dropped = np.flatnonzero(vl >= network.vls - adaptive_vls)
    if len(dropped):
        switch, lid = fabric.labels[int(step.at[dropped[0]])], int(step.lid[dropped[0]])
        message = f"an escape path to LID {lid} ends at {switch}, on a VL that does not exist"
        raise OptionError(message, remedy="use whole tables")
    return _Step(to, step.lid, arrays.dst_port[out].astype(np.int64), step.sl, out * network.vls + adaptive_vls + vl)
