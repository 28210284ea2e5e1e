"""Check drain times, proposed rules, and the files and arrays to which a policy is converted."""

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from json_contract import assert_valid
from routing_cases import shortest

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem
from routing.policy import apply_rules, hoq_seconds, loop_channels, port_facts, read_policy
from routing.policy.drain import drain_times
from routing.policy.export import opensm_lines, stall_life, switch_object, write_switch_files
from routing.policy.suggest import Suggestion, rules_text, suggest
from routing.tables import Provenance, Routing, identity_sl2vl
from routing.topologies import generate

PACKET = 8e-9 * 4096 / 8  # time of a packet of 4096 bytes at 8 Gb/s


def waits_slowly(fabric, routing, burst=65536):
    """Compute drain times from the path of every packet: inputs by switch and destination, then products along the
    paths.
    """
    lids, channels = fabric.lids, fabric.channels
    ends = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), fabric.link_capacity.tolist(), strict=True)
    capacity = {end: rate for device, port, rate in ends for end in zip(device, port, strict=True)}
    own = [lid for lid in range(len(lids)) if lids.endport[lid] >= 0 and lids.switch[lid] >= 0]
    users, worst, longest, total = defaultdict(set), *(defaultdict(float) for _ in range(3))
    for lid in own:
        target, paths, feeding = int(lids.switch[lid]), [], defaultdict(set)
        for e in np.flatnonzero(fabric.endport_switch >= 0).tolist():
            if e == lids.endport[lid]:
                continue
            at, into, path = int(fabric.endport_switch[e]), int(fabric.endport_switch_port[e]), []
            while len(path) <= fabric.switches:
                port = int(routing.lft[at, lid])
                channel = int(channels.at_port[at, port])
                path.append((at, into, port))
                if channel < 0 or at == target:
                    break
                at, into = int(channels.dst[channel]), int(channels.dst_port[channel])
            if at == target and port == lids.port[lid]:
                paths.append(path)
        for path in paths:
            for at, into, _ in path:
                feeding[at].add(into)
        hops = {(at, port) for path in paths for at, _, port in path} | {
            (at, into) for path in paths for at, into, _ in path
        }
        rate = min((capacity[hop] for hop in hops), default=1.0)
        for path in paths:
            gap = 8e-9 * 4096 / rate
            for at, into, port in reversed(path):
                worst[at, port] = max(worst[at, port], gap)
                longest[at, port] = max(longest[at, port], 8e-9 * 4096 / rate)
                total[at, port] = max(total[at, port], 8e-9 * burst * len(paths) / rate)
                users[at, port].add(into)
                gap *= len(feeding[at])
    found = np.zeros((fabric.switches, 256))
    for position, gap in worst.items():
        found[position] = min(gap * len(users[position]) + longest[position], total[position])
    return found


def test_drain_times_of_a_ring(ring):
    """Each of five switches has two CAs.  So 2 + 2, 4 + 2 and more inputs send on the paths to one CA, and their
    numbers multiply.
    """
    fabric, routing = ring
    waits = drain_times(fabric, routing)
    assert waits[0, 1] == pytest.approx(
        4 * PACKET
    )  # the other CA and both neighbours are served in turn, and one packet is in flight
    assert np.allclose(waits, waits_slowly(fabric, routing))


@examples(25)
@given(
    st.sampled_from([("torus", "3x3"), ("random-regular", "8"), ("kary-ntree", "2", "3"), ("mesh", "4x2")]),
    st.integers(0, 1000),
    st.booleans(),
    st.sampled_from([256, 4096, 65536]),
    st.booleans(),
)
def test_drain_times_of_walked_packets(name, seed, gaps, burst, mixed):
    """The links have equal or different rates."""
    args = [*name[1:], "3"] if name[0] == "random-regular" else list(name[1:])
    fabric = generate(name[0], args)
    if mixed:
        widths = np.random.default_rng(seed).choice([1, 4, 12], fabric.links)
        fabric = replace(fabric, link_width=widths.astype(fabric.link_width.dtype))
    lft, _ = shortest(fabric, seed)
    if gaps:
        rng = np.random.default_rng(seed)
        lft[rng.random(lft.shape) < 0.05] = 255
    routing = Routing(lft, np.zeros(lft.shape[1], np.uint8), identity_sl2vl(1), 1, 1, Provenance("shortest"))
    assert np.allclose(drain_times(fabric, routing, burst_bytes=burst), waits_slowly(fabric, routing, burst))


