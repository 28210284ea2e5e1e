"""Functions that several strategies share: search for moves, tables of the next step, and proof of a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import Rebalanced
from routing.cdg.trace import trace_acyclic_cdg
from routing.deadlock.proof import Proof
from routing.deadlock.schedule_search import find_schedule
from routing.engines.roots import roots_left
from routing.errors import OptionError, RoutingError
from routing.fabric import Fabric
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import is_same
from routing.reroute.context import Request, RerouteContext
from routing.reroute.cut_bounds import cut_bound
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import LEAST_GAIN, Utilisation, in_frame, kept_share, move_entries
from routing.reroute.strategies.balance import goal_of
from routing.reroute.strategies.columns import Progress
from routing.reroute.values import Published, Rerouted
from routing.reroute.verify import verify
from routing.tables import Routing

WORK = 20_000_000
"""Work limit, in hops, of a search that ignores reserved dependencies: its moves must close no cycle with the
dependencies that the tables use, but may close cycles with other dependencies.
"""
OVERSHOOT = 10
"""Percentage by which some searches, such as the search for shorter paths, may raise other channels above the channel
that a move relieves.

After many faults, some paths are longer than necessary, and nearly all channels have a high utilisation.  Then a
shorter path fits only if some of its channels exceed the highest utilisation at first.
"""
NOTHING = Refusal("nothing is gained")


def released(context: RerouteContext, progress: Progress | None = None) -> Progress | None:
    """Return the state ``progress`` with only those dependencies that its tables use; None if these dependencies have a
    cycle.

    Packets of earlier tables have left the fabric, so that their dependencies do not count any more.
    """
    fabric, certificate = context.request.fabric, context.certificate
    progress = Progress.of(context) if progress is None else progress
    assert certificate is not None
    dependencies = trace_acyclic_cdg(
        fabric, progress.tables, certificate, context.vl_bit, threads=context.request.options.threads
    )
    if dependencies is None:
        return None
    baseline = context.request.baseline
    return replace(
        progress,
        numbering=BaseNumbering.of(fabric, [fabric]),
        dependencies=dependencies,
        is_traced=True,
        leaves_baseline=baseline is not None and not is_same(baseline.fabric, fabric),
    )


def goal_in_force(context: RerouteContext, progress: Progress) -> int:
    """Return the goal of a search: if the highest utilisation falls to the goal, the search ends.

    The goal is the result of :func:`routing.reroute.cut_bounds.cut_bound` in three cases: the tables in force are the
    baseline tables, no baseline exists, or the dependencies of the baseline tables are not reserved.  In all other
    cases, the goal is the result of :func:`.balance.goal_of`.
    """
    baseline = context.request.baseline
    own = baseline is None or baseline.routing is context.request.before.routing
    if own or progress.is_traced:
        return cut_bound(progress.numbering.repair_fabric)
    return goal_of(context, progress.numbering)


def load_in_force(context: RerouteContext, progress: Progress) -> npt.NDArray[np.int64]:
    """Return int64[C], the flow on each channel with the tables in force, in the channel numbers of ``progress``."""
    return in_frame(progress.numbering, context.request.fabric, context.request.before.load)


def searched(
    context: RerouteContext,
    progress: Progress,
    load: npt.NDArray[np.int64],
    budget: int,
    *,
    work: int = WORK,
    overshoot: int = 0,
) -> tuple[Routing, Rebalanced]:
    """Move at most ``budget`` entries to paths that close no cycle with the dependencies of ``progress``.

    ``load`` (int64[C]) is the load of the tables of ``progress``.  ``work`` and ``overshoot`` are the arguments of
    :func:`routing.reroute.rebalance.move_entries`.
    """
    return move_entries(
        progress.numbering, context.service_levels(progress.numbering, progress.certificate, progress.tables),
        progress.tables, progress.tables.lft, dependencies=progress.dependencies, budget=budget, overshoot=overshoot,
        now=Utilisation(load, goal_in_force(context, progress)), work=max(work, progress.tables.lft.size),
    )  # fmt: skip


def verified(context: RerouteContext, progress: Progress, kept: float | None, *, few: int = 0) -> Candidate | Refusal:
    """Return the tables of a step with their proof.  Return a refusal if no safe rounds lead to these tables, or if
    their certificate is weaker than the certificate of the tables in force.

    ``kept`` is the all-to-all rate of the step's tables divided by the all-to-all rate of the tables in force.  ``few``
    is an argument of :func:`is_safe_change`.
    """
    found = verify(context, progress, "rebalanced", kept)
    if isinstance(found, Refusal) or progress.certificate is None:
        return found
    before, after, request = context.request.before, found.found, context.request
    threads = request.options.threads
    safe = is_safe_change(request.fabric, before.routing, before.proof, after, few=few, threads=threads)
    return found if safe else Refusal("no safe rounds were found for the moves")


def is_safe_change(
    fabric: Fabric, old: Routing, was: Proof, new: Published | Rerouted, *, threads: int, few: int = 0
) -> bool:
    """Return whether rounds exist in which new tables can replace old tables without a credit loop.

    ``was`` is the proof of the old tables.  This proof may have been made for another fabric.  For a while, the rounds
    may remove up to 1/64 of all entries, or up to ``few`` entries if this is more.  Switches drop packets at removed
    entries, so ``few`` is 0 by default.  Replies count if both proofs cover them.
    """
    one, other = was.cdg_on(fabric), new.proof.cdg_on(fabric)
    replies = was.strength == new.proof.strength == "reversible"
    known = None if one is None or other is None else one | other
    return find_schedule(fabric, old, new.routing, known=known, replies=replies, few=few, threads=threads) is not None


def next_tables(
    context: RerouteContext, progress: Progress, load: npt.NDArray[np.int64], most: int, overshoot: int = 0
) -> Routing | None:
    """Return the tables of the step that follows ``progress``; None if that step would not improve the tables in force.

    The tables of ``progress`` are the result of the present step, and are not yet in force.  Searches for the next step
    begin with these tables.

    - The first search may move any number of entries.  Its all-to-all rate must exceed the rate of the tables in force
      by the fraction :data:`LEAST_GAIN`.  Otherwise the result is None.
    - If the first search moves more than ``most`` entries, a second search with this limit follows, and replaces it.

    The tables of the last search are returned if their highest utilisation is lower than with the tables in force, or
    equal with a more even load.  Because of this comparison, two steps cannot undo each other without end.
    """
    after = released(context, progress)
    if after is None:
        return None
    tables, found = searched(context, after, load, progress.tables.lft.size, overshoot=overshoot)
    kept = kept_share(context.request.before, progress.numbering.base.channels, found.load)
    if kept is None or kept < 1 + LEAST_GAIN:
        return None
    if found.spent > most:
        tables, found = searched(context, after, load, most, overshoot=overshoot)
    before = _unevenness(context, progress, load_in_force(context, progress))
    return tables if _unevenness(context, progress, found.load) < before else None


def _unevenness(context: RerouteContext, progress: Progress, load: npt.NDArray[np.int64]) -> tuple[int, float]:
    """Return two measures of uneven load, in order of importance: the highest utilisation, and the sum of squares of
    the utilisation above the goal.  Lower values are better.
    """
    utilisation = load * progress.numbering.repair_fabric.inverse_capacity
    over = np.maximum(utilisation - goal_in_force(context, progress), 0).astype(np.float64)
    return int(utilisation.max(initial=0)), float((over**2).sum())


def tables_from_scratch(request: Request) -> Routing | None:
    """Return tables from scratch, or None if the engine fails."""
    earlier = [there.fabric for there in (request.before, request.baseline) if there is not None]
    try:
        return request.engine.route(request.fabric, roots_left(request.fabric, request.options, earlier))
    except (OptionError, RoutingError):
        return None
