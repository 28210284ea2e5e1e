"""Plan link faults during a simulation: when links go down and up, and which tables are written after a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from routing.engines import ENGINES
from routing.engines.base import Engine, EngineOptions
from routing.fabric import Fabric
from routing.publish import verify
from routing.reroute import Published, reroute
from routing.simulate.network import Network, build_network, data_vls
from routing.simulate.plan import Do
from routing.simulate.run import Simulation
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import cable_between, enough_vls, pair
from routing.simulate.scenario_schema import made_by
from routing.simulate.scenario_setup import measurement_window, packet_ticks, vls_for
from routing.tables import Routing


class _Moment(NamedTuple):
    """One moment of a simulation case's faults: a link goes down or comes up, or new tables are written.

    ``link`` is the link, or None if tables are written.  ``down`` is whether the link goes down.
    """

    tick: int
    link: int | None
    down: bool


def link_actions(scenario: Scenario, case: Case, network: Network) -> list[tuple[int, Do]]:
    """Return the link faults and re-routes of a simulation case as (tick, action), in order of time.

    At each re-route, :func:`routing.reroute.reroute` computes new tables from the previous tables, for the links that
    are up at that tick.  A link that comes up again carries traffic only after the next re-route.

    Raises
    ------
    ParseError
        A cable does not exist or is ambiguous, a link comes up before it goes down, the case re-routes without an
        engine, or an action is due after the end of the run.
    """
    moments = _moments(scenario, case, network.fabric)
    writers = _writers(scenario, case, network, moments)
    return [
        (moment.tick, writers[number] if moment.link is None else _switch(network, moment.link, moment.down))
        for number, moment in enumerate(moments)
    ]


def _moments(scenario: Scenario, case: Case, fabric: Fabric) -> list[_Moment]:
    """Return all moments of a simulation case at which a link goes down or up, or tables are written,
    sorted by tick.
    """
    packet, found = packet_ticks(scenario), list[_Moment]()
    for number, table in enumerate(case.table.get("fault", [])):
        where = (*case.where, "fault", number)
        cable = (*where, "cable")
        link = cable_between(scenario, fabric, pair(scenario, table["cable"], *cable), *cable)
        at = float(table["at"])
        _check_within(scenario, case, table, *where)
        found.append(_Moment(round(at * packet), link, True))
        if "until" in table:
            if table["until"] <= at:
                raise scenario.error(f"the cable {table['cable']} is down from {at} until {table['until']}", *where)
            found.append(_Moment(round(float(table["until"]) * packet), link, False))
        found += [_Moment(round(float(time) * packet), None, False) for time in table.get("reroute", [])]
    return sorted(found, key=lambda moment: moment.tick)


def links_down_at(scenario: Scenario, case: Case, fabric: Fabric, tick: int) -> set[int]:
    """Return the links of a simulation case that are down at a tick."""
    down = set[int]()
    for moment in _moments(scenario, case, fabric):
        if moment.link is not None and moment.tick <= tick:
            (down.add if moment.down else down.discard)(moment.link)
    return down


def rerouted(scenario: Scenario, case: Case, before: tuple[Fabric, Routing], fabric: Fabric) -> Routing:
    """Return the tables that a re-route computes for a fabric with faults, from the tables of the whole fabric.

    Raises
    ------
    ParseError
        The tables of the case do not come from an engine.
    """
    engine, options, published = _published(scenario, case, *before)
    with enough_vls(scenario, *case.where, "change"):
        return reroute(engine, options, published, fabric).routing


def _published(
    scenario: Scenario, case: Case, fabric: Fabric, tables: Routing
) -> tuple[Engine, EngineOptions, Published]:
    """Return the engine of a simulation case, its options for re-routes, and its first tables with their proof."""
    routing = scenario.tables["routing"]
    if made_by(routing, case.table) != "engine":
        where = "fault" if "fault" in case.table else "change"
        raise scenario.error(
            f"case {case.name!r} re-routes, so it needs an engine", *case.where, where,
            remedy="give it an engine instead of other tables",
        )  # fmt: skip
    name: Any = case.table.get("engine", routing.get("engine"))
    engine, options = ENGINES[name], EngineOptions(vls=tables.vls, threads=1)
    proof = verify(fabric, tables, engine, threads=1, explain=False).proof
    return engine, options, Published(fabric, tables, proof)


def _check_within(scenario: Scenario, case: Case, fault: Mapping[str, Any], *where: str | int) -> None:
    """Raise ParseError if a fault would have no effect, because its time is not before the end of the run."""
    _, end = measurement_window(scenario, case)
    packet = packet_ticks(scenario)
    for key in ("at", "until", "reroute"):
        times = fault.get(key, [])
        for time in times if isinstance(times, list) else [times]:
            if round(float(time) * packet) >= end:
                raise scenario.error(
                    f"{key} {time:g} is not within a run until {end / packet:g}",
                    *where,
                    key,
                    remedy="let the run last longer, or leave it out",
                )


def _switch(network: Network, link: int, down: bool) -> Do:
    """Return an action that takes a link down if ``down`` is true, and otherwise brings it up."""
    fabric = network.fabric
    near, port = int(fabric.link_device[link, 0]), int(fabric.link_port[link, 0])
    channel = int(np.flatnonzero((network.arrays.src == near) & (network.arrays.src_port == port))[0])

    def fail(simulation: Simulation) -> None:
        simulation.fail_link(channel)

    def restore(simulation: Simulation) -> None:
        simulation.restore_link(channel)

    return fail if down else restore


def _writers(scenario: Scenario, case: Case, network: Network, moments: list[_Moment]) -> Mapping[int, Do]:
    """Compute the new tables of every re-route, before the simulation starts.

    The result maps the index of a moment in ``moments`` to the action that writes its tables.
    """
    if all(moment.link is not None for moment in moments):
        return {}
    engine, options, before = _published(scenario, case, network.fabric, network.routing)
    down, writers = set[int](), dict[int, Do]()
    for number, moment in enumerate(moments):
        if moment.link is None:
            fabric = network.fabric.without_links(down)
            with enough_vls(scenario, *case.where, "fault"):
                found = reroute(engine, options, before, fabric)
            before = Published(fabric, found.routing, found.proof)
            writers[number] = _write(found.routing)
        else:
            (down.add if moment.down else down.discard)(moment.link)
    return writers


def with_room(scenario: Scenario, case: Case, network: Network) -> Network:
    """Return the network with room for the SLs and VLs of all tables that a simulation case writes during the run.

    The size of a simulation's tables is fixed at its start.  Later tables may have SLs by source switch even if the
    initial tables have SLs only by destination.  Later tables may also use any VL that the engine was given.
    """
    if not any(fault.get("reroute") for fault in case.table.get("fault", [])):
        return network
    routing = replace(network.routing, sl=network.routing.service_levels.with_rows(network.fabric.switches))
    vls = vls_for(scenario, case, routing, used=max(data_vls(routing), routing.vls))
    return build_network(network.fabric, routing, network.timing, vls=vls)


def _write(routing: Routing) -> Do:
    """Return an action that replaces the LFTs, SL2VL tables and SLs of a simulation."""
    sl = routing.service_levels.with_rows(len(routing.lft))

    def write(simulation: Simulation) -> None:
        simulation.set_lft(routing.lft)
        simulation.set_sl2vl(routing.sl2vl)
        simulation.set_sl(sl)

    return write
