"""Check the rounds that the worker passes to the shim, and how the worker treats rounds that were written in part."""

import re
from dataclasses import replace

import numpy as np
import pytest
from switch_tables import base_for, change_of, holding

from osm_plugin.answer import DEFERRED
from osm_plugin.route_or_reroute import options_key
from osm_plugin.staged_update import Change, as_written, plan_number, stage_update
from osm_plugin.state import SavedTables, read_state, write_state
from osm_plugin.transition import transition_line
from routing.deadlock.proof import prove
from routing.deadlock.update_schedule import UpdateSchedule
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import TableError
from routing.faults import Fault, FaultKind, apply_faults, every_link, parse_fault
from routing.reroute import reroute
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1, vls=8)


def pulled(engine, link):
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, OPTIONS)
    baseline = SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(OPTIONS))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[link])])
    found = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
    return baseline, SavedTables(less, found.routing, found.proof, engine, baseline.options)


@pytest.fixture(scope="module")
def two():
    """Return a change of two rounds."""
    return change_of(*pulled("updn", 9))


def test_entries_of_later_rounds_are_deferred_with_their_old_port(two):
    deferred, schedule = two.after.deferred, two.schedule
    late = schedule.round > 1
    assert deferred["row"].tolist() == schedule.switch[late].tolist() and set(deferred["round"]) == {2}
    old = two.base.routing
    assert deferred["port"].tolist() == old.lft[deferred["row"], deferred["lid"]].tolist()
    first = two.after.routing.lft.copy()
    first[deferred["row"], deferred["lid"]] = deferred["port"]
    assert np.array_equal(first, next(schedule.states(old.lft, two.after.routing.lft)))
    assert late.sum() == 1
    assert two.describe() == f"written in 2 rounds of {len(late) - 1} and 1 entry"


def test_entries_to_a_lost_ca_are_counted_in_the_first_round():
    """The line states how many entries change, and the sizes of its rounds must add up to this number."""
    baseline, repaired = pulled("updn", 1)
    less = apply_faults(repaired.fabric, [parse_fault("ca0.0.0", repaired.fabric)])
    found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
    change = change_of(baseline, SavedTables(less, found.routing, found.proof, "updn", baseline.options))
    sizes = re.match(r"written in 2 rounds of (\d+) and (\d+) entr", change.describe())
    assert sum(map(int, sizes.groups())) == change.base.changed > len(change.schedule.lid)


def test_rounds_that_are_not_wanted_are_not_searched():
    change = change_of(*pulled("updn", 9), wanted=False)
    assert change.schedule is None and change.after.deferred is None
    assert change.describe() == "written at once"


def test_a_change_without_safe_rounds_says_so(two, monkeypatch):
    monkeypatch.setattr("osm_plugin.staged_update.find_schedule", lambda *_, **__: None)
    change = change_of(*pulled("updn", 9))
    assert change.describe() == "written at once, for which no safe rounds were found"
    # The line must not report rounds of a second search, because OpenSM has no order to follow.
    assert transition_line(change).startswith("transition drained: no order was found;")
    assert transition_line(replace(change, asked=False)).startswith("transition ordered: each of 2 rounds")


def test_a_change_of_sls_alone_is_not_called_unsafe():
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES["updn"].route(fabric, OPTIONS)
    old = SavedTables(fabric, routing, prove(fabric, routing), "updn", options_key(OPTIONS))
    moved = replace(routing, sl=np.where(routing.sl == 255, routing.sl, 1).astype(np.uint8))
    change = change_of(old, replace(old, routing=moved))
    assert change.describe() == "only SLs and SL-to-VL tables change, which have no rounds"


