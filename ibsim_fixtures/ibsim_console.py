"""A real ibsim as a process that is talked to: started on a file, given commands, ended."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from ibsim_fixtures.processes import Child, LabError, tail
from routing.errors import InputError, OptionError

_PROMPT = b"sim> "
# ibsim says this of every link whose line ends without a LID and a speed in its comment, and then uses its defaults.
_HARMLESS = ("cannot parse remote lid and connection type",)
# A fabric that changes under OpenSM makes ibsim say these, of traps and of packets on their way through a pulled cable.
_HARMLESS_LATER = (
    *_HARMLESS,
    "got trap repress - dropping",
    "send_trap: routing failed",
    "no route to dest lid 65535",
    "seems to be dead - disconnecting",
    "write failed",
    "process packet error - discarded",
)
_counter = itertools.count()


class Console:
    """ibsim's own commands, while it runs.

    Parameters
    ----------
    net_path
        The fabric file.
    timeout
        Seconds that the start or an answer may take.
    """

    def __init__(self, net_path: str | Path, timeout: float) -> None:
        self.net_path = Path(net_path).resolve()
        self.timeout = timeout
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._folder: Path | None = None
        self.socket_name = f"ibnue-{os.getpid()}-{next(_counter)}-{os.urandom(3).hex()}"

    def _start(self, ibsim: Path, devices: int, ports: int, lids: int) -> None:
        """Start it with room for so many devices, ports, and entries of a forwarding table; :meth:`close` ends it."""
        self._folder = Path(tempfile.mkdtemp(prefix="ibnue-ibsim-"))
        sizes = ["-N", str(devices), "-S", str(devices), "-P", str(ports), "-L", str(lids)]
        environment = {**os.environ, "IBSIM_SOCKNAME": self.socket_name}
        environment.pop("LD_PRELOAD", None)
        with self._log.open("wb") as log:
            self._child = Child(
                [ibsim, "-s", *sizes, self.net_path],
                environment=environment,
                folder=self.net_path.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        with self._lock:
            self._await_prompt("the start")
        complaints = self._complaints(_HARMLESS)
        if complaints:
            raise InputError(f"ibsim complains: {complaints[0]}", path=self.net_path)
        # The first prompt comes before the sockets are bound; an answered command comes after.
        self.command("attached")

    def close(self) -> None:
        """End ibsim and remove what it left.  Doing it again does nothing."""
        if self._child is not None:
            self._child.end(polite_seconds=0.0)
            self._child = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def _log(self) -> Path:
        return self.folder / "ibsim.err"

    @property
    def folder(self) -> Path:
        """Temporary folder, which is the working directory of connected programs; it goes when ibsim does."""
        if self._folder is None:
            raise LabError("ibsim is not running: use it as a context manager")
        return self._folder

    def _complaints(self, harmless: tuple[str, ...]) -> list[str]:
        lines = self._log.read_text(errors="replace").splitlines()
        return [re.sub(r"^ibwarn: \[\d+\] ", "", line) for line in lines if not any(h in line for h in harmless)]

    @property
    def warnings(self) -> list[str]:
        """What ibsim warned about since its start, without what a changing fabric makes it say anyway."""
        return self._complaints(_HARMLESS_LATER)

    def _await_prompt(self, what: str, extra_seconds: float = 0.0) -> str:
        """Read the console up to the next prompt."""
        assert self._child is not None
        stream = self._child.process.stdout
        assert stream is not None
        seconds = self.timeout + extra_seconds
        answer, end = b"", time.monotonic() + seconds
        while not answer.endswith(_PROMPT):
            left = end - time.monotonic()
            if left <= 0:
                self._child.end(polite_seconds=0.0)  # a late answer would be taken for that of the next command
                raise LabError(f"ibsim did not answer {what} within {seconds:g} s, and was ended")
            if not select.select([stream], [], [], min(left, 1.0))[0]:
                continue
            piece = os.read(stream.fileno(), 1 << 16)
            if not piece:
                self._died(what, answer)
            answer += piece
        return answer[: -len(_PROMPT)].decode(errors="replace")

    def _died(self, what: str, answer: bytes) -> None:
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.process.wait(self.timeout)
        complaints = self._complaints(_HARMLESS)
        place = re.search(r"fatal: error at (.*): line (\d+)", answer.decode(errors="replace"))
        if complaints and what == "the start":
            path, line = (place[1], int(place[2])) if place else (self.net_path, None)
            raise InputError(f"ibsim refuses the fabric: {complaints[0]}", path=path, line=line)
        raise LabError(f"ibsim {self._child.describe_end()} at {what}\n{tail(self._log)}")

    def command(self, line: str, *, extra_seconds: float = 0.0) -> str:
        """Give a command to the console and wait for its answer.

        Parameters
        ----------
        line
            The command.
        extra_seconds
            How much longer than usual the answer may take.

        Raises
        ------
        OptionError
            The line is too long for ibsim, holds a line break, or ibsim does not know the command.
        LabError
            ibsim is dead or does not answer in time.
        """
        if "\n" in line or len(line.encode()) > 126:
            raise OptionError(f"ibsim takes one line of at most 126 bytes: {line!r}")
        with self._lock:
            if self._child is None or self._child.process.stdin is None:
                raise LabError("ibsim is not running: use it as a context manager")
            try:
                self._child.process.stdin.write(line.encode() + b"\n")
                self._child.process.stdin.flush()
            except (BrokenPipeError, ValueError):
                self._died(f"{line!r}", b"")
            answer = self._await_prompt(f"{line!r}", extra_seconds)
        if "unknown - skipped" in answer:
            raise OptionError(f"ibsim does not know the command {line!r}")
        return answer

    def _change(self, line: str, extra_seconds: float = 0.0) -> None:
        """A command that says nothing when it succeeds."""
        answer = " ".join(self.command(line, extra_seconds=extra_seconds).split())
        if answer:
            raise OptionError(f"ibsim refuses {line!r}: {answer.lstrip('# ')}")
