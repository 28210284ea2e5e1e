"""Run cases of a scenario file that simulate packets, and return their figures, settings, time series and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.deadlock.waitfor import Knot
from routing.numerals import count_noun
from routing.simulate.adaptive import TOTALS, AdaptiveSimulation
from routing.simulate.adaptive_cases import simulation_of_case
from routing.simulate.case_output import CaseOutput, tables_stated
from routing.simulate.changes import plan_of
from routing.simulate.events import describe
from routing.simulate.mechanisms.registry import IN_CASES
from routing.simulate.network import BLOCK
from routing.simulate.options import Switching
from routing.simulate.plan import Plan, with_case_mechanisms
from routing.simulate.recorder import Recorder, by_name
from routing.simulate.run import Simulation, simulate
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_schema import made_by
from routing.simulate.scenario_setup import (
    channels_of_paths,
    measurement_window,
    mechanisms_of,
    packet_ticks,
    remedies_of,
    switching_of,
    window_stated,
)
from routing.simulate.state import Event
from routing.simulate.traffic import Traffic, senders, shift

MOST_POINTS = 2000
MOST_CHANNELS = 64
MOST_EVENTS = 1000
FIRSTS = {
    "suspected": Event.SUSPECTED,
    "master": Event.MASTER,
    "rerouted": Event.REROUTED,
    "rule": Event.RULE,
    "hoq_drop": Event.HOQ_DROP,
    "stalled": Event.STALLED,
}
"""Kinds of events for which the result states the time of the first event, by name in the result."""

Found = dict[str, Any]


def _of_flows(simulation: Simulation, plan: Plan, early: npt.NDArray[np.int64], ticks: int) -> Found:
    """Return the figures about flows, such as throughput and latency.

    ``early`` is int64[names]: bytes of each named flow that were delivered before the measurement started.  The
    measurement has lasted ``ticks`` ticks.
    """
    flows = simulation.flows()
    share = (by_name(plan, flows.bytes) - early) / BLOCK / max(ticks, 1)
    blocked = bool(simulation.deadlocks())
    delivered = max(int(flows.packets.sum()), 1)
    return {
        "outcome": "deadlock" if blocked else "progress" if bool((share > 0).all()) else "starvation",
        "throughput": {name: round(float(value), 4) for name, value in zip(plan.names, share, strict=True)},
        "total": round(float(share.sum()), 4),
        "mean": round(float(share.mean()), 4),
        "least": round(float(share.min()), 4),
        "most": round(float(share.max()), 4),
        "latency": round(float(flows.latency.sum() / delivered / packet_of(simulation)), 3),
        "latency_worst": round(float(flows.worst.max(initial=0)) / packet_of(simulation), 3),
        "finished": simulation.totals()["in_flight"] == 0 and bool((flows.messages_done == flows.messages).all()),
    }


def _of_switches(simulation: Simulation) -> Found:
    """Return the figures about switches: deadlocks, drops, and actions of deadlock breakers."""
    totals, log, counters = simulation.totals(), simulation.log(), simulation.counters()
    packet, deadlocks = packet_of(simulation), simulation.deadlocks()
    labels = simulation.network.fabric.labels
    first = {name: log[log[:, 1] == event, 0] for name, event in FIRSTS.items()}
    return {
        "stopped": round(totals["last_move"] / packet, 2) if deadlocks else None,
        "knot": [len(knot.members) for knot in deadlocks],
        "locked": _locked(simulation, deadlocks) if deadlocks else None,
        "waits_from": _waits_from(simulation) if deadlocks else None,
        "delivered": totals["delivered"],
        "dropped": totals["dropped"],
        "hoq_discards": int(counters.port_sw_hoq_lifetime_limit_discards.sum()),
        "stalled_discards": int(counters.vl_stalled_discards.sum()),
        "overruns": int(counters.buffer_overrun_errors.sum()),
        "no_route_discards": int(counters.port_rcv_switch_relay_errors.sum()),
        "link_down_discards": int(counters.link_down_discards.sum()),
        "masters": int((log[:, 1] == Event.MASTER).sum()),
        "master_switches": [labels[row] for row in log[log[:, 1] == Event.MASTER, 5].tolist()],
        "rules": int((log[:, 1] == Event.RULE).sum()),
        "first": {name: round(float(times[0]) / packet, 2) for name, times in first.items() if len(times)},
    }


def _locked(simulation: Simulation, deadlocks: Sequence[Knot]) -> float:
    """Return the time at which the first of the knots ``deadlocks`` was complete, in packet times.

    A knot is a set of channels that wait only for each other.  A knot is complete as soon as the last packet of the
    knot has been sent into a channel of the knot.
    """
    sent, packet = simulation.virtual_channels().sent.ravel(), packet_of(simulation)
    knots = [[vc for vc in knot.members if vc < len(sent)] for knot in deadlocks]
    return round(min(float(sent[vcs].max(initial=0)) for vcs in knots) / packet, 2)


def _waits_from(simulation: Simulation) -> float:
    """Return the earliest time at which a packet that is permanently blocked began to wait, in packet times.

    Only packets at the head of a queue count.  Such a packet is permanently blocked if its queue waits, directly or
    through other queues, for a knot (a deadlocked set of channels).
    """
    waits, rows = simulation.permanent_waits(), simulation.packets()
    heads = rows[rows[:, 6] >= 0]
    return round(float(heads[waits.stuck[heads[:, 2]], 6].min()) / packet_of(simulation), 2)


def packet_of(simulation: Simulation) -> int:
    """Return the ticks that a packet of maximum size takes on a link (one packet time)."""
    return -(-simulation.traffic.mtu // BLOCK)


def _links_used(simulation: Simulation, early: npt.NDArray[np.int64]) -> dict[str, int]:
    """Count the channels between switches that have sent packets since the start of the measurement.

    The result has one number for each sending switch, by its name.  ``early`` is int64[N]: number of packets that each
    channel had sent at the start of the measurement.
    """
    network = simulation.network
    arrays, sent = network.arrays, simulation.counters().port_xmit_pkts > early
    inside = sent & (arrays.src < arrays.switches) & (arrays.dst < arrays.switches)
    count = np.bincount(arrays.src[inside], minlength=arrays.switches)
    return dict(zip(network.fabric.labels, count.tolist(), strict=False))


def _over_time(recorder: Recorder, start: float) -> Found:
    """Return the figures that are computed from the time series after packet time ``start``.

    There are two main figures.  The first is the largest used space of each buffer, in packets of full size.  The
    second is the smallest throughput between two consecutive points of the time series.  Space counts as used from the
    sending of a packet until the sender has the credits back.
    """
    network, late = recorder.simulation.network, np.asarray(recorder.time) > start
    rooms, shares = np.asarray(recorder.taken, float)[late] / recorder.packet, recorder.shares()[late]
    fullest, pauses = rooms.max(axis=0, initial=0.0), recorder.simulation.virtual_channels().pauses.sum(axis=1)
    # Parallel channels have the same name, so they get one common figure: the largest of their used spaces, or the sum
    # of their pauses.
    most, message = dict[str, float](), dict[str, int]()
    for n, c in enumerate(recorder.channels):
        name = network.path_name(c)
        most[name] = max(most.get(name, 0.0), round(float(fullest[n]), 2))
        message[name] = message.get(name, 0) + int(pauses[c])
    return {
        "pauses": message if recorder.simulation.switching.pauses else {},
        "fullest": most,
        "fullest_of_all": round(float(fullest.max(initial=0.0)), 2),
        "least_at_any_time": round(float(shares.min(initial=1.0)), 4),
        "least_total_at_any_time": round(float(shares.sum(axis=1).min(initial=float(shares.shape[1]))), 4),
        "not_drained": sum(recorder.left),
    }


def _of_change(recorder: Recorder, start: int) -> Found:
    """Return the figures about a change of tables.

    The figures are latency and throughput in three phases (before, during and after the change), and the number of
    recorded points with a deadlock.  "During" is the time from the first to the last write.  A phase that lasts 0 ticks
    is left out.  ``start`` is the tick at which the measurement starts.
    """
    if recorder.plan.change is None:
        return {}
    packet, times = recorder.packet, np.asarray(recorder.time) * recorder.packet
    got = np.asarray(recorder.got, float).sum(axis=1)
    delivered = np.asarray(recorder.delivered, float)
    bounds = [start, *recorder.plan.change, recorder.simulation.now]
    phases = {}
    for name, (begin, end) in zip(("before", "during", "after"), pairwise(bounds), strict=True):
        first, last = (int(np.searchsorted(times, tick - 0.5)) for tick in (begin, end))
        if begin >= end or last >= len(times):
            continue
        count, latency = delivered[last] - delivered[first]
        phases[name] = {
            "latency": round(latency / packet / count, 3) if count else None,
            "total": round((got[last] - got[first]) / BLOCK / (end - begin), 4),
        }
    return {"phases": phases, "deadlocks_seen": recorder.knots}


def _queues_stated(switching: Switching) -> Found:
    """Return the settings to print if switches are not adaptive: kind of input queues, and any speedup other than 1."""
    speedup = {} if switching.speedup == 1 else {"speedup": switching.speedup or "unlimited"}
    return {"inputs": switching.inputs.name.lower(), **speedup}


def settings_of(scenario: Scenario, case: Case, simulation: Simulation) -> Found:
    """Return the settings that influence the result and are printed with it."""
    switching = simulation.switching
    stated = {
        "arbitration": switching.arbitration.name.lower().replace("_", "-"),
        **({} if "adaptive" in case.table else _queues_stated(switching)),
        "buffer": count_noun(simulation.network.timing.buffer, "block"),
        "seed": switching.seed,
        **({} if switching.pauses is None else {"pauses": case.table["pauses"]}),
        **window_stated(scenario, case),
        "remedy": case.table.get("remedy", {}) or "none",
    }
    if made_by(scenario.tables["routing"], case.table) == "tables":
        stated |= tables_stated(simulation.network.routing)
    parts = ("adaptive", "change", "fault", "watch", *(kind.table for kind in IN_CASES))
    return stated | {part: case.table[part] for part in parts if part in case.table}


def run_packets(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate the packets of one simulation case, and return its figures, settings, time series and events."""
    mechanisms = mechanisms_of(scenario, case)
    plan = with_case_mechanisms(plan_of(scenario, case), mechanisms)
    simulation = simulation_of_case(scenario, case, plan.network, plan.traffic, plan.mechanisms)
    packet, run = packet_ticks(scenario), scenario.tables["run"]
    start, until = measurement_window(scenario, case)
    sample = float(run.get("sample", until / packet / 200))
    if sample <= 0:
        raise scenario.error(f"points of a chart cannot be {sample:g} packet times apart", "run", "sample")
    step = max(1, round(sample * packet), until // MOST_POINTS)
    recorder = Recorder(simulation, plan, packet, _shown(scenario, plan))
    if start:
        recorder.run(start, step)
    early, sent = by_name(plan, simulation.flows().bytes), simulation.counters().port_xmit_pkts
    recorder.run(until, step)
    found = _of_flows(simulation, plan, early, until - start) | _of_switches(simulation)
    found |= _over_time(recorder, start / packet) | {"links_used": _links_used(simulation, sent)}
    found |= _of_change(recorder, start)
    if isinstance(simulation, AdaptiveSimulation):
        found |= {name: simulation.totals()[name] for name in TOTALS}
    if plan.watch is not None:
        found |= plan.watch.figures(packet)
    for mechanism in mechanisms:
        found |= mechanism.figures(simulation)
    events = tuple((round(tick / packet, 2), text) for tick, text in describe(simulation, MOST_EVENTS))
    return CaseOutput(found, settings_of(scenario, case, simulation), recorder.series(), events)


def _shown(scenario: Scenario, plan: Plan) -> list[int]:
    """Return the channels to show in the chart.

    If the scenario lists paths, the channels on these paths are shown.  Otherwise, the channels on the paths of the
    flows are shown.  For traffic of a table ``[traffic]`` without listed paths, all channels into switches are shown.
    A chart has at most ``MOST_CHANNELS`` channels.
    """
    paths = [flow[key] for flow in scenario.flows for key in ("path", "then") if key in flow]
    if paths or scenario.tables["traffic"]:
        return channels_of_paths(plan.network, paths)[:MOST_CHANNELS]
    network, found = plan.network, dict[int, None]()
    for flow in plan.traffic.flows:
        own = int(network.fabric.endport_lid[flow.source])
        for lid in (lid for lid in flow.destinations if lid != own and len(found) < MOST_CHANNELS):
            found.update(dict.fromkeys(vc // network.vls for vc in network.vcs_of_path(flow.source, lid)))
    return list(found)[:MOST_CHANNELS] or channels_of_paths(network, [])[:MOST_CHANNELS]


def _at_standstill(scenario: Scenario, case: Case, plan: Plan) -> Found:
    """Simulate one simulation case to a standstill or to the end of the run, and return the figures.  No time series is
    recorded.
    """
    simulation = simulate(
        plan.network, plan.traffic, switching=switching_of(scenario, case), remedies=remedies_of(scenario, case)
    )
    nothing = np.zeros(len(plan.names), np.int64)
    _, end = measurement_window(scenario, case)
    simulation.run(end, stop_at_standstill=not case.table.get("remedy"))
    return _of_flows(simulation, plan, nothing, end) | _of_switches(simulation)


def run_lock_times(scenario: Scenario, case: Case) -> CaseOutput:
    """Find how the time until deadlock depends on the buffer size.

    The case is simulated to a standstill for each size in its key ``buffers``.  If each run deadlocks, a line is fitted
    to the times as a function of the size.
    """
    sizes = case.table.get("buffers", [])
    if len(set(sizes)) < 2 or not all(isinstance(size, int | float) for size in sizes):
        raise scenario.error(
            f"case {case.name!r} needs two sizes of buffers", *case.where, "buffers", remedy="such as buffers = [4, 8]"
        )
    times = []
    for size in sizes:
        one = replace(case, table={**case.table, "buffer": size})
        times.append(_at_standstill(scenario, one, plan_of(scenario, one))["stopped"])
    found: Found = {
        "stopped": {f"{size:g}": time for size, time in zip(sizes, times, strict=True)},
        "locked": sum(time is not None for time in times),
    }
    slope, rest = np.polyfit(sizes, times, 1) if None not in times else (None, None)
    found["slope"] = None if slope is None else round(float(slope), 3)
    found["intercept"] = None if rest is None else round(float(rest), 3)
    return CaseOutput(found, {"arbitration": case.table.get("arbitration", "round-robin")})


def run_seeds(scenario: Scenario, case: Case) -> CaseOutput:
    """Run a simulation case with seeds 1, 2, ..., and count how often each outcome occurs."""
    count = int(case.table.get("seeds", 100))
    if count < 1:
        raise scenario.error(f"{count} is not a number of seeds", *case.where, "seeds", remedy="use 1 or more")
    plan = plan_of(scenario, case)
    every = [_at_standstill(scenario, replace(case, table={**case.table, "seed": n + 1}), plan) for n in range(count)]
    found: Found = {
        "runs": count,
        "outcomes": dict(Counter(str(one["outcome"]) for one in every)),
        "masters": {str(n): times for n, times in sorted(Counter(one["masters"] for one in every).items())},
        "mastered": dict(sorted(Counter(name for one in every for name in one["master_switches"]).items())),
        "dropped": sum(one["dropped"] for one in every),
        "least": min((one["least"] for one in every), default=None),
    }
    return CaseOutput(found, {"seeds": count, "remedy": case.table.get("remedy", {}) or "none"})


def run_shifts(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate every shift pattern, and find the smallest throughput of a CA in each pattern.

    In shift pattern k, CA n sends to CA n + k, modulo the number of CAs.
    """
    plan = plan_of(scenario, case)
    switching, (start, until) = switching_of(scenario, case), measurement_window(scenario, case)
    mtu = plan.traffic.mtu
    least = [
        _least_of(plan, shift(plan.network.fabric, by, bytes=mtu, mtu=mtu), switching, start, until)
        for by in range(1, len(senders(plan.network.fabric)))
    ]
    found = {"shifts": len(least), "least": round(min(least), 4), "mean": round(float(np.mean(least)), 4)}
    return CaseOutput(found, {"arbitration": switching.arbitration.name.lower().replace("_", "-")})


def _least_of(plan: Plan, traffic: Traffic, switching: Switching, start: int, until: int) -> float:
    """Simulate traffic, and return the throughput of the slowest flow from tick ``start`` to ``until``, as a fraction
    of a link.
    """
    simulation = simulate(plan.network, traffic, switching=switching)
    simulation.run(start)
    early = simulation.flows().bytes
    simulation.run(until)
    return float((simulation.flows().bytes - early).min()) / BLOCK / (until - start)
