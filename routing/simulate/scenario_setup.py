"""Convert a case of a scenario file to a network, traffic and options of switches.

Times in a scenario file are in packet times: the time that the fastest link needs for a packet of ``timing.packet``
bytes.  A tick is the time in which the fastest link sends 64 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from routing.fabric import Fabric
from routing.formats.toml_text import Where
from routing.numerals import count_noun
from routing.simulate.handmade import endport_of, lid_of
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.mechanisms.registry import IN_CASES
from routing.simulate.network import BLOCK, MOST_BLOCKS, Network, Timing, build_network, data_vls
from routing.simulate.options import Arbitration, Breaker, Inputs, Pauses, Remedies, Remedy, Switching
from routing.simulate.scenario import Case, Scenario, flow_name
from routing.simulate.scenario_fabric import check_length, scenario_fabric, scenario_routing
from routing.simulate.traffic import (
    FOREVER,
    Flow,
    Pattern,
    Process,
    Traffic,
    all_to_all,
    base_lids,
    message_interval,
    shift,
    uniform,
    within,
)
from routing.tables import Routing

ARBITRATIONS = {kind.name.lower().replace("_", "-"): kind for kind in Arbitration}
INPUTS = {"voq": Inputs.VOQ, "fifo": Inputs.FIFO}
BREAKERS = {"none": Breaker.NONE, "loop": Breaker.LOOP, "deadlock": Breaker.DEADLOCK}
PROCESSES = {
    "persistent": Process.PERSISTENT,
    "poisson": Process.POISSON,
    "bernoulli": Process.BERNOULLI,
    "bursty": Process.BURSTY,
}
PATTERNS = {"cycle": Pattern.CYCLE, "uniform": Pattern.UNIFORM}
PACKET, BUFFER, UNTIL = 2048, 8, 4000
LONGEST = 1 << 50
"""Longest run of a simulation, in ticks."""
MOST_VLS = 15
"""Largest number of data VLs of a network."""


def packet_ticks(scenario: Scenario) -> int:
    """Return the ticks that a packet of ``timing.packet`` bytes takes on the fastest link (one packet time)."""
    size = scenario.tables["timing"].get("packet", PACKET)
    if size < 1:
        raise scenario.error(f"{size} bytes are not a valid packet size", "timing", "packet")
    return -(-int(size) // BLOCK)


def measurement_window(scenario: Scenario, case: Case, packet: int | None = None) -> tuple[int, int]:
    """Return the period in which a simulation case measures: its first tick, and the tick at which the run ends.

    ``packet`` is the length of a packet time in ticks; None: the packet time of the scenario.
    """
    run, packet = scenario.tables["run"], packet_ticks(scenario) if packet is None else packet

    def stated(key: str, usual: float) -> tuple[float, Where]:
        if key in case.table:
            return float(case.table[key]), (*case.where, key)
        return float(run.get(key, usual)), ("run", key)

    (until, end_reported), (start, start_reported) = stated("until", UNTIL), stated("from", 0)
    if not 1 <= until * packet <= LONGEST:
        raise scenario.error(
            f"until {until:g} is not an end of a run", *end_reported, remedy="use a number of packet times over 0"
        )
    if not 0 <= start < until:
        raise scenario.error(
            f"a run until {until:g} cannot be measured from {start:g} on",
            *start_reported,
            remedy="let from be before until",
        )
    return round(start * packet), round(until * packet)


def flows_of(scenario: Scenario, case: Case) -> list[Mapping[str, Any]]:
    """Return the tables ``[[flow]]`` that a simulation case uses, each with a name.

    Flows that the case lists in ``without`` are left out.
    """
    left_out = case.table.get("without", [])
    names = [flow_name(number, flow) for number, flow in enumerate(scenario.flows)]
    for name in left_out:
        if name not in names:
            raise scenario.error(
                f"case {case.name!r} leaves out {name!r}, and there is no such flow", *case.where, "without"
            )
    return [dict(flow, name=name) for name, flow in zip(names, scenario.flows, strict=True) if name not in left_out]


def timing_of(scenario: Scenario, case: Case, fabric: Fabric) -> Timing:
    """Return the length of a tick, the delays and the buffer size of a simulation case.

    A tick is the time in which the fastest link sends a block of 64 bytes.  Slower links take more ticks for a block.
    """
    table = scenario.tables["timing"]
    wire = case.table.get("wire", table.get("wire", 1))
    fastest = float(fabric.link_capacity.max(initial=0.0)) * 1e9 / 8 or 1.0
    return Timing(BLOCK / fastest, wire, table.get("switch", 0), None, _buffer(scenario, case))


def _buffer(scenario: Scenario, case: Case) -> int:
    """Return the size of an input buffer in blocks of 64 bytes.

    The buffer must have room for at least one packet, and must not exceed the largest credit that a receiver can
    advertise.
    """
    table, packet = scenario.tables["timing"], packet_ticks(scenario)
    stated: Where = (*case.where, "buffer") if "buffer" in case.table else ("timing", "buffer")
    packets = case.table.get("buffer", table.get("buffer", BUFFER))
    blocks = round(float(packets) * packet)
    if not packet <= blocks <= MOST_BLOCKS:
        raise scenario.error(
            f"a buffer cannot hold {packets:g} packets of {table.get('packet', PACKET)} bytes",
            *stated,
            remedy=f"use 1 to {MOST_BLOCKS / packet:g}",
        )
    return blocks


def flow_endpoints(scenario: Scenario, fabric: Fabric, flow: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Return the source and the destinations of a flow.

    Returns
    -------
    row
        Row of the source in the fabric's end-port arrays.
    lids
        Destination LIDs.

    Raises
    ------
    ParseError
        The flow has no source or no destination, or names a port that the fabric does not have.
    """
    if "path" in flow:
        check_length(scenario, flow["path"], *scenario.flow_at(flow, "path"))
        near, far, source, targets = "path", "path", flow["path"][0], flow["path"][-1:]
    elif "from" in flow and "to" in flow:
        near, far, source = "from", "to", flow["from"]
        targets = [flow["to"]] if isinstance(flow["to"], str) else flow["to"]
    else:
        raise scenario.error(f"flow {flow['name']!r} needs a path, or from and to", *scenario.flow_at(flow, "name"))
    with scenario.placed(*scenario.flow_at(flow, near)):
        row = endport_of(fabric, source)
    with scenario.placed(*scenario.flow_at(flow, far)):
        return row, [lid_of(fabric, target) for target in targets]


