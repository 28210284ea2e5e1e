"""Wait-for graph at one moment of a run, and its deadlocks.

A credit loop shows that a deadlock is possible.  A *knot* in which no packet can move is a deadlock.

A resource is the buffer of a channel on a VL, or a queue of a CA.  The packets in a resource may wait for any of
several other resources.  The resource can get free if one of the resources that it waits for, directly or through
other resources, can move.  Otherwise the resource is stuck.  So a cycle that has an edge to a vertex outside need not
be a deadlock.  A knot is a strongly connected set of vertices without an edge to a vertex outside.  A knot is a
deadlock if no member can move.

Source: Pinkston, "Deadlock characterization and resolution in interconnection networks", 13.2; Warnakulasuriya and
Pinkston (1999).  In these publications, a knot is a property of the graph alone.  A deadlock also requires that all
resources of the knot are full.  In this module, ``can_move`` marks the resources that are not full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from routing.cdg.graph import DependencyGraph
from routing.errors import OptionError

if TYPE_CHECKING:
    import igraph

Verdict = Literal["acyclic", "cyclic", "deadlocked"]


@dataclass(frozen=True)
class Knot:
    """Knot: vertices that all reach one another, and reach no other vertex.

    Attributes
    ----------
    members
        Vertices, ascending.
    movable
        Members that can move now, ascending.  The knot is a deadlock only if there are no such members.
    """

    members: tuple[int, ...]
    movable: tuple[int, ...] = ()

    @property
    def deadlocked(self) -> bool:
        """Return whether no member of the knot can move, so that it is a deadlock."""
        return not self.movable


@dataclass(frozen=True, eq=False)
class WaitFor:
    """Snapshot of a wait-for graph at run time.

    Attributes
    ----------
    waiter, awaited
        int32[N]: vertex ``waiter[k]`` waits for vertex ``awaited[k]``.  A vertex can move as soon as one of the
        vertices that it waits for has room.  A pair may occur more than once.
    can_move
        bool[n], vertices that can move now, independently of the vertices for which they wait.  A vertex that waits for
        no other vertex always can move.
    """

    waiter: npt.NDArray[np.int32]
    awaited: npt.NDArray[np.int32]
    can_move: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, waiter: npt.ArrayLike, awaited: npt.ArrayLike, vertices: int, *, can_move: npt.ArrayLike | None = None
    ) -> WaitFor:
        """Build a snapshot from arrays, after a check of their lengths and numbers.

        Parameters
        ----------
        waiter, awaited
            int[N], numbers from 0 to ``vertices - 1``: vertex ``waiter[k]`` waits for vertex ``awaited[k]``.
        vertices
            Number of vertices (n).
        can_move
            bool[n], vertices that can move now; None: no vertex that waits can move.

        Raises
        ------
        OptionError
            Lengths differ, or a number is not an integer or out of range.
        """
        if vertices < 0:
            raise OptionError(f"there cannot be {vertices} vertices")
        source, target = _vertices(waiter, vertices), _vertices(awaited, vertices)
        free = np.zeros(vertices, bool) if can_move is None else np.asarray(can_move, bool)
        if len(source) != len(target):
            raise OptionError(f"{len(source)} waiters and {len(target)} awaited", remedy="give as many of each")
        if free.shape != (vertices,):
            raise OptionError(f"can_move has shape {free.shape}, there are {vertices} vertices")
        return cls(source, target, free)

    @classmethod
    def of_dependencies(cls, graph: DependencyGraph) -> WaitFor:
        """Build the wait-for graph that has an edge for every dependency of a channel dependency graph.

        If tables determine the routes, the wait-for graph of the running fabric has, at any moment, only edges of this
        graph.
        """
        return cls.of(graph.source.astype(np.int32), graph.to, len(graph.first) - 1)

    def __len__(self) -> int:
        return len(self.can_move)

    @cached_property
    def graph(self) -> igraph.Graph:
        """Return the wait-for graph as a directed igraph graph."""
        import igraph  # noqa: PLC0415 - the start of the worker in OpenSM would take a tenth more time

        pairs = np.column_stack([self.waiter, self.awaited])
        return igraph.Graph(n=len(self), edges=pairs, directed=True)

    @cached_property
    def component(self) -> npt.NDArray[np.int32]:
        """Return int32[n], the number of the strongly connected component of each of the n vertices.

        Cost: O(n + N) for N edges.
        """
        return np.asarray(self.graph.connected_components(mode="strong").membership, np.int32)

    @cached_property
    def on_cycle(self) -> npt.NDArray[np.bool_]:
        """Return bool[n], whether each vertex is on a cycle of the wait-for graph."""
        return self._holding[self.component] if len(self) else np.zeros(0, bool)

    @cached_property
    def _holding(self) -> npt.NDArray[np.bool_]:
        """Return bool[components], whether each strongly connected component contains a cycle.

        A component without a cycle is a single vertex that does not wait for itself.
        """
        inside = self.component[self.waiter] == self.component[self.awaited]
        count = 1 + int(self.component.max(initial=-1))
        return np.bincount(self.component[self.waiter[inside]], minlength=count) > 0

    @cached_property
    def knots(self) -> tuple[Knot, ...]:
        """Return all knots, sorted by their first member, including knots with a member that can still move.

        Cost: O(n + N) for n vertices and N edges.
        """
        leaving = self.component[self.waiter] != self.component[self.awaited]
        closed = self._holding.copy()
        closed[self.component[self.waiter[leaving]]] = False
        found = []
        for number in np.flatnonzero(closed).tolist():
            members = np.flatnonzero(self.component == number)
            movable = members[self.can_move[members]]
            found.append(Knot(tuple(members.tolist()), tuple(movable.tolist())))
        return tuple(sorted(found, key=lambda knot: knot.members))

    @cached_property
    def deadlocks(self) -> tuple[Knot, ...]:
        """Return the knots in which no member can move."""
        return tuple(knot for knot in self.knots if knot.deadlocked)

    @cached_property
    def stuck(self) -> npt.NDArray[np.bool_]:
        """Return bool[n], vertices that will never move.  The result contains the members of deadlocked knots, and all
        vertices that wait only for vertices that never move.

        Cost: O(n + N) for n vertices and N edges.
        """
        import igraph  # noqa: PLC0415 - the start of the worker in OpenSM would take a tenth more time

        n = len(self)
        waits = np.bincount(self.waiter, minlength=n) > 0
        movers = np.flatnonzero(self.can_move | ~waits)
        exits = np.column_stack([movers, np.full(len(movers), n)])
        pairs = np.concatenate([np.column_stack([self.waiter, self.awaited]), exits])
        graph = igraph.Graph(n=n + 1, edges=pairs, directed=True)
        stuck = np.ones(n + 1, bool)
        stuck[graph.subcomponent(n, mode="in")] = False
        return stuck[:n]

    @property
    def verdict(self) -> Verdict:
        """Return "deadlocked" if a vertex never moves, "cyclic" if there are cycles but no deadlock, else "acyclic"."""
        if self.deadlocks:
            return "deadlocked"
        return "cyclic" if bool(self.on_cycle.any()) else "acyclic"

    def reach(self, vertex: int) -> tuple[int, ...]:
        """Return the vertices, ascending, that a vertex waits for directly or through other vertices.

        The vertex itself is included only if it is on a cycle.  Cost: O(n + N) for n vertices and N edges.

        Raises
        ------
        OptionError
            There is no such vertex.
        """
        _vertices([vertex], len(self))
        found = set(self.graph.subcomponent(vertex, mode="out"))
        if not self.on_cycle[vertex]:
            found.remove(vertex)
        return tuple(sorted(found))


def _vertices(numbers: npt.ArrayLike, vertices: int) -> npt.NDArray[np.int32]:
    """Return vertex numbers as int32, after a check of their type and range."""
    found = np.asarray(numbers).reshape(-1)
    whole = found.dtype.kind in "iu" or not len(found)
    if not whole or (len(found) and not 0 <= int(found.min()) <= int(found.max()) < vertices):
        raise OptionError(f"a vertex is not among 0 to {vertices - 1}")
    return found.astype(np.int32)
