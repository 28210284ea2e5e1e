"""The Cascade topology of the Cray XC series: groups of six chassis, linked like a dragonfly."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.topologies.low_diameter import global_pairs, lay_graph
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import check_size

CHASSIS, BLADES = 6, 16
"""Chassis of a group, switches of a chassis."""
CHASSIS_LINKS = 3
"""Links between two switches at the same place of two chassis."""


def cascade(groups: int, h: int = 2, options: TopologyOptions = DEFAULTS) -> Fabric:
    """A Cascade (Faanes et al., SC 2012): groups of 6 x 16 switches, h global links a switch.

    In a chassis all 16 switches are linked to each other once; switches at the same place of the six chassis of a group
    three times.  Global links are dealt out as in :func:`~routing.topologies.low_diameter.dragonfly`; with two groups
    and two of them a switch there are 192, which makes the 192 switches and 3072 links of J. Domke's "Routing on the
    channel dependency graph" (2017).

    Parameters
    ----------
    groups
        Groups, 1 to 96 h + 1.
    h
        Global links of a switch.
    options
        CAs per switch (default 8), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        A number out of its range, or more than a subnet holds.
    """
    switches = CHASSIS * BLADES
    if h < 0 or not 1 <= groups <= switches * h + 1:
        raise OptionError(
            f"a Cascade of {number_of(groups, 'group')} with {number_of(h, 'global link')} a switch",
            remedy=f"take h of at least 0 and 1 to {switches} h + 1 groups",
        )
    cas = options.cas_or(8)
    check_size(groups * switches, groups * switches * cas, options)
    labels = list(itertools.product(range(groups), range(CHASSIS), range(BLADES)))
    pairs = itertools.chain(_group_pairs(groups), global_pairs(switches, h, groups))
    return lay_graph(f"cascade-{groups}-h{h}", labels, pairs, cas, options)


def _group_pairs(groups: int) -> Iterator[tuple[int, int]]:
    for base in range(0, groups * CHASSIS * BLADES, CHASSIS * BLADES):
        for chassis, (i, j) in itertools.product(range(CHASSIS), itertools.combinations(range(BLADES), 2)):
            yield base + chassis * BLADES + i, base + chassis * BLADES + j
        for place, (i, j) in itertools.product(range(BLADES), itertools.combinations(range(CHASSIS), 2)):
            for _ in range(CHASSIS_LINKS):
                yield base + i * BLADES + place, base + j * BLADES + place
