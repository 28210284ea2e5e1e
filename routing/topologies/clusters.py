"""Trees with the irregularities of real clusters: pods of different sizes, a management leaf, slower storage ports."""

from __future__ import annotations

from collections.abc import Sequence

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.rates import WIDTHS
from routing.topologies.cabling import Cabling
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import check_size

MANAGEMENT_CAS, MANAGEMENT_LINKS = 5, 2
"""Largest number of CAs on the management leaf, and number of its links to the first top switch."""
SMALL_POD = 4
"""Number n: every n-th pod is small, with little more than half as many leaves as the other pods."""


def cluster(lower: Sequence[int], upper: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a three-level tree with irregularities that clusters in operation have.

    Each pod has leaf switches and spine switches; every leaf is linked to every spine of its pod.  Top switches form
    planes: spine ``i`` of each pod is linked to all top switches of plane ``i``.  There are three kinds of
    irregularity:

    - Every fourth pod has only ``leaves // 2 + 1`` leaves, so that its spines have fewer downlinks.
    - A management leaf with up to five CAs has two links to the first top switch, and no link to a spine.
    - The CAs of the last leaf of the first pod are storage servers, whose links have the next smaller width.

    Parameters
    ----------
    lower
        Number of pods, of leaves in a pod, and of CAs on a leaf.
    upper
        Number of spines in a pod, and of top switches in a plane.
    options
        Options: ``cas`` replaces the number of CAs on a leaf; redundancy (between switches), link width and speed, LMC,
        aggregation nodes.

    Raises
    ------
    OptionError
        A number is missing or under 1, a switch has over 254 ports, or the fabric needs more LIDs than a subnet has.
    """
    if len(lower) != 3 or len(upper) != 2 or min(*lower[:2], *upper, 1) < 1:
        raise OptionError("a cluster has pods, leaves and nodes, spines and tops", remedy="write cluster 4x8x16 4x4")
    pods, leaves, nodes = lower[0], lower[1], options.cas_or(lower[2])
    spines, tops = upper
    sizes = [leaves // 2 + 1 if pod % SMALL_POD == SMALL_POD - 1 else leaves for pod in range(pods)]
    switches = sum(sizes) + pods * spines + spines * tops + 1
    check_size(switches, sum(sizes) * nodes + min(nodes, MANAGEMENT_CAS), options)
    name = f"cluster-{len(sizes)}x{max(sizes)}x{nodes}-{spines}x{tops}"
    return _build(sizes, nodes, spines, tops, Cabling(name, options))


def _build(sizes: Sequence[int], nodes: int, spines: int, tops: int, cabling: Cabling) -> Fabric:
    """Build a cluster.

    ``sizes`` has the number of leaves of each pod.  A leaf has ``nodes`` CAs, and a pod has ``spines`` spine switches.
    The first spine of each pod is linked to the first plane of top switches, and so on.  A plane has ``tops`` top
    switches.
    """
    options, planes = cabling.options, range(spines)
    links, managers = options.redundancy, min(nodes, MANAGEMENT_CAS)
    narrow = max([width for width in WIDTHS if width < options.width], default=1)
    top = [
        [cabling.switch(f"top{plane}.{number}", (len(sizes) + MANAGEMENT_LINKS) * links) for number in range(tops)]
        for plane in planes
    ]
    management = cabling.switch("leaf-management", managers + MANAGEMENT_LINKS * links)
    for pod, size in enumerate(sizes):
        above = [cabling.switch(f"spine{pod}.{plane}", (size + tops) * links) for plane in planes]
        for number in range(size):
            leaf = cabling.switch(f"leaf{pod}.{number}", nodes + spines * links)
            storage = pod == 0 and number == size - 1
            for node in range(nodes):
                name = f"{'storage' if storage else 'node'}{pod}.{number}.{node}"
                cabling.ca(name, leaf, width=narrow if storage else None)
            for spine in above:
                cabling.link(leaf, spine, links)
        for spine, plane_tops in zip(above, top, strict=True):
            for each in plane_tops:
                cabling.link(spine, each, links)
    for number in range(managers):
        cabling.ca(f"management{number}", management)
    cabling.link(management, top[0][0], MANAGEMENT_LINKS * links)
    return cabling.build()
