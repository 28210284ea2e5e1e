"""Build small fabrics from lists of cables, and routing tables from lists of paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from routing.deadlock.traffic_sources import lid_name
from routing.endports import find_device, find_endport
from routing.errors import OptionError
from routing.fabric import NO_PORT, Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.simulate.network import distances
from routing.tables import Provenance, Routing

SWITCH_GUID, CA_GUID = 0x100000, 0x200000
PORTS = 254


def literal_fabric(
    name: str,
    switches: Sequence[str],
    cables: Iterable[tuple[str, str]],
    cas: Mapping[str, str],
    *,
    width: int = 4,
    speed: float = 10.0,
    lmc: int = 0,
) -> Fabric:
    """Build a fabric from the names of its switches, cables and CAs.

    Ports are numbered in the order of the cables.  Cables of CAs need not be listed.  If they are not listed, they are
    added after all other cables.

    Parameters
    ----------
    name
        Name of the fabric.
    switches, cables
        Names of the switches, and pairs of names that a cable connects.
    cas
        Name of each CA's switch, by name of the CA.
    width, speed
        Width and speed of all cables.
    lmc
        LMC of every CA: each has 2^lmc LIDs.

    Raises
    ------
    OptionError
        A cable leads to an unknown device.
    FabricError
        The devices and cables are not a valid fabric.
    """
    builder, handle, used = FabricBuilder(name), {}, dict.fromkeys((*switches, *cas), 0)
    for number, switch in enumerate(switches):
        handle[switch] = builder.add_device(NodeKind.SWITCH, SWITCH_GUID + number, switch, PORTS)
    for number, ca in enumerate(cas):
        handle[ca] = builder.add_device(NodeKind.CA, CA_GUID + number, ca, 1)
    cables = [*cables]
    given = {frozenset(ends) for ends in cables}
    for ends in (*cables, *(ends for ends in cas.items() if frozenset(ends) not in given)):
        plugs: list[int] = []
        for end in ends:
            if end not in handle:
                raise OptionError(f"there is no device {end!r} to cable", remedy="list it among the switches or CAs")
            used[end] += 1
            plugs += handle[end], used[end]
        builder.connect(*plugs, width=width, speed=speed)
    return builder.build(lmc=lmc)


def _port_to(fabric: Fabric, near: int, far: int) -> int:
    """Return the lowest port of device ``near`` whose cable leads to device ``far``."""
    ports = [
        int(port[side])
        for ends, port in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
        for side in (0, 1)
        if ends[side] == near and ends[1 - side] == far
    ]
    if not ports:
        ends = f"{fabric.labels[near]} and {fabric.labels[far]}"
        raise OptionError(f"there is no cable between {ends}", remedy="name devices with a cable between them")
    return min(ports)


def path_hops(fabric: Fabric, path: Sequence[str]) -> list[tuple[int, int]]:
    """Return the switch and out-port of every hop of a path.  The path is a list of device names from CA to CA.

    Raises
    ------
    OptionError
        A device or cable does not exist, or the path passes through a CA.
    """
    devices = [find_device(fabric, name) for name in path]
    for name, device in zip(path[1:-1], devices[1:-1], strict=True):
        if device >= fabric.switches:
            raise OptionError(f"a path passes through {name!r}, which is not a switch", remedy="use CAs as ends only")
    _port_to(fabric, devices[0], devices[1])
    hops = [(near, _port_to(fabric, near, far)) for near, far in pairwise(devices[1:])]
    target = endport_of(fabric, path[-1])
    # Two ports of the destination CA may be cabled to the last switch.  The path then ends at the port that its last
    # name selects.
    if hops[-1][0] == int(fabric.endport_switch[target]):
        hops[-1] = hops[-1][0], int(fabric.endport_switch_port[target])
    return hops


def endport_of(fabric: Fabric, name: str) -> int:
    """Return the row of an end port in the fabric's end-port arrays, given its name, GUID or LID.

    Raises
    ------
    OptionError
        No port, or more than one port, matches.
    """
    return find_endport(fabric, name)[0]


def lid_of(fabric: Fabric, name: str) -> int:
    """Return a LID of a CA or router.

    If ``name`` is a LID, the result is that LID.  Otherwise it is the base LID of the port with that name or GUID.
    """
    return find_endport(fabric, name)[1]


def lids_of(fabric: Fabric, name: str) -> list[int]:
    """Return all LIDs of a CA's or router's port.  There are several if the LMC of the port is over 0."""
    endport = endport_of(fabric, name)
    base = int(fabric.endport_lid[endport])
    return list(range(base, base + (1 << int(fabric.endport_lmc[endport]))))


def path_by_tables(fabric: Fabric, routing: Routing, endport: int, lid: int) -> list[str]:
    """Follow the LFTs from an end port to a LID, and return the names of the devices on the path.

    The last name of the result is always the name of the LID's owner, even if packets do not reach it.  If an entry is
    missing, the name before the last one is the switch with the missing entry.
    """
    channels, switch = fabric.channels, int(fabric.endport_switch[endport])
    path = [fabric.endport_label[endport]]
    while switch >= 0 and len(path) <= fabric.switches:
        path.append(fabric.labels[switch])
        channel = int(channels.at_port[switch, routing.lft[switch, lid]])
        switch = int(channels.dst[channel]) if channel >= 0 else -1
    return [*path, lid_name(fabric, lid)]


def _shortest(fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Compute LFTs, uint8[S, L], for the LIDs of end ports.

    Each entry towards such a LID is the lowest port of the switch on a shortest path.  Entries towards other LIDs are
    NO_PORT.
    """
    hops, channels = distances(fabric), fabric.channels
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for lid in np.flatnonzero(fabric.lids.endport >= 0).tolist():
        own_switch = int(fabric.lids.switch[lid])
        if own_switch < 0:
            continue
        nearer = hops[channels.dst, own_switch] + 1 == hops[channels.src, own_switch]
        for channel in np.flatnonzero(nearer)[::-1].tolist():
            lft[channels.src[channel], lid] = channels.port[channel]
        lft[own_switch, lid] = fabric.lids.port[lid]
    return lft


