import os
import signal
import subprocess
import sys
import threading

import pytest

from routing.deferred_signals import DeferredSignals


@pytest.fixture(autouse=True)
def interruptible():
    """Let Ctrl-C raise KeyboardInterrupt, also if tests run in the background, and restore signal handlers at the
    end.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_are_delivered_where_one_waits():
    done = []
    with pytest.raises(KeyboardInterrupt), DeferredSignals() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        done.append("held")
        with signals.delivered():
            done.append("too late")
    assert done == ["held"]


def test_a_signal_that_comes_while_one_waits_is_delivered_at_once():
    with DeferredSignals() as signals:
        with signals.delivered(), pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert not signals._came


def test_a_signal_that_nothing_waited_for_is_delivered_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with DeferredSignals():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("held")
        done.append("too late")
    assert done == ["held"]


def test_an_error_is_not_hidden_by_a_signal():
    with pytest.raises(OSError, match="full"), DeferredSignals():
        os.kill(os.getpid(), signal.SIGINT)
        raise OSError("full")


def test_handlers_are_those_of_before_unless_they_set_others():
    def once(number, frame):
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, once)
    with DeferredSignals():
        pass
    assert signal.getsignal(signal.SIGTERM) is once
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with pytest.raises(KeyboardInterrupt), DeferredSignals() as signals, signals.delivered():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_outside_the_main_thread_nothing_is_held():
    seen = []

    def run():
        with DeferredSignals() as signals, signals.delivered():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_ctrl_c_is_blocked_while_the_fork_server_imports():
    """Without the block, the server would print a traceback if Ctrl-C came while it imports modules."""
    code = (
        "from multiprocessing import forkserver; from pathlib import Path; from routing.processes import fork_server\n"
        "fork_server()\n"
        "print(Path(f'/proc/{forkserver._forkserver._forkserver_pid}/status').read_text(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    blocked = int(next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("SigBlk:")), 16)
    assert blocked >> (signal.SIGINT - 1) & 1
