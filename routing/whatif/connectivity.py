"""Loss of connectivity by a fault, and search for the links and switches whose loss disconnects a fabric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import igraph
import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.faults.choose import link_faults


@dataclass(frozen=True)
class ConnectivityLoss:
    """Connectivity that is left after a fault.

    Attributes
    ----------
    connected
        Whether all surviving switches and CAs that could reach each other before the fault can still reach each other.
    parts
        Number of connected components of the switches after the fault.
    cut_off
        Labels of the surviving CAs and routers that are no longer connected to the largest piece of their old
        component.
    endports, pairs
        Number of end ports that count in traffic (see :func:`~routing.endports.attached`), and number of ordered pairs
        of such end ports within one component.
    """

    connected: bool
    parts: int
    cut_off: tuple[str, ...]
    endports: int
    pairs: int


def connectivity_loss(before: Fabric, after: Fabric) -> ConnectivityLoss:
    """Compare the fabrics before and after a fault, and return the connectivity that is left.

    Devices and end ports of the two fabrics are matched by GUID.
    If a connected component breaks into pieces, the piece with the most end ports of the component counts as the rest
    of the component.  CAs and routers in the other pieces count as cut off.  An aggregation node is part of its switch,
    so it is not reported separately.  Only end ports that count in traffic are counted in ``endports`` and ``pairs``.
    Cost: O(S + T + E) for S switches, T terminals and E end ports.
    """
    old_part, part = endport_part(before), endport_part(after)
    old_part[before.aggregation] = -1
    new_part = np.full(before.endports, -1, np.int32)
    new_part[np.searchsorted(before.endport_guid, after.endport_guid)] = part
    rest = _remainders(old_part, new_part)
    attached = old_part >= 0
    lost = attached & (new_part != rest[old_part])
    survives = np.isin(before.terminal_guid, after.terminal_guid, assume_unique=True)
    had = np.zeros(before.terminals, bool)
    had[before.endport_terminal[attached]] = True
    has = np.zeros(before.terminals, bool)
    has[before.endport_terminal[attached & ~lost]] = True
    cut = np.flatnonzero(had & ~has & survives)
    pieces = _switch_pieces(before, after)
    numbers = np.bincount(part[(part >= 0) & (after.endport_lid > 0) & after.counted])
    return ConnectivityLoss(
        connected=not cut.size and pieces,
        parts=1 + int(after.component.max(initial=-1)),
        cut_off=tuple(before.labels[before.switches + row] for row in cut.tolist()),
        endports=int(numbers.sum()),
        pairs=int((numbers * (numbers - 1)).sum()),
    )


def endport_part(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return int32[E]: the connected component of each end port, -1 if the end port is not attached to a switch."""
    if not fabric.switches:
        return np.full(fabric.endports, -1, np.int32)
    at = fabric.endport_switch
    return np.where(at >= 0, fabric.component[at], -1).astype(np.int32)


def _remainders(old_part: npt.NDArray[np.int32], new_part: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Find the largest piece of each old component after a fault.

    The result has a value for each old component: the number of the new component that has the most end ports of the
    old component.  The value is -2 if no end port of the old component is attached to a switch now.

    ``old_part`` and ``new_part`` give the component of each end port before and after the fault; -1: not attached to a
    switch.
    """
    parts = int(old_part.max(initial=-1)) + 1
    # -2 means "none": it is not a component number, and -1 already stands for end ports without a switch.
    rest = np.full(parts + 1, -2, np.int32)
    both = (old_part >= 0) & (new_part >= 0)
    for part in range(parts):
        counts = np.bincount(new_part[both & (old_part == part)])
        if counts.size:
            rest[part] = counts.argmax()
    return rest


def _switch_pieces(before: Fabric, after: Fabric) -> bool:
    """Return whether the surviving switches of every old component are still connected to each other."""
    position = np.searchsorted(before.switch_guid, after.switch_guid)
    pairs = np.column_stack([before.component[position], after.component])
    return len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0]))


def bridges_and_cut_switches(fabric: Fabric) -> tuple[list[int], list[int]]:
    """Return the rows of the links, and the rows of the switches, whose loss splits a connected component.

    In graph theory, such links are bridges, and such switches are articulation points.

    Notes
    -----
    Algorithms: igraph's bridges (Tarjan 1974) and articulation points, on the multigraph of the cables between
    switches.
    Cost: O(S + K) for S switches and K cables.
    """
    ends = fabric.link_device
    links = np.flatnonzero((ends < fabric.switches).all(axis=1) & (ends[:, 0] != ends[:, 1]))
    graph = igraph.Graph(n=fabric.switches, edges=ends[links].tolist())
    return sorted(links[graph.bridges()].tolist()), sorted(graph.articulation_points())


def link_names(fabric: Fabric, links: Iterable[int]) -> list[str]:
    """Return the names of links in the form that fault texts use."""
    return [fault.name for fault in link_faults(fabric, links)]
