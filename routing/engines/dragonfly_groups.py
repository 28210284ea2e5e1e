"""Find the groups of a dragonfly from the cables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.errors import RoutingError
from routing.fabric import Fabric

LEAST_INSIDE = 0.75
"""Least share of linked pairs among all pairs of switches of one group.  A division into groups with a lower share is
rejected.
"""

LEAST_BETWEEN = 0.75
"""Least share of linked pairs among all pairs of groups.  A division into groups with a lower share is rejected."""

THRESHOLDS = 40
"""Number of equal steps from 0 to 1.  The values between the steps are the tried thresholds for the similarity of two
linked switches (:func:`groups_of`).
"""


class NotADragonfly(RoutingError):
    """Error: the switches do not form groups as in a dragonfly."""


def groups_of(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return int64[S], the group of each switch.  Groups are numbered in the order of their first switches.

    Two switches of a group share nearly all neighbours within the group.  So the Jaccard similarity of their
    neighbourhoods exceeds the similarity of two linked switches of different groups.

    Several thresholds of the similarity are tried.  For each threshold, a link joins its two switches into one group if
    their similarity is at least the threshold.  Two shares rate the resulting division into groups: the share of linked
    pairs among all pairs of switches of one group, and the share of linked pairs among all pairs of groups.  The result
    is the division with the highest product of both shares.

    Raises
    ------
    NotADragonfly
        No division has two shares of at least three quarters each.

    Notes
    -----
    Cost: O(C degree), and O(C) for each threshold.
    """
    import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

    channels, switches = fabric.channels, fabric.switches
    ahead = channels.src < channels.dst
    links = np.unique(np.stack([channels.src[ahead], channels.dst[ahead]], axis=1), axis=0)
    graph = igraph.Graph(n=switches, edges=links)
    likeness = np.array(graph.similarity_jaccard(pairs=links.tolist(), loops=True)) if len(links) else np.zeros(0)
    best, fit = None, 0.0
    for threshold in np.arange(1, THRESHOLDS) / THRESHOLDS:
        chosen = igraph.Graph(n=switches, edges=links[likeness >= threshold])
        group = np.asarray(chosen.connected_components().membership, np.int64)
        inside, between = _shares(group, links)
        if min(inside - LEAST_INSIDE, between - LEAST_BETWEEN) >= 0 and inside * between > fit:
            best, fit = group, inside * between
    if best is None:
        raise NotADragonfly(
            "the switches do not form the groups of a dragonfly, in which all switches are linked, and all groups "
            "(use another engine, such as nue)"
        )
    return best


def _shares(group: npt.NDArray[np.int64], links: npt.NDArray[np.int32]) -> tuple[float, float]:
    """Return two shares of linked pairs: among all pairs of switches of one group, and among all pairs of groups.

    Both shares are 0 if no two switches are in one group, or if there is only one group.
    """
    size = np.bincount(group)
    ends = group[links]
    within = ends[:, 0] == ends[:, 1]
    pairs, groups = int((size * (size - 1) // 2).sum()), len(size)
    if pairs == 0 or groups < 2:
        return 0.0, 0.0
    between = np.unique(np.sort(ends[~within], axis=1), axis=0)
    return float(within.sum()) / pairs, len(between) / (groups * (groups - 1) / 2)
