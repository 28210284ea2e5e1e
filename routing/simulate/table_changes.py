"""Plan a change of tables by any method, while traffic runs.

The new tables come from another engine, from files or from a re-route, or they contain the new paths of the flows (key
``then``).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from routing.endports import endport_names
from routing.errors import ParseError
from routing.fabric import Fabric
from routing.simulate.handmade import lids_of
from routing.simulate.link_faults import link_actions, links_down_at, rerouted
from routing.simulate.mechanisms.hold import Hold
from routing.simulate.plan import Action, Do, Plan
from routing.simulate.run import Simulation
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import engine_tables, read_scenario_tables, scenario_fabric, scenario_routing
from routing.simulate.scenario_schema import NEW_TABLES, made_by
from routing.simulate.scenario_setup import case_network, measurement_window, packet_ticks, switching_of, traffic_of
from routing.simulate.table_writes import METHODS, TableChange, TableWrite, aligned, vls_of
from routing.tables import Routing

FlowTables = Sequence[Mapping[str, Any]]


def flow_sets(flows: FlowTables) -> dict[str, list[FlowTables]]:
    """Return the flows of a simulation case, on their paths before and after a change of tables.

    The keys of the result are the words that the key ``tables`` of a case may have.  The value of ``old`` is a list
    with one set of flows: all flows on their old paths.  The value of ``new`` is a list with one set, too: all flows on
    their new paths.  The value of ``both`` is a list with these two sets.
    """
    new = [dict(flow, path=flow.get("then", flow.get("path"))) if "path" in flow else flow for flow in flows]
    return {"old": [flows], "new": [new], "both": [flows, new]}


def plan_table_change(scenario: Scenario, case: Case, flows: FlowTables) -> Plan:
    """Plan the run of a simulation case in which the tables are replaced by new tables while traffic runs.

    The new tables are made for the fabric without the links that are down when the change begins.

    Raises
    ------
    InputError
        The change is inconsistent, changes nothing, or does not end within the run.
    """
    if _along_paths(case):
        _check_paths(scenario, case, flows)
    fabric, at, every = scenario_fabric(scenario), *_times(scenario, case)
    routing = scenario_routing(scenario, case, fabric, flows)
    after = fabric.without_links(links_down_at(scenario, case, fabric, at))
    old, new = aligned(after, routing, _new_tables(scenario, case, (fabric, routing), after, flows))
    change = TableChange(after, old, new, every, _order(scenario, case, fabric))
    with scenario.placed(*case.where, "change", "how"):
        writes = scenario.choice("method to change tables", case.table["change"]["how"], METHODS)(change)
    _check(scenario, case, change, at, writes)
    network = case_network(scenario, case, fabric, old, new, used=vls_of(old, new, writes))
    traffic = traffic_of(scenario, case, network, flows)
    names, owner = [str(flow["name"]) for flow in flows], tuple(range(len(traffic.flows)))
    if _along_paths(case) and case.table["change"]["how"] == "double scheme":
        # Each LID of a CA gets a flow, because the Double Scheme stops traffic to one set of LIDs after the other.
        parts = [(n, lid) for n in owner for lid in lids_of(fabric, str(flows[n]["path"][-1]))]
        owner = tuple(n for n, _ in parts)
        traffic = replace(traffic, flows=tuple(replace(traffic.flows[n], destinations=(lid,)) for n, lid in parts))
    if scenario.tables["traffic"]:
        labels = endport_names(fabric)
        names = [labels[flow.source] for flow in traffic.flows]
    holds = (Hold(),) if any(write.held is not None for write in writes) else ()
    actions = [Action(tick, do) for tick, do in link_actions(scenario, case, network)]
    actions += [Action(at + write.after, write_action(write), write.drained) for write in writes]
    return Plan(
        network, traffic, owner, tuple(names),
        tuple(sorted(actions, key=lambda action: action.tick)), holds, (at, at + writes[-1].after),
    )  # fmt: skip


def _times(scenario: Scenario, case: Case) -> tuple[int, int]:
    """Return the tick at which a change begins, and the time between its steps (key ``every``) in ticks."""
    table, packet = case.table["change"], packet_ticks(scenario)
    return round(float(table["at"]) * packet), round(float(table.get("every", 0)) * packet)


def _along_paths(case: Case) -> bool:
    """Return whether the new tables of a change are made from the new paths of the flows (key ``then`` of each flow).

    Otherwise the new tables come from an engine, from files or from a re-route.
    """
    return not any(key in case.table["change"] for key in NEW_TABLES)


def _check_paths(scenario: Scenario, case: Case, flows: FlowTables) -> None:
    """Raise ParseError if a flow has no path, or if the old tables are not made from the paths of the flows."""
    if scenario.tables["traffic"] or not all("path" in flow for flow in flows):
        problem = f"case {case.name!r} changes tables, so every flow needs a path"
        raise scenario.error(problem, *case.where, "change")
    made = made_by(scenario.tables["routing"], case.table)
    if made is not None:
        source = {"engine": "the engine", "rule": "the rule", "tables": "files"}[made]
        problem = f"case {case.name!r} changes tables from path to then, but its tables are those of {source}"
        raise scenario.error(problem, *case.where, "change", remedy=f"leave {made} out")


def _new_tables(
    scenario: Scenario, case: Case, before: tuple[Fabric, Routing], fabric: Fabric, flows: FlowTables
) -> Routing:
    """Return the new tables of a change, for the fabric without the links that are down."""
    table, where = case.table["change"], (*case.where, "change")
    if _along_paths(case):
        return scenario_routing(scenario, case, before[0], flow_sets(flows)["new"][0])
    named = [key for key in NEW_TABLES if table.get(key)]
    if len(named) != 1:
        raise scenario.error(
            f"case {case.name!r} has new tables of {' and '.join(named) or 'nothing'}", *where,
            remedy=f"give change one of {', '.join(NEW_TABLES)}",
        )  # fmt: skip
    if named == ["engine"]:
        return engine_tables(scenario, fabric, table, (*where, "engine"), (*where, "vls"))
    if named == ["tables"]:
        return read_scenario_tables(scenario, fabric, table["tables"], *where, "tables")
    return rerouted(scenario, case, before, fabric)


def _order(scenario: Scenario, case: Case, fabric: Fabric) -> list[int]:
    """Return the rows of all switches in the order in which a change writes them."""
    table, labels = case.table["change"], fabric.labels[: fabric.switches]
    rows = list(range(fabric.switches))
    if "order" in table:
        if sorted(table["order"]) != sorted(labels):
            problem = f"the order {table['order']!r} does not name every switch once"
            raise scenario.error(problem, *case.where, "change", "order")
        rows = [labels.index(name) for name in table["order"]]
    if table.get("shuffle"):
        random.Random(switching_of(scenario, case).seed).shuffle(rows)
    return rows


def _check(scenario: Scenario, case: Case, change: TableChange, at: int, writes: Sequence[TableWrite]) -> None:
    """Raise ParseError if a change has no effect, or does not end within the run.

    ``at`` is the tick at which the change begins, and ``writes`` are its steps.
    """

    def error(problem: str, remedy: str) -> ParseError:
        return scenario.error(f"case {case.name!r} {problem}", *case.where, "change", "at", remedy=remedy)

    old, new = change.old, change.new
    tables = ((old.lft, new.lft), (old.sl, new.sl), (old.sl2vl, new.sl2vl))
    if not writes or all(np.array_equal(before, after) for before, after in tables):
        remedy = "give a flow another path with then" if _along_paths(case) else "name another engine or other tables"
        raise error("changes tables to equal tables", remedy)
    _, end = measurement_window(scenario, case)
    if at + writes[-1].after >= end:
        packet = packet_ticks(scenario)
        last = (at + writes[-1].after) / packet
        raise error(f"changes tables until {last:g}, and runs until {end / packet:g}", "let the run last longer")


def write_action(write: TableWrite) -> Do:
    """Return the action that carries out one step of a change."""

    def do(simulation: Simulation) -> None:
        if write.sl2vl is not None:
            simulation.set_sl2vl(write.sl2vl)
        if write.lft is not None:
            simulation.set_lft(write.lft)
        if write.sl is not None:
            simulation.set_sl(write.sl)
        if write.held is not None:
            Hold().hold(simulation, np.flatnonzero(write.held).tolist())

    return do
