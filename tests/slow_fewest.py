"""The fewest entries that can change, slow and obvious: a search from every hole, each time that one is filled."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.reroute.minimal_change import remote_pairs


def fill_with_fewest_changes(fabric: Fabric, held: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Tables (uint8[S, L]) without the holes of ``held`` (255 where a LID of the same part has no route).

    A switch without a way takes one on which the fewest entries change, and of those the one with the fewest hops.  For
    one hole in a column there is no lesser change; several are filled one after the other, the nearest first.  What
    leads in a circle is left as it is where no hole needs it.
    """
    lft, lids = held.copy(), fabric.lids
    holes = (held == NO_PORT) & remote_pairs(fabric)
    for lid in np.flatnonzero(holes.any(axis=0)).tolist():
        roots = np.flatnonzero(holes[:, lid]).tolist()
        while roots:
            column = _Column.of(fabric, lft[:, lid], int(lids.switch[lid]))
            channels = min(column.way_in(root) for root in roots)[-1]
            lft[fabric.channels.src[channels], lid] = fabric.channels.port[channels]
            roots.remove(int(fabric.channels.src[channels[0]]))
    return lft


@dataclass(frozen=True, eq=False)
class _Column:
    """What leads to one LID: the channel that each switch takes, -1 where none, and its hops, -1 if it is cut off."""

    fabric: Fabric
    channel: npt.NDArray[np.int32]
    hops: npt.NDArray[np.int32]

    @classmethod
    def of(cls, fabric: Fabric, entries: npt.NDArray[np.uint8], target: int) -> _Column:
        channels, rows = fabric.channels, np.arange(fabric.switches)
        channel = channels.at_port[rows, entries]
        channel[target] = -1
        hops, behind = np.full(fabric.switches, -1, np.int32), channels.dst[channel]
        hops[target], coming = 0, channel >= 0
        while (arrived := np.flatnonzero(coming & (hops < 0) & (hops[behind] >= 0))).size:
            hops[arrived] = hops[behind[arrived]] + 1
        return cls(fabric, channel, hops)

    def way_in(self, root: int) -> tuple[int, int, list[int]]:
        """Entries that change, hops, and the channels up to a switch that is not cut off."""
        channels = self.fabric.channels
        queue: list[tuple[int, int, list[int], int]] = [(0, 0, [], root)]
        done, found = set[int](), list[tuple[int, int, list[int]]]()
        while queue and not (found and queue[0][0] > found[0][0]):
            changes, hops, way, s = heapq.heappop(queue)
            if self.hops[s] >= 0:
                found.append((changes, hops + int(self.hops[s]), way))
            elif s not in done:
                done.add(s)
                for c in range(channels.first[s], channels.first[s + 1]):
                    changed = changes + int(c != self.channel[s])
                    heapq.heappush(queue, (changed, hops + 1, [*way, c], int(channels.dst[c])))
        return min(found)
