import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from routing.errors import EnvironmentProblem, InputError
from routing.sweep.ledger import APPLICATION, Ledger
from routing.sweep.results import Result
from routing.sweep.version import code_version


def results(plan, **more):
    return [(task, Result(task.id, "certified", **more)) for task in plan.tasks]


def test_recorded_results_are_read_back(plan, tmp_path):
    made = plan(engines=("nue:vls=4,reversible,effort=0.1", "updn"), links=3, seeds=(1, 7))
    pairs = results(made, strength="forward", vls=3, a2a=0.25, kept=0.75, seconds=0.5, tables="ab")
    with Ledger(tmp_path / "l.db") as ledger:
        run = ledger.begin("a test")
        assert ledger.record(run, pairs) == len(pairs)
    with Ledger(tmp_path / "l.db") as ledger:
        found = {record.task.id: record for record in ledger.records()}
        assert ledger.done() == set(found)
    assert {i: (r.task, r.result) for i, r in found.items()} == {task.id: (task, result) for task, result in pairs}
    assert all(i == r.task.id for i, r in found.items())


def test_nothing_counts_twice(plan):
    made = plan(links=3)
    with Ledger(None) as ledger:
        run = ledger.begin("")
        assert ledger.record(run, results(made, seconds=1.0)) == 4
        assert ledger.record(run, results(made, seconds=2.0)) == 0
        assert [record.result.seconds for record in ledger.records()] == [1.0] * 4


def test_a_failed_record_stores_nothing(plan):
    made = plan(links=3)
    pairs = results(made)
    bad = (pairs[2][0], replace(pairs[2][1], seconds=None))
    with Ledger(None) as ledger:
        run = ledger.begin("")
        with pytest.raises(EnvironmentProblem):
            ledger.record(run, [*pairs[:1], (bad[0], replace(bad[1], outcome=object()))])
        assert ledger.done() == set()
        assert ledger.record(run, pairs) == 4


def test_a_full_disk_is_reported_and_takes_nothing_away(plan, tmp_path):
    made = plan(("torus:4x4",), links="all")
    pairs = results(made, error="x" * 400)
    with Ledger(tmp_path / "l.db") as ledger:
        run = ledger.begin("")
        ledger.record(run, pairs[:3])
        ledger._base.execute("PRAGMA max_page_count = 6")
        with pytest.raises(EnvironmentProblem, match=r"l\.db: database or disk is full \(is its folder"):
            ledger.record(run, pairs[3:])
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.done() == {task.id for task, _ in pairs[:3]}
        assert ledger.record(ledger.begin("more room"), pairs) == len(pairs) - 3


def test_an_empty_file_is_nobodys(plan, tmp_path):
    path = tmp_path / "l.db"
    path.touch()
    for how in ({"must_exist": True}, {"read_only": True}):
        with pytest.raises(InputError, match="is not a ledger"):
            Ledger(path, **how)
    Ledger(path).close()
    assert path.exists()
    with Ledger(path) as ledger:
        ledger.record(ledger.begin(""), results(plan()))
    assert len(Ledger(path, must_exist=True).done()) == 1


def test_one_writer(tmp_path):
    path = tmp_path / "l.db"
    with (
        Ledger(path) as first,
        pytest.raises(EnvironmentProblem, match=r"l\.db: another run has this ledger open") as reported,
    ):
        first.begin("")
        Ledger(path)
    assert "\n" not in str(reported.value)
    Ledger(path, must_exist=True).close()


def test_one_that_was_made_for_nothing_goes(tmp_path):
    Ledger(tmp_path / "l.db").close()
    assert list(tmp_path.iterdir()) == []


def test_after_closing_it_is_one_file(plan, tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.record(ledger.begin(""), results(plan()))
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]


