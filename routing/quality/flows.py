"""Compute channel loads and flow rates for traffic patterns.  Quality figures follow from these loads and rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels import load as kernel
from routing.endports import attached, reference_rate
from routing.errors import TableError
from routing.fabric import Fabric
from routing.tables import Routing

Table = Routing | npt.NDArray[np.uint8]
"""A routing or just its LFT (uint8[S, L]).  Engines evaluate an LFT before the other tables exist."""

Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Two arrays int64[patterns, F]: the sources and the destinations of the F flows of each traffic pattern.

The values are indices into :attr:`Flows.endports`, which is ordered by switch and port.
"""

_FLOWS_AT_ONCE = 4_000_000
_PERMUTATION_STREAM, _SHIFT_STREAM = 0x70657266, 0x73686966


@dataclass(frozen=True, eq=False)
class Flows:
    """Paths and link rates of a fabric with an LFT.  The methods compute loads and rates of traffic patterns.

    Attributes
    ----------
    fabric, routes
        The fabric, and its LFT in the form that the C kernels take.
    rates
        Capacities of channels and of end ports' links, as multiples of :func:`~routing.endports.reference_rate`.
    endports
        int64[N], rows of the end ports that send and receive.
    threads
        Number of threads, at least 1.  Results do not depend on it.
    """

    fabric: Fabric
    routes: kernel.Routes
    rates: kernel.Rates
    endports: npt.NDArray[np.int64]
    threads: int

    @classmethod
    def of(cls, fabric: Fabric, routing: Table, threads: int) -> Flows:
        """Prepare the evaluation of tables (a routing, or an LFT alone) on a fabric.

        Raises
        ------
        TableError
            The LFT does not fit the fabric.
        """
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

    def among(self, rows: npt.NDArray[np.int64]) -> Flows:
        """Return the evaluation of these tables for traffic among the given end ports only (int64[n], rows of the
        fabric's end ports).
        """
        return replace(self, endports=rows)

    def all_to_all(self, *, hops: bool = True) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Compute the load of each channel if every end port sends to every other end port.

        Returns
        -------
        loads : float64[C]
            Number of flows over each channel.  A flow to one of 2^LMC LIDs counts as 2^-LMC.
        hop_count : float64[S]
            Element h is the number of ordered pairs of end ports whose path has h channels.  Every path has fewer than
            S channels.
        """
        fabric = self.fabric
        weight = np.zeros(len(fabric.lids), np.int64)
        owned = (fabric.lids.endport >= 0) & (fabric.lids.switch >= 0)
        counted = np.zeros(fabric.endports + 1, bool)
        counted[self.endports] = True
        lids = np.flatnonzero(owned & counted[fabric.lids.endport])
        weight[lids] = kernel.WHOLE >> fabric.endport_lmc[fabric.lids.endport[lids]].astype(np.int64)
        sources = np.bincount(fabric.endport_switch[self.endports], minlength=fabric.switches).astype(np.int64)
        load, hop_count = kernel.all_to_all(self.routes, weight, sources, self.threads, hops=hops)
        return load / kernel.WHOLE, hop_count / kernel.WHOLE

    def shares(
        self, patterns: int, pattern: Callable[[int, int], Places]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Compute the mean and the lowest rate of the flows in each of several traffic patterns.

        Parameters
        ----------
        patterns
            Number of patterns.
        pattern
            Function with the arguments ``first`` and ``last``.  It returns the patterns ``first`` to ``last - 1``.

        Returns
        -------
        mean, least : float64[patterns]
            Mean and lowest rate of the flows of each pattern, as a share of the reference rate.  Empty with fewer than
            two end ports.
        """
        mean, least = np.zeros(patterns), np.zeros(patterns)
        if len(self.endports) < 2:
            return mean[:0], least[:0]
        step = max(1, _FLOWS_AT_ONCE // len(self.endports))
        for first in range(0, patterns, step):
            last = min(first + step, patterns)
            source, target = (self.endports[positions] for positions in pattern(first, last))
            # A destination has 2^LMC LIDs.  The row of the sender, modulo 2^LMC, selects one of these LIDs.  This
            # spreads the flows evenly over the LIDs without random numbers.
            lmc = self.fabric.endport_lmc[target].astype(np.int64)
            lid = self.fabric.endport_lid[target] + (source & ((1 << lmc) - 1))
            mean[first:last], least[first:last] = kernel.flow_shares(
                self.routes, self.rates, source.astype(np.int32), lid.astype(np.int32), self.threads
            )
        return mean, least

    def bisections(self, seed: int, first: int, last: int) -> Places:
        """Return the random bisections ``first`` to ``last - 1`` of the sequence that the seed gives.

        In each bisection, a random half of the end ports sends to the other half.
        """
        half = len(self.endports) // 2
        order = kernel.draw_orders(seed, first, last, len(self.endports)).astype(np.int64)
        return order[:, :half], order[:, half : 2 * half]

    def permutations(self, seed: int, first: int, last: int) -> Places:
        """Return the random permutations ``first`` to ``last - 1`` of the sequence that the seed gives.

        In a permutation each end port sends to one end port, and receives from one end port.
        """
        order = kernel.draw_orders(seed ^ _PERMUTATION_STREAM, first, last, len(self.endports)).astype(np.int64)
        return np.broadcast_to(np.arange(len(self.endports)), order.shape), order

    def shift_steps(self, seed: int, shifts: int | None) -> npt.NDArray[np.int64]:
        """Return ``shifts`` different random steps for cyclic shifts, int64, in ascending order; None: all steps.

        In a cyclic shift by the step n, each end port sends to the end port that is n positions later in the list of
        end ports (:meth:`shifts`).
        """
        others = max(len(self.endports) - 1, 0)
        order = kernel.draw_orders(seed ^ _SHIFT_STREAM, 0, 1, others)[0].astype(np.int64) + 1
        return np.sort(order[:shifts])

    def shifts(self, steps: npt.NDArray[np.int64]) -> Places:
        """Return one cyclic shift for each step: every end port sends to the end port that many positions later.

        After the last end port, the positions continue with the first one.
        """
        positions = np.arange(len(self.endports))
        target = (positions[None, :] + steps[:, None]) % max(len(positions), 1)
        return np.broadcast_to(positions, target.shape), target


def _check_lft(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> None:
    """Raise :class:`~routing.errors.TableError` unless the LFT is uint8[S, L], with S and L of this fabric."""
    wanted = (fabric.switches, len(fabric.lids))
    if lft.shape != wanted or lft.dtype != np.uint8:
        raise TableError(f"LFT is {lft.dtype}{lft.shape}, but the fabric needs uint8{wanted}")
