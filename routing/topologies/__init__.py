"""Generators of fabrics for common topologies.

Each generator takes its arguments and :class:`TopologyOptions`, and returns a :class:`~routing.fabric.Fabric`.
:func:`generate` calls a generator by name, with arguments as on a command line.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.topologies.cascade import cascade
from routing.topologies.clusters import cluster
from routing.topologies.director import director
from routing.topologies.grids import full_mesh, hypercube, hyperx, mesh, ring, torus
from routing.topologies.low_diameter import dragonfly, kautz, slimfly
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.rails import rails
from routing.topologies.random_graphs import random_regular
from routing.topologies.trees import kary_ntree, xgft

__all__ = [
    "DEFAULTS",
    "TOPOLOGIES",
    "Topology",
    "TopologyOptions",
    "cascade",
    "cluster",
    "director",
    "dragonfly",
    "from_words",
    "full_mesh",
    "generate",
    "hypercube",
    "hyperx",
    "kary_ntree",
    "kautz",
    "mesh",
    "rails",
    "random_regular",
    "ring",
    "slimfly",
    "torus",
    "xgft",
]

Lists = Sequence[Sequence[int]]
LARGEST_ARGUMENT = 49151


@dataclass(frozen=True)
class Topology:
    """A generator of fabrics, with its description for the command line.

    Attributes
    ----------
    name
        Name of the topology.
    usage
        Syntax of the arguments.
    summary
        Description of the topology in one line.
    example
        Arguments for a small example.
    build
        Function that makes the fabric.  Its first parameter has a list of integers for each argument, and its second
        parameter is the options.
    counts
        Numbers of arguments that are allowed; empty: any number.
    lists
        Whether an argument can be a list such as ``4x3``.  Otherwise ``4x3``, ``4,3`` and ``4 3`` all mean two
        arguments.
    random
        Whether the generator is random, so that the seed has an effect.
    """

    name: str
    usage: str
    summary: str
    example: tuple[str, ...]
    build: Callable[[Lists, TopologyOptions], Fabric]
    counts: tuple[int, ...] = ()
    lists: bool = False
    random: bool = False

    @property
    def as_word(self) -> str:
        """Syntax of a FABRIC argument for this generator, such as ``kary-ntree:K,N``."""
        return f"{self.name}:{self.usage.replace(' [', '[,').replace(' ', ',')}"

    @property
    def example_word(self) -> str:
        """Example of the generator with its arguments in one word, such as ``kary-ntree:4,3``."""
        return f"{self.name}:{','.join(self.example)}"


def _sizes(make: Callable[[Sequence[int], TopologyOptions], Fabric]) -> Callable[[Lists, TopologyOptions], Fabric]:
    return lambda lists, options: make([number for (number,) in lists], options)


def _numbers(make: Callable[..., Fabric]) -> Callable[[Lists, TopologyOptions], Fabric]:
    return lambda lists, options: make(*(number for (number,) in lists), options=options)


def _lists(make: Callable[..., Fabric]) -> Callable[[Lists, TopologyOptions], Fabric]:
    return lambda lists, options: make(*lists, options=options)


_ALL = (
    Topology("ring", "N", "N switches in a ring", ("6",), _numbers(ring), (1,)),
    Topology("mesh", "AxBx...", "a grid in which neighbours are linked", ("4x3",), _sizes(mesh)),
    Topology("torus", "AxBx...", "a mesh with wrap-around links (k-ary n-cube)", ("4x4x4",), _sizes(torus)),
    Topology("hypercube", "D", "2^D switches, linked if one bit differs", ("4",), _numbers(hypercube), (1,)),
    Topology(
        "hyperx",
        "AxBx... [KxLx...]",
        "a grid in which all switches of a row are linked, with K, L, ... parallel links",
        ("4x4",),
        _lists(hyperx),
        (1, 2),
        lists=True,
    ),
    Topology("kary-ntree", "K N", "a K-ary N-tree: N levels of K^(N-1)", ("4", "3"), _numbers(kary_ntree), (2,)),
    Topology(
        "xgft",
        "M1x..xMH W1x..xWH",
        "an extended generalised fat tree: children M and parents W of each level; CAs are level 0",
        ("4x4x8", "1x4x4"),
        _lists(xgft),
        (2,),
        lists=True,
    ),
    Topology(
        "cluster",
        "PxLxN SxT",
        "an irregular tree of P pods with L leaves and S spines, N CAs on a leaf, T top switches above each spine",
        ("4x4x4", "4x2"),
        _lists(cluster),
        (2,),
        lists=True,
    ),
    Topology(
        "rails",
        "GxRxN S",
        "an irregular tree of G groups with N nodes and R leaves (rails), and S spines",
        ("2x4x4", "4"),
        _lists(rails),
        (2,),
        lists=True,
    ),
    Topology(
        "dragonfly",
        "A P H [G]",
        "G groups of A switches with P CAs and H global links each (G default: A H + 1)",
        ("4", "2", "2"),
        _numbers(dragonfly),
        (3, 4),
    ),
    Topology(
        "cascade",
        "G [H] [C B]",
        "G groups of C chassis with B switches (default 6 and 16), H global links each (default 2)",
        ("2",),
        _numbers(cascade),
        (1, 2, 4),
    ),
    Topology(
        "director",
        "N L S C [A]",
        "a tree of N directors with L + S crossbars, C cables to the parent, and A children (default N - 1)",
        ("3", "4", "2", "4"),
        _numbers(director),
        (4, 5),
    ),
    Topology("slimfly", "Q", "2 Q^2 switches of diameter 2, Q a prime power", ("5",), _numbers(slimfly), (1,)),
    Topology("kautz", "D K", "Kautz graph: out-degree D, words of K letters", ("3", "2"), _numbers(kautz), (2,)),
    Topology(
        "random-regular",
        "N D",
        "N switches with D random links each",
        ("16", "4"),
        _numbers(random_regular),
        (2,),
        random=True,
    ),
    Topology("full-mesh", "N", "N switches, all linked to each other", ("6",), _numbers(full_mesh), (1,)),
)
TOPOLOGIES: Mapping[str, Topology] = MappingProxyType({topology.name: topology for topology in _ALL})
"""All generators, by name of the topology."""


def generate(name: str, args: Sequence[str], /, **options: Any) -> Fabric:
    """Make a fabric by the name of its topology, with arguments as text.

    Parameters
    ----------
    name
        Key of :data:`TOPOLOGIES`.
    args
        Arguments as text, such as ``["10x10x10"]``, ``["16", "3"]`` or ``["20x20x40", "1x20x20"]``.  ``x`` and ``,``
        mean the same.
    **options
        Options, named as the attributes of :class:`TopologyOptions`.

    Raises
    ------
    OptionError
        The topology or an option does not exist, or the arguments are invalid.
    """
    topology = TOPOLOGIES.get(name)
    if topology is None:
        raise OptionError(f"there is no topology {name!r}", remedy=f"choose one of {', '.join(TOPOLOGIES)}")
    known = [field.name for field in fields(TopologyOptions)]
    for option in options:
        if option not in known:
            raise OptionError(f"topologies have no option {option!r}", remedy=f"their options are {', '.join(known)}")
    lists = [_parse(arg, topology) for arg in args]
    if not topology.lists:
        lists = [[number] for numbers in lists for number in numbers]
    if not lists or (topology.counts and len(lists) not in topology.counts):
        raise _usage(topology, f"{name} cannot be made of {' '.join(args) or 'nothing'}")
    return topology.build(lists, TopologyOptions(**options))


def from_words(name: str, words: Sequence[str], /, **options: Any) -> Fabric:
    """Make a fabric from the words of a command line; a word with an equals sign is an option.

    Raises
    ------
    OptionError
        The generator or an option is unknown, an option is repeated, the number of arguments is wrong, a value is
        invalid, or a seed is given although nothing is random.
    """
    arguments = [word for word in words if "=" not in word]
    for word in words:
        key, equals, value = word.partition("=")
        if equals:
            option = key.strip().replace("-", "_")
            if option in options:
                raise OptionError(f"{option} is given twice", remedy="give it once")
            options[option] = value.strip() if option == "name" else _number_or_text(value.strip())
    if "seed" in options and name in TOPOLOGIES and not TOPOLOGIES[name].random:
        random = ", ".join(topology.name for topology in _ALL if topology.random)
        raise OptionError(f"a {name} is never random", remedy=f"leave the seed out; topologies with a seed: {random}")
    return generate(name, arguments, **options)


def _number_or_text(value: str) -> int | float | str:
    """Convert a text that is a number to an int or a float; return any other text unchanged."""
    if "_" in value or not value.isascii():
        return value
    with contextlib.suppress(ValueError):
        return int(value)
    with contextlib.suppress(ValueError):
        return float(value)
    return value


def _parse(arg: str, topology: Topology) -> list[int]:
    parts = re.split("[x,]", arg.strip())
    if not all(re.fullmatch("[0-9]+", part, re.ASCII) for part in parts):
        raise _usage(topology, f"{arg!r} is not a list of whole numbers")
    # Digits after the ninth digit are ignored, because nine digits without leading zeros are already too large a
    # number.
    numbers = [int(part.lstrip("0")[:9] or "0") for part in parts]
    if max(numbers) > LARGEST_ARGUMENT:
        raise _usage(topology, f"{parts[numbers.index(max(numbers))]} is more than any subnet holds")
    return numbers


def _usage(topology: Topology, problem: str) -> OptionError:
    return OptionError(problem, remedy=f"write {topology.as_word}, such as {topology.example_word}")
