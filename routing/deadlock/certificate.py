"""The certificate of freedom from credit loops, and its checker.

The checker shares nothing with what makes certificates: it knows no dependencies, builds no graph and searches for
nothing.  It walks every packet from where it enters and sees that the places of the channels it takes climb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing._kernels.climb import climb
from routing.errors import FalseCertificate, TableError
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.tables import Routing

Strength = Literal["reversible", "forward"]
Scope = Literal["all", "endports"]
"""Whose traffic counts: everybody's, or only what has a CA or router at one end at least."""
CHUNK = 256
"""Entries that are walked at once: bounds the memory for their SLs."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A place for every channel on every VL, such that all traffic climbs with each hop.

    Attributes
    ----------
    order
        int32[V, C]: place of each channel in a topological order of the dependencies, for V = highest VL in use + 1.
        Where VLs change on the way it is one order over all pairs of channel and VL.
    strength
        "forward": requests climb.  "reversible": so do the replies, which ride on the request's SL.
    scope
        "endports": traffic from or to CAs and routers climbs.  "all": so does what switches send to switches.
    """

    order: npt.NDArray[np.int32]
    strength: Strength
    scope: Scope = "all"


@dataclass(frozen=True, eq=False)
class _Entry:
    """A port at which packets enter, and the LIDs behind it."""

    switch: int
    port: int
    lids: npt.NDArray[np.int64]

    def endports(self, fabric: Fabric) -> _Entry | None:
        """What is left of it without the switch itself; None if nothing is."""
        if self.port == 0:
            return None
        return replace(self, lids=self.lids[fabric.lids.port[self.lids] > 0])


def check_certificate(fabric: Fabric, routing: Routing, certificate: Certificate, *, threads: int = 2) -> None:
    """See for every packet that tables can send whether it climbs in the order of a certificate.

    Says nothing of delivery: packets that the tables lose climb as far as they get.

    Raises
    ------
    FalseCertificate
        A packet does not climb; it is named.
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L hops) for SLs by switch, O(L L hops) for SLs by the sender's LID; .1 to .3 s for 1000 switches.
    """
    routing.check_shapes(fabric)
    order = certificate.order
    if order.ndim != 2 or order.shape[1] != len(fabric.channels):
        raise TableError(
            f"the certificate is {order.shape}, the fabric has {number_of(len(fabric.channels), 'channel')}"
        )
    entries = list(_entries(fabric, routing))
    for start in range(0, len(entries), CHUNK):
        chunk = entries[start : start + CHUNK]
        masks = [_traffic(fabric, routing, entry, certificate) for entry in chunk]
        where = np.array([e.switch for e in chunk], np.int32), np.array([e.port for e in chunk], np.uint8)
        faults = climb(
            fabric, routing.lft, routing.sl2vl, order.astype(np.int32), (*where, np.array(masks)), threads=threads
        )
        for entry, fault in zip(chunk, faults.tolist(), strict=True):
            if fault[0] >= 0:
                raise FalseCertificate(_complaint(fabric, entry, fault))


def _entries(fabric: Fabric, routing: Routing) -> Iterator[_Entry]:
    """All ports at which packets enter, one for those of a switch whose SLs it maps alike, with the LIDs behind.

    For several stands that of a CA or router, if there is one among them: port 0 stands for the switch alone.
    """
    places = {(s, 0) for s in range(fabric.switches)}
    places |= set(zip(fabric.endport_switch.tolist(), fabric.endport_switch_port.tolist(), strict=True))
    behind: dict[tuple[int, int], list[int]] = {}
    for lid, place in enumerate(zip(fabric.lids.switch.tolist(), fabric.lids.port.tolist(), strict=True)):
        behind.setdefault(place, []).append(lid)
    entries: dict[tuple[int, bytes], tuple[int, list[int]]] = {}
    for switch, port in sorted(places, key=lambda place: (place[0], place[1] == 0, place[1])):
        if switch >= 0:
            kind = b"" if routing.sl2vl.ndim == 1 else routing.sl2vl[switch, port].tobytes()
            entries.setdefault((switch, kind), (port, []))[1].extend(behind.get((switch, port), ()))
    for (switch, _), (port, lids) in entries.items():
        yield _Entry(switch, port, np.array(lids, np.int64))


def _traffic(fabric: Fabric, routing: Routing, entry: _Entry, certificate: Certificate) -> npt.NDArray[np.uint16]:
    """uint16[L]: mask of the SLs on which packets for each LID enter, as far as the certificate speaks of them."""
    replies = certificate.strength == "reversible"
    mask = _levels(fabric, routing, entry, replies=replies)
    if certificate.scope == "all":
        return mask
    endports = entry.endports(fabric)
    rest = np.zeros_like(mask) if endports is None else _levels(fabric, routing, endports, replies=replies)
    return np.where(fabric.lids.port == 0, rest, mask)


def _levels(fabric: Fabric, routing: Routing, entry: _Entry, *, replies: bool) -> npt.NDArray[np.uint16]:
    """uint16[L]: mask of the SLs on which packets for each LID enter."""
    target, sl = fabric.lids.switch, routing.sl
    if sl.ndim == 1:
        out, back = _bits(sl), np.broadcast_to(_any(_bits(sl[entry.lids]), axis=0), len(target))
    elif len(sl) == fabric.switches:
        out, back = _bits(sl[entry.switch]), _any(_bits(sl[:, entry.lids]), axis=1)[target]
    else:
        out, back = _any(_bits(sl[entry.lids]), axis=0), _any(_bits(sl[:, entry.lids]), axis=1)
    mask = out | back if replies else out
    return np.where(target >= 0, mask, 0).astype(np.uint16)


def _bits(sl: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.int64(1) << sl.astype(np.int64)


def _any(bits: npt.NDArray[np.int64], axis: int) -> npt.NDArray[np.int64]:
    return np.asarray(np.bitwise_or.reduce(bits, axis=axis, initial=0))


def _complaint(fabric: Fabric, entry: _Entry, fault: list[int]) -> str:
    channels, (lid, sl, channel, vl) = fabric.channels, fault
    return (
        f"traffic from {fabric.switch_name[entry.switch]} port {entry.port} to LID {lid} on SL {sl} does not climb at "
        f"{fabric.switch_name[channels.src[channel]]} port {int(channels.port[channel])}, VL {vl}"
    )
