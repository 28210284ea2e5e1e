"""Dependencies of mixed LFT columns, for traffic from or to CAs and routers whose VL does not change."""

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
    """Old and new LFT columns of some LIDs.

    Attributes
    ----------
    lids
        int64[K], the LIDs.
    next_channels
        Old and new entries, uint8[K, S] each.
    enter
        uint32[K, S], mask of the VLs of traffic injected at each switch towards each LID.
    """

    lids: npt.NDArray[np.int64]
    next_channels: tuple[Bytes, Bytes]
    enter: Masks

    def __len__(self) -> int:
        return len(self.lids)

    def subset(self, which: npt.NDArray[np.int64]) -> LidColumns:
        """Return the columns with these indices, in the order given."""
        before, after = self.next_channels
        return LidColumns(self.lids[which], (before[which], after[which]), self.enter[which])

    def between(self, before: Bytes, after: Bytes) -> LidColumns:
        """Return columns of the same LIDs with other old and new entries."""
        return LidColumns(self.lids, (before, after), self.enter)


class MixedDependencies:
    """Dependencies of a mixture of tables.

    Parameters
    ----------
    mixture
        The mixture, in which no packet changes its VL.
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
        """Return the columns of some LIDs with the traffic towards them (:meth:`Mixture.injected_vls`)."""
        return LidColumns(lids, self.mixture.columns(lids), self.mixture.injected_vls(lids, replies=self.replies))

    def trace(self, columns: LidColumns, dependencies: Masks) -> bool:
        """Add all dependencies of mixed entries to ``dependencies``; return whether entries can form a forwarding
        loop.
        """
        return bool(
            trace_mixed(self.slots, columns.next_channels, columns.enter, dependencies, threads=self.threads).any()
        )

    def union(self, columns: LidColumns, dependencies: Masks) -> Masks:
        """Return a copy of ``dependencies`` with the dependencies of old and of new columns added, without mixtures."""
        dependencies = dependencies.copy()
        for path in columns.next_channels:
            self.trace(columns.between(path, path), dependencies)
        return dependencies

    def unchanged(self, lids: npt.NDArray[np.int64]) -> Masks:
        """Return uint32[edges], the dependencies of all columns except those of ``lids``.  Cost: that of a proof.

        LIDs that no port has are left out in any case, so ``lids`` must contain those of :attr:`Mixture.stray`.
        """
        lft, fabric, plain = self.mixture.before.copy(), self.mixture.fabric, self.mixture.plain()
        lft[:, lids] = NO_PORT
        rest = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        traffic = {"replies": self.replies, "switch_pairs": False}
        return trace_cdg(fabric, rest, self.bits, **traffic, threads=self.threads).masks.astype(np.uint32)

    def order(self, dependencies: Masks, columns: LidColumns) -> Orders | None:
        """Return int32[V, C], a topological order of ``dependencies`` for each VL in use; None if there is a cycle.

        VLs are in use if ``dependencies`` or the columns' traffic has them.
        """
        channels = self.mixture.fabric.channels
        used = np.bitwise_or.reduce(dependencies, initial=0) | np.bitwise_or.reduce(columns.enter, axis=None, initial=0)
        return topological_order(channels, dependencies, max(1, int(used).bit_length()), threads=self.threads)

    def admit(
        self, columns: LidColumns, dependencies: Masks, order: Orders, rounds: Bytes | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return bool[K]: the columns that close no cycle with ``dependencies`` and the columns admitted before
        them.
        """
        next_channels = columns.next_channels
        return admit_mixed(
            self.mixture.fabric,
            self.slots,
            next_channels,
            columns.enter,
            dependencies=dependencies,
            order=order,
            rounds=rounds,
        )
