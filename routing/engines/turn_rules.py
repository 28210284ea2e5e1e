"""Sets of allowed turns for routing on one VL: construct such sets, and choose the set that balances best.

A turn is an edge of the channel dependency graph: a channel, and a channel that may follow it.  If the allowed turns
have no cycle, all paths that take only allowed turns are free of credit loops on one VL.  A rule allows or forbids
turns between bundles.  A bundle is all parallel channels from one switch to another switch.

A set of turns includes all turns of a spanning tree, so that every connected pair of switches has a path.  The set of
turns is maximal: a turn is forbidden only if it closes a cycle with the allowed turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import AllowedTurns, Balanced, Targets
from routing._kernels.maximal_turns import maximal_turns
from routing._kernels.native import grouped
from routing._kernels.symmetric_paths import LinkBundles
from routing.edges import Edges
from routing.engines.base import Engine, EngineOptions
from routing.engines.destinations import Destinations, balanced_trees, forwarding_tables, inverse_capacity
from routing.engines.effort import refinement_passes
from routing.engines.orders import HOP_COST, VISITS_PER_SECOND, hops_too_many
from routing.engines.provenance import engine_tables
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.tables import Routing

TURN_FACTOR = 3
"""Factor by which the visit of a channel takes longer in a trial of a set of allowed turns than in the search for a
switch order.  So all trials together may visit only the number of channels of that search, divided by this factor.
"""


TRIAL_TURNS = 1_500_000
"""Limit for the trials of sets of turns at effort 1: the number of tried sets, multiplied by the number of turns of the
fabric, is at most about this value.  On any fabric, at least one set is tried.
"""


@dataclass(frozen=True, eq=False)
class TurnGraph:
    """Bundles of parallel channels, and the turns between bundles.

    Attributes
    ----------
    first, src, dst, reverse
        ``first`` is int32[S+1]: the bundles out of switch ``s`` have the numbers ``first[s]:first[s+1]``.  The other
        three are int32[N]: the switch at which each bundle begins, the switch at which it ends, and the bundle in the
        other direction.
    into, into_first
        int32[N], int32[S+1]: the bundles into switch ``s`` are ``into[into_first[s]:into_first[s+1]]``.
    of
        int32[C], the bundle of each channel.
    fabric
        The fabric.
    """

    first: npt.NDArray[np.int32]
    src: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    reverse: npt.NDArray[np.int32]
    into: npt.NDArray[np.int32]
    into_first: npt.NDArray[np.int32]
    of: npt.NDArray[np.int32]
    fabric: Fabric

    @classmethod
    def of_fabric(cls, fabric: Fabric) -> TurnGraph:
        """Return the bundles of parallel channels of a fabric, and the turns between bundles.  Cost: O(C log C)."""
        bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric))
        src = np.repeat(np.arange(fabric.switches, dtype=np.int32), np.diff(bundles.first))
        into_first, into = grouped(bundles.dst, fabric.switches)
        return cls(bundles.first, src, bundles.dst, bundles.reverse, into, into_first, bundles.of, fabric)

    @cached_property
    def edges(self) -> Edges:
        """Numbering of the turns: from each bundle to each bundle that begins where the first one ends."""
        return Edges.of(self.first, self.dst)

    @cached_property
    def turns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and second bundle of each of N turns, int64[N] each."""
        return self.edges.channels()

    @cached_property
    def useful(self) -> npt.NDArray[np.bool_]:
        """Whether each turn leads to a third switch instead of back to the first switch, bool[N]."""
        before, after = self.turns
        return np.asarray(self.dst[after] != self.src[before])

    @cached_property
    def turn_of(self) -> npt.NDArray[np.int64]:
        """For each CDG edge of the fabric, the number of the turn between bundles to which it belongs."""
        before, after = self.fabric.channels.edges.channels()
        start = np.cumsum(self.edges.degree, dtype=np.int64) - self.edges.degree
        first, second = self.of[before], self.of[after]
        return np.asarray(start[first] + second - self.edges.after[first])

    def breadth_first(
        self, roots: Iterable[int] = (), dropped: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.int32]:
        """Return int32[S], the bundle of each switch to its parent in breadth-first trees, -1 for their roots.

        The first tree begins with the first switch of ``roots``.  In each further connected component, the tree begins
        with the first switch of ``roots`` in this component.  If there is none, the tree begins with the first switch
        of the component.  The trees use no bundle that ``dropped`` marks (bool[N] for N bundles).
        """
        parent = np.full(self.fabric.switches, -1, np.int32)
        seen = np.zeros(self.fabric.switches, np.bool_)
        usable = [True] * len(self.dst) if dropped is None else (~dropped).tolist()
        dst, reverse, first = self.dst.tolist(), self.reverse.tolist(), self.first.tolist()
        for root in [*roots, *range(self.fabric.switches)]:
            if seen[root]:
                continue
            seen[root] = True
            queue = [root]
            for switch in queue:
                for bundle in range(first[switch], first[switch + 1]):
                    if usable[bundle] and not seen[dst[bundle]]:
                        seen[dst[bundle]] = True
                        parent[dst[bundle]] = reverse[bundle]
                        queue.append(dst[bundle])
        return parent

    def complete(
        self, spanning: npt.NDArray[np.int32], priority: npt.NDArray[np.float64], near: AllowedTurns | None = None
    ) -> AllowedTurns:
        """Return a maximal set of turns without a cycle.

        Parameters
        ----------
        spanning
            int32[S], the bundle of each switch to its parent in a spanning tree, -1 for its root.  The turns of the
            tree are allowed first.
        priority
            float64[N], one value for each turn: turns with lower values are allowed first.  Turns with equal values are
            allowed in the order of their numbers.
        near
            A similar set of turns; its topological order is the initial order of the search.  This makes the search
            faster, and does not change the result.
        """
        before, after = self.turns
        in_tree = np.zeros(len(self.src), np.bool_)
        used = spanning[spanning >= 0]
        in_tree[used] = in_tree[self.reverse[used]] = True
        rank = np.where(in_tree[before] & in_tree[after], -np.inf, priority)
        sequence = np.argsort(rank, kind="stable")
        graph = self.first, self.src, self.dst, self.into, self.into_first
        chosen = np.asarray(sequence[self.useful[sequence]], np.int32)
        order = np.arange(len(self.src), dtype=np.int32) if near is None else near.order
        allowed, order = maximal_turns(graph, len(self.edges), chosen, order)
        channel = np.full(len(self.src), -1, np.int32)
        channels = self.fabric.channels
        channel[self.of[::-1]] = np.arange(len(channels), dtype=np.int32)[::-1]
        up = np.where(spanning >= 0, channel[np.maximum(spanning, 0)], -1) if len(self.src) else spanning
        return AllowedTurns(np.ascontiguousarray(allowed[self.turn_of]), np.ascontiguousarray(up, np.int32), order)

    def trials(self, most: int, effort: float) -> int:
        """Return the number of sets of turns (1 to ``most``) that are worth a trial at the given effort."""
        return max(1, min(round(most * effort), round(TRIAL_TURNS * effort / max(len(self.edges), 1)), most))

    def forbidden(self, turns: AllowedTurns) -> int:
        """Return the number of forbidden turns.  Turns that lead back to the switch before are not counted."""
        allowed = np.zeros(len(self.useful), np.bool_)
        allowed[self.turn_of[turns.allowed != 0]] = True
        return int((self.useful & ~allowed).sum())


