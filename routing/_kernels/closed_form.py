"""Kernel wrapper: compute the forwarding tables of a tree topology in closed form, and a switch order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import NO_PORT, Channels

UP, DOWN = 1, 2
"""Values of ``TreeGraph.kind`` for channels that lead up or down.  A third value is 0: no path up and then down uses
the channel.
"""


@dataclass(frozen=True, eq=False)
class TreeGraph:
    """Switches and channels of a tree topology.  The channels of a switch are sorted by neighbour, so that parallel
    channels follow each other.

    Attributes
    ----------
    first
        int32[S+1]; the channels of switch ``s`` are ``first[s]:first[s+1]``.
    dst, reverse
        int32[C], switch where each channel ends, and channel of the same link in the opposite direction.
    port
        uint8[C], out-port of each channel.
    kind
        uint8[C]: ``UP``, ``DOWN``, or 0.
    level
        int32[S], level of each switch: the number of tiers below it.
    position
        int32[S], position of each switch in a switch order.  Every path that leads up and then down in the levels also
        leads up and then down in this order.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    channel
        int[C], number of each channel in the fabric.
    """

    first: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    reverse: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    level: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    inverse_capacity: npt.NDArray[np.float64]
    channel: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls, channels: Channels, level: npt.NDArray[np.int32], inverse_capacity: npt.NDArray[np.float64]
    ) -> TreeGraph:
        """Return the graph of a tree topology with the given levels (int32[S]).  Channels between two switches of one
        level are on no path up and then down.

        ``inverse_capacity`` is float64[C].  Cost: O(C log C).  In the switch order, every switch except the first of
        each connected part has a neighbour before it.  If a part has several top switches, some switches therefore come
        before a neighbour of a higher level.  To find each such switch costs O(S) more.
        """
        order = np.lexsort((channels.port, channels.dst, channels.src))
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        dst = channels.dst[order]
        rise = level[dst] - level[channels.src[order]]
        kind = np.select([rise > 0, rise < 0], [UP, DOWN]).astype(np.uint8)
        reverse, position = number[channels.reverse[order]], np.empty(len(level), np.int32)
        call(lib.ibn_trees_level_order, len(level), channels.first, dst, reverse, level, kind, position)
        inverse_capacity = inverse_capacity[order]
        return cls(channels.first, dst, reverse, channels.port[order], kind, level, position, inverse_capacity, order)


@dataclass(frozen=True, eq=False)
class TreeLids:
    """LIDs of a tree topology, sorted by the switch that delivers them.  The LIDs of one switch are a group, in which
    LIDs with flow come first.

    Attributes
    ----------
    first
        int32[G+1]; the LIDs of group ``g`` are ``first[g]:first[g+1]``.
    at
        int32[G], the switch that delivers the LIDs of each group.
    lid, owner
        int32[K] each: the LID, and the number of the end port that owns it (-1: the LID belongs to a switch).
    digit
        int32[K], number D of each LID in the rule D-mod-K.  For the first LID of an end port, D is the index of the end
        port among the end ports of the same kind (compute nodes, or other end ports).  Each further LID of the port has
        the next higher number.  For a LID without flow, D is the number of the switch that delivers it.
    port
        uint8[K], port by which the switch delivers the LID.
    share
        float64[K], part of the flow to the end port that goes to this LID; 0 for the LID of a switch.
    """

    first: npt.NDArray[np.int32]
    at: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int32]
    digit: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]
    share: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeTables:
    """Forwarding tables of a tree topology, and counts of the entries that the closed form left open.

    Attributes
    ----------
    lft
        uint8[S, L], out-ports; 255 where there is no path.
    load
        float64[C], flow on each channel of the fabric; None if the flow was not requested.  The flows of filled entries
        are not included.
    searched
        Number of entries towards end ports that the closed form left open.
    filled_between_leaves
        Number of filled entries that lead from one leaf to another.  An entry is filled if no path leads up and then
        down in the levels.  The paths of filled entries lead up and then down in the switch order instead.  Leaves are
        the switches with end ports on the level of :func:`leaf_level`.
    free
        Number of LIDs to which the closed form has assigned no top switch, because links are missing.  Towards such a
        LID, every source chooses a path separately.
    """

    lft: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64] | None
    searched: int
    filled_between_leaves: int
    free: int


def closed_form(
    graph: TreeGraph,
    lids: TreeLids,
    sources: npt.NDArray[np.float64],
    component: npt.NDArray[np.int32],
    columns: int,
    *,
    passes: int,
    threads: int,
    loads: bool = False,
) -> TreeTables:
    """Compute the forwarding tables of a tree topology in closed form.

    Parameters
    ----------
    graph, lids
        The tree topology, and its LIDs.
    sources
        float64[S], flow that each switch sends to every end port.
    component
        int32[S], number of the connected part of each switch.
    columns
        Number of columns of the tables, L.
    passes
        Number of passes, after the first pass, over the entries that the closed form leaves open.
    threads
        Worker threads; they do not change the result.
    loads
        Whether to return the flow on each channel.  This takes additional time on trees without missing links.

    Notes
    -----
    Cost: O(S L), a table lookup for each entry; O(radix^2 hops) for each entry that the closed form leaves open, per
    pass.  Memory: S^2 bytes and S bytes for each top switch, in addition to the tables.
    """
    switches = len(graph.level)
    size, rank = _bundles(graph)
    tree = struct_of(
        "ibn_tree", graph, switches=switches, levels=int(graph.level.max(initial=0)) + 1,
        leaf_level=leaf_level(graph.level, sources), bundle_size=size, bundle_rank=rank, component=component,
        sources=sources,
    )  # fmt: skip
    targets = struct_of("ibn_tree_lids", lids, lids=columns, groups=len(lids.at))
    lft, counts = np.full((switches, columns), NO_PORT, np.uint8), np.zeros(3, np.int64)
    load = np.zeros(len(graph.dst)) if loads else None
    call(lib.ibn_trees_closed_form, tree, targets, passes, threads, lft, counts, load)
    if load is not None:
        load[graph.channel] = load.copy()
    return TreeTables(lft, load, *map(int, counts))


def _bundles(graph: TreeGraph) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the number of channels in the bundle of each channel, and the index of each channel in its bundle.  A
    bundle is all parallel channels from one switch to another switch.  Both results are uint8[C].
    """
    src = np.repeat(np.arange(len(graph.level)), np.diff(graph.first))
    begin = np.flatnonzero((np.diff(src, prepend=-1) != 0) | (np.diff(graph.dst, prepend=-1) != 0))
    sizes = np.diff(begin, append=len(src))
    rank = np.arange(len(src)) - np.repeat(begin, sizes)
    return np.repeat(sizes, sizes).astype(np.uint8), rank.astype(np.uint8)


def leaf_level(level: npt.NDArray[np.int32], sources: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> int:
    """Return the level that has the most switches with senders.  The lowest level, 0, is returned unless another level
    has more such switches.
    """
    return int(np.bincount(level[sources > 0], minlength=1).argmax())
