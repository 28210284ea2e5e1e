"""Simulate congestion management by requests and grants between the adapters of a switching fabric.

Source: Chrysos, Chen, Minkenberg, Kachris, Katevenis, "End-to-End Congestion Management for Non-Blocking, Multi-Stage
Switching Fabrics using Commodity Switches", sections 2 and 3.

Each flow from an input adapter to an output adapter has a virtual time, which each grant advances by the number of
granted segments.  An output adapter next grants the requests of the flow with the smallest virtual time, so that flows
that always have requests get equal numbers of segments.

A flow that requests again after a time without requests may have a low virtual time.  So its virtual time is first
raised to a least value, unless it is higher already.  The least value belongs to the flow to which the output adapter
has given its last grant: it is the virtual time that this flow had before the grant.

Differences from the source: headers of segments take no bandwidth.  Virtual times are exact numbers, and the virtual
intervals of a hardware scheduler are not simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST, is_float_in, is_int_in
from routing.simulate.clos import Clos
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.network import COST_BITS, Network
from routing.simulate.traffic import Flow, Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

Ints = npt.NDArray[np.int64]

LOAD_UNIT = 1 << 30
BURST_UNIT = 1 << 20
MOST_SEGMENT = 2048
MOST_PACKET = 0xFFFF
MOST_SEGMENTS = 1 << 20


class AdapterCounts(NamedTuple):
    """Counters of N adapters: each attribute is int64[N], one number for each adapter.

    Attributes
    ----------
    offered, offered_bytes
        Number of packets for this adapter that any adapter has received from its external line, and their bytes.
    departed, departed_bytes
        Number of packets that have left this adapter by its external line, and their bytes.
    delay, worst
        Sum and maximum, over the departed packets, of the ticks from arrival to departure.
    held
        Number of grants that the adapter holds for its virtual output queues.
    room, fabric_room
        Free room in this adapter's reassembly buffer, and in the fabric-output buffer in front of this adapter, in
        segments.
    """

    offered: Ints
    offered_bytes: Ints
    departed: Ints
    departed_bytes: Ints
    delay: Ints
    worst: Ints
    held: Ints
    room: Ints
    fabric_room: Ints


@dataclass(frozen=True)
class RequestGrant(Mechanism):
    """Settings of all adapters, and the packets of the external lines.

    The external lines carry one byte in each tick.

    Attributes
    ----------
    clos
        Network between the adapters.
    loads
        float64[N, N]: load from each adapter (row) to each adapter (column), as a fraction of the rate of an external
        line.
    reserve
        Whether a grant reserves space in the buffer of the last switch.
    in_band
        Whether control data (requests, grants and acknowledgements) travels in segments and so takes bandwidth.  A flow
        without an open request and without an unacknowledged segment may then send one segment without a grant.  If
        ``in_band`` is false, control data arrives after ``control_delay`` ticks, and each segment needs a grant.
    segment, control
        Bytes of the largest segment, and of a segment that has only control data.
    grant
        Largest number of segments of a flow that may be requested and not yet granted.
    reassembly, fabric_buffer
        Size of a reassembly buffer and of the buffer of the last switch, in segments.
    grant_rate
        Rate of the grants of an output, relative to the external line.
    small, large, large_share
        Bytes of small and of large packets, and the fraction of large packets.
    burst
        Mean number of packets of a burst.  All packets of a burst have one destination and follow each other directly.
    blocked, block_from, block_until
        Adapters to which the last switch sends nothing for some time, and the ticks at which this time begins and ends.
    """

    name: ClassVar[str] = "request-grant"
    output_queues: ClassVar[bool] = True
    # Other mechanisms cannot act on the segments of requests and grants, so this mechanism cannot be combined with
    # them.
    alone: ClassVar[bool] = True

    clos: Clos
    loads: npt.NDArray[np.float64]
    reserve: bool = True
    in_band: bool = True
    control_delay: int = 1100
    segment: int = 256
    control: int = 20
    grant: int = 50
    reassembly: int = 2048
    fabric_buffer: int = 240
    grant_rate: float = 10.0
    small: int = 40
    large: int = 9000
    large_share: float = 0.0
    burst: float = 1.0
    blocked: Sequence[int] = field(default=())
    block_from: int = 0
    block_until: int = 0

    def traffic(self) -> Traffic:
        """Return one flow from each adapter to each adapter.  The mechanism makes the packets of these flows."""
        lids = [tuple(range(first, first + self.clos.paths)) for first in self.clos.first_lid.tolist()]
        flows = (Flow(sender, lid, stop=0) for sender in self.clos.sender.tolist() for lid in lids)
        return Traffic(tuple(flows), self.segment)

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return one list: the settings in the order that the kernel expects, the first LID of each adapter, the
        channels to the blocked adapters, and the loads.

        Raises
        ------
        OptionError
            A setting is out of range.
        """
        self._check()
        count = len(self.clos.first_lid)
        loads = np.floor(self.loads * LOAD_UNIT).astype(np.int64)
        blocked = [int(self.clos.output_channel[adapter]) for adapter in self.blocked]
        cost = round(self.segment / self.grant_rate * (1 << COST_BITS))
        return [
            count, self.clos.paths, int(self.reserve), int(self.in_band), self.control_delay, self.segment,
            self.control, self.grant, self.reassembly, self.fabric_buffer, cost, self.small, self.large,
            round(self.large_share * LOAD_UNIT), round(self.burst * BURST_UNIT), self.block_from, self.block_until,
            len(blocked), *self.clos.first_lid.tolist(), *blocked, *loads.ravel().tolist(),
        ]  # fmt: skip

    def _check(self) -> None:
        count = len(self.clos.first_lid)
        self.check_integers(
            ("control_delay", 1, LONGEST), ("segment", 1, MOST_SEGMENT), ("control", 1, MOST_SEGMENT),
            ("grant", 1, MOST_SEGMENTS), ("reassembly", 1, MOST_SEGMENTS), ("fabric_buffer", 1, MOST_SEGMENTS),
            ("small", 1, MOST_PACKET), ("large", 1, MOST_PACKET), ("block_from", 0, LONGEST),
            ("block_until", 0, LONGEST),
        )  # fmt: skip
        for key, low, high in (("grant_rate", 1e-3, 1e3), ("large_share", 0, 1), ("burst", 1, 1e4)):
            if not is_float_in(getattr(self, key), low, high):
                raise OptionError(f"{key} is {getattr(self, key)!r}", remedy=f"use a number from {low:g} to {high:g}")
        if self.loads.shape != (count, count) or not (self.loads >= 0).all() or self.loads.sum(axis=1).max() > 1 + 1e-9:
            raise OptionError(
                f"the loads of {count} adapters are invalid", remedy="use loads from 0 on, up to 1 for each input"
            )
        largest = self.large if self.large_share else self.small
        needed = -(-largest // self.segment)
        if self.grant < needed:
            raise OptionError(
                f"a packet of {largest} bytes is never requested", remedy=f"set grant to {needed} or more"
            )
        for key in ("reassembly", "fabric_buffer") if self.reserve else ("reassembly",):
            if getattr(self, key) < self.grant:
                raise OptionError(f"{key} has no room for a grant", remedy=f"use at least {self.grant} segments")
        if not all(is_int_in(adapter, 0, count - 1) for adapter in self.blocked):
            raise OptionError("a blocked adapter does not exist", remedy=f"use 0 to {count - 1}")

    def counts(self, simulation: Simulation) -> AdapterCounts:
        """Return the counters of all adapters."""
        return AdapterCounts(*simulation.results_of(self).reshape(len(self.clos.first_lid), -1).T)


def hotspot_loads(adapters: int, hot: Sequence[int], over: float, load: float) -> npt.NDArray[np.float64]:
    """Return float64[N, N]: the load from each of N adapters (row) to each adapter (column), as a fraction of the rate
    of an external line.

    ``adapters`` is N, and ``hot`` lists the hotspots.  The loads to a hotspot have the sum ``over``, and the loads to
    any other adapter have the sum ``load``.  Each adapter gets equal loads from all adapters.
    """
    by_output = np.full(adapters, load)
    by_output[list(hot)] = over
    return np.tile(by_output / adapters, (adapters, 1))


def unbalanced_loads(adapters: int, share: float, load: float = 1.0) -> npt.NDArray[np.float64]:
    """Return loads of unbalanced traffic, float64[N, N].

    Each input sends the fraction ``share`` of its load ``load`` to the output with its own number, and the remaining
    load to all outputs alike.
    """
    return load * (np.full((adapters, adapters), (1 - share) / adapters) + share * np.eye(adapters))
