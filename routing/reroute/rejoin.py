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
    they are if hardly any lead through that neighbour.  What is allowed for over channels that are gone is let go if
    it is in the way.

    Returns
    -------
    Waits or None
        As given where there is no second top; None where no neighbour can be put before one.

    Notes
    -----
    Cost: a pass over the channels; for a second top one over all turns for each neighbour that is tried, 32 at most.
    """
    if waits.position is None or not len(second_tops(frame.ground, waits.position)):
        return waits
    channels = frame.base.channels
    kept = waits.masks.copy()
    kept[slots_without(channels, frame.channel)] = 0
    position: npt.NDArray[np.int32] | None = waits.position
    while position is not None and len(tops := second_tops(frame.ground, position)):
        position = _joined(frame.ground, position, kept, int(tops[0]), len(tops))
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
    """The order with a neighbour of a second top before it, such that no turn in use leads down and up; None: none."""
    near = _neighbours(ground, top)
    used = (masks != 0).astype(np.uint16)
    for x in near[np.argsort(-position[near])][:MOST_TRIALS].tolist():
        moved = _moved(position, top, x, near[near != x])
        if len(second_tops(ground, moved)) < tops and not turns_against(
            ground.channels, used, climbing(ground.channels, moved)[np.newaxis]
        ):
            return moved
    return None


def _neighbours(ground: Ground, s: int) -> npt.NDArray[np.int32]:
    first, last = ground.channels.first[s], ground.channels.first[s + 1]
    return np.unique(ground.channels.dst[first:last][ground.alive[first:last] != 0])


def _moved(position: npt.NDArray[np.int32], top: int, x: int, others: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The order with x right before a second top, and both as far back as its other neighbours let that go."""
    key = position.astype(np.float64)
    key[top] = position[others].min(initial=len(position)) - 0.25
    key[x] = key[top] - 0.25
    moved = np.empty_like(position)
    moved[np.argsort(key, kind="stable")] = np.arange(len(position), dtype=np.int32)
    return moved
