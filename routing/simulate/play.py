"""Run a case of a scenario, and hold what comes out against what was expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import prove
from routing.deadlock.waitfor import WaitFor
from routing.errors import InputError
from routing.simulate.events import describe
from routing.simulate.network import BLOCK
from routing.simulate.run import Event, Simulation, Stop, Why, simulate
from routing.simulate.scenario import Case, Scenario
from routing.simulate.setting import (
    UNTIL,
    fabric_of,
    flows_of,
    lanes_of_ways,
    network_of,
    packet_ticks,
    remedies_of,
    routing_of,
    switching_of,
)

TOLERANCE = 0.03
MOST_POINTS = 2000
MOST_EVENTS = 1000
BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (("at_least_", operator.ge), ("at_most_", operator.le))


@dataclass(frozen=True, eq=False)
class Series:
    """What happened over time, for plots.

    Attributes
    ----------
    time
        float64[n], packet times.
    buffers
        Packets' worth of blocks in the input buffer at the end of each channel, float64[n] by channel name.
    throughput
        Share of a link that each flow got since the point before, float64[n] by flow name.
    """

    time: npt.NDArray[np.float64]
    buffers: Mapping[str, npt.NDArray[np.float64]]
    throughput: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Played:
    """What a player hands back; the same as in :class:`Result`."""

    found: Mapping[str, Any]
    stated: Mapping[str, Any]
    series: Series | None = None
    events: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Result:
    """What came out of a case.

    Attributes
    ----------
    scenario, case
        Names.
    stated
        What the outcome depends on: arbitration, inputs, buffer, seed, remedy.
    found
        Figures by name; those that may be expected.
    expected
        As the case says.
    wrong
        One line for each expectation that was not met.
    series
        Over time, if there is any.
    events
        Packet time and text of what drops and breakers did.
    """

    scenario: str
    case: str
    stated: Mapping[str, Any]
    found: Mapping[str, Any]
    expected: Mapping[str, Any]
    wrong: tuple[str, ...]
    series: Series | None = field(default=None, compare=False)
    events: tuple[tuple[float, str], ...] = ()

    @property
    def right(self) -> bool:
        """Whether all came out as expected."""
        return not self.wrong


def _close(found: float, wanted: float, tolerance: float) -> bool:
    return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance * 0.01)


def _differs(name: str, found: Any, wanted: Any, tolerance: float) -> str | None:
    """A line where a figure is not what was expected; ``at_least_x`` and ``at_most_x`` bound x."""
    if isinstance(wanted, dict):
        lines = [
            _differs(f"{name} of {key}", found.get(key) if isinstance(found, dict) else None, value, tolerance)
            for key, value in wanted.items()
        ]
        return "; ".join(line for line in lines if line) or None
    if found is None:
        return f"{name}: nothing was found, expected {wanted}"
    numbers = isinstance(wanted, int | float) and not isinstance(wanted, bool) and isinstance(found, int | float)
    exact = isinstance(wanted, int) and isinstance(found, int)
    same = _close(found, wanted, tolerance) if numbers and not exact else found == wanted
    return None if same else f"{name} is {found}, expected {wanted}"


def judge(found: Mapping[str, Any], expect: Mapping[str, Any]) -> tuple[str, ...]:
    """One line for each expectation that was not met."""
    tolerance = float(expect.get("tolerance", TOLERANCE))
    wrong: list[str] = []
    for name, wanted in expect.items():
        if name == "tolerance":
            continue
        for prefix, fits in BOUNDS:
            if name.startswith(prefix):
                value = found.get(name.removeprefix(prefix))
                if not isinstance(value, int | float) or not fits(value, wanted):
                    wrong.append(
                        f"{name.removeprefix(prefix)} is {value}, expected {prefix[:-1].replace('_', ' ')} {wanted}"
                    )
                break
        else:
            line = _differs(name, found.get(name), wanted, tolerance)
            wrong += [line] if line else []
    return tuple(wrong)


@dataclass(eq=False)
class _Recorder:
    """Runs a simulation in steps and keeps the series."""

    simulation: Simulation
    packet: int
    channels: list[int]
    time: list[float] = field(default_factory=list)
    buffers: list[npt.NDArray[np.int64]] = field(default_factory=list)
    got: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def look(self) -> None:
        self.time.append(self.simulation.now / self.packet)
        self.buffers.append(self.simulation.lanes().occupancy[self.channels].sum(axis=1))
        self.got.append(self.simulation.flows().bytes)

    def run(self, until: int, step: int) -> Stop:
        self.look()
        while True:
            stop = self.simulation.run(min(self.simulation.now + step, until))
            self.look()
            if self.simulation.now >= until or stop.why is Why.FINISHED:
                return stop

    def series(self, names: list[str]) -> Series:
        time, got = np.asarray(self.time), np.asarray(self.got, float)
        elapsed = np.maximum(np.diff(time, prepend=time[:1] - 1), 1e-9) * self.packet * BLOCK
        share = np.diff(got, axis=0, prepend=got[:1]) / elapsed[:, None]
        rooms = np.asarray(self.buffers, float) / self.packet
        channel = self.simulation.network.channel_name
        return Series(
            time,
            {channel(c): rooms[:, n] for n, c in enumerate(self.channels)},
            {name: share[:, n] for n, name in enumerate(names)},
        )


def _figures(simulation: Simulation, early: npt.NDArray[np.int64], ticks: int, names: list[str]) -> dict[str, Any]:
    """What may be expected of packets; ``early`` is what flows had got ``ticks`` before the end."""
    flows, totals, log, counters = simulation.flows(), simulation.totals(), simulation.log(), simulation.counters()
    packet = packet_of(simulation)
    share = (flows.bytes - early) / BLOCK / max(ticks, 1)
    deadlocks = simulation.waits().deadlocks
    blocked = bool(deadlocks)
    return {
        "outcome": "deadlock" if blocked else "progress" if bool((share > 0).all()) else "starvation",
        "throughput": {name: round(float(value), 4) for name, value in zip(names, share, strict=True)},
        "total": round(float(share.sum()), 4),
        "mean": round(float(share.mean()), 4),
        "least": round(float(share.min()), 4),
        "latency": round(float(flows.latency.sum() / max(int(flows.packets.sum()), 1) / packet), 3),
        "stopped": round((totals["last_move"] + packet) / packet, 2) if blocked else None,
        "knot": [len(knot.members) for knot in deadlocks],
        "delivered": totals["delivered"],
        "dropped": totals["dropped"],
        "hoq_discards": int(counters.port_sw_hoq_lifetime_limit_discards.sum()),
        "stalled_discards": int(counters.vl_stalled_discards.sum()),
        "overruns": int(counters.buffer_overrun_errors.sum()),
        "masters": int((log[:, 1] == Event.MASTER).sum()),
        "rules": int((log[:, 1] == Event.RULE).sum()),
        "finished": totals["in_flight"] == 0 and bool((flows.messages_done == flows.messages).all()),
    }


def packet_of(simulation: Simulation) -> int:
    """Ticks of a full packet."""
    return -(-simulation.traffic.mtu // BLOCK)


def play_packets(scenario: Scenario, case: Case) -> Played:
    """Simulate: figures, what they depend on, series."""
    network, traffic = network_of(scenario, case)
    switching, remedies = switching_of(scenario, case), remedies_of(scenario, case)
    simulation = simulate(network, traffic, switching=switching, remedies=remedies)
    packet, run = packet_ticks(scenario), scenario.tables["run"]
    until = round(float(case.table.get("until", run.get("until", UNTIL))) * packet)
    start = min(round(float(run.get("from", 0)) * packet), until)
    step = max(1, round(float(run.get("sample", until / packet / 200)) * packet), until // MOST_POINTS)
    names = [str(flow["name"]) for flow in flows_of(scenario, case)]
    if scenario.tables["traffic"]:
        names = [network.fabric.endport_name[flow.source] for flow in traffic.flows]
    ways = [flow["way"] for flow in scenario.flows if "way" in flow]
    recorder = _Recorder(simulation, packet, lanes_of_ways(network, ways)[:16])
    if start:
        recorder.run(start, step)
    early = simulation.flows().bytes
    recorder.run(until, step)
    stated = {
        "arbitration": switching.arbitration.name.lower().replace("_", "-"),
        "inputs": switching.inputs.name.lower(),
        "buffer": f"{network.timing.buffer} blocks",
        "seed": switching.seed,
        "remedy": case.table.get("remedy", {}) or "none",
    }
    events = tuple((round(tick / packet, 2), text) for tick, text in describe(simulation, MOST_EVENTS))
    return Played(_figures(simulation, early, until - start, names), stated, recorder.series(names), events)


def play_tables(scenario: Scenario, case: Case) -> Played:
    """Look at the tables alone: have they a credit loop?"""
    fabric = fabric_of(scenario)
    routing = routing_of(scenario, case, fabric, flows_of(scenario, case))
    loop = prove(fabric, routing, threads=1).credit_loop
    found = {"credit_loop": loop is not None, "loop": [] if loop is None else loop.describe()}
    return Played(found, {"tables": routing.provenance.engine})


def play_dependencies(scenario: Scenario, case: Case) -> Played:
    """Look at the ways of the flows alone: which channels on which VLs wait for which, and do any close a loop?"""
    network, traffic = network_of(scenario, case)
    pairs = sorted({pair for flow in traffic.flows for lid in flow.destinations for pair in pairwise(
        network.lanes_of_way(flow.source, lid))})  # fmt: skip
    lanes = network.channels * network.vls
    waits = WaitFor.of([a for a, _ in pairs], [b for _, b in pairs], lanes)
    loop = np.flatnonzero(waits.on_cycle).tolist()
    found = {
        "credit_loop": bool(loop),
        "loop": [network.lane_name(lane) for lane in loop],
        "lanes_on_loops": len(loop),
        "lanes": len({lane for pair in pairs for lane in pair}),
        "dependencies": len(pairs),
    }
    return Played(found, {"tables": network.routing.provenance.engine})


Player = Callable[[Scenario, Case], Played]
PLAYERS: Mapping[str, Player] = {"packets": play_packets, "tables": play_tables, "dependencies": play_dependencies}
"""What a case may do, by the word in its file."""


def play(scenario: Scenario, case: Case) -> Result:
    """Run a case.

    Raises
    ------
    ParseError
        The scenario cannot be run.
    """
    player = scenario.choice("thing to do", case.what, PLAYERS)
    try:
        played = player(scenario, case)
    except InputError as error:
        if error.path is not None:
            raise
        raise scenario.error(error.problem, remedy=error.remedy) from None
    unknown = [
        name for name in case.expect
        if name != "tolerance" and name.removeprefix("at_least_").removeprefix("at_most_") not in played.found
    ]  # fmt: skip
    if unknown:
        raise scenario.error(
            f"case {case.name!r} expects {unknown[0]!r}", remedy=f"{case.what} finds {', '.join(played.found)}"
        )
    wrong = judge(played.found, case.expect)
    return Result(
        scenario.name, case.name, played.stated, played.found, case.expect, wrong, played.series, played.events
    )
