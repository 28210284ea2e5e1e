import os
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor, Future

import pytest
from sweep_runners import begun, finish, victim
from waiting import AMPLE

from routing.errors import EnvironmentProblem
from routing.pools import AHEAD
from routing.sweep import run, timeouts
from routing.sweep.executors import Processes, Workers
from routing.sweep.ledger import Ledger


def test_every_task_has_its_result(plan, packer, crew):
    made = plan(("torus:3x3", "ring:5"), ("updn", "nue:effort=0", "minhop"), links="all", switches="all")
    seen = []
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made), seen.extend)
        records = list(ledger.records())
    assert {record.task.id for record in records} == {task.id for task in made.tasks}
    assert len(seen) == len(made.tasks)
    assert {r.result.outcome for r in records if r.task.target.engine != "minhop"} == {"certified"}
    assert "loop" in {r.result.outcome for r in records if r.task.target.engine == "minhop"}
    for record in records:
        assert record.result.broken <= record.result.entries
        assert (record.result.changed > 0) >= record.task.fault.startswith("link")
        assert record.result.changed == 0 or record.task.fault != "intact"


def test_the_same_at_any_number_of_workers(plan, packer, crew):
    made = plan(("torus:3x3",), ("nue:effort=0.1", "lash"), links=6)

    def outcome(workers):
        with Ledger(None) as ledger:
            finish(ledger, made, workers, packer(made))
            return [(r.task.id, r.result.tables, r.result.changed, r.result.a2a) for r in ledger.records()]

    one = Processes(1)
    try:
        assert outcome(one) == outcome(crew)
    finally:
        one.close()


def test_a_worker_that_dies_loses_nothing(plan, packer, crew, tmp_path):
    made = plan(links="all")
    fatal = made.tasks[7].fault
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:dies_once", folder=tmp_path, fatal=fatal))
        records = list(ledger.records())
    assert len(records) == len(made.tasks)
    assert {record.result.outcome for record in records} == {"certified"}
    assert (tmp_path / "died").exists()
    assert len(begun(tmp_path)) > len(made.tasks)  # some ran twice, and each is recorded once


@pytest.mark.parametrize(
    ("runner", "outcome", "how"),
    [("crashes", "error", "was killed by SIGSEGV"), ("dies_always", "lost", "was killed by SIGKILL (out of memory?)")],
)
def test_a_task_over_which_workers_die_is_known_and_the_others_are_done(
    plan, packer, crew, tmp_path, runner, outcome, how
):
    made = plan(links="all")
    fatal = made.tasks[7]
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, f"sweep_runners:{runner}", folder=tmp_path, fatal=fatal.fault))
        bad = [record for record in ledger.records() if not record.result.certified]
        assert [(record.task, record.result.outcome) for record in bad] == [(fatal, outcome)]
        assert bad[0].result.error == f"its worker died, 2 times; the last {how}"
        # The death of a worker by a signal of the machine is not a result, so the next run does the task again.
        assert (fatal.id in ledger.done()) == (outcome == "error")
        finish(ledger, made, crew, packer(made))
        assert {record.result.outcome for record in ledger.records()} == {"certified", outcome} - {"lost"}


def test_workers_that_cannot_start_end_the_run_with_their_first_error(plan, packer, crew, tmp_path, monkeypatch):
    (tmp_path / "routing").mkdir()
    (tmp_path / "routing" / "__init__.py").write_text("raise ImportError('no such kernel')")
    path = [str(tmp_path), *sys.path]
    monkeypatch.setattr(timeouts, "import_path", lambda: path)
    monkeypatch.setattr(crew, "_checked", False)
    made = plan()
    for pack in (packer(made, "sweep_runners:dies"), packer(made, timeout=AMPLE)):
        with Ledger(None) as ledger:
            with pytest.raises(EnvironmentProblem, match=r"a worker cannot start: ImportError: no such kernel \("):
                finish(ledger, made, crew if pack(made.tasks).timeouts == (None,) else Here(), pack)
            assert list(ledger.records()) == []
    path.pop(0)
    crew.restart()


class Here(Workers):
    """A single worker, which is this process."""

    count = 1

    def submit(self, batch):
        future = Future()
        try:
            future.set_result(timeouts.run_batch(batch))
        except Exception as error:
            future.set_exception(error)
        return future

    def died(self, error):
        return False

    def restart(self):
        raise NotImplementedError

    def close(self, *, now=False):
        pass


def test_a_module_that_is_missing_is_not_the_fault_of_the_task(plan, packer, crew):
    made = plan()
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:lacks_a_module"))
        (record,) = ledger.records()
        assert (record.result.outcome, ledger.done()) == ("lost", set())
        assert record.result.error == "ModuleNotFoundError: No module named 'nowhere'"


def test_workers_that_die_of_anything_end_the_run(plan, packer, crew, monkeypatch):
    monkeypatch.setattr(run, "MAX_RECOVERIES", 2)
    made = plan(links="all")
    with Ledger(None) as ledger:
        with pytest.raises(EnvironmentProblem, match="2 times in a row without a result; the last was kill"):
            finish(ledger, made, crew, packer(made, "sweep_runners:dies"))
        assert ledger.done() == set()


def test_a_worker_that_dies_while_another_is_started_counts_as_dead(packer, plan, crew):
    made = plan()
    batch = packer(made)(made.tasks[:1])
    crew._pool._adjust_process_count = crew._pool._start_executor_manager_thread = closed_pipe
    with pytest.raises(BrokenExecutor) as raised:
        crew.submit(batch)
    assert crew.died(raised.value)
    crew.restart()
    # A start may fail once more if the server that forks workers has just ended.  A run then starts the workers again.
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made))
        assert [record.result.certified for record in ledger.records()] == [True] * len(made.tasks)


def closed_pipe(*_):
    raise OSError("handle is closed")


def test_workers_killed_from_outside(plan, packer, crew, tmp_path):
    made = plan(links="all")

    killer = threading.Thread(target=lambda: os.kill(victim(tmp_path), signal.SIGKILL))
    killer.start()
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:waits_for_death", folder=tmp_path))
        assert len(list(ledger.records())) == len(made.tasks)
    killer.join()
    assert len(begun(tmp_path)) > len(made.tasks)


def test_an_interrupt_does_not_break_the_pool(plan, packer, crew, interruptible):
    # An interrupt inside a method of a future would leave a lock that a thread of the pool needs.
    handed = []

    class Interrupted:
        count, together = 2, True

        def submit(self, batch):
            os.kill(os.getpid(), signal.SIGINT)
            handed.append(crew.submit(batch))
            return handed[-1]

    made = plan(links="all")
    with Ledger(None) as ledger, pytest.raises(KeyboardInterrupt):
        finish(ledger, made, Interrupted(), packer(made))
    assert len(handed) == AHEAD * Interrupted.count
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_runner_that_raises_is_an_error_in_one_line(plan, packer, crew):
    made = plan(links=3)
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:raises"))
        assert {record.result.error for record in ledger.records()} == {"ValueError: two lines"}


def test_finished_tasks_do_not_run_again(plan, packer, crew, tmp_path):
    made = plan(links="all")
    with Ledger(None) as ledger:
        part = plan(links="all", intact=False)
        finish(ledger, part, crew, packer(part))
        finish(ledger, made, crew, packer(made, "sweep_runners:traced", folder=tmp_path))
        assert len(ledger.done()) == len(made.tasks)
    assert begun(tmp_path) == [made.tasks[0].id]
