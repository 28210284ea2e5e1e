"""Read forwarding tables from a text file of any known format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError
from routing.fabric import Fabric
from routing.formats import fdbs, lfts, saquery_lfts
from routing.formats.known_kinds import HEAD, kind_of
from routing.formats.text import DAMAGED, open_unpacked, refuse_utf_16


def read_lft_file(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read a text file as the forwarding tables of a fabric.

    The function recognises the format by the content: ``opensm-lfts.dump``, the output of ``dump_fts``, ``ibroute`` or
    ``saquery LFTR``, or ``opensm.fdbs``.

    Returns
    -------
    uint8[S, L]
        The forwarding tables; 255 for no entry.

    Raises
    ------
    ParseError, TableError
        The file is damaged, belongs to another fabric, or has another known format.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    try:
        with open_unpacked(path) as file:
            data = file.read(HEAD)
    except (OSError, *DAMAGED):
        data = b""  # If the file cannot be read, read_lfts reports the reason.
    refuse_utf_16(data, path)
    head = data.decode("utf-8-sig", "backslashreplace")
    kind = kind_of(head)
    if kind is not None and kind.as_tables is not None:
        raise ParseError(f"this is {kind.name}, not a file of LFTs", path=path, remedy=kind.as_tables)
    if saquery_lfts.HEAD in head:
        return saquery_lfts.read(path, fabric)
    return fdbs.read(path, fabric) if fdbs.HEAD in head else lfts.read(path, fabric)
