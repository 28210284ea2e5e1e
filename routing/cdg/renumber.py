"""Convert arrays with one element for each CDG edge from one fabric to another that has lost or gained channels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.counterparts import channel_numbers
from routing.fabric import Channels, Fabric
from routing.rows import without_rows


def renumber(masks: npt.NDArray[np.uint16], fabric: Fabric, base: Fabric) -> npt.NDArray[np.uint16]:
    """Convert the VL masks of the CDG edges of ``fabric`` to the edge numbers of another fabric, ``base``.

    Edges over channels that ``base`` lacks are left out.
    """
    if np.array_equal(fabric.switch_guid, base.switch_guid):
        fewer, more = (base, fabric) if len(base.channels) < len(fabric.channels) else (fabric, base)
        number = channel_numbers(fewer, more)
        if (number >= 0).all():
            there = edges_without(more.channels, number)
            return without_rows(masks, np.unique(there)) if fewer is base else _spread(masks, there)
    return _renumber_each(masks, fabric, base)


def _spread(masks: npt.NDArray[np.uint16], between: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
    """Insert zeros into an array of VL masks.  ``between`` lists the indices at which the result has the zeros.

    If ``between`` has an index several times, one zero is inserted.
    """
    known = np.ones(len(masks) + len(np.unique(between)), bool)
    known[between] = False
    out = np.zeros(len(known), np.uint16)
    out[known] = masks
    return out


def edges_without(channels: Channels, left: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the numbers of all CDG edges over a lost channel.  ``left`` lists the channels that remain."""
    gone = np.ones(len(channels), bool)
    gone[left] = False
    edges, into = channels.edges, channels.into_first
    first, end = edges.first, np.append(edges.first, edges.count)[1:]
    numbers = [np.zeros(0, np.int64)]
    for c in np.flatnonzero(gone).tolist():
        s = channels.src[c]
        numbers.append(np.arange(first[c], end[c]))
        numbers.append(first[channels.into[into[s] : into[s + 1]]].astype(np.int64) + c - channels.first[s])
    return np.concatenate(numbers)


def _renumber_each(masks: npt.NDArray[np.uint16], fabric: Fabric, base: Fabric) -> npt.NDArray[np.uint16]:
    mine, theirs = fabric.channels, base.channels
    first, number = mine.edges.first, channel_numbers(fabric, base)
    out = np.zeros(theirs.edges.count, np.uint16)
    if not len(first):
        return out
    taken = np.flatnonzero(masks[first[0] :]) + int(first[0])
    before = np.searchsorted(first, taken, side="right") - 1
    k = taken - first[before]
    real = k < mine.edges.degree[before]
    taken, before, k = taken[real], before[real], k[real]
    source, target = number[before], number[mine.edges.after[before] + k]
    both = (source >= 0) & (target >= 0)
    taken, source, target = taken[both], source[both], target[both]
    out[theirs.edges.first[source] + target - theirs.edges.after[source]] = masks[taken]
    return out
