"""Renumber the columns of tables after LIDs have changed.  LIDs are matched by the GUIDs of the ports that have
them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric


def lid_owner(fabric: Fabric) -> npt.NDArray[np.uint64]:
    """Return the GUID of the end port or switch that has each LID, uint64[L]; 0 if no port has the LID."""
    lids = fabric.lids
    owner = np.zeros(len(lids), np.uint64)
    ends = np.flatnonzero(lids.endport >= 0)
    owner[ends] = fabric.endport_guid[lids.endport[ends]]
    own = fabric.switch_lid[fabric.switch_lid > 0].astype(np.int64)
    owner[own] = fabric.switch_guid[fabric.switch_lid > 0]
    return owner


def old_columns(old_owner: npt.NDArray[np.uint64], new_owner: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return, for each new LID, the old LID whose table column the new LID takes over; -1 if there is no such old LID.

    The first of these rules that applies decides about a new LID:

    1. If the same port had this LID before, the LID keeps its column.
    2. If the LID is the k-th new LID of a port, and this port had k old LIDs or more, the LID takes over the column of
       the k-th old LID.
    3. If the port that had this LID before is unknown, the LID keeps its column.

    Parameters
    ----------
    old_owner
        uint64[Lold], the GUID of the port that had each old LID; 0 if unknown.
    new_owner
        uint64[Lnew], the GUID of the port that has each new LID; 0 if no port has the LID.

    Returns
    -------
    int64[Lnew]
        The old LID for each new LID.

    Notes
    -----
    Cost: O(L log L).
    """
    column = np.full(len(new_owner), -1, np.int64)
    guids = np.unique(np.concatenate([old_owner, new_owner]))
    old_lid, old_key = _ranked(old_owner, guids)
    new_lid, new_key = _ranked(new_owner, guids)
    if len(old_lid):
        position = np.minimum(np.searchsorted(old_key, new_key), len(old_key) - 1)
        found = old_key[position] == new_key
        column[new_lid[found]] = old_lid[position[found]]
    shared = np.arange(min(len(old_owner), len(new_owner)))
    stays = (old_owner[shared] == new_owner[shared]) | ((old_owner[shared] == 0) & (column[shared] == -1))
    column[shared[stays]] = shared[stays]
    return column


def _ranked(
    owner: npt.NDArray[np.uint64], guids: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort LIDs by the port that has them, so that the old and the new LIDs of each port can be matched.

    LIDs without an owner are left out.  ``owner`` has the GUID of each LID's port, and ``guids`` all GUIDs in ascending
    order.

    Returns
    -------
    lid : int64[N]
        The LIDs with an owner.
    key : int64[N]
        One number for each LID, which combines its owner and its rank among the owner's LIDs.
    """
    lid = np.flatnonzero(owner)
    number = np.searchsorted(guids, owner[lid])
    order = np.argsort(number, kind="stable")
    lid, number = lid[order], number[order]
    rank = np.arange(len(lid)) - np.searchsorted(number, number)
    return lid, number * (1 << 16) + rank


def take_columns(table: npt.NDArray[np.uint8], column: npt.NDArray[np.int64], missing: int) -> npt.NDArray[np.uint8]:
    """Return the columns of a table whose numbers are in ``column``, in the order of ``column``.

    For the number -1, the result has a column filled with ``missing``.
    """
    if np.array_equal(column, np.arange(table.shape[-1])):
        return table
    taken = table[..., np.maximum(column, 0)]
    taken[..., column < 0] = missing
    return np.ascontiguousarray(taken)
