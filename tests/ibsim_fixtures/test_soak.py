"""Check soaks of a running OpenSM: after each fault, all tables are read back, proven, and equal to the plugin's
plan.
"""

import itertools
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from lab_nets import net_text, ring
from shared_builds import plugin_build

from ibsim_fixtures.catalogue import FIXTURES
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.pytest_plugin import require_programs
from ibsim_fixtures.soak import Outcome, Soak, cables, reached, same_tables, steps, summary
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults
from routing.topologies import generate

LONG = int(os.environ.get("IBNUE_SOAK", "100"))
SOAKS = {"torus-4x4": "nue", "random-16-4": "dfsssp", "tree-4-2": "updn"}


@pytest.fixture(scope="module")
def torus():
    return generate("torus", ["3x3"], cas=2)


def test_the_same_seed_gives_the_same_events_and_another_one_others(torus):
    host = int(torus.terminal_guid[0])

    def first(seed):
        return [(step.action, step.fault.name) for step in itertools.islice(steps(torus, seed=seed, host=host), 200)]

    assert first(1) == first(1) != first(2)


def test_events_pull_what_is_there_and_restore_what_is_gone_and_leave_the_host_alone(torus):
    host = int(torus.terminal_guid[0])
    lasting = []
    kinds = set()
    for step in itertools.islice(steps(torus, seed=3, host=host, most=2), 300):
        if step.action == "pull":
            assert step.fault not in lasting
            lasting.append(step.fault)
            kinds.add(step.fault.kind.value)
        else:
            lasting.remove(step.fault)
        assert step.active == tuple(lasting) and len(lasting) <= 2
        left = apply_faults(torus, step.active)
        assert host in left.terminal_guid[left.endport_terminal]
        assert int(torus.switch_guid[torus.endport_switch[0]]) in left.switch_guid
    assert kinds == {"link", "switch", "ca"}


def test_the_part_that_a_host_is_in(torus):
    host = int(torus.terminal_guid[0])
    assert reached(torus, host) == cables(torus) and len(cables(torus)) == torus.links
    own = int(torus.endport_switch[0])
    mine = np.flatnonzero((torus.channels.src == own) | (torus.channels.dst == own))
    alone = torus.without_links(np.unique(torus.channels.link[mine]).tolist())
    assert len(reached(alone, host)) == np.count_nonzero(torus.endport_switch == own)


@pytest.mark.parametrize("engine", ["nue", "lash", "updn"])
def test_tables_that_differ_are_distinguished_from_those_that_do_not(torus, engine):
    routing = ENGINES[engine].route(torus, EngineOptions(vls=4))
    assert same_tables(torus, routing, routing)
    lft = routing.lft.copy()
    lft[0, int(torus.switch_lid[1])] ^= 1
    assert not same_tables(torus, replace(routing, lft=lft), routing)
    a, b = int(torus.endport_lid[0]), int(torus.endport_lid[-1])
    sl = routing.sl.copy()
    sl[..., b] = (sl[..., b] + 1) % 4
    assert not same_tables(torus, replace(routing, sl=sl), routing)
    spread = np.repeat(routing.sl[None] if routing.sl.ndim == 1 else routing.sl, 1, axis=0)
    rows = torus.lids.switch if routing.sl.ndim == 2 else np.zeros(len(torus.lids), int)
    by_pair = np.ascontiguousarray(spread[rows])
    assert same_tables(torus, replace(routing, sl=by_pair), routing)
    by_pair[a, b] ^= 1
    assert not same_tables(torus, replace(routing, sl=by_pair), routing)
    assert same_tables(torus, replace(routing, sl=by_pair), replace(routing, vls=1))


def test_sl2vl_rows_of_ports_without_a_cable_are_not_compared(torus):
    fabric = torus.without_links([int(torus.channels.link[0])])
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=4))
    switch, bare, there = int(torus.channels.src[0]), int(torus.channels.port[0]), int(torus.channels.port[1])
    assert int(torus.channels.src[1]) == switch
    ports = 1 + int(fabric.switch_ports.max())
    full = np.tile(routing.sl2vl, (fabric.switches, ports, ports, 1))
    full[switch, :, [0, bare]] = 9
    full[switch, bare] = 9
    assert same_tables(fabric, replace(routing, sl2vl=full), routing)
    full[switch, 0, there, 3] ^= 1
    assert not same_tables(fabric, replace(routing, sl2vl=full), routing)


GOOD = Outcome(
    number=1, action="pull", fault="x", active=1, switches=4, endports=4, links=8, engine="ibnue-nue", routing_ms=3.0,
    sweep_ms=5.0, as_cabled=True, as_dumped=True, as_planned=True, complete=True, certified=True, strength="forward",
    scope="all", changed=7, opensm_kb=1000, worker_kb=2000,
)  # fmt: skip


