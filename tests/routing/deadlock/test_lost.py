"""Check traffic towards LIDs that no port has any more, and towards LIDs that are cut off."""

from dataclasses import replace

import numpy as np
import pytest
from ghosts import NEW_ORDER, OLD_ORDER, ring, up_down

from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.transition import prove_transition
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute.installed import installed
from routing.topologies import generate


@pytest.fixture
def ghosts_of_the_gone():
    """Return a transition after the loss of the CAs at switches 1 and 4.

    The old entries towards the lost CAs and the new entries of all other LIDs close a loop.
    """
    fabric = ring(0)
    old, new = up_down(fabric, OLD_ORDER), up_down(fabric, NEW_ORDER)
    lids = fabric.lids
    outer = np.isin([fabric.switch_name[s] if s >= 0 else "" for s in lids.switch], ["sw1", "sw4"])
    for tables in (old, new):
        tables.lft[:, outer & (lids.port == 0)] = 255  # no packets are sent to these switches
    lost = [e for e in range(fabric.endports) if outer[fabric.endport_lid[e]]]
    less = fabric.without_links(fabric.endport_link[lost])
    count = len(less.lids)
    lft = np.where(less.lids.switch >= 0, new.lft[:, :count], 255).astype(np.uint8)
    return installed(old, fabric, replace(new, lft=lft, sl=new.sl[:count]), less)


def test_old_entries_towards_lids_that_are_gone_close_a_loop(ghosts_of_the_gone):
    sides = ghosts_of_the_gone
    found = prove_transition(sides.fabric, sides.old, sides.new, lost=sides.lost)
    assert found.verdict == "ordered"
    assert (found.removed, found.entries) == (8, 10)
    assert "to ca4 (LID 8, gone), SL 0, by the old entry" in "\n".join(found.describe())
    *_, last = found.plan.states(sides.old.lft, sides.new.lft)
    assert np.array_equal(last, sides.new.lft)
    first = next(found.plan.rounds)
    # entries towards lost LIDs are removed first, and then all other entries can be written
    assert set(first.lid.tolist()) == {5, 8}


def test_rounds_count_what_is_gone(ghosts_of_the_gone):
    sides = ghosts_of_the_gone
    schedule = find_schedule(sides.fabric, sides.old, sides.new, lost=sides.lost)
    assert len(schedule) > 1
    assert set(schedule.round[np.isin(schedule.lid, [5, 8])].tolist()) == {1}
    *_, last = schedule.states(sides.old.lft, sides.new.lft)
    assert np.array_equal(last, sides.new.lft)


def test_after_a_split_the_plan_ends_at_the_new_tables():
    fabric = generate("torus", ["6"], cas=1)
    switch_links = np.unique(fabric.channels.link)
    less = fabric.without_links(switch_links[[0, 3]])
    assert less.component.max() == 1
    engine, options = ENGINES["updn"], EngineOptions(effort=0)
    old, new = engine.route(fabric, options), engine.route(less, options)
    sides = installed(old, fabric, new, less)
    found = prove_transition(sides.fabric, sides.old, sides.new, lost=sides.lost)
    assert found.safe
    part = less.component
    cut = (part[:, None] != part[less.lids.switch]) & (less.lids.switch >= 0)
    assert found.removed == np.count_nonzero(cut & (old.lft != 255)) > 0
    assert found.entries == np.count_nonzero(old.lft != new.lft)
    *_, last = found.plan.states(sides.old.lft, sides.new.lft)
    assert np.array_equal(last, new.lft)
