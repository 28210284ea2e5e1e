"""The routing: forwarding tables, service levels and SL-to-VL tables, as an immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.errors import TableError
from routing.fabric import Fabric

DATA_VLS = 15


Unknown = Literal["SL", "SL2VL"]
"""Name of a part of tables that the files of these tables may lack."""


@dataclass(frozen=True)
class Provenance:
    """Origin of tables: the engine, its options, versions of software, digest of the fabric, and seconds by phase.

    Files of tables may lack SLs or SL2VL tables.  For tables read from such files, ``options`` lists the missing parts
    (``unknown``), and the assumption made for each part (``assumed``, one text per part).
    """

    engine: str
    options: Mapping[str, object] = field(default_factory=dict)
    fabric_digest: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def assumptions(self) -> Mapping[Unknown, str]:
        """Assumption made for each part that the files of the tables lack."""
        unknown, assumed = self.options.get("unknown"), self.options.get("assumed")
        if not isinstance(unknown, list) or not isinstance(assumed, list):
            return {}
        return dict(zip(unknown, map(str, assumed), strict=True))


@dataclass(frozen=True, eq=False)
class Routing:
    """Forwarding tables of the switches, and the SLs returned to path queries.

    Attributes
    ----------
    lft
        uint8[S, L]: out-port of switch ``s`` towards LID ``l``, 0 for the switch itself, 255 for no route.
    sl
        uint8[L] by destination LID, uint8[S, L] by source switch and destination LID, or uint8[L, L] by source LID and
        destination LID.  (S and L differ, since L includes LID 0, and every switch has a LID.)
    sl2vl
        uint8[16], the VL of each SL on all switches; or uint8[S, P, P, 16] by switch, in-port, out-port and SL.  P is
        one more than the largest number of ports.  In-port 0 is the switch itself.
    vls
        Number of data VLs that the tables use.
    vls_needed
        Smallest number of VLs with which the engine found these paths free of credit loops.
    provenance
        Origin of the tables.
    """

    lft: npt.NDArray[np.uint8]
    sl: npt.NDArray[np.uint8]
    sl2vl: npt.NDArray[np.uint8]
    vls: int
    vls_needed: int
    provenance: Provenance

    def check_shapes(self, fabric: Fabric) -> None:
        """Raise :class:`~routing.errors.TableError` unless the shapes fit the fabric."""
        switches, lids = fabric.switches, len(fabric.lids)
        if self.lft.shape != (switches, lids):
            raise TableError(f"LFT is {self.lft.shape}, but the fabric needs {(switches, lids)}")
        if self.sl.shape not in ((lids,), (switches, lids), (lids, lids)):
            raise TableError(
                f"SL table is {self.sl.shape}, but the fabric needs [L], [S, L] or [L, L] of S={switches}, L={lids}"
            )
        ports = 1 + int(fabric.switch_ports.max(initial=0))
        if self.sl2vl.shape not in ((16,), (switches, ports, ports, 16)):
            raise TableError(f"SL2VL is {self.sl2vl.shape}, but needs to be (16,) or {(switches, ports, ports, 16)}")
        if self.sl.size and int(self.sl.max()) > 15:
            raise TableError("an SL is over 15")


def identity_sl2vl(vls: int) -> npt.NDArray[np.uint8]:
    """Return the SL2VL table that maps SL n to VL n modulo ``vls``, uint8[16]."""
    return (np.arange(16) % vls).astype(np.uint8)
