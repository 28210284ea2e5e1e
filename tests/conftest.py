import signal
from importlib.metadata import entry_points

import pytest
from json_contract import check_every_run

# Earlier versions registered the plugin by an entry point, and pytest takes no plugin twice.
_INSTALLED = any(entry.name == "ibnue_lab" for entry in entry_points(group="pytest11"))
pytest_plugins = [] if _INSTALLED else ["ibsim_fixtures.pytest_plugin"]


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def json_contract():
    """Every test that runs a command with ``--json`` checks what the command prints."""
    with pytest.MonkeyPatch.context() as patch:
        check_every_run(patch)
        yield