def test_packets_of_new_cas_follow_old_entries_before_the_first_round():
    """The old proof leaves out packets between switches, and such packets of two new CAs close a credit loop."""
    whole, options = generate("torus", ["4x4"], cas=1), EngineOptions(threads=1, effort=0.05, vls=1)
    present = {f"ca{place}.0" for place in ("0.0", "0.3", "1.0", "1.2", "1.3", "2.0", "2.3", "3.1")}
    fabric, now = (
        apply_faults(whole, [parse_fault(name, whole) for name in (*sorted({*whole.endport_label} - there), *lost)])
        for there, lost in ((present, ()), (present | {"ca1.1.0", "ca2.2.0"}, ("sw2.2/3",)))
    )
    routing = ENGINES["dfsssp"].route(fabric, options)
    before = SavedTables(fabric, routing, prove(fabric, routing), "dfsssp", options_key(options))
    found = reroute(ENGINES["dfsssp"], options, before, now)
    assert (before.proof.scope, found.proof.scope, found.how) == ("endports", "endports", "repaired")
    change = change_of(before, SavedTables(now, found.routing, found.proof, "dfsssp", before.options))
    assert change.schedule is None
    assert transition_line(change).startswith("transition unsafe: the old tables have a credit loop by themselves")


@pytest.fixture(scope="module")
def exchanged():
    """Return the tables before and after two cables have changed places."""
    fabric = generate("torus", ["4x4"], cas=1)
    before = SavedTables(fabric, routing := ENGINES["updn"].route(fabric, OPTIONS), prove(fabric, routing), "updn",
                         options_key(OPTIONS))  # fmt: skip
    ports = tuple(every_link(fabric)[link].ports[1] for link in (0, 9))
    now = apply_faults(fabric, [Fault(FaultKind.SWAP, "swap", ports)])
    found = reroute(ENGINES["updn"], OPTIONS, before, now, baseline=before)
    return before, replace(before, fabric=now, routing=found.routing, proof=found.proof)


def test_exchanged_cables_are_left_in_a_first_round_of_its_own(exchanged):
    change = change_of(*exchanged)
    rounds, out = len(change.schedule), np.count_nonzero(change.schedule.removed_in_round == 1)
    assert out and change.describe().startswith(f"written in {rounds} rounds of {out}")
    assert "of which the first removes entries of paths over changed cables" in change.describe()
    assert "with a wait before each but the first" in change.describe()
    line = transition_line(change)
    assert line.startswith(
        f"transition in rounds: none after the first of {rounds} has a credit loop, as packets leave"
    )
    assert line.endswith("old entries removed for a while, because cables have changed places")
    deferred = change.after.deferred
    assert np.count_nonzero(deferred["port"] == 255) >= out and (deferred["round"] > 1).all()


def test_one_round_removes_unknown_entries_and_entries_over_exchanged_cables(exchanged):
    before, after = exchanged
    base, new = base_for(before, after), after.routing.lft
    unknown = np.zeros_like(base.unknown)
    unknown[3, 1:5] = True
    lft = np.where(unknown, np.uint8(255), base.routing.lft)
    base = replace(base, unknown=unknown, routing=replace(base.routing, lft=lft), rewired=base.rewired & ~unknown)
    change = stage_update(base, after, wanted=True)
    schedule, first = change.schedule, next(states_of(change.after.deferred, new))
    assert schedule.only_removes and schedule.first_draining_round == 2 and not (schedule.removed_in_round > 1).any()
    assert (first[unknown | (base.rewired & (lft != new))] == 255).all()
    assert np.array_equal(first[first != 255], lft[first != 255])
    removed = 4 + np.count_nonzero((first != lft) & ~unknown)
    assert f"written in {len(schedule)} rounds of {removed}" in change.describe()
    assert "the first removes all unknown entries and entries of paths over changed cables" in change.describe()


def test_rounds_for_requests_alone_say_so(monkeypatch):
    """Both tables are safe for replies, but the change from one to the other is not."""

    schedule = change_of(*pulled("updn", 9)).schedule

    def forward_only(*_, replies, **__):
        return None if replies else schedule

    monkeypatch.setattr("osm_plugin.staged_update.find_schedule", forward_only)
    before, after = pulled("updn", 9)
    both = (replace(kept, proof=replace(kept.proof, strength="reversible")) for kept in (before, after))
    change = change_of(*both)
    assert change.describe().endswith(", without replies")


