"""Run cases of a scenario file that analyse a wait-for graph without simulating packets.

The analysis finds the vertices on cycles, and the knots: sets of vertices that wait only for each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np

from routing.deadlock.waitfor import WaitFor
from routing.simulate.case_output import CaseOutput
from routing.simulate.scenario import Case, Scenario

DIRECTIONS = {"E": (1, 0), "W": (-1, 0), "N": (0, 1), "S": (0, -1)}
TURNS = tuple(a + b for a, b in product(DIRECTIONS, repeat=2) if (a in "EW") != (b in "EW"))

Wait = tuple[str, str]


def grid_dependencies(
    size: tuple[int, int], turns: tuple[str, ...], *, around: bool, directed: bool
) -> tuple[set[Wait], set[str]]:
    """Compute the channel dependencies of shortest paths on a grid in which packets may make only the given turns.

    Parameters
    ----------
    size
        Number of switches along x and y.
    turns
        Allowed turns; "EN" lets a packet turn from east to north.  A packet may also go straight on in a direction, if
        shortest paths can have two hops in this direction.
    around
        Whether cables connect the ends of each row and column (a torus).  A ring of two switches then has two cables.
    directed
        Whether only channels to the east and the north exist.

    Returns
    -------
    dependencies
        Pairs of channels: the first channel of a pair depends on the second.
    names
        All channels, each named by its direction and the coordinates of its source.
    """
    names = {"E": size[0], "N": size[1]} if directed else {"E": size[0], "W": size[0], "N": size[1], "S": size[1]}
    to = {
        (heading, x, y): (x + DIRECTIONS[heading][0], y + DIRECTIONS[heading][1])
        for heading, x, y in product(names, range(size[0]), range(size[1]))
    }
    if around:
        to = {start: (x % size[0], y % size[1]) for start, (x, y) in to.items()}
    channels = {start: end for start, end in to.items() if 0 <= end[0] < size[0] and 0 <= end[1] < size[1]}

    def label(direction: str, x: int, y: int) -> str:
        return f"{direction}{x}{y}"

    far = {heading: (n - 1 if directed or not around else n // 2) for heading, n in names.items()}
    waits = {
        (label(*start), label(onward, *end))
        for start, end in channels.items()
        for onward in names
        if (onward, *end) in channels and (start[0] + onward in turns or (onward == start[0] and far[onward] > 1))
    }
    return waits, {label(*start) for start in channels}


def _chains(scenario: Scenario, chains: list[Any]) -> Iterator[Wait]:
    """Yield the edges (a, b), (b, c) of dependency chains that are written as ``"a > b > c"``."""
    for chain in chains:
        names = [name.strip() for name in chain.split(">")] if isinstance(chain, str) else []
        if len(names) < 2 or not all(names):
            raise scenario.error(f"{chain!r} is not a chain of dependencies", remedy='write "a > b > c"')
        yield from pairwise(names)


def _grid(scenario: Scenario, table: Mapping[str, Any]) -> tuple[set[Wait], set[str]]:
    """Return the dependencies and channel names of the grid that a simulation case describes."""
    size, turns = table["grid"], tuple(table.get("turns", TURNS))
    if len(size) != 2 or not all(isinstance(side, int) and 2 <= side <= 9 for side in size):
        raise scenario.error(f"{size!r} is not a grid", remedy="give two sides of 2 to 9")
    for turn in turns:
        if turn not in TURNS:
            raise scenario.error(f"{turn!r} is not a turn", remedy=f"use {', '.join(TURNS)}")
    return grid_dependencies(
        (size[0], size[1]), turns, around=table.get("around", False), directed=table.get("one_way", False)
    )


def run_graph(scenario: Scenario, case: Case) -> CaseOutput:
    """Analyse the wait-for graph of a simulation case.  The case lists dependencies, or describes a grid with channel
    dependencies.
    """
    table = case.table.get("graph", {})
    pairs, names = _grid(scenario, table) if "grid" in table else (set[Wait](), set[str]())
    pairs |= set(_chains(scenario, table.get("dependencies", [])))
    movable = table.get("movable", [])
    names |= {name for pair in pairs for name in pair}
    if not names or not names.issuperset(movable):
        raise scenario.error(f"case {case.name!r} needs a graph that contains the vertices of movable")
    order = sorted(names)
    number = {name: row for row, name in enumerate(order)}
    waits = WaitFor.of(
        [number[a] for a, _ in pairs],
        [number[b] for _, b in pairs],
        len(order),
        can_move=[name in movable for name in order],
    )
    return CaseOutput(describe(waits, order, len(pairs)), {"graph": "grid" if "grid" in table else "dependencies"})


def describe(waits: WaitFor, names: list[str], count: int) -> dict[str, Any]:
    """Return the figures of a wait-for graph by name, such as its cycles and knots.  ``count`` is the
    number of edges.
    """
    sizes = np.bincount(waits.component[waits.on_cycle]) if bool(waits.on_cycle.any()) else np.zeros(0, int)
    return {
        "vertices": len(names),
        "edges": count,
        "verdict": waits.verdict,
        "cyclic": bool(waits.on_cycle.any()),
        "components": sorted((int(size) for size in sizes if size), reverse=True),
        "on_cycles": [names[row] for row in np.flatnonzero(waits.on_cycle)],
        "knots": [[names[row] for row in knot.members] for knot in waits.knots],
        "stuck": [names[row] for row in np.flatnonzero(waits.stuck)],
        "movable": [names[row] for knot in waits.knots for row in knot.movable],
        "reach": {name: sorted(names[other] for other in waits.reach(row)) for row, name in enumerate(names)},
    }