@pytest.mark.parametrize("flaw", ["as_cabled", "as_dumped", "as_planned", "complete", "certified"])
def test_nothing_bad_is_good(flaw):
    assert GOOD.good and replace(GOOD, as_planned=None).good
    assert not replace(GOOD, **{flaw: False}).good
    assert not replace(GOOD, problem="an error").good


def test_the_summary_counts_events_and_holds_early_memory_against_late():
    outcomes = [replace(GOOD, number=n, action="pull" if n else "start", opensm_kb=1000 + n) for n in range(11)]
    outcomes[4] = replace(outcomes[4], certified=False)
    found = summary(outcomes)
    assert (found.events, found.good, found.routing_ms, found.changed) == (10, 9, 3.0, 7.0)
    assert found.opensm_kb == (1003.5, 1009.5) and found.worker_kb == (2000.0, 2000.0)
    assert summary([]).events == 0


@pytest.fixture(scope="module")
def plugin(tmp_path_factory, request):
    require_programs(request.config)
    folder = plugin_build(tmp_path_factory)
    return Plugin("ibnue", folder=folder)


def soaked(name, engine, plugin, events, seed=1):
    """Return the outcomes of a soak of a fixture."""
    engines, config = f"ibnue-{engine},no_fallback", {"qos": True}
    with Lab(FIXTURES[name].path, routing_engine=engines, plugin=plugin, config=config) as lab:
        plan = lab.opensm.folder / "ibnue-state.npz"
        return list(Soak(lab, seed=seed, plan=plan).run(events=events))


@pytest.mark.lab
def test_a_short_soak(plugin):
    outcomes = soaked("torus-3x3", "nue", plugin, 4, seed=2)
    assert [outcome.number for outcome in outcomes] == list(range(5))
    assert [outcome for outcome in outcomes if not outcome.good] == []
    assert {outcome.action for outcome in outcomes} == {"start", "pull", "restore"}
    assert min(outcome.worker_kb for outcome in outcomes) > 0
    json.dumps([outcome.as_object() for outcome in outcomes])


@pytest.mark.lab
def test_a_soak_of_switches_with_free_ports(plugin, tmp_path):
    # OpenSM writes no SL2VL rows for a port without a link.  These rows have ibsim's initial values, and no packet uses
    # them.
    path = tmp_path / "free.net"
    path.write_text(net_text(5, ring(5), 2, ports=20))
    config = {"qos": True}
    with Lab(path, routing_engine="ibnue-nue,no_fallback", plugin=plugin, config=config) as lab:
        # Every second time, the dump is being written by a sweep that a trap has started.
        dumped, reads = lab.dumped_lfts, itertools.count()
        lab.dumped_lfts = lambda: dumped() if next(reads) % 2 else {}
        outcomes = list(Soak(lab, plan=lab.opensm.folder / "ibnue-state.npz").run(events=3))
        assert [outcome for outcome in outcomes if not outcome.good] == []
        rows = lab.switch_sl2vl()
        assert rows[0x200000, 0, 20] != rows[0x200000, 0, 1]


@pytest.mark.lab
def test_a_soak_sees_tables_that_are_not_the_plan(plugin, tmp_path):
    with Lab(FIXTURES["torus-3x3"].path, routing_engine="ibnue-updn,no_fallback", plugin=plugin) as lab:
        soak = Soak(lab, plan=lab.opensm.folder / "ibnue-state.npz")
        held = lab.switch_lfts()
        guid = next(iter(held))
        held[guid][max(held[guid])] ^= 1
        lab.switch_lfts = lambda fabric: held
        (start,) = soak.run(events=0)
        assert not start.good and start.as_planned is False and not start.as_dumped


@pytest.mark.lab
def test_a_soak_ends_with_an_opensm_that_dies(plugin):
    with Lab(FIXTURES["ring-4"].path, routing_engine="ibnue-updn,no_fallback", plugin=plugin) as lab:
        outcomes = []
        for outcome in Soak(lab).run(events=5):
            outcomes.append(outcome)
            lab.opensm.stop()
        assert [outcome.number for outcome in outcomes] == [0, 1]
        assert "OpenSM" in outcomes[-1].problem and not outcomes[-1].good


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", SOAKS)
def test_a_long_soak(plugin, name):
    outcomes = soaked(name, SOAKS[name], plugin, LONG)
    assert [outcome for outcome in outcomes if not outcome.good] == []
    found = summary(outcomes)
    assert found.events == LONG
    for early, late in (found.opensm_kb, found.worker_kb):
        assert late <= 1.02 * early + 512
