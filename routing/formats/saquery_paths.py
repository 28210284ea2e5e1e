"""Read the SLs of paths from the output of ``saquery PR``.  The output has the path records of the SA, each as a block
of lines.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import Fabric
from routing.formats.path_reader import SLS, UNKNOWN, check_sources
from routing.formats.text import DAMAGED, open_unpacked, read_text

HEAD = "PathRecord dump:"
_WHOLE, _MOVED = "is the file whole?", "SLs are stated by LID: use a file with the fabric's LIDs"
_VALUE = r"\.+(0[xX][0-9a-fA-F]+|[0-9]+)\s"
_RECORD = re.compile(rf"dlid{_VALUE}\s*slid{_VALUE}(?:(?!{HEAD})[^\0])*?\ssl{_VALUE}", re.ASCII)


def is_saquery(path: str | Path) -> bool:
    """Return whether a file begins like the output of ``saquery PR``.  If the file cannot be read, the
    result is False.
    """
    try:
        with open_unpacked(path) as file:
            return file.read(256).lstrip().startswith(HEAD.encode())
    except (OSError, *DAMAGED):
        return False  # If the file cannot be read, the reader of the other formats reports the reason.


def read_saquery(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the SLs that path records state, by source and destination LID.

    The result is uint8[S + E, L]: the SL by source and destination LID.  The first S rows are the switches, the other
    rows are the end ports.  An SL is 255 if no record states it, or if records of the same path state different SLs.

    Raises
    ------
    ParseError
        A record lacks the LIDs or the SL, or one of these values is invalid.
    TableError
        The source of a record is not in the fabric, or the file has no path record from a CA or router of the fabric.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    text = read_text(path)
    row_of = _rows(fabric)
    sl = np.full((fabric.switches + fabric.endports, len(fabric.lids)), UNKNOWN, np.uint8)
    differs = np.zeros(sl.shape, bool)
    named = np.zeros(len(sl), bool)
    starts = [found.start() for found in re.finditer(HEAD, text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        found = _RECORD.search(text, start, end)
        lid, source, level = (0, 0, 0) if found is None else map(_number, found.groups())
        if not lid or not source or level >= SLS:
            raise ParseError("a path record has no LIDs or no SL", path=path, line=_line(text, start), remedy=_WHOLE)
        row = row_of.get(source, -1)
        if row < 0:
            problem = f"LID {source} is not in the fabric"
            raise TableError(problem, path=path, line=_line(text, start), remedy=_MOVED)
        named[row] = True
        if lid < sl.shape[1]:
            differs[row, lid] |= sl[row, lid] not in (UNKNOWN, level)
            sl[row, lid] = level
    check_sources(fabric, named[fabric.switches :], path)
    sl[differs] = UNKNOWN
    return sl


def _number(text: str) -> int:
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _rows(fabric: Fabric) -> dict[int, int]:
    """Return the row of each source in the result of :func:`read_saquery`, by LID.

    The row is the switch's row, or S plus the row of the end port.
    """
    rows = {lid: row for row, lid in enumerate(fabric.switch_lid.tolist()) if lid}
    for row, (base, lmc) in enumerate(zip(fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True)):
        rows |= {lid: fabric.switches + row for lid in range(base, base + (1 << lmc)) if base}
    return rows
