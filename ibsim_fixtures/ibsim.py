"""Run a real ibsim that simulates the fabric of a file.  :class:`Ibsim` is a context manager with methods that change
the fabric.

Several instances can run at once, because each has its own socket name.  A diagnostic tool is connected by
:meth:`Ibsim.run`.  Other programs, such as OpenSM, are started with the environment from :meth:`Ibsim.environment`.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from ibsim_fixtures.ibsim_console import Console
from ibsim_fixtures.ibsim_text import Client, Device, PortState, clients_of, devices_of, ports_of, records_of
from ibsim_fixtures.processes import TIMEOUT_SECONDS, LabError, find_program, find_umad2sim, is_alive, run_to_end
from routing.errors import InputError, OptionError


class Ibsim(Console):
    """Running ibsim process that simulates the fabric of a file.

    Parameters
    ----------
    net_path
        Fabric file that ibsim can read: its own net format, or the output of ibnetdiscover.  Relative paths in
        ``include`` lines start at the folder of the file.
    sm_host
        Device (id, description or GUID) on which connected programs run by default.  None: the first CA whose port 1 is
        cabled, or the first switch if there is no such CA.
    linear_cap
        Number of LIDs in a forwarding table.  None: enough for all LIDs of the fabric with LMC 0 to 3.
    timeout
        Time limit in seconds for the start and for each answer of the console.

    Raises
    ------
    EnvironmentProblem
        ibsim or libumad2sim is not installed.
    InputError
        The fabric file cannot be read, or ibsim reports an error in this file.
    LabError
        ibsim ended or did not answer in time.
    """

    def __init__(
        self,
        net_path: str | Path,
        *,
        sm_host: str | int | None = None,
        linear_cap: int | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(net_path, timeout)
        self._wanted_host = sm_host
        self._linear_cap = linear_cap
        self.devices: tuple[Device, ...] = ()
        self.sm_host = ""

    def __enter__(self) -> Ibsim:
        ibsim, self._umad2sim = find_program("ibsim"), find_umad2sim()
        records = records_of(self.net_path)
        devices, ports = len(records) + 8, sum(ports + 1 for _, ports, _, _ in records) + 64
        try:
            self._start(ibsim, devices, ports, self._linear_cap or min(0xC000, max(1024, 8 * ports)))
            self.devices = devices_of(self.dump(), {name: text for _, _, name, text in records})
            self.sm_host = self._choose_host()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def device(self, which: str | int) -> Device:
        """Return the device with a given id, description or GUID (a number, or a text such as "0x200000").

        Raises
        ------
        OptionError
            There is no such device.
        """
        found = self._find(which)
        if found is None:
            raise OptionError(f"the fabric has no device {which!r}")
        return found

    def _find(self, which: str | int) -> Device | None:
        guid = int(which, 16) if isinstance(which, str) and re.fullmatch(r"0x[0-9a-fA-F]+", which) else None
        exact = [device for device in self.devices if which in (device.id, device.guid)]
        found = exact or [each for each in self.devices if which == each.description or each.guid == guid]
        return found[0] if found else None

    def _place(self, which: str | int, port: int | None) -> str:
        name = self.device(which).id
        return f'"{name}"' if port is None else f'"{name}"[{port}]'

    def unlink(self, device: str | int, port: int | None = None) -> None:
        """Pull the cable of a port, or all cables of a device.  ibsim remembers both ends for :meth:`relink`."""
        self._change(f"unlink {self._place(device, port)}")

    def relink(self, device: str | int, port: int | None = None) -> None:
        """Plug in the cable of a port, or all cables of a device, as they were before :meth:`unlink`."""
        self._change(f"relink {self._place(device, port)}")

    def link(self, device: str | int, port: int, remote: str | int, remote_port: int) -> None:
        """Connect two free ports by a cable.

        The ports are ``port`` of ``device``, and ``remote_port`` of the device ``remote``.
        """
        self._change(f"link {self._place(device, port)} {self._place(remote, remote_port)}")

    def clear(self, device: str | int, port: int | None = None) -> None:
        """Pull the cables of a port or device, and reset its ports with their LIDs, as a power cycle does."""
        self._change(f"clear {self._place(device, port)}")

    def error(self, device: str | int, percent: int, *, port: int | None = None, attribute: int | None = None) -> None:
        """Make a port, or all ports of a device, drop a percentage of the management packets that it handles itself.

        This is not a link fault: packets that are only forwarded are not dropped.  ``attribute`` limits the drops to
        queries of one attribute (16 NodeDescription, 17 NodeInfo, 18 SwitchInfo, 21 PortInfo).

        Raises
        ------
        OptionError
            ``percent`` is not within 0 to 100, or there is no such device.
        """
        if not 0 <= percent <= 100:
            raise OptionError(f"an error rate is 0 to 100 percent, not {percent}")
        which = "" if attribute is None else f" {attribute}"
        self._change(f"error {self._place(device, port)} {percent}{which}")

    def dump(self, device: str | int | None = None) -> str:
        """Return ibsim's text dump of the fabric, or of one device."""
        return self.command("dump" if device is None else f"dump {self._place(device, None)}")

    def ports(self, device: str | int | None = None) -> list[PortState]:
        """Return the present state of every external port of the fabric, or of one device."""
        return ports_of(self.dump(device))

    def wait(self, seconds: int) -> None:
        """Suspend the simulator for a number of whole seconds, during which it answers no query."""
        self._change(f"wait {seconds}", extra_seconds=seconds)

    def clients(self) -> list[Client]:
        """Return the programs that are connected to ibsim.

        ibsim has room for ten programs, and does not notice when a program is killed.  So programs that have ended are
        disconnected first.

        Raises
        ------
        OptionError
            ibsim does not disconnect a program that has ended.
        """
        found = []
        for number, client in clients_of(self.command("attached")):
            if is_alive(client.pid):
                found.append(client)
                continue
            answer = self.command(f"x {number}").strip()
            # ibsim may have disconnected the client already, because it could not deliver a packet to the client.  Then
            # ibsim answers "bad clientid", which is not an error here.
            if answer and "bad clientid" not in answer:
                raise OptionError(f"ibsim does not disconnect client {number}: {answer}")
        return found

    def _choose_host(self) -> str:
        if self._wanted_host is not None:
            return self.device(self._wanted_host).id
        cabled = {p.device for p in self.ports() if p.port == 1 and p.peer is not None}
        cas = [device.id for device in self.devices if device.kind == "Ca" and device.id in cabled]
        hosts = cas or [device.id for device in self.devices if device.kind == "Switch"]
        if not hosts:
            raise InputError("no CA with a cable in port 1 and no switch on which OpenSM could run", path=self.net_path)
        return hosts[0]

    def environment(self, host: str | int | None = None) -> dict[str, str]:
        """Return environment variables with which a program connects to this ibsim as device ``host`` (None:
        ``sm_host``).
        """
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
        """Run a diagnostic program on the simulated fabric, and return its standard output.

        Parameters
        ----------
        program
            Name or path of the program.
        arguments
            Command line arguments of the program.
        host
            Device on which the program runs.  None: ``sm_host``.
        stdin
            Standard input of the program.
        timeout
            Time limit in seconds.  None: the time limit of this object.

        Raises
        ------
        EnvironmentProblem
            The program is not installed.
        LabError
            The program failed (the message contains its output) or did not end in time.
        """
        command = [str(find_program(program)), *map(str, arguments)]
        seconds = self.timeout if timeout is None else timeout
        # libumad2sim creates a simulated sysfs in the working directory, so a temporary folder is used.
        try:
            done = run_to_end(
                command, environment=self.environment(host), folder=self.folder, stdin=stdin, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{' '.join([program, *command[1:]])} did not end within {seconds:g} s") from None
        if done.returncode:
            output = " ".join((done.stderr or done.stdout).split())[-600:]
            raise LabError(f"{' '.join([program, *command[1:]])} ended with exit status {done.returncode}: {output}")
        return done.stdout
