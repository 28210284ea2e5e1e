"""Find moves that would relieve the most loaded channels but close a CDG cycle, and make room for these moves.

A blocked move would add CDG edges that close cycles with the edges in use.  Each of these cycles also has edges that
are in use already.  If each cycle has an edge that no path uses any more, the move closes no cycle.  So such edges are
vacated: all paths are moved off them.  The edges to vacate are a minimum cut of the CDG.  The capacity of an edge is
the number of LFT entries that use the edge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.reroute.column_tree import ColumnTree
from routing.reroute.vacate import ALL_VLS, NotVacated, TablesInUse, Vacated, edge_usage, vacate

CHANNELS, NEAR_PEAK = 8, 0.99
"""Moves are listed only for the CHANNELS channels with the highest utilisation.  Of these channels, those below
NEAR_PEAK times the highest utilisation are left out.
"""
USERS, UPSTREAM = 24, 8
"""Moves are listed for at most ``USERS`` LIDs of each channel (the LIDs with the most flow).  For each of these LIDs,
moves are listed for at most ``UPSTREAM`` switches whose paths use the channel (the switches nearest to the channel).
"""
CUTS, EDGES_FOR_CUTS = 150, 9_000_000
"""At most CUTS minimum cuts are computed.  In large fabrics, this limit falls to EDGES_FOR_CUTS divided by the number
of possible CDG edges of the fabric, but not below 8.
"""
SMALL_CUT = 5
"""Number that is added to the number of LFT entries that use a cut.  Cuts are sorted by the relieved flow, divided by
this sum.  Without the addition, a cut that one entry uses would come before a cut that two entries use and that
relieves nearly twice as much flow.
"""

Wanted = tuple[int, tuple[tuple[int, int], ...]]
"""A blocked move (a move that would close a CDG cycle): its VLs as bits, and the CDG edges that it would add.

