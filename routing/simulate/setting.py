"""From a scenario's tables to a fabric, its tables, traffic and remedies.

Times in a scenario are in packet times (what a packet of ``timing.packet`` bytes takes on a wire); a tick is a cycle,
in which a wire takes 64 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.faults import apply_faults, parse_fault
from routing.formats.toml_text import Where
from routing.simulate.dimension_order import dimension_order
from routing.simulate.network import BLOCK, Network, Timing, build_network
from routing.simulate.options import Arbitration, Breaker, Inputs, Pauses, Remedies, Remedy, Switching
from routing.simulate.scenario import Case, Scenario
from routing.simulate.traffic import FOREVER, Flow, Pattern, Process, Traffic, all_to_all, base_lids, shift, uniform
from routing.simulate.ways import d_mod_k, endport_of, lid_of, small_fabric, tables_of_ways
from routing.tables import Routing
from routing.topologies import from_words

ARBITRATIONS = {"round-robin": Arbitration.ROUND_ROBIN, "arrival": Arbitration.ARRIVAL, "random": Arbitration.RANDOM}
INPUTS = {"voq": Inputs.VOQ, "fifo": Inputs.FIFO}
BREAKERS = {"none": Breaker.NONE, "loop": Breaker.LOOP, "deadlock": Breaker.DEADLOCK}
PROCESSES = {
    "persistent": Process.PERSISTENT,
    "poisson": Process.POISSON,
    "bernoulli": Process.BERNOULLI,
    "bursty": Process.BURSTY,
}
PATTERNS = {"cycle": Pattern.CYCLE, "uniform": Pattern.UNIFORM}
RULES = {"d-mod-k": d_mod_k, "dimension-order": dimension_order}
PACKET, BUFFER, UNTIL = 2048, 8, 4000
LONGEST = 1 << 50
"""Ticks of a run."""


def flow_name(number: int, flow: Mapping[str, Any]) -> str:
    """What a flow is called in results."""
    return str(flow.get("name", f"f{number}"))


def packet_ticks(scenario: Scenario) -> int:
    """Ticks of a packet time."""
    size = scenario.tables["timing"].get("packet", PACKET)
    if size < 1:
        raise scenario.error(f"{size} bytes are no packet", "timing", "packet")
    return -(-int(size) // BLOCK)


def window_of(scenario: Scenario, case: Case) -> tuple[int, int]:
    """Ticks from which on figures are taken, and at which the run ends."""
    run, packet = scenario.tables["run"], packet_ticks(scenario)

    def said(key: str, usual: float) -> tuple[float, Where]:
        if key in case.table:
            return float(case.table[key]), (*case.where, key)
        return float(run.get(key, usual)), ("run", key)

    (until, end_said), (start, start_said) = said("until", UNTIL), said("from", 0)
    if not 1 <= until * packet <= LONGEST:
        raise scenario.error(f"until {until:g} is no end of a run", *end_said, remedy="give packet times, over 0")
    if not 0 <= start < until:
        raise scenario.error(
            f"figures from {start:g} on are none of a run until {until:g}",
            *start_said,
            remedy="let from be before until",
        )
    return round(start * packet), round(until * packet)


def flows_of(scenario: Scenario, case: Case) -> list[Mapping[str, Any]]:
    """The flows that a case runs."""
    left_out = case.table.get("without", [])
    names = [flow_name(number, flow) for number, flow in enumerate(scenario.flows)]
    for name in left_out:
        if name not in names:
            raise scenario.error(
                f"case {case.name!r} is to go without {name!r}, and there is no such flow", *case.where, "without"
            )
    return [dict(flow, name=name) for name, flow in zip(names, scenario.flows, strict=True) if name not in left_out]


def fabric_of(scenario: Scenario) -> Fabric:
    """The fabric, failed cables taken out."""
    table = scenario.tables["fabric"]
    if "generator" in table:
        name, _, rest = table["generator"].partition(":")
        fabric = from_words(name, [word for word in rest.split(",") if word])
    else:
        for key in ("switches", "cables", "cas"):
            if key not in table:
                raise scenario.error(f"[fabric] needs a generator, or {key}", "fabric")
        cables = [pair(scenario, cable, "fabric", "cables") for cable in table["cables"]]
        _check_names(scenario, table["switches"], table["cas"])
        fabric = small_fabric(scenario.name, table["switches"], cables, table["cas"], lmc=table.get("lmc", 0))
    where = ("fabric", "failed")
    failed = [
        cable_between(scenario, fabric, pair(scenario, cable, *where), *where) for cable in table.get("failed", [])
    ]
    if failed:
        fabric = fabric.without_links(failed)
    for fault in table.get("faults", []):
        fabric = apply_faults(fabric, [parse_fault(str(fault), fabric)])
    return fabric


def _check_names(scenario: Scenario, switches: Sequence[object], cas: Mapping[str, object]) -> None:
    """Raise ParseError unless all devices have names of their own, and CAs a switch each."""
    seen = set(cas)
    for name in switches:
        if not isinstance(name, str):
            raise scenario.error(f"{name!r} is no name of a switch", "fabric", "switches")
        if name in seen:
            raise scenario.error(f"two devices are called {name!r}", "fabric", "switches")
        seen.add(name)
    for ca, switch in cas.items():
        if switch not in switches:
            raise scenario.error(f"CA {ca!r} is at {switch!r}, and that is no switch", "fabric", "cas")


def pair(scenario: Scenario, cable: object, *where: str | int) -> tuple[str, str]:
    """The names of a cable's two ends."""
    if not isinstance(cable, list) or len(cable) != 2 or not all(isinstance(end, str) for end in cable):
        raise scenario.error(f"{cable!r} is no cable", *where, remedy='write ["sw1", "sw2"]')
    return cable[0], cable[1]


