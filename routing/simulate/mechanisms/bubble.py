"""Simulate bubble flow control: a packet enters a ring only if room for one more packet stays free.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section 13.3.1, on
adaptive bubble routing and the local bubble of BlueGene/L.  The rule checks the room of the next buffer
only, not of the whole ring.  Differences: the rings follow from the tables and the traffic, instead of from the
dimensions of a torus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from routing.deadlock.waitfor import WaitFor
from routing.errors import OptionError
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import BLOCK, Network
from routing.simulate.scenario_key import Key
from routing.simulate.traffic import Flow, Process, Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation


def rings_of(network: Network, traffic: Traffic) -> list[int]:
    """Return the number of the ring of each virtual channel; -1 if the virtual channel is on no ring.

    A ring is a cycle of dependencies of the traffic's paths.

    Raises
    ------
    OptionError
        Two cycles of dependencies share a virtual channel, so these cycles are not rings.
    """
    pairs = {
        pair
        for flow in traffic.flows
        for lid in _targets(flow) - {int(network.fabric.endport_lid[flow.source])}
        for pair in pairwise(network.vcs_of_path(flow.source, lid))
    }
    waits = WaitFor.of([a for a, _ in pairs], [b for _, b in pairs], network.channels * network.vls)
    ring = np.where(waits.on_cycle, waits.component, -1)
    inside = [a for a, b in pairs if ring[a] >= 0 and ring[a] == ring[b]]
    if len(set(inside)) < len(inside):
        twice = next(vc for vc in inside if inside.count(vc) > 1)
        raise OptionError(
            f"credit loops share {network.vc_name(twice)}, and bubbles need separate rings",
            remedy='use tables whose loops are rings, such as rule = "dimension-order" on a torus',
        )
    return [int(number) for number in ring]


def _targets(flow: Flow) -> set[int]:
    """Return the LIDs to which a flow sends."""
    return {lid for _, lid, _ in flow.trace} if flow.process is Process.TRACE else {*flow.destinations, *flow.hot}


@dataclass(frozen=True)
class Bubbles(CaseMechanism):
    """Bubble flow control on all rings of the tables."""

    name: ClassVar[str] = "bubble"
    output_queues: ClassVar[bool] = True
    keeps_tables: ClassVar[bool] = True
    table: ClassVar[str] = "bubble"
    keys: ClassVar[Mapping[str, Key]] = {}

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Bubbles:
        """Return bubble flow control, which has no settings."""
        return cls()

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the size of a packet in blocks, and then the number of each virtual channel's ring (-1: no ring).

        Raises
        ------
        OptionError
            Packets have different sizes, a buffer of a ring has no room for two packets, or two cycles of dependencies
            share a virtual channel.
        """
        rings = rings_of(network, traffic)
        blocks = -(-traffic.mtu // BLOCK)
        if any(size % traffic.mtu for flow in traffic.flows for size in _sizes(flow)):
            raise OptionError(
                "bubbles need packets of one size", remedy=f"use messages of multiples of {traffic.mtu} bytes"
            )
        small = [vc for vc, ring in enumerate(rings) if ring >= 0 and network.arrays.buffer.ravel()[vc] < 2 * blocks]
        if small:
            raise OptionError(
                f"the buffer of {network.vc_name(small[0])} has no room for two packets",
                remedy=f"use {2 * blocks} blocks",
            )
        return [blocks, *rings]

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the number of rings."""
        return {"rings": len(set(rings_of(simulation.network, simulation.traffic)) - {-1})}


def _sizes(flow: Flow) -> list[int]:
    return [size for _, _, size in flow.trace] if flow.process is Process.TRACE else [flow.bytes]
