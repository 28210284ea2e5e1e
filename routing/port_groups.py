"""Port groups of adaptive routing: the ports by which switches may send packets to each LID."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.tables import Routing


class Rule(enum.Enum):
    """Rule by which a switch treats a packet that has to wait."""

    COMMIT = "commit"
    """The packet waits for the port that the switch has chosen."""
    ESCAPE = "escape"
    """The packet takes whichever port of its group has room first."""


@dataclass(frozen=True, eq=False, repr=False)
class PortGroups:
    """Ports by which packets may leave each switch, for some LIDs of tables.

    Attributes
    ----------
    fabric, routing
        The fabric, and the tables that the groups extend.
    rule
        Rule by which a switch treats a packet that has to wait.
    lids
        int32[T], the T LIDs with port groups, ascending.
    member
        uint8[T, (C + 7) // 8], the channels in the port groups of each LID, as bits: channel ``c`` is bit ``c % 8`` of
        byte ``c // 8``.
    """

    fabric: Fabric
    routing: Routing
    rule: Rule
    lids: npt.NDArray[np.int32]
    member: npt.NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.lids)} LIDs, {self.fabric.switches} switches, {self.rule.value}>"

    def channels(self, row: int) -> npt.NDArray[np.bool_]:
        """Return bool[C], the channels in groups of the LID ``lids[row]``."""
        bits = np.unpackbits(self.member[row], count=len(self.fabric.channels), bitorder="little")
        return bits.astype(np.bool_)


def grouped_lids(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return all LIDs that switches deliver, int32, ascending."""
    return np.flatnonzero(fabric.lids.switch >= 0).astype(np.int32)
