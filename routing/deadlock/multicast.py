"""Multicast in addition to unicast: spanning trees that close no credit loop, and credit loops of given multicast
tables.

A switch sends a multicast packet to all ports of its group except the port by which the packet came.  So the packet's
channel depends on every other channel of the group at the next switch.  Multicast packets have the SL of their group,
and use the VL of that SL.  On this VL, multicast packets share buffers with unicast packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing._kernels.spanning_tree import grow_tree
from routing.cdg.acyclic import Cdg, topological_order
from routing.cdg.graph import Cycle
from routing.fabric import NO_PORT, Fabric
from routing.numerals import count_noun
from routing.tables import DATA_VLS

MOST_ROOTS = 16
"""Number of root switches that are tried in each connected component until a tree spans it."""


@dataclass(frozen=True, eq=False)
class MulticastTree:
    """A spanning tree of the switches in each connected component.

    Attributes
    ----------
    parent
        int32[S], the next switch towards the root; -1 at a root and at an unreachable switch.
    up_port
        uint8[S], the port of the switch that leads to its parent; 255 if the switch has no parent.
    down_port
        uint8[S], the port of the parent that leads to the switch; 255 if the switch has no parent.
    """

    parent: npt.NDArray[np.int32]
    up_port: npt.NDArray[np.uint8]
    down_port: npt.NDArray[np.uint8]

    @classmethod
    def along(cls, fabric: Fabric, up: npt.NDArray[np.int32]) -> MulticastTree:
        """Return the tree whose switches send to their parents over the channels ``up`` (int32[S], -1: no parent)."""
        channels, rows = fabric.channels, np.flatnonzero(up >= 0)
        parent = np.full(fabric.switches, -1, np.int32)
        up_port, down_port = (np.full(fabric.switches, NO_PORT, np.uint8) for _ in range(2))
        parent[rows], up_port[rows] = channels.dst[up[rows]], channels.port[up[rows]]
        down_port[rows] = channels.dst_port[up[rows]]
        return cls(parent, up_port, down_port)

    def links(self, fabric: Fabric) -> npt.NDArray[np.bool_]:
        """Return bool[C], the channels of the tree's links in both directions."""
        rows = np.flatnonzero(self.parent >= 0)
        used: npt.NDArray[np.bool_] = np.zeros(len(fabric.channels), np.bool_)
        used[fabric.channels.at_port[rows, self.up_port[rows]]] = True
        used[fabric.channels.at_port[self.parent[rows], self.down_port[rows]]] = True
        return used


