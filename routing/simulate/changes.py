"""Plan the simulation of a case: network, traffic, and what happens during the run."""

from __future__ import annotations

from dataclasses import replace

from routing.endports import endport_names
from routing.simulate.link_faults import link_actions, with_room
from routing.simulate.plan import Action, Plan
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_setup import build_network_for, flows_of, measurement_window, packet_ticks
from routing.simulate.sm_watch import SmWatch
from routing.simulate.table_changes import plan_table_change

MOST_READINGS = 10_000
"""Largest number of times that the subnet manager of a case reads the counters."""


def plan_of(scenario: Scenario, case: Case) -> Plan:
    """Return the network, traffic and actions of one case of a scenario file.

    Raises
    ------
    InputError
        The scenario is inconsistent.
    """
    flows = flows_of(scenario, case)
    names = [str(flow["name"]) for flow in flows]
    if "watch" in case.table:
        return _watched(scenario, case)
    if "change" in case.table:
        return plan_table_change(scenario, case, flows)
    network, traffic = build_network_for(scenario, case)
    if scenario.tables["traffic"]:
        names_of = endport_names(network.fabric)
        names = [names_of[flow.source] for flow in traffic.flows]
    actions = tuple(Action(tick, do) for tick, do in link_actions(scenario, case, network))
    return Plan(with_room(scenario, case, network), traffic, tuple(range(len(names))), tuple(names), actions)


def _watched(scenario: Scenario, case: Case) -> Plan:
    """Return the plan of a run in which the subnet manager reads counters periodically and breaks credit loops."""
    table = {key: value for key, value in case.table.items() if key != "watch"}
    plan = plan_of(scenario, replace(case, table=table))
    every = round(float(case.table["watch"]["every"]) * packet_ticks(scenario))
    _, end = measurement_window(scenario, case)
    if end > MOST_READINGS * every:
        problem = f"case {case.name!r} reads counters {end // every} times"
        raise scenario.error(problem, *case.where, "watch", "every", remedy=f"let it be {MOST_READINGS} at most")
    watch = SmWatch(plan.network.routing)
    return replace(plan, actions=tuple(Action(tick, watch) for tick in range(0, end, every)), watch=watch)
