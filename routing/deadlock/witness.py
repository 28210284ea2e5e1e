"""Describe a credit loop: its channels and VLs, and traffic for each of its dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.cdg.certificate import Scope
from routing.deadlock.traffic_sources import Sender, lid_name, senders_at, senders_using, service_level, walk
from routing.fabric import Fabric
from routing.names import guid_text
from routing.numerals import count_noun
from routing.tables import Routing

Vc = tuple[int, int]
"""A virtual channel: a channel and a VL."""


@dataclass(frozen=True)
class Traffic:
    """Traffic from a sender to a receiver, which causes a dependency of a credit loop.

    Attributes
    ----------
    source, source_lid
        Label and LID (0: none) of the sender.
    destination, destination_lid
        Label and LID of the receiver.
    sl
        Service level.
    reply
        Whether the packets are replies to requests in the other direction; they use the SL of these requests.
    gone
        Whether no port has the receiver's LID any more.  Then the label names the last owner of the LID, "" if unknown.
    """

    source: str
    source_lid: int
    destination: str
    destination_lid: int
    sl: int
    reply: bool
    gone: bool = False

    def __str__(self) -> str:
        kind = "replies of" if self.reply else "traffic from"
        source = f"{self.source} (LID {self.source_lid})" if self.source_lid else self.source
        target = f"LID {self.destination_lid}" + ", gone" * self.gone
        target = f"{self.destination} ({target})" if self.destination else target
        return f"{kind} {source} to {target}, SL {self.sl}"


@dataclass(frozen=True)
class Device:
    """A switch on a credit loop, as named in reports.

    Attributes
    ----------
    guid, name
        Node GUID of the switch, and its name in the fabric, which may be empty or not unique.
    label
        Unique name of the switch in reports (:attr:`routing.fabric.Fabric.labels`).
    """

    guid: int
    name: str
    label: str

    @classmethod
    def of(cls, fabric: Fabric, switch: int) -> Device:
        """Return the description of the switch with this row number in the fabric."""
        return cls(int(fabric.switch_guid[switch]), fabric.switch_name[switch], fabric.labels[switch])

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Turn:
    """A channel of a credit loop, and traffic that uses this channel and then the next channel of the loop.

    Attributes
    ----------
    channel
        Number of the channel in :attr:`~routing.fabric.Fabric.channels`.
    switch, port
        The switch where the channel begins, and its out-port.
    peer, peer_port
        The switch where the channel ends, and its in-port.
    vl
        Virtual lane.
    traffic
        Traffic that uses this channel and then the next channel of the loop.
    """

    channel: int
    switch: Device
    port: int
    peer: Device
    peer_port: int
    vl: int
    traffic: Traffic

    def __str__(self) -> str:
        path = f"{self.switch} port {self.port} -> {self.peer} port {self.peer_port}, VL {self.vl}"
        return f"{path}; held by {self.traffic}"

    @classmethod
    def of(cls, fabric: Fabric, channel: int, vl: int, traffic: Traffic) -> Turn:
        """Return the description of a channel on a VL.  ``traffic`` uses this channel and then the next channel of the
        loop.
        """
        channels = fabric.channels
        return cls(
            channel=channel,
            switch=Device.of(fabric, int(channels.src[channel])),
            port=int(channels.port[channel]),
            peer=Device.of(fabric, int(channels.dst[channel])),
            peer_port=int(channels.dst_port[channel]),
            vl=vl,
            traffic=traffic,
        )

    def as_object(self) -> dict[str, Any]:
        """Return the channel and its traffic for JSON, with name and GUID of both switches."""
        return {
            "channel": self.channel,
            "switch_guid": guid_text(self.switch.guid),
            "switch_name": self.switch.name,
            "port": self.port,
            "peer_guid": guid_text(self.peer.guid),
            "peer_name": self.peer.name,
            "peer_port": self.peer_port,
            "vl": self.vl,
            "traffic": asdict(self.traffic),
        }


@dataclass(frozen=True)
class CreditLoop:
    """Credit loop: a cycle of channels.  Each channel depends on the next channel, the last channel on the first
    channel.

    Attributes
    ----------
    turns
        The channels, with traffic for each dependency.
    replies
        Whether reply traffic is included (requests alone may then not form the loop).
    scope
        "endports": traffic from or to CAs and routers forms the loop.  "all": the loop forms only with switch-to-switch
        traffic.
    """

    turns: tuple[Turn, ...]
    replies: bool
    scope: Scope = "endports"

    def __len__(self) -> int:
        return len(self.turns)

    def describe(self) -> list[str]:
        """Return lines to print: a summary, then one line per channel."""
        vls = sorted({turn.vl for turn in self.turns})
        where = f"VL {vls[0]}" if len(vls) == 1 else f"VLs {', '.join(map(str, vls))}"
        whose = "requests and their replies" if self.replies else "requests"
        whose += " (switch-to-switch traffic included)" if self.scope == "all" else ""
        head = f"credit loop of {count_noun(len(self.turns), 'channel')} on {where}, closed by {whose}:"
        return [head, *(f"  {turn}" for turn in self.turns)]


def credit_loop(
    fabric: Fabric, routing: Routing, cycle: Sequence[tuple[int, int]], *, replies: bool, scope: Scope
) -> CreditLoop:
    """Describe a cycle of (channel, VL) as a credit loop, and find traffic for each of its dependencies.

    ``replies`` states whether the traffic may be replies.  ``scope`` states whether switch-to-switch traffic counts.
    The values of ``replies`` and ``scope`` must be those with which the check found the cycle.

    Raises
    ------
    LookupError
        For a dependency of the cycle there is no traffic, so the cycle does not belong to these tables.
    """
    turns = []
    for here, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        traffic = _find_traffic(fabric, routing, here, following, replies=replies, scope=scope)
        turns.append(Turn.of(fabric, *here, traffic))
    return CreditLoop(tuple(turns), replies, scope)


def _find_traffic(fabric: Fabric, routing: Routing, here: Vc, following: Vc, *, replies: bool, scope: Scope) -> Traffic:
    """Find traffic that uses the virtual channel ``here`` and then ``following``.

    Requests from CA to CA are tried first, then other requests, then replies.  ``replies`` states whether replies may
    be found.  ``scope`` states whether switch-to-switch traffic may be found.
    """
    for reply in (False, True) if replies else (False,):
        for endports in (2, 0 if scope == "all" else 1):
            for traffic in _candidates(fabric, routing, here, following, reply=reply, endports=endports):
                return traffic
    raise LookupError(f"no traffic takes the turn {here} to {following}")


def lids_of_dependency(fabric: Fabric, routing: Routing, here: Vc, following: Vc) -> list[int]:
    """Return the LIDs to which requests use the virtual channel ``here`` and then ``following``, ascending.

    The sender or the receiver of such a request is a CA or router.
    """
    return [
        lid for lid in _lids_by_ports(fabric, routing, here, following, endports=1)
        if any(True for _ in _traffic_to(fabric, routing, lid, here, following, reply=False, endports=1))
    ]  # fmt: skip


def _lids_by_ports(fabric: Fabric, routing: Routing, here: Vc, following: Vc, *, endports: int) -> list[int]:
    """Return the LIDs whose LFT entries lead over the channel of ``here`` and then over the channel of ``following``.

    ``here`` and ``following`` are virtual channels: pairs of a channel and a VL.  Their VLs are not checked.  If
    ``endports`` is 2, the result has only LIDs of CAs and routers.  If not, it also has LIDs of switches.
    """
    channels, lids = fabric.channels, fabric.lids
    first, second = here[0], following[0]
    rows = channels.src[first], channels.src[second]
    takes = (routing.lft[rows[0]] == channels.port[first]) & (routing.lft[rows[1]] == channels.port[second])
    takes &= lids.switch >= 0
    ours = takes & (lids.endport >= 0) if endports == 2 else takes
    return list(map(int, np.flatnonzero(ours)))


def _candidates(
    fabric: Fabric, routing: Routing, here: Vc, following: Vc, *, reply: bool, endports: int
) -> Iterator[Traffic]:
    """Yield traffic that uses the virtual channel ``here`` and then ``following``.

    ``endports`` is 2 if both sender and receiver must be CAs or routers.  ``endports`` is 1 if at least one of the two
    must be a CA or router, and 0 if both may be switches.  The packets are replies if ``reply``, else requests.
    """
    for lid in _lids_by_ports(fabric, routing, here, following, endports=endports):
        yield from _traffic_to(fabric, routing, lid, here, following, reply=reply, endports=endports)


def _traffic_to(
    fabric: Fabric, routing: Routing, lid: int, here: Vc, following: Vc, *, reply: bool, endports: int
) -> Iterator[Traffic]:
    """Yield traffic to one LID that uses the virtual channel ``here`` and then ``following``.

    :func:`_candidates` describes the other arguments.
    """
    lids, first = fabric.lids, int(fabric.channels.src[here[0]])
    fits = _fitting_sls(fabric, routing, here, following)
    able = _able(fabric, routing, lid, fits, reply=reply)
    for switch in senders_using(fabric, routing, lid, first) if able.any() else ():
        for sender in senders_at(fabric, switch) if able[switch] else ():
            if int(sender.port > 0) + int(lids.endport[lid] >= 0) < endports:
                continue
            for sl in _levels(fabric, routing, sender, lid, reply=reply):
                if not fits[sl]:
                    continue
                path = walk(fabric, routing, sender, sl, lid)
                if (here, following) in zip(path, chain(path[1:], path[-1:]), strict=True):
                    yield Traffic(sender.name, sender.lid, lid_name(fabric, lid), lid, sl, reply)


def _fitting_sls(fabric: Fabric, routing: Routing, here: Vc, following: Vc) -> npt.NDArray[np.bool_]:
    """Return bool[16]: the SLs with which some packet can use the virtual channel ``here`` and then ``following``."""
    channels, ports, (first, vl), (second, next_vl) = fabric.channels, fabric.switch_ports, here, following
    at, then = int(channels.src[first]), int(channels.src[second])
    enters = routing.sl_to_vl.of_switch(at, int(ports[at]))[:, channels.port[first]] == vl
    leaves = (
        routing.sl_to_vl.of_switch(then, int(ports[then]))[channels.dst_port[first], channels.port[second]] == next_vl
    )
    return np.asarray(enters.any(axis=0) & (leaves | (first == second)))


def _able(
    fabric: Fabric, routing: Routing, lid: int, fits: npt.NDArray[np.bool_], *, reply: bool
) -> npt.NDArray[np.bool_]:
    """Return bool[S], the switches at which packets to a LID may enter with one of the SLs that ``fits`` marks.

    The packets are requests, or replies if ``reply``.
    """
    sls, target = routing.service_levels, fabric.lids.switch
    if not reply and not sls.by_source_lid:
        return np.asarray(fits[sls.with_rows(fabric.switches)[:, lid]])
    used = sls.from_sender(int(target[lid]), lid) if reply else sls.table[:, lid]
    able = np.zeros(fabric.switches, bool)
    able[target[(target >= 0) & fits[used]]] = True
    return able


def _levels(fabric: Fabric, routing: Routing, sender: Sender, lid: int, *, reply: bool) -> Iterator[int]:
    """Yield the SL of packets from a sender to a LID; nothing if the SL is unknown.

    The packets are replies if ``reply``, else requests.
    """
    if not reply:
        sl = service_level(routing, sender, lid)
        if sl is not None:
            yield sl
    elif sender.lid:
        asker = Sender(int(fabric.lids.switch[lid]), int(fabric.lids.port[lid]), lid, "")
        sl = service_level(routing, asker, sender.lid)
        if sl is not None:
            yield sl
