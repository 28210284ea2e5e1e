"""The routing: forwarding tables, service levels and SL-to-VL tables, as an immutable value."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.errors import TableError
from routing.fabric import Fabric
from routing.numerals import count_noun

DATA_VLS = 15

Rows = npt.NDArray[np.signedinteger]

Index = int | npt.NDArray[np.integer]
"""One index, or an array of indices."""

Unknown = Literal["SL", "SL2VL"]
"""Name of a kind of table that a file of tables may lack."""


@dataclass(frozen=True)
class Provenance:
    """Origin of tables: the engine, its options, versions of software, digest of the fabric, and seconds by phase.

    A file of tables may lack the SLs or the SL2VL tables.  The reader of the file then assumes values for what is
    missing.  In this case ``options["unknown"]`` lists what is missing ("SL" or "SL2VL").  For each item of this list,
    ``options["assumed"]`` has a text that describes the assumed values.
    """

    engine: str
    options: Mapping[str, object] = field(default_factory=dict)
    fabric_digest: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def assumptions(self) -> Mapping[Unknown, str]:
        """Text about the assumed values, for each kind of table ("SL" or "SL2VL") that the file of tables lacks."""
        unknown, assumed = self.options.get("unknown"), self.options.get("assumed")
        if not isinstance(unknown, list) or not isinstance(assumed, list):
            return {}
        return dict(zip(unknown, map(str, assumed), strict=True))


class SlForm(enum.Enum):
    """Values on which the SL of a request may depend, in addition to the LID of its destination."""

    BY_LID = "by destination"
    """The SL depends on the destination LID alone; the table is uint8[L]."""
    BY_SWITCH = "by switch"
    """The SL depends on the destination LID and on the switch of the sender; the table is uint8[S, L]."""
    BY_SOURCE_LID = "by source LID"
    """The SL depends on the destination LID and on the LID of the sender; the table is uint8[L, L]."""


@dataclass(frozen=True, eq=False)
class ServiceLevels:
    """The SLs that path queries return.

    Attributes
    ----------
    table
        uint8[L], uint8[S, L] or uint8[L, L], see ``form``.
    form
        Values on which an SL depends, in addition to the destination LID.
    """

    table: npt.NDArray[np.uint8]
    form: SlForm

    @classmethod
    def of(cls, table: npt.NDArray[np.uint8], switches: int) -> ServiceLevels:
        """Make the object from an SL table for a fabric with ``switches`` switches.

        The shape of the table shows whether the SLs also depend on the source switch or on the source LID.
        """
        if table.ndim == 1:
            return cls(table, SlForm.BY_LID)
        return cls(table, SlForm.BY_SWITCH if len(table) == switches else SlForm.BY_SOURCE_LID)

    @property
    def by_lid(self) -> bool:
        """Return whether the SL depends on the destination alone."""
        return self.form is SlForm.BY_LID

    @property
    def by_switch(self) -> bool:
        """Return whether the SL depends on the switch of the sender."""
        return self.form is SlForm.BY_SWITCH

    @property
    def by_source_lid(self) -> bool:
        """Return whether the SL depends on the LID of the sender."""
        return self.form is SlForm.BY_SOURCE_LID

    @property
    def rows(self) -> int:
        """Return the number of source switches or source LIDs in the table; 0 if the SL depends on the destination
        alone.
        """
        return 0 if self.by_lid else len(self.table)

    @property
    def matrix(self) -> npt.NDArray[np.uint8]:
        """Return the table as a matrix: uint8[rows, L], or uint8[1, L] if the SL depends on the destination alone.

        :meth:`row_of` returns the row of a sender in this matrix.
        """
        return np.atleast_2d(self.table)

    def row_of(self, switch: Rows, lid: Rows) -> Rows:
        """Return the row of :attr:`matrix` for each sender, given the senders' switches and LIDs."""
        if self.by_lid:
            return np.zeros_like(switch)
        return switch if self.by_switch else lid

    def from_sender(self, switch: int, lid: int) -> npt.NDArray[np.uint8]:
        """Return uint8[L], the SLs of a sender towards each LID, given the sender's switch and LID."""
        if self.by_lid:
            return self.table
        found: npt.NDArray[np.uint8] = self.table[switch if self.by_switch else lid]
        return found

    def with_rows(self, count: int) -> npt.NDArray[np.uint8]:
        """Return the table as a matrix with a row for each source switch or source LID.

        If the SL depends on the destination alone, the result is a read-only view with ``count`` equal rows.
        """
        return np.broadcast_to(self.table, (count, self.table.shape[-1])) if self.by_lid else self.table

    def of_any_sender(self, differs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return bool[L]: for each destination LID, whether ``differs`` is true for at least one sender.

        ``differs`` is an array of bool with the shape of :attr:`table`.
        """
        return np.asarray(np.atleast_2d(differs).any(axis=0))


@dataclass(frozen=True, eq=False)
class SlToVl:
    """The VLs on which switches forward packets.

    Attributes
    ----------
    table
        uint8[16], the VL of each SL on all switches; or uint8[S, P, P, 16] by switch, in-port, out-port and SL.
    """

    table: npt.NDArray[np.uint8]

    @property
    def uniform(self) -> bool:
        """Return whether the VL depends on the SL alone, so that packets keep their VL on all hops."""
        return self.table.ndim == 1

    @property
    def ports(self) -> int:
        """Return the number of in-ports per switch in the table, including port 0; 0 if the table has no in-ports."""
        return 0 if self.uniform else self.table.shape[1]

    def vl(self, switch: Index, in_port: Index, out_port: Index, sl: Index) -> npt.NDArray[np.uint8]:
        """Return the VL of one packet, or uint8[N], the VLs of N packets; 15: the switch drops the packet."""
        found: npt.NDArray[np.uint8] = self.table[sl] if self.uniform else self.table[switch, in_port, out_port, sl]
        return found

    def of_switch(self, switch: int, ports: int) -> npt.NDArray[np.uint8]:
        """Return uint8[ports+1, ports+1, 16], the table of one switch by in-port, out-port and SL.

        ``ports`` is the number of ports of the switch without port 0.
        """
        if self.uniform:
            return np.broadcast_to(self.table, (ports + 1, ports + 1, len(self.table)))
        return self.table[switch, : ports + 1, : ports + 1]


@dataclass(frozen=True, eq=False, repr=False)
class Routing:
    """Forwarding tables of the switches, and the SLs returned to path queries.

    Attributes
    ----------
    lft
        uint8[S, L]: out-port of switch ``s`` towards LID ``l``, 0 for the switch itself, 255 for no route.
    sl
        uint8[L] by destination LID, uint8[S, L] by source switch and destination LID, or uint8[L, L] by source LID and
        destination LID.  The last two shapes always differ: L is larger than S, because each switch has a LID and L
        also counts LID 0.
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

    def __repr__(self) -> str:
        switches, lids = self.lft.shape
        counts = f"{count_noun(switches, 'switch', 'switches')}, LIDs up to {lids - 1}, {count_noun(self.vls, 'VL')}"
        return f"<{type(self).__name__} {self.provenance.engine}: {counts}>"

    @property
    def service_levels(self) -> ServiceLevels:
        """Return the SL table together with the values on which an SL depends in this table."""
        return ServiceLevels.of(self.sl, len(self.lft))

    @property
    def sl_to_vl(self) -> SlToVl:
        """Return the SL2VL tables as an object whose methods are the same for both shapes of the tables."""
        return SlToVl(self.sl2vl)

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
    """Return uint8[16], the SL2VL table that maps SL n to VL n modulo ``vls``."""
    return (np.arange(16) % vls).astype(np.uint8)
