"""Run cases of a scenario file that compare the detection of deadlock by time with exact knots.

A virtual channel is *suspected* if packets have waited for it during the whole timeout, and it has sent none in this
time.  A virtual channel is *stuck* if packets wait for room in its buffer, and no packet in this buffer can ever move:
the buffer belongs to a knot, or waits for a knot (:attr:`routing.deadlock.waitfor.WaitFor.stuck`).  At regular
intervals, a reading records which virtual channels are suspected, and which are stuck.

With the rule "flow control" (FC3D), a virtual channel is suspected only if one of the first packets in its queues came
while the virtual channel was active.  A packet that comes later finds the virtual channel blocked already, so the
deadlock began at another virtual channel.

Source: Pinkston, Deadlock characterization and resolution in interconnection networks, 13.3.2, and Shpiner and others,
Unlocking Credit Loop Deadlocks, section 3.  The deadlock breakers use the rule of Shpiner and others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.simulate.case_output import CaseOutput, tables_stated
from routing.simulate.changes import plan_of
from routing.simulate.network import Network
from routing.simulate.packets import settings_of
from routing.simulate.run import Simulation, simulate
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_setup import measurement_window, packet_ticks, remedies_of, switching_of

Flags = npt.NDArray[np.bool_]
Ticks = npt.NDArray[np.int64]
MOST_READINGS = 100_000
QUEUED_FOR, HEAD_SINCE = 3, 6
"""Numbers of two columns of the array that :meth:`routing.simulate.run.Simulation.packets` returns: the virtual
channel for which a packet is queued, and the tick since which the packet is the head of its queue.
"""
NEVER = np.iinfo(np.int64).max
RULES: Mapping[str, bool] = {"time": False, "flow control": True}
"""Rules by which virtual channels are suspected.  The value is True if the rule suspects a virtual channel only because
of a head packet that came while the virtual channel was active (see the module's docstring).
"""


@dataclass(eq=False)
class Detector:
    """Detection of deadlock with one timeout, compared with the virtual channels that really are stuck.

    Attributes
    ----------
    timeout
        Ticks without progress after which a virtual channel is suspected.
    suspected
        bool[N]: whether each virtual channel was suspected at the last reading.
    found
        bool[N]: whether each virtual channel is stuck, and has been suspected at a reading since it became stuck.
    alarms
        Number of times that a virtual channel became suspected.
    false_alarms
        Number of times that a virtual channel became suspected although it was not stuck.
    detected
        Number of times that a virtual channel became stuck and was suspected while it was stuck.
    missed
        Number of times that a virtual channel became stuck and was freed before it was suspected.
    delays
        Sum of the ticks over all virtual channels in ``detected``: from the first reading at which the virtual channel
        was stuck to the first reading at which it was also suspected.
    """

    timeout: int
    suspected: Flags
    found: Flags
    alarms: int = 0
    false_alarms: int = 0
    detected: int = 0
    missed: int = 0
    delays: int = 0

    def read(self, idle: Flags, stuck: Flags, freed: Flags, stuck_for: Ticks) -> None:
        """Add the state of the virtual channels at one reading to the counts.

        Parameters
        ----------
        idle
            bool[N]: whether each virtual channel has made no progress for the timeout, so that it is suspected.
        stuck
            bool[N]: whether each virtual channel really cannot move any more, because of a deadlock.
        freed
            bool[N]: whether each virtual channel was stuck at the last reading, and is not stuck now.
        stuck_for
            int64[N]: ticks since the first of the successive readings at which the virtual channel was stuck.
        """
        risen = idle & ~self.suspected
        self.alarms += int(risen.sum())
        self.false_alarms += int((risen & ~stuck).sum())
        self.missed += int((freed & ~self.found).sum())
        self.found &= stuck
        hit = stuck & idle & ~self.found
        self.detected += int(hit.sum())
        self.delays += int(stuck_for[hit].sum())
        self.found |= hit
        self.suspected = idle


@dataclass(eq=False)
class Readings:
    """Readings of a simulation, for several detectors.

    Attributes
    ----------
    detectors
        One detector for each timeout.
    waiting_since
        int64[N]: tick of a reading.  From this reading to the last one, every reading has found packets queued for the
        virtual channel, but the reading before it has not.  -1: the last reading has found no queued packets.
    stuck_since
        int64[N]: tick of a reading.  From this reading to the last one, every reading has found the virtual channel
        stuck, but the reading before it has not.  -1: the virtual channel was not stuck at the last reading.
    episodes
        Number of times that a virtual channel became stuck.
    active
        With the rule "flow control": ticks for which a virtual channel counts as active after it has sent a packet.
        With the rule "time": None.
    """

    detectors: list[Detector]
    waiting_since: Ticks
    stuck_since: Ticks
    episodes: int = field(default=0)
    active: int | None = None

    @classmethod
    def of(cls, timeouts: list[int], count: int, active: int | None = None) -> Readings:
        """Return readings of ``count`` virtual channels, before the first reading."""
        none = np.zeros(count, bool)
        detectors = [Detector(timeout, none.copy(), none.copy()) for timeout in timeouts]
        return cls(detectors, np.full(count, -1, np.int64), np.full(count, -1, np.int64), 0, active)

    def read(self, simulation: Simulation, watched: Flags) -> None:
        """Read the state of the simulation.  ``watched`` (bool[N]) marks the virtual channels of switches."""
        vcs, now = simulation.virtual_channels(), simulation.now
        waiting = watched & (vcs.waiting.ravel() > 0)
        self.waiting_since = np.where(waiting, np.where(self.waiting_since < 0, now, self.waiting_since), -1)
        graph = simulation.wait_graph()
        # In a deadlock, a buffer may still have room although its packets will never move.  Packets that wait for such
        # a buffer can move until it is full, so they are not stuck yet.
        full = np.zeros(len(waiting), bool)
        full[graph.awaited] = True
        stuck = waiting & full & graph.stuck
        before = self.stuck_since >= 0
        self.episodes += int((stuck & ~before).sum())
        self.stuck_since = np.where(stuck, np.where(before, self.stuck_since, now), -1)
        progress = np.maximum(self.waiting_since, vcs.sent.ravel())
        if self.active is not None:
            waiting &= _first_came(simulation) <= vcs.sent.ravel() + self.active
        for detector in self.detectors:
            idle = waiting & (now - progress >= detector.timeout)
            detector.read(idle, stuck, before & ~stuck, now - self.stuck_since)


def _first_came(simulation: Simulation) -> Ticks:
    """Return int64[N]: for each virtual channel, since which tick a head packet has waited for the virtual channel.

    If several head packets wait, the result is the earliest of their ticks.  If none waits, the result is ``NEVER``.
    """
    packets = simulation.packets()
    heads = packets[packets[:, HEAD_SINCE] >= 0]
    came = np.full(simulation.network.channels * simulation.network.vls, NEVER)
    np.minimum.at(came, heads[:, QUEUED_FOR], heads[:, HEAD_SINCE])
    return came


def activity_ticks(network: Network, packet: int) -> int:
    """Return for how many ticks a virtual channel counts as active after it has sent a packet.

    After these ticks, the next switch has received the packet and can forward it.  ``packet`` is the packet time in
    ticks.
    """
    return packet + int(network.arrays.wire.max()) + int(network.arrays.switch_delay.max())


def run_detection(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate the packets of a case, and compare detectors with several timeouts with the exact knots.

    The figures of the result are:

    - ``stuck``: number of times that a virtual channel of a switch became stuck
    - ``alarms``: by timeout, number of times that a virtual channel became suspected
    - ``false_alarms``: by timeout, number of times that a virtual channel became suspected although it was not stuck
    - ``detected``: by timeout, number of times that a virtual channel became stuck and was suspected while it was stuck
    - ``missed``: by timeout, number of times that a virtual channel became stuck and was freed before it was suspected
    - ``delay``: by timeout, mean time until a stuck virtual channel was suspected, in packet times
    - ``outcome``: deadlock if there is a permanent knot at the end, else progress
    """
    if "detection" not in case.table:
        raise scenario.error(f"case {case.name!r} has no table detection", *case.where)
    table, packet = case.table["detection"], packet_ticks(scenario)
    plan = plan_of(scenario, case)
    simulation = simulate(
        plan.network, plan.traffic, switching=switching_of(scenario, case), remedies=remedies_of(scenario, case)
    )
    _, until = measurement_window(scenario, case)
    every, timeouts = max(1, round(table.get("every", 1) * packet)), table["timeouts"]
    if until > MOST_READINGS * every:
        problem, remedy = f"case {case.name!r} reads {until // every} times", f"let it be {MOST_READINGS} at most"
        raise scenario.error(problem, *case.where, "detection", remedy=remedy)
    arrays = plan.network.arrays
    with scenario.placed(*case.where, "detection", "rule"):
        first_only = scenario.choice("rule of detection", table.get("rule", "time"), RULES)
    active = activity_ticks(plan.network, round(packet)) if first_only else None
    readings = Readings.of([round(time * packet) for time in timeouts], len(arrays.src) * plan.network.vls, active)
    watched = np.repeat(arrays.src < arrays.switches, plan.network.vls)
    for tick in range(every, until + 1, every):
        simulation.run(tick)
        readings.read(simulation, watched)
    by_timeout = {f"{time:g}": detector for time, detector in zip(timeouts, readings.detectors, strict=True)}
    found: dict[str, Any] = {
        "stuck": readings.episodes,
        **{
            name: {time: getattr(detector, name) for time, detector in by_timeout.items()}
            for name in ("alarms", "false_alarms", "detected", "missed")
        },
        "delay": {
            time: round(detector.delays / detector.detected / packet, 2) if detector.detected else None
            for time, detector in by_timeout.items()
        },
        "outcome": "deadlock" if simulation.deadlocks() else "progress",
    }
    return CaseOutput(found, settings_of(scenario, case, simulation) | tables_stated(plan.network.routing))
