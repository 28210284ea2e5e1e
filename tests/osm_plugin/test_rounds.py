"""Rounds as the worker hands them to the shim, and what it makes of how far they got."""

from dataclasses import replace

import numpy as np
import pytest

from osm_plugin.answer import HELD
from osm_plugin.plan import options_key
from osm_plugin.rounds import Change, as_written, in_rounds, in_switches, plan_number
from osm_plugin.state import Kept, read_state, write_state
from osm_plugin.transition import transition_line
from routing.deadlock.proof import prove
from routing.deadlock.stages import Stages
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import TableError
from routing.reroute import reroute
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1, vls=8)


def pulled(engine, link):
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, OPTIONS)
    home = Kept(fabric, routing, prove(fabric, routing), engine, options_key(OPTIONS))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[link])])
    found = reroute(ENGINES[engine], OPTIONS, home, less, home=home)
    return home, Kept(less, found.routing, found.proof, engine, home.options)


@pytest.fixture(scope="module")
def two():
    """A change of two rounds."""
    return in_rounds(*pulled("updn", 9), wanted=True)


def test_what_is_held_back_is_all_of_later_rounds_with_the_old_port(two):
    held, stages = two.after.held, two.stages
    late = stages.round > 1
    assert held["row"].tolist() == stages.switch[late].tolist() and set(held["round"]) == {2}
    old = in_switches(two.before, two.after.fabric)
    assert held["port"].tolist() == old.lft[held["row"], held["lid"]].tolist()
    first = two.after.routing.lft.copy()
    first[held["row"], held["lid"]] = held["port"]
    assert np.array_equal(first, next(stages.states(old.lft, two.after.routing.lft)))
    assert late.sum() == 1
    assert two.describe() == f"written in 2 rounds of {len(late) - 1} and 1 entry"


def test_rounds_that_are_not_wanted_are_not_looked_for():
    change = in_rounds(*pulled("updn", 9), wanted=False)
    assert change.stages is None and change.after.held is None
    assert change.describe() == "written at once"


def test_a_change_without_safe_rounds_says_so(two, monkeypatch):
    monkeypatch.setattr("osm_plugin.rounds.stage", lambda *_, **__: None)
    change = in_rounds(*pulled("updn", 9), wanted=True)
    assert change.describe() == "written at once, for which no safe rounds were found"


def test_rounds_for_requests_alone_say_so(two, monkeypatch):
    """Both tables are safe for replies, and the way from one to the other is not."""

    def forward_only(*_, replies, **__):
        return None if replies else two.stages

    monkeypatch.setattr("osm_plugin.rounds.stage", forward_only)
    both = (replace(kept, proof=replace(kept.proof, strength="reversible")) for kept in (two.before, two.after))
    change = in_rounds(*both, wanted=True)
    assert change.describe().endswith(", replies aside")


def test_what_all_switches_have_is_no_longer_held(two):
    after = two.after
    assert as_written(after, 2).held is None
    assert as_written(after, 0) is after and as_written(after, 1) is after
    three = replace(after, held=np.array([(0, 1, 2, 255), (1, 2, 3, 255)], HELD))
    assert as_written(three, 2).held["round"].tolist() == [3]
    assert plan_number(as_written(after, 2)) == 0
    assert len({plan_number(after), plan_number(three), plan_number(replace(after, fabric=two.before.fabric))}) == 3


def test_rounds_that_were_broken_off_begin_again_from_entries_that_lead_nowhere(two):
    again = in_rounds(two.after, two.after, wanted=True)
    held = again.after.held
    assert sorted(held[["row", "lid"]].tolist()) == sorted(two.after.held[["row", "lid"]].tolist())
    assert set(held["port"]) == {255} and held["round"].min() == 2
    assert again.describe().startswith("written in 2 rounds of 0 and ")
    assert in_rounds(as_written(two.after, 2), as_written(two.after, 2), wanted=True) is None


