"""Convert traffic demands to flows along the routes of tables, for :mod:`routing.deadlock.pause`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from routing.deadlock.pause import ONE, Flow, Flows
from routing.deadlock.traffic_sources import Sender, lid_name, service_level, walk
from routing.errors import OptionError, TableError
from routing.fabric import NO_PORT, Fabric
from routing.tables import DATA_VLS, Routing

_FINENESS = 10_000
"""Capacities of links are stated as fractions of the capacity of the fastest link.  _FINENESS is the largest
denominator of these fractions.  Other fractions are rounded, so that computed rates have short denominators.
"""


@dataclass(frozen=True)
class Demand:
    """Traffic demand from an end port to a LID.

    Attributes
    ----------
    source
        Row of the sending end port.
    lid
        Destination LID.
    rate
        Offered rate, as a share of the rate of the sender's link.
    """

    source: int
    lid: int
    rate: Fraction = ONE


@dataclass
class _Links:
    """Links that the paths of flows use, numbered in the order of their first use."""

    number: dict[tuple[int, int, int], int] = field(default_factory=dict)
    first: dict[tuple[int, int], int] = field(default_factory=dict)
    name: list[str] = field(default_factory=list)
    capacity: list[Fraction] = field(default_factory=list)
    cable: list[int] = field(default_factory=list)

    def of(self, key: tuple[int, int, int], name: str, capacity: Fraction) -> int:
        """Return the number of a link.  Its key is (sending device, port, VL); a new key gets a new number."""
        if key not in self.number:
            self.number[key] = len(self.name)
            self.name.append(name)
            self.capacity.append(capacity)
            self.cable.append(self.first.setdefault(key[:2], self.number[key]))
        return self.number[key]


def flows_along(fabric: Fabric, routing: Routing, demands: Iterable[Demand]) -> Flows:
    """Return a flow for each demand.  The path of a flow is the link from the sending CA, the channels of the route,
    and the link to the receiver.

    A link here is one direction of a cable on one VL; the VLs of a direction share its rate.  The fastest cable of the
    fabric has capacity 1.

    Raises
    ------
    TableError
        The tables do not fit the fabric, or do not deliver a demand.
    OptionError
        A sender is not cabled to a switch, or sends to itself.
    """
    routing.check_shapes(fabric)
    links, flows = _Links(), []
    for demand in demands:
        path = _path(fabric, routing, links, demand)
        source = fabric.endport_label[demand.source]
        name = f"{source} to {lid_name(fabric, demand.lid)} (LID {demand.lid})"
        offered = demand.rate * links.capacity[path[0]]
        flows.append(Flow(name, tuple(path), offered))
    return Flows(tuple(links.name), tuple(flows), tuple(links.capacity), tuple(links.cable))


def _path(fabric: Fabric, routing: Routing, links: _Links, demand: Demand) -> list[int]:
    channels, lids = fabric.channels, fabric.lids
    sender = _sender(fabric, demand)
    sl = service_level(routing, sender, demand.lid)
    host = fabric.switches + int(fabric.endport_terminal[demand.source])
    first = int(fabric.endport_port[demand.source])
    path = [
        links.of(
            (host, first, 0),
            f"{sender.name}[{first}] -> {fabric.labels[sender.switch]}[{sender.port}]",
            _capacity(fabric, int(fabric.endport_link[demand.source])),
        )
    ]
    switch, in_port = sender.switch, sender.port
    for channel, vl in walk(fabric, routing, sender, sl or 0, demand.lid):
        switch, in_port = int(channels.dst[channel]), int(channels.dst_port[channel])
        origin, port = int(channels.src[channel]), int(channels.port[channel])
        name = f"{fabric.labels[origin]}[{port}] -> {fabric.labels[switch]}[{in_port}]"
        path.append(links.of((origin, port, vl), _on(name, vl), _capacity(fabric, int(channels.link[channel]))))
    port = int(routing.lft[switch, demand.lid])
    used_vl = int(routing.sl_to_vl.vl(switch, in_port, port, sl or 0)) if port != NO_PORT else DATA_VLS
    if switch != lids.switch[demand.lid] or port != lids.port[demand.lid] or used_vl >= DATA_VLS:
        raise TableError(
            f"the tables do not bring {sender.name} to {lid_name(fabric, demand.lid)} (LID {demand.lid})",
            remedy="ibnue check says why",
        )
    if port:
        cable = int(fabric.endport_link[lids.endport[demand.lid]])
        name = f"{fabric.labels[switch]}[{port}] -> {lid_name(fabric, demand.lid)}"
        path.append(links.of((switch, port, used_vl), _on(name, used_vl), _capacity(fabric, cable)))
    return path


def _sender(fabric: Fabric, demand: Demand) -> Sender:
    switch, lid = int(fabric.endport_switch[demand.source]), demand.lid
    name = fabric.endport_label[demand.source]
    if switch < 0:
        raise OptionError(f"{name} is cabled to no switch", remedy="leave it out of the flows")
    if not 0 < lid < len(fabric.lids) or fabric.lids.switch[lid] < 0:
        raise OptionError(f"no switch delivers LID {lid}", remedy="send to a LID of the fabric")
    if fabric.lids.endport[lid] == demand.source:
        raise OptionError(f"{name} sends to itself", remedy="leave that flow out")
    port = int(fabric.endport_switch_port[demand.source])
    return Sender(switch, port, int(fabric.endport_lid[demand.source]), name)


def _on(name: str, vl: int) -> str:
    return f"{name}, VL {vl}"


def _capacity(fabric: Fabric, link: int) -> Fraction:
    fastest = float(fabric.link_capacity.max())
    return Fraction(float(fabric.link_capacity[link]) / fastest).limit_denominator(_FINENESS)
