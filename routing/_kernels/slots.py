"""Lookup tables with which kernels that follow routes find the number of a CDG edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric


@dataclass(frozen=True, eq=False)
class Slots:
    """Lookup tables by which kernels find the channel of an LFT entry, and the number of the CDG edge between two
    channels.

    The extended channels of a switch are its channels, followed by two placeholders: "the packet is dropped" and "the
    packet returns to this switch" (csrc/cdg/trace.h).  With these placeholders, every LFT entry leads to an extended
    channel, so the code of a kernel needs no branch for special entries.

    Attributes
    ----------
    exit
        uint8[S, 256]: for each port, an index among the extended channels of the switch.  A port to another switch has
        the index of its channel.  A port whose cable leads back to this switch has the index of "the packet returns to
        this switch".  All other ports have the index of "the packet is dropped".
    xfirst
        int32[S+1], first extended channel of each switch.
    xdst
        int32[X] with X = C + 2 S, switch to which each extended channel leads; S: the packet is dropped.
    dep_first
        int32[X], number of the first CDG edge of each extended channel.
    count
        Length of an array with one element for each CDG edge number (:class:`~routing.edges.Edges`).
    """

    exit: npt.NDArray[np.uint8]
    xfirst: npt.NDArray[np.int32]
    xdst: npt.NDArray[np.int32]
    dep_first: npt.NDArray[np.int32]
    count: int

    @classmethod
    def of(cls, fabric: Fabric) -> Slots:
        """Build the tables of a fabric that give the channel of each LFT entry and the number of each CDG edge.

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
        position = np.arange(len(channels)) + 2 * channels.src
        xdst = np.empty(len(channels) + 2 * switches, np.int32)
        xdst[xfirst[1:] - 2], xdst[xfirst[1:] - 1], xdst[position] = switches, rows, channels.dst
        dep_first = np.zeros(len(xdst), np.int32)
        dep_first[position] = channels.edges.first
        return cls(exits.astype(np.uint8), xfirst, xdst, dep_first, channels.edges.count)