@pytest.fixture(scope="module")
def drained():
    """A change of three rounds, with entries that are taken out in the second one of four."""
    stages = Stages(
        switch=np.array([0, 1, 2, 3]),
        lid=np.array([5, 5, 6, 7]),
        round=np.array([3, 3, 2, 1], np.uint8),
        off=np.array([2, 1, 0, 0], np.uint8),
        wait_from=3,
    )
    home, after = pulled("updn", 9)
    return Change(home, after, stages, asked=True)


def states_of(held, after):
    """What the shim writes: the tables before the first round, then after each."""
    lft, later = after.copy(), []
    for entry in held:  # as in rounds.c
        later.append([int(entry["round"]), entry["row"], entry["lid"], lft[entry["row"], entry["lid"]]])
        lft[entry["row"], entry["lid"]] = entry["port"]
    yield lft.copy()
    for number in range(2, 1 + max(each[0] for each in later)):
        for _, row, lid, port in (each for each in later if each[0] == number):
            lft[row, lid] = port
        yield lft.copy()


def test_what_is_taken_out_is_there_twice_and_leads_nowhere_in_between(drained, monkeypatch):
    before, after = drained.before, drained.after
    monkeypatch.setattr("osm_plugin.rounds.find_stages", lambda *_, **__: (drained.stages, True))
    change = in_rounds(before, after, wanted=True)
    old = in_switches(before, after.fabric)
    wanted = drained.stages.states(old.lft, after.routing.lft)
    told = states_of(change.after.held, after.routing.lft)
    assert all(np.array_equal(*pair) for pair in zip(wanted, told, strict=True))
    assert change.describe() == (
        "written in 3 rounds of 1, 1 and 2 entries, with a wait before the last, 2 of them out of use for so long"
    )
    assert as_written(change.after, 2).held["round"].tolist() == [3, 3]
    assert in_switches(change.after, after.fabric).lft[0, 5] == 255
    assert transition_line(change).endswith("2 old entries out of use for a while, as no mixture is safe")


def test_rounds_that_come_after_another_are_all_one_later(drained, monkeypatch):
    monkeypatch.setattr("osm_plugin.rounds.find_stages", lambda *_, **__: (drained.stages, True))
    after = replace(drained.after, held=np.array([(0, 5, 2, 255)], HELD))
    stages = in_rounds(after, after, wanted=True).stages
    assert stages.round.tolist() == [4, 4, 3, 2] and stages.off.tolist() == [3, 2, 0, 0] and stages.wait_from == 4


@pytest.mark.parametrize(
    ("wait_from", "told"), [(2, "each but the first"), (3, "each from round 3 on"), (4, "the last")]
)
def test_it_says_before_which_rounds_packets_leave(drained, wait_from, told):
    rounds = np.array([1, 2, 3, 4], np.uint8)
    stages = replace(drained.stages, round=rounds, off=np.zeros(4, np.uint8), wait_from=wait_from)
    assert replace(drained, stages=stages).describe().endswith(f", with a wait before {told}")


def test_a_second_fault_begins_with_what_the_first_left_open(two):
    fabric = two.after.fabric
    less = fabric.without_links([int(np.unique(fabric.channels.link)[3])])
    found = reroute(ENGINES["updn"], OPTIONS, two.after, less, home=two.before)
    change = in_rounds(two.after, Kept(less, found.routing, found.proof, "updn", two.after.options), wanted=True)
    held, old = change.after.held, in_switches(two.after, less)
    assert held["round"].min() == 2
    first = change.after.routing.lft.copy()
    first[held["row"], held["lid"]] = held["port"]
    assert np.array_equal(first, old.lft)


def test_the_state_keeps_what_is_held(two, tmp_path):
    path = tmp_path / "state.npz"
    write_state(path, two.after)
    assert read_state(path).held.tolist() == two.after.held.tolist()
    write_state(path, as_written(two.after, 2))
    assert read_state(path).held is None
    write_state(path, replace(two.after, held=np.array([(999, 1, 2, 255)], HELD)))
    with pytest.raises(TableError, match="rounds"):
        read_state(path)
