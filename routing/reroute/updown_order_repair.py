"""Repair the Up*/Down* order of the switches after faults: give every switch an upward path to the root again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import RepairFabric
from routing.cdg.acyclic import AcyclicCdg, Cdg
from routing.reroute.base_fabric import BaseNumbering

MOST_TRIALS = 16


def reconnect_order(frame: BaseNumbering, dependencies: AcyclicCdg) -> AcyclicCdg | None:
    """Repair the Up*/Down* order of the switches, so that each connected part of the fabric has one root.

    An orphan root is a switch that lost all its upward links.  The orphan root and the switches below it are cut off:
    they have no upward path to the root of their part, so that paths to other switches would have to go down and up
    again.

    Two moves are tried, one after the other.  The new order must allow all dependencies over channels that still exist.

    1. Place a neighbour of the orphan root right above the orphan root.  This neighbour must not be cut off.  The move
       is often possible only if few paths use the neighbour.
    2. Place a switch that is not cut off, but is linked to a cut-off switch, above all cut-off switches.  This move
       helps, for example, if a tree has lost a switch below its top switches.

    If the new order does not allow all dependencies, the dependencies over lost channels are dropped.

    Returns
    -------
    AcyclicCdg or None
        The dependencies with the new order; ``dependencies`` itself if there is no orphan root; None if orphan roots
        remain and no move is possible.

    Notes
    -----
    Cost: a pass over the channels.  In addition, each orphan root costs a pass over all CDG edges for each switch that
    is tried, at most 32 switches.
    """
    if dependencies.position is None or not len(orphan_roots(frame.repair_fabric, dependencies.position)):
        return dependencies
    kept = dependencies.among(frame.channel)
    position: npt.NDArray[np.int32] | None = dependencies.position
    while position is not None and len(tops := orphan_roots(frame.repair_fabric, position)):
        joined = _attach_via_neighbour(frame.repair_fabric, position, kept, int(tops[0]), len(tops))
        position = joined if joined is not None else _attach_via_child(frame.repair_fabric, position, kept, len(tops))
    if position is None:
        return None
    return dependencies.along(position, dependencies if dependencies.follows_switches(position) else kept)


def orphan_roots(repair_fabric: RepairFabric, position: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Return the orphan roots: switches without an upward link, except the root of each connected part of the fabric.

    ``position`` (int32[S]) is the position of each switch in the Up*/Down* order.  The orphan roots are sorted by it.
    """
    channels = repair_fabric.channels
    ahead = np.where(repair_fabric.alive != 0, position.take(channels.dst), np.iinfo(position.dtype).max)
    linked = np.flatnonzero(np.diff(channels.first))
    is_top = repair_fabric.part >= 0
    is_top[linked] &= np.minimum.reduceat(ahead, channels.first[linked]) >= position[linked]
    tops = np.flatnonzero(is_top)
    tops = tops[np.argsort(position[tops])]
    return np.delete(tops, np.unique(repair_fabric.part[tops], return_index=True)[1])


def _attach_via_neighbour(
    repair_fabric: RepairFabric, position: npt.NDArray[np.int32], kept: Cdg, top: int, tops: int
) -> npt.NDArray[np.int32] | None:
    """Give the switch ``top`` an upward link: move one of its neighbours to a position right above ``top``.

    ``position`` (int32[S]) is the position of each switch in the Up*/Down* order, ``kept`` the dependencies that must
    stay allowed, and ``tops`` the number of orphan roots.  The neighbour must have an upward path that does not lead
    through ``top``.
    """
    near = _neighbours(repair_fabric, top)
    joining = near[~cut_off(repair_fabric, position)[near]]
    for x in joining[np.argsort(-position[joining])][:MOST_TRIALS].tolist():
        moved = _moved_within_order(position, top, x, near[near != x])
        if _is_better(repair_fabric, moved, kept, tops):
            return moved
    return None


def _attach_via_child(
    repair_fabric: RepairFabric, position: npt.NDArray[np.int32], kept: Cdg, tops: int
) -> npt.NDArray[np.int32] | None:
    """Place a switch that has an upward path above all cut-off switches, which have none.

    The placed switch is linked to a cut-off switch.  At most :data:`MOST_TRIALS` switches are tried.  ``tops`` is the
    number of orphan roots, ``kept`` the dependencies that must stay allowed.  Returns the new position of each switch
    in the Up*/Down* order, or None if no such move is valid.
    """
    channels, is_cut_off = repair_fabric.channels, cut_off(repair_fabric, position)
    alive = repair_fabric.alive != 0
    into = np.flatnonzero(alive & is_cut_off[channels.src] & ~is_cut_off[channels.dst])
    # A switch must stay after all switches above it in the Up*/Down* order.  Its earliest position is therefore right
    # after the last switch above it.
    above = np.full(len(position), -1, np.int32)
    up = alive & ~is_cut_off[channels.dst] & (position[channels.dst] < position[channels.src])
    np.maximum.at(above, channels.src[up], position[channels.dst[up]])
    into = into[np.lexsort((position[channels.src[into]], above[channels.dst[into]]))]
    gates = into[np.sort(np.unique(channels.dst[into], return_index=True)[1])]
    for x, gate in zip(channels.src[gates][:MOST_TRIALS].tolist(), channels.dst[gates].tolist(), strict=False):
        moved = _move_after(position, gate, above, _inverted(repair_fabric, position, is_cut_off, x))
        if _is_better(repair_fabric, moved, kept, tops):
            return moved
    return None


