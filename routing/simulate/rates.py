"""Cases about flows as fluids: which links are told to pause, and whether the rates settle."""

from __future__ import annotations

from itertools import pairwise

from routing.deadlock.pause import analyse_pauses, pauses
from routing.deadlock.pause_flows import Demand, flows_along
from routing.simulate.played import Played
from routing.simulate.scenario import Case, Scenario
from routing.simulate.setting import fabric_of, flows_of, routing_of
from routing.simulate.ways import endport_of, lid_of


def play_pauses(scenario: Scenario, case: Case) -> Played:
    """Analyse the ways of the flows as pause-regulated links (:mod:`routing.deadlock.pause`).

    The figures are those of the source's tables: of every iteration by number, rates after stage 1 (``fair``) by flow
    along its links, rates after stage 2 (``rates``) by flow, pause probabilities by link (``"S1 > S2"``).
    """
    flows = flows_of(scenario, case)
    for flow in flows:
        if "way" not in flow:
            raise scenario.error(f"flow {flow['name']!r} has no way", remedy="the analysis needs the way of each flow")
    fabric = fabric_of(scenario)
    routing = routing_of(scenario, case, fabric, flows)
    demands = [Demand(endport_of(fabric, flow["way"][0]), lid_of(fabric, flow["way"][-1])) for flow in flows]
    analysis = analyse_pauses(flows_along(fabric, routing, demands))
    names = [str(flow["name"]) for flow in flows]
    link = {
        number: f"{near} > {far}"
        for flow, way in zip(analysis.flows.flows, (flow["way"] for flow in flows), strict=True)
        for number, (near, far) in zip(flow.links, pairwise(way), strict=True)
    }
    fair, rates, paused = {}, {}, {}
    for number, now in enumerate(analysis.iterations, start=1):
        fair[str(number)] = {name: [float(rate) for rate in row] for name, row in zip(names, now.fair, strict=True)}
        rates[str(number)] = {name: float(rate) for name, rate in zip(names, now.rates, strict=True)}
        paused[str(number)] = {link[n]: float(p) for n, p in enumerate(pauses(analysis.flows, now))}
    found = {
        "verdict": analysis.verdict,
        "iterations": len(analysis.iterations),
        "cycle": [link[number] for number in analysis.cycle],
        "fair": fair,
        "rates": rates,
        "pauses": paused,
    }
    return Played(found, {"analysis": "pause-regulated links"})
