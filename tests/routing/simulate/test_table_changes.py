"""Changes from the tables of one engine to those of another, while traffic runs."""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_files import refusal
from sim_random import any_flow
from slow_compare import assert_equal, slow_twin

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.simulate.mechanisms.hold import Hold
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Remedies, Switching
from routing.simulate.run import Simulation
from routing.simulate.table_changes import write_action
from routing.simulate.table_writes import METHODS, TableChange, aligned, vls_of
from routing.simulate.traffic import Traffic
from routing.topologies import generate

FILE = """
title = "t"
[fabric]
generator = "ring:4,cas=1"
[routing]
engine = "updn"
vls = 1
[traffic]
pattern = "uniform"
[run]
until = 300
[[case]]
name = "c"
change = { how = "one by one", at = 100, every = 10, engine = "nue", vls = 1 }
expect = { outcome = "progress" }
"""


def ring_change(size=6, every=50, old="updn", new="nue", vls=(1, 1)):
    fabric = generate("ring", [str(size)], cas=1)
    tables = (
        ENGINES[name].route(fabric, EngineOptions(vls=count, threads=1, effort=0.05))
        for name, count in zip((old, new), vls, strict=True)
    )
    return TableChange(fabric, *aligned(fabric, *tables), every, range(size))


def write_slowly(slow, write):
    if write.sl2vl is not None:
        slow.sl2vl = write.sl2vl
    if write.lft is not None:
        slow.lft = write.lft
    if write.sl is not None:
        slow.net = replace(slow.net, sl=np.atleast_2d(write.sl))
    if write.held is not None:
        slow.command(0, np.flatnonzero(write.held).tolist())


@examples(6)
@given(st.integers(0, 1 << 30))
def test_every_method_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    engines = rng.choice([("updn", "nue", (1, 1)), ("nue", "dfsssp", (2, 4)), ("lash", "updn", (2, 1))])
    change = ring_change(4, rng.choice([10, 30]), *engines)
    method = rng.choice(list(METHODS))
    try:
        writes = METHODS[method](change)
    except OptionError:
        assert method in {"rounds", "double scheme"}
        return
    count = vls_of(change.old, change.new, writes)
    network = build_network(change.fabric, change.old, Timing(1.0, 1, 0, 1.0, 4), vls=count)
    traffic = Traffic(tuple(any_flow(rng, change.fabric) for _ in range(rng.randint(3, 8))), 128)
    behaviour = Switching(Arbitration(rng.randrange(3)), seed=rng.randrange(99)), Remedies()
    fast = Simulation(network, traffic, *behaviour, [Hold()])
    slow = slow_twin(network, traffic, *behaviour, [Hold()])
    for write in writes:
        fast.run(max(fast.now, 30 + write.after))
        slow.run(fast.now)
        assert_equal(fast, slow)
        write_action(write)(fast)
        write_slowly(slow, write)
    fast.run(200)
    slow.run(fast.now)
    assert_equal(fast, slow)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_ends_with_the_new_tables(method):
    change = ring_change()
    writes = METHODS[method](change)
    np.testing.assert_array_equal(writes[-1].lft, change.new.lft)
    np.testing.assert_array_equal(writes[-1].sl, change.new.service_levels.matrix)
    assert [write.after for write in writes] == sorted(write.after for write in writes)
    held = [write.held for write in writes if write.held is not None]
    assert not held or not held[-1].any()


def test_rounds_write_one_switch_at_a_time_and_no_entry_that_is_new():
    change = ring_change()
    state = change.old.lft
    for write in change.rounds():
        rows = np.flatnonzero((write.lft != state).any(axis=1))
        assert len(rows) == 1
        changed = write.lft != state
        assert (np.isin(write.lft[changed], [255]) | (write.lft == change.new.lft)[changed]).all()
        state = write.lft


def test_entries_that_stay_are_not_removed_first():
    change = ring_change()
    first = change.removed_first()[0].lft
    same = change.old.lft == change.new.lft
    assert (first[same] == change.old.lft[same]).all()
    assert (first[~same] == 255).all()


def test_tables_of_different_shapes_are_aligned():
    change = ring_change(5, 10, "dfsssp", "updn", (4, 1))
    assert change.old.sl.shape == change.new.sl.shape
    assert change.old.sl2vl.shape == change.new.sl2vl.shape


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('engine = "nue", vls', 'engine = "new", vls', "no engine 'new'"),
        ('engine = "nue", vls = 1', 'engine = "nue", reroute = true', "new tables of engine and reroute"),
        ('engine = "nue", vls = 1', "reroute = false", "new tables of nothing"),
        ('engine = "nue", vls = 1', "reroute = true", "changes tables to equal tables"),
        ('engine = "nue", vls = 1', 'tables = "gone"', "gone"),
        ('engine = "nue", vls', 'engine = "updn", vls', "changes tables to equal tables"),
        ("at = 100", "at = 280", "changes tables until 310, and runs until 300"),
        ("every = 10", 'order = ["sw1"]', "does not name every switch once"),
        ('"one by one"', '"at once"', "every does nothing for at once"),
        ('"one by one", at = 100, every = 10', '"slowly", at = 100', "not a valid method"),
    ],
)
def test_wrong_changes_are_refused(tmp_path, old, new, expected):
    refusal(tmp_path, FILE.replace(old, new), expected)


WATCHED = FILE.replace(
    'change = { how = "one by one", at = 100, every = 10, engine = "nue", vls = 1 }', "watch = { every = 50 }"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("every = 50", "every = 0.5", "every"),
        ("every = 50", "often = 50", "there is no 'often'"),
        ("until = 300", "until = 10000000", "reads counters 200000 times .*let it be 10000 at most"),
        ("watch =", 'fault = [{ cable = ["sw0", "sw1"], at = 9 }]\nwatch =', "a watch beside a change or a fault"),
    ],
)
def test_watches_that_cannot_be_are_refused(tmp_path, old, new, message):
    assert old in WATCHED
    refusal(tmp_path, WATCHED.replace(old, new), message)