def group_edges(fabric: Fabric, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[edges], the CDG edges that packets of a multicast group have, if the group uses the channels ``used``
    (bool[C]).

    Cost: O(edges).
    """
    edges, channels = fabric.channels.edges, fabric.channels
    before, after = edges.channels()
    found: npt.NDArray[np.bool_] = np.zeros(edges.count, np.bool_)
    found[edges.numbers()] = used[before] & used[after] & (channels.reverse[before] != after)
    return found


def channels_of_group(fabric: Fabric, ports: Mapping[int, Sequence[int]]) -> npt.NDArray[np.bool_]:
    """Return bool[C], the channels by which a group's packets leave switches.  ``ports`` holds the group's out-ports of
    each switch (by row).
    """
    used: npt.NDArray[np.bool_] = np.zeros(len(fabric.channels), np.bool_)
    for row, own in ports.items():
        channel = fabric.channels.at_port[row, list(own)]
        used[channel[channel >= 0]] = True
    return used


def is_free_of_loops(unicast: Cdg, edges: npt.NDArray[np.bool_], vl: int, *, threads: int) -> bool:
    """Return whether the CDG of the VL ``vl`` stays acyclic if the edges of multicast packets (bool[edges]) are added
    to the edges of unicast packets.

    Cost: O(edges).
    """
    return topological_order(unicast.fabric.channels, _together(unicast, edges, vl), 1, threads=threads) is not None


def _together(unicast: Cdg, edges: npt.NDArray[np.bool_], vl: int) -> npt.NDArray[np.uint16]:
    """Return uint16[edges], 1 for each CDG edge that ``edges`` marks or that unicast packets use on a VL, else 0."""
    return ((unicast.masks >> vl & 1) | edges).astype(np.uint16)


@dataclass(frozen=True)
class MulticastVerdict:
    """Whether multicast groups and unicast packets together are free of credit loops.

    Attributes
    ----------
    groups
        Number of groups.
    vl
        VL of the groups; None if the VL differs between ports, or if packets of the groups are dropped.
    loops
        Whether there is a credit loop: "none" (there is none), "yes", or "unknown".  It is "unknown" in three
        cases: ``vl`` is None, the unicast packets have no certificate, or unicast packets change their VL along a path.
    loop
        Lines that describe a shortest credit loop; empty if there is no credit loop, or if no credit loop was searched
        for.
    looping
        Multicast LIDs of groups whose links form a cycle, in which copies of a packet multiply.
    """

    groups: int
    vl: int | None
    loops: Literal["none", "yes", "unknown"]
    loop: tuple[str, ...]
    looping: tuple[int, ...]

    @property
    def good(self) -> bool:
        """Return whether there is neither a credit loop nor a group whose links form a cycle."""
        return self.loops == "none" and not self.looping


def check_groups(
    fabric: Fabric,
    unicast: Cdg | None,
    sl2vl: npt.NDArray[np.uint8] | None,
    groups: Mapping[int, Mapping[int, Sequence[int]]],
    *,
    sl: int = 0,
    threads: int = 1,
) -> MulticastVerdict:
    """Check multicast tables together with the proven unicast tables of a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    unicast
        CDG of the unicast packets; None if the unicast packets have no certificate, or change their VL on the path.
    sl2vl
        uint8[16], VL of each SL; None if the VL of an SL differs between ports.
    groups
        Out-ports of each switch (row), by multicast LID.
    sl
        Service level of all groups.
    threads
        Worker threads.

    Notes
    -----
    Cost: O(edges) for each group.
    """
    used = {mlid: channels_of_group(fabric, ports) for mlid, ports in groups.items()}
    looping = tuple(mlid for mlid in sorted(used) if _has_cycle(fabric, used[mlid]))
    vl = None if sl2vl is None or sl2vl[sl] >= DATA_VLS else int(sl2vl[sl])
    if vl is None or unicast is None:
        return MulticastVerdict(len(groups), vl, "unknown", (), looping)
    edges = {mlid: group_edges(fabric, channels) for mlid, channels in used.items()}
    every: npt.NDArray[np.bool_] = np.zeros(fabric.channels.edges.count, np.bool_)
    for own in edges.values():
        every |= own
    if is_free_of_loops(unicast, every, vl, threads=threads):
        return MulticastVerdict(len(groups), vl, "none", (), looping)
    cycle = loop_with(unicast, every, vl)
    return MulticastVerdict(len(groups), vl, "yes", tuple(_describe(fabric, cycle, edges)), looping)


def _has_cycle(fabric: Fabric, used: npt.NDArray[np.bool_]) -> bool:
    """Return whether the links of the channels ``used`` (bool[C]) form a cycle in the undirected graph of switches."""
    import igraph  # noqa: PLC0415 - the start of the worker in OpenSM would take a tenth more time

    channels = fabric.channels
    links = {(min(c, back), max(c, back)) for c, back in zip(
        np.flatnonzero(used).tolist(), channels.reverse[used].tolist(), strict=True)}  # fmt: skip
    ends = [(int(channels.src[c]), int(channels.dst[c])) for c, _ in links]
    graph = igraph.Graph(fabric.switches, ends)
    return len(links) > fabric.switches - len(graph.connected_components())


def _describe(fabric: Fabric, cycle: Cycle, edges: Mapping[int, npt.NDArray[np.bool_]]) -> Iterator[str]:
    """Yield lines that describe a cycle: a summary, then a line for each channel.  The line of a channel names the
    packets that cause its dependency on the next channel.

    ``edges`` has the CDG edges of each group (bool[edges]) by multicast LID.
    """
    channels = fabric.channels
    yield f"credit loop of {count_noun(len(cycle), 'channel')} on VL {cycle[0][1]}, closed by unicast and multicast:"
    for (channel, _), (following, _) in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        number = int(channels.edges.first[channel]) + following - int(channels.edges.after[channel])
        whose = [f"multicast 0x{mlid:04X}" for mlid in sorted(edges) if edges[mlid][number]]
        near, far = int(channels.src[channel]), int(channels.dst[channel])
        yield (
            f"  {fabric.labels[near]} port {channels.port[channel]} > {fabric.labels[far]}"
            f" port {channels.dst_port[channel]}: {', '.join(whose[:3]) or 'unicast'}"
        )


def loop_with(unicast: Cdg, edges: npt.NDArray[np.bool_], vl: int) -> Cycle:
    """Return a shortest cycle that unicast packets and the given CDG edges (bool[edges]) form on a VL; empty if there
    is no cycle.
    """
    cycle = Cdg(unicast.fabric, _together(unicast, edges, vl)).graph().shortest_cycle(unicast.fabric)
    return [(channel, vl) for channel, _ in cycle]


def safe_tree(fabric: Fabric, unicast: Cdg, vl: int, roots: Sequence[int], *, threads: int) -> MulticastTree | None:
    """Search for a tree that spans every connected component and closes no credit loop on a VL.  Returns None if no
    such tree was found.

    Parameters
    ----------
    fabric
        The fabric.
    unicast
        CDG of the unicast packets, which is acyclic on the VL.
    vl
        The VL of the groups.
    roots
        Rows of the switches from which trees are grown, in order of preference; at most :data:`MOST_ROOTS` of each
        component are tried.
    threads
        Worker threads; the result is the same with any number.

    Notes
    -----
    A tree is grown breadth first from a root.  A link is left out if the dependencies of multicast packets on this link
    would close a cycle of the CDG.  The tree may reach the switch at the end of this link over another link.  The
    search is not exhaustive: the search may find no tree although a safe tree exists.
    """
    used = (unicast.masks >> vl & 1).astype(np.uint8)
    order = topological_order(fabric.channels, used.astype(np.uint16), 1, threads=threads)
    if order is None:
        return None
    up = np.full(fabric.switches, -1, np.int32)
    sizes = np.bincount(fabric.component)
    for part, size in enumerate(sizes.tolist()):
        own = [root for root in roots if fabric.component[root] == part][:MOST_ROOTS]
        for root in own:
            found, reached = grow_tree(fabric.channels, fabric.switches, used, order[0], root)
            if reached == size:
                up = np.maximum(up, found)
                break
        else:
            if size > 1:
                return None
    return MulticastTree.along(fabric, up)