def cable_between(scenario: Scenario, fabric: Fabric, ends: tuple[str, str], *where: str | int) -> int:
    """The first cable between two devices; ``where`` its ends are named in the file."""
    for link, (a, b) in enumerate(fabric.link_device.tolist()):
        if {fabric.device_name(a), fabric.device_name(b)} == set(ends):
            return link
    raise scenario.error(f"there is no cable between {ends[0]} and {ends[1]}", *where)


def routing_of(scenario: Scenario, case: Case, fabric: Fabric, flows: Sequence[Mapping[str, Any]]) -> Routing:
    """Tables: an engine's, or those that hold the ways of the flows."""
    table = {
        **scenario.tables["routing"],
        **{name: case.table[name] for name in ("engine", "vls") if name in case.table},
    }

    def said(key: str) -> Where:
        return (*(case.where if key in case.table else ("routing",)), key)

    if "rule" in table and "engine" not in table:
        return scenario.choice("rule for tables", table["rule"], RULES)(fabric)
    if "engine" in table:
        if table["engine"] not in ENGINES:
            raise scenario.error(
                f"there is no engine {table['engine']!r}", *said("engine"), remedy=f"use {', '.join(ENGINES)}"
            )
        options = EngineOptions(vls=table.get("vls", "auto"), seed=table.get("seed", 1), threads=1)
        return ENGINES[table["engine"]].route(fabric, options)
    ways = [flow["way"] for flow in flows if "way" in flow] + table.get("ways", [])
    if any(len(way) < 3 or not all(isinstance(name, str) for name in way) for way in ways):
        raise scenario.error("a way goes from a CA over switches to a CA, all by name")
    sl = {(flow["way"][0], flow["way"][-1]): flow.get("sl", 0) for flow in flows if "way" in flow}
    vls = table.get("vls", 1)
    if not isinstance(vls, int) or not 1 <= vls <= 15:
        raise scenario.error(f"{vls!r} is no number of VLs for ways", *said("vls"))
    return tables_of_ways(fabric, ways, vls=vls, sl=sl, fill=table.get("fill", not ways))


def timing_of(scenario: Scenario, case: Case) -> Timing:
    """A tick is a cycle, a block takes one."""
    table, packet = scenario.tables["timing"], packet_ticks(scenario)
    buffer = case.table.get("buffer", table.get("buffer", BUFFER))
    wire = case.table.get("wire", table.get("wire", 1))
    return Timing(1.0, wire, table.get("switch", 0), 1.0, round(buffer * packet))


def _flow(scenario: Scenario, fabric: Fabric, table: Mapping[str, Any], load: float | None) -> Flow:
    """One of ``[[flow]]``."""
    packet = packet_ticks(scenario)
    size = table.get("message", scenario.tables["timing"].get("packet", PACKET))
    if "way" in table:
        source, targets = table["way"][0], [table["way"][-1]]
    elif "from" in table and "to" in table:
        source, targets = table["from"], [table["to"]] if isinstance(table["to"], str) else table["to"]
    else:
        raise scenario.error(f"flow {table['name']!r} needs a way, or from and to")
    process = scenario.choice("process", table.get("process", "persistent"), PROCESSES)
    share = float(load if load is not None else table.get("load", 1.0))
    if not 0 < share <= 1:
        raise scenario.error(f"{share} is no load of flow {table['name']!r}", remedy="use a share of a link")
    length, burst = size / BLOCK, float(table.get("burst", 1.0))
    bursty = process is Process.BURSTY
    return Flow(
        source=endport_of(fabric, source),
        destinations=tuple(lid_of(fabric, target) for target in targets),
        pattern=scenario.choice("pattern", table.get("pattern", "cycle"), PATTERNS),
        process=process,
        bytes=size,
        messages=table.get("messages"),
        interval=length if bursty else 1.0 if process is Process.BERNOULLI else length / share,
        probability=min(1.0, share / length) if process is Process.BERNOULLI else 1.0,
        burst=burst,
        gap=burst * length * (1 / share - 1) if bursty else 0.0,
        start=round(table.get("start", 0) * packet),
        stop=round(table["stop"] * packet) if "stop" in table else FOREVER,
    )


