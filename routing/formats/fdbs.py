"""Read and write ``opensm.fdbs``: OpenSM's dump of forwarding tables with hop counts, which ``ibdmchk -f`` reads.

ibdiagnet writes files of this form as well (``ibdiagnet2.fdbs``).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.lft_reader import Grammar, read_lfts
from routing.formats.opensm_order import opensm_order

HEAD = "dump_ucast_routes: Switch "
"""Text before the GUID of each switch."""

_GRAMMAR = Grammar(
    switch=re.compile(r"\s*(?:osm_ucast_mgr_)?dump_ucast_routes: Switch 0x([0-9a-fA-F]{1,16})\s*$"),
    entry=re.compile(r"\s*0x([0-9a-fA-F]{1,4}) : (?:UNREACHABLE|([0-9]{1,3})(?=\s|$))()?"),
    end=None,
    noise=re.compile(r"\s*(?:#|$|LID\s+: Port : Hops : Optimal)"),
    between=b" : ",
    wanted="'0xLLLL : PPP  : HH   : yes', '0xLLLL : UNREACHABLE' or 'dump_ucast_routes: Switch 0x...'",
)


def write(
    path: str | Path,
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    hops: npt.NDArray[np.uint8],
    best: npt.NDArray[np.uint8] | None = None,
) -> None:
    """Write forwarding tables in the format of OpenSM's ``opensm.fdbs``.

    Parameters
    ----------
    path
        The file to write.
    fabric
        Fabric with the GUIDs and LIDs.
    lft
        uint8[S, L], the forwarding tables; 255 for no entry.
    hops
        uint8[S, L], number of channels on the path from each switch to each LID.  The number is 0 at the switch that
        delivers the LID, and 255 if it is unknown.  In the file, the last cable to a CA or router also counts as a hop,
        as in OpenSM.
    best
        uint8[S, L], the smallest possible number of channels from each switch to each LID.  A longer path gets the mark
        ``No, N hops are possible!``.  OpenSM's own mark also names a better port.  If ``best`` is None, no path gets a
        mark.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has 28 bytes of text per entry.
    """
    last = (fabric.lids.endport >= 0).astype(np.int64)
    with atomic_write(path) as file:
        for row in opensm_order(fabric.switch_guid).tolist():
            file.write(b"dump_ucast_routes: Switch 0x%016x\nLID    : Port : Hops : Optimal\n" % fabric.switch_guid[row])
            file.write(b"".join(_lines(lft[row], hops[row], None if best is None else best[row], last)))


def _lines(
    lft: npt.NDArray[np.uint8],
    hops: npt.NDArray[np.uint8],
    best: npt.NDArray[np.uint8] | None,
    last: npt.NDArray[np.int64],
) -> list[bytes]:
    fewest = hops if best is None else best
    rows = zip(lft.tolist(), hops.tolist(), fewest.tolist(), last.tolist(), strict=True)
    lines = []
    for lid, (port, count, least, more) in enumerate(rows):
        if not lid:
            continue
        if port == NO_PORT:
            lines.append(b"0x%04X : UNREACHABLE\n" % lid)
        elif count == 255:
            lines.append(b"0x%04X : %03d  : HOPS UNKNOWN\n" % (lid, port))
        elif count == least:
            lines.append(b"0x%04X : %03d  : %02d   : yes\n" % (lid, port, count + more))
        else:
            lines.append(
                b"0x%04X : %03d  : %02d   : No, %d hops are possible!\n" % (lid, port, count + more, least + more)
            )
    return lines


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read ``opensm.fdbs``, and return its entries as the forwarding tables of a fabric.

    The file has no port GUIDs.  So the fabric must have the LIDs that were in use at the time of the dump.

    Returns
    -------
    uint8[S, L]
        The forwarding tables; 255 for no entry.

    Raises
    ------
    ParseError
        A line is invalid, a switch does not have the port, or a LID is repeated.  Or the highest LID in the section of
        a switch differs from the highest LID in the other sections.
    TableError
        A switch is missing in the fabric or in the file.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    return read_lfts(path, fabric, _GRAMMAR)
