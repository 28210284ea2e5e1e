"""Random topologies in which all switches have equally many links to other switches."""

from __future__ import annotations

import random

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.topologies.low_diameter import fabric_of_graph
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import check_size

SWAPS_PER_LINK = 10


def random_regular(switches: int, degree: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a random connected fabric in which every switch is linked to ``degree`` different other switches.

    The construction begins with a circulant graph.  Each step of the construction chooses two links at random and
    exchanges their ends, unless this would link a switch to itself, or link two switches twice.  There are ten steps
    per link.  If the graph is then not connected, ten more steps per link follow, and so on.  For degree 2,
    the function instead makes a ring of the switches in random order.  All possible graphs are nearly equally likely.
    The same seed gives the same graph on every machine.

    Parameters
    ----------
    switches, degree
        Number of switches N and degree d, with d < N and N d even.
    options
        Options: ``seed``, CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        No such graph exists, no such graph is connected, or the fabric needs more LIDs than a subnet has.
    """
    if not 0 <= degree < switches or switches * degree % 2:
        raise OptionError(
            f"{count_noun(switches, 'switch')} cannot have {degree} links to others each",
            remedy="the degree must be under the number of switches, and their product even",
        )
    if degree < 2 and switches != degree + 1:
        raise OptionError(
            f"{switches} switches of degree {degree} are not connected", remedy="take a degree of 2 or more"
        )
    cas = options.cas_or(1)
    check_size(switches, switches * cas, options)
    rng = random.Random(options.seed)
    pairs = _ring(switches, rng) if degree == 2 else _mixed(switches, degree, rng)
    labels = [(row,) for row in range(switches)]
    return fabric_of_graph(f"random-{switches}-{degree}-seed{options.seed}", labels, sorted(pairs), cas, options)


def _ring(switches: int, rng: random.Random) -> list[tuple[int, int]]:
    """Return the links of a ring with a random order of switches.

    For degree 2 the fabric is such a ring, because exchanges of link ends would nearly always leave several separate
    rings.
    """
    order = list(range(switches))
    rng.shuffle(order)
    return [(min(pair), max(pair)) for pair in zip(order, order[1:] + order[:1], strict=True)]


def _mixed(switches: int, degree: int, rng: random.Random) -> list[tuple[int, int]]:
    import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

    pairs = [(row, (row + step) % switches) for row in range(switches) for step in range(1, degree // 2 + 1)]
    if degree % 2:
        pairs += [(row, row + switches // 2) for row in range(switches // 2)]
    pairs = [(min(pair), max(pair)) for pair in pairs]
    present = set(pairs)
    while True:
        for _ in range(SWAPS_PER_LINK * len(pairs)):
            _swap(pairs, present, rng)
        if igraph.Graph(n=switches, edges=pairs).is_connected():
            return pairs


def _swap(pairs: list[tuple[int, int]], present: set[tuple[int, int]], rng: random.Random) -> None:
    """Exchange the ends of two random links, unless this would link a switch to itself or two switches twice.

    ``pairs`` is the list of links, and ``present`` a set of the same links.  The function changes both the list and the
    set.
    """
    one, two = rng.randrange(len(pairs)), rng.randrange(len(pairs))
    (a, b), (c, d) = pairs[one], pairs[two]
    if rng.getrandbits(1):
        c, d = d, c
    new_one, new_two = (min(a, d), max(a, d)), (min(c, b), max(c, b))
    if len({a, b, c, d}) < 4 or new_one in present or new_two in present:
        return
    present -= {pairs[one], pairs[two]}
    present |= {new_one, new_two}
    pairs[one], pairs[two] = new_one, new_two