def test_bursts_bound_what_service_in_turn_does_not():
    """The share of the first switch of a long chain is halved at every further switch."""
    fabric = generate("mesh", ["12"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    assert drain_times(fabric, routing, burst_bytes=1 << 30).max() > 2**9 * PACKET
    assert drain_times(fabric, routing, burst_bytes=8192).max() == pytest.approx(11 * 2 * PACKET)


def test_routes_that_loop_do_not_count(ring):
    fabric, routing = ring
    lft, lid = routing.lft.copy(), int(fabric.endport_lid[0])
    lft[2, lid], lft[3, lid] = fabric.channels.port[fabric.channels.first[2:4]]
    assert np.isfinite(drain_times(fabric, replace(routing, lft=lft))).all()


def test_proposed_rules_hold_together(ring, write):
    fabric, routing = ring
    found = suggest(fabric, routing)
    assert [one.role for one in found] == ["ca-facing", "switch-facing", "loop"]
    waits, facts = drain_times(fabric, routing), port_facts(fabric, loop_channels(fabric, routing))
    policies = apply_rules(read_policy(write(rules_text(found, fabric))), fabric, facts)
    for s, p in np.argwhere(facts.cabled).tolist():
        life = hoq_seconds(int(policies.hoq_life[s, p]))
        assert life >= 2 * waits[s, p]
        if facts.role["loop"][s, p]:
            assert waits[s, p] <= policies.breaker(s, p).detect_time <= life / 2
            assert hoq_seconds(int(policies.hoq_life[s, p]) - 1) < 2 * policies.breaker(s, p).detect_time
        else:
            assert policies.breaker(s, p).kind == "none"
            assert policies.hoq_life[s, p] == 16
    without = suggest(fabric, routing, breaker=False)[2]
    assert without.detect_time == 0
    assert "deadlock_breaker" not in rules_text((without,), fabric)


def test_proposed_rules_say_why():
    """A packet of 4096 bytes takes 4.096 us.  The wait is nine packets, suspicion and release come after ten, rounded
    up to two digits.
    """
    fabric = generate("ring", ["5"])
    text = rules_text(suggest(fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))), fabric)
    assert text.endswith(
        """
# 10 ports; without a deadlock, a packet waits at most 36.86 us at the head of a queue; it is dropped after 131.1 us
[[rule]]
name = "loop ports"
role = "loop"
hoq_life = 5
vl_stall_count = 7
override = true
deadlock_breaker = { detect_time = "41us", check_period = "4.1us", release_period = "41us", extra_mtus = 1 }
"""
    )
    assert (text.count("override"), text.count("; it is dropped after ")) == (1, 3)
    never = rules_text((Suggestion("ca-facing", 1, 2.0, 20),), fabric)
    assert "at most 2 s at the head of a queue; it is never dropped\n" in never


def test_nothing_is_proposed_for_loops_that_are_not_there(ring):
    tree = ENGINES["updn"].route(ring[0], EngineOptions(vls=1, effort=0.05))
    found = suggest(ring[0], tree)
    assert [(one.role, one.hoq_life) for one in found] == [("ca-facing", 16), ("switch-facing", 18)]
    assert "no credit loop" in rules_text(found, ring[0])


RULES = """
[[rule]]
name = "all"
vl_stall_count = 3
[[rule]]
name = "cas"
role = "ca-facing"
hoq_life = 12
[[rule]]
name = "one"
switch = "sw2"
ports = 3
hoq_life = "never"
deadlock_breaker = { detect_time = "1ms", check_period = "20us", release_period = "30us", extra_mtus = 4 }
[[rule]]
name = "two"
switch = "sw3"
ports = 3
loop_breaker = true
"""


def test_bytes_of_portinfo(applied):
    found = stall_life(applied(RULES))
    assert int(found[2, 3]) == 0xFF00 | 3 << 5 | 20
    assert int(found[0, 1]) == 0xFF00 | 3 << 5 | 12
    assert int(found[0, 3]) == 0xE000 | 3 << 5
    assert int(found[0, 5]) == int(found[0, 0]) == 0


def test_files_for_switch_agents(applied, ring, tmp_path):
    found, fabric = applied(RULES), ring[0]
    written = write_switch_files(found, fabric, tmp_path / "agents")
    assert len(written) == 5
    reported = json.loads((tmp_path / "agents" / f"0x{int(fabric.switch_guid[2]):016x}.json").read_text())
    assert reported == switch_object(found, fabric, 2)
    assert_valid(reported)
    assert reported["schema"] == "ibnue-switch-policy/2"
    assert (int(reported["switch_guid"], 16), reported["switch_name"]) == (fabric.switch_guid[2], "sw2")
    assert sorted(reported["settings_by_port"]) == ["1", "2", "3", "4"]
    assert reported["settings_by_port"]["1"] == {
        "rules": ["all", "cas"], "hoq_life": 12, "hoq_seconds": hoq_seconds(12), "vl_stall_count": 3,
    }  # fmt: skip
    assert reported["settings_by_port"]["3"] == {
        "rules": ["all", "one"], "hoq_life": 20, "hoq_seconds": None, "vl_stall_count": 3,
        "breaker": {"kind": "deadlock", "detect_seconds": 1e-3, "check_seconds": 2e-5, "release_seconds": 3e-5,
                    "extra_mtus": 4},
    }  # fmt: skip
    assert reported["settings_by_port"]["4"] == {"rules": ["all"], "vl_stall_count": 3}
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem):
        write_switch_files(found, fabric, tmp_path / "file")


def test_values_for_opensm(applied, ring):
    lines = opensm_lines(applied(RULES), port_facts(ring[0]))
    assert lines == [
        "head_of_queue_lifetime 0x12",
        "leaf_head_of_queue_lifetime 0x0c",
        "vl_stall_count 0x03",
        "leaf_vl_stall_count 0x03",
    ]
