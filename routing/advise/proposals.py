"""Propose designs for a number of hosts and switches of one size: trees, tori, HyperX, dragonflies and Slim Flies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from routing.advise.designs import cable_counts, hosts_of
from routing.errors import OptionError
from routing.fabric import MAX_UNICAST_LID, Fabric
from routing.fabric_figures import bisection_bound, diameter
from routing.topologies import TOPOLOGIES, from_words
from routing.topologies.galois import GaloisField

TARGETS = (1.0, 0.5, 0.25)
"""Bisections that designs should reach, as shares of the full bisection: the bisection at which each half of the end
ports can send at its full rate to the other half.

For each share and each family, the smallest design that reaches the share is proposed.
"""
FAMILIES = ("tree", "hyperx", "torus", "dragonfly", "slimfly")
"""Families of designs, in the order of the proposals."""
DEEPEST_TREE = 4
LARGEST_TORUS = 5
LARGEST_HYPERX = 3


@dataclass(frozen=True)
class Shape:
    """A design whose numbers are computed by formulas, because its fabric is not built yet.

    Attributes
    ----------
    family
        One of :data:`FAMILIES`.
    design
        The generator with its arguments as one word.
    hosts
        Number of CAs of the design.
    switches, cables
        Number of switches, and number of cables between switches.  The fabric of a dragonfly may have fewer cables,
        because some ports for links between groups may stay empty.
    share
        Estimated upper bound of the bisection, whatever the tables are, as a share of the CAs' rate.  For a tree: the
        capacity of a leaf's links up, divided by the capacity of its links to CAs.
    """

    family: str
    design: str
    hosts: int
    switches: int
    cables: int
    share: float


@dataclass(frozen=True)
class Proposal:
    """A proposed design with the figures of its fabric.

    Attributes
    ----------
    shape
        Family, generator and numbers of the design.
    hosts, switches, cables
        Number of CAs, of switches, and of cables between switches, counted in the fabric.
    ports
        Largest number of ports that a switch needs.
    diameter
        Largest number of links on a shortest path between two switches; None if the fabric is too large.
    oversubscription
        For a tree: the capacity of a leaf's links to CAs, divided by the capacity of its links up.  None for other
        families.
    bisection
        Upper bound of the bisection, whatever the tables are, as a share of the CAs' rate; None with a single switch.
    """

    shape: Shape
    hosts: int
    switches: int
    cables: int
    ports: int
    diameter: int | None
    oversubscription: float | None
    bisection: float | None


def propose(hosts: int, ports: int) -> list[Shape]:
    """Return a design for each family of topologies and each bisection share in :data:`TARGETS`: the design that
    reaches the share with the fewest switches.  Of several such designs, the design with the fewest cables is returned.

    Parameters
    ----------
    hosts
        Number of hosts, at least 2.
    ports
        Number of ports of each switch, at least 2.

    Raises
    ------
    OptionError
        No design connects the given number of hosts in one subnet.

    Notes
    -----
    Cost: O(ports^3) shapes at most, each a few operations.
    """
    best: dict[tuple[str, float], Shape] = {}
    for shape in _shapes(hosts, ports):
        if shape.hosts + shape.switches > MAX_UNICAST_LID:
            continue
        for target in TARGETS:
            other = best.get((shape.family, target))
            if shape.share >= target and (other is None or _size(shape) < _size(other)):
                best[shape.family, target] = shape
    chosen = [best[key] for key in itertools.product(FAMILIES, TARGETS) if key in best]
    if not chosen:
        raise OptionError(
            f"no proposed design connects {hosts} hosts by switches of {ports} ports in one subnet",
            remedy="take larger switches or fewer hosts",
        )
    return list(dict.fromkeys(chosen))


def evaluate_shape(shape: Shape) -> Proposal:
    """Build the fabric of a design, and return the design with the figures of the fabric."""
    fabric = fabric_of(shape)
    return Proposal(
        shape=shape,
        hosts=hosts_of(fabric),
        switches=fabric.switches,
        cables=cable_counts(fabric)[0],
        ports=int(fabric.switch_ports.max()),
        diameter=diameter(fabric),
        oversubscription=1 / shape.share if shape.family == "tree" else None,
        bisection=bisection_bound(fabric),
    )


def fabric_of(shape: Shape) -> Fabric:
    """Return the fabric of a design."""
    name, _, words = shape.design.partition(":")
    return from_words(name, words.split(","))


def _size(shape: Shape) -> tuple[int, int, float]:
    return shape.switches, shape.cables, -shape.share


def _shapes(hosts: int, ports: int) -> Iterator[Shape]:
    """Yield designs of all families with at least the given number of hosts, for switches with ``ports`` ports."""
    if hosts <= ports:
        yield Shape("tree", f"xgft:{hosts},1", hosts, 1, 0, 1.0)
        return
    yield from _two_levels(hosts, ports)
    for levels in range(3, DEEPEST_TREE + 1):
        yield from _deep_trees(hosts, ports, levels)
    for dimensions in range(1, LARGEST_HYPERX + 1):
        yield from _hyperx(hosts, ports, dimensions)
    for dimensions in range(2, LARGEST_TORUS + 1):
        yield from _tori(hosts, ports, dimensions)
    yield from _dragonflies(hosts, ports)
    yield from _slimflies(hosts, ports)


def _word(topology: str, *arguments: str, cas: int | None = None, redundancy: int = 1) -> str:
    """Return a generator with arguments and options in the form of the command line, such as ``torus:4x4,cas=2``.

    ``cas`` is the number of CAs of a switch; None: the option is left out.  ``redundancy`` is the number of parallel
    cables in place of each link between switches.
    """
    assert topology in TOPOLOGIES
    options = ([] if cas is None else [f"cas={cas}"]) + ([] if redundancy == 1 else [f"redundancy={redundancy}"])
    return f"{topology}:{','.join([*arguments, *options])}"


def _joined(numbers: Iterator[int] | tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


def _two_levels(hosts: int, ports: int) -> Iterator[Shape]:
    """Yield trees of two levels (leaves and spines) for ``hosts`` CAs, with switches of ``ports`` ports.

    Every leaf has equally many cables to every spine.
    """
    for down in range(1, ports):
        leaves = math.ceil(hosts / down)
        own = math.ceil(hosts / leaves)
        for redundancy in range(1, ports // leaves + 1):
            spines = min(ports - own, own) // redundancy
            if spines:
                cables = leaves * spines * redundancy
                word = _word("xgft", f"{own}x{leaves}", f"1x{spines}", redundancy=redundancy)
                yield Shape("tree", word, leaves * own, leaves + spines, cables, spines * redundancy / own)


def _deep_trees(hosts: int, ports: int, levels: int) -> Iterator[Shape]:
    """Yield trees of ``levels`` levels (at least three) for ``hosts`` CAs, with switches of ``ports`` ports.

    Only the leaves are oversubscribed.
    """
    for target in TARGETS:
        down = int(ports / (1 + target))
        up = min(ports - down, down)
        for inner in itertools.product(range(2, ports // 2 + 1), repeat=levels - 2):
            top = math.ceil(hosts / (down * math.prod(inner)))
            if not 2 <= top <= ports:
                continue
            leaves = math.prod(inner) * top
            own = math.ceil(hosts / leaves)
            children = (own, *inner, top)
            parents = (1, min(up, own), *inner)
            # Level 0 is the leaves.  `children[j]` is the number of CAs or switches below a switch of level j.
            # `parents[j]` is the number of switches of level j to which each of these is cabled.  The number of
            # switches at level i is the product of `children[j]` for all levels j above i, and of `parents[j]` for all
            # levels j up to i.
            sizes = [math.prod(children[i + 1 :]) * math.prod(parents[: i + 1]) for i in range(levels)]
            cables = sum(size * up for size, up in zip(sizes, parents[1:], strict=False))
            word = _word("xgft", _joined(children), _joined(parents))
            yield Shape("tree", word, leaves * own, sum(sizes), cables, min(up, own) / own)


def _grids(dimensions: int, smallest: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield grids with ``dimensions`` dimensions, each grid as its number of switches along each dimension.

    Within a grid, these numbers differ by at most one, and each number is at least ``smallest``.  ``most`` limits only
    the number of switches of grids with equal dimensions.  A grid in which some dimensions have one switch more may
    exceed this limit.
    """
    for size in itertools.count(smallest):
        if size**dimensions > most:
            return
        for larger in range(dimensions):
            yield (*itertools.repeat(size + 1, larger), *itertools.repeat(size, dimensions - larger))


