"""Check the tables of strategies: some fault needs each row, and the better one of two candidates is taken."""

from dataclasses import replace

import numpy as np
import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.fabric_files import read_fabric
from routing.publish import Demand, admit
from routing.reroute import Published, Stability, choose, outcome, reroute
from routing.reroute.budget import Budget
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.strategies import fallbacks
from routing.topologies import generate

FALLBACKS = {
    "prune_dependencies": ("random-24-3-faults", "nue", 2, 17),
    "trace_dependencies": ("random-24-3-faults", "nue", 2, 22),
    "use_sls_by_source": ("random-24-3-faults", "nue", 2, 22),
    "trace_endports": ("lmc-2", "nue", 1, 3),
    "trace_without_failed": ("6x6", "lash", "auto", 62),
}
STEPS = {
    "repair_in_previous_order": ("random-24-3-faults", "updn", 1, 13),
    "repair_whole_subtrees": ("6x6", "dfsssp", 2, 71),
    "change_fewest_entries": ("dragonfly-4-2-2", "lash", "auto", 22),
    "keep_sls": ("5x5", "dfsssp", 4, 2),
}


def without(name, engine, vls, link):
    """Re-route the tables of a fixture, or of a torus of this size, after the loss of a link."""
    fabric = read_fabric(FIXTURES[name].path) if name in FIXTURES else generate("torus", [name], cas=1)
    # With a partition, nue searches dependencies on trees, too.
    options = EngineOptions(threads=1, effort=0.1, vls=vls, partition="metis" if engine == "nue" else None)
    routing = ENGINES[engine].route(fabric, options)
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = fabric.without_links([link])
    found = reroute(ENGINES[engine], options, baseline, less, stability=Stability.FULL, baseline=baseline)
    assert prove(less, found.routing, threads=1).certified
    return found


@pytest.mark.parametrize("name", FALLBACKS)
def test_other_tables_without_a_fallback(name, monkeypatch):
    found = without(*FALLBACKS[name])
    rows = tuple(row for row in fallbacks.FALLBACKS if row.step.__name__ != name)
    assert len(rows) < len(fallbacks.FALLBACKS)
    monkeypatch.setattr(fallbacks, "FALLBACKS", rows)
    monkeypatch.setattr(choose, "STEPS", tuple(row for row in choose.STEPS if row.strategy.__name__ != "keep_sls"))
    assert not np.array_equal(found.routing.lft, without(*FALLBACKS[name]).routing.lft)


@pytest.mark.parametrize("name", STEPS)
def test_other_tables_without_a_strategy(name, monkeypatch):
    found = without(*STEPS[name])
    rows = tuple(row for row in choose.STEPS if row.strategy.__name__ != name)
    assert len(rows) == len(choose.STEPS) - 1
    monkeypatch.setattr(choose, "STEPS", rows)
    assert not np.array_equal(found.routing.lft, without(*STEPS[name]).routing.lft)


def test_every_row_of_the_tables_is_tested():
    # Other modules test these: test_reroute the second one, with engines that promise nothing, and test_balance the
    # third one.
    others = {"repair_tables", "repair_without_certificate", "move_further", "catch_up"}
    assert {row.step.__name__ for row in fallbacks.FALLBACKS} == set(FALLBACKS)
    assert {row.strategy.__name__ for row in choose.STEPS} == set(STEPS) | others


def test_the_scope_counts_before_the_number_of_changes():
    found = without(*STEPS["change_fewest_entries"])
    few, more = (Candidate(replace(found, changed=changed), missing=1, restored=0) for changed in (3, 4))
    tables = found.tables
    narrow_tables = admit(tables.fabric, tables.routing, replace(tables.proof, scope="endports"), Demand(strength=None))
    narrow = Candidate(replace(few.found, tables=narrow_tables), missing=1, restored=0)
    assert few.better_of(more) is more.better_of(few) is few
    assert narrow.better_of(more) is more.better_of(narrow) is more
    assert choose.Choice().after(more).after(Refusal("none")).after(few).best is few
    assert choose.Choice().after(Refusal("one")).after(Refusal("other", splits=True)).refusal == Refusal("one")


@pytest.mark.parametrize(
    ("changed", "restored", "balanced", "too_many"),
    [(6, 0, 0, False), (7, 0, 0, True), (7, 1, 0, False), (8, 1, 1, False)],
)
def test_restored_and_balanced_entries_do_not_count_as_changes(changed, restored, balanced, too_many):
    found = replace(without(*STEPS["change_fewest_entries"]), broken=1, changed=changed)
    candidate = Candidate(found, missing=2, restored=restored, balanced=balanced)
    assert candidate.changes_too_many(Budget(changes=3)) == too_many


def test_few_changes_are_never_too_many_in_large_tables(monkeypatch):
    found = replace(without(*STEPS["keep_sls"]), broken=1)
    few, more = (Candidate(replace(found, changed=changed), missing=1, restored=0) for changed in (256, 257))
    assert few.changes_too_many(Budget())
    monkeypatch.setattr(outcome, "LARGEST_SMALL_TABLE", 0)
    assert not few.changes_too_many(Budget()) and more.changes_too_many(Budget())


def test_reports_have_the_keys_of_the_figures_that_were_counted():
    assert RerouteStatistics().counts() == {}
    figures = RerouteStatistics(restored=0, displaced=3, fewest=True, moved_afterwards=2).plus(visits=5).plus(visits=2)
    assert figures.counts() == {"restored": 0, "displaced": 3, "visits": 7, "fewest": 1, "moved_afterwards": 2}
    assert "traces" not in figures.counts()
