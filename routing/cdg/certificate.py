"""Certificate which states that tables are free of credit loops, and the checker of certificates.

The checker shares no code with the construction of certificates: it builds no dependency graph and searches nothing.
A certificate numbers the channels of each VL.  The checker first tests whether every next hop leads from a channel to a
channel of a higher number.  If not, the checker follows the route of every packet and checks that the packet uses
channels of increasing numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing._kernels.check_certificate import check_orders, next_hops_increase
from routing.errors import FalseCertificate, TableError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import DATA_VLS, Routing

Strength = Literal["reversible", "forward"]
Scope = Literal["all", "endports"]
"""Traffic that a certificate covers: all traffic, or only traffic from or to a CA or router."""
CHUNK = 256
"""Number of ports whose packets are checked in one kernel call.  A limit keeps the memory for the packets' SLs small.
"""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A topological order of each VL's CDG: every packet uses channels in strictly increasing order.

    Attributes
    ----------
    order
        int32[V, C]: position of each channel in a topological order of the dependencies, for V = highest VL in use + 1.
        If VLs change from hop to hop, the array is one order over all pairs of channel and VL.
    strength
        "forward": requests follow the order.  "reversible": replies, which use the request's SL, follow the order too.
    scope
        "endports": traffic from or to CAs and routers follows the order.  "all": switch-to-switch traffic follows the
        order too.
    """

    order: npt.NDArray[np.int32]
    strength: Strength
    scope: Scope = "all"


@dataclass(frozen=True, eq=False)
class _Entry:
    """A port at which packets enter a switch, and the LIDs of the device at this port."""

    switch: int
    port: int
    lids: npt.NDArray[np.int64]

    def endports(self, fabric: Fabric) -> _Entry | None:
        """Return this port with only the LIDs of CAs and routers; None if the port is port 0 of a switch.

        Without switch-to-switch traffic, only CAs and routers send packets to the LIDs of switches.
        """
        if self.port == 0:
            return None
        return replace(self, lids=self.lids[fabric.lids.port[self.lids] > 0])


def check_certificate(
    fabric: Fabric,
    routing: Routing,
    certificate: Certificate,
    *,
    alternatives: npt.NDArray[np.int64] | None = None,
    threads: int = 2,
) -> None:
    """Check that every packet that tables can send uses channels in the order of a certificate.

    Delivery is not checked: the route of a lost packet is checked up to the point where the packet is lost.

    Parameters
    ----------
    fabric, routing, certificate
        The fabric, the tables and the certificate to check.
    alternatives
        int64[16], for each SL of the tables the SLs that packets may use instead, as bits; None: only the SL itself.
    threads
        Worker threads of the kernel.

    Raises
    ------
    FalseCertificate
        A packet violates the order; the message names the packet.
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L hops) if SLs depend on the sender's switch, O(L^2 hops) if SLs depend on the sender's LID; 0.1 to 0.3 s
    for 1000 switches.  If each packet keeps its VL, a quick test comes first: whether the next hops of all switches
    follow the order of every VL.  If they do, the check ends.  VLs with equal orders are tested once.  The quick test
    costs O(S L) for each distinct order; 1 s for 3584 switches and 40,960 CAs.
    """
    routing.check_shapes(fabric)
    order = certificate.order
    if order.ndim != 2 or order.shape[1] != len(fabric.channels):
        raise TableError(
            f"the certificate is {order.shape}, the fabric has {count_noun(len(fabric.channels), 'channel')}"
        )
    order = order.astype(np.int32)
    sls = routing.sl if routing.service_levels.by_lid and alternatives is None else np.arange(16, dtype=np.uint8)
    if _all_next_hops_increase(fabric, routing, order, sls, threads):
        return
    entries = list(_entries(fabric, routing))
    for start in range(0, len(entries), CHUNK):
        chunk = entries[start : start + CHUNK]
        masks = [_widened(_traffic(fabric, routing, entry, certificate), alternatives) for entry in chunk]
        where = np.array([e.switch for e in chunk], np.int32), np.array([e.port for e in chunk], np.uint8)
        faults = check_orders(fabric, routing.lft, routing.sl2vl, order, (*where, np.array(masks)), threads=threads)
        for entry, fault in zip(chunk, faults.tolist(), strict=True):
            if fault[0] >= 0:
                raise FalseCertificate(_complaint(fabric, entry, fault))


