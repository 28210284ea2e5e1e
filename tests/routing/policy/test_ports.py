"""Check rules that are applied to a fabric: the ports that they select, and the rules that determine values."""

from dataclasses import replace

import numpy as np
import pytest

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.policy import apply_rules, loop_channels, port_facts, read_policy
from routing.policy.explain import explain_port
from routing.topologies import generate


def at(mask):
    return {tuple(position) for position in np.argwhere(mask).tolist()}


def ports_of(found, rule=0):
    """Return the ports that a rule selects, as (row of the switch, port number)."""
    return {divmod(position, 256) for position in found.selected[rule].tolist()}


@pytest.mark.parametrize(
    ("select", "ports"),
    [
        ("", {(s, p) for s in range(5) for p in (1, 2, 3, 4)}),
        ("switch = 'sw1'", {(1, p) for p in (1, 2, 3, 4)}),
        ("switch = 'sw[01]'\nports = [1, 4]", {(s, p) for s in (0, 1) for p in (1, 4)}),
        ("switch = ['sw4', '0x200002']", {(s, p) for s in (2, 4) for p in (1, 2, 3, 4)}),
        ("switch = '0x00000000002000?3'\nports = '2-3'", {(3, 2), (3, 3)}),
        ("role = 'ca-facing'", {(s, p) for s in range(5) for p in (1, 2)}),
        ("role = 'switch-facing'", {(s, p) for s in range(5) for p in (3, 4)}),
        ("role = 'loop'", {(s, p) for s in range(5) for p in (3, 4)}),
        ("role = ['leaf', 'ca-facing']\nports = 1", {(s, 1) for s in range(5)}),
        ("role = 'core'", set()),
        ("speed = 'SDR'", {(s, p) for s in range(5) for p in (1, 2, 3, 4)}),
        ("speed = '>8'", set()),
        # Rates within four percent of 8 count as 8.
        ("speed = '<8.3'", set()),
        ("speed = '>7.7'", set()),
        ("speed = '>=8.3'\nswitch = 'sw0'\nports = 2", {(0, 2)}),
        ("speed = '8.3'\nswitch = 'sw0'\nports = 2", {(0, 2)}),
        ("speed = '8.4'", set()),
        ("speed = '<8.4'\nswitch = 'sw0'\nports = 2", {(0, 2)}),
        ("speed = '<=8'\nswitch = 'sw0'\nports = 2", {(0, 2)}),
    ],
)
def test_ports_of_a_rule(applied, select, ports):
    found = applied(f"[[rule]]\n{select}\nhoq_life = 9\n")
    assert ports_of(found) == at(found.hoq_life == 9) == at(found.touched) == ports
    assert (found.vl_stall_count == -1).all()


def test_roles_of_a_tree(write):
    fabric = generate("kary-ntree", ["2", "3"])
    facts = port_facts(fabric)
    leaves = set(np.flatnonzero(fabric.terminals_at).tolist())
    assert {s for s, _ in at(facts.role["leaf"])} == leaves
    assert {s for s, _ in at(facts.role["core"])} == set(range(fabric.switches)) - leaves
    channels = fabric.channels
    assert at(facts.role["switch-facing"]) == set(zip(channels.src.tolist(), channels.port.tolist(), strict=True))
    cas = zip(fabric.endport_switch.tolist(), fabric.endport_switch_port.tolist(), strict=True)
    assert at(facts.role["ca-facing"]) == set(cas)
    with pytest.raises(OptionError, match="no tables"):
        apply_rules(read_policy(write("[[rule]]\nrole = 'loop'\nhoq_life = 1\n")), fabric, facts)


def test_channels_on_loops_are_those_of_the_proof(ring):
    fabric, routing = ring
    loop = prove(fabric, routing).credit_loop
    assert {turn.channel for turn in loop.turns} <= set(np.flatnonzero(loop_channels(fabric, routing)).tolist())
    tree = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    assert not loop_channels(fabric, tree).any()


def test_uncabled_ports_are_left_alone(applied, ring):
    fabric = ring[0]
    cut = replace(
        fabric,
        link_device=fabric.link_device[1:],
        link_port=fabric.link_port[1:],
        link_width=fabric.link_width[1:],
        link_speed=fabric.link_speed[1:],
    )
    facts = port_facts(cut)
    lost = at(port_facts(fabric).cabled) - at(facts.cabled)
    assert len(lost) >= 1
    assert (facts.exists == port_facts(fabric).exists).all()


GENERAL = "[[rule]]\nname = 'all'\nhoq_life = 9\n"


def test_rules_that_say_the_same_agree(applied):
    found = applied(f"{GENERAL}[[rule]]\nname = 'again'\nswitch = 'sw0'\nhoq_life = 9\nvl_stall_count = 2\n")
    assert {int(found.hoq_life[port]) for port in ports_of(found)} == {9}
    assert found.rule("hoq_life", 0, 1).name == "again"
    assert found.rule("hoq_life", 1, 1).name == "all"


def test_rules_that_differ_are_an_error(applied):
    with pytest.raises(OptionError) as error:
        applied(f"{GENERAL}[[rule]]\nname = 'one'\nswitch = 'sw3'\nports = '1-2'\nhoq_life = 4\n")
    reported = str(error.value)
    assert "one and all (line 1) set hoq_life of sw3 port 1 and 1 more to different values" in reported
    assert ":8: " in reported
    assert "override = true" in reported


