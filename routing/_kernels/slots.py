"""Numbers of the possible dependencies between the channels of a fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import TableError
from routing.fabric import Channels, Fabric

NOTHING = 256
"""Slots at the front that stand for no dependency (see csrc/cdg.h)."""


def slot_numbers(channels: Channels) -> tuple[npt.NDArray[np.int32], int]:
    """int32[C], the first slot of each channel, and the number of slots (see :class:`Slots`).

    Raises
    ------
    TableError
        There are more possible dependencies than can be numbered.
    """
    size = np.diff(channels.first)[channels.dst].astype(np.int64) + 2
    end = NOTHING + np.cumsum(size)
    count = int(end[-1]) if len(end) else NOTHING
    if count >= 1 << 31:
        raise TableError(f"{count} possible dependencies between channels are more than can be numbered")
    return (end - size).astype(np.int32), count


@dataclass(frozen=True, eq=False)
class Slots:
    """Numbers of the possible dependencies of a fabric, and the tables by which kernels find them.

    Attributes
    ----------
    exit
        uint8[S, 256], number among the channels of its switch of the channel behind a port; the out-degree for a port
        behind which no switch is, the out-degree + 1 for a cable back to the same switch.
    xfirst, xdst, dep_first
        int32[S+1], int32[X], int32[X] with X = C + 2 S: the extended channels (csrc/cdg.h).
    slot
        int32[C], the slot of the dependency of each channel on the first channel of the switch behind it.
    count
        Number of slots.
    """

    exit: npt.NDArray[np.uint8]
    xfirst: npt.NDArray[np.int32]
    xdst: npt.NDArray[np.int32]
    dep_first: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    count: int

    @classmethod
    def of(cls, fabric: Fabric) -> Slots:
        """Number the dependencies that the cables allow.  Cost: O(256 S + C)."""
        channels, switches = fabric.channels, fabric.switches
        rows = np.arange(switches)
        degree = np.diff(channels.first)
        exits = np.where(channels.at_port >= 0, channels.at_port - channels.first[:-1, None], degree[:, None])
        ends, ports = fabric.link_device, fabric.link_port
        back = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] < switches))
        exits[ends[back], ports[back]] = degree[ends[back]] + 1
        xfirst = (channels.first + 2 * np.arange(switches + 1)).astype(np.int32)
        place = np.arange(len(channels)) + 2 * channels.src
        xdst = np.empty(len(channels) + 2 * switches, np.int32)
        xdst[xfirst[1:] - 2], xdst[xfirst[1:] - 1], xdst[place] = switches, rows, channels.dst
        slot, count = slot_numbers(channels)
        dep_first = np.zeros(len(xdst), np.int32)
        dep_first[place] = slot
        return cls(exits.astype(np.uint8), xfirst, xdst, dep_first, slot, count)
