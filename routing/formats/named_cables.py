"""Build a fabric from cables between devices that are known by name only, as plans state them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.statements import PortStatements
from routing.rates import SPEED_OF

_FIRST_SWITCH, _FIRST_CA = 0x200000, 0x100000
"""First GUID of switches and of CAs.  Devices are numbered from these GUIDs, as ibsim numbers them."""


@dataclass(frozen=True, slots=True)
class NamedCable:
    """A cable between two devices.

    Attributes
    ----------
    ends
        Key of the device and port number, for each end of the cable.
    rate
        Width, and signalling rate of one physical lane in Gb/s; 0 for an unknown number.
    line
        Line number in the file.
    """

    ends: tuple[tuple[str, int], tuple[str, int]]
    rate: tuple[int, float]
    line: int


def fabric_of_cables(
    cables: Sequence[NamedCable], names: dict[str, str], switches: Set[str], path: str | Path, *, lmc: int
) -> Fabric:
    """Return the fabric of the cables.

    Devices get GUIDs in the order of their keys.  The number of ports of a device is the highest port number at which
    it has a cable.  If no cable has a rate, all links are 4xSDR.

    Parameters
    ----------
    cables
        The cables.  The list may contain a cable twice, once from each end.
    names
        Name of each device by its key.
    switches
        Keys of the switches; all other devices are CAs.
    path
        File name for error messages.
    lmc
        LMC of the end ports.

    Raises
    ------
    ParseError, FabricError
        There is no cable, or a port has two cables.

    Warns
    -----
    InputWarning
        Some links have a rate and others do not.  The warning states the number of links without a rate.
    """
    if not cables:
        raise ParseError("this file has no cable", path=path, remedy="is the file whole?")
    ports: dict[str, tuple[int, int]] = {}
    for cable in cables:
        for key, port in cable.ends:
            ports[key] = max(ports.get(key, (1, cable.line)), (port, cable.line))
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    guid_of = _guids(ports, switches)
    for key, guid in guid_of.items():
        kind = NodeKind.SWITCH if key in switches else NodeKind.CA
        builder.add_device(kind, guid, names[key], ports[key][0], Location(path, ports[key][1]))
    _check_ports(cables, names, path)
    statements = PortStatements(path)
    rated = any(any(cable.rate) for cable in cables)
    for cable in cables:
        near, far = ((guid_of[key], port) for key, port in cable.ends)
        rate = cable.rate if rated else (4, SPEED_OF["SDR"])
        statements.add(near, far, rate, cable.line)
        statements.add(far, near, rate, cable.line)
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _check_ports(cables: Sequence[NamedCable], names: dict[str, str], path: str | Path) -> None:
    """Raise FabricError if a port has two cables."""
    at: dict[tuple[str, int], tuple[tuple[str, int], int]] = {}
    for cable in cables:
        for near, far in (cable.ends, cable.ends[::-1]):
            known, line = at.setdefault(near, (far, cable.line))
            if known != far:
                first, second = (f"port {port} of {names[key]!r}" for key, port in (known, far))
                problem = f"port {near[1]} of {names[near[0]]!r} is cabled to {second}, and in line {line} to {first}"
                raise FabricError(problem, path=path, line=cable.line, remedy="a port takes one cable")


def _guids(keys: Iterable[str], switches: Set[str]) -> dict[str, int]:
    """Return the GUID of each device.  The ports of a CA have the GUIDs that follow the GUID of the CA."""
    guid_of, switch, ca = dict[str, int](), _FIRST_SWITCH, _FIRST_CA
    for key in sorted(keys):
        if key in switches:
            guid_of[key], switch = switch, switch + 1
        else:
            guid_of[key], ca = ca, ca + 0x100
    return guid_of
