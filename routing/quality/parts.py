"""Quality figures for parts of the traffic: for each class of end ports, for a thin leaf, and for the stretch of the
paths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from routing.class_settings import PortClass
from routing.endports import reference_rate
from routing.fabric import Fabric
from routing.quality.flows import Flows

SIGNIFICANT = 1.01
"""A leaf counts as thin if unlimited capacity of its links would raise the all-to-all share by at least this factor."""

_LIDS_AT_ONCE = 256


@dataclass(frozen=True)
class ClassShare:
    """Figures of all-to-all traffic among the end ports of one class.

    Attributes
    ----------
    label
        Name of the class.
    endports
        Number of end ports of the class that have a LID and are cabled to a switch.
    counted
        Whether the class has a positive weight.  Otherwise its end ports count in no traffic pattern.
    all_to_all
        Share of the reference rate at which all-to-all traffic among these end ports alone saturates the first channel.
        The share is infinite if this traffic uses no channel, and NaN if the end ports do not count.
    bisection_mean, permutation_mean
        Mean share of the flows of random bisections, and of random permutations, among these end ports alone.  NaN if
        the end ports do not count, if there are fewer than two end ports, or if no pattern was requested.
    """

    label: str
    endports: int
    counted: bool
    all_to_all: float
    bisection_mean: float
    permutation_mean: float


@dataclass(frozen=True)
class ThinLeaf:
    """A switch with end ports whose links alone limit the all-to-all share.

    Attributes
    ----------
    switch, endports
        Name of the switch, and the number of its end ports with a positive weight in traffic patterns.
    all_to_all_without
        All-to-all share if the channels to and from this switch had unlimited capacity.
    """

    switch: str
    endports: int
    all_to_all_without: float


@dataclass(frozen=True)
class Stretch:
    """Length of the paths between end ports compared with the shortest paths, over all pairs on different switches.

    Attributes
    ----------
    mean, most
        Mean and largest value of a ratio: the number of channels of a path, divided by the number of channels of a
        shortest path between the same switches.
    more_mean, more_most
        Mean and largest number of additional channels of a path, compared with a shortest path.
    """

    mean: float
    most: float
    more_mean: float
    more_most: int


def share_of(fabric: Fabric, loads: npt.NDArray[np.float64], endports: npt.NDArray[np.int64]) -> float:
    """Return the share of the reference rate at which all-to-all traffic among end ports saturates the first channel.

    In a fabric of several connected parts, each end port sends only within its part.  ``loads`` (float64[C]) is the
    number of flows on each channel, and ``endports`` (int64[N]) has the rows of the end ports.  The share is infinite
    if no channel carries traffic.
    """
    used = np.flatnonzero(loads > 0)
    if not len(used):
        return math.inf
    room = fabric.channels.capacity[used] / loads[used]
    others = others_in_part(fabric, endports)[fabric.component[fabric.channels.src[used]]]
    return float((room * others).min()) / reference_rate(fabric)


def others_in_part(fabric: Fabric, endports: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of receivers of an end port in all-to-all traffic, for each connected part of the fabric.

    An end port sends to all other end ports of its part.  ``endports`` (int64[N]) has the rows of all end ports that
    send and receive.  The result is an array of int64 with one element for each part.
    """
    part = fabric.component[fabric.endport_switch[endports]]
    return np.bincount(part, minlength=int(fabric.component.max(initial=-1)) + 1) - 1


def class_shares(
    flows: Flows, whole: tuple[float, float, float], *, seed: int, bisections: int, permutations: int
) -> tuple[ClassShare, ...]:
    """Return the figures of each class that has end ports.

    Parameters
    ----------
    flows
        Evaluation of the tables for traffic among all counted end ports.
    whole
        Shares of all-to-all traffic, of bisections and of permutations among all counted end ports.  If one class has
        all counted end ports, these shares are the figures of this class.
    seed, bisections, permutations
        Seed and numbers of the random patterns.
    """
    fabric = flows.fabric
    there = np.flatnonzero((fabric.endport_switch >= 0) & (fabric.endport_lid > 0))
    found = []
    for own in PortClass:
        rows = there[fabric.endport_class[there] == own]
        if not len(rows):
            continue
        counted = bool(fabric.counted[rows[0]])
        shares = math.nan, math.nan, math.nan
        if counted and len(rows) == len(flows.endports):
            shares = whole
        elif counted:
            among = flows.among(rows)
            shares = (
                share_of(fabric, among.all_to_all(hops=False)[0], rows),
                mean_share(among.shares(bisections, partial(among.bisections, seed))[0]),
                mean_share(among.shares(permutations, partial(among.permutations, seed))[0]),
            )
        found.append(ClassShare(own.label, len(rows), counted, *shares))
    return tuple(found)


