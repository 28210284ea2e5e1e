"""Compute detours around links and switches that are missing in a grid."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.fabric import Fabric

NONE = 255


def add_detours(
    fabric: Fabric,
    bundles: LinkBundles,
    hop: npt.NDArray[np.uint8],
    regular: npt.NDArray[np.bool_],
    roots: npt.NDArray[np.int64] | None = None,
) -> None:
    """Complete the paths to all destinations, by changing ``hop`` in place.

    If a path ends at a switch other than the destination, this switch gets a next hop: the neighbour that reaches the
    destination with the fewest hops.  The earlier switches of the path keep their next hops if possible.  So a path
    deviates as late as possible.

    Parameters
    ----------
    fabric, bundles
        The fabric and its bundles of parallel links.
    hop
        uint8[D, S] by destination and switch: index of the bundle, 255 where the path ends.
    regular
        bool[D, S]: set to False for paths over a next hop that is added here.
    roots
        int64[D], switch of each destination; None: each switch is a destination.

    Notes
    -----
    Cost: O(D S log S) to find incomplete paths, and O(S degree) for each destination with incomplete paths.
    """
    component, every = fabric.component, np.arange(len(hop))
    roots = every if roots is None else roots
    connected = component[roots][:, None] == component[None, :]
    ends = connected & (hop == NONE)
    ends[every, roots] = False
    if not ends.any():
        return  # No detour is necessary here, because every hop reduces the distance to the destination.
    hops = count_hops(next_switches(bundles, hop, roots), roots)
    incomplete = np.flatnonzero((connected & (hops < 0)).any(axis=1))
    # Python reads lists faster than arrays.
    after = [part.tolist() for part in np.split(bundles.dst, bundles.first[1:-1])]
    before: list[list[tuple[int, int]]] = [[] for _ in after]
    for switch, there in enumerate(after):
        for index, neighbour in enumerate(there):
            before[neighbour].append((switch, index))
    for row in incomplete.tolist():
        members = np.flatnonzero(component == component[roots[row]]).tolist()
        _complete(members, after, before, int(roots[row]), row=hop[row], regular=regular[row])


def next_switches(
    bundles: LinkBundles, hop: npt.NDArray[np.uint8], roots: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Return int64[D, S], the next switch by destination and switch.  At the destination, the value is the destination
    itself.  Where there is no next switch, the value is S.

    ``hop`` is uint8[D, S] by destination and switch: index of the bundle of parallel links, 255 where there is no next
    hop.  ``roots`` is int64[D], the switch of each destination; None: each switch is a destination.
    """
    switches = hop.shape[1]
    there = np.append(bundles.dst, 0)[np.minimum(bundles.first[:-1][None, :] + hop, len(bundles.dst))]
    following = np.where(hop == NONE, switches, there).astype(np.int64)
    every = np.arange(len(hop))
    roots = every if roots is None else roots
    following[every, roots] = roots
    return np.asarray(following)


def count_hops(following: npt.NDArray[np.int64], roots: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
    """Return int64[D, S], the hops of the paths by destination and switch; -1 for a path that does not end at its
    destination.

    ``following`` is the result of :func:`next_switches`, and ``roots`` the argument of that function.  Cost: O(D S log
    S).
    """
    switches = following.shape[1]
    roots = np.arange(switches) if roots is None else roots
    reached = np.pad(following, ((0, 0), (0, 1)), constant_values=switches)
    hops = np.asarray(reached != np.arange(switches + 1), np.int64)
    for _ in range(max(1, switches.bit_length())):
        hops += np.take_along_axis(hops, reached, axis=1)
        reached = np.take_along_axis(reached, reached, axis=1)
    hops[reached != roots[:, None]] = -1
    return np.ascontiguousarray(hops[:, :switches])


def _complete(
    members: list[int],
    after: list[list[int]],
    before: list[list[tuple[int, int]]],
    root: int,
    *,
    row: npt.NDArray[np.uint8],
    regular: npt.NDArray[np.bool_],
) -> None:
    """Complete the paths to the destination at switch ``root``.

    ``members`` are the switches that can reach ``root``.  ``after[s]`` has the switches to which the bundles of switch
    ``s`` lead.  ``before[s]`` has pairs for the bundles that lead to switch ``s``: the switch that sends, and the index
    of the bundle at that switch.  ``row`` (uint8[S]) is the bundle by which each switch sends;
    entries are added in place.  ``regular`` (bool[S]) is set to False for paths over added entries.
    """
    hop = row.tolist()
    senders: dict[int, list[int]] = {switch: [] for switch in members}
    for switch in members:
        if hop[switch] != NONE and switch != root:
            senders[after[switch][hop[switch]]].append(switch)
    hops = {root: 0}
    _reach(senders, hops, root)
    # A choice is a possible next hop for a switch whose path does not reach the destination: a neighbour that has a
    # path to the destination.  Each choice is a tuple of four values: whether the switch already has a next hop, the
    # hops to the destination with the new next hop, the switch, and the index of the bundle to the neighbour.  The
    # smallest tuple is taken first.  So the next hop of a switch is replaced only if there is no choice for any switch
    # without a next hop.
    missing = (switch for switch in members if switch not in hops)
    links = ((switch, index, to) for switch in missing for index, to in enumerate(after[switch]) if to in hops)
    choices = [(hop[switch] != NONE, hops[to] + 1, switch, index) for switch, index, to in links]
    heapify(choices)
    while len(hops) < len(members):
        diverted, length, switch, index = heappop(choices)
        if switch in hops:
            continue
        if diverted:
            senders[after[switch][hop[switch]]].remove(switch)
        row[switch] = index
        hops[switch] = length
        reached = _reach(senders, hops, switch)
        regular[reached] = False
        for here in reached:
            for other, back in before[here]:
                if other not in hops:
                    heappush(choices, (hop[other] != NONE, hops[here] + 1, other, back))


def _reach(senders: dict[int, list[int]], hops: dict[int, int], start: int) -> list[int]:
    """Set the numbers of hops (``hops``) of all switches whose path to one destination leads through switch ``start``.
    Return these switches, beginning with ``start``.

    ``senders`` lists, for each switch, the switches that send to this switch.  ``hops[start]`` is set already.
    """
    found = [start]
    for here in found:  # The loop also visits the switches that it appends.
        for switch in senders[here]:
            hops[switch] = hops[here] + 1
            found.append(switch)
    return found
