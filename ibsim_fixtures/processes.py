"""Programs of the lab: where they are, which package has them, and how to start and end them without leftovers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from routing.errors import EnvironmentProblem

POLL_SECONDS = 0.005
"""How often a state is looked at while it is waited for."""

PATIENCE = 300.0
"""Seconds after which a program that runs, and does not do what is awaited, is taken for hung: on a busy machine too.

One that dies is noticed at once, so that nobody waits for this long unless something hangs.
"""

PACKAGES: Mapping[str, str] = {
    "ibsim": "ibsim-utils",
    "libumad2sim.so": "libumad2sim0",
    "opensm": "opensm",
    "cc": "gcc",
    "dump_fts": "infiniband-diags",
    "ibnetdiscover": "infiniband-diags",
    "ibroute": "infiniband-diags",
    "saquery": "infiniband-diags",
    "smpdump": "infiniband-diags",
    "sminfo": "infiniband-diags",
    "smpquery": "infiniband-diags",
    "ibdmchk": "ibutils",
}
"""The Debian package of each program."""

PROGRAMS = ("ibsim", "libumad2sim.so", "opensm", "smpquery")
"""What every use of the lab needs, by one program of each package; ibdmchk is wanted by those who ask it."""

_UNLESS_ALONE = '[ "$PPID" = "$0" ] && exec "$@"'
_UMAD2SIM_PLACES = ("/usr/lib/*/umad2sim", "/usr/lib/umad2sim", "/usr/lib64/umad2sim", "/usr/local/lib*/umad2sim")


class LabError(EnvironmentProblem):
    """A program of the lab died, refused, or did not reach a state in time.  The first line says which and why."""


def find_program(name: str) -> Path:
    """Path of a program, also where it is not on the PATH of ordinary users (/usr/sbin).

    Raises
    ------
    EnvironmentProblem
        It is not installed; the message names the Debian package.
    """
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=places)
    if found is None:
        raise _not_installed(name)
    return Path(found)


def find_umad2sim() -> Path:
    """Path of libumad2sim.so, which connects programs to ibsim in place of hardware.

    ``IBNUE_UMAD2SIM`` overrides the search.

    Raises
    ------
    EnvironmentProblem
        It is not installed; the message names the Debian package.
    """
    stated = os.environ.get("IBNUE_UMAD2SIM")
    if stated and Path(stated).is_file():
        return Path(stated)
    for place in _UMAD2SIM_PLACES:
        for found in sorted(Path("/").glob(f"{place[1:]}/libumad2sim.so")):
            return found
    raise _not_installed("libumad2sim.so")


def missing_packages(programs: Sequence[str] = PROGRAMS) -> list[str]:
    """Debian packages that would have to be installed to use these programs; empty if all are there."""
    return sorted({PACKAGES.get(name, name) for name in programs if not _is_there(name)})


def _is_there(name: str) -> bool:
    try:
        find_umad2sim() if name == "libumad2sim.so" else find_program(name)
    except EnvironmentProblem:
        return False
    return True


def _not_installed(name: str) -> EnvironmentProblem:
    return EnvironmentProblem(f"{name} is not installed (apt install {PACKAGES.get(name, name)})")


def tail(path: Path, lines: int = 20, size: int = 16384) -> str:
    """The last lines of a file, or a remark that there are none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            text = [line for line in file.read().decode(errors="replace").splitlines() if line.strip(" *")]
    except OSError:
        text = []
    return "\n".join(f"  {line}" for line in text[-lines:]) if text else f"  ({path.name} is empty)"


def tied(command: Sequence[str | Path]) -> list[str]:
    """A command that the kernel ends when the thread that has started it is gone.

    A test runner that is killed cleans nothing up: ibsim without a console spins on a whole core, and what has asked an
    ibsim that is gone waits for ever.
    """
    setpriv = shutil.which("setpriv")
    # Who has gone before the kernel was told is not waited for.
    first = [setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _UNLESS_ALONE, str(os.getpid())] if setpriv else []
    return [*first, *map(str, command)]


class Child:
    """A program in a process group of its own, which ends when this process does, however that ends.

    Parameters
    ----------
    command
        Program and arguments.
    environment
        Its whole environment.
    folder
        Its working directory.
    stdin, stdout, stderr
        As for :class:`subprocess.Popen`.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        folder: Path,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(
            tied(command),
            env=dict(environment),
            cwd=folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Process number, which is that of its group too."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """Exit status (negative: the signal), or None while it runs."""
        return self.process.poll()

    def describe_end(self) -> str:
        """How it ended, for people."""
        code = self.returncode
        if code is None:
            return "still runs"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit status {code}"

    def end(self, *, polite_seconds: float = 3.0) -> None:
        """End the whole group: SIGTERM, then SIGKILL for what is left.  Doing it again does nothing."""
        if self.process.poll() is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(polite_seconds)
        # The leader may be gone and its children not, so the group is always swept.
        self._signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def poll(ready: Callable[[], bool], seconds: float) -> bool:
    """Look until ``ready()`` or until the time is up; what it was at the end."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True
