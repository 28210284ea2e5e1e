"""Forwarding tables as text: ``opensm-lfts.dump``, output of ``dump_fts`` and ``ibroute``, and OpenSM's ``-U`` file.

All of them are sections of one switch, a line that names the switch by GUID, then lines ``0xLLLL PPP`` with the LID in
hex and the out-port in decimal.  What follows on a line is for people, but for `` portguid 0x...``, by which OpenSM's
``file`` engine finds the LID that the port has now.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import MAX_UNICAST_LID, NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.dump_lines import Piece, read_pieces
from routing.formats.lid_map import lid_owner, old_columns, take_columns
from routing.formats.opensm_order import encode, endport_kind, opensm_order

_SWITCH = re.compile(r"\s*Unicast lids \[[^\]]*\] of switch .*? guid 0x([0-9a-fA-F]{1,16})(?:\s|$)")
_ENTRY = re.compile(r"\s*0x([0-9a-fA-F]{1,4})\s+([0-9]{1,3})(?=\s|$)(?:.* portguid 0x([0-9a-fA-F]{1,16})(?=[\s:)]|$))?")
_END = re.compile(r"\s*[0-9]+ (?:valid )?lids dumped")
_NOISE = re.compile(r"\s*(?:#|$|Lid\s+Out\s+Destination|Port\s+Info)")


def write(path: str | Path, fabric: Fabric, lft: npt.NDArray[np.uint8], *, named: bool = True) -> None:
    """Write the tables of every switch.

    Parameters
    ----------
    path
        The file.
    fabric
        Gives GUIDs and names.
    lft
        uint8[S, L], 255: no entry.
    named
        True: byte for byte as OpenSM dumps them (about 65 bytes an entry).  False: LID and port alone (11 bytes);
        OpenSM loads it as well, but can no longer follow a port to another LID, so the LIDs have to be the same
        (``guid2lid`` sees to that).

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    Cost: O(S L) copied bytes; the text of a switch is a template in which only the ports change.
    """
    template = _Template(fabric, lft.shape[1], named)
    with atomic_write(path) as file:
        for row in opensm_order(fabric.switch_guid).tolist():
            name = encode(fabric.switch_name[row])
            file.write(
                b"Unicast lids [0-%d] of switch Lid %d guid 0x%016x ('%s'):\n"
                % (lft.shape[1] - 1, fabric.switch_lid[row], fabric.switch_guid[row], name)
            )
            file.write(template.fill(lft[row]))
            file.write(b"%d lids dumped\n" % (lft.shape[1] - 1))


class _Template:
    """The lines of one switch with the ports left open."""

    def __init__(self, fabric: Fabric, lids: int, named: bool) -> None:
        lines = [b"0x%04x 000%s\n" % (lid, tail) for lid, tail in enumerate(_tails(fabric, lids, named))]
        self._text = np.frombuffer(b"".join(lines), np.uint8).copy()
        self._length = np.array([len(line) for line in lines], np.int64)
        self._port = np.cumsum(self._length) - self._length + 7
        self._digits = np.frombuffer(b"".join(b"%03d" % port for port in range(256)), np.uint8).reshape(256, 3)

    def fill(self, row: npt.NDArray[np.uint8]) -> memoryview:
        for place in range(3):
            self._text[self._port + place] = self._digits[row, place]
        there = row != NO_PORT
        text = self._text if there.all() else self._text[np.repeat(there, self._length)]
        return text.data


def _tails(fabric: Fabric, lids: int, named: bool) -> list[bytes]:
    """What follows the port on the line of each LID."""
    if not named:
        return [b""] * lids
    tails = [b" # unknown node and type"] * lids
    for row, lid in enumerate(fabric.switch_lid.tolist()):
        if lid:
            name = encode(fabric.switch_name[row])
            tails[lid] = b" # Switch portguid 0x%016x: '%s'" % (fabric.switch_guid[row], name)
    for lid, row in enumerate(fabric.lids.endport.tolist()):
        if row >= 0:
            kind, name = endport_kind(fabric, row).encode(), encode(fabric.endport_name[row])
            tails[lid] = b" # %s portguid 0x%016x: '%s'" % (kind, fabric.endport_guid[row], name)
    return tails


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the tables of a fabric's switches.

    A port that has another LID in the file than in the fabric is followed by its GUID, where the file states it.
    Entries for LIDs that the fabric does not have are left out.

    Returns
    -------
    uint8[S, L], 255: no entry.

    Raises
    ------
    ParseError
        A line that is no line of such a file, a port that the switch does not have, a LID twice.
    TableError
        A switch that the fabric does not have, or one of the fabric that the file lacks.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    reader = _Reader(path, fabric)
    for piece in read_pieces(path):
        reader.take(piece)
    return reader.finish()


class _Reader:
    def __init__(self, path: str | Path, fabric: Fabric) -> None:
        self._path, self._fabric = path, fabric
        self._row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
        self._table = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
        self._owner = np.zeros(MAX_UNICAST_LID + 1, np.uint64)
        self._known = np.zeros(MAX_UNICAST_LID + 1, bool)
        self._seen: set[int] = set()
        self._row = -1
        self._open_since = 0

    def take(self, piece: Piece) -> None:
        """Sections of one piece: from one line that is no plain entry to the next."""
        every = np.arange(len(piece.start))
        lid, good = piece.number(every, 2, 4, 16)
        port, has_port = piece.number(every, 7, 3, 10)
        good &= has_port & piece.has(every, 0, b"0x") & piece.has(every, 6, b" ")
        good &= np.isin(piece.data[piece.start + 10], np.frombuffer(b" \n\r", np.uint8)) & (lid <= MAX_UNICAST_LID)
        other = np.flatnonzero(~good)
        for begin, end in zip([-1, *other.tolist()], [*other.tolist(), len(every)], strict=True):
            if begin >= 0:
                self._line(piece, begin)
            if end > begin + 1:
                lines = every[begin + 1 : end]
                self._entries(piece, lines, lid[lines], port[lines])

    def _line(self, piece: Piece, line: int) -> None:
        text, number = piece.text(line), piece.first + line
        if match := _SWITCH.match(text):
            self._close()
            guid = int(match[1], 16)
            if guid not in self._row_of:
                raise TableError(
                    f"switch {guid:#018x} is not in the fabric",
                    path=self._path, line=number, remedy="the tables belong to another fabric",
                )  # fmt: skip
            if guid in self._seen:
                raise ParseError(f"switch {guid:#018x} comes a second time", path=self._path, line=number)
            self._seen.add(guid)
            self._row, self._open_since = self._row_of[guid], number
        elif _END.match(text):
            self._open_since = 0
        elif match := _ENTRY.match(text):
            lid, port = np.array([int(match[1], 16)]), np.array([int(match[2])])
            if lid[0] > MAX_UNICAST_LID:
                raise ParseError(
                    f"{int(lid[0]):#x} is no unicast LID", path=self._path, line=number, remedy="they end at 0xbfff"
                )
            self._entries(piece, np.array([line]), lid, port)
        elif not _NOISE.match(text):
            raise ParseError(
                f"this is no line of a dump of forwarding tables: {text[:60]!r}",
                path=self._path, line=number, remedy="wanted: '0xLLLL PPP ...' or 'Unicast lids ... guid 0x...'",
            )  # fmt: skip

    def _entries(
        self, piece: Piece, lines: npt.NDArray[np.int64], lid: npt.NDArray[np.int64], port: npt.NDArray[np.int64]
    ) -> None:
        if not self._open_since:
            raise ParseError(
                "an entry stands outside of any switch's section", path=self._path, line=piece.first + int(lines[0])
            )
        ports = int(self._fabric.switch_ports[self._row])
        self._refuse(
            piece,
            lines,
            (port > ports) & (port != NO_PORT),
            f"{self._fabric.switch_name[self._row]!r} has no such port, it has {ports}",
        )
        lines, lid, port = lines[port != NO_PORT], lid[port != NO_PORT], port[port != NO_PORT]
        top = int(lid.max(initial=0)) + 1
        if top > self._table.shape[1]:
            grown = np.full((self._table.shape[0], top), NO_PORT, np.uint8)
            grown[:, : self._table.shape[1]] = self._table
            self._table = grown
        again = self._table[self._row, lid] != NO_PORT
        first = np.unique(lid, return_index=True)[1]
        repeated = np.ones(len(lid), bool)
        repeated[first] = False
        self._refuse(piece, lines, again | repeated, "this switch has an entry for this LID already")
        self._table[self._row, lid] = port
        for line in lines[~self._known[lid]].tolist():
            match = _ENTRY.match(piece.text(line))
            if match and match[3]:
                self._owner[int(match[1], 16)] = int(match[3], 16)
        self._known[lid] = True

    def _refuse(self, piece: Piece, lines: npt.NDArray[np.int64], bad: npt.NDArray[np.bool_], why: str) -> None:
        if bad.any():
            raise ParseError(why, path=self._path, line=piece.first + int(lines[int(np.argmax(bad))]))

    def _close(self) -> None:
        if self._open_since:
            raise ParseError(
                "the section of this switch has no last line ('N lids dumped')",
                path=self._path, line=self._open_since, remedy="the file was cut short",
            )  # fmt: skip

    def finish(self) -> npt.NDArray[np.uint8]:
        """The table, in the LIDs of the fabric."""
        self._close()
        missing = sorted(set(self._row_of) - self._seen)
        if missing:
            name = self._fabric.switch_name[self._row_of[missing[0]]]
            raise TableError(
                f"{len(missing)} of the fabric's {self._fabric.switches} switches are not in the file, "
                f"such as {missing[0]:#018x} ({name!r})",
                path=self._path,
                remedy="the tables belong to another fabric, or the file was cut short",
            )
        column = old_columns(self._owner[: self._table.shape[1]], lid_owner(self._fabric))
        column[(self._fabric.lids.switch < 0) & (self._fabric.lids.endport < 0)] = -1
        return take_columns(self._table, column, NO_PORT)
