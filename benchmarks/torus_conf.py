"""Write OpenSM's file torus-2QoS.conf for generated meshes and tori."""

from __future__ import annotations

import math
import re

from routing.fabric import Fabric

AXES = "xyz"
SHORTEST_RING = 3


def torus_conf(fabric: Fabric, whole: Fabric) -> str | None:
    """Return the text of torus-2QoS.conf for a mesh or torus of two or three dimensions, or None for other fabrics.

    Parameters
    ----------
    fabric
        The fabric, of which links may be missing.
    whole
        The fabric with all links.  Its switches are named by their coordinates, such as ``sw0.1.2``.
    """
    position = {name: tuple(map(int, re.findall(r"\d+", name))) for name in whole.switch_name}
    count = {len(each) for each in position.values()}
    if count not in ({2}, {3}) or not all(re.fullmatch(r"sw\d+(\.\d+){1,2}", name) for name in position):
        return None
    at = {place: name for name, place in position.items()}
    size = [max(column) + 1 for column in zip(*at, strict=True)]
    if len(at) != math.prod(size):
        return None
    linked = _linked(whole)
    looped = []
    for axis, length in enumerate(size):
        corner = [0] * len(size)
        corner[axis] = length - 1
        looped.append(length >= SHORTEST_RING and frozenset((at[(0,) * len(size)], at[tuple(corner)])) in linked)
    steps = sum(length if ring else length - 1 for length, ring in zip(size, looped, strict=True))
    if len(at) * sum((n if r else n - 1) / n for n, r in zip(size, looped, strict=True)) != len(linked) or steps == 0:
        # The fabric is neither a mesh nor a torus.  In a mesh or torus, every link is a step along a dimension, and
        # every step has a link.
        return None
    present = _linked(fabric)
    kinds = " ".join(f"{n}{'t' if ring else 'm'}" for n, ring in zip(size, looped, strict=True))
    lines = [f"torus {kinds}" + (" 1" if len(size) == 2 else "")]
    lines += _seed(
        at,
        size,
        looped,
        present,
        {name: int(g) for name, g in zip(fabric.switch_name, fabric.switch_guid.tolist(), strict=True)},
    )
    return "\n".join(lines) + "\n"


def _linked(fabric: Fabric) -> set[frozenset[str]]:
    channels, names = fabric.channels, fabric.switch_name
    return {frozenset((names[a], names[b])) for a, b in zip(channels.src.tolist(), channels.dst.tolist(), strict=True)}


def _seed(
    at: dict[tuple[int, ...], str],
    size: list[int],
    looped: list[bool],
    present: set[frozenset[str]],
    guid: dict[str, int],
) -> list[str]:
    """Return the lines of torus-2QoS.conf that define the seed, which is a switch.

    Each line names the link from the seed to the next or to the previous switch along one dimension.  The switch with
    the most such links becomes the seed.  If several switches have equally many links, the first one becomes the seed.

    Parameters
    ----------
    at
        Name of the switch at each position of the grid.
    size
        Number of switches along each dimension.
    looped
        For each dimension, whether the switches along this dimension form rings.
    present
        Links of the fabric: pairs of the names of two linked switches.
    guid
        Node GUID of each switch, by name.
    """
    best: list[str] = []
    for place, name in at.items():
        lines = []
        for axis, length in enumerate(size):
            for sign, step in (("p", 1), ("m", -1)):
                there = list(place)
                there[axis] += step
                if looped[axis]:
                    there[axis] %= length
                other = at.get(tuple(there))
                if other is not None and frozenset((name, other)) in present:
                    lines.append(f"{AXES[axis]}{sign}_link 0x{guid[name]:x} 0x{guid[other]:x}")
        if len(lines) > len(best):
            best = lines
    return best
