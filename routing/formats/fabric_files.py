"""Fabric files of every format: read by content, written by suffix."""

from __future__ import annotations

from pathlib import Path

from routing.fabric import Fabric
from routing.formats.ibsim_net import parse_net
from routing.formats.ibsim_net_write import write_net
from routing.formats.text import read_text

__all__ = ["read_fabric", "write_net"]


def read_fabric(path: str | Path, *, lmc: int = 0, guid2lid: str | Path | None = None) -> Fabric:
    """Read a fabric file of any known format.

    Parameters
    ----------
    path
        The file, plain or gzip; its format is told by content.
    lmc
        LMC of the end ports that have no LID in the file.
    guid2lid
        OpenSM's LID file, to take LIDs from.

    Raises
    ------
    InputError
        With file, line and remedy.
    """
    return parse_net(read_text(path), path, lmc=lmc)
