"""Trees with the irregularities of real clusters: pods of different sizes, a management leaf, slower storage ports."""

from __future__ import annotations

from collections.abc import Sequence

from routing.errors import OptionError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import MAX_SWITCH_PORTS, FabricBuilder
from routing.rates import WIDTHS
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import FIRST_CA_GUID, FIRST_SWITCH_GUID, add_aggregation_nodes, check_size

MANAGEMENT_CAS, MANAGEMENT_LINKS = 5, 2
"""Largest number of CAs on the management leaf, and number of its links to the first top switch."""
SMALL_POD = 4
"""Every so many pods, one is small: it has little more than half of the leaves."""


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
    return _Cluster(sizes, nodes, spines, tops, options).build()


class _Cluster:
    """Builder of one cluster fabric, which knows the next free port of each switch."""

    def __init__(self, sizes: Sequence[int], nodes: int, spines: int, tops: int, options: TopologyOptions) -> None:
        self.sizes, self.nodes, self.spines, self.tops, self.options = sizes, nodes, spines, tops, options
        name = f"cluster-{len(sizes)}x{max(sizes)}x{nodes}-{spines}x{tops}"
        self.builder = FabricBuilder(options.name or name)
        self.handles: list[int] = []
        self.next_port: dict[int, int] = {}
        self.managers = min(nodes, MANAGEMENT_CAS)
        self.cas = 0

    def build(self) -> Fabric:
        pods, links = range(len(self.sizes)), self.options.redundancy
        planes = range(self.spines)
        own = 1 if self.options.aggregation else 0
        tops = [
            [self.switch(f"top{plane}.{top}", (len(pods) + MANAGEMENT_LINKS) * links + own) for top in range(self.tops)]
            for plane in planes
        ]
        management = self.switch("leaf-management", self.managers + MANAGEMENT_LINKS * links + own)
        for pod, size in enumerate(self.sizes):
            spines = [self.switch(f"spine{pod}.{i}", (size + self.tops) * links + own) for i in planes]
            for number in range(size):
                leaf = self.switch(f"leaf{pod}.{number}", self.nodes + self.spines * links + own)
                storage = pod == 0 and number == size - 1
                for node in range(self.nodes):
                    self.ca(f"{'storage' if storage else 'node'}{pod}.{number}.{node}", leaf, narrow=storage)
                for spine in spines:
                    self.link(leaf, spine, links)
            for spine, above in zip(spines, tops, strict=True):
                for top in above:
                    self.link(spine, top, links)
        for number in range(self.managers):
            self.ca(f"management{number}", management)
        self.link(management, tops[0][0], MANAGEMENT_LINKS * links)
        if own:
            ports = [self.take(handle) for handle in self.handles]
            add_aggregation_nodes(self.builder, self.handles, ports, FIRST_CA_GUID + 2 * self.cas, self.options)
        return self.builder.build(lmc=self.options.lmc)

    def switch(self, name: str, ports: int) -> int:
        if ports > MAX_SWITCH_PORTS:
            raise OptionError(
                f"a switch would need {ports} ports, and {MAX_SWITCH_PORTS} is the most that InfiniBand has",
                remedy="take smaller arguments, or less redundancy",
            )
        guid = FIRST_SWITCH_GUID + len(self.handles)
        self.handles.append(self.builder.add_device(NodeKind.SWITCH, guid, name, ports))
        self.next_port[self.handles[-1]] = 1
        return self.handles[-1]

    def take(self, switch: int) -> int:
        """Return the next free port of a switch, and mark it as used."""
        port = self.next_port[switch]
        self.next_port[switch] = port + 1
        return port

    def ca(self, name: str, leaf: int, *, narrow: bool = False) -> None:
        device = self.builder.add_device(NodeKind.CA, FIRST_CA_GUID + 2 * self.cas, name, 1)
        self.cas += 1
        width = self.options.width if not narrow else max([w for w in WIDTHS if w < self.options.width], default=1)
        self.builder.connect(device, 1, leaf, self.take(leaf), width=width, speed=self.options.rate)

    def link(self, lower: int, upper: int, count: int) -> None:
        for _ in range(count):
            self.builder.connect(
                lower, self.take(lower), upper, self.take(upper), width=self.options.width, speed=self.options.rate
            )
