import queue
from dataclasses import replace

import numpy as np
import pytest
from switch_tables import change_of

from osm_plugin.background import LastItemThread
from osm_plugin.route_or_reroute import options_key
from osm_plugin.state import SavedTables
from osm_plugin.transition import transition_line
from osm_plugin.transition_check import check_transition
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import TableError
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1, vls=1)


def kept(fabric, **options):
    chosen = replace(OPTIONS, **options)
    routing = ENGINES["updn"].route(fabric, chosen)
    return SavedTables(fabric, routing, prove(fabric, routing), "updn", options_key(chosen))


@pytest.fixture(scope="module")
def torus():
    return kept(generate("torus", ["4x4"]), roots=("sw0.0",))


@pytest.fixture(scope="module")
def turned(torus):
    return kept(torus.fabric, roots=("sw2.2",))


@pytest.fixture(scope="module")
def tree():
    return kept(generate("kary-ntree", ["2", "2"]))


def at_once(before, after):
    return change_of(before, after, wanted=False)


def test_no_change_is_not_worth_a_line(torus):
    same = replace(torus, routing=replace(torus.routing))
    assert at_once(torus, torus) is None
    assert at_once(same, torus) is None
    assert change_of(same, torus) is None


def test_a_loop_on_the_path_is_named(torus, turned):
    line = transition_line(at_once(torus, turned))
    assert line.startswith(("transition ordered", "transition drained"))
    assert "credit loop of" in line
    assert "entries of" in line
    assert "\n" not in line


def test_a_change_that_is_safe_says_so(tree):
    fabric = tree.fabric
    lft = tree.routing.lft.copy()
    rows = np.arange(fabric.switches)
    lid = int(np.flatnonzero(fabric.lids.endport >= 0)[0])
    leaf = int(np.flatnonzero((fabric.terminals_at > 0) & (rows != fabric.lids.switch[lid]))[0])
    up = [int(port) for port in fabric.channels.port[fabric.channels.first[leaf] : fabric.channels.first[leaf + 1]]]
    lft[leaf, lid] = next(port for port in up if port != lft[leaf, lid])
    routing = replace(tree.routing, lft=lft)
    change = change_of(tree, replace(tree, routing=routing))
    assert change.describe() == "safe to write in any order" and change.after.deferred is None
    line = transition_line(change)
    assert line == transition_line(at_once(tree, replace(tree, routing=routing)))
    assert line == ("transition any-order: no mixture of the tables has a credit loop; 1 entry of 1 LID in 1 block")


def test_each_change_is_reported_once(torus, turned):
    reported = queue.SimpleQueue()
    checker = LastItemThread("test", lambda change: reported.put(check_transition(change)))
    checker.put(at_once(torus, turned))
    line = reported.get()
    checker.put(at_once(turned, torus))
    assert line.startswith("transition ") and reported.get().startswith("transition ")
    assert reported.empty()


@pytest.mark.parametrize(
    ("problem", "expected"), [(TableError("odd"), "odd"), (ZeroDivisionError(), "bug in the worker")]
)
def test_a_change_that_cannot_be_judged_stops_nothing(torus, turned, monkeypatch, problem, expected):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr("osm_plugin.transition_check.transition_line", fail)
    assert check_transition(at_once(torus, turned)) == f"transition not judged: {expected}"
