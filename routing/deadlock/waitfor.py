"""Who waits for whom at one moment, and whether anybody there can ever go on.

A credit loop says that a deadlock is possible; a *knot* says that there is one.  A resource (a channel's buffer on a
VL, a queue of a CA) whose packets wait for any of several others is stuck only if none of them, nor any that those
wait for, can go on.  So a cycle with a way out is no deadlock, and a strongly connected set without a way out is, once
nobody in it can move: a knot.

Source: Pinkston, "Deadlock characterization and resolution in interconnection networks", 13.2; Warnakulasuriya and
Pinkston (1999).  There a knot is a matter of the graph alone, and deadlock that its resources are full; here
``can_move`` says who is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import igraph
import numpy as np
import numpy.typing as npt

from routing.deadlock.cdg import DependencyGraph
from routing.errors import OptionError

Verdict = Literal["acyclic", "cyclic", "deadlocked"]


@dataclass(frozen=True)
class Knot:
    """Vertices that all reach one another, and nothing else.

    Attributes
    ----------
    members
        Vertices, ascending.
    movable
        Those of them that can move now, ascending; while there is one, the knot is no deadlock.
    """

    members: tuple[int, ...]
    movable: tuple[int, ...] = ()

    @property
    def deadlocked(self) -> bool:
        """Whether nobody in it can move."""
        return not self.movable


@dataclass(frozen=True, eq=False)
class WaitFor:
    """A snapshot: which vertex waits for which.

    Attributes
    ----------
    waiter, awaited
        int32[N]: ``waiter[k]`` waits for ``awaited[k]``, and goes on as soon as one of those that it waits for has
        room.  The same pair may stand there more than once.
    can_move
        bool[n], vertices that can move now, whatever they wait for.  One that waits for nobody always can.
    """

    waiter: npt.NDArray[np.int32]
    awaited: npt.NDArray[np.int32]
    can_move: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        waiter: npt.ArrayLike,
        awaited: npt.ArrayLike,
        vertices: int,
        *,
        can_move: npt.ArrayLike | None = None,
    ) -> WaitFor:
        """Check the arrays and make a snapshot of them.

        Parameters
        ----------
        waiter, awaited
            int[N], numbers from 0 to ``vertices - 1``.
        vertices
            How many there are (n).
        can_move
            bool[n]; None: nobody who waits can.

        Raises
        ------
        OptionError
            Lengths that differ, what is no whole number, or is out of range.
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
        """Every dependency of a channel dependency graph at once: the snapshot that holds all waits there can be.

        Where routes are fixed by tables, each wait of a real snapshot is one of these.
        """
        counts = np.diff(graph.first)
        return cls.of(np.repeat(np.arange(len(counts), dtype=np.int32), counts), graph.to, len(counts))

    def __len__(self) -> int:
        return len(self.can_move)

    @cached_property
    def graph(self) -> igraph.Graph:
        """Directed igraph of the waits."""
        pairs = np.column_stack([self.waiter, self.awaited])
        return igraph.Graph(n=len(self), edges=pairs, directed=True)

    @cached_property
    def component(self) -> npt.NDArray[np.int32]:
        """int32[n], number of the strongly connected component of each vertex.  Cost: O(n + N)."""
        return np.asarray(self.graph.connected_components(mode="strong").membership, np.int32)

    @cached_property
    def on_cycle(self) -> npt.NDArray[np.bool_]:
        """bool[n], vertices that wait for themselves over one or more others."""
        return self._holding[self.component] if len(self) else np.zeros(0, bool)

    @cached_property
    def _holding(self) -> npt.NDArray[np.bool_]:
        """By component: whether it has a wait within (else it is a single vertex that is on no cycle)."""
        inside = self.component[self.waiter] == self.component[self.awaited]
        count = 1 + int(self.component.max(initial=-1))
        return np.bincount(self.component[self.waiter[inside]], minlength=count) > 0

    @cached_property
    def knots(self) -> tuple[Knot, ...]:
        """All knots, by their first member, those included in which somebody can still move.  Cost: O(n + N)."""
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
        """The knots in which nobody can move."""
        return tuple(knot for knot in self.knots if knot.deadlocked)

    @cached_property
    def stuck(self) -> npt.NDArray[np.bool_]:
        """bool[n], vertices that will never move: members of deadlocked knots, and all that can only wait for those.

        Cost: O(n + N).
        """
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
        """What it is: "deadlocked" if somebody is stuck for ever, "cyclic" if there is a cycle, but a way out."""
        if self.deadlocks:
            return "deadlocked"
        return "cyclic" if bool(self.on_cycle.any()) else "acyclic"

    def reach(self, vertex: int) -> tuple[int, ...]:
        """The reachable set of a vertex, ascending: whom it waits for, over any number of others.

        The vertex itself is in it only if it is on a cycle.  Cost: O(n + N).

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
    """Numbers of vertices, looked at before they are cut to 32 bits."""
    found = np.asarray(numbers).reshape(-1)
    whole = found.dtype.kind in "iu" or not len(found)
    if not whole or (len(found) and not 0 <= int(found.min()) <= int(found.max()) < vertices):
        raise OptionError(f"a vertex is not among 0 to {vertices - 1}")
    return found.astype(np.int32)