def test_written_entries_are_no_longer_deferred(two):
    after = two.after
    assert as_written(after, 2).deferred is None
    assert as_written(after, 0) is after and as_written(after, 1) is after
    three = replace(after, deferred=np.array([(0, 1, 2, 255), (1, 2, 3, 255)], DEFERRED))
    assert as_written(three, 2).deferred["round"].tolist() == [3]
    assert plan_number(as_written(after, 2)) == 0
    assert (
        len(
            {
                plan_number(after),
                plan_number(three),
                plan_number(replace(after, fabric=generate("torus", ["4x4"], cas=1))),
            }
        )
        == 3
    )


def test_rounds_that_were_broken_off_go_on_from_what_the_switches_hold(two):
    base = base_for(two.after, two.after)
    deferred = two.after.deferred
    assert base.sls == "published" and base.changed == len(deferred)
    assert base.routing.lft[deferred["row"], deferred["lid"]].tolist() == deferred["port"].tolist()
    assert change_of(as_written(two.after, 2), as_written(two.after, 2)) is None


@pytest.fixture(scope="module")
def drained():
    """Return a change of three rounds, of which the first two remove entries."""
    schedule = UpdateSchedule(
        switch=np.array([0, 1, 2, 3]),
        lid=np.array([5, 5, 6, 7]),
        round=np.array([3, 3, 2, 1], np.uint8),
        removed_in_round=np.array([2, 1, 0, 0], np.uint8),
        first_draining_round=3,
    )
    baseline, after = pulled("updn", 9)
    return Change(base_for(baseline, after), after, schedule, asked=True)


def states_of(deferred, after):
    """Yield the tables that the shim writes: before the first round, and after each later round."""
    lft, later = after.copy(), []
    for entry in deferred:  # in the order of rounds.c
        later.append([int(entry["round"]), entry["row"], entry["lid"], lft[entry["row"], entry["lid"]]])
        lft[entry["row"], entry["lid"]] = entry["port"]
    yield lft.copy()
    for number in range(2, 1 + max(each[0] for each in later)):
        for _, row, lid, port in (each for each in later if each[0] == number):
            lft[row, lid] = port
        yield lft.copy()


def test_removed_entries_are_listed_twice_and_have_no_port_in_between(drained, monkeypatch):
    after = drained.after
    monkeypatch.setattr("osm_plugin.staged_update._find_schedule", lambda *_, **__: (drained.schedule, True))
    change = stage_update(replace(drained.base, changed=len(drained.schedule.lid)), after, wanted=True)
    old = drained.base.routing
    wanted = drained.schedule.states(old.lft, after.routing.lft)
    reported = states_of(change.after.deferred, after.routing.lft)
    assert all(np.array_equal(*pair) for pair in zip(wanted, reported, strict=True))
    assert change.describe() == (
        "written in 3 rounds of 1, 1 and 2 entries, with a wait before the last, 2 of them removed until their round"
    )
    assert as_written(change.after, 2).deferred["round"].tolist() == [3, 3]
    assert transition_line(change).endswith(
        "2 old entries removed for a while, because no mixture of old and new tables is safe"
    )


def test_unknown_entries_are_removed_before_all_other_rounds(drained, monkeypatch):
    monkeypatch.setattr("osm_plugin.staged_update._find_schedule", lambda *_, **__: (drained.schedule, True))
    unknown = np.zeros_like(drained.base.unknown)
    unknown[3, 1:5] = True
    change = stage_update(replace(drained.base, unknown=unknown), drained.after, wanted=True)
    schedule = change.schedule
    assert (
        schedule.round.tolist() == [4, 4, 3, 2]
        and schedule.removed_in_round.tolist() == [3, 2, 0, 0]
        and schedule.first_draining_round == 2
    )
    name = drained.after.fabric.switch_name[3]
    assert change.describe().startswith(
        f"base unknown: 4 entries of 1 switch ({name}); written in 4 rounds of 4, 1, 1 and 2 entries,"
        " of which the first removes all unknown entries, with a wait before each but the first"
    )
    assert transition_line(change) == f"transition not judged: base unknown: 4 entries of 1 switch ({name})"


