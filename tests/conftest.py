import gc
import signal
from importlib.metadata import entry_points

import pytest
from json_contract import check_every_run

# Earlier versions of ibnue registered this pytest plugin by an entry point. pytest refuses a plugin that is registered
# twice.
_INSTALLED = any(entry.name == "ibnue_lab" for entry in entry_points(group="pytest11"))
pytest_plugins = [] if _INSTALLED else ["ibsim_fixtures.pytest_plugin"]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect the tests without a search for garbage, and never visit them in a later search."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
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
