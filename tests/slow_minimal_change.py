"""The fewest entries that can change, slow and obvious: a search from every missing entry, each time that one is
filled.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.reroute.minimal_change import remote_pairs


def fill_with_fewest_changes(fabric: Fabric, installed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Tables (uint8[S, L]) without the missing entries of ``installed`` (255 where a LID of the same part has no
    route).

    A switch without a path takes one on which the fewest entries change, and of those the one with the fewest hops.
    For one missing entry in a column there is no lesser change; several are filled one after the other, the nearest
    first.  What leads in a cycle is left as it is where no missing entry needs it.
    """
    lft, lids = installed.copy(), fabric.lids
    missing = (installed == NO_PORT) & remote_pairs(fabric)
    for lid in np.flatnonzero(missing.any(axis=0)).tolist():
        roots = np.flatnonzero(missing[:, lid]).tolist()
        while roots:
            column = _Column.of(fabric, lft[:, lid], int(lids.switch[lid]))
            channels = min(column.channel_into(root) for root in roots)[-1]
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

    def channel_into(self, root: int) -> tuple[int, int, list[int]]:
        """Entries that change, hops, and the channels up to a switch that is not cut off."""
        channels = self.fabric.channels
        queue: list[tuple[int, int, list[int], int]] = [(0, 0, [], root)]
        done, found = set[int](), list[tuple[int, int, list[int]]]()
        while queue and not (found and queue[0][0] > found[0][0]):
            changes, hops, path, s = heapq.heappop(queue)
            if self.hops[s] >= 0:
                found.append((changes, hops + int(self.hops[s]), path))
            elif s not in done:
                done.add(s)
                for c in range(channels.first[s], channels.first[s + 1]):
                    changed = changes + int(c != self.channel[s])
                    heapq.heappush(queue, (changed, hops + 1, [*path, c], int(channels.dst[c])))
        return min(found)
