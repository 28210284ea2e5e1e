"""What all of OpenSM's dumps share: the order of their sections, the names of the kinds of node, names in quotes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric, NodeKind
from routing.names import escaped

KIND_NAME = {NodeKind.SWITCH: "Switch", NodeKind.CA: "Channel Adapter", NodeKind.ROUTER: "Router"}


def opensm_order(guid: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """int64[n], rows in the order in which OpenSM walks its maps.

    OpenSM sorts by the GUID as it lies in network order in memory, read as a number by a little-endian machine: the
    last byte of a GUID weighs most.
    """
    return np.argsort(guid.byteswap(), kind="stable")


def endport_kind(fabric: Fabric, endport: int) -> str:
    """How OpenSM calls the kind of an end port's terminal."""
    return KIND_NAME[NodeKind(int(fabric.terminal_kind[fabric.endport_terminal[endport]]))]


def encode(name: str) -> bytes:
    """Bytes of a name as it was read; line ends, which would break a dump, become escapes."""
    return escaped(name, _in_a_line).encode("utf-8", "backslashreplace")


def _in_a_line(letter: str) -> bool:
    return letter not in "\n\r"
