"""Director switches: chassis that are built of small crossbars and connected to each other in a tree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import Cable, Plan, build_fabric, check_size


def director(  # noqa: PLR0917  # the arguments of the command line, in its order
    chassis: int, leaves: int, spines: int, cables: int, arity: int | None = None, options: TopologyOptions = DEFAULTS
) -> Fabric:
    """Make a fabric of director switches: each chassis is a Clos network of two levels, and the chassis form a tree.

    A chassis has ``leaves`` leaf crossbars with ports on the front panel, and ``spines`` spine crossbars inside.  Each
    crossbar is a switch of the fabric.  Each leaf is linked to each spine once, and has as many front ports as there
    are spines.  For example, 24 leaves and 12 spines of 24-port crossbars are a 288-port director.

    The children of chassis ``c`` are the chassis ``arity * c + 1`` to ``arity * c + arity``.  A child is connected to
    its parent by ``cables`` links from leaf to leaf, which are spread over the leaves at both ends.  CAs take the front
    ports that are left.  Switches are named ``sw<chassis>.<level>.<number>``, with level 0 for leaves and level 1 for
    spines.

    Parameters
    ----------
    chassis, leaves, spines
        Number of chassis, and of leaf and spine crossbars in each chassis, at least 1.
    cables
        Number of links between a chassis and its parent, at least 1.
    arity
        Number of children of a chassis, at least 1; None: all other chassis are children of the first chassis.
    options
        Options: CAs on each leaf with free front ports (default: on all free ports), redundancy, link width and speed,
        LMC.

    Raises
    ------
    OptionError
        A number is under 1, the leaves of a chassis have too few front ports for the links to other chassis, or the
        fabric needs more LIDs than a subnet has.
    """
    children = max(chassis - 1, 1) if arity is None else arity
    if min(chassis, leaves, spines, cables, children) < 1:
        raise OptionError(
            f"{count_noun(chassis, 'director')} of {leaves} + {spines} crossbars with {count_noun(cables, 'cable')}",
            remedy="take numbers of at least 1",
        )
    size = leaves + spines
    links = list(_chassis_links(chassis, leaves, spines, cables, children))
    labels = [
        (number, *crossbar)
        for number in range(chassis)
        for crossbar in [*((0, leaf) for leaf in range(leaves)), *((1, spine) for spine in range(spines))]
    ]
    taken = [0] * (chassis * size)
    for row in itertools.chain.from_iterable(links):
        taken[row] += 1
    if max(taken) > spines:
        raise OptionError(
            f"a leaf has {count_noun(spines, 'front port')}, and {count_noun(max(taken), 'link')} to other chassis",
            remedy="take more leaves or spines, fewer cables, or fewer children of a chassis",
        )
    free = [spines - used if row % size < leaves else 0 for row, used in enumerate(taken)]
    cas = [options.cas_or(ports) if ports else 0 for ports in free]
    check_size(len(labels), sum(cas), options)
    slots = [leaves if row % size >= leaves else spines + taken[row] for row in range(chassis * size)]
    cables_of = itertools.chain(_inner_cables(chassis, leaves, spines), _outer_cables(links, spines))
    name = f"director-{chassis}-{leaves}x{spines}-{cables}{'' if arity is None else f'-{arity}'}"
    return build_fabric(Plan(name, labels, cables_of, slots, cas), options)


def _chassis_links(chassis: int, leaves: int, spines: int, cables: int, children: int) -> Iterator[tuple[int, int]]:
    """Yield the links between chassis as pairs of leaves (row numbers).

    Each chassis has ``children`` chassis below it, and ``cables`` links to the chassis above it.  On each chassis,
    successive links use successive leaves.
    """
    size, turn = leaves + spines, [0] * chassis
    for child in range(1, chassis):
        for _ in range(cables):
            ends = ((child - 1) // children, child)
            upper, lower = (number * size + turn[number] % leaves for number in ends)
            for number in ends:
                turn[number] += 1
            yield upper, lower


def _inner_cables(chassis: int, leaves: int, spines: int) -> Iterator[Cable]:
    """Yield the links between leaves and spines of each chassis.

    A slot is the position of a link at a switch.  Slot ``n`` of a leaf leads to spine ``n``, and slot ``n`` of a spine
    to leaf ``n``.
    """
    size = leaves + spines
    for base in range(0, chassis * size, size):
        for leaf, spine in itertools.product(range(leaves), range(spines)):
            yield base + leaf, spine, base + leaves + spine, leaf


def _outer_cables(links: list[tuple[int, int]], spines: int) -> Iterator[Cable]:
    """Yield the links between chassis; each link takes the next free slot (position of a link) of both its leaves."""
    taken: dict[int, int] = {}
    for a, b in links:
        slots = [spines + taken.get(row, 0) for row in (a, b)]
        yield a, slots[0], b, slots[1]
        for row in (a, b):
            taken[row] = taken.get(row, 0) + 1
