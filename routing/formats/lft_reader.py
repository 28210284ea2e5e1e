"""Read any text format of forwarding tables, given a :class:`Grammar` that describes the format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError
from routing.fabric import MAX_UNICAST_LID, NO_PORT, Fabric
from routing.formats.dump_lines import Piece, read_pieces
from routing.formats.lid_map import lid_owner, old_columns, take_columns
from routing.formats.switch_rows import SwitchRows


@dataclass(frozen=True)
class Grammar:
    """Description of one text format of forwarding tables, for :func:`read_lfts`.

    Attributes
    ----------
    switch
        Pattern of the line that begins the section of a switch.  Group 1 is the GUID of the switch.
    entry
        Pattern of the line of one LFT entry.  Its groups are the LID (hex), the port (decimal, empty for no entry), and
        optionally the GUID of the port that has the LID.
    end
        Pattern of the line that ends a section, or None if the format has no such line.
    noise
        Pattern of lines to ignore.
    between
        Text between the four digits of the LID and the three digits of the port.
    wanted
        Description of a valid line, for error messages.
    """

    switch: re.Pattern[str]
    entry: re.Pattern[str]
    end: re.Pattern[str] | None
    noise: re.Pattern[str]
    between: bytes
    wanted: str


def read_lfts(path: str | Path, fabric: Fabric, grammar: Grammar) -> npt.NDArray[np.uint8]:
    """Read the forwarding tables of a fabric's switches from a text file, uint8[S, L].

    The module of each format has a function ``read``, whose docstring states the errors.
    """
    reader = _Reader(path, fabric, grammar)
    for piece in read_pieces(path):
        reader.take(piece)
    return reader.finish()


class _Reader:
    def __init__(self, path: str | Path, fabric: Fabric, grammar: Grammar) -> None:
        self._path, self._fabric, self._grammar = path, fabric, grammar
        self._switches = SwitchRows(path, fabric, "tables")
        self._table = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
        self._owner = np.zeros(MAX_UNICAST_LID + 1, np.uint64)
        self._known = np.zeros(MAX_UNICAST_LID + 1, bool)
        self._row = -1
        self._open_since = 0
        self._top = 0
        self._common_top: int | None = None

    def take(self, piece: Piece) -> None:
        """Read one piece of the file.

        Consecutive entries that look exactly as OpenSM prints them are read at once.  All other lines between them are
        parsed one by one.
        """
        every = np.arange(len(piece.start))
        lid, good = piece.number(every, 2, 4, 16)
        column = 6 + len(self._grammar.between)
        port, has_port = piece.number(every, column, 3, 10)
        good &= has_port & piece.has(every, 0, b"0x") & piece.has(every, 6, self._grammar.between)
        after = piece.data[piece.start + column + 3]
        good &= np.isin(after, np.frombuffer(b" \n\r", np.uint8)) & (lid <= MAX_UNICAST_LID)
        other = np.flatnonzero(~good)
        for begin, end in zip([-1, *other.tolist()], [*other.tolist(), len(every)], strict=True):
            if begin >= 0:
                self._line(piece, begin)
            if end > begin + 1:
                lines = every[begin + 1 : end]
                self._entries(piece, lines, lid[lines], port[lines])

    def _line(self, piece: Piece, line: int) -> None:
        text, number = piece.text(line), piece.first + line
        if match := self._grammar.switch.match(text):
            self._close()
            self._row, self._open_since = self._switches.section(match[1], number), number
            self._top = 0
        elif self._grammar.end is not None and self._grammar.end.match(text):
            self._open_since = 0
        elif match := self._grammar.entry.match(text):
            lid, port = np.array([int(match[1], 16)]), np.array([int(match[2] or NO_PORT)])
            if lid[0] > MAX_UNICAST_LID:
                raise ParseError(
                    f"{int(lid[0]):#x} is not a unicast LID",
                    path=self._path,
                    line=number,
                    remedy="unicast LIDs end at 0xbfff",
                )
            self._entries(piece, np.array([line]), lid, port)
        elif not self._grammar.noise.match(text):
            raise ParseError(
                f"this is not a line of a dump of forwarding tables: {text[:60]!r}",
                path=self._path, line=number, remedy=f"wanted: {self._grammar.wanted}",
            )  # fmt: skip

    def _entries(
        self, piece: Piece, lines: npt.NDArray[np.int64], lid: npt.NDArray[np.int64], port: npt.NDArray[np.int64]
    ) -> None:
        if not self._open_since:
            raise ParseError(
                "this entry is outside of any switch's section", path=self._path, line=piece.first + int(lines[0])
            )
        ports = int(self._fabric.switch_ports[self._row])
        self._refuse(
            piece,
            lines,
            (port > ports) & (port != NO_PORT),
            f"{self._fabric.labels[self._row]!r} has no such port, it has {ports}",
        )
        self._top = max(self._top, int(lid.max()))
        lines, lid, port = lines[port != NO_PORT], lid[port != NO_PORT], port[port != NO_PORT]
        top = int(lid.max(initial=0)) + 1
        if top > self._table.shape[1]:
            trees = np.full((self._table.shape[0], top), NO_PORT, np.uint8)
            trees[:, : self._table.shape[1]] = self._table
            self._table = trees
        again = self._table[self._row, lid] != NO_PORT
        first = np.unique(lid, return_index=True)[1]
        repeated = np.ones(len(lid), bool)
        repeated[first] = False
        self._refuse(piece, lines, again | repeated, "this switch has an entry for this LID already")
        self._table[self._row, lid] = port
        for line in lines[~self._known[lid]].tolist():
            match = self._grammar.entry.match(piece.text(line))
            if match and match[3]:
                self._owner[int(match[1], 16)] = int(match[3], 16)
        self._known[lid] = True

    def _refuse(self, piece: Piece, lines: npt.NDArray[np.int64], bad: npt.NDArray[np.bool_], why: str) -> None:
        if bad.any():
            raise ParseError(why, path=self._path, line=piece.first + int(lines[int(np.argmax(bad))]))

    def _close(self) -> None:
        """Raise ParseError if the section that was read last is incomplete.

        Some formats have a line that ends each section.  In these formats a section without this line is incomplete.
        In other formats a section is incomplete if its highest LID differs from the highest LID of earlier sections.
        """
        if not self._open_since:
            return
        if self._grammar.end is None and self._common_top in {None, self._top}:
            self._common_top = self._top
            return
        why = "has no last line ('N lids dumped')" if self._grammar.end else "ends at another LID than the one before"
        raise ParseError(
            f"the section of this switch {why}",
            path=self._path, line=self._open_since, remedy="the file was cut short",
        )  # fmt: skip

    def finish(self) -> npt.NDArray[np.uint8]:
        """Return the forwarding tables, uint8[S, L], with columns for the LIDs that the fabric has now."""
        self._close()
        self._switches.finish()
        column = old_columns(self._owner[: self._table.shape[1]], lid_owner(self._fabric))
        column[(self._fabric.lids.switch < 0) & (self._fabric.lids.endport < 0)] = -1
        return take_columns(self._table, column, NO_PORT)