def _flow(scenario: Scenario, network: Network, table: Mapping[str, Any], load: float | None) -> Flow:
    """Convert a table ``[[flow]]`` to a flow of the simulator.  ``load`` replaces the load in the table unless it is
    None.
    """
    packet = packet_ticks(scenario)
    size = table.get("message", scenario.tables["timing"].get("packet", PACKET))
    source, targets = flow_endpoints(scenario, network.fabric, table)
    process = scenario.choice("process", table.get("process", "persistent"), PROCESSES)
    share = float(load if load is not None else table.get("load", 1.0))
    if not 0 < share <= 1:
        raise scenario.error(f"{share} is not a load of flow {table['name']!r}", remedy="use a share of a link")
    length, burst = message_interval(network, source, 1.0, size), float(table.get("burst", 1.0))
    bursty = process is Process.BURSTY
    return Flow(
        source=source,
        destinations=tuple(targets),
        pattern=scenario.choice("pattern", table.get("pattern", "cycle"), PATTERNS),
        process=process,
        bytes=size,
        messages=table.get("messages"),
        window=table.get("window"),
        interval=length if bursty else 1.0 if process is Process.BERNOULLI else length / share,
        probability=min(1.0, share / length) if process is Process.BERNOULLI else 1.0,
        burst=burst,
        gap=burst * length * (1 / share - 1) if bursty else 0.0,
        start=round(table.get("start", 0) * packet),
        stop=round(table["stop"] * packet) if "stop" in table else FOREVER,
    )


def traffic_of(scenario: Scenario, case: Case, network: Network, flows: Sequence[Mapping[str, Any]]) -> Traffic:
    """Return the traffic of a simulation case: its flows, or the pattern of ``[traffic]``.

    If the case or ``[traffic]`` states a window, each flow has at most this number of packets in flight.
    """
    traffic = _sent(scenario, case, network, flows)
    window = _window(scenario, case)
    return traffic if window is None else within(traffic, window)


def _window(scenario: Scenario, case: Case) -> int | None:
    """Return the window of a simulation case: how many packets of a flow may be in flight at once.

    None: neither the case nor ``[traffic]`` states a window.
    """
    window: int | None = case.table.get("window", scenario.tables["traffic"].get("window"))
    return window


def window_stated(scenario: Scenario, case: Case) -> dict[str, str]:
    """Return the window (limit of packets in flight) as a setting to print with the result.  Empty if the simulation
    case has no window.
    """
    window = _window(scenario, case)
    return {} if window is None else {"window": count_noun(window, "packet")}