Each CDG edge is a pair of channels.
"""


@dataclass(frozen=True, eq=False)
class Room:
    """A set of CDG edges to vacate, so that blocked moves (moves that would close a CDG cycle) become possible.

    Attributes
    ----------
    vls
        uint16[edges], the VLs on which each edge is to be vacated, as bits.
    entries
        Number of LFT entries that use these edges.
    """

    vls: npt.NDArray[np.uint16]
    entries: int

    @property
    def edges(self) -> int:
        """Return the number of CDG edges to vacate."""
        return int(np.count_nonzero(self.vls))


@dataclass(frozen=True, eq=False)
class Cut:
    """A minimum cut: the CDG edges to vacate, so that a blocked move closes no CDG cycle any more.

    Minimum means that the fewest LFT entries use the edges.

    Attributes
    ----------
    vls
        VLs, as bits, on which the edges have to be vacated.
    edges
        int64[N], numbers of the CDG edges of the cut.
    flow
        Flow that moves can take off the most loaded channels once the edges of the cut are vacated.
    """

    vls: int
    edges: npt.NDArray[np.int64]
    flow: float


def vacated_sets(in_use: TablesInUse, most: int, trials: int) -> Iterator[tuple[Room, Vacated | NotVacated]]:
    """Try to move all paths off sets of CDG edges that block moves.  Yield each set with the new tables, or with the
    reason of the failure.

    Each attempt starts from the tables of ``in_use``, and changes at most ``most`` entries.  First, at most ``trials``
    sets are tried.  If the paths to some LIDs could not leave a set, at most ``trials`` further sets are tried.  The
    further sets contain no CDG edge that a path to these LIDs uses.
    """
    blocked, stuck = BlockedMoves.of(in_use), np.zeros(0, np.intp)
    for _ in range(2):
        for room in blocked.rooms(most // 2, trials):
            made = vacate(in_use, vacated=room.vls, forbidden=room.vls, most=most)
            if isinstance(made, NotVacated):
                stuck = np.union1d(stuck, made.lids)
            yield room, made
        if not len(stuck):
            break
        blocked = blocked.avoiding(stuck)


@dataclass(frozen=True, eq=False)
class BlockedMoves:
    """The tables in use, and data to find blocked moves: moves that would close a cycle in the CDG of these tables.

    Attributes
    ----------
    in_use
        The tables in use, with their CDG and their load.
    usage
        int64[edges], number of LFT entries that use each CDG edge.  If cuts must not contain an edge, its value is
        larger: the number of all LFT entries of the fabric is added.
    """

    in_use: TablesInUse
    usage: npt.NDArray[np.int64]

    @classmethod
    def of(cls, in_use: TablesInUse) -> BlockedMoves:
        """Count the entries that use each CDG edge."""
        return cls(in_use, edge_usage(in_use.frame, in_use.tables.lft))

    def avoiding(self, lids: npt.NDArray[np.intp]) -> BlockedMoves:
        """Return a copy of this object whose cuts contain no CDG edge that a path to one of ``lids`` uses."""
        lft = self.in_use.tables.lft
        # The paths to ``lids`` keep their CDG edges.  So these edges get a usage above all limits, and cuts with such
        # an edge are not tried.
        return replace(self, usage=self.usage + lft.size * (edge_usage(self.in_use.frame, lft, lids) > 0))

    def rooms(self, most: int, trials: int) -> Iterator[Room]:
        """Yield sets of CDG edges to vacate.  At most ``trials`` sets are yielded, and at most ``most`` entries use the
        edges of a set.

        Each of the first three sets combines several cuts (see :class:`Cut`).  The second set is limited to half of
        ``most`` entries, and the third set to a quarter of ``most`` entries.  Each further set is a single cut.
        """
        cuts = [cut for cut in self._cuts() if len(cut.edges) and self._entries([cut]) <= most]
        sets = [self._greedy(cuts, most // part) for part in (1, 2, 4)] + [[cut] for cut in cuts]
        for chosen in sets[:trials]:
            if chosen:
                yield self._room(chosen)

    def _cuts(self) -> list[Cut]:
        """Return a minimum cut for each of the blocked moves that would most relieve the most loaded channels.

        The cuts are sorted by their flow, divided by the number of LFT entries that use the cut (plus
        :data:`SMALL_CUT`).  The largest quotient comes first.
        """
        import igraph  # noqa: PLC0415 - the start of the worker in OpenSM would take a tenth more time

        wanted = sorted(self._wanted().items(), key=lambda item: (-item[1], item[0]))
        edges, graphs, found = (
            self.in_use.frame.base.channels.edges,
            dict[int, tuple[igraph.Graph, npt.NDArray[np.int64]]](),
            [],
        )
        before, after = edges.channels()
        numbers = edges.numbers()
        for (vls, moves), flow in wanted[: max(8, min(CUTS, EDGES_FOR_CUTS // max(1, len(edges))))]:
            if vls not in graphs:
                used = np.flatnonzero(self.in_use.dependencies.masks[numbers] & vls)
                pairs = np.column_stack([before[used], after[used]])
                graphs[vls] = igraph.Graph(len(edges.first), pairs, directed=True), numbers[used]
            graph, number = graphs[vls]
            capacity = self.usage[number].tolist()
            cut = [number[graph.mincut(then, channel, capacity).cut] for channel, then in moves]
            found.append(Cut(vls, np.unique(np.concatenate(cut)), flow))
        return sorted(found, key=lambda cut: -cut.flow / (self._entries([cut]) + SMALL_CUT))

    def _entries(self, cuts: Iterable[Cut]) -> int:
        edges = [cut.edges for cut in cuts]
        return int(self.usage[np.unique(np.concatenate(edges))].sum()) if edges else 0

    def _greedy(self, cuts: list[Cut], most: int) -> list[Cut]:
        """Choose cuts one after the other, in the order of ``cuts``.  A cut is left out if more than ``most`` LFT
        entries would use the CDG edges of all chosen cuts together.
        """
        chosen: list[Cut] = []
        for cut in cuts:
            if self._entries([*chosen, cut]) <= most:
                chosen.append(cut)
        return chosen

    def _room(self, cuts: list[Cut]) -> Room:
        vls = np.zeros(len(self.usage), np.uint16)
        for cut in cuts:
            vls[cut.edges] |= np.uint16(cut.vls)
        return Room(vls, self._entries(cuts))

    def _wanted(self) -> dict[Wanted, float]:
        """Return the blocked moves that would relieve the most loaded channels.

        The keys of the result identify a move by its VLs and by the CDG edges that it would add.  The value is the flow
        that all moves with these VLs and edges would take off the most loaded channels.
        """
        fabric, found = self.in_use.frame.repair_fabric, defaultdict[Wanted, float](float)
        utilisation = self.in_use.now.load * fabric.inverse_capacity
        peak = utilisation.max(initial=0)
        fullest = np.argsort(-utilisation, kind="stable")[:CHANNELS]
        for channel in fullest[utilisation[fullest] >= NEAR_PEAK * peak].tolist():
            for tree in self._users(channel):
                for switch, flow in tree.upstream(UPSTREAM):
                    self._add_moves(found, tree, switch, flow, channel)
        return found

    def _users(self, channel: int) -> list[ColumnTree]:
        """Return trees of the paths that use a channel, one tree for each LID.

        The result has at most :data:`USERS` LIDs: those with the most flow on the channel.
        """
        fabric, lft = self.in_use.frame.repair_fabric, self.in_use.tables.lft
        channels, switch = fabric.channels, int(fabric.channels.src[channel])
        uses = (lft[switch] == channels.port[channel]) & (fabric.lid_switch >= 0) & (fabric.weight > 0)
        lids = np.flatnonzero(uses & (fabric.lid_switch != switch))
        trees = [ColumnTree.of(fabric, lft[:, lid], int(lid), switch) for lid in lids.tolist()]
        return sorted(trees, key=lambda tree: (-tree.flow[switch], tree.lid))[:USERS]

    def _add_moves(self, found: dict[Wanted, float], tree: ColumnTree, switch: int, flow: int, relieved: int) -> None:
        """Add the blocked moves of a switch to ``found``.  Such a move needs a CDG edge that no path uses yet.

        A move gives ``switch`` another next hop to the LID of ``tree``.  The new path avoids the channel ``relieved``,
        and carries ``flow``: the flow that ``switch`` sends and forwards to this LID.
        """
        edges, masks = self.in_use.frame.base.channels.edges, self.in_use.dependencies.masks
        vls = ALL_VLS if self.in_use.rules.replies else self._vls_of(tree, switch)
        limit = int(self.in_use.now.load[relieved]) * int(self.in_use.frame.repair_fabric.inverse_capacity[relieved])
        for channel in tree.other_channels(switch, relieved, flow, self.in_use.now.load, limit):
            steps = [(before, channel) for before in tree.into(switch)]
            if (then := tree.next_after(channel)) >= 0:
                steps.append((channel, then))
            new = [(a, b) for a, b in steps if not int(masks[edges.first[a] + b - edges.after[a]]) & vls]
            if new:
                found[vls, tuple(new)] += flow

    def _vls_of(self, tree: ColumnTree, switch: int) -> int:
        rows = self.in_use.rules.sl.matrix
        sources = tree.subtree(switch) if len(rows) > 1 else [0]
        return int(np.bitwise_or.reduce(self.in_use.rules.vl_bit[rows[sources, tree.lid]]))
