"""Check time limits of tasks, with real processes that hang."""

import os
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from sweep_runners import HUNG, begun, finish
from waiting import AMPLE

from routing.sweep.ledger import Ledger
from routing.sweep.timeouts import TaskProcess, run_batch


@pytest.mark.parametrize("lock", ["held", "free"])
def test_a_task_that_hangs_in_c_is_ended_and_the_others_are_not(lock, plan, packer, crew, tmp_path):
    made = plan(links="all")
    fatal = made.tasks[7]
    reported = {"folder": tmp_path, "fatal": fatal.fault, "lock": lock}
    pids = set(crew.pids)
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:hangs", timeout=HUNG, **reported))
        results = {record.task: record.result for record in ledger.records()}
        assert set(results) == set(made.tasks)
        late = results.pop(fatal)
        assert (late.outcome, late.seconds, late.error) == ("timed out", HUNG, f"took longer than {HUNG:g} s")
        assert {result.outcome for result in results.values()} == {"certified"}
        assert not pids or set(crew.pids) == pids  # no worker died
        assert sorted(begun(tmp_path)) == sorted(task.id for task in made.tasks)  # each ran once
        finish(ledger, made, crew, packer(made, "sweep_runners:traced", timeout=AMPLE, folder=tmp_path))
        assert {record.result.outcome for record in ledger.records()} == {"certified"}
    assert begun(tmp_path)[len(made.tasks) :] == [fatal.id]


def test_only_the_slow_task_is_ended(plan, packer, tmp_path):
    made = plan(links=3)
    pack = packer(made, "sweep_runners:hangs", timeout=HUNG, folder=tmp_path, fatal="intact", lock="free")
    results = run_batch(pack(made.tasks))
    assert [result.outcome for result in results] == ["timed out", "certified", "certified", "certified"]
    assert not Path((tmp_path / "left").read_text()).exists()  # the temporary folder of the task is removed


def test_a_task_without_a_limit_among_others(plan, packer):
    made = plan(links=1)
    batch = packer(made)(made.tasks)
    limited = run_batch(type(batch)(batch.fabric, batch.tasks, timeouts=(None, AMPLE)))
    free = run_batch(batch)
    assert [(r.outcome, r.tables, r.changed) for r in limited] == [(r.outcome, r.tables, r.changed) for r in free]


def test_a_process_lasts_for_many_batches(plan, packer):
    made = plan(links=1)
    batch = packer(made, "sweep_runners:which", timeout=AMPLE)(made.tasks)
    reported = {result.error for _ in range(3) for result in run_batch(batch)}
    assert len(reported) == 1
    assert str(os.getpid()) not in reported.pop().split()
    plain = packer(made, "sweep_runners:which")(made.tasks)
    assert run_batch(plain)[0].error.split()[0] == str(os.getpid())


def test_threads_of_a_worker_do_not_wait_for_each_other(plan, packer, tmp_path):
    made = plan(links=1)
    slow = packer(made, "sweep_runners:hangs", timeout=HUNG, folder=tmp_path, fatal="intact", lock="held")
    hung = []
    thread = threading.Thread(target=lambda: hung.extend(run_batch(slow(made.tasks[:1]))))
    thread.start()
    quick = run_batch(packer(made, timeout=AMPLE)(made.tasks))
    thread.join()
    assert [result.outcome for result in quick] == ["certified", "certified"]
    assert [result.outcome for result in hung] == ["timed out"]


def test_a_task_whose_process_is_killed_is_done_again_by_the_next_run(plan, packer, tmp_path):
    made = plan(links=3)
    fatal = made.tasks[1]
    pack = packer(made, "sweep_runners:dies_always", timeout=AMPLE, folder=tmp_path, fatal=fatal.fault)
    results = run_batch(pack(made.tasks))
    assert [result.outcome for result in results] == ["certified", "lost", "certified", "certified"]
    assert results[1].error == "its worker died, 2 times; the last was killed by SIGKILL (out of memory?)"
    assert begun(tmp_path).count(fatal.id) == 2


def test_a_runner_that_raises_is_an_error(plan, packer):
    made = plan()
    (result,) = run_batch(packer(made, "sweep_runners:raises", timeout=AMPLE)(made.tasks))
    assert (result.outcome, result.error) == ("error", "ValueError: two lines")


def test_nothing_in_the_working_directory_interferes(plan, packer, tmp_path, monkeypatch):
    for name in ("routing", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('mine')")
    monkeypatch.chdir(tmp_path)
    made = plan()
    done = []
    thread = threading.Thread(target=lambda: done.extend(run_batch(packer(made, timeout=AMPLE)(made.tasks))))
    thread.start()
    thread.join()
    assert done[0].certified
    assert Path.cwd() == tmp_path


def test_a_worker_that_ends_before_the_process_begins_leaves_no_folder(tmp_path, monkeypatch):
    def killed(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(subprocess, "Popen", killed)
        TaskProcess()
    assert list(tmp_path.iterdir()) == []
    process = TaskProcess()
    process.end()
    assert not Path(process.folder).exists()
    assert list(tmp_path.iterdir()) == []
