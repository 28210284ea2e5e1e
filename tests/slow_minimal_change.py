"""A slow reference for filling missing LFT entries with the fewest changes.

After each filled entry, a search starts again from every missing entry.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.reroute.minimal_change import remote_pairs


def fill_with_fewest_changes(fabric: Fabric, installed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the LFTs (uint8[S, L]) with every missing entry filled and few other entries changed.

    An entry of ``installed`` is missing if it is 255 although the switch can reach the LID.  A switch with a missing
    entry takes the path that changes the fewest entries, and among these paths one with the fewest hops.  Several
    missing entries of a column are filled one after the other, the nearest to the LID first.  A forwarding loop stays
    unless a missing entry needs a switch of the loop.
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
    """The paths to one LID.

    ``channel`` is the channel that each switch takes (-1: none), and ``hops`` the hops to the LID (-1: the path does
    not arrive).
    """

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
        """Return the best path from switch ``root`` to the LID.

        The result is the number of changed entries, the hops to the LID, and the channels up to a switch with a path.
        """
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
