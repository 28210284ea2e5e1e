"""Escape ways of adaptive routing: tables that packets may enter at any switch, and that close no loop even so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from routing.deadlock.waitfor import WaitFor
from routing.errors import OptionError
from routing.simulate.network import Network

FAR = 255
"""Distance of what cannot be reached."""


def entering(network: Network) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """SL by switch and LID, and in-port by switch, of packets that enter the escape VLs there.

    They are those of a CA of the switch; where it has none, those of its own LID, and in-port 0.
    """
    fabric, sl = network.fabric, network.routing.sl
    port, lid = np.zeros(fabric.switches, np.uint8), fabric.switch_lid.astype(np.int64).copy()
    for endport in range(fabric.endports - 1, -1, -1):
        switch = int(fabric.endport_switch[endport])
        if switch >= 0:
            port[switch] = fabric.endport_switch_port[endport]
            lid[switch] = fabric.endport_lid[endport]
    if sl.ndim == 1:
        return np.tile(sl, (fabric.switches, 1)), port
    return np.ascontiguousarray(sl if len(sl) == fabric.switches else sl[lid]), port


def check_escape(network: Network, adaptive_vls: int, *, stay: bool) -> None:
    """Raise unless the escape ways from every switch to every CA are there and close no loop among the escape VLs.

    A packet may enter them at any switch, so that they depend on one another in more ways than the tables' own proof
    looks at.

    Parameters
    ----------
    network
        Its tables are the escape ways.
    adaptive_vls
        VL n of the tables is this VL plus n.
    stay
        Packets do not leave the escape VLs again.

    Raises
    ------
    OptionError
        A way that is not there, that is not shortest although packets may leave it again (they might never arrive), or
        a loop.

    Notes
    -----
    Cost: O(S L diameter).  Duato (1993): the connected subset whose dependencies close no loop.  A buffer holds whole
    packets, so that a packet waits from the one lane that holds it.
    """
    arrays, fabric = network.arrays, network.fabric
    enter_sl, enter_port = entering(network)
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
        before, step = step.lane, _next_step(network, step, adaptive_vls, stay=stay)
        pairs = np.unique(before[before >= 0] * number + step.lane[before >= 0])
        waits.append(np.stack(np.divmod(pairs, number), axis=1))
    if len(step.at):
        raise OptionError("escape ways go round in circles", remedy="use tables that deliver")
    every = np.concatenate(waits)
    if WaitFor.of(every[:, 0], every[:, 1], number).on_cycle.any():
        raise OptionError(
            "the escape ways close a loop when packets may enter them at any switch",
            remedy="use tables whose VL depends on the switch and the destination alone, such as updn's",
        )


class _Step(NamedTuple):
    """Where packets are on their escape ways, int64[n] each: switch, LID, in-port, SL, lane that they came by or -1."""

    at: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    in_port: npt.NDArray[np.int64]
    level: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int64]

    def of(self, chosen: npt.NDArray[np.bool_]) -> _Step:
        """Some of them."""
        return _Step(*(part[chosen] for part in self))


def _next_step(network: Network, step: _Step, adaptive_vls: int, *, stay: bool) -> _Step:
    """All of them a switch further."""
    arrays, fabric = network.arrays, network.fabric
    channel_at = np.full((arrays.devices, 256), -1, np.int64)
    channel_at[arrays.src, arrays.src_port] = np.arange(network.channels)
    port = arrays.lft[step.at, step.lid].astype(np.int64)
    out = channel_at[step.at, port]
    lost = (out < 0) | (arrays.dst[out] >= fabric.switches)
    if lost.any():
        switch = fabric.switch_name[int(step.at[lost][0])]
        raise OptionError(f"an escape way to LID {int(step.lid[lost][0])} ends at {switch}", remedy="use whole tables")
    goal, to = arrays.lid_switch[step.lid], arrays.dst[out].astype(np.int64)
    if not stay and (arrays.distance[to, goal].astype(int) + 1 != arrays.distance[step.at, goal]).any():
        raise OptionError(
            "not all escape ways are shortest, and a packet that leaves and enters them might go round for ever",
            remedy="let packets stay on the escape VLs, or take shortest ways",
        )
    flat = arrays.sl2vl.ndim == 1
    vl = arrays.sl2vl[step.level] if flat else arrays.sl2vl[step.at, step.in_port, port, step.level]
    dropped = np.flatnonzero(vl >= network.vls - adaptive_vls)
    if len(dropped):
        switch, lid = fabric.switch_name[int(step.at[dropped[0]])], int(step.lid[dropped[0]])
        told = f"an escape way to LID {lid} ends at {switch}, by a VL that is none"
        raise OptionError(told, remedy="use whole tables")
    return _Step(to, step.lid, arrays.dst_port[out].astype(np.int64), step.level, out * network.vls + adaptive_vls + vl)
