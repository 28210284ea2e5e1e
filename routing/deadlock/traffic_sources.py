"""Find the senders of traffic: ports at which packets enter a fabric, the SLs of the packets, and their routes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from routing.fabric import Fabric
from routing.tables import Routing


@dataclass(frozen=True)
class Sender:
    """A port at which packets enter the fabric.

    Attributes
    ----------
    switch, port
        Row of the switch and its in-port (0: the switch itself is the sender).
    lid
        A LID of the sender, 0 if the sender has no LID.
    name
        Name of the CA, router or switch.
    """

    switch: int
    port: int
    lid: int
    name: str


def senders_at(fabric: Fabric, switch: int) -> Iterator[Sender]:
    """Yield the senders at a switch.

    First come the CAs and routers, sorted by port, with one sender for each of their LIDs.  The switch itself is the
    last sender.
    """
    here = np.flatnonzero(fabric.endport_switch == switch)
    for e in here[np.argsort(fabric.endport_switch_port[here], kind="stable")].tolist():
        base, count = int(fabric.endport_lid[e]), 1 << int(fabric.endport_lmc[e])
        for lid in range(base, base + count) if base else (0,):
            yield Sender(switch, int(fabric.endport_switch_port[e]), lid, fabric.endport_label[e])
    yield Sender(switch, 0, int(fabric.switch_lid[switch]), fabric.labels[switch])


def lid_name(fabric: Fabric, lid: int) -> str:
    """Return the name of the CA, router or switch that owns a LID."""
    endport, switch = int(fabric.lids.endport[lid]), int(fabric.lids.switch[lid])
    if endport >= 0:
        return fabric.endport_label[endport]
    return fabric.labels[switch] if switch >= 0 else "nobody"


def service_level(routing: Routing, sender: Sender, lid: int) -> int | None:
    """Return the SL of a request from a sender to a LID.

    Returns None if SLs depend on the sender's LID and the sender has no LID.
    """
    sls = routing.service_levels
    if sls.by_source_lid and not sender.lid:
        return None
    return int(sls.from_sender(sender.switch, sender.lid)[lid])


def walk(fabric: Fabric, routing: Routing, sender: Sender, sl: int, lid: int) -> list[tuple[int, int]]:
    """Follow a packet, and return (channel, VL) of every hop until it is delivered or dropped.

    In a forwarding loop, the list ends when the packet returns to a virtual channel that it has used before.
    """
    channels, sl_to_vl = fabric.channels, routing.sl_to_vl
    switch, in_port = sender.switch, sender.port
    path: list[tuple[int, int]] = []
    seen: set[tuple[int, int] | None] = set()
    last: tuple[int, int] | None = None
    while last is None or last not in seen:
        seen.add(last)
        port = int(routing.lft[switch, lid])
        channel = int(channels.at_port[switch, port])
        vl = int(sl_to_vl.vl(switch, in_port, port, sl)) if channel >= 0 else 15
        if vl >= 15:
            break
        last = (channel, vl)
        path.append(last)
        switch, in_port = int(channels.dst[channel]), int(channels.dst_port[channel])
    return path


def senders_using(fabric: Fabric, routing: Routing, lid: int, switch: int) -> Iterator[int]:
    """Yield the switches whose route to a LID leads through ``switch``: first ``switch`` itself, then the other
    switches by their distance from ``switch``.

    Cost: O(S) for each distance, up to the distance of the last switch that the caller requests.
    """
    yield switch
    channel = fabric.channels.at_port[np.arange(fabric.switches), routing.lft[:, lid]]
    following = np.where(channel >= 0, fabric.channels.dst[channel], fabric.switches)
    member = np.zeros(fabric.switches + 1, bool)
    member[switch] = True
    while True:
        more = np.flatnonzero(member[following] & ~member[:-1])
        if not len(more):
            return
        yield from more.tolist()
        member[more] = True
