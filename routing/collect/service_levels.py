"""Query the subnet administration (SA) for the SLs of all paths: one query for each source, or for each path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.collect import mads
from routing.collect.umad import Umad
from routing.fabric import NO_PORT, Fabric

UNKNOWN = 255
"""Value that stands for an SL which the SA did not state."""
_TABLES_AHEAD = 2
"""Number of queries for many path records that are sent before an answer arrives.  The number is small, because the SA
answers no other query while it computes such an answer.
"""


@dataclass(frozen=True, eq=False)
class Sa:
    """Address of the subnet administration (SA), and the SL of queries to the SA."""

    lid: int
    sl: int


def path_sls(
    umad: Umad, sa: Sa, fabric: Fabric, lft: npt.NDArray[np.uint8], done: Callable[[int], None]
) -> tuple[npt.NDArray[np.uint8], str]:
    """Query the SL of every path for which the LFTs have an entry.

    Parameters
    ----------
    umad, sa
        The local port that sends the queries, and the SA.
    fabric, lft
        The fabric, and its LFTs, uint8[S, L].
    done
        Function that is called with the number of paths that were completed since its last call.

    Returns
    -------
    sl : uint8[S + E, L]
        SLs by source (switches first, then end ports) and destination LID; 255 if the SA stated no SL, or more than one
        SL.
    how : str
        Kind of query that the SA answered.

    Notes
    -----
    Cost: S + E queries, each of which is answered by up to L path records.  If the first answer is cut off, one query
    is sent for each path.  (ibsim cuts answers off after their first MAD.)
    """
    wanted = wanted_paths(fabric, lft)
    source_lid = np.concatenate([fabric.switch_lid, fabric.endport_lid]).astype(np.int64)
    sources = np.flatnonzero(wanted.any(axis=1)).tolist()
    found = _Found(fabric, wanted, source_lid)
    if not sources:
        return found.sl, "no path"
    first = umad.get(mads.path_query(sa.lid, int(source_lid[sources[0]]), None, sl=sa.sl), _table)
    if first is not None and first[0] is None:
        rows, lids = np.nonzero(wanted)
        pairs = zip(source_lid[rows].tolist(), lids.tolist(), strict=True)
        queries = (mads.path_query(sa.lid, source, lid, sl=sa.sl) for source, lid in pairs)
        found.take(record for record in umad.get_all(queries, mads.path_record, done) if record is not None)
        return found.sl, "one query for each path"
    queries = (mads.path_query(sa.lid, int(source_lid[row]), None, sl=sa.sl) for row in sources)
    for row, table in zip(sources, umad.get_all(queries, _table, ahead=_TABLES_AHEAD), strict=True):
        found.take((table[0] if table is not None else None) or ())
        done(int(wanted[row].sum()))
    return found.sl, "one query for each source"


def wanted_paths(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return the paths whose SLs are queried, bool[S + E, L] by source and destination LID.

    A path is queried if its source and its destination have different LIDs, and the switch of the source has an LFT
    entry for the destination.
    """
    lids = fabric.lids
    owned = (lids.switch >= 0) | (lids.endport >= 0)
    at = np.concatenate([np.arange(fabric.switches), fabric.endport_switch])
    lid = np.concatenate([fabric.switch_lid, fabric.endport_lid])
    wanted = (lft[at, : len(lids)] != NO_PORT) & owned & ((at >= 0) & (lid > 0))[:, None]
    rows = np.arange(len(lid))
    wanted[rows[: fabric.switches], fabric.switch_lid] = False
    own = lids.endport >= 0
    wanted[fabric.switches + lids.endport[own], np.flatnonzero(own)] = False
    return np.asarray(wanted, bool)


def _table(mad: bytes) -> tuple[list[mads.PathRecord] | None]:
    """Return a tuple with one element: the list of the path records in an answer, or None if the answer was cut off.

    For a query without an answer, :meth:`Umad.get_all` returns None.  The tuple shows that there was an answer.
    """
    return (mads.path_records(mad),)


class _Found:
    """Collects the SLs of path records.  Each SL is stored by the row of its source and by its destination LID."""

    def __init__(self, fabric: Fabric, wanted: npt.NDArray[np.bool_], source_lid: npt.NDArray[np.int64]) -> None:
        self.sl: npt.NDArray[np.uint8] = np.full(wanted.shape, UNKNOWN, np.uint8)
        self._wanted = wanted
        self._row = {lid: row for row, lid in enumerate(source_lid.tolist()) if lid}
        for lid in np.flatnonzero(fabric.lids.endport >= 0).tolist():
            self._row[lid] = fabric.switches + int(fabric.lids.endport[lid])
        self._differs: set[tuple[int, int]] = set()

    def take(self, records: Iterable[mads.PathRecord]) -> None:
        """Store the SLs of path records.  If two records of one path have different SLs, the SL of the path stays
        unknown.
        """
        for source, lid, sl in records:
            row = self._row.get(source, -1)
            if row < 0 or lid >= self.sl.shape[1] or not self._wanted[row, lid] or (row, lid) in self._differs:
                continue
            if self.sl[row, lid] not in (UNKNOWN, sl):
                self._differs.add((row, lid))
            self.sl[row, lid] = UNKNOWN if (row, lid) in self._differs else sl
