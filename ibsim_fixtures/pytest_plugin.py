"""Pytest fixtures for tests with a real OpenSM on a real ibsim: ``ibsim_fabric``, ``opensm`` and ``lab``.

The plugin is opt-in: a project that uses the fixtures writes ``pytest_plugins = ["ibsim_fixtures.pytest_plugin"]`` into
its top-level ``conftest.py``.  Modules are imported only when a fixture is used.  If the programs are not installed,
tests with these fixtures are skipped, and the reason names the Debian packages.  With ``--require-lab`` (or
IBNUE_REQUIRE_LAB=1) such tests fail instead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ibsim_fixtures.ibsim import Ibsim
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm import OpenSM
    from routing.fabric import Fabric

    StartIbsim = Callable[..., Ibsim]
    StartOpenSM = Callable[..., OpenSM]
    StartLab = Callable[..., Lab]

_RUNNING = pytest.StashKey[list[Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--require-lab`` to pytest."""
    parser.getgroup("ibnue lab").addoption(
        "--require-lab",
        action="store_true",
        default=os.environ.get("IBNUE_REQUIRE_LAB", "") not in ("", "0"),
        help="fail, not skip, tests whose OpenSM or ibsim is not installed",
    )


def require_programs(config: pytest.Config, programs: Sequence[str] = ()) -> None:
    """Check that the programs of the lab, and all ``programs``, are installed.  If a program is missing, skip the
    running test.  With ``--require-lab``, let the test fail instead.
    """
    from ibsim_fixtures.processes import PROGRAMS, missing_packages  # noqa: PLC0415 - only where a fixture is used

    missing = missing_packages([*PROGRAMS, *programs])
    if not missing:
        return
    reason = f"the lab needs Debian packages that are not installed: apt install {' '.join(missing)}"
    if config.getoption("--require-lab"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def ibsim_fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartIbsim]:
    """Provide a function that starts ibsim: ``ibsim_fabric(fabric, **options)``.

    ``fabric`` is a file, a :class:`~routing.fabric.Fabric`, or the name of a fixture fabric.  The options are
    parameters of :class:`~ibsim_fixtures.ibsim.Ibsim`.  All programs that were started end with the test.
    """
    require_programs(request.config)
    from ibsim_fixtures.ibsim import Ibsim  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        yield lambda fabric, **options: stack.enter_context(Ibsim(_net(fabric, tmp_path), **options))


@pytest.fixture
def opensm(request: pytest.FixtureRequest) -> Iterator[StartOpenSM]:
    """Provide a function that starts OpenSM on an ibsim: ``opensm(ibsim, **options)``.

    The options are parameters of :class:`~ibsim_fixtures.opensm.OpenSM`.  By default the function returns after SUBNET
    UP.  If the test fails, its report contains the end of OpenSM's log.
    """
    require_programs(request.config)
    from ibsim_fixtures.opensm import OpenSM  # noqa: PLC0415

    def start(ibsim: Ibsim, **options: Any) -> OpenSM:
        started = stack.enter_context(OpenSM(ibsim, **options))
        request.node.stash.setdefault(_RUNNING, []).append(started)
        return started

    with contextlib.ExitStack() as stack:
        yield start


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartLab]:
    """Provide a function that starts ibsim and OpenSM: ``lab(fabric, **options)``.

    The options are parameters of :class:`~ibsim_fixtures.lab.Lab`.
    """
    require_programs(request.config)
    from ibsim_fixtures.lab import Lab  # noqa: PLC0415

    def start(fabric: str | Path | Fabric, **options: Any) -> Lab:
        started = stack.enter_context(Lab(_net(fabric, tmp_path), **options))
        request.node.stash.setdefault(_RUNNING, []).append(started.opensm)
        return started

    with contextlib.ExitStack() as stack:
        yield start


def _net(fabric: str | Path | Fabric, folder: Path) -> Path:
    """Return the path of a net file for ibsim.

    A :class:`~routing.fabric.Fabric` is written to a new net file in ``folder``.  If ``fabric`` is the name of a
    fixture fabric, the result is the net file of this fabric.  Any other text is a path already.
    """
    if not isinstance(fabric, str | Path):
        from routing.formats.fabric_files import write_net  # noqa: PLC0415

        number = sum(1 for _ in folder.glob("lab-*.net"))
        path = folder / f"lab-{number}.net"
        write_net(fabric, path)
        return path
    if isinstance(fabric, str):
        from ibsim_fixtures.catalogue import FIXTURES  # noqa: PLC0415

        if fabric in FIXTURES:
            return FIXTURES[fabric].path
    return Path(fabric)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of OpenSM's log to the report of a failed test."""
    report = yield
    if call.when == "call" and report.failed:
        from ibsim_fixtures.processes import LabError, tail  # noqa: PLC0415

        for running in item.stash.get(_RUNNING, []):
            with contextlib.suppress(LabError):
                report.sections.append(("end of OpenSM's log", tail(running.log_path, 40)))
    return report
