"""Compute detours around links and switches that are missing in a grid."""

from __future__ import annotations

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
    destination with the fewest hops.  All switches before it on the path keep their next hop.  So a path deviates as
    late as possible.

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
    Cost: O(D S log S) to find incomplete paths, O(S degree) for each destination that has one.
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
    for row in incomplete.tolist():
        _complete(fabric, bundles, int(roots[row]), hop[row], regular[row])


def next_switches(
    bundles: LinkBundles, hop: npt.NDArray[np.uint8], roots: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Return int64[D, S], the next switch by destination and switch.  It is the destination itself at the destination,
    and S where there is no next switch.

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

    ``following`` is the result of :func:`next_switches`, and ``roots`` as there.  Cost: O(D S log S).
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
    fabric: Fabric, bundles: LinkBundles, root: int, row: npt.NDArray[np.uint8], regular: npt.NDArray[np.bool_]
) -> None:
    """Complete the paths to the destination at switch ``root``.

    ``row`` (uint8[S]) is the bundle by which each switch sends; entries are added in place.  ``regular`` (bool[S]) is
    set to False for paths over added entries.
    """
    hop = row.tolist()
    first, dst = bundles.first.tolist(), bundles.dst.tolist()
    members = np.flatnonzero(fabric.component == fabric.component[root]).tolist()
    before: dict[int, list[int]] = {switch: [] for switch in members}
    for switch in members:
        if hop[switch] != NONE and switch != root:
            before[dst[first[switch] + hop[switch]]].append(switch)
    hops = {root: 0}
    _reach(before, hops, root)
    ended = [switch for switch in members if switch not in hops and hop[switch] == NONE]
    while len(hops) < len(members):
        # Switches without a next hop get one first.  Only if none of them has a neighbour with a path to the
        # destination, switches with a next hop change it.
        choices = _attachments(ended, hops, first, dst) or _attachments(members, hops, first, dst)
        length, switch, index = min(choices)
        if hop[switch] != NONE:
            before[dst[first[switch] + hop[switch]]].remove(switch)
        hop[switch] = index
        hops[switch] = length
        regular[switch] = False
        reached = _reach(before, hops, switch)
        regular[reached] = False
        ended = [one for one in ended if one not in hops]
    row[:] = hop


def _reach(before: dict[int, list[int]], hops: dict[int, int], start: int) -> list[int]:
    """Set the numbers of hops (``hops``) of all switches whose path to one destination leads through switch ``start``.
    Return these switches.

    ``before`` lists, for each switch, the switches that send to it.  ``hops[start]`` is set already.
    """
    found, at = [start], 0
    while at < len(found):
        here = found[at]
        for switch in before[here]:
            hops[switch] = hops[here] + 1
            found.append(switch)
        at += 1
    return found[1:]


def _attachments(
    switches: list[int], hops: dict[int, int], first: list[int], dst: list[int]
) -> list[tuple[int, int, int]]:
    """Return (hops, switch, index of the bundle) for each switch without a path that has a neighbour with a path.

    ``hops`` has the hops of the switches with a path.  ``first`` and ``dst`` list the bundles out of each switch, and
    the switch where each bundle ends.
    """
    return [
        (hops[dst[bundle]] + 1, switch, bundle - first[switch])
        for switch in switches
        if switch not in hops
        for bundle in range(first[switch], first[switch + 1])
        if dst[bundle] in hops
    ]
