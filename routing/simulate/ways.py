"""Small fabrics and tables written down by hand: cables between names, and the ways that packets take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import NO_PORT, Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.simulate.network import distances
from routing.tables import Provenance, Routing

SWITCH_GUID, CA_GUID = 0x100000, 0x200000
PORTS = 254


def small_fabric(
    name: str,
    switches: Sequence[str],
    cables: Iterable[tuple[str, str]],
    cas: Mapping[str, str],
    *,
    width: int = 4,
    speed: float = 10.0,
) -> Fabric:
    """A fabric of named devices; ports are numbered in the order of the cables, CAs' cables last.

    Parameters
    ----------
    name
        Of the fabric.
    switches, cables
        Names, and pairs of them.
    cas
        The switch of each CA by name; a CA may be repeated on no other switch.
    width, speed
        Of all cables.

    Raises
    ------
    OptionError
        A cable to a device that is not there.
    FabricError
        What makes no fabric.
    """
    builder, handle, used = FabricBuilder(name), {}, dict.fromkeys((*switches, *cas), 0)
    for number, switch in enumerate(switches):
        handle[switch] = builder.add_device(NodeKind.SWITCH, SWITCH_GUID + number, switch, PORTS)
    for number, ca in enumerate(cas):
        handle[ca] = builder.add_device(NodeKind.CA, CA_GUID + number, ca, 1)
    for ends in (*cables, *cas.items()):
        for end in ends:
            if end not in handle:
                raise OptionError(f"there is no device {end!r} to cable", remedy="list it among the switches or CAs")
            used[end] += 1
        builder.connect(handle[ends[0]], used[ends[0]], handle[ends[1]], used[ends[1]], width=width, speed=speed)
    return builder.build()


def _port_to(fabric: Fabric, near: str, far: str) -> int:
    """The first port of a device that leads to another."""
    names = (*fabric.switch_name, *fabric.terminal_name)
    for name in (near, far):
        if name not in names:
            raise OptionError(f"there is no device {name!r}")
    a, b = names.index(near), names.index(far)
    ports = [
        int(port[side])
        for ends, port in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
        for side in (0, 1)
        if ends[side] == a and ends[1 - side] == b
    ]
    if not ports:
        raise OptionError(f"there is no cable between {near} and {far}")
    return min(ports)


def endport_of(fabric: Fabric, name: str) -> int:
    """Row of the first end port of a CA or router.

    Raises
    ------
    OptionError
        Nobody has this name.
    """
    if name not in fabric.endport_name:
        raise OptionError(f"there is no CA {name!r} with a cable")
    return fabric.endport_name.index(name)


def lid_of(fabric: Fabric, name: str) -> int:
    """Base LID of a CA or router."""
    return int(fabric.endport_lid[endport_of(fabric, name)])


def _shortest(fabric: Fabric) -> npt.NDArray[np.uint8]:
    """uint8[S, L]: the lowest port on a shortest way to each CA's LID."""
    hops, channels = distances(fabric), fabric.channels
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for lid in np.flatnonzero(fabric.lids.endport >= 0).tolist():
        home = int(fabric.lids.switch[lid])
        if home < 0:
            continue
        nearer = hops[channels.dst, home] + 1 == hops[channels.src, home]
        for channel in np.flatnonzero(nearer)[::-1].tolist():
            lft[channels.src[channel], lid] = channels.port[channel]
        lft[home, lid] = fabric.lids.port[lid]
    return lft


def tables_of_ways(
    fabric: Fabric,
    ways: Iterable[Sequence[str]],
    *,
    vls: int = 1,
    sl: Mapping[tuple[str, str], int] | None = None,
    fill: bool = False,
) -> Routing:
    """Tables that hold these ways, and nothing else unless they are filled up.

    Parameters
    ----------
    fabric
        What they run on.
    ways
        Names of devices, from CA to CA.
    vls
        SL n rides VL n modulo this.
    sl
        The SL of pairs of CAs; 0 for the others.
    fill
        Entries that no way needs lead along shortest ways, by the lowest port.

    Raises
    ------
    OptionError
        A cable that is not there, or two ways that want different ports of a switch towards the same CA.
    """
    lids = len(fabric.lids)
    lft = np.full((fabric.switches, lids), NO_PORT, np.uint8)
    for way in ways:
        lid = lid_of(fabric, way[-1])
        for near, far in pairwise(way[1:]):
            port, switch = _port_to(fabric, near, far), fabric.switch_name.index(near)
            if lft[switch, lid] not in (NO_PORT, port):
                raise OptionError(f"two ways to {way[-1]} leave {near} by different ports", remedy="a table has one")
            lft[switch, lid] = port
    if fill:
        lft = np.where(lft == NO_PORT, _shortest(fabric), lft)
    levels = np.zeros((lids, lids), np.uint8)
    for (source, target), level in (sl or {}).items():
        levels[lid_of(fabric, source), lid_of(fabric, target)] = level
    sl2vl = (np.arange(16) % vls).astype(np.uint8)
    return Routing(lft, levels, sl2vl, vls, vls, Provenance("ways"))
