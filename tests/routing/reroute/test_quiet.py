"""Check steps of rebalancing that release dependencies, vacate other dependencies, and lead back to the baseline."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from rebalance_cases import OPTIONS, published, share

from routing.cdg.certificate import check_certificate
from routing.deadlock.schedule_search import find_schedule
from routing.engines import ENGINES
from routing.faults import apply_faults, every_switch, parse_fault
from routing.quality import channel_loads
from routing.reroute import Published, Stability, precompute, reroute, spread
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.blocked_moves import BlockedMoves
from routing.reroute.context import Request, RerouteContext
from routing.reroute.rebalance import Utilisation, in_frame
from routing.reroute.strategies import quiet
from routing.reroute.strategies.steps import NOTHING
from routing.reroute.translate import translate_tables
from routing.reroute.vacate import TablesInUse, edge_usage
from routing.reroute.values import outside_baseline
from routing.topologies import generate


def steps(engine, before, baseline, most, count):
    """Yield the result and the tables of each step.

    Check that each step is certified, and changes entries or SLs, but at most ``most`` entries.  Also check that safe
    rounds lead from the tables of the previous step to its tables.
    """
    for _ in range(count):
        step = spread(engine, OPTIONS, before, most=most, baseline=baseline)
        if step is None or step.how == "unchanged":
            return
        after = Published(before.fabric, step.routing, step.proof)
        check_certificate(before.fabric, step.routing, step.proof.certificate, threads=1)
        if step.how != "baseline":
            changed = np.count_nonzero(step.routing.lft != before.routing.lft)
            assert changed <= most
            assert changed or not np.array_equal(step.routing.sl, before.routing.sl)
            replies = before.proof.strength == step.proof.strength == "reversible"
            assert find_schedule(before.fabric, before.routing, step.routing, replies=replies, threads=1) is not None
        before = after
        yield step, after


@pytest.fixture(scope="module")
def repaired():
    """Return three tables for a 4x5 torus: its baseline, the tables repaired after ten links were lost at once, and
    tables from scratch.
    """
    fabric, engine = generate("torus", ["4x5"], cas=2), ENGINES["updn"]
    baseline = published(fabric, "updn")
    less = fabric.without_links(np.unique(fabric.channels.link)[::4].tolist())
    found = reroute(engine, OPTIONS, baseline, less, baseline=baseline)
    return baseline, Published(less, found.routing, found.proof), published(less, "updn")


def test_a_step_avoids_dependencies_that_paths_cannot_leave(monkeypatch):
    """Each of the first four sets of dependencies contains a dependency that some path cannot leave."""
    fabric, engine = generate("torus", ["4x4"], cas=2), ENGINES["updn"]
    baseline, less = published(fabric, "updn"), apply_faults(fabric, every_switch(fabric)[5:6])
    found = reroute(engine, OPTIONS, baseline, less, stability=Stability.FULL, baseline=baseline)
    tables = Published(less, found.routing, found.proof)
    monkeypatch.setattr(quiet, "TRIALS", ((4, 10**9),))
    both = [after for _, after in steps(engine, tables, baseline, 60, 12)]
    monkeypatch.setattr(BlockedMoves, "avoiding", lambda blocked, _: replace(blocked, usage=10**9 * blocked.usage))
    one = [after for _, after in steps(engine, tables, baseline, 60, 12)]
    assert len(one) < len(both)
    assert share((one or [tables])[-1]) < 0.95 * share(both[-1])


def test_steps_pass_what_the_dependencies_of_the_tables_allow(repaired):
    baseline, tables, fresh = repaired
    found = list(steps(ENGINES["updn"], tables, baseline, 100, 20))
    assert any(step.statistics.vacated for step, _ in found)
    assert found[-1][1].left_baseline
    assert share(tables) < 0.8 * share(fresh)
    assert share(found[-1][1]) > 0.97 * share(fresh)


def test_no_step_takes_all_of_its_moves_back():
    """An earlier version, with a limit of eight entries, returned to the tables from which it had started."""
    fabric, engine = generate("kautz", ["3", "2"]), ENGINES["updn"]
    baseline, less = published(fabric, "updn"), apply_faults(fabric, [parse_fault("sw0.3/6 - sw2.0/6", fabric)])
    found = reroute(engine, OPTIONS, baseline, less, baseline=baseline)
    assert list(steps(engine, Published(less, found.routing, found.proof), baseline, 8, 12))


def test_steps_shorten_paths_after_several_faults(monkeypatch):
    """The total load falls in every step.  It falls further if a move may raise the load of other channels for a
    while.
    """
    fabric, engine, ends = generate("torus", ["4x5"], cas=2), ENGINES["nue"], []
    baseline = now = published(fabric, "nue")
    links = np.random.default_rng(1).permutation(np.unique(fabric.channels.link))
    for lost in (*(slice(0, count) for count in range(1, 7)), slice(3, 6)):
        less = fabric.without_links(sorted(links[lost].tolist()))
        found = reroute(engine, OPTIONS, now, less, baseline=baseline)
        now = Published(less, found.routing, found.proof)
    for name in ("_local", "prepare_sls", "_vacated"):
        monkeypatch.setattr(quiet, name, lambda *_, **__: NOTHING)
    for overshoot in (0, 10):
        monkeypatch.setattr(quiet, "OVERSHOOT", overshoot)
        series = [now, *(after for _, after in steps(engine, now, baseline, 60, 20))]
        loads = [channel_loads(less, tables.routing, threads=1) for tables in series]
        total, peak = [float(load.sum()) for load in loads], [float(load.max()) for load in loads]
        assert all(later <= 0.999 * sooner for sooner, later in pairwise(total))
        assert peak == sorted(peak, reverse=True)
        ends.append((total[-1], peak[-1]))
    assert ends[1][0] < 0.97 * ends[0][0]
    assert ends[1][1] < ends[0][1]


def test_tables_with_fewer_entries_than_the_limit_are_not_rebalanced_without_a_gain():
    """An earlier version returned these tables as a step, so that the plugin asked for sweeps without end."""
    fabric = generate("mesh", ["3x3"], cas=1)
    baseline = published(fabric, "updn")
    less = fabric.without_links(np.unique(fabric.channels.link)[:1].tolist())
    found = reroute(ENGINES["updn"], OPTIONS, baseline, less, stability=Stability.FRESH, baseline=baseline)
    now = Published(less, found.routing, found.proof)
    assert spread(ENGINES["updn"], OPTIONS, now, most=now.routing.lft.size, baseline=baseline) is None


def test_steps_lead_back_to_the_baseline(repaired):
    baseline, tables, _ = repaired
    engine, whole = ENGINES["updn"], baseline.fabric
    *_, (_, tables) = steps(engine, tables, baseline, 100, 2)
    found = reroute(engine, OPTIONS, tables, whole, baseline=baseline)
    assert found.how == "unchanged"
    before = Published(whole, found.routing, found.proof)
    for _, after in steps(engine, before, baseline, 500, 40):
        before = after
        if before.routing is baseline.routing:
            break
    assert np.array_equal(before.routing.lft, baseline.routing.lft)
    assert np.array_equal(before.routing.sl, baseline.routing.sl)
    assert not before.left_baseline


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash"])
def test_other_tables_lead_to_the_baseline_in_few_steps(engine):
    """The tables in force were computed from scratch for a fabric with fewer links, so most of their entries differ.

    Each step restores entries up to its limit, or SLs.  Only a step that moves paths can increase the number of entries
    that differ, and the next step decreases the number below the number before the moves.
    """
    fabric, most = generate("torus", ["4x4"], cas=2), 40
    baseline = published(fabric, engine)
    less = published(fabric.without_links(np.unique(fabric.channels.link)[::5].tolist()), engine)
    now = reroute(ENGINES[engine], OPTIONS, less, fabric, stability=Stability.FULL)
    assert now.how == "unchanged"
    before = Published(fabric, outside_baseline(now.routing), now.proof)
    differing, reasons = [int(np.count_nonzero(before.routing.lft != baseline.routing.lft))], []
    for step, after in steps(ENGINES[engine], before, baseline, most, 60):
        differing.append(int(np.count_nonzero(after.routing.lft != baseline.routing.lft)))
        reasons.append("baseline" if step.how == "baseline" else step.reason.split()[0])
        if step.how == "baseline":
            break
    assert reasons[-1] == "baseline"
    assert np.array_equal(after.routing.sl, baseline.routing.sl)
    assert reasons.count("entries") <= 10 + 1.5 * differing[0] / most
    for number, reason in enumerate(reasons[:-1]):
        if reason == "paths":
            assert differing[number + 2] < differing[number]
        else:
            assert differing[number + 1] < differing[number] or reason == "SLs"


def test_unmarked_tables_return_to_the_baseline_at_once(repaired):
    baseline, tables, _ = repaired
    found = reroute(ENGINES["updn"], OPTIONS, tables, baseline.fabric, baseline=baseline)
    assert found.how == "baseline"


def test_cuts_avoid_the_paths_of_lids_that_are_stuck(repaired):
    """No set contains a dependency on a path to these LIDs.  Without this rule, some sets do."""
    _, tables, _ = repaired
    lft, channels = tables.routing.lft, tables.fabric.channels
    frame = BaseNumbering.of(tables.fabric, [tables.fabric])
    load = in_frame(frame, tables.fabric, tables.load)
    translated = translate_tables(tables.routing, tables.fabric, tables.fabric)
    request = Request(ENGINES["updn"], OPTIONS, tables, tables.fabric, Stability.BALANCED, None, translated)
    context = RerouteContext.of(request, precompute(tables, None))
    rules = context.service_levels(frame, tables.proof.certificate, tables.routing)
    in_use = TablesInUse(frame, rules, tables.routing, tables.proof.cdg, Utilisation(load, 0))
    blocked = BlockedMoves.of(in_use)
    lids = np.flatnonzero(tables.fabric.lids.endport >= 0)[::5]
    used = set()
    for lid in lids.tolist():
        for switch in range(tables.fabric.switches):
            path = [channels.at_port[switch, lft[switch, lid]]]
            while path[-1] >= 0 and channels.dst[path[-1]] != tables.fabric.lids.switch[lid]:
                path.append(channels.at_port[channels.dst[path[-1]], lft[channels.dst[path[-1]], lid]])
            used.update(int(channels.edges.first[a] + b - channels.edges.after[a]) for a, b in pairwise(path))
    most = lft.size - 1

    def hits(moves):
        return [used & set(np.flatnonzero(room.vls).tolist()) for room in moves.rooms(most, 50)]

    assert any(hits(blocked))
    assert hits(blocked.avoiding(lids))
    assert not any(hits(blocked.avoiding(lids)))


def test_usage_of_edges_by_walking(repaired):
    _, tables, _ = repaired
    fabric, lft, walked = tables.fabric, tables.routing.lft, Counter()
    channels, lids = fabric.channels, fabric.lids
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        for switch in range(fabric.switches):
            if switch == lids.switch[lid] or (first := int(channels.at_port[switch, lft[switch, lid]])) < 0:
                continue
            middle = int(channels.dst[first])
            if middle != lids.switch[lid]:
                walked[first, int(channels.at_port[middle, lft[middle, lid]])] += 1
    usage = edge_usage(BaseNumbering.of(fabric, [fabric]), lft)
    before, after = channels.edges.channels()
    numbers = channels.edges.numbers()
    assert {(int(before[i]), int(after[i])): int(usage[numbers[i]]) for i in np.flatnonzero(usage[numbers])} == walked
