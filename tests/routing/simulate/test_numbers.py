"""Check numbers that callers pass to the simulator in Python: a number that no kernel can take is an OptionError."""

import math
from dataclasses import replace

import numpy as np
import pytest
from in_one_test import cases_in_one_test
from sim_cases import cycles, flows_along, star

from routing.errors import OptionError, TableError
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.bounds import LONGEST, LONGEST_MEAN
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.network import Timing, build_network
from routing.simulate.options import (
    MOST_ROOM,
    MOST_STALL,
    Arbitration,
    Breaker,
    Inputs,
    Pauses,
    Remedies,
    Remedy,
    Switching,
    VLArb,
    lifetime_ticks,
)
from routing.simulate.run import simulate
from routing.simulate.traffic import (
    FOREVER,
    Pattern,
    Process,
    Traffic,
    all_to_all,
    message_interval,
    permutation,
    shift,
    uniform,
)

NAN, HUGE, LONG, LONG_MEAN = math.nan, 10**30, LONGEST + 1, LONGEST_MEAN + 1
NO_WHOLE = (NAN, math.inf, -1, 1.5, HUGE, True, "1", None)
"""Values that are not whole numbers from 0 on in the range of any kernel."""


def small():
    """Return a network of two CAs that send to a third one over one switch, and its traffic."""
    fabric, routing, paths = star(2)
    return build_network(fabric, routing, cycles(64)), flows_along(fabric, paths)


def lids(network):
    return tuple(network.fabric.endport_lid.tolist())


def flow_with(**how):
    network, traffic = small()
    return network, replace(traffic, flows=(replace(traffic.flows[0], **how),))


def fields(name, values):
    return [(name, value) for value in values]


NOT_NONE = tuple(value for value in NO_WHOLE if value is not None)


@cases_in_one_test(
    ("field", "value"),
    [
        *fields("source", (*NO_WHOLE, 3, -3)), *fields("bytes", (*NO_WHOLE, 0, 2**30 + 1)),
        *fields("messages", (*NOT_NONE, 0, FOREVER + 1)),
        *fields("window", (*NOT_NONE, 0, FOREVER + 1)), *fields("start", (*NO_WHOLE, FOREVER + 1)),
        *fields("stop", (*NO_WHOLE, FOREVER + 1)), *fields("destinations", [(value,) for value in (*NO_WHOLE, 0)]),
        *fields("hot", [(value,) for value in (*NO_WHOLE, 0)]),
        *fields("interval", (NAN, math.inf, 0, -1.0, 1e300, LONG_MEAN, "1", True, None)),
        *fields("probability", (NAN, math.inf, 0, -1.0, 1.1, "1", True, None)),
        *fields("burst", (NAN, math.inf, 0, 0.9, 1e300, "1", True, None)),
        *fields("gap", (NAN, math.inf, -1, 1e300, LONG_MEAN, "1", True, None)),
        *fields("hot_share", (NAN, math.inf, -1, 1.1, 0.5, "1", True)),
        *fields("pattern", (0, 7, None)), *fields("process", (0, 7, None)),
    ],
)  # fmt: skip
def test_flows(field, value):
    network, traffic = flow_with(**{field: value})
    with pytest.raises(OptionError, match="flow 0"):
        simulate(network, traffic)


@pytest.mark.parametrize(
    ("interval", "probability"), [(1.0, 1e-300), (1.0, 5e-324), (2.0**50, 0.5), (1e12, 1e-6)]
)  # fmt: skip
def test_slots_that_hardly_ever_have_a_message(interval, probability):
    network, traffic = flow_with(process=Process.BERNOULLI, interval=interval, probability=probability)
    with pytest.raises(OptionError, match="due after more than"):
        simulate(network, traffic)


