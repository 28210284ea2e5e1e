import contextlib
import faulthandler
import fcntl
import gc
import os
import signal
from importlib.metadata import entry_points

import pytest
from json_contract import check_every_run

# Earlier versions of ibnue registered this pytest plugin by an entry point. pytest refuses a plugin that is registered
# twice.
_INSTALLED = any(entry.name == "ibnue_lab" for entry in entry_points(group="pytest11"))
pytest_plugins = [] if _INSTALLED else ["ibsim_fixtures.pytest_plugin"]

_STDERR = pytest.StashKey[int]()


def pytest_configure(config):
    """Keep the standard error stream, because pytest replaces it while a test runs."""
    config.stash[_STDERR] = os.dup(2)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item, settings):
    """End the process with a traceback if a test still runs at twice its time limit.

    pytest-timeout ends a test by a signal, which Python handles only after a kernel has returned.
    """
    faulthandler.dump_traceback_later(2 * settings.timeout, exit=True, file=item.config.stash[_STDERR])


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_cancel_timer():
    """Let the process run on if a test has ended in time."""
    faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def after_the_first_process(config):
    """Let one process of a run continue at once, and all other processes when the first process has left this context.

    The first process compiles the test files, and the other processes load the compiled files.  Otherwise all processes
    would compile each file.
    """
    if "workerinput" not in vars(config) or not hasattr(config, "cache"):
        yield
        return
    with (config.cache.mkdir("collection") / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect the tests without garbage collection, and exclude the collected objects from later garbage
    collections.  These collections are rare, because they took about 2 % of the time of the tests.
    """
    gc.disable()
    try:
        with after_the_first_process(session.config):
            return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Leave out files of which no test is selected, because each process of a run would load them."""
    selected = config.option.markexpr
    if not selected.startswith(("lab ", "not lab ")) or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    return ("\npytestmark = pytest.mark.lab" in text if selected.startswith("not") else "mark.lab" not in text) or None


@pytest.fixture
def interruptible():
    """Make Ctrl-C raise KeyboardInterrupt during a test, even if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def json_contract():
    """Check the output of every command that any test runs with ``--json``."""
    with pytest.MonkeyPatch.context() as patch:
        check_every_run(patch)
        yield
