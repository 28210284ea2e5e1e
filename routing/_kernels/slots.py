"""Numbering of the possible dependencies (CDG edges) between the channels of a fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import TableError
from routing.fabric import Channels, Fabric

NOTHING = 256
"""Number of slots at the front that do not stand for a dependency (see csrc/cdg/trace.h)."""


def slot_numbers(channels: Channels) -> tuple[npt.NDArray[np.int32], int]:
    """Return the number of the first possible dependency of each channel (see :class:`Slots`).

    Returns
    -------
    slot
        int32[C]: the first slot of each channel.
    count
        Number of slots.

    Raises
    ------
    TableError
        There are more possible dependencies than an int32 can number.
    """
    size = np.diff(channels.first)[channels.dst].astype(np.int64) + 2
    end = NOTHING + np.cumsum(size)
    count = int(end[-1]) if len(end) else NOTHING
    if count >= 1 << 31:
        raise TableError(f"{count} possible dependencies between channels are more than can be numbered")
    return (end - size).astype(np.int32), count


@dataclass(frozen=True, eq=False)
class Slots:
    """Slot numbers of the possible dependencies of a fabric, and the tables by which kernels find them.

    Attributes
    ----------
    exit
        uint8[S, 256]: for each port, the index of its channel among the channels of the switch.  The out-degree if the
        port does not lead to a switch; the out-degree + 1 if its cable leads back to the same switch.
    xfirst, xdst, dep_first
        int32[S+1], int32[X], int32[X] with X = C + 2 S: the extended channels (csrc/cdg/trace.h).
    slot
        int32[C]: the slot of the dependency of each channel on the first channel of the switch at its end.
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
        """Return the numbers of all dependencies that the cables allow.

        Notes
        -----
        Cost: O(256 S + C).
        """
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
