"""Kernel wrapper: order the channels by who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Which channel waits for which, as a bit mask for every possible turn.

    Attributes
    ----------
    first, dst
        int32[S+1], int32[C] as in :class:`~routing.fabric.Channels`.
    slot
        int32[C]: the turn from channel ``c`` to the k-th channel of ``dst[c]`` has mask ``dep[slot[c] + k]``.
    dep
        uint32[slots].
    """

    first: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    dep: npt.NDArray[np.uint32]

    def _native(self, threads: int) -> Any:
        graph = ffi.new("cdg_dependencies *")
        graph.channels, graph.threads = len(self.dst), threads
        point(graph, first=self.first, dst=self.dst, slot=self.slot, dep=self.dep)
        return graph

    def order(
        self, bits: npt.NDArray[np.uint8], *, threads: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Topological orders: int32[len(bits), C], and how many channels each holds (C: no cycle).

        Cost: O(turns) for every bit, which are shared among the threads.
        """
        order = np.empty((len(bits), len(self.dst)), np.int32)
        ordered = np.zeros(len(bits), np.int32)
        graph = self._native(threads)
        check(lib.ibn_cdg_order(graph, len(bits), pointer(bits), pointer(order), pointer(ordered)))
        return order, ordered
