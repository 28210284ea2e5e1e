"""Apply the conventions of all OpenSM dumps: order of sections, names of the kinds of nodes, names in quotes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric, NodeKind
from routing.names import escape_control

KIND_NAME = {NodeKind.SWITCH: "Switch", NodeKind.CA: "Channel Adapter", NodeKind.ROUTER: "Router"}


def opensm_order(guid: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the rows of devices in the order in which OpenSM dumps them, int64[n].

    OpenSM sorts GUIDs that are in network byte order as if they were numbers of a little-endian machine.  So the last
    byte of a GUID decides first.
    """
    return np.argsort(guid.byteswap(), kind="stable")


def endport_kind(fabric: Fabric, endport: int) -> str:
    """Return OpenSM's name for the kind of device to which an end port belongs: "Channel Adapter" or "Router"."""
    return KIND_NAME[NodeKind(int(fabric.terminal_kind[fabric.endport_terminal[endport]]))]


def encode(name: str) -> bytes:
    """Return the bytes from which a name was read, for a dump.  Line ends in the name are escaped."""
    return escape_control(name, _in_a_line).encode("utf-8", "backslashreplace")


def _in_a_line(letter: str) -> bool:
    return letter not in "\n\r"