@dataclass(frozen=True, eq=False)
class TurnTrial:
    """Routes a sample of the destinations with different sets of allowed turns, to compare the sets.

    Attributes
    ----------
    fabric, destinations, options
        Input of the engine.
    tries
        Number of trials within the work limit.
    """

    fabric: Fabric
    destinations: Destinations
    options: EngineOptions
    tries: int
    graph: TurnGraph = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", TurnGraph.of_fabric(self.fabric))

    @cached_property
    def sample(self) -> Targets:
        """Sample of destinations: one destination for each switch with end ports.  This destination stands for all end
        ports of the switch, and gets all their traffic.  If there are too many such switches, only some have a sample.
        """
        visits = VISITS_PER_SECOND * self.options.effort / TURN_FACTOR / max(self.tries, 1)
        most = max(1, int(visits / max(len(self.fabric.channels), 1)))
        weight = np.bincount(self.destinations.root, self.destinations.share, self.fabric.switches)
        root = np.flatnonzero(weight)
        if len(root) > most:
            root = root[np.linspace(0, len(root) - 1, most).round().astype(np.int64)]
        return Targets.single(root.astype(np.int32), weight[root].astype(np.float64))

    def trees(self, turns: AllowedTurns, targets: Targets, passes: int) -> Balanced:
        """Return balanced trees to ``targets`` that take only allowed turns, after ``passes`` refinement passes."""
        return balanced_trees(self.fabric, self.options, targets, turns=turns, passes=passes, hop_cost=HOP_COST)

    def rate(self, turns: AllowedTurns) -> tuple[int, float]:
        """Rate a set of turns by how well the trees of ``sample`` are balanced.  The smaller tuple is better.

        The first number of the tuple is the number of hops by which the longest path exceeds
        :data:`routing.engines.orders.LONGEST`.  The second number is the highest utilisation.
        """
        return self.rating(self.trees(turns, self.sample, 0))

    def rating(self, trees: Balanced) -> tuple[int, float]:
        """Rate trees by their balance; the result is the tuple that :meth:`rate` describes."""
        return hops_too_many(self.fabric, trees), round(float(trees.max_utilisation.min()), 9)

    def tables(self, engine: Engine, turns: AllowedTurns, start: float, found: Mapping[str, object]) -> Routing:
        """Return the tables of all destinations.

        Parameters
        ----------
        engine
            The engine.
        turns
            The allowed turns.
        start
            Time at which the engine began, in seconds.
        found
            Further values of the provenance.
        """
        fabric, options, destinations = self.fabric, self.options, self.destinations
        vls = vls_allowed(options)
        trees = self.trees(turns, destinations.targets(), refinement_passes(fabric, options))
        return engine_tables(
            engine, fabric, options, start, lft=forwarding_tables(fabric, destinations, trees.next_channel),
            tables=vl_tables(round_robin_sls(destinations, len(fabric.lids), vls), vls, options),
            vls_needed=1, forbidden_turns=self.graph.forbidden(turns), **found,
        )  # fmt: skip