def traffic_of(scenario: Scenario, case: Case, network: Network, flows: Sequence[Mapping[str, Any]]) -> Traffic:
    """The flows, or the pattern of ``[traffic]``."""
    mtu = scenario.tables["timing"].get("packet", PACKET)
    load = case.table.get("load")
    table = scenario.tables["traffic"]
    if not table:
        return Traffic(tuple(_flow(scenario, network.fabric, flow, load) for flow in flows), mtu)
    size = table.get("message", mtu)
    share = float(load if load is not None else table.get("load", 1.0))
    if table["pattern"] == "all-to-all":
        return all_to_all(network.fabric, bytes=size, rounds=table.get("rounds", 1), mtu=mtu)
    if table["pattern"] == "shift":
        return shift(network.fabric, table.get("by", 1), bytes=size, mtu=mtu)
    scenario.choice(
        "pattern of traffic", table["pattern"], dict.fromkeys(("all-to-all", "shift", "uniform", "hotspot"))
    )
    hot = tuple(lid_of(network.fabric, name) for name in table.get("hot", [])) or tuple(base_lids(network.fabric)[:1])
    return uniform(
        network,
        share,
        bytes=size,
        mtu=mtu,
        process=scenario.choice("process", table.get("process", "persistent"), PROCESSES),
        hot=hot,
        hot_share=float(table.get("hot_share", 0.5)) if table["pattern"] == "hotspot" else 0.0,
    )


def switching_of(scenario: Scenario, case: Case) -> Switching:
    """Arbitration, inputs, pauses and seed of a case."""
    pauses, packet = case.table.get("pauses"), packet_ticks(scenario)
    return Switching(
        arbitration=scenario.choice("arbitration", case.table.get("arbitration", "round-robin"), ARBITRATIONS),
        inputs=scenario.choice("kind of input", case.table.get("inputs", "voq"), INPUTS),
        seed=case.table.get("seed", scenario.tables["run"].get("seed", 1)),
        pauses=None if pauses is None else Pauses(*(round(float(pauses[name]) * packet) for name in ("xoff", "xon"))),
    )


def remedies_of(scenario: Scenario, case: Case) -> Remedies:
    """What switches do against deadlock in a case; its times are in packet times."""
    table, packet = case.table.get("remedy", {}), packet_ticks(scenario)

    def ticks(name: str, usual: float) -> int:
        return round(float(table.get(name, usual)) * packet)

    remedy = Remedy(
        hoq=ticks("hoq", 0),
        stall_count=table.get("stall_count", 7),
        breaker=scenario.choice("breaker", table.get("breaker", "none"), BREAKERS),
        detect=ticks("detect", 0),
        repeat=max(1, ticks("repeat", 1)),
        release=max(1, ticks("release", 10)),
        extra=table.get("extra", scenario.tables["timing"].get("packet", PACKET)),
    )
    return Remedies(
        port=remedy,
        lifetime=ticks("lifetime", 0),
        sample=max(1, ticks("sample", 1)),
        release_packets=table.get("release_packets", 1),
        move_others=table.get("move_others", False),
        rounds=table.get("rounds", 0),
    )


def network_of(
    scenario: Scenario, case: Case, flows: Sequence[Mapping[str, Any]] | None = None
) -> tuple[Network, Traffic]:
    """Everything that a run needs; ``flows``: others than those of the case.

    Raises
    ------
    InputError
        The scenario cannot be: a cable, way, engine, flow that is not there.
    """
    flows = flows_of(scenario, case) if flows is None else flows
    fabric = fabric_of(scenario)
    network = build_network(fabric, routing_of(scenario, case, fabric, flows), timing_of(scenario, case))
    return network, traffic_of(scenario, case, network, flows)


def channels_of_ways(network: Network, ways: Sequence[Sequence[str]]) -> list[int]:
    """Channels into switches that ways pass, as they pass them, those between switches first: what a plot shows."""
    found = list(dict.fromkeys(network.channel_between(near, far) for way in ways for near, far in pairwise(way[:-1])))
    found = found or np.flatnonzero(network.arrays.dst < network.arrays.switches).tolist()
    return sorted(found, key=lambda channel: bool(network.arrays.src[channel] >= network.arrays.switches))
