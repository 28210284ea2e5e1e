"""Kernel wrapper: select a set of CDG edges (turns) without a cycle, to which no further edge can be added."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib
from routing.edges import Edges


class Graph(Protocol):
    """Protocol of a graph of channels: the channels of a fabric (:class:`~routing.fabric.Channels`), or the fabric's
    bundles of parallel channels.
    """

    @property
    def src(self) -> npt.NDArray[np.int32]: ...
    @property
    def dst(self) -> npt.NDArray[np.int32]: ...
    @property
    def first(self) -> npt.NDArray[np.int32]: ...
    @property
    def into(self) -> npt.NDArray[np.int32]: ...
    @property
    def into_first(self) -> npt.NDArray[np.int32]: ...
    @property
    def edges(self) -> Edges: ...


def maximal_turns(
    channels: Graph, sequence: npt.NDArray[np.int32], order: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint8]:
    """Select CDG edges one after the other.  An edge is left out if it closes a cycle with the edges selected before.
    Returns uint8[M] for the M possible CDG edges: 1 if the edge is selected, else 0.

    Parameters
    ----------
    channels
        The channels of the fabric, or its bundles of parallel channels.
    sequence
        int32[N], numbers of N CDG edges in the order of :meth:`~routing.edges.Edges.channels`, each at most once.
        Edges that are not in ``sequence`` are not selected.
    order
        int32[C], position of each channel in an initial order, which changes only the run time.  The call replaces the
        positions by a topological order of the selected edges, the best initial order for a similar sequence.

    Notes
    -----
    The incremental topological order follows D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for
    directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.
    """
    allowed = np.zeros(len(channels.edges), np.uint8)
    graph = channels.first, channels.src, channels.dst, channels.into, channels.into_first
    sizes = len(channels.first) - 1, len(channels.src)
    call(lib.ibn_cdg_maximal_turns, *sizes, *graph, order, sequence, len(sequence), allowed)
    return allowed