KILLED = """
import os, signal, sys
from routing.sweep.ledger import Ledger
ledger = Ledger(sys.argv[1])
ledger.begin("killed")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_what_it_had_committed(tmp_path):
    path = tmp_path / "l.db"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    with Ledger(path) as ledger:
        assert ledger.begin("next") == 2


def other_version(path):
    with sqlite3.connect(path) as base:
        base.execute(f"PRAGMA application_id = {APPLICATION}")
        base.execute("PRAGMA user_version = 99")
        base.execute("CREATE TABLE runs (x)")


def other_program(path):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE cookies (x)")


def no_base(path):
    path.write_text("engine fabric certified\n" * 100)


def damaged(path):
    with Ledger(path) as ledger:
        ledger.begin("")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (other_version, "is a ledger of version 99"),
        (other_program, "is not a ledger"),
        (no_base, "is not a ledger"),
        (damaged, "damaged"),
    ],
)
def test_files_that_are_no_ledgers_are_refused(spoil, expected, plan, tmp_path):
    path = tmp_path / "l.db"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=expected) as error, Ledger(path) as ledger:
        ledger.record(ledger.begin(""), results(plan()))
        list(ledger.records())
    assert error.value.remedy
    assert path.read_bytes() == before or spoil is damaged


def test_folders_that_cannot_exist(tmp_path):
    with pytest.raises(EnvironmentProblem, match="folder"):
        Ledger(tmp_path / "nowhere" / "l.db")
    with pytest.raises(InputError, match="no such ledger"):
        Ledger(tmp_path / "l.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_merged_shards_count_once(plan, tmp_path):
    pairs = results(plan(links=5))
    with Ledger(tmp_path / "a.db") as a, Ledger(tmp_path / "b.db") as b:
        a.record(a.begin("a"), pairs[:4])
        b.record(b.begin("b"), pairs[3:])
        assert a.absorb(b) == 2
        assert a.absorb(b) == 0
        assert a.done() == {task.id for task, _ in pairs}


def of_old(path, pairs):
    """Write a ledger as an older ibnue wrote it, without the columns for the loss of a fault."""
    with Ledger(path) as ledger:
        ledger.record(ledger.begin("of old"), pairs)
    with sqlite3.connect(path) as base:
        for column in ("kept", "bisection_kept", "fresh_kept", "fresh_bisection_kept"):
            base.execute(f"ALTER TABLE results DROP COLUMN {column}")


def test_an_older_ledger_is_read_and_continued(plan, tmp_path):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    pairs = results(plan(links=5), kept=0.5, bisection_kept=0.5, fresh_kept=0.5, fresh_bisection_kept=0.5)
    of_old(old, pairs[:4])
    before = old.read_bytes()
    with Ledger(old, read_only=True) as ledger, Ledger(new) as other:
        assert [record.result.kept for record in ledger.records()] == [None] * 4
        assert other.absorb(ledger) == 4
        assert [record.result.kept for record in other.records()] == [None] * 4
    assert old.read_bytes() == before
    with Ledger(old) as ledger:
        assert ledger.record(ledger.begin("now"), pairs) == 2
        assert sorted(record.result.kept or 0.0 for record in ledger.records()) == [0.0] * 4 + [0.5] * 2


def test_one_that_is_read_stays_as_it_is(plan, tmp_path):
    path = tmp_path / "odd name?#%.db"
    with Ledger(path) as ledger:
        ledger.record(ledger.begin(""), results(plan()))
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    with Ledger(path, read_only=True) as one, Ledger(path, read_only=True) as two:
        assert one.done() == two.done() != set()
        with pytest.raises(EnvironmentProblem, match="readonly"):
            one.begin("")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, when)
    with pytest.raises(InputError, match="no such ledger"):
        Ledger(tmp_path / "l.db", read_only=True)
    with Ledger(path), pytest.raises(EnvironmentProblem, match="another run"):
        Ledger(path, read_only=True)


@pytest.mark.parametrize("outcome", ["timed out", "error"])
def test_results_without_tables_are_replaced(outcome, plan):
    (task, good), (other, late) = results(plan(links=1))
    bad = Result(other.id, outcome, error="x")
    with Ledger(None) as ledger:
        assert ledger.record(ledger.begin("first"), [(task, good), (other, bad)]) == 2
        assert ledger.done(without=[outcome]) == {task.id}
        assert ledger.done(without=[]) == {task.id, other.id}
        again = ledger.begin("again")
        assert ledger.record(again, [(task, Result(task.id, outcome)), (other, late)]) == 1
        assert {record.task.id: record.result for record in ledger.records()} == {task.id: good, other.id: late}
        assert ledger._base.execute("SELECT run FROM results WHERE task = ?", (other.id,)).fetchone() == (again,)


def test_cases_that_timed_out_run_again(plan):
    (task, good), (other, _) = results(plan(links=1))
    with Ledger(None) as ledger:
        ledger.record(ledger.begin(""), [(task, good), (other, Result(other.id, "timed out"))])
        assert ledger.done() == {task.id}


def test_another_ledger_knows_better(plan):
    (task, good), (other, late) = results(plan(links=1))
    with Ledger(None) as ours, Ledger(None) as theirs:
        ours.record(ours.begin(""), [(task, good), (other, Result(other.id, "error"))])
        theirs.record(theirs.begin(""), [(task, Result(task.id, "timed out")), (other, late)])
        assert ours.absorb(theirs) == 1
        assert {record.result for record in ours.records()} == {good, late}


def test_each_result_says_which_code_it_is_from(plan):
    (task, good), (other, late) = results(plan(links=1))
    with Ledger(None) as ledger:
        ledger.record(ledger.begin(""), [(task, good)])
        ledger.record(ledger.begin("", live=True), [(other, late)])
        found = {record.task.id: record.version for record in ledger.records()}
    assert found == {task.id: code_version(), other.id: code_version(live=True)}
