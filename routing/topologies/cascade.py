"""Cascade topology of the Cray XC series: groups of six chassis, which are linked like a dragonfly."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.topologies.low_diameter import fabric_of_graph, global_pairs
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import check_size

CHASSIS, BLADES = 6, 16
"""Number of chassis in a group, and number of switches in a chassis."""
CHASSIS_LINKS = 3
"""Number of parallel links between two switches at the same position in two chassis of a group."""


def cascade(
    groups: int, h: int = 2, chassis: int = CHASSIS, blades: int = BLADES, options: TopologyOptions = DEFAULTS
) -> Fabric:
    """Make a Cascade fabric (Faanes et al., SC 2012): groups of 6 x 16 switches with h global links per switch.

    Within a chassis, any two of the 16 switches have one link.  Within a group, any two switches at the same position
    in different chassis have three links.  Global links are assigned as in
    :func:`~routing.topologies.low_diameter.dragonfly`.  Example: two groups with h = 2 are joined by 192 global links,
    which gives the 192 switches and 3072 links of J. Domke's "Routing on the channel dependency graph" (2017).

    Parameters
    ----------
    groups
        Number of groups, from 1 to the number of global links of a group + 1: 96 h + 1 with groups of the default size.
    h
        Number of global links (links to other groups) of each switch.
    chassis, blades
        Number of chassis in a group, and number of switches in a chassis, for smaller or larger groups.
    options
        Options: CAs per switch (default 8), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        A number is out of range, or the fabric needs more LIDs than a subnet has.
    """
    switches = chassis * blades
    if switches < 1:
        raise OptionError(
            f"a group of {count_noun(chassis, 'chassis', 'chassis')} with {count_noun(blades, 'switch')}",
            remedy="take numbers of at least 1",
        )
    if h < 0 or not 1 <= groups <= switches * h + 1:
        raise OptionError(
            f"a Cascade of {count_noun(groups, 'group')} with {count_noun(h, 'global link')} a switch",
            remedy=f"take h of at least 0 and 1 to {switches} h + 1 groups",
        )
    cas = options.cas_or(8)
    check_size(groups * switches, groups * switches * cas, options)
    labels = list(itertools.product(range(groups), range(chassis), range(blades)))
    pairs = itertools.chain(_group_pairs(groups, chassis, blades), global_pairs(switches, h, groups))
    size = "" if (chassis, blades) == (CHASSIS, BLADES) else f"-{chassis}x{blades}"
    return fabric_of_graph(f"cascade-{groups}-h{h}{size}", labels, pairs, cas, options)


def _group_pairs(groups: int, chassis: int, blades: int) -> Iterator[tuple[int, int]]:
    for base in range(0, groups * chassis * blades, chassis * blades):
        for number, (i, j) in itertools.product(range(chassis), itertools.combinations(range(blades), 2)):
            yield base + number * blades + i, base + number * blades + j
        for position, (i, j) in itertools.product(range(blades), itertools.combinations(range(chassis), 2)):
            for _ in range(CHASSIS_LINKS):
                yield base + i * blades + position, base + j * blades + position
