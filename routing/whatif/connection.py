"""What hangs together before and after a fault, and the links and switches on which that rests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import igraph
import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.faults.choose import link_faults
from routing.faults.model import device_names


@dataclass(frozen=True)
class Separation:
    """What a fault takes apart.

    Attributes
    ----------
    connected
        Whether all switches and CAs that survive can still reach whomever they could reach before.
    parts
        Connected parts of the switches.
    cut_off
        The CAs and routers that survive, and have lost the larger part of what they were connected to: by name, or by
        node GUID where several have that name.
    endports, pairs
        End ports with a LID on a switch, and their ordered pairs that lie in one part.
    """

    connected: bool
    parts: int
    cut_off: tuple[str, ...]
    endports: int
    pairs: int


def separation(before: Fabric, after: Fabric) -> Separation:
    """What has come apart; devices and end ports are matched by GUID.

    Where a part breaks in pieces, its rest is the piece with most of its end ports (of equal ones the first).
    Cost: O(S + T + E).
    """
    old_part, part = endport_part(before), endport_part(after)
    new_part = np.full(before.endports, -1, np.int32)
    new_part[np.searchsorted(before.endport_guid, after.endport_guid)] = part
    rest = _rests(old_part, new_part)
    attached = old_part >= 0
    lost = attached & (new_part != rest[old_part])
    survives = np.isin(before.terminal_guid, after.terminal_guid, assume_unique=True)
    had = np.zeros(before.terminals, bool)
    had[before.endport_terminal[attached]] = True
    has = np.zeros(before.terminals, bool)
    has[before.endport_terminal[attached & ~lost]] = True
    cut = np.flatnonzero(had & ~has & survives)
    pieces = _switch_pieces(before, after)
    numbers = np.bincount(part[(part >= 0) & (after.endport_lid > 0)])
    return Separation(
        connected=not cut.size and pieces,
        parts=1 + int(after.component.max(initial=-1)),
        cut_off=tuple(device_names(before, (before.switches + cut).tolist())) if cut.size else (),
        endports=int(numbers.sum()),
        pairs=int((numbers * (numbers - 1)).sum()),
    )


def endport_part(fabric: Fabric) -> npt.NDArray[np.int32]:
    """int32[E], the part that each end port is in, or -1 (cabled to no switch)."""
    if not fabric.switches:
        return np.full(fabric.endports, -1, np.int32)
    at = fabric.endport_switch
    return np.where(at >= 0, fabric.component[at], -1).astype(np.int32)


def _rests(old_part: npt.NDArray[np.int32], new_part: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The part after that is the rest of each part before; -2, which is none, where nothing is left."""
    parts = int(old_part.max(initial=-1)) + 1
    rest = np.full(parts + 1, -2, np.int32)  # never the part of anything
    both = (old_part >= 0) & (new_part >= 0)
    for part in range(parts):
        counts = np.bincount(new_part[both & (old_part == part)])
        if counts.size:
            rest[part] = counts.argmax()
    return rest


def _switch_pieces(before: Fabric, after: Fabric) -> bool:
    """Whether the switches that survive of each part are in one part still."""
    place = np.searchsorted(before.switch_guid, after.switch_guid)
    pairs = np.column_stack([before.component[place], after.component])
    return len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0]))


def weak_spots(fabric: Fabric) -> tuple[list[int], list[int]]:
    """Bridges and articulation points: links (rows) and switches whose loss splits the switches of a part.

    Notes
    -----
    igraph's bridges (Tarjan 1974) and articulation points, on the multigraph of the cables between switches.
    Cost: O(S + K).
    """
    ends = fabric.link_device
    links = np.flatnonzero((ends < fabric.switches).all(axis=1) & (ends[:, 0] != ends[:, 1]))
    graph = igraph.Graph(n=fabric.switches, edges=ends[links].tolist())
    return sorted(links[graph.bridges()].tolist()), sorted(graph.articulation_points())


def link_names(fabric: Fabric, links: Iterable[int]) -> list[str]:
    """How faults call these links."""
    return [fault.name for fault in link_faults(fabric, links)]
