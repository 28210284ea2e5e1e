"""A real ibsim on a fabric file, as a context manager, with its console as methods.

Several run at once: each has a socket name of its own.  Programs are connected to it by :meth:`Ibsim.run` (a diagnostic
tool that ends by itself) or by starting them with :meth:`Ibsim.environment` (OpenSM).
"""

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
from types import TracebackType

from ibsim_fixtures.ibsim_text import Client, Device, PortState, clients_of, devices_of, ports_of, records_of
from ibsim_fixtures.processes import Child, LabError, find_program, find_umad2sim, is_alive, tail, tied
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


class Ibsim:
    """ibsim on a fabric file.

    Parameters
    ----------
    net_path
        A fabric file that ibsim reads: its own net format, or the output of ibnetdiscover.  Relative ``include`` lines
        are relative to the file.
    sm_host
        Device (id, description or GUID) that programs are connected to unless they say otherwise; None: the first CA
        whose port 1 is cabled, or the first switch where there is no such CA.
    linear_cap
        Size of the forwarding tables; None: enough for all LIDs of the fabric with LMC 0 to 3.
    timeout
        Seconds that the start or an answer of the console may take.

    Raises
    ------
    EnvironmentProblem
        ibsim or libumad2sim is not installed.
    InputError
        The fabric file cannot be read, or ibsim complains about it.
    LabError
        ibsim died or did not answer in time.
    """

    def __init__(
        self,
        net_path: str | Path,
        *,
        sm_host: str | int | None = None,
        linear_cap: int | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.net_path = Path(net_path).resolve()
        self.timeout = timeout
        self._wanted_host = sm_host
        self._linear_cap = linear_cap
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._folder: Path | None = None
        self.socket_name = f"ibnue-{os.getpid()}-{next(_counter)}-{os.urandom(3).hex()}"
        self.devices: tuple[Device, ...] = ()
        self.sm_host = ""

    def __enter__(self) -> Ibsim:
        ibsim, self._umad2sim = find_program("ibsim"), find_umad2sim()
        records = records_of(self.net_path)
        self._folder = Path(tempfile.mkdtemp(prefix="ibnue-ibsim-"))
        try:
            self._start(ibsim, records)
            self.devices = devices_of(self.dump(), {name: text for _, _, name, text in records})
            self.sm_host = self._choose_host()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End ibsim and remove what it left.  Doing it again does nothing."""
        if self._child is not None:
            self._child.end(polite_seconds=0.0)
            self._child = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start(self, ibsim: Path, records: list[tuple[str, int, str, str]]) -> None:
        devices, ports = len(records) + 8, sum(ports + 1 for _, ports, _, _ in records) + 64
        lids = self._linear_cap or min(0xC000, max(1024, 8 * ports))
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
            self._child.process.wait(5)
        complaints = self._complaints(_HARMLESS)
        place = re.search(r"fatal: error at (.*): line (\d+)", answer.decode(errors="replace"))
        if complaints and what == "the start":
            path, line = (place[1], int(place[2])) if place else (self.net_path, None)
            raise InputError(f"ibsim refuses the fabric: {complaints[0]}", path=path, line=line)
        raise LabError(f"ibsim {self._child.describe_end()} at {what}\n{tail(self._log)}")

    # The console

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

    def device(self, which: str | int) -> Device:
        """The device with that id, description or GUID (a number, or text like "0x200000").

        Raises
        ------
        OptionError
            There is none.
        """
        found = self._find(which)
        if found is None:
            raise OptionError(f"the fabric has no device {which!r}")
        return found

    def _find(self, which: str | int) -> Device | None:
        for device in self.devices:
            if which in (device.id, device.guid):
                return device
        guid = int(which, 16) if isinstance(which, str) and re.fullmatch(r"0x[0-9a-fA-F]+", which) else None
        for device in self.devices:
            if which == device.description or device.guid == guid:
                return device
        return None

    def _place(self, which: str | int, port: int | None) -> str:
        name = self.device(which).id
        return f'"{name}"' if port is None else f'"{name}"[{port}]'

    def unlink(self, device: str | int, port: int | None = None) -> None:
        """Pull the cable of a port, or all cables of a switch or CA.  ibsim remembers where they were."""
        self._change(f"unlink {self._place(device, port)}")

    def relink(self, device: str | int, port: int | None = None) -> None:
        """Put back the cable of a port, or all cables of a device, where they were before ``unlink``."""
        self._change(f"relink {self._place(device, port)}")

    def link(self, device: str | int, port: int, remote: str | int, remote_port: int) -> None:
        """Cable two free ports."""
        self._change(f"link {self._place(device, port)} {self._place(remote, remote_port)}")

    def clear(self, device: str | int, port: int | None = None) -> None:
        """Pull the cables and reset the ports, LIDs included: what a power cycle does."""
        self._change(f"clear {self._place(device, port)}")

    def error(self, device: str | int, percent: int, *, port: int | None = None, attribute: int | None = None) -> None:
        """Lose that percentage of the management packets that are handled at a port (or at all of a device).

        This is no link fault: packets that are only passed on are not lost.  ``attribute`` limits it to one kind of
        query (16 NodeDescription, 17 NodeInfo, 18 SwitchInfo, 21 PortInfo).
        """
        if not 0 <= percent <= 100:
            raise OptionError(f"an error rate is 0 to 100 percent, not {percent}")
        which = "" if attribute is None else f" {attribute}"
        self._change(f"error {self._place(device, port)} {percent}{which}")

    def dump(self, device: str | int | None = None) -> str:
        """The account that ibsim gives of the fabric, or of one device."""
        return self.command("dump" if device is None else f"dump {self._place(device, None)}")

    def ports(self, device: str | int | None = None) -> list[PortState]:
        """Every external port of the fabric, or of one device, as ibsim has it now."""
        return ports_of(self.dump(device))

    def wait(self, seconds: int) -> None:
        """Make the simulator stand still for whole seconds: nothing is answered meanwhile."""
        self._change(f"wait {seconds}", extra_seconds=seconds)

    def clients(self) -> list[Client]:
        """The programs that are connected.

        ibsim has room for ten and does not notice when one is killed, so those that are gone are dropped first.
        """
        found = []
        for number, client in clients_of(self.command("attached")):
            if is_alive(client.pid):
                found.append(client)
            else:
                self._change(f"x {number}")
        return found

    def _choose_host(self) -> str:
        if self._wanted_host is not None:
            return self.device(self._wanted_host).id
        cabled = {p.device for p in self.ports() if p.port == 1 and p.peer is not None}
        for device in self.devices:
            if device.kind == "Ca" and device.id in cabled:
                return device.id
        for device in self.devices:
            if device.kind == "Switch":
                return device.id
        raise InputError("no CA with a cable in port 1 and no switch: OpenSM has no place to run", path=self.net_path)

    # Programs

    def environment(self, host: str | int | None = None) -> dict[str, str]:
        """The environment in which a program talks to this ibsim, connected at ``host`` (None: :attr:`sm_host`)."""
        return {
            **os.environ,
            "IBSIM_SOCKNAME": self.socket_name,
            "LD_PRELOAD": str(self._umad2sim),
            "SIM_HOST": self.sm_host if host is None else self.device(host).id,
        }

    def run(
        self,
        program: str,
        *arguments: str | int,
        host: str | int | None = None,
        stdin: str = "",
        timeout: float | None = None,
    ) -> str:
        """Run a diagnostic program on the simulated fabric; what it printed.

        Parameters
        ----------
        program, arguments
            Its name or path, and what it is told.
        host
            Device that it is connected to; None: :attr:`sm_host`.
        stdin
            What it reads.
        timeout
            Seconds that it may take.

        Raises
        ------
        EnvironmentProblem
            It is not installed.
        LabError
            It failed or did not end in time; the message holds what it said.
        """
        command = [str(find_program(program)), *map(str, arguments)]
        seconds = self.timeout if timeout is None else timeout
        # The simulated sysfs is made below the working directory, so that must be a place which is removed.
        try:
            done = subprocess.run(
                tied(command),
                env=self.environment(host),
                cwd=self.folder,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{' '.join([program, *command[1:]])} did not end within {seconds:g} s") from None
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-600:]
            raise LabError(f"{' '.join([program, *command[1:]])} ended with exit status {done.returncode}: {said}")
        return done.stdout
