"""Number the possible edges of the channel dependency graph (CDG).  :mod:`routing.cdg` and the kernels use these
numbers.

There is one possible edge from each channel to each channel that may follow it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import TableError

NO_EDGES = 256
"""Number of unused edge numbers before the edges of the first channel.  A kernel marks the edge from each channel of a
packet to the packet's next channel.  A packet that a switch delivers, drops, or returns over a loop-back cable leaves
the switch by no channel.  In place of an edge from a channel, the kernel then marks one of the unused numbers.  So the
kernel needs no separate code for such packets.
"""
GAP = 2
"""Number of unused edge numbers after the edges of each channel.  If the switch at the end of the channel delivers or
drops a packet, or returns the packet over a loop-back cable, the packet has no next channel.  In place of an edge, a
kernel then marks one of the unused numbers.  So the kernel needs no separate code for such packets.
"""


@dataclass(frozen=True, eq=False)
class Edges:
    """Edge numbers of the channel dependency graph (CDG) of a fabric.

    The edge from channel ``c`` to channel ``n``, where ``n`` leaves the switch at which ``c`` ends, has number
    ``first[c] + n - after[c]``.

    Attributes
    ----------
    first
        int32[C], number of the first edge of each channel.
    after, degree
        int32[C] each: the first channel that leaves the switch at the end of each channel, and the number of channels
        that leave that switch.
    count
        Length of an array that is indexed by edge number.  The length includes the unused numbers.
    """

    first: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]
    degree: npt.NDArray[np.int32]
    count: int

    @classmethod
    def of(cls, first: npt.NDArray[np.int32], dst: npt.NDArray[np.int32]) -> Edges:
        """Return the edge numbers of a fabric.

        ``first`` is int32[S+1], the first channel of each switch.  ``dst`` is int32[C], the switch at the end of each
        channel.

        Raises
        ------
        TableError
            There are more edges than an int32 can number.
        """
        degree = np.diff(first)[dst]
        end = NO_EDGES + np.cumsum(degree.astype(np.int64) + GAP)
        count = int(end[-1]) if len(end) else NO_EDGES
        if count >= 1 << 31:
            raise TableError(f"{count} possible dependencies between channels are too many")
        return cls((end - degree - GAP).astype(np.int32), first[dst], degree, count)

    def __len__(self) -> int:
        return self.count - NO_EDGES - GAP * len(self.first)

    def channels(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first and the second channel of each of the N possible CDG edges, as two arrays int64[N].

        The edges are sorted by their first channel.  Cost: O(N).
        """
        before = np.repeat(np.arange(len(self.first)), self.degree)
        return before, np.arange(len(before)) + np.repeat(self.after - self._offset(), self.degree)

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the N possible edges, int64[N], in the order of :meth:`channels`.  Cost: O(N)."""
        return np.arange(len(self)) + np.repeat(self.first - self._offset(), self.degree)

    def _offset(self) -> npt.NDArray[np.int64]:
        """Return int64[C]: for each channel, how many possible CDG edges begin at channels with lower numbers."""
        return np.cumsum(self.degree, dtype=np.int64) - self.degree
