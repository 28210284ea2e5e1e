"""An order of the switches for Up*/Down* in which all reach the first one again, after links are lost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.recheck import turns_against
from routing._kernels.repair import Ground, Waits
from routing._kernels.up_down import climbing
from routing.reroute.ground import Frame, slots_without

MOST_TRIALS = 16


def rejoin(frame: Frame, waits: Waits) -> Waits | None:
    """What may wait for what, in an order of the switches that leads everybody up to the first of its part.

    A switch whose links up are all lost is a second top: ways between what lies below it and the rest would have to
    lead down and up again.  A neighbour that has another way up is put before it, which leaves the turns in use as
    they are if hardly any lead through that neighbour.  Where no neighbour has one, all that is cut off hangs on
    switches below it (above a lost switch of a tree, say): one of them is put before all of it.  What is allowed for
    over channels that are gone is let go if it is in the way.

    Returns
    -------
    Waits or None
        As given where there is no second top; None where no switch can be put before one.

    Notes
    -----
    Cost: a pass over the channels; for a second top one over all turns for each switch that is tried, 32 at most.
    """
    if waits.position is None or not len(second_tops(frame.ground, waits.position)):
        return waits
    channels = frame.base.channels
    kept = waits.masks.copy()
    kept[slots_without(channels, frame.channel)] = 0
    position: npt.NDArray[np.int32] | None = waits.position
    while position is not None and len(tops := second_tops(frame.ground, position)):
        joined = _joined(frame.ground, position, kept, int(tops[0]), len(tops))
        position = joined if joined is not None else _entered_from_below(frame.ground, position, kept, len(tops))
    if position is None:
        return None
    order = climbing(channels, position)
    fits = turns_against(channels, (waits.masks != 0).astype(np.uint16), order[np.newaxis]) == 0
    return Waits(waits.masks if fits else kept, np.tile(order, (len(waits.order), 1)), position)


def second_tops(ground: Ground, position: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Switches without a link up that are not the first of their part, in that order."""
    channels = ground.channels
    up = (ground.alive != 0) & (position[channels.dst] < position[channels.src])
    is_top = ground.part >= 0
    is_top[channels.src[up]] = False
    tops = np.flatnonzero(is_top)
    tops = tops[np.argsort(position[tops])]
    return np.delete(tops, np.unique(ground.part[tops], return_index=True)[1])


def _joined(
    ground: Ground, position: npt.NDArray[np.int32], masks: npt.NDArray[np.uint16], top: int, tops: int
) -> npt.NDArray[np.int32] | None:
    """The order with a neighbour that has another way up before a second top; None if a turn in use is in the way."""
    near = _neighbours(ground, top)
    joining = near[~cut_off(ground, position)[near]]
    for x in joining[np.argsort(-position[joining])][:MOST_TRIALS].tolist():
        moved = _moved(position, top, x, near[near != x])
        if _is_better(ground, moved, masks, tops):
            return moved
    return None


def _entered_from_below(
    ground: Ground, position: npt.NDArray[np.int32], masks: npt.NDArray[np.uint16], tops: int
) -> npt.NDArray[np.int32] | None:
    """The order with all that is cut off right behind a switch below it; None if a turn in use is in the way."""
    channels, is_cut_off = ground.channels, cut_off(ground, position)
    alive = ground.alive != 0
    into = np.flatnonzero(alive & is_cut_off[channels.src] & ~is_cut_off[channels.dst])
    # As far back as a switch may go that stays behind all that lies above it.
    above = np.full(len(position), -1, np.int32)
    up = alive & ~is_cut_off[channels.dst] & (position[channels.dst] < position[channels.src])
    np.maximum.at(above, channels.src[up], position[channels.dst[up]])
    into = into[np.lexsort((position[channels.src[into]], above[channels.dst[into]]))]
    gates = into[np.sort(np.unique(channels.dst[into], return_index=True)[1])]
    for x, gate in zip(channels.src[gates][:MOST_TRIALS].tolist(), channels.dst[gates].tolist(), strict=False):
        moved = _behind(position, gate, above, _inverted(ground, position, is_cut_off, x))
        if _is_better(ground, moved, masks, tops):
            return moved
    return None


def cut_off(ground: Ground, position: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """bool[S], from which no way that leads up only ends at the first switch of its part."""
    channels = ground.channels
    up = np.flatnonzero((ground.alive != 0) & (position[channels.dst] < position[channels.src]))
    there = ground.part < 0
    for part in np.unique(ground.part[ground.part >= 0]):
        members = np.flatnonzero(ground.part == part)
        there[members[position[members].argmin()]] = True
    while len(more := np.flatnonzero(there[channels.dst[up]] & ~there[channels.src[up]])):
        there[channels.src[up[more]]] = True
    return ~there


def _inverted(
    ground: Ground, position: npt.NDArray[np.int32], is_cut_off: npt.NDArray[np.bool_], x: int
) -> npt.NDArray[np.intp]:
    """What is cut off in an order in which x comes first: then what leads from x up to a second top, then the rest."""
    way = [x]
    while True:
        near = _neighbours(ground, way[-1])
        higher = near[is_cut_off[near] & (position[near] < position[way[-1]])]
        if not len(higher):
            break
        way.append(int(higher[position[higher].argmin()]))
    rest = is_cut_off.copy()
    rest[way] = False
    others = np.flatnonzero(rest)
    return np.concatenate([np.array(way, np.intp), others[position[others].argsort()]])


def _behind(
    position: npt.NDArray[np.int32], gate: int, above: npt.NDArray[np.int32], members: npt.NDArray[np.intp]
) -> npt.NDArray[np.int32]:
    """The order with a switch right behind those above it, and members in their order right behind that."""
    key = position.astype(np.float64)
    key[gate] = above[gate] + 0.25
    key[members] = above[gate] + 0.5 + 0.25 * np.arange(len(members)) / len(members)
    return _order_of(key)


def _is_better(ground: Ground, position: npt.NDArray[np.int32], masks: npt.NDArray[np.uint16], tops: int) -> bool:
    """Whether there are fewer second tops than so many, and no turn in use leads down and up."""
    if len(second_tops(ground, position)) >= tops:
        return False
    order = climbing(ground.channels, position)[np.newaxis]
    return not turns_against(ground.channels, (masks != 0).astype(np.uint16), order)


def _neighbours(ground: Ground, s: int) -> npt.NDArray[np.int32]:
    first, last = ground.channels.first[s], ground.channels.first[s + 1]
    return np.unique(ground.channels.dst[first:last][ground.alive[first:last] != 0])


def _moved(position: npt.NDArray[np.int32], top: int, x: int, others: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The order with x right before a second top, and both as far back as its other neighbours let that go."""
    key = position.astype(np.float64)
    key[top] = position[others].min(initial=len(position)) - 0.25
    key[x] = key[top] - 0.25
    return _order_of(key)


def _order_of(key: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    position = np.empty(len(key), np.int32)
    position[np.argsort(key, kind="stable")] = np.arange(len(key), dtype=np.int32)
    return position
