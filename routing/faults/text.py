"""Parse faults from texts: from a single text, or from a file with one text on each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from routing.endports import similar_names
from routing.errors import OptionError, ParseError
from routing.fabric import Fabric
from routing.faults.model import Fault, FaultKind, apply_faults, cable_at, device_of, node_guids
from routing.formats.text import lines_of, read_text
from routing.names import did_you_mean, guid_in, guid_text, guids_text
from routing.rates import SPEED_OF, WIDTHS

HOW = "write NAME/PORT, NAME/PORT - NAME/PORT, NAME, or port, switch, ca, group, degrade, swap in front"
_WORDS = ("link", "port", "switch", "ca", "group", "degrade", "swap")
_WIDTH = re.compile(r"([0-9]{1,2})x", re.ASCII)
_SHOWN = 80
_PORTS = re.compile(r"[0-9]{1,3}(?:-[0-9]{1,3})?", re.ASCII)


def parse_fault(text: str, fabric: Fabric) -> Fault:
    """Return the fault of a fabric that a text describes.

    ``S1/3`` or ``S1[3]`` is the loss of the link at that port.  ``S1/3 - S2/4`` is the loss of the link between these
    two ports, and ``S1`` the loss of the device.  Other faults begin with a word:

    - ``link S1/3``, ``port S1/3``, ``switch S1``, ``ca node7``: loss of a link, port, switch or CA.
    - ``degrade S1/3 1x SDR``: lower link width, speed or both.
    - ``swap S1/3 S2/4``: the plugs in these two ports are exchanged.
    - ``group [NAME:] MEMBER, ...``: joint loss of members such as ``S1``, ``S1/3``, ``S1/1-18``, ``leaf3*`` and
      ``leaf3*/1-18``.

    Devices are identified by name, node GUID (``0x...``), or label (``name (0x...)``).

    Raises
    ------
    OptionError
        The text does not describe a fault of this fabric, or is ambiguous.
    """
    return _Reader.of(fabric).fault(text)


def read_faults(path: str | Path, fabric: Fabric) -> list[Fault]:
    """Read a file with one fault text on each line.

    The texts have the form of :func:`parse_fault`.  Comments (``#``) and empty lines are allowed.

    Raises
    ------
    ParseError
        A line does not describe a fault of this fabric, or the file has no fault at all.
    EnvironmentProblem
        The file cannot be read.
    """
    reader, faults = _Reader.of(fabric), []
    for number, line in lines_of(read_text(path)):
        statement = re.sub(r"(^|\s)#.*", "", line).strip()
        if not statement:
            continue
        try:
            faults.append(reader.fault(statement))
        except OptionError as error:
            raise ParseError(error.problem, path=path, line=number, remedy=error.remedy) from None
    if not faults:
        raise ParseError("names no fault", path=path, remedy="write one a line, such as 'S1/3'")
    return faults


@dataclass(frozen=True, eq=False)
class _Reader:
    """Parser of fault texts for one fabric, with an index of the devices by name.

    ``like_words`` has the names of devices whose first word is a word of the fault syntax, such as ``link``.  A text
    that begins with such a name is read as a device or a port.
    """

    fabric: Fabric
    by_name: dict[str, list[int]]
    like_words: tuple[str, ...]

    @classmethod
    def of(cls, fabric: Fabric) -> _Reader:
        by_name: dict[str, list[int]] = {}
        for device, name in enumerate([*fabric.switch_name, *fabric.terminal_name]):
            by_name.setdefault(name, []).append(device)
        return cls(fabric, by_name, tuple(name for name in by_name if name.partition(" ")[0] in _WORDS))

    def fault(self, text: str) -> Fault:
        text = text.strip()
        if text in self.by_name:
            return self.device(text, None)
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word not in _WORDS or not rest or text.startswith(self.like_words):
            return self.link(text) if _has_port(text) else self.device(text, None)
        readers: dict[str, Callable[[str], Fault]] = {
            "link": self.link,
            "port": self.port,
            "switch": lambda named: self.device(named, FaultKind.SWITCH),
            "ca": lambda named: self.device(named, FaultKind.CA),
            "group": self.group,
            "degrade": self.degrade,
            "swap": self.swap,
        }
        return readers[word](rest)

    def device(self, text: str, kind: FaultKind | None) -> Fault:
        device = self.find(text)
        found = FaultKind.SWITCH if device < self.fabric.switches else FaultKind.CA
        if kind is not None and found is not kind:
            raise OptionError(f"{text!r} is not a {'switch' if kind is FaultKind.SWITCH else 'CA or router'}")
        return Fault(found, self.name(device), devices=(self.guid(device),))

    def port(self, text: str) -> Fault:
        device, port = self.end(text)
        self.cable(device, port)
        return Fault(FaultKind.PORT, f"port {self.name(device)}/{port}", ((self.guid(device), port),))

    def link(self, text: str) -> Fault:
        ends = self.both_ends(text)
        row, _ = self.cable(*ends[0])
        (a, b), (p, q) = self.fabric.link_device[row].tolist(), self.fabric.link_port[row].tolist()
        if len(ends) == 2 and {(a, p), (b, q)} != set(ends):
            here = ends[0]
            far = (b, q) if (a, p) == here else (a, p)
            raise OptionError(
                f"there is no link {text!r}",
                remedy=f"{self.name(here[0])}/{here[1]} is cabled to {self.name(far[0])}/{far[1]}",
            )
        name = f"{self.name(a)}/{p} - {self.name(b)}/{q}"
        return Fault(FaultKind.LINK, name, ((self.guid(a), p), (self.guid(b), q)))

    def degrade(self, text: str) -> Fault:
        words, width, speed = text.split(), None, None
        while len(words) > 1:
            lanes = _WIDTH.fullmatch(words[-1])
            if lanes and int(lanes[1]) in WIDTHS and width is None:
                width = int(lanes[1])
            elif words[-1].upper() in SPEED_OF and speed is None:
                speed = SPEED_OF[words[-1].upper()]
            else:
                break
            words.pop()
        if width is None and speed is None:
            raise OptionError(
                f"{text!r} says no width or speed", remedy=f"write it like S1/3 1x SDR: {', '.join(SPEED_OF)}"
            )
        link = self.link(" ".join(words))
        names = [f"{width}x"] if width is not None else []
        names += [name for name, value in SPEED_OF.items() if value == speed]
        fault = Fault(FaultKind.DEGRADE, f"degrade {link.name} {' '.join(names)}", link.ports[:1], (), width, speed)
        if apply_faults(self.fabric, [fault]).link_capacity.sum() >= self.fabric.link_capacity.sum():
            raise OptionError(f"{text!r} makes the link no slower", remedy="give fewer lanes or a lower speed")
        return fault

    def swap(self, text: str) -> Fault:
        ends = self.two(text, r"\s+")
        if ends is None:
            raise OptionError(f"{text!r} names no two ports", remedy="write swap S1/3 S2/4")
        if self.cable(*ends[0])[0] == self.cable(*ends[1])[0]:
            raise OptionError(f"{text!r} are the two plugs of one cable", remedy="name one port of each of two cables")
        name = "swap " + " ".join(f"{self.name(device)}/{port}" for device, port in ends)
        return Fault(FaultKind.SWAP, name, tuple((self.guid(device), port) for device, port in ends))

    def group(self, text: str) -> Fault:
        members = text.partition(":")[2] if ":" in text else text
        ports: dict[tuple[int, int], None] = {}
        devices: dict[int, None] = {}
        for member in (word.strip() for word in members.split(",")):
            if not member:
                raise OptionError(f"group {text!r} has an empty member", remedy="separate members with one comma")
            self.member(member, ports, devices)
        return Fault(FaultKind.GROUP, f"group {text}", tuple(ports), tuple(devices))

    def member(self, text: str, ports: dict[tuple[int, int], None], devices: dict[int, None]) -> None:
        """Parse one member of a group: add its ports to ``ports``, or its devices to ``devices``."""
        matching = self.matching(text)
        if matching:
            devices.update(dict.fromkeys(self.guid(device) for device in matching))
            return
        pattern, slash, numbers = text.rpartition("/")
        if not slash or not _PORTS.fullmatch(numbers):
            raise self.nothing(text)
        owners = self.matching(pattern)
        if not owners:
            raise self.nothing(pattern)
        low, _, high = numbers.partition("-")
        found = self.cabled(owners, int(low), int(high or low))
        if not found:
            raise OptionError(f"no port of {text!r} has a cable", remedy="name ports that are cabled")
        ports.update(dict.fromkeys(found))

    def cabled(self, devices: Sequence[int], low: int, high: int) -> list[tuple[int, int]]:
        """Return node GUID and port number of each cabled port of the given devices.

        Only ports with numbers from ``low`` to ``high`` are returned.
        """
        device, port = self.fabric.link_device.reshape(-1), self.fabric.link_port.reshape(-1)
        ends = np.flatnonzero(np.isin(device, devices) & (port >= low) & (port <= high))
        guids = node_guids(self.fabric)
        return sorted((int(guids[device[end]]), int(port[end])) for end in ends.tolist())

    def matching(self, pattern: str) -> list[int]:
        """Return the devices whose name matches a pattern, or the device with a GUID if the pattern is a GUID."""
        if pattern in self.by_name:
            return [self.find(pattern)]
        if guid_in(pattern) is not None:
            device = device_of(self.fabric, guid_in(pattern) or 0)
            return [device] if device >= 0 else []
        return [device for name, rows in self.by_name.items() if fnmatchcase(name, pattern) for device in rows]

    def both_ends(self, text: str) -> list[tuple[int, int]]:
        """Parse one port (``S1/3``) or two ports (``S1/3 - S2/4``).  Return (device, port number) of each port."""
        ends = self.two(text, r"\s+-+>?\s+")
        return ends or [self.end(text)]

    def two(self, text: str, between: str) -> list[tuple[int, int]] | None:
        """Parse two ports with a separator between them; return None if the text does not have this form.

        The name of a device can contain the separator, too.  So the text is split at one separator after the other,
        until the texts on both sides are ports.
        """
        problem = None
        for found in re.finditer(between, text):
            parts = text[: found.start()], text[found.end() :]
            if not all(_has_port(part) for part in parts):
                continue
            try:
                return [self.end(part) for part in parts]
            except OptionError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return None

    def end(self, text: str) -> tuple[int, int]:
        """Parse a port, ``S1/3`` or ``S1[3]``.  Return the device and the port number."""
        found = re.fullmatch(r"(.+)(?:/([0-9]{1,3})|\[([0-9]{1,3})\])", text.strip(), re.ASCII)
        if found is None:
            raise OptionError(f"{text!r} names no port", remedy=HOW)
        device, port = self.find(found[1].strip()), int(found[2] or found[3])
        fabric = self.fabric
        inside = device < fabric.switches
        limit = int(fabric.switch_ports[device] if inside else fabric.terminal_ports[device - fabric.switches])
        if not 1 <= port <= limit:
            raise OptionError(f"{found[1]} has no port {port}", remedy=f"its ports are 1 to {limit}")
        return device, port

    def cable(self, device: int, port: int) -> tuple[int, int]:
        """Return the row of the cable at a port, and the number (0 or 1) of the cable's end at this port.  Raise
        OptionError if there is no cable.
        """
        row, end = cable_at(self.fabric, device, port)
        if row < 0:
            ports = ", ".join(str(port) for _, port in self.cabled([device], 1, 255)[:36])
            raise OptionError(
                f"{self.name(device)} has no cable at port {port}",
                remedy=f"cabled are {ports}" if ports else "it has no cable at all",
            )
        return row, end

    def find(self, text: str) -> int:
        """Return the device with a given name or GUID; raise OptionError unless exactly one device has this name or
        GUID.
        """
        rows = self.by_name.get(text, [])
        guid = guid_in(text)
        if not rows and guid is not None:
            device = device_of(self.fabric, guid)
            rows = [device] if device >= 0 else []
        if len(rows) > 1:
            raise OptionError(
                f"{len(rows)} devices are named {text!r}",
                remedy=f"name it by GUID: {guids_text([self.guid(row) for row in rows])}",
            )
        if not rows:
            raise self.nothing(text)
        return rows[0]

    def nothing(self, text: str) -> OptionError:
        near = similar_names(text, self.candidates(text))
        hint = did_you_mean(near) if near else HOW
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        return OptionError(f"{self.fabric.name} has no device {shown!r}", remedy=hint)

    def candidates(self, text: str) -> Iterator[str]:
        """Yield the names of devices with which a misspelt name is compared.

        If the text is a GUID, the GUIDs of the devices come first.
        """
        if guid_in(text) is not None:
            yield from map(guid_text, node_guids(self.fabric).tolist())
        yield from (name for name in self.by_name if name)

    def guid(self, device: int) -> int:
        fabric = self.fabric
        if device < fabric.switches:
            return int(fabric.switch_guid[device])
        return int(fabric.terminal_guid[device - fabric.switches])

    def name(self, device: int) -> str:
        return self.fabric.labels[device]


def _has_port(text: str) -> bool:
    return re.fullmatch(r".+(?:/[0-9]{1,3}|\[[0-9]{1,3}\])", text.strip(), re.ASCII) is not None