def cut_off(repair_fabric: RepairFabric, position: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S], whether each switch is cut off: no path of upward links leads to the root of its connected part.

    ``position`` (int32[S]) is the position of each switch in the Up*/Down* order.  A link leads upward if it leads to a
    lower position.
    """
    channels = repair_fabric.channels
    up = np.flatnonzero((repair_fabric.alive != 0) & (position[channels.dst] < position[channels.src]))
    there = repair_fabric.part < 0
    for part in np.unique(repair_fabric.part[repair_fabric.part >= 0]):
        members = np.flatnonzero(repair_fabric.part == part)
        there[members[position[members].argmin()]] = True
    while len(more := np.flatnonzero(there[channels.dst[up]] & ~there[channels.src[up]])):
        there[channels.src[up[more]]] = True
    return ~there


def _inverted(
    repair_fabric: RepairFabric, position: npt.NDArray[np.int32], is_cut_off: npt.NDArray[np.bool_], x: int
) -> npt.NDArray[np.intp]:
    """Return the cut-off switches (switches without an upward path to the root) in their new Up*/Down* order.

    Switch ``x`` comes first, then the switches of a path that leads up from ``x`` over cut-off switches.  All other
    cut-off switches follow in their old order.  ``position`` (int32[S]) is the position of each switch in the old
    order, and ``is_cut_off`` marks the cut-off switches.
    """
    path = [x]
    while True:
        near = _neighbours(repair_fabric, path[-1])
        higher = near[is_cut_off[near] & (position[near] < position[path[-1]])]
        if not len(higher):
            break
        path.append(int(higher[position[higher].argmin()]))
    rest = is_cut_off.copy()
    rest[path] = False
    others = np.flatnonzero(rest)
    return np.concatenate([np.array(path, np.intp), others[position[others].argsort()]])


def _move_after(
    position: npt.NDArray[np.int32], gate: int, above: npt.NDArray[np.int32], members: npt.NDArray[np.intp]
) -> npt.NDArray[np.int32]:
    """Return a new Up*/Down* order, in which switch ``gate`` is above all switches without an upward path.

    ``gate`` moves up as far as possible: right after the last of its upper neighbours that are not cut off.  The
    switches without an upward path (``members``) follow right after ``gate``, in the given sequence.

    ``position`` has the position of each switch in the old order.  ``above`` has, for each switch, the old position of
    the last upper neighbour that is not cut off; -1 if there is none.
    """
    key = position.astype(np.float64)
    key[gate] = above[gate] + 0.25
    key[members] = above[gate] + 0.5 + 0.25 * np.arange(len(members)) / len(members)
    return _order_of(key)


def _is_better(repair_fabric: RepairFabric, position: npt.NDArray[np.int32], kept: Cdg, tops: int) -> bool:
    """Return whether a new Up*/Down* order of the switches is valid and better than the old order.

    The new order is better if it has fewer orphan roots (switches without an upward link) than ``tops``.  The new order
    is valid if no dependency in ``kept`` leads down and then up by this order.
    """
    return len(orphan_roots(repair_fabric, position)) < tops and kept.follows_switches(position)


def _neighbours(repair_fabric: RepairFabric, s: int) -> npt.NDArray[np.int32]:
    first, last = repair_fabric.channels.first[s], repair_fabric.channels.first[s + 1]
    return np.unique(repair_fabric.channels.dst[first:last][repair_fabric.alive[first:last] != 0])


def _moved_within_order(
    position: npt.NDArray[np.int32], top: int, x: int, others: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return a new Up*/Down* order in which switch ``x`` is right above switch ``top``.

    ``top`` has no upward link in the old order.  ``others`` holds all neighbours of ``top`` except ``x``.  ``x`` and
    ``top`` come right before the first switch of ``others``.  ``position`` is the position of each switch in the old
    order.
    """
    key = position.astype(np.float64)
    key[top] = position[others].min(initial=len(position)) - 0.25
    key[x] = key[top] - 0.25
    return _order_of(key)


def _order_of(key: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    position = np.empty(len(key), np.int32)
    position[np.argsort(key, kind="stable")] = np.arange(len(key), dtype=np.int32)
    return position
