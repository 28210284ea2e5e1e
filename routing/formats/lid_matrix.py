"""Read and write ``opensm-lid-matrix.dump``: the hops from each switch to every other switch by each port.

OpenSM loads the file with its option ``-M``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import MAX_UNICAST_LID, NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.dump_lines import numbered_lines
from routing.formats.lid_map import lid_owner
from routing.formats.opensm_order import opensm_order
from routing.formats.switch_rows import SwitchRows
from routing.numerals import count_noun

NO_HOPS = 255
LARGEST = 1 << 30
"""Maximum size in bytes of a matrix in memory, so that a damaged file cannot exhaust the memory."""

_SWITCH = re.compile(r"\s*Switch: guid 0x([0-9a-fA-F]{1,16})\s*$")
_ENTRY = re.compile(
    r"\s*0x([0-9a-fA-F]{1,4})\s*:((?: [0-9a-fA-F]{2}){1,256})\s*(?:#(?:.* portguid 0x([0-9a-fA-F]{1,16}))?.*)?$"
)
_NOISE = re.compile(r"\s*(?:#|$)")
_HEX = np.frombuffer(b"".join(b" %02x" % n for n in range(256)), np.uint8).reshape(256, 3)


@dataclass(frozen=True, eq=False)
class LidMatrix:
    """Number of hops from each switch to each LID in the matrix, by out-port.

    Attributes
    ----------
    lid
        int64[n], the LIDs in the matrix, ascending.
    hops
        uint8[S, n, P], the number of hops from each switch to each LID over each out-port; 255 if there is no path.
        Port 0 has the minimum over all out-ports.  P is the largest number of ports of a switch, plus one for port 0.
    """

    lid: npt.NDArray[np.int64]
    hops: npt.NDArray[np.uint8]


def of_routing(fabric: Fabric, lft: npt.NDArray[np.uint8], hops: npt.NDArray[np.uint8]) -> LidMatrix:
    """Return a matrix with the hops of the paths in the tables.

    OpenSM stores only hops to switches.  For the LID of an end port, OpenSM uses the hops to the switch that delivers
    the LID.  So the matrix has one value for each switch, out-port and destination switch.  Several paths may lead over
    this out-port to LIDs that the destination switch delivers.  The value is the smallest number of hops of these
    paths, or 255 if there is no such path.

    Parameters
    ----------
    fabric
        Fabric with the LIDs of switches.
    lft, hops
        uint8[S, L] each: the forwarding tables, and the number of channels on each path (255: unknown).

    Notes
    -----
    Cost: O(S L) time, and S S P bytes of memory.
    """
    lid = np.sort(fabric.switch_lid[fabric.switch_lid > 0].astype(np.int64))
    matrix = np.full((fabric.switches, len(lid), 1 + int(fabric.switch_ports.max(initial=0))), NO_HOPS, np.uint8)
    delivering = fabric.lids.switch
    for target in np.flatnonzero(delivering >= 0).tolist():
        own = int(fabric.switch_lid[delivering[target]])
        if own:
            position = int(np.searchsorted(lid, own))
            row = np.flatnonzero((lft[:, target] != NO_PORT) & (hops[:, target] > 0))
            port, count = lft[row, target], hops[row, target]
            matrix[row, position, port] = np.minimum(matrix[row, position, port], count)
            matrix[delivering[target], position, 0] = 0
    matrix[:, :, 0] = np.minimum(matrix[:, :, 0], matrix[:, :, 1:].min(axis=2, initial=NO_HOPS))
    return LidMatrix(lid, matrix)


def shortest(fabric: Fabric) -> LidMatrix:
    """Return the matrix of OpenSM's min-hop routing: the fewest hops from each switch to each switch by each out-port.

    The number of hops by an out-port is one more than the distance from the neighbour at this port to the destination.

    Notes
    -----
    Cost: O(S C) time for S switches and C channels, and S S P bytes of memory for P ports.
    """
    by_lid = np.argsort(fabric.switch_lid, kind="stable")
    by_lid = by_lid[fabric.switch_lid[by_lid] > 0]
    matrix = np.full((fabric.switches, len(by_lid), 1 + int(fabric.switch_ports.max(initial=0))), NO_HOPS, np.uint8)
    if fabric.switches:
        distance = switch_distance(fabric)[:, by_lid]
        matrix[:, :, 0] = distance
        channels = fabric.channels
        near = distance[channels.dst]
        matrix[channels.src, :, channels.port] = np.where(near == NO_HOPS, NO_HOPS, np.minimum(near, 253) + 1)
    return LidMatrix(fabric.switch_lid[by_lid].astype(np.int64), matrix)


def switch_distance(fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the smallest number of hops between every two switches, uint8[S, S].

    254 means 254 or more, and 255 means that there is no path.
    """
    distance = np.full((fabric.switches, fabric.switches), NO_HOPS, np.uint8)
    for row in range(fabric.switches):
        from_here = np.asarray(fabric.graph.distances(source=row)[0], np.float64)
        there = np.isfinite(from_here)
        distance[row, there] = np.minimum(from_here[there], 254)
    return distance