def _sent(scenario: Scenario, case: Case, network: Network, flows: Sequence[Mapping[str, Any]]) -> Traffic:
    """Return the traffic of a simulation case before its window (limit of packets in flight) is applied."""
    mtu = scenario.tables["timing"].get("packet", PACKET)
    load = case.table.get("load")
    table = scenario.tables["traffic"]
    if not table:
        return Traffic(tuple(_flow(scenario, network, flow, load) for flow in flows), mtu)
    size = table.get("message", mtu)
    share = float(load if load is not None else table.get("load", 1.0))
    if table["pattern"] == "all-to-all":
        return all_to_all(network.fabric, bytes=size, rounds=table.get("rounds", 1), mtu=mtu)
    if table["pattern"] == "shift":
        return shift(network.fabric, table.get("by", 1), bytes=size, mtu=mtu)
    scenario.choice(
        "pattern of traffic", table["pattern"], dict.fromkeys(("all-to-all", "shift", "uniform", "hotspot"))
    )
    with scenario.placed("traffic", "hot"):
        hot = tuple(lid_of(network.fabric, name) for name in table.get("hot", []))
    hot = hot or tuple(base_lids(network.fabric)[:1].tolist())
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
    """Return arbitration, organisation of inputs, speedup, pause thresholds and random seed of a simulation case."""
    pauses, packet = case.table.get("pauses"), packet_ticks(scenario)
    return Switching(
        arbitration=scenario.choice("arbitration", case.table.get("arbitration", "round-robin"), ARBITRATIONS),
        inputs=scenario.choice("kind of input", case.table.get("inputs", "voq"), INPUTS),
        seed=case.table.get("seed", scenario.tables["run"].get("seed", 1)),
        speedup=case.table.get("speedup", scenario.tables["run"].get("speedup", 1)),
        pauses=None if pauses is None else Pauses(*(round(float(pauses[name]) * packet) for name in ("xoff", "xon"))),
    )


def remedies_of(scenario: Scenario, case: Case) -> Remedies:
    """Return the settings of a simulation case for blocked packets, with times converted from packet times to ticks."""
    table, packet = case.table.get("remedy", {}), packet_ticks(scenario)

    def ticks(name: str, usual: float) -> int:
        time = float(table.get(name, usual))
        # A positive time must not be rounded to 0, because 0 means that there is no limit.
        return max(round(time * packet), int(time > 0))

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


def mechanisms_of(scenario: Scenario, case: Case) -> list[CaseMechanism]:
    """Return the mechanisms for which a simulation case has a table."""
    packet = packet_ticks(scenario)
    return [kind.from_table(case.table[kind.table], packet) for kind in IN_CASES if kind.table in case.table]


def vls_for(scenario: Scenario, case: Case, *tables: Routing, used: int | None = None) -> int:
    """Return the number of VLs of the network that a case simulates.

    Without adaptive switches, the number is the VLs that packets use plus the VLs that the mechanisms of the case add.
    With adaptive switches, the number is the key ``vls`` of ``[case.adaptive]``, with the default ``used`` + 1.

    Parameters
    ----------
    scenario, case
        Scenario file and the case.
    tables
        Routing tables that the run uses.
    used
        Number of VLs that the packets of flows use.  None: as many as the tables use.
    """
    used = max(map(data_vls, tables)) if used is None else used
    if "adaptive" in case.table:
        vls: int = case.table["adaptive"].get("vls", used + 1)
        if not used <= vls <= MOST_VLS:
            raise scenario.error(
                f"{vls} VLs are too few for tables with {used}", *case.where, "adaptive", remedy=f"use up to {MOST_VLS}"
            )
        return vls
    # Replies may use an SL, and so a VL, that no request uses.
    if "replies" in case.table:
        used = max(used, *(routing.vls for routing in tables))
    return used + sum(mechanism.further_vls for mechanism in mechanisms_of(scenario, case))


def case_network(scenario: Scenario, case: Case, fabric: Fabric, *tables: Routing, used: int | None = None) -> Network:
    """Build the network of a case from the first of the routing tables ``tables``.  The network has the VLs that all of
    ``tables`` need.

    For the arguments see :func:`vls_for`.
    """
    vls = vls_for(scenario, case, *tables, used=used)
    return build_network(fabric, tables[0], timing_of(scenario, case, fabric), vls=vls)


def build_network_for(
    scenario: Scenario, case: Case, flows: Sequence[Mapping[str, Any]] | None = None
) -> tuple[Network, Traffic]:
    """Build the network and the traffic of a case.  ``flows`` replaces the flows of the case unless it is None.

    Raises
    ------
    InputError
        The scenario refers to a cable, path, engine or flow that does not exist.
    """
    flows = flows_of(scenario, case) if flows is None else flows
    fabric = scenario_fabric(scenario)
    routing = scenario_routing(scenario, case, fabric, flows)
    network = case_network(scenario, case, fabric, routing)
    return network, traffic_of(scenario, case, network, flows)


def channels_of_paths(network: Network, paths: Sequence[Sequence[str]]) -> list[int]:
    """Return the channels whose buffers a chart shows.

    The result has only channels into switches: those on the given paths, or all of them if no path is given.
    Channels between switches come first, and channels from CAs come last.
    """
    found = list(
        dict.fromkeys(network.channel_between(near, far) for path in paths for near, far in pairwise(path[:-1]))
    )
    found = found or np.flatnonzero(network.arrays.dst < network.arrays.switches).tolist()
    return sorted(found, key=lambda channel: bool(network.arrays.src[channel] >= network.arrays.switches))
