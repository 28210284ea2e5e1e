"""Paths of a dragonfly with at most one link between groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets, balance
from routing.engines.destinations import Destinations
from routing.engines.effort import refinement_passes
from routing.engines.path_selection import PathSelector, PathSet
from routing.fabric import Channels

NO_CHANNEL = 255
"""Entry of a tree at its root, and at switches without a path."""


def over_one_link(selector: PathSelector, group: npt.NDArray[np.int64]) -> PathSet | None:
    """Return balanced paths that use at most one link between groups.  Of all paths with at most one link between
    groups, these are the shortest.

    Parameters
    ----------
    selector
        The fabric, its destinations, and the options.
    group
        int64[S], group of each switch.

    Returns
    -------
    PathSet or None
        None if there are no such paths between some connected switches.

    Notes
    -----
    With at most one link between groups, only paths to a group use the links into this group.  So the paths to each
    group are balanced separately.  Cost: the cost of :func:`routing._kernels.balance.balance` for all destinations.
    """
    fabric, destinations, channels = selector.fabric, selector.destinations, selector.fabric.channels
    trees = np.full((len(destinations.root), fabric.switches), NO_CHANNEL, np.uint8)
    load = np.zeros(len(channels))
    local = group[channels.src] == group[channels.dst]
    for number in range(int(group.max(initial=-1)) + 1):
        members = group == number
        rows = np.flatnonzero(members[destinations.root])
        kept = np.flatnonzero(local | members[channels.dst])
        if len(rows) == 0 or len(kept) == 0:
            continue
        subset = _subset(channels, kept)
        found = balance(
            subset, np.ascontiguousarray(selector.inverse_capacity[kept]), selector.sources,
            _targets(destinations, members), passes=refinement_passes(fabric, selector.options),
            seed=selector.options.seed, threads=selector.options.threads,
        )  # fmt: skip
        there = found.next_channel != NO_CHANNEL
        own = kept[np.where(there, subset.first[:-1] + found.next_channel.astype(np.int64), 0)]
        trees[rows] = np.where(there, own - channels.first[:-1], NO_CHANNEL)
        load[kept] += found.load
    part = np.asarray(fabric.graph.connected_components("weak").membership)
    if ((trees != NO_CHANNEL).sum(axis=1) + 1 != np.bincount(part)[part[destinations.root]]).any():
        return None
    utilisation = load * selector.inverse_capacity
    mean = float(load.sum() / (1.0 / selector.inverse_capacity).sum()) if len(channels) else 0.0
    return PathSet("one link between groups", trees, load, float(utilisation.max(initial=0.0)), mean)


def _targets(destinations: Destinations, members: npt.NDArray[np.bool_]) -> Targets:
    """Return the destinations at the given switches (bool[S]) as input of the kernel."""
    chosen = members[destinations.root]
    sizes = np.add.reduceat(chosen, destinations.lmc_group_first[:-1], dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int32)
    root = np.ascontiguousarray(destinations.root[chosen])
    return Targets(first, root, np.ascontiguousarray(destinations.share[chosen]), np.zeros_like(root))


def _subset(channels: Channels, kept: npt.NDArray[np.int64]) -> Channels:
    """Return the channels whose numbers are in ``kept``, as input of the balancing kernel.

    The reverse channels and the ports are not adapted, because the kernel does not read them.
    """
    src, dst = np.ascontiguousarray(channels.src[kept]), np.ascontiguousarray(channels.dst[kept])
    into = np.argsort(dst, kind="stable").astype(np.int32)
    rows = np.arange(len(channels.first))
    return replace(
        channels, src=src, dst=dst, first=np.searchsorted(src, rows).astype(np.int32), into=into,
        into_first=np.searchsorted(dst[into], rows).astype(np.int32),
    )  # fmt: skip
