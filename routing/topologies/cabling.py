"""Construction of a fabric cable by cable, for topologies whose switches differ in their ports."""

from __future__ import annotations

from routing.errors import OptionError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import MAX_SWITCH_PORTS, FabricBuilder
from routing.topologies.options import TopologyOptions
from routing.topologies.plan import FIRST_CA_GUID, FIRST_SWITCH_GUID, add_aggregation_nodes


class Cabling:
    """Builder of one fabric, which knows the next free port of each switch.

    Parameters
    ----------
    name
        Name of the fabric, if the options do not name it.
    options
        Width and speed of the links, LMC, and aggregation nodes.
    """

    def __init__(self, name: str, options: TopologyOptions) -> None:
        self.options = options
        self.builder = FabricBuilder(options.name or name)
        self.next_port: dict[int, int] = {}
        self.cas = 0

    def switch(self, name: str, ports: int) -> int:
        """Add a switch with ``ports`` ports, and return its handle.

        The switch gets one more port if the options demand aggregation nodes.

        Raises
        ------
        OptionError
            The switch has over 254 ports.
        """
        ports += self.options.aggregation
        if ports > MAX_SWITCH_PORTS:
            raise OptionError(
                f"a switch would need {ports} ports, and {MAX_SWITCH_PORTS} is the most that InfiniBand has",
                remedy="take smaller arguments, or less redundancy",
            )
        handle = self.builder.add_device(NodeKind.SWITCH, FIRST_SWITCH_GUID + len(self.next_port), name, ports)
        self.next_port[handle] = 1
        return handle

    def ca(self, name: str, leaf: int, *, width: int | None = None, speed: float | None = None) -> None:
        """Add a CA on the next free port of a leaf.

        The link has the given width and speed, or the width and speed in the options if they are not given.
        """
        device = self.builder.add_device(NodeKind.CA, FIRST_CA_GUID + 2 * self.cas, name, 1)
        self.cas += 1
        self._connect((device, 1), (leaf, self._take(leaf)), width, speed)

    def link(self, lower: int, upper: int, count: int, *, speed: float | None = None) -> None:
        """Add ``count`` parallel links between two switches, on the next free ports of both switches.

        The links have the given speed, or the speed in the options.
        """
        for _ in range(count):
            self._connect((lower, self._take(lower)), (upper, self._take(upper)), None, speed)

    def build(self) -> Fabric:
        """Return the fabric, with an aggregation node on each switch if the options demand aggregation nodes."""
        if self.options.aggregation:
            ports = [self._take(handle) for handle in self.next_port]
            add_aggregation_nodes(self.builder, list(self.next_port), ports, FIRST_CA_GUID + 2 * self.cas, self.options)
        return self.builder.build(lmc=self.options.lmc)

    def _take(self, switch: int) -> int:
        """Return the next free port of a switch, and mark it as used."""
        port = self.next_port[switch]
        self.next_port[switch] = port + 1
        return port

    def _connect(self, a: tuple[int, int], b: tuple[int, int], width: int | None, speed: float | None) -> None:
        """Connect two ports, each given by device and number."""
        options = self.options
        self.builder.connect(*a, *b, width=width or options.width, speed=speed or options.rate)
