"""Number the possible edges of the channel dependency graph (CDG): from each channel to each channel that may follow.

:mod:`routing.cdg` builds on this numbering, and so do the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import TableError

NO_EDGES = 256
"""Numbers at the front that stand for no edge: kernels write there for packets that leave the switches."""
GAP = 2
"""Numbers after the edges of each channel that stand for no edge (csrc/cdg/trace.h)."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Numbers of the possible CDG edges of a fabric.

    The edge from channel ``c`` to channel ``n`` of the switch at its end has number ``first[c] + n - after[c]``.

    Attributes
    ----------
    first
        int32[C], number of the first edge of each channel.
    after, degree
        int32[C] each: the first channel of the switch at the end of each channel, and how many channels it has.
    count
        Length of an array by edge number; some numbers stand for no edge.
    """

    first: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]
    degree: npt.NDArray[np.int32]
    count: int

    @classmethod
    def of(cls, first: npt.NDArray[np.int32], dst: npt.NDArray[np.int32]) -> Edges:
        """Return the numbers, given each switch's first channel (int32[S+1]) and each channel's end (int32[C]).

        Raises
        ------
        TableError
            There are more edges than an int32 can number.
        """
        degree = np.diff(first)[dst]
        end = NO_EDGES + np.cumsum(degree.astype(np.int64) + GAP)
        count = int(end[-1]) if len(end) else NO_EDGES
        if count >= 1 << 31:
            raise TableError(f"{count} possible dependencies between channels are more than can be numbered")
        return cls((end - degree - GAP).astype(np.int32), first[dst], degree, count)

    def __len__(self) -> int:
        return self.count - NO_EDGES - GAP * len(self.first)

    def channels(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first and the second channel of every edge, int64[T] each, ascending.  Cost: O(T)."""
        before = np.repeat(np.arange(len(self.first)), self.degree)
        return before, np.arange(len(before)) + np.repeat(self.after - self._offset(), self.degree)

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the number of every edge, int64[T], in the order of :meth:`channels`.  Cost: O(T)."""
        return np.arange(len(self)) + np.repeat(self.first - self._offset(), self.degree)

    def _offset(self) -> npt.NDArray[np.int64]:
        """Return int64[C], how many edges the channels before each channel have."""
        return np.cumsum(self.degree, dtype=np.int64) - self.degree
