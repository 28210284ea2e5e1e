"""Share of the capacity of earlier tables that new tables keep, for all-to-all traffic and for random bisections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routing.fabric import Fabric
from routing.reroute.budget import LARGEST_SMALL_TABLE
from routing.reroute.flow import bisection_rate, flow_towards
from routing.reroute.rebalance import kept_share
from routing.reroute.values import Published, Rerouted
from routing.tables import Routing

FreshRoute = Callable[[Fabric], Routing | None]
"""Function that computes the tables of a fabric from scratch.  The function returns None if the computation would take
too long, or if the engine fails.
"""


@dataclass(frozen=True)
class CapacityKept:
    """Rates of an end port with the new tables, divided by its rates with the earlier tables.

    The all-to-all rate leaves out disconnected pairs of end ports.  So the rate of the connected end ports can grow
    after a fault, because less traffic shares the channels.  In a bisection, a flow without a path has the rate 0.

    Attributes
    ----------
    all_to_all, bisection
        The new rate divided by the earlier rate, for all-to-all traffic and for random bisections.  None if unknown, or
        if no channel carries traffic.
    fresh_all_to_all, fresh_bisection
        The two values for tables that are computed from scratch.  None if such tables were not computed.
    """

    all_to_all: float | None = None
    bisection: float | None = None
    fresh_all_to_all: float | None = None
    fresh_bisection: float | None = None

    def shares(self) -> Iterator[tuple[str, str, str]]:
        """Yield three texts for each rate (all-to-all, bisection) of which the kept share is known.

        The first text is the name of the rate.  The second text is the share of the earlier rate that the new tables
        keep.  The third text is a remark with the share that tables from scratch keep ("" if unknown).
        """
        for name, kept, fresh in (
            ("all-to-all", self.all_to_all, self.fresh_all_to_all),
            ("bisection", self.bisection, self.fresh_bisection),
        ):
            if kept is not None:
                beside = "" if fresh is None else f" ({100 * fresh:.1f} % with tables from scratch)"
                yield name, f"{100 * kept:.1f} %", beside

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each rate of which the kept share is known, and a text with this share.

        For example, the two texts are "bisection" and "97.1 % of the rate before".
        """
        for name, share, beside in self.shares():
            yield name, f"{share} of the rate before{beside}"

    def describe(self) -> str:
        """Return one line with the shares of the earlier all-to-all rate and bisection rate that the new tables keep.

        An unknown share is left out.  The text is empty if both shares are unknown.
        """
        return ", ".join(f"{name} {text}" for name, text in self.rows())

    def as_dict(self) -> dict[str, float | None]:
        """Return the kept shares of the all-to-all rate and of the bisection rate for JSON."""
        return {
            "all_to_all_kept": self.all_to_all,
            "all_to_all_kept_from_scratch": self.fresh_all_to_all,
            "bisection_kept": self.bisection,
            "bisection_kept_from_scratch": self.fresh_bisection,
        }


def capacity_kept(before: Published, now: Published, fresh: Routing | None = None) -> CapacityKept:
    """Return the shares of the earlier all-to-all rate and bisection rate that the tables ``now`` keep.

    If the tables from scratch (``fresh``) are given, the result has the shares that these tables would keep, too.

    Cost: O(S L) for each of the tables, and 32 bisections.
    """
    fabric = now.fabric
    return CapacityKept(
        kept_share(before, fabric.channels, now.load),
        _bisection_kept(before, now.bisection_rate),
        *_kept_from_scratch(before, fabric, fresh),
    )


def kept_by_reroute(before: Published, found: Rerouted) -> CapacityKept:
    """Return the shares of the earlier all-to-all rate and bisection rate that a re-route keeps.

    The shares of tables from scratch are included only if the re-route has computed such tables.  The bisections are
    measured only if the table is small (:data:`routing.reroute.budget.LARGEST_SMALL_TABLE`), because the measurement
    delays the publication.
    """
    fabric = found.tables.fabric
    if found.routing.lft.size > LARGEST_SMALL_TABLE:
        return CapacityKept(found.kept, None, found.fresh_kept)
    bisection = _bisection_kept(before, bisection_rate(fabric, found.routing))
    _, fresh_bisection = _kept_from_scratch(before, fabric, found.fresh)
    return CapacityKept(found.kept, bisection, found.fresh_kept, fresh_bisection)


def _kept_from_scratch(before: Published, fabric: Fabric, fresh: Routing | None) -> tuple[float | None, float | None]:
    if fresh is None:
        return None, None
    all_to_all = kept_share(before, fabric.channels, flow_towards(fabric, fresh, threads=1))
    return all_to_all, _bisection_kept(before, bisection_rate(fabric, fresh))


def _bisection_kept(before: Published, now: float) -> float | None:
    kept = now / before.bisection_rate if before.bisection_rate else math.nan
    return kept if math.isfinite(kept) else None