def _hyperx(hosts: int, ports: int, dimensions: int) -> Iterator[Shape]:
    """Yield HyperX fabrics for ``hosts`` CAs, with switches of ``ports`` ports.

    All dimensions have equally many parallel cables.

    The bisection follows J. Ahn et al., SC 2009.  The bisection is half the number of switches of the narrowest
    dimension, times the number of parallel cables, divided by the number of CAs at a switch.
    """
    for sizes in _grids(dimensions, 2, min(hosts, ports**dimensions)):
        switches = math.prod(sizes)
        cas = math.ceil(hosts / switches)
        links = sum(size - 1 for size in sizes)
        redundancy = (ports - cas) // links
        for parallel in range(1, redundancy + 1):
            word = _word("hyperx", _joined(sizes), cas=cas, redundancy=parallel)
            share = parallel * min(sizes) / (2 * cas)
            yield Shape("hyperx", word, switches * cas, switches, switches * links * parallel // 2, share)


def _tori(hosts: int, ports: int, dimensions: int) -> Iterator[Shape]:
    """Yield tori for ``hosts`` CAs, with switches of ``ports`` ports.

    All dimensions have equally many parallel cables.  The bisection follows from a cut through the middle of the
    longest dimension.
    """
    for sizes in _grids(dimensions, 3, hosts):
        switches = math.prod(sizes)
        cas = math.ceil(hosts / switches)
        for parallel in range(1, (ports - cas) // (2 * dimensions) + 1):
            word = _word("torus", _joined(sizes), cas=cas, redundancy=parallel)
            share = 4 * parallel / (max(sizes) * cas)
            yield Shape("torus", word, switches * cas, switches, switches * dimensions * parallel, share)


def _dragonflies(hosts: int, ports: int) -> Iterator[Shape]:
    """Yield dragonflies for ``hosts`` CAs, with switches of ``ports`` ports.

    A group has twice as many switches as a switch has global links (links to other groups).  Source: Kim et al., ISCA
    2008.
    """
    for links in range(1, ports // 3 + 1):
        size = 2 * links
        for cas in range(1, ports - (size - 1) - links + 1):
            groups = math.ceil(hosts / (size * cas))
            if not 2 <= groups <= size * links + 1:
                continue
            own = math.ceil(hosts / (size * groups))
            word = _word("dragonfly", str(size), str(own), str(links), str(groups))
            # A bisection divides the groups into two halves.  The global links of a group lead evenly to all other
            # groups, so the share groups / 2 / (groups - 1) of these links crosses to the other half.
            share = links / own * groups / (2 * (groups - 1))
            cables = groups * size * (size - 1 + links) // 2
            yield Shape("dragonfly", word, size * groups * own, size * groups, cables, share)


def _slimflies(hosts: int, ports: int) -> Iterator[Shape]:
    """Yield Slim Flies for ``hosts`` CAs, with switches of ``ports`` ports.

    The bisection of a Slim Fly is estimated by the bisection of a random graph with equally many links per switch.
    """
    for q in range(3, 128):
        degree = (3 * q - {0: 0, 1: 1, 3: -1}.get(q % 4, 0)) // 2
        switches = 2 * q * q
        cas = math.ceil(hosts / switches)
        if q % 4 != 2 and GaloisField.is_prime_power(q) and degree + cas <= ports:
            share = 2 / cas * (degree / 4 - 0.38 * math.sqrt(degree))
            yield Shape(
                "slimfly", _word("slimfly", str(q), cas=cas), switches * cas, switches, switches * degree // 2, share
            )