def write(path: str | Path, fabric: Fabric, matrix: LidMatrix) -> None:
    """Write a matrix in OpenSM's format.  LIDs that a switch cannot reach are left out.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has 33 bytes of text per switch and LID, and 3 more bytes per port.
    """
    owner = lid_owner(fabric)[matrix.lid]
    head = np.frombuffer(b"".join(b"0x%04x:" % lid for lid in matrix.lid.tolist()), np.uint8).reshape(-1, 7)
    tail = b"".join(b" # portguid 0x%016x\n" % guid for guid in owner.tolist())
    tails = np.frombuffer(tail, np.uint8).reshape(len(matrix.lid), -1) if len(matrix.lid) else head
    with atomic_write(path) as file:
        for row in opensm_order(fabric.switch_guid).tolist():
            file.write(b"Switch: guid 0x%016x\n" % fabric.switch_guid[row])
            there = matrix.hops[row, :, 0] != NO_HOPS
            hops = matrix.hops[row, there, : int(fabric.switch_ports[row]) + 1]
            text = _HEX[hops].reshape(len(hops), 3 * hops.shape[1])
            file.write(np.hstack([head[there], text, tails[there]]).tobytes())


def read(path: str | Path, fabric: Fabric) -> LidMatrix:
    """Read a matrix for the switches of a fabric.  LIDs in the file are translated by GUID to the LIDs that the fabric
    has now.

    Raises
    ------
    ParseError
        A line is invalid, a switch or LID is repeated, or a line has more or fewer numbers than the switch has ports.
    TableError
        A switch is missing in the fabric or in the file.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    reader = _Reader(path, fabric)
    for number, text in numbered_lines(path):
        reader.take(text, number)
    return reader.finish()


class _Reader:
    def __init__(self, path: str | Path, fabric: Fabric) -> None:
        self._path, self._fabric = path, fabric
        self._switches = SwitchRows(path, fabric, "hops")
        self._rows: dict[int, dict[int, bytes]] = {}
        self._base = dict(zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True))
        self._row = -1

    def take(self, text: str, number: int) -> None:
        if match := _ENTRY.match(text):
            self._entry(match, number)
        elif match := _SWITCH.match(text):
            self._row = self._switches.section(match[1], number)
            self._rows[self._row] = {}
        elif not _NOISE.match(text):
            raise ParseError(
                f"this is not a line of a LID matrix: {text[:60]!r}",
                path=self._path, line=number, remedy="wanted: '0xLLLL: HH HH ... # ...' or 'Switch: guid 0x...'",
            )  # fmt: skip

    def _entry(self, match: re.Match[str], number: int) -> None:
        if self._row < 0:
            raise ParseError("this entry is before the first switch", path=self._path, line=number)
        lid, hops = int(match[1], 16), bytes.fromhex(match[2])
        if match[3]:
            lid = self._base.get(int(match[3], 16), 0) or lid
        if not 0 < lid <= MAX_UNICAST_LID:
            raise ParseError(f"{lid:#x} is not a unicast LID", path=self._path, line=number)
        if len(hops) != int(self._fabric.switch_ports[self._row]) + 1:
            raise ParseError(
                f"{count_noun(len(hops) - 1, 'port')}, {self._fabric.labels[self._row]!r} has "
                f"{int(self._fabric.switch_ports[self._row])}",
                path=self._path, line=number, remedy="one number for port 0 and one for each port",
            )  # fmt: skip
        if self._rows[self._row].setdefault(lid, hops) is not hops:
            raise ParseError("this switch has an entry for this LID already", path=self._path, line=number)

    def finish(self) -> LidMatrix:
        self._switches.finish()
        lids = sorted({lid for entries in self._rows.values() for lid in entries})
        shape = (self._fabric.switches, len(lids), 1 + int(self._fabric.switch_ports.max(initial=0)))
        if int(np.prod(shape, dtype=object)) > LARGEST:
            raise TableError(f"the matrix would take over {LARGEST >> 30} GiB", path=self._path)
        column = {lid: position for position, lid in enumerate(lids)}
        matrix = np.full(shape, NO_HOPS, np.uint8)
        for row, entries in self._rows.items():
            for lid, hops in entries.items():
                matrix[row, column[lid], : len(hops)] = np.frombuffer(hops, np.uint8)
        return LidMatrix(np.array(lids, np.int64), matrix)
