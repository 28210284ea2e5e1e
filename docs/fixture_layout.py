"""Compute the layout of the picture of a fixture fabric: coordinates of switches and terminals (CAs and routers).

Coordinates depend only on names and row numbers.  No random numbers and no iteration are used.  So the picture of a
fabric is equal on every machine.  Coordinates are in pixels, and y increases downwards.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from routing.fabric import Fabric

Point = tuple[float, float]
GAP = 78.0
"""Distance between two neighbouring switches, in pixels."""
REACH = 30.0
"""Distance between a switch and its CAs, in pixels."""
DOWN = math.pi / 2
TIERS = ("leaf", "spine", "top")
"""Words for the levels of a tree, from the bottom up.  In the layout ``tiers``, the names of switches begin with these
words.
"""


def switch_places(fabric: Fabric, layout: str) -> list[Point]:
    """Compute the coordinates of each switch in the layout ``circle``, ``grid``, ``levels``, ``tiers`` or ``groups``.

    All layouts except ``circle`` use the switches' names.  The numbers in a name are the coordinates (``grid``), the
    tree level and number (``levels``), or the group and number (``groups``).  In the layout ``tiers``, a name begins
    with its tree level in words, see :data:`TIERS`.
    """
    if layout == "tiers":
        return _levels(_tiers(fabric.switch_name))
    return _LAYOUTS[layout]([tuple(map(int, re.findall(r"\d+", name))) for name in fabric.switch_name])


def _tiers(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the tree level of each switch, and its number among the switches of this level."""
    tiers = [next(tier for tier, word in enumerate(TIERS) if name.startswith(word)) for name in names]
    return [(tier, tiers[:row].count(tier)) for row, tier in enumerate(tiers)]


def _circle(labels: Sequence[tuple[int, ...]]) -> list[Point]:
    count = len(labels)
    return _around((0.0, 0.0), count, 0.0 if count == 1 else max(0.62 * GAP, count * GAP / (2 * math.pi)))


def _around(centre: Point, count: int, radius: float) -> list[Point]:
    angles = [2 * math.pi * i / count - DOWN if count != 2 else math.pi * (1 - i) for i in range(count)]
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in angles]


def _grid(labels: Sequence[tuple[int, ...]]) -> list[Point]:
    positions = []
    for label in labels:
        z, y, x = (0, 0, *label)[-3:]
        wide = GAP if len(label) < 3 else 2.1 * GAP
        positions.append((x * wide + z * 0.62 * GAP, y * wide - z * 0.5 * GAP))
    return positions


def _levels(labels: Sequence[tuple[int, ...]]) -> list[Point]:
    size: dict[int, int] = defaultdict(int)
    for label in labels:
        size[label[0]] = max(size[label[0]], label[1] + 1)
    width = max(size.values()) * GAP
    return [((label[1] + 0.5) * width / size[label[0]], -label[0] * 1.2 * GAP) for label in labels]


def _groups(labels: Sequence[tuple[int, ...]]) -> list[Point]:
    groups = sorted({label[:-1] for label in labels})
    size = max(label[-1] for label in labels) + 1
    small = max(26.0, size * 50 / (2 * math.pi))
    centres = _around((0.0, 0.0), len(groups), len(groups) * (2 * small + 2.6 * REACH) / (2 * math.pi))
    members = {group: _around(centre, size, small) for group, centre in zip(groups, centres, strict=True)}
    return [members[label[:-1]][label[-1]] for label in labels]


_LAYOUTS: Mapping[str, Callable[[Sequence[tuple[int, ...]]], list[Point]]] = {
    "circle": _circle,
    "grid": _grid,
    "levels": _levels,
    "groups": _groups,
}


def terminal_places(fabric: Fabric, layout: str, switches: Sequence[Point]) -> list[Point]:
    """Compute the coordinates of each terminal (CA or router).

    All terminals that are cabled only to one switch form a fan beside that switch.  A terminal that is cabled to
    several switches is drawn between these switches.  A terminal that is cabled to another terminal is drawn beside
    that terminal.
    """
    attached: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for terminal in range(fabric.terminals):
        rows = fabric.endport_switch[fabric.endport_terminal == terminal]
        attached[tuple(np.unique(rows[rows >= 0]).tolist())].append(terminal)
    positions: dict[int, Point] = {}
    unattached = attached.pop((), [])
    for rows, terminals in attached.items():
        anchor, centre = _mean([switches[row] for row in rows]), _centre(fabric, layout, switches, rows[0])
        reach = REACH if len(rows) == 1 else 1.3 * REACH
        if len(rows) > 1 and len(terminals) == 1 and math.dist(anchor, centre) < 1:
            reach = 0.0
        fan = _fan(anchor, _direction(layout, anchor, centre), len(terminals), reach)
        positions.update(zip(terminals, fan, strict=True))
    foot = max((y for _, y in switches), default=0.0) + 2.4 * REACH
    peers = _peers(fabric)
    for number, terminal in enumerate(unattached):
        beside = positions.get(peers.get(terminal, -1))
        positions[terminal] = (beside[0] + 2 * REACH, beside[1]) if beside else (2 * REACH * number, foot)
    return [positions[terminal] for terminal in range(fabric.terminals)]


def _peers(fabric: Fabric) -> dict[int, int]:
    """Return, for each terminal that is cabled to another terminal, the row of that other terminal."""
    pairs = [(a - fabric.switches, b - fabric.switches) for a, b in fabric.link_device.tolist() if a >= fabric.switches]
    return {**dict(pairs), **{b: a for a, b in pairs}}


def _centre(fabric: Fabric, layout: str, switches: Sequence[Point], row: int) -> Point:
    """Return the centre of a switch's group, or of the whole picture if the switches have no groups.

    In the layouts ``circle`` and ``groups``, CAs are drawn on the side of their switch that faces away from this
    centre.  ``switches`` has the coordinates of all switches, and ``row`` is the row of the switch.
    """
    if layout != "groups":
        return _mean(switches)
    group = fabric.switch_name[row].rpartition(".")[0]
    return _mean([p for name, p in zip(fabric.switch_name, switches, strict=True) if name.rpartition(".")[0] == group])


def _direction(layout: str, anchor: Point, centre: Point) -> float:
    """Return the direction in which CAs are drawn from their switch, in radians.

    The direction is down in the layouts ``levels`` and ``tiers``, diagonal in the layout ``grid``, and away from
    ``centre`` otherwise.  ``anchor`` has the coordinates of the switch, and ``centre`` is the result of
    :func:`_centre`.
    """
    if layout in ("levels", "tiers"):
        return DOWN
    if layout == "grid":
        return DOWN / 2
    away = (anchor[0] - centre[0], anchor[1] - centre[1])
    return math.atan2(away[1], away[0]) if math.hypot(*away) > 1 else DOWN


def _fan(anchor: Point, towards: float, count: int, reach: float) -> list[Point]:
    step = min(0.5, 2.4 / max(count, 1))
    angles = [towards + step * (i - (count - 1) / 2) for i in range(count)]
    return [(anchor[0] + reach * math.cos(a), anchor[1] + reach * math.sin(a)) for a in angles]


def _mean(points: Sequence[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
