"""Check that re-routes keep the SLs of all packets if no safe rounds lead to tables with other SLs."""

from dataclasses import replace

import numpy as np
import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, parse_fault
from routing.formats.fabric_files import read_fabric
from routing.reroute import Published, Stability, choose, context, reroute
from routing.reroute.installed import installed
from routing.reroute.strategies import fallbacks, further_moves
from routing.topologies import generate

# In the first case, the repair kernel finds paths with the old SLs.  In the second case, paths to other LIDs have to
# move.
CASES = [
    (("5x5", 1, "dfsssp", 4), 2),
    (("6x6x6", 2, "nue", 8), 81),
]


def changed(tables, link):
    """Re-route after the loss of a link, and after its return.  Return both changes."""
    size, cas, name, vls = tables
    fabric, options = generate("torus", [size], cas=cas), EngineOptions(threads=1, vls=vls)
    routing = ENGINES[name].route(fabric, options)
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = fabric.without_links([link])
    lost = reroute(ENGINES[name], options, baseline, less, baseline=baseline)
    now = Published(less, lost.routing, lost.proof)
    back = reroute(ENGINES[name], options, now, fabric, baseline=baseline)
    return (baseline, Published(less, lost.routing, lost.proof)), (now, Published(fabric, back.routing, back.proof))


def schedule(before, after):
    sides = installed(before.routing, before.fabric, after.routing, after.fabric)
    return find_schedule(sides.fabric, sides.old, sides.new, lost=sides.lost, threads=1)


@pytest.mark.parametrize(("tables", "link"), CASES)
def test_safe_rounds_lead_to_the_tables_after_a_loss_and_back(tables, link):
    for before, after in changed(tables, link):
        assert prove(after.fabric, after.routing, threads=1).certified
        assert np.array_equal(before.routing.sl, after.routing.sl)
        assert schedule(before, after) is not None


def test_without_the_step_no_safe_rounds_exist(monkeypatch):
    monkeypatch.setattr(choose, "STEPS", tuple(row for row in choose.STEPS if row.strategy.__name__ != "keep_sls"))
    for before, after in changed(*CASES[0]):
        assert not np.array_equal(before.routing.sl, after.routing.sl)
        assert schedule(before, after) is None


def test_only_a_move_of_other_paths_completes_the_columns(monkeypatch):
    rows = tuple(row for row in fallbacks.KEEPING_SLS if row.step.__name__ != "move_others_away")
    monkeypatch.setattr(fallbacks, "KEEPING_SLS", rows)
    for before, after in changed(*CASES[1]):
        assert schedule(before, after) is None


def test_large_tables_get_other_sls_without_further_searches_if_many_columns_fail(monkeypatch):
    for module in (context, further_moves):
        monkeypatch.setattr(module, "LARGEST_SMALL_TABLE", 0)
    monkeypatch.setattr(context, "LEAST_FAILED", 1)
    monkeypatch.setattr(context, "PART_FAILED", 1 << 20)
    steps = tuple(replace(row, step=None) for row in fallbacks.KEEPING_SLS)  # A call would raise a TypeError.
    monkeypatch.setattr(fallbacks, "KEEPING_SLS", steps)
    monkeypatch.setattr(further_moves, "_is_worth_a_search", None)
    fabric, options = generate("torus", ["6x6x6"], cas=2), EngineOptions(threads=1, vls=8)
    routing = ENGINES["nue"].route(fabric, options)
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    lost = reroute(ENGINES["nue"], options, baseline, fabric.without_links([81]), baseline=baseline)
    assert lost.proof.certified and lost.statistics.changed_sls


def test_other_sls_are_used_if_the_old_sls_cost_much_capacity():
    fabric, options = read_fabric(FIXTURES["random-24-3-faults"].path), EngineOptions(threads=1, effort=0.1)
    routing = ENGINES["updn"].route(fabric, options)
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = apply_faults(fabric, [parse_fault("sw4/4", fabric)])
    lost = reroute(ENGINES["updn"], options, baseline, less, stability=Stability.FULL, baseline=baseline)
    assert lost.kept > 0.85  # would be 0.68 with all SLs kept
    assert prove(less, lost.routing, threads=1).certified