def test_one_port_that_two_rules_differ_about(applied):
    with pytest.raises(OptionError, match=r"set hoq_life of sw3 port 1 to different values"):
        applied(f"{GENERAL}[[rule]]\nswitch = 'sw3'\nports = 1\nhoq_life = 4\n")


def test_a_name_is_itself_whatever_signs_are_in_it(applied, ring):
    """A rule for a name selects this switch, even if the name is also a pattern that fits another switch."""
    fabric = replace(ring[0], switch_name=("sw[1]", "sw1", "sw*", "a", "b"))
    for name, row in (("sw[1]", 0), ("sw1", 1), ("sw*", 2)):
        found = applied(f"[[rule]]\nswitch = '{name}'\nhoq_life = 4\n", fabric=fabric)
        assert {switch for switch, _ in ports_of(found)} == {row}
        assert explain_port(found, fabric, port_facts(fabric), name, 1).row == row
    found = applied("[[rule]]\nswitch = 's*'\nhoq_life = 4\n", fabric=fabric)
    assert {switch for switch, _ in ports_of(found)} == {0, 1, 2}


def test_breakers_contradict_one_another_too(applied):
    with pytest.raises(OptionError, match="set breaker of sw0 port 1"):
        applied("[[rule]]\nloop_breaker = true\n[[rule]]\ndeadlock_breaker = true\n")


def test_a_later_rule_may_override(applied, ring):
    text = f"{GENERAL}[[rule]]\nname = 'one'\nswitch = 'sw3'\nports = 2\nhoq_life = 4\noverride = true\n"
    found = applied(text)
    assert found.hoq_life[3, 2] == 4
    assert (np.sort(found.hoq_life[3, 1:5]) == [4, 9, 9, 9]).all()
    facts = port_facts(ring[0])
    reported = explain_port(found, ring[0], facts, "sw3", 2)
    life = reported.settings[0]
    assert (life.rule, life.text) == ("one", "4 (drops after 65.54 us)")
    assert life.overridden == (("all", 1, "9 (drops after 2.097 ms)"),)
    assert reported.roles == ("leaf", "ca-facing")
    assert reported.cable == "to ca3.1 port 1, 8 Gb/s"
    assert reported.settings[1].rule is None
    assert "OpenSM, whose default is 7" in reported.settings[1].text
    assert explain_port(found, ring[0], facts, "0x200003", 1).settings[0].rule == "all"
    for name in ("sw9", "sw*"):
        with pytest.raises(OptionError):
            explain_port(found, ring[0], facts, name, 1)


@pytest.mark.parametrize(
    ("select", "expected", "held"),
    [
        ("switch = 'sw9'", "no switch fits 'sw9'", set()),
        ("switch = ['sw1', 'sw9']", "no switch fits 'sw9'", {(1, 1), (1, 2), (1, 3), (1, 4)}),
        ("switch = 'sw1'\nports = '4-6'", "port 5, which its switch lacks", {(1, 4)}),
        ("switch = ['sw9', 'sw1']\nports = 40", "no switch fits 'sw9'", set()),
    ],
)
def test_missing_switches_and_ports_are_errors_unless_the_fabric_runs(applied, select, expected, held):
    """In a running fabric, a switch may be down.  The rule then applies to all other switches."""
    text = f"[[rule]]\nvl_stall_count = 2\n[[rule]]\n{select}\nhoq_life = 9\n"
    with pytest.raises(OptionError, match=expected) as error:
        applied(text)
    assert error.value.line == (5 if expected.startswith("port") else 4)
    found = applied(text, strict=False)
    assert at(found.hoq_life == 9) == held
    assert (found.vl_stall_count[found.touched] == 2).all()
    assert found.unused[0].startswith("line 3: ")
    assert expected in found.unused[0]


def test_names_that_are_nearly_right_are_reported(applied):
    for name, remedy in (("SW0", "did you mean sw0"), ("0x2*", "GUIDs as 0x and 16 digits")):
        with pytest.raises(OptionError, match=remedy):
            applied(f"[[rule]]\nswitch = '{name}'\nhoq_life = 9\n")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("hoq_life = 4\ndeadlock_breaker = { detect_time = '1ms' }", r"dropped after 65.54 us \(a, line 1\)"),
        (
            "hoq_life = 0\nloop_breaker = { detect_time = '5us', check_period = '1us' }",
            r"dropped after 4.096 us \(a, line 1\)",
        ),
        ("loop_breaker = { detect_time = '2s' }", r"after 268.4 ms \(OpenSM's default\)"),
    ],
)
def test_lifetimes_shorter_than_detection_are_an_error(applied, rules, expected):
    with pytest.raises(OptionError, match=expected) as error:
        applied(f"[[rule]]\nname = 'a'\n{rules}\n")
    assert "lower detect_time" in str(error.value)


def test_a_rule_decides_where_no_later_one_does(applied):
    every = "[[rule]]\nhoq_life = 9\n"
    found = applied(f"{every}[[rule]]\nswitch = 'sw0'\nhoq_life = 8\noverride = true\n")
    assert (found.decides(0), found.decides(1)) == (16, 4)
    assert applied(f"{every}{every}").decides(0) == 0


def test_lifetimes_longer_than_detection_are_none(applied):
    found = applied("[[rule]]\nhoq_life = 9\ndeadlock_breaker = { detect_time = '2ms' }\n")
    assert found.breaker(0, 1).kind == "deadlock"
    assert applied("[[rule]]\nhoq_life = 0\nloop_breaker = false\n").breaker(0, 1).kind == "none"
