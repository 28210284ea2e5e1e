"""Simulate a subnet manager that watches counters, and rewrites LFT entries of a credit loop that it suspects.

In every period, the subnet manager reads the counters of all channels between switches.  If the counters point to a
credit loop (:mod:`routing.deadlock.counter_diagnosis`), the subnet manager writes the entries that
:func:`routing.deadlock.loop_breaking.break_loop` proposes.  Packets that are already queued stay in their queues until
HOQLife drops them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routing.counters import CounterDeltas
from routing.deadlock.counter_diagnosis import suspect_loops
from routing.deadlock.loop_breaking import break_loop
from routing.simulate.network import Network
from routing.simulate.run import Simulation
from routing.tables import Routing


@dataclass(eq=False)
class SmWatch:
    """Simulated subnet manager that watches the counters of one simulation run, and breaks suspected credit loops.

    Attributes
    ----------
    routing
        The tables in force.
    before
        Counters at the last reading.  None: there was no reading yet.
    writes
        Tick and number of entries of each write.
    loop_free
        Whether the tables of the last write have no credit loop.
    """

    routing: Routing
    before: CounterDeltas | None = None
    writes: list[tuple[int, int]] = field(default_factory=list)
    loop_free: bool = False

    def __call__(self, simulation: Simulation) -> None:
        """Read the counters, and break a credit loop if the increase of the counters points to one.

        The subnet manager breaks the loop by writing changed LFT entries.  It writes nothing if no change is found.
        """
        now = _readings(simulation.network, simulation)
        before, self.before = self.before, now
        if before is None:
            return
        fabric = simulation.network.fabric
        loops = suspect_loops(fabric, self.routing, now.since(before).suspected, threads=1).loops
        found = break_loop(fabric, self.routing, loops[0].loop, threads=1) if loops else None
        if found is None:
            return
        self.routing, self.loop_free = found.routing, found.loop_free
        self.writes.append((simulation.now, len(found.changes)))
        simulation.set_lft(found.routing.lft)

    def figures(self, packet: int) -> dict[str, Any]:
        """Return the figures of the subnet manager.

        The figures are the number of writes, the number of entries in all writes together, the time of the first write
        in packet times (None: no write), and whether the tables of the last write have no credit loop.  ``packet`` is
        the packet time in ticks.
        """
        return {
            "sm_writes": len(self.writes),
            "sm_entries": sum(entries for _, entries in self.writes),
            "sm_first": round(self.writes[0][0] / packet, 2) if self.writes else None,
            "sm_loop_free": self.loop_free,
        }


def _readings(network: Network, simulation: Simulation) -> CounterDeltas:
    """Return the counters of the fabric's channels between switches."""
    arrays, channels, counters = network.arrays, network.fabric.channels, simulation.counters()
    own = {
        (int(src), int(port)): c for c, (src, port) in enumerate(zip(arrays.src, arrays.src_port, strict=True))
    }  # fmt: skip
    rows = [own[int(src), int(port)] for src, port in zip(channels.src, channels.port, strict=True)]
    return CounterDeltas(
        np.arange(len(rows), dtype=np.int32),
        counters.port_sw_hoq_lifetime_limit_discards[rows],
        counters.port_xmit_wait[rows],
        counters.port_xmit_data[rows],
        np.zeros((3, len(rows)), bool),
    )
