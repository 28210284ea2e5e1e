"""The proof: from the tables alone, is everything delivered, and can credits ever run in a circle?

Method: Dally and Seitz (1987): routes are free of deadlock if no channel waits for itself over the dependencies that
the routes make.  Dependencies are taken from LFT, SL and SL2VL as written, per virtual lane, for requests alone and for
requests with their replies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Dependencies, Slots, Trace, trace
from routing.deadlock.cdg import from_masks, least_cycle, possible_turns
from routing.deadlock.certificate import Certificate
from routing.deadlock.sources import lid_name
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.errors import TableError
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing

NAMED = 5
"""How many offending pairs are named."""
REPLIES = 16
"""First bit of the half of a dependency mask that counts replies in."""

_Cycle = list[tuple[int, int]]


@dataclass(frozen=True)
class Pair:
    """A switch that does not get through to a LID.

    Attributes
    ----------
    source, destination, lid
        Name of the switch that traffic enters at; name and LID of the receiver.
    reason
        What happens to the packet.
    """

    source: str
    destination: str
    lid: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} (LID {self.lid}): {self.reason}"


@dataclass(frozen=True)
class Unreachable:
    """What is not delivered, counted in pairs of a switch at which traffic enters and a LID.

    Attributes
    ----------
    pairs
        Pairs within one connected part that are not delivered.
    first
        The first few of them by name.
    circling
        Pairs (whether in one part or not) whose route runs in a circle.
    dropped
        Pairs whose SL is dropped on the way by the SL-to-VL tables (VL 15), though the route is there.
    expected
        Pairs that lie in different parts: there is no way to deliver them.
    first_expected
        The first few of those by name.
    unattached
        LIDs of CAs and routers that are cabled to no switch.
    """

    pairs: int = 0
    first: tuple[Pair, ...] = ()
    circling: int = 0
    dropped: int = 0
    expected: int = 0
    first_expected: tuple[Pair, ...] = ()
    unattached: tuple[int, ...] = ()

    def describe(self) -> list[str]:
        """Lines to print; none if everything is delivered."""
        lines = []
        if self.pairs:
            lines += [f"{self.pairs} pairs of switch and LID are not delivered:", *(f"  {pair}" for pair in self.first)]
        if self.circling:
            lines.append(f"{self.circling} routes run in a circle")
        if self.dropped:
            lines.append(f"{self.dropped} pairs are sent on an SL that is dropped (VL 15)")
        if self.expected:
            text = f"{self.expected} pairs lie in different parts of the fabric, which is no fault of the tables:"
            lines += [text, *(f"  {pair}" for pair in self.first_expected)]
        if self.unattached:
            lines.append(f"{len(self.unattached)} LIDs are cabled to no switch")
        return lines


@dataclass(frozen=True, eq=False)
class Proof:
    """What was found out about a routing.

    Attributes
    ----------
    certificate
        Shows that there is no credit loop; None if there is one.
    strength
        That of the certificate.
    credit_loop
        A shortest loop that requests alone close; None if there is none.
    reversible_loop
        A shortest loop that requests and replies close; None if there is none.
    unreachable
        What is not delivered.
    hops
        uint8[S, L], hops between switches as walked (0: at the switch that delivers; 254: that or more), 255 for none.
    complete
        Whether every LID is delivered from every switch of its connected part, at the right port.
    vls
        Highest VL in use + 1.
    seconds
        Time taken.
    """

    certificate: Certificate | None
    strength: Literal["reversible", "forward"] | None
    credit_loop: CreditLoop | None
    reversible_loop: CreditLoop | None
    unreachable: Unreachable
    hops: npt.NDArray[np.uint8]
    complete: bool
    vls: int
    seconds: float

    @property
    def certified(self) -> bool:
        """Complete within the connected parts, and free of credit loops (of requests, at least)."""
        return self.complete and self.certificate is not None


def prove(fabric: Fabric, routing: Routing, *, threads: int = 2) -> Proof:
    """Put a routing to the proof.

    Counted as senders are all CAs, routers and switches; as receivers all LIDs that a switch delivers.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L + V turns) time; a 1000-switch fabric takes tens of milliseconds.  Only if there is a credit loop does
    a search follow, for the shortest one.
    """
    start = time.perf_counter()
    routing.check_shapes(fabric)
    slots = Slots.of(fabric)
    vl_bit = _vl_bits(routing)
    found = trace(fabric, routing, slots, vl_bit, threads=threads)
    vls = _lanes_used(fabric, routing, vl_bit, found)
    certificate, cycles = _judge(fabric, slots, found.dep, vls, threads)
    loops = [None if c is None else credit_loop(fabric, routing, c, replies=bool(r)) for r, c in enumerate(cycles)]
    unreachable = _unreachable(fabric, routing, found, vl_bit)
    return Proof(
        certificate=certificate,
        strength=None if certificate is None else certificate.strength,
        credit_loop=loops[0],
        reversible_loop=loops[1],
        unreachable=unreachable,
        hops=found.hops,
        complete=unreachable.pairs == unreachable.circling == unreachable.dropped == 0,
        vls=vls,
        seconds=time.perf_counter() - start,
    )


def _vl_bits(routing: Routing) -> npt.NDArray[np.uint16]:
    """uint16[16]: bit of the VL of each SL, 0 where it is dropped."""
    row = routing.sl2vl.reshape(-1, 16)[0]
    if (routing.sl2vl != row).any():
        raise TableError("SL2VL tables that differ by port cannot be proved yet")
    return np.where(row < DATA_VLS, 1 << row.astype(np.int64), 0).astype(np.uint16)


def _lanes_used(fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], found: Trace) -> int:
    if routing.sl.ndim == 1:
        used = vl_bit[routing.sl[fabric.lids.switch >= 0]]
    else:
        used = vl_bit[[bool(found.sls >> sl & 1) for sl in range(16)]] if found.sls else vl_bit
    return max(1, int(np.bitwise_or.reduce(used, initial=0)).bit_length())


def _judge(
    fabric: Fabric, slots: Slots, dep: npt.NDArray[np.uint32], vls: int, threads: int
) -> tuple[Certificate | None, list[_Cycle | None]]:
    """The strongest certificate that there is, and the shortest cycles of requests and of requests with replies."""
    channels = fabric.channels
    graph = Dependencies(channels.first, channels.dst, slots.slot, dep)
    lanes = np.arange(vls, dtype=np.uint8)
    order, ordered = graph.order(lanes + REPLIES, threads=threads)
    if (ordered == len(channels)).all():
        return Certificate(order, "reversible"), [None, None]
    turns = possible_turns(fabric, slots)
    both = _shortest(fabric, turns, dep >> np.uint32(REPLIES), order)
    order, ordered = graph.order(lanes, threads=threads)
    if (ordered == len(channels)).all():
        return Certificate(order, "forward"), [None, both]
    same = np.array_equal(dep >> np.uint32(REPLIES), dep & np.uint32(0xFFFF))
    return None, [both if same else _shortest(fabric, turns, dep, order), both]


def _shortest(
    fabric: Fabric, turns: npt.NDArray[np.int64], dep: npt.NDArray[np.uint32], order: npt.NDArray[np.int32]
) -> _Cycle:
    """A shortest cycle among what has no place in the order."""
    open_lanes = np.bitwise_or.reduce((order < 0) << np.arange(len(order))[:, None], axis=0)
    masks = dep[turns[:, 2]] & open_lanes[turns[:, 0]] & open_lanes[turns[:, 1]]
    graph = from_masks(turns, masks.astype(np.uint16), len(fabric.channels), len(order))
    return graph.shortest_cycle(enough=least_cycle(fabric, graph))


def _unreachable(fabric: Fabric, routing: Routing, found: Trace, vl_bit: npt.NDArray[np.uint16]) -> Unreachable:
    lids = fabric.lids
    nowhere = np.flatnonzero((lids.endport >= 0) & (lids.switch < 0))
    dropped = 0
    if not vl_bit.all():
        dropped = _count_dropped(fabric, routing, found, vl_bit)
    return Unreachable(
        pairs=found.undelivered,
        first=_name_pairs(fabric, routing, found, same_part=True) if found.undelivered else (),
        circling=found.circling,
        dropped=dropped,
        expected=found.split,
        first_expected=_name_pairs(fabric, routing, found, same_part=False) if found.split else (),
        unattached=tuple(nowhere.tolist()),
    )


def _count_dropped(fabric: Fabric, routing: Routing, found: Trace, vl_bit: npt.NDArray[np.uint16]) -> int:
    travels = (found.hops > 0) & (found.hops < 255)
    lost = vl_bit[routing.sl] == 0
    if routing.sl.ndim == 1:
        return int(travels[:, lost].sum())
    if routing.sl.shape[0] == fabric.switches:
        return int((travels & lost).sum())
    by_switch = np.zeros(travels.shape, bool)
    here = np.flatnonzero(fabric.lids.switch >= 0)
    np.logical_or.at(by_switch, fabric.lids.switch[here], lost[here])
    return int((travels & by_switch).sum())


def _name_pairs(fabric: Fabric, routing: Routing, found: Trace, *, same_part: bool) -> tuple[Pair, ...]:
    """The first few by LID, then by switch."""
    lids = fabric.lids
    pairs: list[Pair] = []
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        same = fabric.component == fabric.component[lids.switch[lid]]
        lost = np.flatnonzero((found.hops[:, lid] == 255) & (same == same_part))
        for switch in lost[: NAMED - len(pairs)].tolist():
            reason = _what_happens(fabric, routing, switch, lid) if same_part else "in another part of the fabric"
            pairs.append(Pair(fabric.switch_name[switch], lid_name(fabric, lid), lid, reason))
        if len(pairs) == NAMED:
            break
    return tuple(pairs)


def _what_happens(fabric: Fabric, routing: Routing, switch: int, lid: int) -> str:
    seen: set[int] = set()
    while True:
        port, name = int(routing.lft[switch, lid]), fabric.switch_name[switch]
        channel = int(fabric.channels.at_port[switch, port])
        if switch in seen:
            return f"runs in a circle through {name} port {port}"
        if channel < 0:
            break
        seen.add(switch)
        switch = int(fabric.channels.dst[channel])
    if port == 255:
        return f"{name} has no route"
    back = (fabric.link_device == switch).all(axis=1) & (fabric.link_port == port).any(axis=1)
    if back.any():
        return f"runs in a circle over the loop-back cable at {name} port {port}"
    ends = (fabric.link_device == switch) & (fabric.link_port == port)
    if port and not ends.any():
        return f"{name} sends it to port {port}, which is not cabled"
    return f"{name} delivers it at port {port}, where the LID is not"
