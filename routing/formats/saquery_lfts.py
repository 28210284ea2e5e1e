"""Read forwarding tables from the output of ``saquery LFTR``.

Each record of the output has 64 LFT entries of one switch.  The record names the switch by its LID.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import MAX_UNICAST_LID, NO_PORT, Fabric
from routing.formats.lid_map import lid_owner, old_columns, take_columns
from routing.formats.text import read_text
from routing.numerals import count_noun

HEAD = "LFT Record dump:"
_BLOCK = 64
_MOST_BLOCKS = (MAX_UNICAST_LID + _BLOCK) // _BLOCK
_FIELDS = re.compile(
    r"\s*LID\.+([0-9]{1,5})\s+Block\.+([0-9]{1,5})\s+LFT:\s+LID\s+Port Number\s+"
    rf"((?:[0-9]{{1,5}}\s+){{{2 * _BLOCK}}})$",
    re.ASCII,
)
_PACKET = 2
"""Number of records in the first packet of an answer of the SA."""
_CUT = "ibsim delivers only the first packet of an answer: use `ibnue collect` or dump_fts, or ask again"
_WHOLE, _MOVED = "is the file whole?", "the file names switches by LID: use a fabric file with the LIDs of that time"


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the output of ``saquery LFTR`` as the forwarding tables of a fabric.

    The file has no GUIDs.  So the fabric must have the LIDs that were in use at the time of the query.

    Returns
    -------
    uint8[S, L]
        The forwarding tables; 255 for no entry.

    Raises
    ------
    ParseError
        A record is invalid or repeated, a switch does not have the port, or a switch has fewer blocks than other
        switches.
    TableError
        A switch is missing in the fabric or in the file.
    EnvironmentProblem
        The file is missing or unreadable.
    """
    text = read_text(path) + "\n"
    reader = _Reader(path, fabric)
    starts = [found.start() for found in re.finditer(HEAD, text)]
    line, before = 1, 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        line, before = line + text.count("\n", before, start), start
        reader.take(text[start + len(HEAD) : end], line)
    return reader.finish()


class _Reader:
    def __init__(self, path: str | Path, fabric: Fabric) -> None:
        self._path, self._fabric = path, fabric
        self._row_of = {lid: row for row, lid in enumerate(fabric.switch_lid.tolist()) if lid}
        self._table = np.full((fabric.switches, _MOST_BLOCKS * _BLOCK), NO_PORT, np.uint8)
        # For each row of a switch and each number of an LFT block: the line at which the file states the block.
        self._blocks: dict[int, dict[int, int]] = {}

    def take(self, record: str, line: int) -> None:
        """Read one record: the LFT entries of one switch for 64 LIDs.

        ``record`` is the text of the record without its heading ``LFT Record dump:``.  ``line`` is the line number of
        the heading in the file.

        Raises
        ------
        ParseError, TableError
            The record is invalid.
        """
        found = _FIELDS.match(record)
        if found is None:
            raise ParseError("this is not a record of 64 LFT entries", path=self._path, line=line, remedy=_WHOLE)
        lid, block = int(found[1]), int(found[2])
        row = self._row_of.get(lid)
        if row is None:
            raise TableError(f"LID {lid} is not a switch of the fabric", path=self._path, line=line, remedy=_MOVED)
        numbers = np.array(found[3].split(), np.int64)
        lids, port = numbers[::2], numbers[1::2]
        if block >= _MOST_BLOCKS or not np.array_equal(lids, block * _BLOCK + np.arange(_BLOCK)):
            problem = f"block {block} has LIDs {_BLOCK * block} to {_BLOCK * block + _BLOCK - 1}, in ascending order"
            raise ParseError(problem, path=self._path, line=line, remedy=_WHOLE)
        ports = int(self._fabric.switch_ports[row])
        if ((port > ports) & (port != NO_PORT)).any():
            problem = f"{self._fabric.labels[row]!r} has no such port, it has {ports}"
            raise ParseError(problem, path=self._path, line=line)
        if self._blocks.setdefault(row, {}).setdefault(block, line) != line:
            raise ParseError(f"a second block {block} of LID {lid}", path=self._path, line=line, remedy=_WHOLE)
        self._table[row, lids] = port

    def finish(self) -> npt.NDArray[np.uint8]:
        """Return the forwarding tables, uint8[S, L].

        Raises
        ------
        ParseError, TableError
            The file has no record of a switch, or lacks an LFT block of a switch.
        """
        missing = [row for row in range(self._fabric.switches) if row not in self._blocks]
        if missing:
            name = self._fabric.labels[missing[0]]
            switches = count_noun(self._fabric.switches, "switch")
            problem = f"{len(missing)} of {switches} of the fabric are missing in the file, such as {name!r}"
            self._refuse_one_packet(problem)
            raise TableError(problem, path=self._path, remedy=_MOVED)
        whole = set(range(1 + max((max(blocks) for blocks in self._blocks.values()), default=-1)))
        for row, blocks in self._blocks.items():
            if set(blocks) != whole:
                problem = f"{self._fabric.labels[row]!r} has {len(blocks)} of {len(whole)} blocks"
                self._refuse_one_packet(problem)
                raise ParseError(problem, path=self._path, line=min(blocks.values()), remedy=_WHOLE)
        table = self._table[:, : _BLOCK * len(whole)]
        column = old_columns(np.zeros(table.shape[1], np.uint64), lid_owner(self._fabric))
        column[(self._fabric.lids.switch < 0) & (self._fabric.lids.endport < 0)] = -1
        return take_columns(table, column, NO_PORT)

    def _refuse_one_packet(self, problem: str) -> None:
        """Raise ParseError if the file has only as many records as the first packet of the SA's answer.  The rest of
        the answer is then missing, for example because ibsim delivers only the first packet.
        """
        if sum(map(len, self._blocks.values())) == _PACKET:
            problem = f"{problem}; the file has {_PACKET} records, the first packet of an answer"
            raise ParseError(problem, path=self._path, remedy=_CUT)