@pytest.mark.parametrize("process", [Process.POISSON, Process.BURSTY, Process.BERNOULLI])
def test_the_rarest_messages_that_there_can_be(process):
    rare = {"interval": 2.0**50, "burst": 2.0**50, "gap": 2.0**50}
    rare |= {"interval": 1.0, "probability": 2.0**-50} if process is Process.BERNOULLI else {}
    network, traffic = flow_with(process=process, **rare)
    simulation = simulate(network, traffic)
    simulation.run(FOREVER - 1, events=1000)
    assert simulation.totals()["delivered"] > 0


@pytest.mark.parametrize("pattern", list(Pattern))
def test_hot_destinations_alone(pattern):
    network, traffic = small()
    flow = replace(traffic.flows[0], destinations=(), hot=traffic.flows[0].destinations, pattern=pattern, hot_share=0.5)
    with pytest.raises(OptionError, match="it has no destination"):
        simulate(network, replace(traffic, flows=(flow,)))
    flow = replace(flow, hot_share=1, messages=3)
    if pattern is Pattern.HOTSPOT:
        simulation = simulate(network, replace(traffic, flows=(flow,)))
        simulation.run_to_end(limit=10**6)
        assert simulation.totals()["delivered"] == 3
    else:
        with pytest.raises(OptionError, match="it has no destination"):
            simulate(network, replace(traffic, flows=(flow,)))


def test_a_flow_to_its_own_lid_is_refused():
    network, traffic = small()
    own = int(network.fabric.endport_lid[traffic.flows[0].source])
    for destinations in ((own,), (own, *traffic.flows[0].destinations, own)):
        flow = replace(traffic.flows[0], destinations=destinations)
        with pytest.raises(OptionError, match="flow 0"):
            simulate(network, replace(traffic, flows=(flow,)))


@cases_in_one_test(("position", "value"), [(place, value) for place in range(3) for value in (*NO_WHOLE, FOREVER + 1)])
def test_traces(position, value):
    network, traffic = small()
    entry = [5, traffic.flows[0].destinations[0], 100]
    entry[position] = value
    flow = replace(traffic.flows[0], destinations=(), process=Process.TRACE, trace=(tuple(entry),))
    with pytest.raises(OptionError, match="flow 0"):
        simulate(network, replace(traffic, flows=(flow,)))


@pytest.mark.parametrize("mtu", [*NO_WHOLE, 0, 0x10000])
def test_packets(mtu):
    network, traffic = small()
    with pytest.raises(OptionError, match="not a valid packet size"):
        simulate(network, replace(traffic, mtu=mtu))


def test_patterns_of_traffic():
    network, _ = small()
    fabric = network.fabric
    for rounds in (*NO_WHOLE, 0, FOREVER):
        with pytest.raises(OptionError):
            all_to_all(fabric, rounds=rounds)
    for load in (NAN, math.inf, 0, -1, 1.5, 1e-300, True, None):
        with pytest.raises(OptionError, match="not a load"):
            uniform(network, load)
    for size in (*NO_WHOLE, 0):
        with pytest.raises(OptionError, match="not a valid message size"):
            message_interval(network, 0, 0.5, size)
        with pytest.raises(OptionError, match="not a valid message size"):
            uniform(network, 0.5, bytes=size, process=Process.BERNOULLI)
    for slot in (0, -1, NAN):
        with pytest.raises(OptionError):
            simulate(network, uniform(network, 0.5, slot=slot, process=Process.BERNOULLI))
    for partner in ([0.0, 1.0, 2.0], [0, 1, NAN], [0, 1, 1], [0, 1], [True, 0, 2]):
        with pytest.raises(OptionError, match="not a permutation"):
            permutation(fabric, partner)
    with pytest.raises(OptionError, match="not a permutation"):
        shift(fabric, 0.5)


