"""Run cases of a scenario file on adaptive routing: throughput of each scheme at each load, compared with
fixed tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.case_output import CaseOutput, tables_stated
from routing.simulate.link_faults import link_actions
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.mechanisms.registry import BESIDE_ADAPTIVE
from routing.simulate.network import BLOCK, Network
from routing.simulate.plan import Do
from routing.simulate.run import Simulation, simulate
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import scenario_fabric, scenario_routing
from routing.simulate.scenario_setup import (
    ARBITRATIONS,
    UNTIL,
    case_network,
    flows_of,
    mechanisms_of,
    packet_ticks,
    remedies_of,
    switching_of,
    traffic_of,
    window_stated,
)
from routing.simulate.traffic import Traffic

TABLES = "tables"
"""Name in scenario files for routing by fixed tables only, instead of a scheme of adaptive routing."""
SCHEMES: Mapping[str, Scheme | None] = {TABLES: None, **{scheme.name.lower(): scheme for scheme in Scheme}}
RECOVERED = {Scheme.RELAY: "relayed", Scheme.CONCURRENT: "diverted", Scheme.DEFLECT: "deflected"}
"""Names of a figure, for three schemes.  The figure is the number of times that the scheme acted on a packet that
waited too long, divided by the number of delivered packets.
"""
LOSSY = ("remedy", "fault", *(mechanism.table for mechanism in BESIDE_ADAPTIVE))
"""Names of the subtables of a case in a scenario file that can cause the loss of packets, such as ``[case.remedy]``.  A
case with such a subtable reports lost packets.
"""
DETECT, REPEAT, LASTS, HOLD, SAMPLE = 1.0, 1.0, 20.0, 64.0, 0.5


def adaptive_of(scenario: Scenario, case: Case, scheme: Scheme) -> Adaptive:
    """Return the options of adaptive routing for a case of a scenario file.

    The case gives times in packet times (the time of one packet on a link), except ``step``, which is in ticks.
    """
    table, packet = case.table["adaptive"], packet_ticks(scenario)

    def ticks(name: str, usual: float) -> int:
        return max(1, round(float(table.get(name, usual)) * packet))

    return Adaptive(
        scheme,
        scenario.choice("arbitration", case.table.get("arbitration", "round-robin"), ARBITRATIONS),
        ca_vls=table.get("ca_vls", 1),
        stay=table.get("stay", False),
        detect=ticks("detect", DETECT),
        repeat=ticks("repeat", REPEAT),
        lasts=ticks("lasts", LASTS),
        hold=ticks("hold", HOLD),
        sample=ticks("sample", SAMPLE),
        step=max(1, round(float(table.get("step", 1)))),
        seed=case.table.get("seed", scenario.tables["run"].get("seed", 1)),
    )


def _loads(scenario: Scenario, case: Case) -> list[float]:
    """Return the offered loads that a simulation case lists, as fractions of a link."""
    loads = case.table.get("loads", [1.0])
    if not loads or not all(isinstance(load, int | float) and 0 < load <= 1 for load in loads):
        raise scenario.error(f"case {case.name!r} needs loads, shares over 0 and up to 1", *case.where, "loads")
    return [float(load) for load in loads]


def _accepted(simulation: Simulation, start: int, until: int, actions: Sequence[tuple[int, Do]]) -> float:
    """Run a simulation to tick ``until``, and return the throughput from tick ``start`` to tick ``until``.

    ``actions`` are actions during the run, as pairs (tick, action) in order of time.  The result is the mean over all
    CAs, as a fraction of a CA's link.
    """
    _run_to(simulation, start, [action for action in actions if action[0] < start])
    early = simulation.totals()["delivered_bytes"]
    _run_to(simulation, until, [action for action in actions if action[0] >= start])
    got = simulation.totals()["delivered_bytes"] - early
    return got / BLOCK / (until - start) / simulation.network.fabric.endports


def _run_to(simulation: Simulation, until: int, actions: Sequence[tuple[int, Do]]) -> None:
    """Run a simulation to tick ``until``, with actions at given ticks."""
    for tick, do in actions:
        simulation.run(tick)
        do(simulation)
    simulation.run(until)


def run_adaptive(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate the traffic of a simulation case with every scheme at every load.

    The figures of the result are:

    - ``accepted``: throughput by scheme at the last load.
    - ``curves``: throughput by scheme and load.
    - ``peak``: largest throughput by scheme.
    - ``deadlocked``: schemes that end in a permanent deadlock, which neither the scheme nor a lifetime limit of packets
      resolves.
    - ``relayed``: number of relays by CAs, divided by the number of delivered packets (scheme ``relay``, last load)
    - ``diverted``: number of packets that have moved through spare buffers, divided by the number of delivered packets
      (scheme ``concurrent``, last load)
    - ``deflected``: number of deflections, divided by the number of delivered packets (scheme ``deflect``, last load)
    - ``dropped``: packets lost, by scheme (last load; only if the case has a remedy, a fault or a mechanism)
    - the figures of each mechanism of the case, by scheme (last load)
    - ``bubble_over_...`` for every other scheme: throughput of ``bubble`` divided by the throughput of that scheme, at
      the last load.
    """
    if "adaptive" not in case.table:
        raise scenario.error(f"case {case.name!r} has no table adaptive", *case.where)
    names, packet = case.table["adaptive"]["schemes"], packet_ticks(scenario)
    schemes = {name: scenario.choice("scheme", name, SCHEMES) for name in names}
    fabric, run = scenario_fabric(scenario), scenario.tables["run"]
    network = case_network(scenario, case, fabric, scenario_routing(scenario, case, fabric, flows_of(scenario, case)))
    until = round(float(case.table.get("until", run.get("until", UNTIL))) * packet)
    start = round(float(case.table.get("from", run.get("from", 0))) * packet)
    if not 0 <= start < until:
        raise scenario.error(f"case {case.name!r} measures from tick {start} to tick {until}", *case.where)
    curves: dict[str, dict[str, float]] = {name: {} for name in names}
    deadlocked: set[str] = set()
    mechanisms, actions = mechanisms_of(scenario, case), link_actions(scenario, case, network)
    lossy = {key: case.table[key] for key in LOSSY if key in case.table}
    lost: dict[str, dict[str, Any]] = defaultdict(dict)
    recovered: dict[str, float | None] = dict.fromkeys(RECOVERED.values())
    for load in _loads(scenario, case):
        one = replace(case, table={**case.table, "load": load})
        traffic = traffic_of(scenario, one, network, flows_of(scenario, case))
        for name, scheme in schemes.items():
            simulation = _simulation(scenario, case, network, traffic, scheme, mechanisms=mechanisms)
            curves[name][f"{load:g}"] = round(_accepted(simulation, start, until, actions), 4)
            lost["dropped"][name] = simulation.totals()["dropped"]
            for mechanism in mechanisms:
                for figure, value in mechanism.figures(simulation).items():
                    lost[figure][name] = value
            if scheme in RECOVERED:
                totals, figure = simulation.totals(), RECOVERED[scheme]
                recovered[figure] = round(totals[figure] / max(1, totals["delivered"]), 4)
            if simulation.deadlocks():
                deadlocked.add(name)
    accepted = {name: list(curve.values())[-1] for name, curve in curves.items()}
    found: dict[str, Any] = {
        "accepted": accepted,
        "curves": curves,
        "peak": {name: max(curve.values()) for name, curve in curves.items()},
        "deadlocked": sorted(deadlocked),
        **recovered,
        **(lost if lossy else {}),
    }
    return CaseOutput(found | _bubble_over_others(accepted), _stated(scenario, case, network) | lossy)


