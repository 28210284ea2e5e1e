"""The next hops towards one LID as a tree: the subtree of a switch, its flow, and other next hops of a switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import RepairFabric

MORE_HOPS = 2
"""Number of hops by which a new path may exceed the shortest path from its first switch to the LID."""


@dataclass(frozen=True, eq=False)
class ColumnTree:
    """The paths to one LID that lead through one switch, the root of the tree.

    Attributes
    ----------
    fabric
        The fabric.
    lid, target
        The LID, and the switch that delivers the LID.
    next_channel
        Next channel of each switch towards the LID, -1: none.
    order
        The root, and then all switches whose paths lead through the root, in breadth-first order.
    flow
        Flow that each switch of ``order`` sends and forwards to the LID.
    """

    fabric: RepairFabric
    lid: int
    target: int
    next_channel: list[int]
    order: list[int]
    flow: dict[int, int]

    @classmethod
    def of(cls, fabric: RepairFabric, ports: npt.NDArray[np.uint8], lid: int, root: int) -> ColumnTree:
        """Return the paths to ``lid`` through switch ``root``.  ``ports`` (uint8[S]) is the LFT column of the LID."""
        channels, target = fabric.channels, int(fabric.lid_switch[lid])
        chosen = channels.at_port[np.arange(len(ports)), ports]
        chosen[target] = -1
        next_channel, order = chosen.tolist(), [root]
        tree = cls(fabric, lid, target, next_channel, order, {})
        for switch in order:
            order.extend(int(channels.src[channel]) for channel in tree.into(switch))
        weight = int(fabric.weight[lid])
        tree.flow.update((switch, int(fabric.sources[switch]) * weight) for switch in order)
        for switch in reversed(order[1:]):
            tree.flow[int(channels.dst[next_channel[switch]])] += tree.flow[switch]
        return tree

    def into(self, switch: int) -> list[int]:
        """Return the channels into ``switch`` that other switches use as their next channel towards the LID."""
        channels = self.fabric.channels
        there = channels.into[channels.into_first[switch] : channels.into_first[switch + 1]].tolist()
        return [channel for channel in there if self.next_channel[int(channels.src[channel])] == channel]

    def subtree(self, switch: int) -> list[int]:
        """Return a switch and all switches whose paths lead through it."""
        found = [switch]
        for one in found:
            found.extend(int(self.fabric.channels.src[channel]) for channel in self.into(one))
        return found

    def upstream(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield the first switches of ``order`` that have flow (at most ``most`` switches), each with its flow."""
        return islice(((switch, self.flow[switch]) for switch in self.order if self.flow[switch] > 0), most)

    def next_after(self, channel: int) -> int:
        """Return the channel that follows ``channel`` towards the LID, -1 if ``channel`` ends at the LID's switch."""
        return self.next_channel[int(self.fabric.channels.dst[channel])]

    def path(self, channel: int) -> list[int] | None:
        """Return the channels of the path to the LID that begins with ``channel``; None if the path does not reach the
        LID.
        """
        path = [channel]
        while int(self.fabric.channels.dst[path[-1]]) != self.target:
            channel = self.next_after(path[-1])
            if channel < 0 or len(path) > len(self.next_channel):
                return None
            path.append(channel)
        return path

    def other_channels(
        self, switch: int, relieved: int, flow: int, load: npt.NDArray[np.int64], limit: int
    ) -> list[int]:
        """Return the channels to which a switch could move its path to the LID, without a loop and below a limit of
        utilisation.

        Parameters
        ----------
        switch
            A switch of the tree.
        relieved
            The channel that the new path must not use.
        flow
            Flow of the switch towards the LID, which would move to the new path.
        load
            int64[C], the load of each channel.
        limit
            Utilisation below which each channel of the new path must stay.  Channels that are also in the present path
            are not checked.
        """
        channels, now = self.fabric.channels, self.next_channel[switch]
        first, last = int(channels.first[switch]), int(channels.first[switch + 1])
        paths = [path for c in range(first, last) if self.fabric.alive[c] and (path := self.path(c)) is not None]
        shortest = min((len(path) for path in paths), default=0)
        present = set(self.path(now) or ())
        inverse = self.fabric.inverse_capacity
        return [
            path[0]
            for path in paths
            if path[0] != now
            and len(path) <= shortest + MORE_HOPS
            and relieved not in path
            and all(int(channels.dst[c]) != switch for c in path)
            and all(c in present or (int(load[c]) + flow) * int(inverse[c]) < limit for c in path)
        ]
