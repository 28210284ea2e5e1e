"""Find the programs of the lab and their Debian packages.  Start programs, and end them without leftovers."""

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

from routing.deferred_signals import DeferredSignals
from routing.errors import EnvironmentProblem

POLL_SECONDS = 0.005
"""Seconds between two checks during a wait for a state."""

TIMEOUT_SECONDS = 300.0
"""Time limit in seconds of a wait for a state.  After this time, a program counts as stuck, even on a busy machine.

A wait ends immediately if the program ends.  So only a stuck program causes a wait of this length.
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
"""Debian package that contains each program or library."""

PROGRAMS = ("ibsim", "libumad2sim.so", "opensm", "smpquery")
"""Programs and a library without which the lab cannot run, one of each Debian package that the lab needs.

Further packages, such as the package of ibdmchk, are needed only for some functions.
"""

IN_MEMORY, SMALL_FILES_ROOM = "/dev/shm", 16 << 20
"""A file system in memory for the small files of the lab, and the number of bytes that must be free there to use it."""

_UNLESS_ALONE = '[ "$PPID" = "$0" ] && exec "$@"'
_UMAD2SIM_PLACES = ("/usr/lib/*/umad2sim", "/usr/lib/umad2sim", "/usr/lib64/umad2sim", "/usr/local/lib*/umad2sim")


class LabError(EnvironmentProblem):
    """Error of the lab: a program ended, refused a request, or did not reach a state in time.

    The first line of the message names the program and the cause.
    """


def find_program(name: str) -> Path:
    """Return the path of a program.  Folders such as /usr/sbin are searched even if they are not in PATH.

    Raises
    ------
    EnvironmentProblem
        The program is not installed.  The message names the Debian package.
    """
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=folders)
    if found is None:
        raise _not_installed(name)
    return Path(found)


def find_umad2sim() -> Path:
    """Return the path of libumad2sim.so, which connects programs to ibsim instead of real hardware.

    The environment variable ``IBNUE_UMAD2SIM`` overrides the search.

    Raises
    ------
    EnvironmentProblem
        The library is not installed.  The message names the Debian package.
    """
    stated = os.environ.get("IBNUE_UMAD2SIM")
    if stated and Path(stated).is_file():
        return Path(stated)
    for folder in _UMAD2SIM_PLACES:
        for found in sorted(Path("/").glob(f"{folder[1:]}/libumad2sim.so")):
            return found
    raise _not_installed("libumad2sim.so")


def small_files_folder() -> str | None:
    """Return the parent folder for temporary folders with many small files; None: Python's default.

    The result is a file system in memory, unless it has little room, or the environment variable ``TMPDIR`` names a
    folder.  Each program that is connected to ibsim creates and removes a hundred files, which takes three times as
    long on a disk.
    """
    usable = "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK | os.X_OK)
    return IN_MEMORY if usable and shutil.disk_usage(IN_MEMORY).free >= SMALL_FILES_ROOM else None


def missing_packages(programs: Sequence[str] = PROGRAMS) -> list[str]:
    """Return the Debian packages that have to be installed to get the given programs.  Empty if all programs are
    installed.
    """
    return sorted({PACKAGES.get(name, name) for name in programs if not _is_there(name)})


def _is_there(name: str) -> bool:
    try:
        find_umad2sim() if name == "libumad2sim.so" else find_program(name)
    except EnvironmentProblem:
        return False
    return True


def _not_installed(name: str) -> EnvironmentProblem:
    return EnvironmentProblem(f"{name} is not installed", remedy=f"apt install {PACKAGES.get(name, name)}")


def tail(path: Path, lines: int = 20, size: int = 16384) -> str:
    """Return the last lines of a file as indented text, or a remark that the file is empty.  A file that cannot be read
    counts as empty.

    ``size`` is the number of bytes at the end of the file that are read.
    """
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            text = [line for line in file.read().decode(errors="replace").splitlines() if line.strip(" *")]
    except OSError:
        text = []
    return "\n".join(f"  {line}" for line in text[-lines:]) if text else f"  ({path.name} is empty)"


def kill_with_parent(command: Sequence[str | Path]) -> list[str]:
    """Return a command line that runs ``command`` in a process that does not outlive the process that starts it.

    The kernel kills the new process when the thread that started it ends.  This needs the program setpriv.  Without
    setpriv, the result is ``command`` itself.

    A test runner that is killed cannot end the programs that it has started.  An ibsim without a console would use a
    whole core, and a program that has sent a query to an ended ibsim would wait forever.
    """
    setpriv = shutil.which("setpriv")
    # setpriv asks the kernel for a signal when the parent ends.  The parent may have ended before this request, so the
    # shell checks that its parent is still this process.
    first = [setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _UNLESS_ALONE, str(os.getpid())] if setpriv else []
    return [*first, *map(str, command)]


class Child:
    """Program in a separate process group.  The program is killed when this process ends for any reason.

    Parameters
    ----------
    command
        Program and arguments.
    environment
        Complete environment of the program.
    folder
        Working directory of the program.
    stdin, stdout, stderr
        Standard streams, see :class:`subprocess.Popen`.
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
        self.process: subprocess.Popen[bytes]
        try:
            with DeferredSignals():
                self.process = subprocess.Popen(
                    kill_with_parent(command),
                    env=dict(environment),
                    cwd=folder,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
        except BaseException:
            # A signal handler raised an exception while the process was being started.  The caller gets no Child with
            # which it could end the process, so the process is ended here.
            if hasattr(self, "process"):
                self.end(polite_seconds=0.0)
            raise

    @property
    def pid(self) -> int:
        """Return the process id, which is also the id of the process group."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """Return the exit status (negative: the signal), or None while the program runs."""
        return self.process.poll()

    def describe_end(self) -> str:
        """Return a text that states how the program ended, or that it still runs."""
        code = self.returncode
        if code is None:
            return "still runs"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit status {code}"

    def end(self, *, polite_seconds: float = 3.0) -> None:
        """End the whole process group by SIGTERM, and then end remaining processes by SIGKILL.  A second call has no
        effect.

        ``polite_seconds`` is the longest time to wait for the end of the program after SIGTERM.
        """
        if self.process.poll() is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(polite_seconds)
        # The first process may have ended before its children, so SIGKILL is always sent to the whole group.
        self._signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def run_to_end(
    command: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path, stdin: str, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends, and return its output.

    If a signal handler raises an exception before the program ends, the program is killed, even during its start.
    :func:`subprocess.run` may leave a program running in this case.  The program could then write to a folder that the
    caller is removing.

    ``command`` is the program with its arguments, ``stdin`` its input, and ``timeout`` the time limit in seconds.

    Raises
    ------
    subprocess.TimeoutExpired
        The program did not end in time and was killed.
    """
    process: subprocess.Popen[str] | None = None
    try:
        with DeferredSignals():
            process = subprocess.Popen(
                kill_with_parent(command), env=dict(environment), cwd=folder, text=True, errors="replace",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        out, err = process.communicate(stdin, timeout=timeout)
    except BaseException:
        if process is not None:
            with DeferredSignals(), process:
                process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def is_alive(pid: int) -> bool:
    """Return whether a process is running.  A zombie (ended, but not collected by its parent) does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def poll(ready: Callable[[], bool], seconds: float) -> bool:
    """Call ``ready()`` repeatedly until it returns True or a time limit has passed.  Return whether it
    returned True.
    """
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True
