"""Topologies with switches on the points of a grid: ring, mesh, torus, hypercube, HyperX, full mesh.

Switches are ordered with the last dimension varying fastest.  Slots are ordered by dimension; in a mesh or torus, the
slot towards the lower coordinate precedes the one towards the higher coordinate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import Cable, Plan, build_fabric, check_size


def _strides(dims: Sequence[int], options: TopologyOptions) -> list[int]:
    """Return the distance of two neighbours along each dimension in the order of switches."""
    if not dims or min(dims) < 1:
        raise OptionError(
            f"{'x'.join(map(str, dims)) or 'nothing'} is not a grid", remedy="give one size of at least 1 per dimension"
        )
    switches = math.prod(dims)
    check_size(switches, switches * options.cas_or(1), options)
    return [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]


def _grid(name: str, dims: Sequence[int], wrapped: bool, options: TopologyOptions) -> Fabric:
    strides = _strides(dims, options)
    labels = list(itertools.product(*map(range, dims)))

    def cables() -> Iterator[Cable]:
        for row, position in enumerate(labels):
            for axis, (size, stride) in enumerate(zip(dims, strides, strict=True)):
                if position[axis] + 1 < size:
                    yield row, 2 * axis + 1, row + stride, 2 * axis
                elif wrapped and size > 2:
                    yield row, 2 * axis + 1, row - (size - 1) * stride, 2 * axis

    every = len(labels)
    return build_fabric(
        Plan(name, labels, cables(), slots=[2 * len(dims)] * every, cas=[options.cas_or(1)] * every),
        options,
    )


def ring(switches: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a ring of at least 3 switches: as many links, diameter floor(N / 2).

    Raises
    ------
    OptionError
        There are fewer than 3 switches, or the fabric exceeds a subnet.
    """
    if switches < 3:
        raise OptionError(f"{switches} switches make no ring", remedy="take at least 3, or a mesh")
    return _grid(f"ring-{switches}", (switches,), True, options)


def mesh(dims: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a mesh: a grid with links between neighbours, without wrap-around links.  Diameter: sum of (size - 1).

    Parameters
    ----------
    dims
        Size of each dimension, at least 1; one dimension is a line.
    options
        CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size is under 1, or the fabric exceeds a subnet.
    """
    return _grid("mesh-" + "x".join(map(str, dims)), dims, False, options)


def torus(dims: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a torus (k-ary n-cube): a mesh with wrap-around links.  Diameter: sum of floor(size / 2).

    A dimension of size 2 has one link, not two parallel ones, so that a torus of sizes 2 is a hypercube.

    Parameters
    ----------
    dims
        Size of each dimension, at least 1.
    options
        CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size is under 1, or the fabric exceeds a subnet.
    """
    return _grid("torus-" + "x".join(map(str, dims)), dims, True, options)


def hypercube(dimension: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a hypercube: 2^d switches, each linked to the d switches that differ in one bit.  Diameter d.

    Raises
    ------
    OptionError
        The dimension is under 0, or the fabric exceeds a subnet.
    """
    if not 0 <= dimension <= 15:
        raise OptionError(f"a hypercube of dimension {dimension}", remedy="choose a dimension from 0 to 15")
    return _hyperx(f"hypercube-{dimension}", (2,) * dimension, (1,) * dimension, options)


def hyperx(dims: Sequence[int], links: Sequence[int] | None = None, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a HyperX (Ahn et al., SC 2009): along every dimension all switches are linked to each other.

    The diameter is the number of dimensions of size 2 or more.  One dimension is a full mesh; if all sizes are 2, it is
    a hypercube.

    Parameters
    ----------
    dims
        Size S of each dimension, at least 1.
    links
        Parallel links K of each dimension, before ``redundancy``; None: 1 each.
    options
        CAs per switch (T; default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size or number of links is under 1, ``links`` has another length than ``dims``, or the
        fabric exceeds a subnet.
    """
    if not dims:
        raise OptionError("a HyperX of no dimension", remedy="give one size of at least 1 per dimension")
    links = (1,) * len(dims) if links is None else links
    if len(links) != len(dims) or min(links) < 1:
        raise OptionError(
            f"{len(dims)} dimensions and links {'x'.join(map(str, links))}",
            remedy="give one number of parallel links, at least 1, per dimension",
        )
    return _hyperx("hyperx-" + "x".join(map(str, dims)), dims, links, options)


def full_mesh(switches: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Return a full mesh, in which every switch is linked to every other: N (N - 1) / 2 links, diameter 1.

    Raises
    ------
    OptionError
        There is no switch, or more switches than their ports can link.
    """
    if switches < 1:
        raise OptionError(f"a full mesh of {switches} switches", remedy="take at least 1")
    return _hyperx(f"full-mesh-{switches}", (switches,), (1,), options)


def _hyperx(name: str, dims: Sequence[int], links: Sequence[int], options: TopologyOptions) -> Fabric:
    strides = _strides(dims, options) if dims else []
    labels = list(itertools.product(*map(range, dims)))
    widths = [(size - 1) * number for size, number in zip(dims, links, strict=True)]
    first = [sum(widths[:axis]) for axis in range(len(dims))]

    def cables() -> Iterator[Cable]:
        for row, position in enumerate(labels):
            for axis, (size, stride, number) in enumerate(zip(dims, strides, links, strict=True)):
                here = position[axis]
                for there in range(here + 1, size):
                    # A switch has no slot towards itself, so the slots of higher coordinates move down by one.
                    near, far = first[axis] + (there - 1) * number, first[axis] + here * number
                    other = row + (there - here) * stride
                    for more in range(number):
                        yield row, near + more, other, far + more

    every = len(labels)
    return build_fabric(
        Plan(name, labels, cables(), slots=[sum(widths)] * every, cas=[options.cas_or(1)] * every), options
    )
