"""Apply the conventions of all OpenSM dumps: the order of sections, the words for kinds of devices, and the encoding of
names.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric, NodeKind
from routing.names import escape_control

KIND_NAME = {NodeKind.SWITCH: "Switch", NodeKind.CA: "Channel Adapter", NodeKind.ROUTER: "Router"}


def opensm_order(guid: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the rows of devices in the order in which OpenSM dumps them, int64[n].

    OpenSM stores GUIDs in network byte order, but compares the stored bytes as little-endian numbers.  So the last byte
    of a GUID is the most significant one in the comparison.
    """
    return np.argsort(guid.byteswap(), kind="stable")


def endport_kind(fabric: Fabric, endport: int) -> str:
    """Return OpenSM's name for the kind of device to which an end port belongs: "Channel Adapter" or "Router"."""
    return KIND_NAME[NodeKind(int(fabric.terminal_kind[fabric.endport_terminal[endport]]))]


def encode(name: str) -> bytes:
    """Return a name in UTF-8 for a dump.  Line ends, and characters that UTF-8 cannot encode, are escaped."""
    return escape_control(name, _in_a_line).encode("utf-8", "backslashreplace")


def _in_a_line(letter: str) -> bool:
    return letter not in "\n\r"
