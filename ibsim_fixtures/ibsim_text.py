"""Parse ibsim's console output and the fabric files that ibsim reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from routing.errors import InputError

_RECORD = re.compile(r'^(Switch|Hca|Ca|Rt)\S*\s+(\d+)\s+"([^"]+)"(?:[^#\n]*#\s*"([^"]*)")?', re.MULTILINE)
_INCLUDE = re.compile(r'^include[^"]*"([^"]+)"', re.MULTILINE)
_DUMPED_DEVICE = re.compile(r'^(Switch|Ca|Router|\S+) (\d+) "([^"]*)"\tnodeguid ([0-9a-f]+)')
_DUMPED_PORT = re.compile(r'^[0-9a-f]+\t\[(\d+)\]\t(?:"([^"]*)"\[(\d+)\])?.* (\S+)/(\S+)\s*$')
_CLIENT = re.compile(r'^Client (\d+): pid (\d+) connected at "([^"]*)"(.*)$', re.MULTILINE)


@dataclass(frozen=True)
class Device:
    """Device of the simulated fabric.

    Attributes
    ----------
    id
        Name of the device in the fabric file, by which console commands address it.
    description
        Node description, which OpenSM writes to its dumps.
    kind
        "Switch", "Ca" or "Router".
    guid
        Node GUID.
    ports
        Number of external ports.
    """

    id: str
    description: str
    kind: str
    guid: int
    ports: int


@dataclass(frozen=True)
class PortState:
    """State of one port in ibsim's dump.

    ``peer`` is the (device id, port) at the other end of the cable.  ``peer`` is None without a cable.  ``state`` and
    ``physical`` are the link state and the physical state.
    """

    device: str
    port: int
    peer: tuple[str, int] | None
    state: str
    physical: str


@dataclass(frozen=True)
class Client:
    """Program that is connected to ibsim: its process id, the id of the device on which it runs, and whether it is a
    subnet manager.
    """

    pid: int
    device: str
    is_sm: bool


def ports_of(dump: str) -> list[PortState]:
    """Parse the output of ibsim's command ``dump``, and return the state of every external port."""
    ports, name = [], ""
    for line in dump.split("\n"):
        if head := _DUMPED_DEVICE.match(line):
            name = head[3]
        elif (port := _DUMPED_PORT.match(line)) and port[1] != "0":
            peer = (port[2], int(port[3])) if port[2] else None
            ports.append(PortState(name, int(port[1]), peer, port[4], port[5]))
    return ports


def devices_of(dump: str, descriptions: dict[str, str]) -> tuple[Device, ...]:
    """Parse the output of ibsim's command ``dump``, and return every device.

    The output contains no descriptions.  ``descriptions`` has the descriptions by device id.
    """
    found = []
    for line in dump.split("\n"):
        if head := _DUMPED_DEVICE.match(line):
            name = head[3]
            text = descriptions.get(name.rpartition("#")[2]) or name
            found.append(Device(name, text, head[1], int(head[4], 16), int(head[2])))
    return tuple(found)


def clients_of(attached: str) -> list[tuple[int, Client]]:
    """Parse the output of ibsim's command ``attached``, and return the programs that are connected to ibsim.

    Each program comes with the number that ibsim has given to the program.
    """
    return [
        (int(number), Client(int(pid), device, end.endswith("SM")))
        for number, pid, device, end in _CLIENT.findall(attached)
    ]


def records_of(path: Path, depth: int = 0) -> list[tuple[str, int, str, str]]:
    """Return (kind, ports, id, description) of every device in a fabric file, including the files that this file
    includes.

    ``depth`` is 0 for the fabric file, 1 for a file that it includes, and so on.  Callers omit this argument.

    Raises
    ------
    InputError
        A file cannot be read, or the files have no device.
    """
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    found = [(kind, int(ports), name, label) for kind, ports, name, label in _RECORD.findall(text)]
    if depth < 16:
        for name in _INCLUDE.findall(text):
            found += records_of(path.parent / name, depth + 1)
    if not depth and not found:
        raise InputError("holds no Switch, Ca or Hca: not a fabric that ibsim reads", path=path)
    return found