def _all_next_hops_increase(
    fabric: Fabric, routing: Routing, order: npt.NDArray[np.int32], sls: npt.NDArray[np.uint8], threads: int
) -> bool:
    """Return whether a test of the next hops alone proves that no packet violates the certificate.

    The result is True if every packet keeps its VL, every VL in use has an order, and all next hops follow the orders
    of all VLs.  Otherwise, the path of each packet must be checked, because a next hop that violates an order may carry
    no packets on that VL.

    ``order`` (int32[V, C]) holds the orders of the certificate, and ``sls`` the SLs that packets may use.
    """
    if not routing.sl_to_vl.uniform or not len(order):
        return False
    vls = routing.sl2vl[np.unique(sls)]
    if ((vls >= len(order)) & (vls < DATA_VLS)).any():
        return False
    distinct = [row for k, row in enumerate(order) if not any(np.array_equal(row, other) for other in order[:k])]
    return bool(next_hops_increase(fabric, routing.lft, np.array(distinct), threads=threads).all())


def _entries(fabric: Fabric, routing: Routing) -> Iterator[_Entry]:
    """Yield the ports at which packets enter, with the LIDs of their devices.

    Ports of one switch with equal SL2VL rows put packets on the same VLs.  So only one of these ports is yielded, with
    the LIDs of all these ports.  Port 0 (the switch itself) is yielded only if no port of a CA or router at this switch
    has the same SL2VL row.
    """
    positions = {(s, 0) for s in range(fabric.switches)}
    positions |= set(zip(fabric.endport_switch.tolist(), fabric.endport_switch_port.tolist(), strict=True))
    behind: dict[tuple[int, int], list[int]] = {}
    for lid, position in enumerate(zip(fabric.lids.switch.tolist(), fabric.lids.port.tolist(), strict=True)):
        behind.setdefault(position, []).append(lid)
    entries: dict[tuple[int, bytes], tuple[int, list[int]]] = {}
    for switch, port in sorted(positions, key=lambda position: (position[0], position[1] == 0, position[1])):
        if switch >= 0:
            kind = b"" if routing.sl_to_vl.uniform else routing.sl2vl[switch, port].tobytes()
            entries.setdefault((switch, kind), (port, []))[1].extend(behind.get((switch, port), ()))
    for (switch, _), (port, lids) in entries.items():
        yield _Entry(switch, port, np.array(lids, np.int64))


def _traffic(fabric: Fabric, routing: Routing, entry: _Entry, certificate: Certificate) -> npt.NDArray[np.uint16]:
    """Return uint16[L], the SLs of packets that enter at a port (``entry``) towards each LID, as bits.

    Packets that the certificate does not cover are left out.
    """
    replies = certificate.strength == "reversible"
    mask = _levels(fabric, routing, entry, replies=replies)
    if certificate.scope == "all":
        return mask
    endports = entry.endports(fabric)
    rest = np.zeros_like(mask) if endports is None else _levels(fabric, routing, endports, replies=replies)
    return np.where(fabric.lids.port == 0, rest, mask)


def _widened(mask: npt.NDArray[np.uint16], alternatives: npt.NDArray[np.int64] | None) -> npt.NDArray[np.uint16]:
    """Return uint16[L]: for each LID, the SLs that packets may use in place of the SLs of the tables, as bits.

    ``mask`` (uint16[L]) has the SLs of the tables for each LID, as bits.  ``alternatives`` (int64[16]) has for each SL
    of the tables the SLs that packets may use instead, as bits.  If it is None, the result is ``mask``.
    """
    if alternatives is None:
        return mask
    found = np.zeros(len(mask), np.int64)
    for sl in range(16):
        found |= np.where(mask >> sl & 1, alternatives[sl], 0)
    return found.astype(np.uint16)


def _levels(fabric: Fabric, routing: Routing, entry: _Entry, *, replies: bool) -> npt.NDArray[np.uint16]:
    """Return uint16[L], the SLs of packets that enter at a port (``entry``) towards each LID, as bits.

    Requests are always included; with ``replies``, replies are included too.
    """
    target, sls, sl = fabric.lids.switch, routing.service_levels, routing.sl
    if sls.by_lid:
        out, back = _bits(sl), np.broadcast_to(_any(_bits(sl[entry.lids]), axis=0), len(target))
    elif sls.by_switch:
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
        f"traffic from {fabric.labels[entry.switch]} port {entry.port} to LID {lid} on SL {sl} violates the order at "
        f"{fabric.labels[channels.src[channel]]} port {int(channels.port[channel])}, VL {vl}"
    )
