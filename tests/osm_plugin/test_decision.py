"""Check the decisions of the worker, and the tables that replace the tables of an engine that fails."""

from dataclasses import replace

import pytest

from osm_plugin.decision import Decision, decide, decide_pinned
from osm_plugin.route_or_reroute import route_or_reroute
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, Stability
from routing.topologies import generate

WHOLE = generate("torus", ["3x3"], cas=1)
LESS = WHOLE.without_links([int(WHOLE.channels.link[0])])
OPTIONS = EngineOptions(effort=0.1)
ENGINE = ENGINES["updn"]


@pytest.fixture(scope="module")
def before():
    routing = ENGINE.route(WHOLE, OPTIONS)
    return Published(WHOLE, routing, prove(WHOLE, routing))


@pytest.mark.parametrize(
    ("fabric", "moves", "decision"),
    [
        (WHOLE, 0, Decision.KEEP),
        (WHOLE, 9, Decision.REBALANCE),
        (LESS, 0, Decision.REROUTE),
        (LESS, 9, Decision.REROUTE),
    ],
)
def test_tables_in_force_decide(before, fabric, moves, decision):
    start = decide(fabric, before, baseline=before, moves=moves)
    assert (start.decision, start.before, start.baseline, start.moves) == (decision, before, before, moves)


def test_without_tables_in_force_the_engine_routes_from_scratch():
    start = decide(WHOLE, None, moves=9)
    assert (start.decision, start.before, start.moves) == (Decision.FROM_SCRATCH, None, 0)


@pytest.mark.parametrize(("fabric", "decision"), [(WHOLE, Decision.ROLL_BACK), (LESS, Decision.REPAIR_PINNED)])
def test_pinned_tables_change_as_little_as_possible(before, fabric, decision):
    start = decide_pinned(fabric, before)
    assert (start.decision, start.baseline, start.stability, start.moves) == (decision, None, Stability.FULL, 0)
    made = route_or_reroute(ENGINE, OPTIONS, fabric, start)
    assert made.decision is decision and made.tables.proof.certified
    assert (made.tables.routing is before.routing) == (decision is Decision.ROLL_BACK)


def test_a_rebalance_that_gains_nothing_keeps_the_tables(before, monkeypatch):
    for outcome in (lambda *_, **__: None, lambda *_, **__: 1 // 0):
        monkeypatch.setattr("osm_plugin.route_or_reroute.spread", outcome)
        made = route_or_reroute(ENGINE, OPTIONS, WHOLE, decide(WHOLE, before, moves=9))
        assert made.decision is Decision.KEEP and made.tables.routing is before.routing


@pytest.mark.parametrize(("size", "most"), [(1_000, 9), (171, 9), (170, 18), (57, 27)])
def test_the_entries_of_a_rebalance_grow_with_the_tables(before, size, most, monkeypatch):
    asked = []
    monkeypatch.setattr("osm_plugin.route_or_reroute.spread", lambda *_, most, **__: asked.append(most))
    monkeypatch.setattr("osm_plugin.route_or_reroute.ENTRIES_FOR_MOVES", size)
    assert before.routing.lft.size == 171
    route_or_reroute(ENGINE, OPTIONS, WHOLE, decide(WHOLE, before, moves=9))
    assert asked == [most]


@pytest.mark.parametrize("start", [decide_pinned, decide, lambda *tables: decide(*tables, moves=9)])
def test_tables_that_fail_the_proof_are_computed_from_scratch(before, start, monkeypatch):
    monkeypatch.setattr("osm_plugin.route_or_reroute.spread", lambda *_, **__: None)
    lft = before.routing.lft.copy()
    lft[0, int(WHOLE.switch_lid[1])] = 255
    broken = replace(before, routing=replace(before.routing, lft=lft))
    made = route_or_reroute(ENGINE, OPTIONS, WHOLE, start(WHOLE, broken))
    assert made.decision is Decision.FROM_SCRATCH and made.tables.proof.certified


def test_a_re_route_that_fails_is_computed_from_scratch(before, monkeypatch):
    monkeypatch.setattr("osm_plugin.route_or_reroute.reroute", lambda *_, **__: 1 // 0)
    assert route_or_reroute(ENGINE, OPTIONS, LESS, decide(LESS, before)).decision is Decision.FROM_SCRATCH
