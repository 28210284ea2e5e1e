"""Topologies with switches at the points of a grid: ring, mesh, torus, hypercube, HyperX, full mesh.

Switches are ordered with the last coordinate varying fastest.  A slot is the position of a link at a switch.  Slots are
ordered by dimension.  In a mesh or torus, the slot towards the lower coordinate precedes the slot towards the higher
coordinate.
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
    """Check the size of a grid, and return one number for each dimension.

    The number is the difference between the row numbers of two switches that are neighbours in this dimension.
    """
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
        Plan(name, labels, cables(), slots=[2 * len(dims)] * every, cas=[options.cas_or(1)] * every), options
    )


def ring(switches: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a ring of N switches, at least 3, with N links; its diameter is floor(N / 2).

    Raises
    ------
    OptionError
        There are fewer than 3 switches, or the fabric needs more LIDs than a subnet has.
    """
    if switches < 3:
        raise OptionError(f"{switches} switches make no ring", remedy="take at least 3, or a mesh")
    return _grid(f"ring-{switches}", (switches,), True, options)


def mesh(dims: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a mesh: a grid whose neighbours are linked, without wrap-around links.

    The diameter is the sum of (size - 1) over all dimensions.

    Parameters
    ----------
    dims
        Size of each dimension, at least 1; one dimension is a line.
    options
        Options: CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size is under 1, or the fabric needs more LIDs than a subnet has.
    """
    return _grid("mesh-" + "x".join(map(str, dims)), dims, False, options)


def torus(dims: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a torus (k-ary n-cube): a mesh with wrap-around links.

    The diameter is the sum of floor(size / 2) over all dimensions.  In a dimension of size 2, two neighbours have one
    link, not two parallel links.  So a torus whose sizes are all 2 is a hypercube.

    Parameters
    ----------
    dims
        Size of each dimension, at least 1.
    options
        Options: CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size is under 1, or the fabric needs more LIDs than a subnet has.
    """
    return _grid("torus-" + "x".join(map(str, dims)), dims, True, options)


def hypercube(dimension: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a hypercube of dimension d: 2^d switches, of which two are linked if their numbers differ in one bit.

    The diameter is d.

    Raises
    ------
    OptionError
        The dimension is not within 0 to 15, or the fabric needs more LIDs than a subnet has.
    """
    if not 0 <= dimension <= 15:
        raise OptionError(f"a hypercube of dimension {dimension}", remedy="choose a dimension from 0 to 15")
    return _hyperx(f"hypercube-{dimension}", (2,) * dimension, (1,) * dimension, options)


def hyperx(dims: Sequence[int], links: Sequence[int] | None = None, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a HyperX (Ahn et al., SC 2009): two switches are linked if their coordinates differ in one dimension only.

    The diameter is the number of dimensions of size 2 or more.  A HyperX of one dimension is a full mesh; a HyperX
    whose sizes are all 2 is a hypercube.

    Parameters
    ----------
    dims
        Number of switches along each dimension (S in the paper), at least 1.
    links
        Number of parallel links in each dimension (K in the paper); None: 1 in each dimension.  ``redundancy``
        multiplies these numbers.
    options
        Options: CAs per switch (T in the paper; default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        There is no dimension, a size or number of links is under 1, ``links`` has another length than ``dims``, or the
        fabric needs more LIDs than a subnet has.
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
    """Make a full mesh, in which every two of N switches are linked: N (N - 1) / 2 links, diameter 1.

    Raises
    ------
    OptionError
        The number of switches is under 1, a switch would need more than 254 ports, or the fabric needs more LIDs than a
        subnet has.
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
                    # Slots are in the order of the neighbours' coordinates.  No slot leads to the switch itself.  So
                    # the slot towards coordinate c is number c at a switch above c, and c - 1 at a switch below c.
                    near, far = first[axis] + (there - 1) * number, first[axis] + here * number
                    other = row + (there - here) * stride
                    for more in range(number):
                        yield row, near + more, other, far + more

    every = len(labels)
    return build_fabric(
        Plan(name, labels, cables(), slots=[sum(widths)] * every, cas=[options.cas_or(1)] * every), options
    )
