"""Apply random rules to random fabrics, and compare the values at each port with an evaluation of the rules port by
port.
"""

import fnmatch
import json

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from routing_cases import shortest
from strategies import fabrics

from routing.cdg.trace import dependency_graph
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.policy import Breaker, apply_rules, hoq_seconds, loop_channels, port_facts, read_policy
from routing.policy.drain import drain_times
from routing.policy.explain import explain_port
from routing.policy.export import stall_life, switch_object
from routing.policy.suggest import rules_text, suggest
from routing.simulate.options import lifetime_ticks
from routing.simulate.policy_remedies import remedies_of
from routing.tables import Provenance, Routing, identity_sl2vl

TICK = 1e-7
PATTERNS = ("sw*", "sw[0-3]", "sw?", "sw1", "0x00000000002*", "0x200001", "sw0")
SPEEDS = {"SDR": 2.5, "QDR": 10.0, ">=16": None, "<20": None, "40": None}
KINDS = {"none": 0, "loop": 1, "deadlock": 2}


@st.composite
def rule_texts(draw):
    lines = ["[[rule]]"]
    if draw(st.booleans()):
        lines.append(f"switch = {json.dumps(draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2)))}")
    if draw(st.booleans()):
        lines.append(f"ports = {draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))}")
    if draw(st.booleans()):
        roles = st.sampled_from(["leaf", "core", "ca-facing", "switch-facing", "loop"])
        lines.append(f"role = {json.dumps(draw(st.lists(roles, min_size=1, max_size=2)))}")
    if draw(st.booleans()):
        lines.append(f"speed = '{draw(st.sampled_from(sorted(SPEEDS)))}'")
    number = len(lines)
    if draw(st.booleans()):
        lines.append(f"hoq_life = {draw(st.sampled_from([3, 9, 12, 19, 20, 31]))}")
    if draw(st.booleans()):
        lines.append(f"vl_stall_count = {draw(st.integers(1, 7))}")
    if draw(st.booleans()) or len(lines) == number:
        times = draw(st.sampled_from(["true", "false", "{ detect_time = '40us' }", "{ detect_time = '3ms' }"]))
        lines.append(f"{draw(st.sampled_from(['loop', 'deadlock']))}_breaker = {times}")
    if draw(st.sampled_from([True, True, True, False])):
        lines.append("override = true")
    return "\n".join(lines)


def port_facts_slowly(fabric, routing):
    """Return roles, link rate and rate of a physical lane by (row of a switch, port), from the cables one by one."""
    graph = dependency_graph(fabric, routing, switch_pairs=False).to_networkx()
    looping = {
        channel
        for some in nx.strongly_connected_components(graph)
        for channel, vl in some
        if len(some) > 1 or graph.has_edge((channel, vl), (channel, vl))
    }
    found = {}
    for ends, ports, width, speed in zip(
        fabric.link_device.tolist(), fabric.link_port.tolist(), fabric.link_width.tolist(),
        fabric.link_speed.tolist(), strict=True,
    ):  # fmt: skip
        for near in (0, 1):
            if ends[near] < fabric.switches:
                roles = {"switch-facing" if ends[1 - near] < fabric.switches else "ca-facing"}
                channel = int(fabric.channels.at_port[ends[near], ports[near]])
                if channel in looping:
                    roles.add("loop")
                found[ends[near], ports[near]] = (roles, width, speed)
    leaves = {switch for (switch, _), (roles, _, _) in found.items() if "ca-facing" in roles}
    for (switch, _), (roles, _, _) in found.items():
        roles.add("leaf" if switch in leaves else "core")
    return found


def selects(rule, fabric, position, fact):
    roles, width, speed = fact
    switch, port = position
    guid = f"0x{int(fabric.switch_guid[switch]):016x}"
    patterns = [f"0x{int(p, 16):016x}" if p == "0x200001" else p for p in rule.select.switches]
    named = any(fnmatch.fnmatchcase(fabric.switch_name[switch], p) or fnmatch.fnmatchcase(guid, p) for p in patterns)
    if (patterns and not named) or (rule.select.ports and port not in rule.select.ports):
        return False
    if not set(rule.select.roles) <= roles:
        return False
    wanted = rule.select.speed
    if wanted is None:
        return True
    if wanted.lane_speed is not None:
        return wanted.lane_speed == speed
    rate = width * speed * 0.8  # SDR, DDR and QDR send 8 bits as 10 bits
    near = abs(rate - wanted.gigabits) <= 0.04 * wanted.gigabits
    return {"=": near, ">=": near or rate > wanted.gigabits, "<": not near and rate < wanted.gigabits}[wanted.relation]


