"""What may wait for what while columns of tables are mixed, where VLs stay: of traffic from or to CAs and routers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace, trace_endports
from routing._kernels.dependencies import Dependencies
from routing._kernels.mixed import admit_mixed, trace_mixed
from routing._kernels.slots import Slots
from routing.deadlock.cdg import REPLIES, vl_bits
from routing.deadlock.entering import Entries, entering
from routing.deadlock.mixed import Bytes, Mixture
from routing.fabric import NO_PORT
from routing.tables import Routing

Masks = npt.NDArray[np.uint32]
Orders = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Columns:
    """Some LIDs.

    Attributes
    ----------
    lids
        int64[K].
    ways
        uint8[K, S] twice, their entries before and after.
    enter
        uint32[K, S], VLs of what enters at each switch towards each of them.
    """

    lids: npt.NDArray[np.int64]
    ways: tuple[Bytes, Bytes]
    enter: Masks

    def __len__(self) -> int:
        return len(self.lids)

    def some(self, which: npt.NDArray[np.int64]) -> Columns:
        """Those of these numbers, in that order."""
        before, after = self.ways
        return Columns(self.lids[which], (before[which], after[which]), self.enter[which])

    def between(self, before: Bytes, after: Bytes) -> Columns:
        """The same LIDs with other entries."""
        return Columns(self.lids, (before, after), self.enter)


class Waiting:
    """A mixture with the turns that its fabric allows.

    Parameters
    ----------
    mixture
        Whose VLs stay on the way.
    replies
        Whether replies count.
    threads
        Worker threads.
    """

    def __init__(self, mixture: Mixture, *, replies: bool, threads: int) -> None:
        self.mixture, self.replies, self.threads = mixture, replies, threads
        self.slots = Slots.of(mixture.fabric)
        self.bits = vl_bits(mixture.sl2vl[0])

    def columns(self, lids: npt.NDArray[np.int64]) -> Columns:
        """Some LIDs with all that enters towards them.  Cost: O(K S), for SLs by pair O(K L)."""
        fabric, places = self.mixture.fabric, Entries.by_switch(self.mixture.fabric)
        enter = np.empty((len(lids), fabric.switches), np.uint32)
        of_switch = fabric.lids.port[lids] == 0
        for some in (of_switch, ~of_switch):
            if some.any():
                requests, replies = entering(
                    fabric, places, self.mixture.sl, self.bits, lids[some], switch_pairs=some is not of_switch
                )
                enter[some] = requests | replies if self.replies else requests
        return Columns(lids, self.mixture.columns(lids), enter)

    def trace(self, columns: Columns, waits: Masks) -> bool:
        """Add to ``waits`` all that any mixture of the columns makes wait; whether packets may circle."""
        return bool(trace_mixed(self.slots, columns.ways, columns.enter, waits, threads=self.threads).any())

    def both(self, columns: Columns, waits: Masks) -> Masks:
        """uint32[slots], with all that old and new entries make wait that are not mixed."""
        waits = waits.copy()
        for way in columns.ways:
            self.trace(columns.between(way, way), waits)
        return waits

    def unchanged(self, lids: npt.NDArray[np.int64]) -> Masks:
        """uint32[slots], what all but some columns make wait.  Cost: that of a proof."""
        lft, fabric, plain = self.mixture.before.copy(), self.mixture.fabric, self.mixture.plain()
        lft[:, lids] = NO_PORT
        rest = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        found = trace(fabric, rest, self.slots, self.bits, threads=self.threads)
        dep = trace_endports(fabric, rest, self.slots, self.bits, found, threads=self.threads)
        return np.asarray((dep >> np.uint32(REPLIES if self.replies else 0)) & np.uint32(0xFFFF))

    def order(self, waits: Masks, columns: Columns) -> Orders | None:
        """int32[V, C], a topological order for each VL that is in use, by columns too; None if there is none."""
        channels = self.mixture.fabric.channels
        used = np.bitwise_or.reduce(waits, initial=0) | np.bitwise_or.reduce(columns.enter, axis=None, initial=0)
        graph = Dependencies(channels.first, channels.dst, self.slots.slot, waits)
        order, placed = graph.order(np.arange(max(1, int(used).bit_length()), dtype=np.uint8), threads=self.threads)
        return order if (placed == len(channels)).all() else None

    def admit(
        self, columns: Columns, waits: Masks, order: Orders, rounds: Bytes | None = None
    ) -> npt.NDArray[np.bool_]:
        """bool[K], the columns that close no cycle beside ``waits`` and those before them, in turn."""
        ways = columns.ways
        return admit_mixed(
            self.mixture.fabric, self.slots, ways, columns.enter, waits=waits, order=order, rounds=rounds
        )
