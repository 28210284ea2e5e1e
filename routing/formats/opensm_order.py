"""Conventions of all OpenSM dumps: order of sections, names of node kinds, quoted names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric, NodeKind
from routing.names import escape_control

KIND_NAME = {NodeKind.SWITCH: "Switch", NodeKind.CA: "Channel Adapter", NodeKind.ROUTER: "Router"}


def opensm_order(guid: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the rows in the order in which OpenSM iterates over its maps, int64[n].

    OpenSM compares the GUID in network byte order in memory as a number of a little-endian machine.  The last byte of a
    GUID is therefore the most significant one.
    """
    return np.argsort(guid.byteswap(), kind="stable")


def endport_kind(fabric: Fabric, endport: int) -> str:
    """Return OpenSM's name for the kind of an end port's terminal."""
    return KIND_NAME[NodeKind(int(fabric.terminal_kind[fabric.endport_terminal[endport]]))]


def encode(name: str) -> bytes:
    """Return the bytes of a name as it was read; line ends are escaped, as they would break a dump."""
    return escape_control(name, _in_a_line).encode("utf-8", "backslashreplace")


def _in_a_line(letter: str) -> bool:
    return letter not in "\n\r"