def d_mod_k(fabric: Fabric) -> Routing:
    """Compute the D-mod-K tables of a tree, in which the number of the destination CA selects the up-port.

    Up-ports lead to the level above.  Downward paths use the lowest port.  Upward, a leaf with k up-ports uses the
    up-port n modulo k, where n is the number of the destination CA's LID among all LIDs of CAs, counted from 0.

    A switch above the leaves first divides n by w.  Then it uses the up-port (n // w) modulo the number of its
    up-ports.  For each level below the switch, w has one factor: the largest number of up-ports that a switch of that
    level has.  So CAs that share an up-port at one level are spread over the up-ports of the level above.

    In a shift pattern, each CA sends to the CA whose number is larger by a constant.  If the tree has the same capacity
    between any two levels, the flows of a shift pattern share no channel (Zahavi 2012).

    Raises
    ------
    OptionError
        The fabric is not a tree: a cable connects two switches of the same level.
    """
    hops, channels, lids = distances(fabric), fabric.channels, fabric.lids
    leaves = np.unique(lids.switch[(lids.endport >= 0) & (lids.switch >= 0)])
    level = hops[:, leaves].min(axis=1).astype(np.int64) if len(leaves) else np.zeros(fabric.switches, np.int64)
    if (level[channels.src] == level[channels.dst]).any():
        raise OptionError("two switches of the same level have a cable, so this is not a tree", remedy="use an engine")
    up = level[channels.dst] > level[channels.src]
    ports: list[list[int]] = [[] for _ in range(fabric.switches)]
    for channel in np.flatnonzero(up).tolist():
        ports[channels.src[channel]].append(int(channels.port[channel]))
    below = [1] * (int(level.max(initial=0)) + 1)
    for number in range(1, len(below)):
        widest = max((len(ports[s]) for s in np.flatnonzero(level == number - 1).tolist()), default=1)
        below[number] = below[number - 1] * max(widest, 1)
    nearest, lft = _shortest(fabric), np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    for n, lid in enumerate(np.flatnonzero((lids.endport >= 0) & (lids.switch >= 0)).tolist()):
        down = hops[:, lids.switch[lid]] == level - level[lids.switch[lid]]
        for switch in range(fabric.switches):
            own = ports[switch]
            port = nearest[switch, lid] if down[switch] or not own else own[n // below[level[switch]] % len(own)]
            lft[switch, lid] = port
    sls = np.zeros((len(lids), len(lids)), np.uint8)
    return Routing(lft, sls, np.zeros(16, np.uint8), 1, 1, Provenance("d-mod-k"))


def tables_from_paths(
    fabric: Fabric,
    paths: Iterable[Sequence[str]],
    *,
    vls: int = 1,
    sl: Mapping[tuple[str, str], int] | None = None,
    fill: bool = False,
) -> Routing:
    """Build tables that contain the given paths.

    Parameters
    ----------
    fabric
        Fabric of the tables.
    paths
        Paths as names of devices, from CA to CA.
    vls
        Number of VLs; SL n uses VL n modulo ``vls``.
    sl
        SL by pair of CA names (source, destination); 0 for other pairs.
    fill
        Whether to fill all other entries with the lowest port on a shortest path.  If not, these entries are missing.

    Raises
    ------
    OptionError
        A cable does not exist, a path passes through a CA, or two paths to the same CA leave a switch by different
        ports.
    """
    lids = len(fabric.lids)
    lft = np.full((fabric.switches, lids), NO_PORT, np.uint8)
    for path in paths:
        own = lids_of(fabric, path[-1])
        for switch, port in path_hops(fabric, path):
            if lft[switch, own[0]] not in (NO_PORT, port):
                near = fabric.labels[switch]
                raise OptionError(f"two paths to {path[-1]} leave {near} by different ports", remedy="a table has one")
            lft[switch, own] = port
    if fill:
        lft = np.where(lft == NO_PORT, _shortest(fabric), lft)
    sls = np.zeros((lids, lids), np.uint8)
    for (source, target), level in (sl or {}).items():
        sls[np.ix_(lids_of(fabric, source), lids_of(fabric, target))] = level
    sl2vl = (np.arange(16) % vls).astype(np.uint8)
    return Routing(lft, sls, sl2vl, vls, vls, Provenance("paths"))
