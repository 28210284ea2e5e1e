"""Prove that large tables have no credit loop: by an acyclic union of the dependencies of all VLs.

The union contains every dependency that packets can cause on any VL: as requests or replies, with any SL, and with any
SL2VL tables in which packets keep their VL.  So if the union is acyclic, its topological order is valid on every VL.
The union needs only one pass over the LFTs, row by row, and does not read the SLs.  This pass takes a fraction of the
time of a separate trace of each VL.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Trace, trace_on_one_vl
from routing._kernels.dependencies import sort_channels
from routing._kernels.slots import Slots
from routing.cdg.acyclic import AcyclicCdg
from routing.fabric import Fabric
from routing.tables import Routing

LARGE = 20_000_000
"""Least number of LFT entries of a fabric for which the union of the dependencies of all VLs is tried.  If the union
has a cycle, each VL is traced.

For smaller tables, the union is not tried, because the trace of each VL takes little time and gives the exact CDGs.
"""
SAMPLED = 16
"""Before the union for all LIDs, a union for the LIDs at every SAMPLED-th switch is tried.  If this smaller union has a
cycle, the union for all LIDs has this cycle, too.
"""


@dataclass(frozen=True, eq=False)
class Union:
    """Acyclic union of the dependencies of all VLs.

    Attributes
    ----------
    found
        The trace of all routes as if all packets used VL 0.
    cdg
        A CDG in which each VL in use has all dependencies of the union.  Each VL has the union's topological order.
    """

    found: Trace
    cdg: AcyclicCdg


def acyclic_union(
    fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], *, threads: int
) -> Union | None:
    """Return the union of the dependencies of all VLs with a topological order.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables; packets must keep their VL along a path.
    slots
        Lookup tables of the fabric, with which kernels find channels and CDG edges.
    vl_bit
        uint16[16], for each SL the bit of its VL (``1 << vl``); 0 for SLs whose packets are dropped.
    threads
        Worker threads.

    Returns
    -------
    Union or None
        None if the union has a cycle.  Also None where a trace of each VL is better: if the tables have fewer than
        :data:`LARGE` LFT entries, or if requests use at most one VL.

    Notes
    -----
    Cost: O(S L).  A union for the LIDs at every sixteenth switch is tried first.  If this smaller union has a cycle,
    the function ends after a sixteenth of the work.
    """
    if routing.lft.size < LARGE:
        return None
    used = int(np.bitwise_or.reduce(vl_bit[_sls_used(fabric, routing)], initial=0))
    if used.bit_count() < 2:
        return None
    lids = fabric.lids
    sample = np.flatnonzero((lids.switch >= 0) & (lids.switch % SAMPLED == 0))
    for chosen in (sample, None):
        found = trace_on_one_vl(fabric, routing, slots, chosen, threads=threads)
        order = sort_channels(fabric.channels, found.dep, np.zeros(1, np.uint8), threads=threads)[0]
        if (order < 0).any():
            return None
    masks = np.where(found.dep != 0, np.uint16(used), np.uint16(0))
    return Union(found, AcyclicCdg(fabric, masks, np.tile(order, (used.bit_length(), 1))))


def _sls_used(fabric: Fabric, routing: Routing) -> list[int]:
    """Return the SLs of all requests.  Requests from or to a LID that no switch delivers do not count."""
    owned, used = fabric.lids.switch >= 0, 0
    sls = routing.service_levels
    rows = sls.matrix[owned] if sls.by_source_lid else sls.matrix
    for row in rows:
        used |= int(np.bitwise_or.reduce(np.left_shift(1, row[owned], dtype=np.uint16), initial=0))
    return [sl for sl in range(16) if used >> sl & 1]
