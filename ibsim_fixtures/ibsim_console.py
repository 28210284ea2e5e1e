"""Start a real ibsim process with a fabric file, execute commands on its console, and end it."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import tempfile
import threading
import time
from multiprocessing.connection import wait
from pathlib import Path

from ibsim_fixtures.processes import Child, LabError, small_files_folder, tail
from routing.deferred_signals import DeferredSignals
from routing.errors import InputError, OptionError
from routing.processes import remove_folder

_PROMPT = b"sim> "
# Harmless warning: ibsim prints it for every link whose line in the fabric file lacks the LID or the speed.  ibsim
# then uses default values for the link.
_HARMLESS = ("cannot parse remote lid and connection type",)
# Harmless warnings that ibsim prints if the fabric changes while OpenSM runs, or if a program ends.  They are about
# traps, about packets on a pulled cable, and about programs that are not connected any more.
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
    """Running ibsim process that executes console commands.

    Parameters
    ----------
    net_path
        Fabric file that ibsim reads.
    timeout
        Time limit in seconds for the start of ibsim and for each answer.
    """

    def __init__(self, net_path: str | Path, timeout: float) -> None:
        self.net_path = Path(net_path).resolve()
        self.timeout = timeout
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._folder: Path | None = None
        self.socket_name = f"ibnue-{os.getpid()}-{next(_counter)}-{os.urandom(3).hex()}"

    def _start(self, ibsim: Path, devices: int, ports: int, lids: int) -> None:
        """Start ibsim with room for ``devices`` devices, ``ports`` ports, and ``lids`` LIDs in each forwarding table.

        :meth:`close` ends ibsim.
        """
        with DeferredSignals():
            self._folder = Path(tempfile.mkdtemp(prefix="ibnue-ibsim-", dir=small_files_folder()))
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
            remedy = "ibnue fabric FILE -o NEW.net writes a file that ibsim can read"
            raise InputError(f"ibsim complains: {complaints[0]}", path=self.net_path, remedy=remedy)
        # The first prompt of ibsim can come before programs can connect to ibsim.  But ibsim executes commands only
        # when programs can connect.  So an answer to the command "attached" shows that programs can connect now.
        self.command("attached")

    def close(self) -> None:
        """End ibsim and remove its temporary folder.  A second call has no effect."""
        if self._child is not None:
            self._child.end(polite_seconds=0.0)
            self._child = None
        if self._folder is not None:
            remove_folder(str(self._folder))
            self._folder = None

    @property
    def _log(self) -> Path:
        return self.folder / "ibsim.err"

    @property
    def folder(self) -> Path:
        """Return the temporary folder in which connected programs run; :meth:`close` removes it.

        Raises
        ------
        LabError
            ibsim is not running.
        """
        if self._folder is None:
            raise LabError("ibsim is not running: use it as a context manager")
        return self._folder

    def _complaints(self, harmless: tuple[str, ...]) -> list[str]:
        lines = self._log.read_text(errors="replace").splitlines()
        return [re.sub(r"^ibwarn: \[\d+\] ", "", line) for line in lines if not any(h in line for h in harmless)]

    @property
    def warnings(self) -> list[str]:
        """Return the warnings that ibsim has printed, without the warnings that every change of the fabric causes."""
        return self._complaints(_HARMLESS_LATER)

    def _await_prompt(self, what: str, extra_seconds: float = 0.0) -> str:
        """Read ibsim's output up to the next prompt, and return the text before the prompt.  ``what`` names the answer
        in error messages.
        """
        assert self._child is not None
        stream = self._child.process.stdout
        assert stream is not None
        seconds = self.timeout + extra_seconds
        answer, end = b"", time.monotonic() + seconds
        while not answer.endswith(_PROMPT):
            left = end - time.monotonic()
            if left <= 0:
                # The time limit has passed.  ibsim is ended, because an answer that comes later would be mistaken for
                # the answer to the next command.
                self._child.end(polite_seconds=0.0)
                raise LabError(f"ibsim did not answer {what} within {seconds:g} s, and was ended")
            if not wait([stream.fileno()], min(left, 1.0)):
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
        position = re.search(r"fatal: error at (.*): line (\d+)", answer.decode(errors="replace"))
        if complaints and what == "the start":
            path, line = (position[1], int(position[2])) if position else (self.net_path, None)
            raise InputError(f"ibsim refuses the fabric: {complaints[0]}", path=path, line=line)
        raise LabError(f"ibsim {self._child.describe_end()} at {what}\n{tail(self._log)}")

    def command(self, line: str, *, extra_seconds: float = 0.0) -> str:
        """Execute a console command of ibsim, and return its answer.

        Parameters
        ----------
        line
            The command.
        extra_seconds
            Number of seconds to add to the time limit for the answer.

        Raises
        ------
        OptionError
            The line is too long for ibsim or contains a line break, or ibsim does not know the command.
        LabError
            ibsim has ended or does not answer in time.
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
        """Execute a console command that prints nothing on success.  If the command prints something, raise
        OptionError.

        ``extra_seconds`` is added to the time limit for the answer.
        """
        answer = " ".join(self.command(line, extra_seconds=extra_seconds).split())
        if answer:
            raise OptionError(f"ibsim refuses {line!r}: {answer.lstrip('# ')}")
