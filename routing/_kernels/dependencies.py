"""Kernel wrapper: sort channels topologically by their dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Channel dependencies, as a bit mask for every possible pair of consecutive channels.

    Attributes
    ----------
    first, dst
        int32[S+1], int32[C] as in :class:`~routing.fabric.Channels`.
    slot
        int32[C]: the dependency of channel ``c`` on the k-th channel of switch ``dst[c]`` has mask
        ``dep[slot[c] + k]``.
    dep
        uint32[slots], a bit per VL.
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
        """Compute a topological order of the channels for each of these bits of ``dep``.

        Returns
        -------
        order : int32[len(bits), C]
            Position of each channel; -1 for channels on a cycle or downstream of one.
        ordered : int32[len(bits)]
            How many channels have a position; C if and only if the graph is acyclic.

        Notes
        -----
        Cost: O(slots) per bit; the bits are shared among the threads.
        """
        order = np.empty((len(bits), len(self.dst)), np.int32)
        ordered = np.zeros(len(bits), np.int32)
        graph = self._native(threads)
        check(lib.ibn_cdg_order(graph, len(bits), pointer(bits), pointer(order), pointer(ordered)))
        return order, ordered