def _bubble_over_others(accepted: Mapping[str, float]) -> dict[str, float | None]:
    """Return the figures ``bubble_over_...`` by name.

    Each figure is the throughput of the scheme ``bubble`` divided by the throughput of another scheme.  A figure is
    None if the throughput of the other scheme is 0.  ``accepted`` is the throughput by scheme.
    """
    return {
        f"bubble_over_{name}": round(accepted["bubble"] / share, 3) if share else None
        for name, share in accepted.items()
        if name != "bubble" and "bubble" in accepted
    }


def _stated(scenario: Scenario, case: Case, network: Network) -> dict[str, Any]:
    """Return the settings of a case that its report states, by name."""
    return {
        "arbitration": case.table.get("arbitration", "round-robin"),
        "buffer": f"{network.timing.buffer} blocks",
        "vls": network.vls,
        "ca vls": case.table["adaptive"].get("ca_vls", 1),
        **tables_stated(network.routing),
        **window_stated(scenario, case),
    }


def _simulation(
    scenario: Scenario,
    case: Case,
    network: Network,
    traffic: Traffic,
    scheme: Scheme | None,
    *,
    mechanisms: Sequence[Mechanism],
) -> Simulation:
    """Set up the simulation of a case with one scheme of adaptive routing.

    If ``scheme`` is None, the simulation routes only by fixed tables.
    """
    remedies = remedies_of(scenario, case)
    if scheme is None:
        switching = switching_of(scenario, case)
        return simulate(network, traffic, switching=switching, remedies=remedies, mechanisms=mechanisms)
    adaptive = adaptive_of(scenario, case, scheme)
    return simulate_adaptive(network, traffic, adaptive, remedies=remedies, mechanisms=mechanisms)


def simulation_of_case(
    scenario: Scenario, case: Case, network: Network, traffic: Traffic, mechanisms: Sequence[Mechanism]
) -> Simulation:
    """Set up the simulation of a case.

    Its switches are adaptive if the case has a table ``adaptive``, which names one scheme.  Otherwise, they have output
    queues.
    """
    schemes = case.table.get("adaptive", {}).get("schemes", [TABLES])
    scheme = scenario.choice("scheme", schemes[0], SCHEMES)
    return _simulation(scenario, case, network, traffic, scheme, mechanisms=mechanisms)
