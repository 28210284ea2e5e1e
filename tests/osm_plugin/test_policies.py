"""Check the worker's part of port policies, on requests in the shim's format."""

import os

import numpy as np
import plugin_request
import pytest

from osm_plugin.answer import SharedMemory
from osm_plugin.config import PluginConfig
from osm_plugin.policies import ANSWER_MAGIC, POLICY_ANSWER, PolicyDesk, read_lft
from osm_plugin.snapshot import REQUEST, read_request
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import FabricError, InputError
from routing.policy import apply_rules, loop_channels, port_facts, read_policy
from routing.policy.export import stall_life
from routing.topologies import generate

RULES = """
[[rule]]
hoq_life = 17
[[rule]]
role = "loop"
vl_stall_count = 2
"""


@pytest.fixture
def memory():
    descriptor = os.memfd_create("test")
    yield SharedMemory(descriptor)
    os.close(descriptor)


@pytest.fixture(scope="module")
def ring():
    fabric = generate("ring", ["5"])
    return fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


def answered(desk, memory, rules):
    """Return the values that the worker writes, and the worker's log line."""
    snapshot = read_request(memory.view())
    note = desk.answer(memory, snapshot, PluginConfig(policies=str(rules)))
    head = np.frombuffer(memory.view()[snapshot.answer_at :][: POLICY_ANSWER.itemsize], POLICY_ANSWER)[0]
    assert int(head["magic"]) == ANSWER_MAGIC
    assert int(head["sequence"]) == snapshot.sequence
    start, count = int(head["want_at"]), int(head["switches"]) * 256
    return np.frombuffer(memory.view()[start : start + 2 * count], np.uint16).reshape(-1, 256), note


@pytest.mark.parametrize("known", [False, True])
def test_values_are_those_of_the_rules(ring, memory, tmp_path, known):
    fabric, routing = ring
    (tmp_path / "rules.toml").write_text(RULES)
    plugin_request.write_request_with_tables(fabric, routing.lft, memory)
    desk = PolicyDesk()
    if known:
        desk.routed(fabric, routing)
    want, note = answered(desk, memory, tmp_path / "rules.toml")
    policy = read_policy(tmp_path / "rules.toml")
    expected = apply_rules(policy, fabric, port_facts(fabric, loop_channels(fabric, routing)))
    assert (want == stall_life(expected)).all()
    assert note.startswith("rules.toml: 2 rules, 10 channels on credit loops")
    assert ("one VL" in note) != known


def test_other_tables_than_the_engines_count_when_the_switches_have_them(ring, memory, tmp_path):
    fabric, routing = ring
    (tmp_path / "rules.toml").write_text(RULES)
    desk = PolicyDesk()
    desk.routed(fabric, routing)
    plugin_request.write_request_with_tables(
        fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05)).lft, memory
    )
    want, note = answered(desk, memory, tmp_path / "rules.toml")
    assert "0 channels on credit loops (assuming that all packets use one VL)" in note
    assert set(np.unique(want).tolist()) == {0, 0x1F00 | 17}


def test_tables_of_another_width_and_none_at_all(ring, memory):
    fabric, routing = ring
    plugin_request.write_request_with_tables(fabric, routing.lft[:, :4], memory)
    found = read_lft(memory.view(), fabric)
    assert (found[:, :4] == routing.lft[:, :4]).all()
    assert (found[:, 4:] == 255).all()
    plugin_request.write_request_with_tables(fabric, np.pad(routing.lft, ((0, 0), (0, 9))), memory)
    assert (read_lft(memory.view(), fabric) == routing.lft).all()
    head = np.frombuffer(memory.view()[: REQUEST.itemsize], REQUEST)[0]
    cables_end = int(head["conf_at"]) + int(head["conf_bytes"])
    for end in (0, REQUEST.itemsize, cables_end, cables_end + 9):
        with pytest.raises(FabricError, match="no forwarding tables"):
            read_lft(memory.view()[:end], fabric)
    memory.view()[:] = bytes(len(memory.view()))
    with pytest.raises(FabricError, match="no forwarding tables"):
        read_lft(memory.view(), fabric)


def test_no_rules_are_an_error(ring, memory):
    plugin_request.write_request_with_tables(ring[0], ring[1].lft, memory)
    with pytest.raises(InputError, match="no rules"):
        PolicyDesk().answer(memory, read_request(memory.view()), PluginConfig())


def test_a_few_of_what_is_idle_are_named(ring, memory, tmp_path):
    """The line has to fit into the shim's buffer of 1024 bytes, and must still state the number of idle rules."""
    plugin_request.write_request_with_tables(ring[0], ring[1].lft, memory)
    names = [f"spine-{number}" for number in range(39)] + ["x" * 5000]
    for few, count in ((names[:2], 2), ([names[39], *names[:39]], 40)):
        (tmp_path / "rules.toml").write_text(f"[[rule]]\nhoq_life = 9\nswitch = {few}\n".replace("'", '"'))
        _, note = answered(PolicyDesk(), memory, tmp_path / "rules.toml")
        assert len(note) < 400
        assert note.startswith("rules.toml: 1 rule; without effect: line 1: no switch fits '")
        assert note.count("no switch fits") == min(count, 3)
        assert note.endswith(" and 37 more" if count == 40 else "'spine-1'")
