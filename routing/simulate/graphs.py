"""Cases about graphs alone: who waits for whom, what is on cycles, and which of these are knots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np

from routing.deadlock.waitfor import WaitFor
from routing.simulate.played import Played
from routing.simulate.scenario import Case, Scenario

DIRECTIONS = {"E": (1, 0), "W": (-1, 0), "N": (0, 1), "S": (0, -1)}
TURNS = tuple(a + b for a, b in product(DIRECTIONS, repeat=2) if (a in "EW") != (b in "EW"))

Wait = tuple[str, str]


def grid_waits(
    size: tuple[int, int], turns: tuple[str, ...], *, around: bool, one_way: bool
) -> tuple[set[Wait], set[str]]:
    """What shortest ways on a grid make wait for what, if they may take these turns; and all channels.

    Parameters
    ----------
    size
        Switches along x and y.
    turns
        Such as "EN": a packet that goes east may go on to the north.  Straight on is always allowed where a shortest
        way has two hops in that direction.
    around
        With cables around the ends; also along a side of two, where a pair of switches then has two cables.
    one_way
        East and north only.

    Returns
    -------
    Pairs of channels, each named by its direction and the place where it begins; and the names.
    """
    names = {"E": size[0], "N": size[1]} if one_way else {"E": size[0], "W": size[0], "N": size[1], "S": size[1]}
    to = {
        (way, x, y): (x + DIRECTIONS[way][0], y + DIRECTIONS[way][1])
        for way, x, y in product(names, range(size[0]), range(size[1]))
    }
    if around:
        to = {start: (x % size[0], y % size[1]) for start, (x, y) in to.items()}
    channels = {start: end for start, end in to.items() if 0 <= end[0] < size[0] and 0 <= end[1] < size[1]}

    def label(way: str, x: int, y: int) -> str:
        return f"{way}{x}{y}"

    far = {way: (n - 1 if one_way or not around else n // 2) for way, n in names.items()}
    waits = {
        (label(*start), label(onward, *end))
        for start, end in channels.items()
        for onward in names
        if (onward, *end) in channels and (start[0] + onward in turns or (onward == start[0] and far[onward] > 1))
    }
    return waits, {label(*start) for start in channels}


def _chains(scenario: Scenario, chains: list[Any]) -> Iterator[Wait]:
    for chain in chains:
        names = [name.strip() for name in chain.split(">")] if isinstance(chain, str) else []
        if len(names) < 2 or not all(names):
            raise scenario.error(f"{chain!r} is no chain of waits", remedy='write "a > b > c"')
        yield from pairwise(names)


def _grid(scenario: Scenario, table: Mapping[str, Any]) -> tuple[set[Wait], set[str]]:
    size, turns = table["grid"], tuple(table.get("turns", TURNS))
    if len(size) != 2 or not all(isinstance(side, int) and 2 <= side <= 9 for side in size):
        raise scenario.error(f"{size!r} is no grid", remedy="give two sides of 2 to 9")
    for turn in turns:
        if turn not in TURNS:
            raise scenario.error(f"{turn!r} is no turn", remedy=f"use {', '.join(TURNS)}")
    return grid_waits((size[0], size[1]), turns, around=table.get("around", False), one_way=table.get("one_way", False))


def play_graph(scenario: Scenario, case: Case) -> Played:
    """Look at a graph of waits that is written down, or that a grid has."""
    table = case.table.get("graph", {})
    pairs, names = _grid(scenario, table) if "grid" in table else (set[Wait](), set[str]())
    pairs |= set(_chains(scenario, table.get("waits", [])))
    movable = table.get("movable", [])
    names |= {name for pair in pairs for name in pair}
    if not names or not names.issuperset(movable):
        raise scenario.error(f"case {case.name!r} needs a graph, and who can move has to be in it")
    order = sorted(names)
    number = {name: row for row, name in enumerate(order)}
    waits = WaitFor.of(
        [number[a] for a, _ in pairs],
        [number[b] for _, b in pairs],
        len(order),
        can_move=[name in movable for name in order],
    )
    return Played(describe(waits, order, len(pairs)), {"graph": "grid" if "grid" in table else "waits"})


def describe(waits: WaitFor, names: list[str], count: int) -> dict[str, Any]:
    """Figures that may be expected of a graph of waits."""
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
