"""Find where packets enter a fabric, and on which SLs, while several SL tables may be in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.tables import ServiceLevels

Masks = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class InjectionPoints:
    """N points where packets enter the fabric.

    There is either one point for each switch, or one for each switch itself and one for each port with a CA or router.
    The senders at all points have M LIDs in total.

    Attributes
    ----------
    switch
        int32[N], row of the switch.
    port
        uint8[N], in-port of the packets.  0 means that the switch itself sends.  If each switch has only one point, 0
        stands for all ports of the switch.
    endport
        bool[N], whether a CA or router sends there.
    lid, first
        int64[M], int64[N+1]: the LIDs of the senders at point ``n`` are ``lid[first[n]:first[n+1]]``.
    """

    switch: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]
    endport: npt.NDArray[np.bool_]
    lid: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.switch)

    @classmethod
    def by_switch(cls, fabric: Fabric) -> InjectionPoints:
        """Return one injection point for each switch, which stands for all its ports.  Cost: O(S + L log L)."""
        rows = np.arange(fabric.switches, dtype=np.int32)
        lid = np.flatnonzero(fabric.lids.switch >= 0)
        return cls._of(rows, np.zeros(len(rows), np.uint8), fabric.terminals_at > 0, lid, fabric.lids.switch[lid])

    @classmethod
    def by_port(cls, fabric: Fabric) -> InjectionPoints:
        """Return one injection point for each switch itself, then one for each port with a CA or router.

        Cost: O(S + L log L).
        """
        cabled = np.flatnonzero(fabric.endport_switch >= 0)
        position = np.full(fabric.endports, -1, np.int64)
        position[cabled] = fabric.switches + np.arange(len(cabled))
        switch = np.concatenate([np.arange(fabric.switches, dtype=np.int32), fabric.endport_switch[cabled]])
        port = np.concatenate([np.zeros(fabric.switches, np.uint8), fabric.endport_switch_port[cabled]])
        lid = np.flatnonzero(fabric.lids.switch >= 0)
        owner = fabric.lids.endport[lid]
        at = np.where(owner >= 0, position[owner] if len(position) else -1, fabric.lids.switch[lid])
        return cls._of(switch, port, port > 0, lid, at)

    @classmethod
    def _of(
        cls,
        switch: npt.NDArray[np.int32],
        port: npt.NDArray[np.uint8],
        endport: npt.NDArray[np.bool_],
        lid: npt.NDArray[np.int64],
        position: npt.NDArray[np.int64] | npt.NDArray[np.int32],
    ) -> InjectionPoints:
        by_position = np.argsort(position, kind="stable")
        first = np.searchsorted(position[by_position], np.arange(len(switch) + 1))
        return cls(switch, port, endport, lid[by_position], first.astype(np.int64))

    def without_switches(self, fabric: Fabric) -> InjectionPoints:
        """Return the injection points with the LIDs of CAs and routers only; the switches themselves do not send."""
        keep = fabric.lids.port[self.lid] > 0
        before = np.concatenate([[0], np.cumsum(keep)])
        return InjectionPoints(self.switch, self.port, self.endport, self.lid[keep], before[self.first])

    def any_of(self, masks: Masks) -> Masks:
        """Combine masks of the M LIDs to masks of the N injection points.

        ``masks`` is uint16[..., M], in the order of :attr:`lid`.

        Returns
        -------
        uint16[..., N]
            The bitwise OR over the LIDs of each point.
        """
        result = np.zeros((*masks.shape[:-1], len(self)), np.uint16)
        some = np.flatnonzero(np.diff(self.first))
        if len(some):
            result[..., some] = np.bitwise_or.reduceat(masks, self.first[some], axis=-1)
        return result


def injected_traffic(
    fabric: Fabric,
    entries: InjectionPoints,
    sls: Sequence[ServiceLevels],
    bit: Masks,
    columns: npt.NDArray[np.int64],
    *,
    switch_pairs: bool,
) -> tuple[Masks, Masks]:
    """Return which SLs (or VLs) requests and replies use from each injection point to the given LIDs.

    Parameters
    ----------
    fabric, entries
        The fabric and its injection points.
    sls
        One or more tables of SLs.  A packet may have the SL that any of these tables gives for it.
    bit
        uint16[16], for each SL the bit that stands for this SL in the results: ``1 << sl``, or ``1 << vl`` for the VL
        of the SL.
    columns
        int64[K], the K LIDs to which packets are sent.
    switch_pairs
        Whether switches send packets, too.  If False, only CAs and routers send.  ``columns`` must then have only LIDs
        of switches.  With other LIDs, packets from switches to CAs and routers would be left out, too.

    Returns
    -------
    requests, replies : uint16[K, N]
        Bits (see ``bit``) of the SLs on which requests and replies enter at each of the N injection points towards each
        LID.

    Notes
    -----
    Cost: O(K N); O(K L) for SLs by pair of LIDs, O(S L) for the replies of SLs by switch.
    """
    allowed = np.ones(len(entries), bool) if switch_pairs else entries.endport
    senders = entries if switch_pairs else entries.without_switches(fabric)
    requests = np.zeros((len(columns), len(entries)), np.uint16)
    replies = np.zeros_like(requests)
    target = fabric.lids.switch[columns]
    for each in sls:
        sl = each.table
        if each.by_lid:
            requests |= bit[sl[columns]][:, None]
            replies |= senders.any_of(bit[sl[senders.lid]])[None, :]
        elif each.by_switch:
            requests |= bit[sl[:, columns][entries.switch]].T
            switches, which = np.unique(target, return_inverse=True)
            replies |= senders.any_of(bit[sl[switches][:, senders.lid]])[which]
        else:
            requests |= senders.any_of(bit[sl[:, columns][senders.lid]].T)
            replies |= senders.any_of(bit[sl[columns][:, senders.lid]])
    return np.where(allowed, requests, np.uint16(0)), replies
