import queue
from dataclasses import replace

import numpy as np
import pytest
from switch_tables import base_for, change_of, holding

from osm_plugin.background import LastItemThread
from osm_plugin.base import base_of
from osm_plugin.route_or_reroute import options_key
from osm_plugin.staged_update import stage_update
from osm_plugin.state import SavedTables
from osm_plugin.transition import transition_line
from osm_plugin.transition_check import check_transition
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import TableError
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1, vls=1)


def kept(fabric, engine="updn", **options):
    chosen = replace(OPTIONS, **options)
    routing = ENGINES[engine].route(fabric, chosen)
    return SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(chosen))


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
    assert ("OpenSM does not follow these steps" in line) == line.startswith("transition drained")
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


@pytest.fixture(scope="module")
def ring():
    """Return tables of a ring that need two VLs, because all routes together have a credit loop."""
    return kept(generate("ring", ["7"], cas=1), "dfsssp", vls=8)


def with_unknown_sls(before, after, *, wanted):
    """Return the change if the worker knows the LFTs ``before``, but not the SLs in use."""
    return stage_update(base_of(after.fabric, holding(before, after.fabric), after.routing), after, wanted=wanted)


@pytest.mark.parametrize("wanted", [False, True])
def test_equal_lfts_are_not_judged_if_the_sls_in_use_are_unknown(ring, wanted):
    change = with_unknown_sls(ring, ring, wanted=wanted)
    assert change.describe() == "no LFT entry changes, but the SLs in use are unknown"
    assert transition_line(change).startswith("transition not judged: the SLs in use are unknown")


def test_equal_lfts_are_not_worth_a_line_if_they_are_safe_with_any_sls(torus, tree):
    assert with_unknown_sls(torus, torus, wanted=True) is None
    several = kept(tree.fabric, vls=2)
    assert several.routing.vls == 2
    assert transition_line(with_unknown_sls(several, several, wanted=True)) is None


@pytest.mark.parametrize("wanted", [False, True])
def test_old_tables_with_unknown_sls_are_not_said_to_have_a_loop(ring, wanted):
    change = with_unknown_sls(ring, kept(ring.fabric), wanted=wanted)
    if change.schedule is None:
        assert transition_line(change).startswith("transition not judged: the SLs in use are unknown")


@pytest.mark.parametrize("same", [False, True])
def test_other_sls_of_qos_classes_are_not_judged(torus, turned, tree, same):
    before, after = (tree, tree) if same else (torus, turned)
    change = stage_update(base_for(before, after), after, wanted=True, qos_changed=True)
    assert change.describe().endswith("; the SLs of QoS classes change, which is not judged")
    assert transition_line(change).startswith("transition not judged: the SLs of QoS classes change")


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