@cases_in_one_test(
    ("field", "value"),
    [
        *fields("tick", (NAN, math.inf, 0, -1, 2, 1e-300, "1", True, None)), *fields("wire", (*NO_WHOLE, 0, 2**30)),
        *fields("switch", (*NO_WHOLE, 2**30)), *fields("buffer", (*NO_WHOLE, 0, 2049)),
        *fields("block", (NAN, math.inf, 0, -1, 1e-9, 2**30, "1", True)),
    ],
)  # fmt: skip
def test_timing(field, value):
    with pytest.raises(OptionError, match="is not a "):
        Timing(**{field: value})


@pytest.mark.parametrize(("tick", "speed"), [(1e-15, 0.001), (1e-2, 2.5), (1.0, 2.5)])
def test_ticks_that_are_none_for_the_links(tick, speed):
    fabric = literal_fabric("slow", ["sw"], [], {"x": "sw", "y": "sw"}, width=1, speed=speed)
    routing = tables_from_paths(fabric, [("x", "sw", "y")])
    build_network(fabric, routing, Timing(tick=tick, block=1.0))
    with pytest.raises(OptionError, match="s does not fit links on which"):
        build_network(fabric, routing, Timing(tick=tick))


@pytest.mark.parametrize("vls", [*NOT_NONE, 0, 16])
def test_vls(vls):
    fabric, routing, _ = star(2)
    with pytest.raises(OptionError, match=r"not a .*number of VLs"):
        build_network(fabric, routing, cycles(64), vls=vls)


@cases_in_one_test(
    "switching",
    [
        *(Switching(seed=value) for value in (*NO_WHOLE, 1 << 63)),
        *(Switching(fcp_period=value) for value in (*NO_WHOLE, LONG)),
        *(Switching(pauses=Pauses(value, 0)) for value in (*NO_WHOLE, 0, 1 << 31)),
        *(Switching(pauses=Pauses(8, value)) for value in (*NO_WHOLE, 8)),
        *(Switching(vlarb=VLArb(limit=value)) for value in (*NO_WHOLE, 256)),
        *(Switching(vlarb=VLArb(low=((0, value),))) for value in (*NO_WHOLE, 256)),
        *(Switching(vlarb=VLArb(low=((value, 1),))) for value in (*NO_WHOLE, 15)),
        *(Switching(arbitration=value) for value in (0, 7, None)), *(Switching(inputs=value) for value in (0, 7, None)),
    ],
    ids=str,
)  # fmt: skip
def test_switching(switching):
    network, traffic = small()
    with pytest.raises(OptionError):
        simulate(network, traffic, switching=switching)


@cases_in_one_test("where", ["port", "leaf", "ports"])
@cases_in_one_test(
    ("field", "value"),
    [
        *((field, value) for field in ("hoq", "detect", "repeat", "release") for value in (*NO_WHOLE, LONG)),
        ("repeat", 0), ("release", 0),
        *fields("stall_count", (*NO_WHOLE, MOST_STALL + 1)), *fields("extra", (*NO_WHOLE, MOST_ROOM + 1)),
        *fields("breaker", (1, 7, None)),
    ],
)  # fmt: skip
def test_remedies_of_ports(where, field, value):
    network, traffic = small()
    remedy = Remedy(**{field: value})
    remedies = {"port": Remedies(remedy), "leaf": Remedies(leaf=remedy), "ports": Remedies(ports={(0, 1): remedy})}
    with pytest.raises(OptionError):
        simulate(network, traffic, remedies=remedies[where])


@cases_in_one_test(
    ("field", "value"),
    [
        *((field, value) for field in ("lifetime", "sample", "control_delay") for value in (*NO_WHOLE, LONG)),
        ("control_delay", 0), ("sample", 0),
        *fields("release_packets", (*NO_WHOLE, 0, 1 << 15)), *fields("rounds", (*NO_WHOLE, 1 << 31)),
    ],
)  # fmt: skip
def test_remedies(field, value):
    network, traffic = small()
    remedies = Remedies(Remedy(breaker=Breaker.LOOP, detect=10), **{field: value})
    with pytest.raises(OptionError):
        simulate(network, traffic, remedies=remedies)


