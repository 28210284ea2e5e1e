"""Plan and execute changes of the routing tables during a simulation.

A case of a scenario file states which tables are written, at which tick, and whether traffic pauses before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from routing.deadlock.double_scheme import double_scheme
from routing.endports import endport_names
from routing.errors import ParseError
from routing.simulate.handmade import lids_of
from routing.simulate.link_faults import link_actions, with_room
from routing.simulate.network import build_network
from routing.simulate.plan import Action, Do, Plan
from routing.simulate.run import Simulation
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import scenario_fabric, scenario_routing
from routing.simulate.scenario_schema import NEW_TABLES, made_by
from routing.simulate.scenario_setup import (
    build_network_for,
    flows_of,
    measurement_window,
    packet_ticks,
    timing_of,
    traffic_of,
    vls_for,
)
from routing.simulate.sm_watch import SmWatch
from routing.simulate.table_changes import plan_table_change
from routing.simulate.traffic import FOREVER, Flow
from routing.tables import Routing

MOST_READINGS = 10_000
"""Largest number of times that the subnet manager of a case reads the counters."""

FlowTables = Sequence[Mapping[str, Any]]


class _Part(NamedTuple):
    """One flow, or the part of a flow to one LID, with the periods in which it sends.

    The fields are the index of the flow's name, the flow, and the periods as pairs of the first tick and the end.
    """

    owner: int
    flow: Flow
    periods: tuple[tuple[int, int], ...]


def both_directions(flows: FlowTables) -> dict[str, list[FlowTables]]:
    """Return the flows of a simulation case with their paths before and after the change of tables.

    The result maps ``old`` to a list with the flows on their old paths, ``new`` to a list with the flows on their new
    paths, and ``both`` to a list with both.
    """
    new = [dict(flow, path=flow.get("then", flow.get("path"))) if "path" in flow else flow for flow in flows]
    return {"old": [flows], "new": [new], "both": [flows, new]}


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
    if any(key in case.table.get("change", {}) for key in NEW_TABLES):
        return plan_table_change(scenario, case, flows)
    if "change" in case.table:
        return _Change(scenario, case, flows).plan(names)
    network, traffic = build_network_for(scenario, case)
    if scenario.tables["traffic"]:
        names_of = endport_names(network.fabric)
        names = [names_of[flow.source] for flow in traffic.flows]
    actions = tuple(Action(tick, do) for tick, do in link_actions(scenario, case, network))
    return Plan(with_room(scenario, case, network), traffic, tuple(range(len(names))), tuple(names), actions)


def _watched(scenario: Scenario, case: Case) -> Plan:
    """Return the run of a case whose subnet manager reads the counters in every period, and breaks credit loops."""
    table = {key: value for key, value in case.table.items() if key != "watch"}
    plan = plan_of(scenario, replace(case, table=table))
    every = round(float(case.table["watch"]["every"]) * packet_ticks(scenario))
    _, end = measurement_window(scenario, case)
    if end > MOST_READINGS * every:
        problem = f"case {case.name!r} reads counters {end // every} times"
        raise scenario.error(problem, *case.where, "watch", "every", remedy=f"let it be {MOST_READINGS} at most")
    watch = SmWatch(plan.network.routing)
    return replace(plan, actions=tuple(Action(tick, watch) for tick in range(0, end, every)), watch=watch)


def _tables(routing: Routing) -> Do:
    """Return an action that replaces the SL2VL tables, the LFTs and the SLs of a simulation."""

    def write(simulation: Simulation) -> None:
        simulation.set_sl2vl(routing.sl2vl)
        simulation.set_lft(routing.lft)
        simulation.set_sl(routing.service_levels.matrix)

    return write


class _Change:
    """Change of tables in a simulation case.  The old tables contain the path that each flow states as ``path``, and
    the new tables the path that it states as ``then``.
    """

    def __init__(self, scenario: Scenario, case: Case, flows: FlowTables) -> None:
        self._scenario, self._case, self._flows = scenario, case, flows
        if scenario.tables["traffic"] or not all("path" in flow for flow in flows):
            raise scenario.error(
                f"case {case.name!r} changes tables, so every flow needs a path", *case.where, "change"
            )
        made = made_by(scenario.tables["routing"], case.table)
        if made is not None:
            message = {"engine": "the engine", "rule": "the rule", "tables": "files"}[made]
            raise scenario.error(
                f"case {case.name!r} changes tables from path to then, and they are those of {message}",
                *case.where,
                "change",
                remedy=f"leave {made} out",
            )
        self._fabric = scenario_fabric(scenario)
        chosen = both_directions(flows)
        self._old = scenario_routing(scenario, case, self._fabric, flows)
        self._new = scenario_routing(scenario, case, self._fabric, chosen["new"][0])
        table, packet = case.table["change"], packet_ticks(scenario)
        self._at = round(float(table["at"]) * packet)
        self._every = round(float(table.get("every", 0)) * packet)
        self._order = table.get("order", list(self._fabric.labels[: self._fabric.switches]))
        self._how = scenario.choice(
            "method to change tables", table["how"],
            {"at once": self._at_once, "one by one": self._one_by_one, "drained": self._drained,
             "double scheme": self._double_scheme},
        )  # fmt: skip

    def plan(self, names: Sequence[str]) -> Plan:
        """Return the run with the change of tables, by the method that the simulation case names.

        ``names`` are the names of the flows.
        """
        plan = self._how(tuple(names))
        if np.array_equal(self._old.lft, self._new.lft):
            raise self._error("changes tables, and they stay as they are", remedy="give a flow another path with then")
        _, end = measurement_window(self._scenario, self._case)
        if plan.actions[-1].tick >= end:
            packet = packet_ticks(self._scenario)
            raise self._error(
                f"changes tables until {plan.actions[-1].tick / packet:g}, and runs until {end / packet:g}",
                remedy="let the run go on for longer",
            )
        return plan

    def _error(self, problem: str, *, remedy: str) -> ParseError:
        """Return a ParseError at the line of the scenario file that states the time of the change."""
        return self._scenario.error(
            f"case {self._case.name!r} {problem}", *self._case.where, "change", "at", remedy=remedy
        )

    def _plan(self, names: tuple[str, ...], actions: Sequence[Action], vls: int | None = None) -> Plan:
        """Return a run that starts with the old tables and performs the given actions.

        ``vls`` is the number of VLs that packets use; None: as many as the tables use.
        """
        vls = vls_for(self._scenario, self._case, self._old, self._new, used=vls)
        network = build_network(self._fabric, self._old, timing_of(self._scenario, self._case, self._fabric), vls=vls)
        traffic = traffic_of(self._scenario, self._case, network, self._flows)
        change = (actions[0].tick, actions[-1].tick) if actions else None
        return Plan(network, traffic, tuple(range(len(names))), names, tuple(actions), change=change)

    def _at_once(self, names: tuple[str, ...]) -> Plan:
        """Return a run that writes all new tables at one tick."""
        return self._plan(names, [Action(self._at, _tables(self._new))])

    def _one_by_one(self, names: tuple[str, ...]) -> Plan:
        """Return a run that writes the new LFTs one switch at a time, in the order that the simulation case gives."""
        switch = self._fabric.labels[: self._fabric.switches]
        if sorted(self._order) != sorted(switch):
            raise self._scenario.error(
                f"the order {self._order!r} does not name every switch once", *self._case.where, "change", "order"
            )
        lft, actions = self._old.lft, []
        for number, name in enumerate(self._order):
            row = switch.index(name)
            lft = np.concatenate([lft[:row], self._new.lft[row : row + 1], lft[row + 1 :]])
            actions.append(Action(self._at + number * self._every, _tables(replace(self._old, lft=lft))))
        return self._plan(names, actions)

    def _drained(self, names: tuple[str, ...]) -> Plan:
        """Return a run that stops all traffic for a period, then writes the new tables and resumes the traffic."""
        plan = self._plan(names, [])
        everything = np.ones(len(self._fabric.lids), bool)
        again = self._at + self._every
        parts = [_Part(n, flow, ((0, self._at), (again + 1, FOREVER))) for n, flow in enumerate(plan.traffic.flows)]
        return self._split(plan, parts, [Action(again, _tables(self._new), everything)])

    def _double_scheme(self, names: tuple[str, ...]) -> Plan:
        """Return a run that changes the tables by the Double Scheme (Pinkston, Pang and Duato).

        The scheme splits the LIDs into two sets.  The LIDs of one set after the other change their routes.  Traffic to
        a set stops until its packets have drained, and then the new routes of the set are written.  Each of the two
        drain periods takes the time ``every`` of the simulation case.
        """
        scheme = double_scheme(self._fabric, self._old, self._new, max_vls=15, threads=1)
        if scheme is None or not scheme.safe:
            raise self._scenario.error(f"case {self._case.name!r}: there is no Double Scheme for these tables")
        steps = scheme.steps
        used = [step.tables.sl2vl[..., np.unique(step.tables.sl)].max(initial=0) for step in steps]
        plan = self._plan(names, [], vls=1 + int(max(used)))
        times = [self._at, self._at + self._every, self._at + 2 * self._every]
        actions = [Action(times[0], _tables(steps[0].tables))]
        actions += [Action(times[1], _tables(steps[2].tables), scheme.first)]
        actions += [Action(times[2], _tables(steps[4].tables), scheme.second)]
        periods = {True: ((0, times[0]), (times[1] + 1, FOREVER)), False: ((0, times[1]), (times[2] + 1, FOREVER))}
        parts = [
            _Part(n, replace(flow, destinations=(lid,)), periods[bool(scheme.first[lid])])
            for n, (flow, table) in enumerate(zip(plan.traffic.flows, self._flows, strict=True))
            for lid in lids_of(self._fabric, str(table["path"][-1]))
        ]
        return self._split(plan, parts, actions)

    def _split(self, plan: Plan, parts: Sequence[_Part], actions: Sequence[Action]) -> Plan:
        """Return a copy of a plan in which flows send only in the periods of ``parts``.

        Each of ``parts`` has a flow, and the periods in which it sends.  Each period becomes a separate flow.
        ``actions`` are the actions of the new plan.
        """
        flows = [(replace(part.flow, start=a, stop=b), part.owner) for part in parts for a, b in part.periods]
        return replace(
            plan,
            change=(actions[0].tick, actions[-1].tick),
            traffic=replace(plan.traffic, flows=tuple(flow for flow, _ in flows)),
            owner=tuple(owner for _, owner in flows),
            actions=tuple(actions),
        )
