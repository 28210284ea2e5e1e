"""Read and write forwarding tables as text: ``opensm-lfts.dump``, and the output of ``dump_fts`` and ``ibroute``.

OpenSM reads such a file with its option ``-U``.

Each file has one section per switch.  A section begins with a line that has the GUID of the switch.  A line ``0xLLLL
PPP`` for each LID follows, with the LID in hex and the out-port in decimal.  The rest of the line is a comment, which
may state the GUID of the LID's port as `` portguid 0x...``.  OpenSM's ``file`` engine uses this GUID to find the
current LID of the port.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.lft_reader import Grammar, read_lfts
from routing.formats.opensm_order import encode, endport_kind, opensm_order

_GRAMMAR = Grammar(
    switch=re.compile(r"\s*Unicast lids \[[^\]]*\] of switch .*? guid 0x([0-9a-fA-F]{1,16})(?:\s|$)"),
    entry=re.compile(
        r"\s*0x([0-9a-fA-F]{1,4})\s+([0-9]{1,3})(?=\s|$)(?:.*? portguid 0x([0-9a-fA-F]{1,16})(?=[\s:)]|$))?"
    ),
    end=re.compile(r"\s*[0-9]+ (?:valid )?lids dumped"),
    noise=re.compile(r"\s*(?:#|$|ibwarn: |Lid\s+Out\s+Destination|Port\s+Info)"),
    between=b" ",
    wanted="'0xLLLL PPP ...' or 'Unicast lids ... guid 0x...'",
)


def write(
    path: str | Path, fabric: Fabric, lft: npt.NDArray[np.uint8], *, named: bool = True, without: Collection[int] = ()
) -> None:
    """Write the forwarding tables of all switches as one text file.

    Parameters
    ----------
    path
        The file to write.
    fabric
        Fabric with the GUIDs and names.
    lft
        uint8[S, L], the forwarding tables; 255 for no entry.
    named
        True writes exactly the bytes of OpenSM's dump, about 65 per entry.  False writes only LID and port, 11 bytes
        per entry.  OpenSM can load this shorter form, but then cannot match ports by GUID.  LIDs must therefore stay
        unchanged, for instance by ``guid2lid``.
    without
        Rows of the switches that the file leaves out, because their LFTs are unknown.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    Cost: O(S L) bytes are copied.  The lines of all switches have equal texts apart from the ports, so these texts are
    made only once.
    """
    template = _Template(fabric, lft, named)
    with atomic_write(path) as file:
        for row in opensm_order(fabric.switch_guid).tolist():
            if row in without:
                continue
            name = encode(fabric.switch_name[row])
            file.write(
                b"Unicast lids [0-%d] of switch Lid %d guid 0x%016x ('%s'):\n"
                % (lft.shape[1] - 1, fabric.switch_lid[row], fabric.switch_guid[row], name)
            )
            file.write(template.fill(lft[row]))
            file.write(b"%d lids dumped\n" % (lft.shape[1] - 1))


class _Template:
    """Template of the lines of one switch, one line for each LID.  ``fill`` writes the out-ports of a switch into the
    lines.

    A LID towards which no switch has an entry has no line.
    """

    def __init__(self, fabric: Fabric, lft: npt.NDArray[np.uint8], named: bool) -> None:
        tails = _tails(fabric, lft.shape[1], named)
        self._lids = np.flatnonzero(lft.min(axis=0, initial=NO_PORT) != NO_PORT)
        lines = [b"0x%04x 000%s\n" % (lid, tails[lid]) for lid in self._lids.tolist()]
        self._text = np.frombuffer(b"".join(lines), np.uint8).copy()
        self._length = np.array([len(line) for line in lines], np.int64)
        self._port = (np.cumsum(self._length) - self._length + 7)[:, None] + np.arange(3)
        self._even = self._text.reshape(len(lines), -1)[:, 7:10] if lines and not named else None
        self._digits = np.frombuffer(b"".join(b"%03d" % port for port in range(256)), np.uint8).reshape(256, 3)

    def fill(self, row: npt.NDArray[np.uint8]) -> memoryview:
        row = row[self._lids]
        if self._even is not None:
            self._even[:] = self._digits[row]
        else:
            self._text[self._port] = self._digits[row]
        there = row != NO_PORT
        text = self._text if there.all() else self._text[np.repeat(there, self._length)]
        return text.data


def _tails(fabric: Fabric, lids: int, named: bool) -> list[bytes]:
    """Return for each LID the text that follows the port number in the lines of this LID.

    If ``named``, the text is a comment with the port that has the LID.  Otherwise the text is empty.
    """
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
    """Read the forwarding tables of a fabric's switches from a text file.

    LIDs may have changed since the file was written.  If the file states the GUID of a LID's port, the entry is stored
    under the LID that this port has in the fabric.  Entries for LIDs that the fabric does not have are ignored.

    Returns
    -------
    uint8[S, L]
        The forwarding tables; 255 for no entry.

    Raises
    ------
    ParseError
        A line is invalid, a switch does not have the port, or a LID is repeated.
    TableError
        A switch is missing in the fabric or in the file.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    return read_lfts(path, fabric, _GRAMMAR)
