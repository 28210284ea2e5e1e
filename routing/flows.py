"""Traffic patterns, and the resulting load of channels and rates of flows, for measures of quality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels import load as kernel
from routing.errors import TableError
from routing.fabric import Fabric
from routing.tables import Routing

Table = Routing | npt.NDArray[np.uint8]
"""A routing, or its LFT alone, since engines compare passes before a routing exists."""

Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Sources and destinations of flows, int64[P, F] each: positions in the order of end ports by switch and port."""

_FLOWS_AT_ONCE = 4_000_000
_PERMUTATION_STREAM, _SHIFT_STREAM = 0x70657266, 0x73686966


def reference_rate(fabric: Fabric) -> float:
    """Return the most common data rate in Gb/s of end ports' links (the lowest of several; 0 without end ports)."""
    rates, counts = np.unique(fabric.link_capacity[fabric.endport_link[attached(fabric)]], return_counts=True)
    return float(rates[counts.argmax()]) if rates.size else 0.0


def attached(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the rows of the end ports that count in traffic, ordered by switch and port.

    These are the end ports with a LID and a switch, except those of aggregation nodes.
    """
    rows = np.flatnonzero((fabric.endport_switch >= 0) & (fabric.endport_lid > 0) & ~fabric.aggregation)
    return rows[np.lexsort((fabric.endport_switch_port[rows], fabric.endport_switch[rows]))]


@dataclass(frozen=True, eq=False)
class Flows:
    """A fabric with an LFT, to evaluate traffic patterns on it.

    Attributes
    ----------
    fabric, routes
        The fabric, and its LFT in the form of the kernels.
    rates
        Capacities of channels and of end ports' links, as multiples of the reference rate.
    endports
        int64[N], rows of the end ports that send and receive.
    threads
        Number of threads, at least 1; never changes a result.
    """

    fabric: Fabric
    routes: kernel.Routes
    rates: kernel.Rates
    endports: npt.NDArray[np.int64]
    threads: int

    @classmethod
    def of(cls, fabric: Fabric, routing: Table, threads: int) -> Flows:
        """Return the flows of tables; raise :class:`~routing.errors.TableError` if they do not fit the fabric."""
        lft = routing.lft if isinstance(routing, Routing) else routing
        _check_lft(fabric, lft)
        unit = reference_rate(fabric) or 1.0
        rates = kernel.Rates(
            channel=fabric.channels.capacity / unit,
            endport=fabric.link_capacity[fabric.endport_link] / unit,
            endport_switch=fabric.endport_switch,
            lid_endport=fabric.lids.endport,
        )
        routes = kernel.routes_of(fabric, np.ascontiguousarray(lft))
        return cls(fabric, routes, rates, attached(fabric), max(threads, 1))

    def all_to_all(self, *, hops: bool = True) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Compute the load of all-to-all traffic.

        Returns
        -------
        loads : float64[C]
            Flows on each channel.
        hop_count : float64[S]
            Number of ordered pairs by the number of channels on their path.
        """
        fabric = self.fabric
        weight = np.zeros(len(fabric.lids), np.int64)
        owned = (fabric.lids.endport >= 0) & (fabric.lids.switch >= 0)
        lids = np.flatnonzero(owned & np.append(~fabric.aggregation, False)[fabric.lids.endport])
        weight[lids] = kernel.WHOLE >> fabric.endport_lmc[fabric.lids.endport[lids]].astype(np.int64)
        sources = np.bincount(fabric.endport_switch[self.endports], minlength=fabric.switches).astype(np.int64)
        load, hop_count = kernel.all_to_all(self.routes, weight, sources, self.threads, hops=hops)
        return load / kernel.WHOLE, hop_count / kernel.WHOLE

    def shares(
        self, patterns: int, pattern: Callable[[int, int], Places]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Compute the mean and the least share of each pattern.

        Parameters
        ----------
        patterns
            Number of patterns P.
        pattern
            Function that returns the patterns from ``first`` to ``last``.

        Returns
        -------
        mean, least : float64[P]
            Shares of the reference rate; empty with fewer than two end ports.
        """
        mean, least = np.zeros(patterns), np.zeros(patterns)
        if len(self.endports) < 2:
            return mean[:0], least[:0]
        step = max(1, _FLOWS_AT_ONCE // len(self.endports))
        for first in range(0, patterns, step):
            last = min(first + step, patterns)
            source, target = (self.endports[positions] for positions in pattern(first, last))
            # A source uses the destination's LID with offset (source row modulo number of LIDs): even, and no random
            # draw.
            lmc = self.fabric.endport_lmc[target].astype(np.int64)
            lid = self.fabric.endport_lid[target] + (source & ((1 << lmc) - 1))
            mean[first:last], least[first:last] = kernel.flow_shares(
                self.routes, self.rates, source.astype(np.int32), lid.astype(np.int32), self.threads
            )
        return mean, least

    def bisections(self, seed: int, first: int, last: int) -> Places:
        """Return random bisections with the numbers from first to last: one half sends to the other."""
        half = len(self.endports) // 2
        order = kernel.draw_orders(seed, first, last, len(self.endports)).astype(np.int64)
        return order[:, :half], order[:, half : 2 * half]

    def permutations(self, seed: int, first: int, last: int) -> Places:
        """Return random permutations with the numbers from first to last: each sends to one and receives from one."""
        order = kernel.draw_orders(seed ^ _PERMUTATION_STREAM, first, last, len(self.endports)).astype(np.int64)
        return np.broadcast_to(np.arange(len(self.endports)), order.shape), order

    def shift_steps(self, seed: int, shifts: int | None) -> npt.NDArray[np.int64]:
        """Return `shifts` random distances, or all of them if None, in ascending order."""
        others = max(len(self.endports) - 1, 0)
        order = kernel.draw_orders(seed ^ _SHIFT_STREAM, 0, 1, others)[0].astype(np.int64) + 1
        return np.sort(order[:shifts])

    def shifts(self, steps: npt.NDArray[np.int64]) -> Places:
        """Return cyclic shifts: each end port sends to the one `step` positions after it."""
        positions = np.arange(len(self.endports))
        target = (positions[None, :] + steps[:, None]) % max(len(positions), 1)
        return np.broadcast_to(positions, target.shape), target


def _check_lft(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> None:
    """Raise :class:`~routing.errors.TableError` unless the LFT is uint8[S, L] of this fabric."""
    wanted = (fabric.switches, len(fabric.lids))
    if lft.shape != wanted or lft.dtype != np.uint8:
        raise TableError(f"LFT is {lft.dtype}{lft.shape}, the fabric wants uint8{wanted}")
