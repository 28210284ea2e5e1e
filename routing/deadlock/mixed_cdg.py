"""Compute the CDG edges of mixed LFT columns, for traffic from or to CAs and routers that keeps its VL along a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.slots import Slots
from routing._kernels.transition import admit_mixed, trace_mixed
from routing.cdg.acyclic import topological_order
from routing.cdg.trace import trace_cdg, vl_bits
from routing.deadlock.mixed import Bytes, Mixture
from routing.fabric import NO_PORT
from routing.tables import Routing

Masks = npt.NDArray[np.uint32]
Orders = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LidColumns:
    """Old and new LFT columns of some LIDs, and the traffic towards them.

    Attributes
    ----------
    lids
        int64[K], the K LIDs.
    next_channels
        Old and new entries, uint8[K, S] each: the port of the next channel of each switch towards each LID.
    enter
        uint32[K, S], VLs of the packets that enter at each switch towards each LID, as bits.
    """

    lids: npt.NDArray[np.int64]
    next_channels: tuple[Bytes, Bytes]
    enter: Masks

    def __len__(self) -> int:
        return len(self.lids)

    def subset(self, which: npt.NDArray[np.int64]) -> LidColumns:
        """Return the LFT columns with the given indices, in the given order."""
        before, after = self.next_channels
        return LidColumns(self.lids[which], (before[which], after[which]), self.enter[which])

    def between(self, before: Bytes, after: Bytes) -> LidColumns:
        """Return the LFT columns of these LIDs with other entries: ``before`` as the old, ``after`` as the new ones."""
        return LidColumns(self.lids, (before, after), self.enter)


class MixedDependencies:
    """Computes the CDG of mixed old and new tables, for traffic from or to CAs and routers.

    Parameters
    ----------
    mixture
        The old and new tables, in which no packet changes its VL along a path.
    replies
        Whether reply traffic is included.
    threads
        Worker threads.
    """

    def __init__(self, mixture: Mixture, *, replies: bool, threads: int) -> None:
        self.mixture, self.replies, self.threads = mixture, replies, threads
        self.slots = Slots.of(mixture.fabric)
        self.bits = vl_bits(mixture.sl2vl[0])

    def columns(self, lids: npt.NDArray[np.int64]) -> LidColumns:
        """Return the LFT columns of the given LIDs, with the traffic towards them (:meth:`Mixture.injected_vls`)."""
        return LidColumns(lids, self.mixture.columns(lids), self.mixture.injected_vls(lids, replies=self.replies))

    def trace(self, columns: LidColumns, dependencies: Masks) -> bool:
        """Trace columns with mixed entries: add their CDG edges to ``dependencies`` (uint32[edges], VLs as bits).

        Returns
        -------
        bool
            Whether old and new entries together can form a forwarding loop.
        """
        return bool(
            trace_mixed(self.slots, columns.next_channels, columns.enter, dependencies, threads=self.threads).any()
        )

    def union(self, columns: LidColumns, entries: Bytes, dependencies: Masks) -> Masks:
        """Return a copy of ``dependencies``, with the CDG edges of the old or of the new columns added.

        ``entries`` (uint8[K, S]) are the old or the new entries of ``columns``.
        """
        dependencies = dependencies.copy()
        self.trace(columns.between(entries, entries), dependencies)
        return dependencies

    def admits_all(self, columns: LidColumns, dependencies: Masks) -> bool:
        """Return whether :meth:`admit` would admit all columns, if their entries may be written in any order.

        The result is False if old and new entries together can form a forwarding loop.  This check is much faster than
        :meth:`admit`, because it traces all columns before it searches a cycle.
        """
        dependencies = dependencies.copy()
        return not self.trace(columns, dependencies) and self.order(dependencies, columns) is not None

    def unchanged(self, lids: npt.NDArray[np.int64]) -> Masks:
        """Return uint32[edges], the CDG edges of all LFT columns except the columns of ``lids``.

        The columns of LIDs that no port has are left out, too.  But the columns of some of these LIDs can cause
        dependencies: the LIDs in :attr:`Mixture.misdirected`.  So ``lids`` must contain these LIDs, and the caller has
        to trace their columns.

        Cost: O(S L + V N) for N possible CDG edges and V VLs.
        """
        lft, fabric, plain = self.mixture.before.copy(), self.mixture.fabric, self.mixture.plain()
        lft[:, lids] = NO_PORT
        rest = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        traffic = {"replies": self.replies, "switch_pairs": False}
        return trace_cdg(fabric, rest, self.bits, **traffic, threads=self.threads).masks.astype(np.uint32)

    def order(self, dependencies: Masks, columns: LidColumns) -> Orders | None:
        """Return int32[V, C], a topological order of ``dependencies`` for each VL in use; None if there is a cycle.

        A VL is in use if ``dependencies`` or the traffic towards ``columns`` use it.
        """
        channels = self.mixture.fabric.channels
        used = np.bitwise_or.reduce(dependencies, initial=0) | np.bitwise_or.reduce(columns.enter, axis=None, initial=0)
        return topological_order(channels, dependencies, max(1, int(used).bit_length()), threads=self.threads)

    def admit(
        self, columns: LidColumns, dependencies: Masks, order: Orders, rounds: Bytes | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return bool[K], whether each of the K columns can be written without a cycle in the CDG.

        Columns are checked one after the other.  A column is admitted if its mixed entries close no cycle with
        ``dependencies`` and with the dependencies of columns that were admitted before.

        Parameters
        ----------
        columns
            The columns to check.
        dependencies, order
            CDG edges that exist already, and a topological order of these edges.
        rounds
            uint8[K, S], round in which each entry is written; None: entries may be written in any order.
        """
        next_channels = columns.next_channels
        return admit_mixed(
            self.mixture.fabric, self.slots, next_channels, columns.enter, dependencies=dependencies, order=order,
            rounds=rounds,
        )  # fmt: skip