@pytest.mark.parametrize(
    ("first_draining_round", "expected"), [(2, "each but the first"), (3, "each from round 3 on"), (4, "the last")]
)
def test_the_log_says_before_which_rounds_packets_leave(drained, first_draining_round, expected):
    rounds = np.array([1, 2, 3, 4], np.uint8)
    schedule = replace(
        drained.schedule,
        round=rounds,
        removed_in_round=np.zeros(4, np.uint8),
        first_draining_round=first_draining_round,
    )
    assert replace(drained, schedule=schedule).describe().endswith(f", with a wait before {expected}")


def test_a_second_fault_begins_with_what_the_first_left_open(two):
    fabric = two.after.fabric
    less = fabric.without_links([int(np.unique(fabric.channels.link)[3])])
    found = reroute(ENGINES["updn"], OPTIONS, two.after, less)
    after = SavedTables(less, found.routing, found.proof, "updn", two.after.options)
    base, raw = base_for(two.after, after), holding(two.after, less).lft
    over_links = less.channels.at_port[np.arange(less.switches)[:, None], raw] >= 0
    assert np.array_equal(base.routing.lft[over_links], raw[over_links])
    assert base.changed == np.count_nonzero(raw[:, 1:] != after.routing.lft[:, 1:])


def test_the_state_keeps_what_is_held(two, tmp_path):
    path = tmp_path / "state.npz"
    write_state(path, two.after)
    assert read_state(path).deferred.tolist() == two.after.deferred.tolist()
    write_state(path, as_written(two.after, 2))
    assert read_state(path).deferred is None
    write_state(path, replace(two.after, deferred=np.array([(999, 1, 2, 255)], DEFERRED)))
    with pytest.raises(TableError, match="rounds"):
        read_state(path)


@pytest.fixture(scope="module", params=[9, 3])
def with_a_dead_ca(request):
    """Return tables before and after the loss of a link and of the CA with the highest LID."""
    baseline, _ = pulled("updn", request.param)
    fabric = baseline.fabric
    last = int(np.argmax(fabric.endport_lid))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[request.param]), int(fabric.endport_link[last])])
    found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
    return baseline, SavedTables(less, found.routing, found.proof, "updn", baseline.options)


def test_entries_towards_a_dead_ca_are_taken_out_in_the_first_round(with_a_dead_ca):
    before, after = with_a_dead_ca
    change = change_of(before, after)
    base, gone = change.base, len(after.fabric.lids)
    assert len(base.fabric.lids) == gone + 1 == before.routing.lft.shape[1]
    assert (change.schedule.round[change.schedule.lid == gone] == 1).all()
    assert (change.schedule.lid == gone).sum() == np.count_nonzero(base.routing.lft[:, gone] != 255) > 0
    *_, last = change.schedule.states(base.routing.lft, base.new.lft)
    assert np.array_equal(last, base.new.lft)
    assert change.after.deferred is None or (change.after.deferred["lid"] < gone).all()
    assert base.changed == np.count_nonzero(before.routing.lft != base.new.lft)


def test_unknown_entries_of_a_dead_ca_are_not_deferred(with_a_dead_ca):
    """Another round comes first, and no deferred entry is for a LID that the answer does not have."""
    before, after = with_a_dead_ca
    tables = holding(before, after.fabric)
    known = tables.known.copy()
    known[0] = False
    change = stage_update(base_for(before, after, replace(tables, known=known)), after, wanted=True)
    gone = len(after.fabric.lids)
    assert (change.schedule.round[change.schedule.lid == gone] == 1).all()
    assert (change.after.deferred["lid"] < gone).all() and change.after.deferred["round"].min() == 2