@pytest.mark.parametrize("breaker", list(Breaker))
def test_the_largest_numbers_that_there_can_be(breaker):
    network, traffic = small()
    most = LONGEST
    remedy = Remedy(most, MOST_STALL, breaker, most, most, most, MOST_ROOM)
    remedies = Remedies(remedy, lifetime=most, sample=most, control_delay=most, release_packets=(1 << 15) - 1,
                        rounds=(1 << 31) - 1)  # fmt: skip
    flows = tuple(replace(flow, messages=5, start=FOREVER - (1 << 40)) for flow in traffic.flows)
    switching = Switching(seed=(1 << 63) - 1, fcp_period=most if breaker is Breaker.NONE else 0)
    simulation = simulate(network, replace(traffic, flows=flows), switching=switching, remedies=remedies)
    simulation.run(FOREVER - 1, events=100_000)
    assert simulation.totals()["delivered"] > 0


@cases_in_one_test(
    ("field", "value"),
    [
        *((field, value) for field in ("detect", "repeat", "lasts", "hold", "sample", "step")
          for value in (*NO_WHOLE, 0, LONG)),
        *fields("ca_vls", (*NO_WHOLE, 0, 2)), *fields("seed", (*NO_WHOLE, 1 << 63)),
        *fields("scheme", (0, 7, None)), *fields("arbitration", (Arbitration.RANDOM, 7, None)),
    ],
)  # fmt: skip
def test_adaptive_routing(field, value):
    network, traffic = small()
    with pytest.raises(OptionError):
        simulate_adaptive(network, traffic, Adaptive(**{"scheme": Scheme.BUBBLE, field: value}))


def test_invalid_arguments_of_a_run_are_refused():
    network, traffic = small()
    simulation = simulate(network, traffic)
    for until in (*NO_WHOLE, FOREVER):
        with pytest.raises(OptionError, match="cannot run to tick"):
            simulation.run(until)
    for events in (*NO_WHOLE, FOREVER):
        with pytest.raises(OptionError, match="more events"):
            simulation.run(10, events=events)
    for row in (value for value in NO_WHOLE if value != HUGE):
        with pytest.raises(OptionError, match="the log has no row"):
            simulation.log(row)
    for wrong in (*NO_WHOLE, 1000):
        with pytest.raises(OptionError, match="there is no flow"):
            simulation.stop_flow(wrong, 10)
        with pytest.raises(OptionError, match="there is no channel"):
            simulation.fail_link(wrong)
        with pytest.raises(OptionError, match="there is no channel"):
            simulation.restore_link(wrong)
    for at in (*NO_WHOLE, FOREVER + 1):
        with pytest.raises(OptionError, match="there is no tick"):
            simulation.stop_flow(0, at)
    with pytest.raises(TableError, match="SL 16 is over 15"):
        simulation.set_sl(np.full_like(network.arrays.sl, 16))


def test_lifetimes():
    for value in (*NO_WHOLE, 32):
        with pytest.raises(OptionError, match="not a lifetime limit"):
            lifetime_ticks(value, 1e-9)
    for tick in (NAN, math.inf, 0, -1, 1e-300, "1", True, None):
        with pytest.raises(OptionError, match="takes no time"):
            lifetime_ticks(3, tick)


def test_numbers_of_numpy_are_numbers():
    network, traffic = small()
    numbers = {"bytes": np.int64(100), "messages": np.int32(3), "interval": np.float64(2.5), "stop": np.int64(500)}
    traffic = Traffic((replace(traffic.flows[0], **numbers),), np.int64(64))
    simulation = simulate(network, traffic, switching=Switching(seed=np.uint64(7), inputs=Inputs.FIFO))
    simulation.run(np.int64(10_000))
    assert simulation.totals()["delivered"] == 6