def mean_share(shares: npt.NDArray[np.float64]) -> float:
    """Return the mean of the shares of several patterns (float64[N]); NaN if there are no patterns."""
    return math.fsum(shares.tolist()) / len(shares) if len(shares) else math.nan


def thin_leaf(fabric: Fabric, loads: npt.NDArray[np.float64], endports: npt.NDArray[np.int64]) -> ThinLeaf | None:
    """Return the leaf whose links alone limit the all-to-all share; None if there is no such leaf.

    The leaf is a switch with end ports at one end of the most utilised channel.  At the other end is a switch without
    end ports.

    Parameters
    ----------
    fabric, loads
        The fabric; float64[C], all-to-all load of each channel.
    endports
        int64[N], rows of the end ports that count.
    """
    channels = fabric.channels
    if not (loads > 0).any():
        return None
    others = np.maximum(others_in_part(fabric, endports), 1)[fabric.component[channels.src]]
    busiest = int(np.argmax(loads / channels.capacity / others))
    ends = np.array([channels.src[busiest], channels.dst[busiest]])
    leaves = ends[fabric.senders_at[ends] > 0]
    if len(leaves) != 1:
        return None
    leaf = int(leaves[0])
    elsewhere = np.where((channels.src == leaf) | (channels.dst == leaf), 0.0, loads)
    without = share_of(fabric, elsewhere, endports)
    if without < SIGNIFICANT * share_of(fabric, loads, endports):
        return None
    return ThinLeaf(fabric.labels[leaf], int(fabric.senders_at[leaf]), without)


def stretch(flows: Flows) -> Stretch | None:
    """Return the stretch of all paths that arrive; None if no path between different switches arrives.

    Notes
    -----
    The paths of a pair to the 2^LMC LIDs of the destination have equal weights.  Cost: O(S) for each hop and LID, and a
    breadth-first search from each switch with end ports.
    """
    fabric = flows.fabric
    at, senders = np.unique(fabric.endport_switch[flows.endports], return_counts=True)
    lids = np.concatenate([np.arange(0, dtype=np.int64), *_lids_of(fabric, flows.endports)])
    shortest = np.full((fabric.switches, len(at)), np.inf)
    if len(at):
        shortest[:, :] = np.asarray(fabric.graph.distances(source=at.tolist(), mode="in"), float).T
    position = np.zeros(fabric.switches, np.int64)
    position[at] = np.arange(len(at))
    total = ratios = more = 0.0
    most, more_most = 0.0, 0
    for start in range(0, len(lids), _LIDS_AT_ONCE):
        block = lids[start : start + _LIDS_AT_ONCE]
        root = fabric.lids.switch[block]
        hops = _hops(flows, block)[at]
        least = shortest[np.ix_(at, position[root])]
        rows, columns = np.nonzero((hops > 0) & np.isfinite(least))
        if not len(rows):
            continue
        weight = senders[rows] / (1 << fabric.endport_lmc[fabric.lids.endport[block[columns]]].astype(np.int64))
        taken, best = hops[rows, columns], least[rows, columns]
        total += math.fsum(weight.tolist())
        ratios += math.fsum((weight * taken / best).tolist())
        more += math.fsum((weight * (taken - best)).tolist())
        most, more_most = max(most, float((taken / best).max())), max(more_most, int((taken - best).max()))
    return Stretch(ratios / total, most, more / total, more_most) if total else None


def _lids_of(fabric: Fabric, rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return the LIDs of the given end ports, as one array for each end port."""
    base, count = fabric.endport_lid[rows].astype(np.int64), 1 << fabric.endport_lmc[rows].astype(np.int64)
    return [np.arange(low, low + number) for low, number in zip(base.tolist(), count.tolist(), strict=True)]


def _hops(flows: Flows, lids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return int64[S, len(lids)], the number of channels on the path from each switch to each LID; -1 if the path does
    not arrive.
    """
    fabric, channels = flows.fabric, flows.fabric.channels
    lft, root = flows.routes.lft[:, lids], fabric.lids.switch[lids]
    channel = channels.at_port[np.arange(fabric.switches)[:, None], lft]
    beyond = np.where(channel >= 0, np.append(channels.dst, 0)[channel], -1)
    columns = np.arange(len(lids))
    delivers = lft[root, columns] == fabric.lids.port[lids]
    hops = np.full(beyond.shape, -1, np.int64)
    hops[root[delivers], columns[delivers]] = 0
    beyond[root, columns] = -1
    while True:
        ahead = hops[beyond, columns[None, :]]
        more = (hops < 0) & (beyond >= 0) & (ahead >= 0)
        if not more.any():
            return hops
        hops[more] = ahead[more] + 1
