"""The witness of a credit loop: which channels, on which VLs, and who makes each wait for the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from routing.deadlock.certificate import Scope
from routing.deadlock.sources import Sender, behind, lid_name, senders_at, service_level, virtual_lane, walk
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.tables import Routing


@dataclass(frozen=True)
class Traffic:
    """One packet on its way.

    Attributes
    ----------
    source, source_lid
        Name and LID (0: none) of the sender.
    destination, destination_lid
        Name and LID of the receiver.
    sl
        Service level.
    reply
        Whether it answers a request of the other direction, on that request's SL.
    """

    source: str
    source_lid: int
    destination: str
    destination_lid: int
    sl: int
    reply: bool

    def __str__(self) -> str:
        kind = "replies of" if self.reply else "traffic from"
        source = f"{self.source} (LID {self.source_lid})" if self.source_lid else self.source
        return f"{kind} {source} to {self.destination} (LID {self.destination_lid}), SL {self.sl}"


@dataclass(frozen=True)
class Turn:
    """A channel of a loop, and who takes it on to the next one.

    Attributes
    ----------
    channel
        Number of the channel in :attr:`~routing.fabric.Fabric.channels`.
    switch, port
        Name of the switch that the channel leaves, and its out-port.
    towards, in_port
        Name of the switch that it leads to, and the port there.
    vl
        Virtual lane.
    traffic
        Who takes the turn from this channel to the next one of the loop.
    """

    channel: int
    switch: str
    port: int
    towards: str
    in_port: int
    vl: int
    traffic: Traffic

    def __str__(self) -> str:
        way = f"{self.switch} port {self.port} -> {self.towards} port {self.in_port}, VL {self.vl}"
        return f"{way}; held by {self.traffic}"


@dataclass(frozen=True)
class CreditLoop:
    """Channels that can wait for one another in a circle; each waits for the next, the last for the first.

    Attributes
    ----------
    turns
        The channels, with who takes each turn.
    replies
        Whether replies were counted in (it may then be that requests alone do not close the loop).
    scope
        "endports": traffic from or to CAs and routers closes it.  "all": it takes what switches send to switches.
    """

    turns: tuple[Turn, ...]
    replies: bool
    scope: Scope = "endports"

    def __len__(self) -> int:
        return len(self.turns)

    def describe(self) -> list[str]:
        """Lines to print: what it is, then one line a channel."""
        lanes = sorted({turn.vl for turn in self.turns})
        where = f"VL {lanes[0]}" if len(lanes) == 1 else f"VLs {', '.join(map(str, lanes))}"
        whose = "requests and their replies" if self.replies else "requests"
        whose += " (switch-to-switch traffic included)" if self.scope == "all" else ""
        head = f"credit loop of {number_of(len(self.turns), 'channel')} on {where}, closed by {whose}:"
        return [head, *(f"  {turn}" for turn in self.turns)]


def credit_loop(
    fabric: Fabric, routing: Routing, cycle: Sequence[tuple[int, int]], *, replies: bool, scope: Scope
) -> CreditLoop:
    """Name the channels of a cycle of (channel, VL) and find traffic of the scope for each of its turns.

    Raises
    ------
    LookupError
        No traffic takes one of the turns: the cycle is not one of these tables.
    """
    channels = fabric.channels
    turns = []
    for here, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        channel, vl = here
        turns.append(
            Turn(
                channel=channel,
                switch=fabric.switch_name[channels.src[channel]],
                port=int(channels.port[channel]),
                towards=fabric.switch_name[channels.dst[channel]],
                in_port=int(channels.dst_port[channel]),
                vl=vl,
                traffic=_find_traffic(fabric, routing, here, following, replies=replies, scope=scope),
            )
        )
    return CreditLoop(tuple(turns), replies, scope)


def _find_traffic(
    fabric: Fabric,
    routing: Routing,
    here: tuple[int, int],
    following: tuple[int, int],
    *,
    replies: bool,
    scope: Scope,
) -> Traffic:
    """Requests from CA to CA first, then others, then replies."""
    for reply in (False, True) if replies else (False,):
        for endports in (2, 0 if scope == "all" else 1):
            for traffic in _candidates(fabric, routing, here, following, reply=reply, endports=endports):
                return traffic
    raise LookupError(f"no traffic takes the turn {here} to {following}")


def _candidates(
    fabric: Fabric,
    routing: Routing,
    here: tuple[int, int],
    following: tuple[int, int],
    *,
    reply: bool,
    endports: int,
) -> Iterator[Traffic]:
    """Traffic that takes a turn, with at least so many CAs or routers among sender and receiver."""
    channels, lids = fabric.channels, fabric.lids
    first, second = here[0], following[0]
    rows = channels.src[first], channels.src[second]
    takes = (routing.lft[rows[0]] == channels.port[first]) & (routing.lft[rows[1]] == channels.port[second])
    takes &= lids.switch >= 0
    ours = takes & (lids.endport >= 0) if endports == 2 else takes
    for lid in np.flatnonzero(ours).tolist():
        able = _able(fabric, routing, lid, here[1], reply=reply)
        for switch in behind(fabric, routing, lid, int(rows[0])) if able.any() else ():
            for sender in senders_at(fabric, switch) if able[switch] else ():
                if int(sender.port > 0) + int(lids.endport[lid] >= 0) < endports:
                    continue
                for sl in _levels(fabric, routing, sender, lid, reply=reply):
                    if routing.sl2vl.ndim == 1 and virtual_lane(routing, 0, 0, 0, sl) != here[1]:
                        continue
                    way = walk(fabric, routing, sender, sl, lid)
                    if (here, following) in zip(way, chain(way[1:], way[-1:]), strict=True):
                        name = lid_name(fabric, lid)
                        yield Traffic(sender.name, sender.lid, name, lid, sl, reply)


def _able(fabric: Fabric, routing: Routing, lid: int, vl: int, *, reply: bool) -> npt.NDArray[np.bool_]:
    """bool[S]: switches at which something may be sent to a LID on a VL; all of them where VLs change on the way."""
    sl, target = routing.sl, fabric.lids.switch
    if routing.sl2vl.ndim > 1:
        return np.ones(fabric.switches, bool)
    by_switch = sl.ndim == 2 and len(sl) == fabric.switches
    if not reply and sl.ndim == 1:
        return np.full(fabric.switches, routing.sl2vl[sl[lid]] == vl)
    if not reply and by_switch:
        return np.asarray(routing.sl2vl[sl[:, lid]] == vl)
    levels = sl[:, lid] if not reply else sl if sl.ndim == 1 else sl[target[lid] if by_switch else lid]
    able = np.zeros(fabric.switches, bool)
    able[target[(target >= 0) & (routing.sl2vl[levels] == vl)]] = True
    return able


def _levels(fabric: Fabric, routing: Routing, sender: Sender, lid: int, *, reply: bool) -> Iterator[int]:
    """SLs on which a sender sends to a LID: of its request, or of its replies to the LID's owner."""
    if not reply:
        sl = service_level(fabric, routing, sender, lid)
        if sl is not None:
            yield sl
    elif sender.lid:
        asker = Sender(int(fabric.lids.switch[lid]), int(fabric.lids.port[lid]), lid, "")
        sl = service_level(fabric, routing, asker, sender.lid)
        if sl is not None:
            yield sl
