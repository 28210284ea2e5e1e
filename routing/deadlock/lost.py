"""Data about lost LIDs, which no port has any more.

Switches may still have entries for such LIDs, and senders may still send to them.  So the traffic to lost LIDs counts
in a transition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.injection import InjectionPoints, Masks
from routing.fabric import Fabric
from routing.tables import ServiceLevels

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class LostLids:
    """Former owners of LIDs.  The owners' switches and the old SLs determine the traffic that still follows the old
    tables.

    Attributes
    ----------
    of_switch
        bool[L], whether a switch (not an end port) had the LID.
    switch
        int32[L], the switch that delivered the LID, -1 if unknown.  If SLs depend on the sender's switch, the number is
        a row of the table ``sl``.  Otherwise the attribute is not used.
    sl
        The SLs of the old tables.  SLs that depend on the sender's switch have a row for each switch of the old fabric.
    known
        bool[L], whether the LID had an owner in the old fabric.
    name
        Name of the former owner of each LID that is gone, by LID.
    """

    of_switch: npt.NDArray[np.bool_]
    switch: npt.NDArray[np.int32]
    sl: ServiceLevels
    known: npt.NDArray[np.bool_]
    name: dict[int, str]

    @classmethod
    def unknown(cls, fabric: Fabric, sl: Bytes) -> LostLids:
        """Return a record of lost LIDs whose former owners are unknown.

        ``sl`` is the SL table of the old routing, with a row for each switch of ``fabric`` if SLs depend on the switch.
        """
        count = len(fabric.lids)
        sls, nowhere = ServiceLevels.of(sl, fabric.switches), np.full(count, -1, np.int32)
        return cls(np.zeros(count, bool), nowhere, sls, np.ones(count, bool), {})

    def replies(self, lids: npt.NDArray[np.int64], senders: InjectionPoints, bit: Masks) -> Masks:
        """Return the SLs of the replies that are still sent to LIDs that no port has any more.

        A reply uses the SL of its request.  The former owner of the LID has sent this request to the sender of the
        reply.

        Parameters
        ----------
        lids
            int64[K], the K LIDs that no port has any more.
        senders
            The injection points that send replies, with their LIDs.
        bit
            uint16[16], the bits that stand for each SL.

        Returns
        -------
        uint16[K, N]
            The SLs (as bits) of the replies that each of the N injection points sends to each of ``lids``.
        """
        to, asked = senders.lid, self.known[senders.lid]
        masks = np.zeros((len(lids), len(to)), np.uint16)
        sl, rows = self.sl.matrix, self.sl.row_of(self.switch[lids], lids)
        masks[rows >= 0] = bit[sl[rows[rows >= 0]][:, to]]
        if (rows < 0).any():  # The former owner may have been at any switch, so the SLs of all switches count.
            masks[rows < 0] = np.bitwise_or.reduce(bit[sl[:, to]], axis=0)
        return senders.any_of(np.where(asked, masks, np.uint16(0)))

    def reply_sls(self, lid: int, sender: int) -> set[int]:
        """Return the SLs of replies from the owner of LID ``sender`` to ``lid``, a LID that no port has any more."""
        if not self.known[sender]:
            return set()
        sl, row = self.sl.matrix, int(self.sl.row_of(self.switch[[lid]], np.array([lid]))[0])
        return {int(sl[row, sender])} if row >= 0 else set(sl[:, sender].tolist())
