"""Rail-optimised trees: one leaf switch for each rail of a group of nodes, and the irregularities of real clusters."""

from __future__ import annotations

from collections.abc import Sequence

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.rates import SPEED_OF
from routing.topologies.cabling import Cabling
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import check_size

MANAGEMENT_CAS, MANAGEMENT_LINKS = 5, 2
"""Largest number of CAs on the management leaf, and number of its links to the first spine."""


def rails(lower: Sequence[int], upper: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a leaf-spine tree in which each CA of a node (server) is on a separate leaf, as in clusters of GPU nodes.

    A group has a leaf switch for each rail.  Each node of the group has one CA on each of these leaves.  Every leaf is
    linked to every spine.  There are three kinds of irregularity:

    - If there are several spines, the last spine is linked to every second leaf only.
    - A storage leaf has the CAs of storage nodes.  All links of this leaf have the next lower speed.
    - A management leaf with up to five CAs has two links to the first spine.

    Parameters
    ----------
    lower
        Number of groups, of rails (leaves in a group), and of nodes in a group.
    upper
        Number of spine switches.
    options
        Options: ``cas`` replaces the number of nodes; redundancy (between switches), link width and speed, LMC,
        aggregation nodes.

    Raises
    ------
    OptionError
        A number is missing or under 1, a switch has over 254 ports, or the fabric needs more LIDs than a subnet has.
    """
    if (len(lower), len(upper)) != (3, 1) or min(*lower[:2], *upper) < 1:
        raise OptionError("a tree of rails has groups, rails and nodes, and spines", remedy="write rails 2x4x8 4")
    (groups, count, _), (spines,), nodes = lower, upper, options.cas_or(lower[2])
    leaves, managers = groups * count, min(nodes, MANAGEMENT_CAS)
    check_size(leaves + spines + 2, (leaves + 1) * nodes + managers, options)
    cabling, links = Cabling(f"rails-{groups}x{count}x{nodes}-{spines}", options), options.redundancy
    slower = max([speed for speed in SPEED_OF.values() if speed < options.rate], default=options.rate)
    above = [cabling.switch(f"spine{number}", (leaves + 1 + MANAGEMENT_LINKS) * links) for number in range(spines)]
    for row in range(leaves):
        group, rail = divmod(row, count)
        leaf = cabling.switch(f"leaf{group}.{rail}", nodes + spines * links)
        for node in range(nodes):
            cabling.ca(f"node{group}.{node}-rail{rail}", leaf)
        for spine in above[:-1] if row % 2 and spines > 1 else above:
            cabling.link(leaf, spine, links)
    storage = cabling.switch("leaf-storage", nodes + spines * links)
    for node in range(nodes):
        cabling.ca(f"storage{node}", storage, speed=slower)
    for spine in above:
        cabling.link(storage, spine, links, speed=slower)
    management = cabling.switch("leaf-management", managers + MANAGEMENT_LINKS * links)
    for number in range(managers):
        cabling.ca(f"management{number}", management)
    cabling.link(management, above[0], MANAGEMENT_LINKS * links)
    return cabling.build()
