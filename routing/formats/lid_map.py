"""Convert tables between two LID assignments, matched by the GUIDs of the LIDs' owners."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric


def lid_owner(fabric: Fabric) -> npt.NDArray[np.uint64]:
    """Return the owner of each LID, uint64[L]: port GUID of the end port or GUID of the switch; 0 if there is none."""
    lids = fabric.lids
    owner = np.zeros(len(lids), np.uint64)
    ends = np.flatnonzero(lids.endport >= 0)
    owner[ends] = fabric.endport_guid[lids.endport[ends]]
    own = fabric.switch_lid[fabric.switch_lid > 0].astype(np.int64)
    owner[own] = fabric.switch_guid[fabric.switch_lid > 0]
    return owner


def old_columns(old_owner: npt.NDArray[np.uint64], new_owner: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return for each new LID the old LID whose column it takes over, or -1.

    The k-th LID of a port (in order) takes over the column of the port's k-th old LID.  If the old owner of a LID is
    unknown (0), the LID keeps its column.

    Parameters
    ----------
    old_owner, new_owner
        uint64[Lold] and uint64[Lnew], GUID of each LID's owner, 0: none or unknown.

    Returns
    -------
    int64[Lnew]
        Old LIDs.

    Notes
    -----
    O(L log L).
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
    """Sort the owned LIDs by owner.

    Returns
    -------
    lid : int64[N]
        The owned LIDs.
    key : int64[N]
        For each LID its owner, and its rank among the owner's LIDs, as one number.
    """
    lid = np.flatnonzero(owner)
    number = np.searchsorted(guids, owner[lid])
    order = np.argsort(number, kind="stable")
    lid, number = lid[order], number[order]
    rank = np.arange(len(lid)) - np.searchsorted(number, number)
    return lid, number * (1 << 16) + rank


def take_columns(table: npt.NDArray[np.uint8], column: npt.NDArray[np.int64], missing: int) -> npt.NDArray[np.uint8]:
    """Return the columns of ``table`` with the numbers ``column``; ``missing`` fills the columns with number -1."""
    if np.array_equal(column, np.arange(table.shape[-1])):
        return table
    taken = table[..., np.maximum(column, 0)]
    taken[..., column < 0] = missing
    return np.ascontiguousarray(taken)