def values_slowly(policy, fabric, facts):
    """Return the value of each property and its rule, by port; None if rules contradict each other or drop packets too
    soon.
    """
    found = {position: {} for position in facts}
    for rule in policy.rules:
        for position in facts:
            if selects(rule, fabric, position, facts[position]):
                for what, value in rule.values:
                    before = found[position].get(what)
                    if not rule.override and before is not None and before[0] != value:
                        return None
                    found[position][what] = value, rule
    for position, reported in found.items():
        usual = 16 if "ca-facing" in facts[position][0] else 18
        breaker = reported.get("breaker", (Breaker("none"), None))[0]
        if breaker.kind != "none" and hoq_seconds(reported.get("hoq_life", (usual, None))[0]) <= breaker.detect_time:
            return None
    return found


@examples(120)
@given(fabrics(max_lmc=0), st.lists(rule_texts(), max_size=4))
def test_every_sink_gets_what_explain_says(tmp_path_factory, fabric, texts):
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_text("\n".join(texts))
    policy, routing = read_policy(path), ENGINES["minhop"].route(fabric, EngineOptions(vls=1))
    facts = port_facts(fabric, loop_channels(fabric, routing))
    slow = port_facts_slowly(fabric, routing)
    expected = values_slowly(policy, fabric, slow)
    if expected is None:
        with pytest.raises(OptionError):
            apply_rules(policy, fabric, facts, strict=False)
        return
    found = apply_rules(policy, fabric, facts, strict=False)
    portinfo, remedies = stall_life(found), remedies_of(found, facts, fabric, tick=TICK).ports
    files = [switch_object(found, fabric, s) for s in range(fabric.switches)]
    assert remedies.keys() == slow.keys() == {tuple(position) for position in np.argwhere(facts.cabled).tolist()}
    assert {(s, int(p)) for s, reported in enumerate(files) for p in reported["settings_by_port"]} == {
        p for p, v in expected.items() if v
    }
    for (switch, port), reported in expected.items():
        life, stall, breaker = (reported.get(what, (None,))[0] for what in ("hoq_life", "vl_stall_count", "breaker"))
        why = explain_port(found, fabric, facts, f"0x{int(fabric.switch_guid[switch]):016x}", port)
        assert set(why.roles) == slow[switch, port][0]
        for setting, value in zip(why.settings, (life, stall, breaker), strict=True):
            assert setting.rule == (None if value is None else reported[setting.what][1].name)
            assert value is None or setting.text.split(" ")[0].rstrip(",") == str(value).split(",")[0]
        check_portinfo(int(portinfo[switch, port]), life, stall)
        check_file(files[switch]["settings_by_port"].get(str(port), {}), life, stall, breaker)
        usual = 16 if "ca-facing" in slow[switch, port][0] else 18
        check_remedy(remedies[switch, port], usual if life is None else life, stall, breaker)


def check_portinfo(request, life, stall):
    assert request >> 8 == (0 if life is None else 0x1F) | (0 if stall is None else 0xE0)
    assert request & 0xFF == (life or 0) | (stall or 0) << 5


def check_file(expected, life, stall, breaker):
    assert expected.get("hoq_life") == life
    assert expected.get("vl_stall_count") == stall
    assert expected.get("breaker", {}).get("kind") == (None if breaker is None else breaker.kind)
    if life is not None:
        assert expected["hoq_seconds"] == (None if life >= 20 else hoq_seconds(life))


def check_remedy(remedy, life, stall, breaker):
    assert remedy.hoq == lifetime_ticks(life, TICK)
    assert remedy.stall_count == (7 if stall is None else stall)
    assert int(remedy.breaker) == KINDS["none" if breaker is None else breaker.kind]
    if breaker is not None and breaker.kind != "none":
        assert remedy.detect == round(breaker.detect_time / TICK)
        assert remedy.extra == 2048 * breaker.extra_mtus


@examples(60)
@given(fabrics(), st.integers(0, 1000))
def test_proposed_rules_fit_any_fabric(tmp_path_factory, fabric, seed):
    """The proposed rules can be applied, and no lifetime is under twice the wait that congestion alone can cause."""
    lft, _ = shortest(fabric, seed)
    routing = Routing(lft, np.zeros(lft.shape[1], np.uint8), identity_sl2vl(1), 1, 1, Provenance("shortest"))
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_text(rules_text(suggest(fabric, routing), fabric))
    facts = port_facts(fabric, loop_channels(fabric, routing))
    found, waits = apply_rules(read_policy(path), fabric, facts), drain_times(fabric, routing)
    for switch, port in np.argwhere(facts.cabled).tolist():
        life, breaker = hoq_seconds(int(found.hoq_life[switch, port])), found.breaker(switch, port)
        assert life >= 2 * waits[switch, port]
        assert (breaker.kind == "deadlock") == bool(facts.role["loop"][switch, port])
        assert breaker.kind == "none" or waits[switch, port] <= breaker.detect_time <= life / 2
