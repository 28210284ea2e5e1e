"""Run cases of a scenario file on lossless Ethernet: which links pause which other links, and whether the rates of the
flows converge.

The analysis treats flows as fluids, and does not simulate packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from routing.deadlock.pause import analyse_pauses, pauses
from routing.deadlock.pause_flows import Demand, flows_along
from routing.fabric import Fabric
from routing.simulate.case_output import CaseOutput
from routing.simulate.handmade import path_by_tables
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import scenario_fabric, scenario_routing
from routing.simulate.scenario_setup import flow_endpoints, flows_of


def _demand(scenario: Scenario, fabric: Fabric, flow: Mapping[str, Any]) -> Demand:
    """Return the source and the destination of a flow.  A flow with several destinations is an error."""
    source, targets = flow_endpoints(scenario, fabric, flow)
    if len(targets) != 1:
        where = scenario.flow_at(flow, "to")
        raise scenario.error(f"flow {flow['name']!r} goes to {len(targets)} CAs", *where, remedy="let it go to one")
    return Demand(source, targets[0])


def run_pauses(scenario: Scenario, case: Case) -> CaseOutput:
    """Analyse flows along their paths as fluids on links with pauses (:mod:`routing.deadlock.pause`).

    The figures have one value for each iteration of the analysis.  Stage 1 of an iteration computes fair rates, and
    stage 2 computes pauses:

    - ``fair``: rates of each flow on its links after stage 1.
    - ``rates``: rate of each flow after stage 2.
    - ``pauses``: probability that a link is paused, by name of the link (``"S1 > S2"``).
    """
    flows = flows_of(scenario, case)
    fabric = scenario_fabric(scenario)
    routing = scenario_routing(scenario, case, fabric, flows)
    demands = [_demand(scenario, fabric, flow) for flow in flows]
    analysis = analyse_pauses(flows_along(fabric, routing, demands))
    names = [str(flow["name"]) for flow in flows]
    link = {
        number: f"{near} > {far}"
        for flow, demand in zip(analysis.flows.flows, demands, strict=True)
        for number, (near, far) in zip(
            flow.links, pairwise(path_by_tables(fabric, routing, demand.source, demand.lid)), strict=True
        )
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
    return CaseOutput(found, {"analysis": "pause-regulated links"})
