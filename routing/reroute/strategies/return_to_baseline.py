"""Return to the baseline tables (of the fault-free fabric) in several steps, if a single change would not be safe."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.differing import count_differing
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.fabric import Fabric
from routing.publish import Shortfall, VerifiedTables, admit, as_before
from routing.reroute.base_fabric import union_of_proven_dependencies
from routing.reroute.context import Request, RerouteContext
from routing.reroute.installed import installed
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import Utilisation, in_frame, kept_share
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.strategies.balance import goal_of
from routing.reroute.strategies.steps import is_safe_change, released, verified
from routing.reroute.translate import translate_tables
from routing.reroute.vacate import NotVacated, TablesInUse, edge_usage, vacate
from routing.reroute.values import LEFT_BASELINE, Published, Rerouted, outside_baseline
from routing.tables import Routing

NEVER_SAFE = 4
"""Result of :func:`difficulty` for a change to which no safe rounds are found."""
TRIALS, ENTRIES_FOR_TRIALS = 12, 8_000_000
"""Two limits for the number of sets of columns that are tried in a step: TRIALS, and ENTRIES_FOR_TRIALS divided by the
number of table entries.  Two sets of columns may be tried in tables of any size.

If paths are moved off sets of CDG edges instead (:func:`_sets`), the first three sets may have several edges.  TRIALS
limits only the number of further sets, which have a single edge each.
"""


def step_back(context: RerouteContext, baseline: Published, most: int) -> Candidate | Refusal:
    """Change at most ``most`` entries, so that the tables come closer to the baseline tables of the same fabric.

    LFT columns of the baseline are restored if that is safe.  If no column can be restored, paths move off dependencies
    that contradict the topological order of the baseline.  Once no such dependency is in use, all columns can be
    restored.
    """
    before, threads = context.request.before, context.request.options.threads
    made = columns_of_baseline(before, baseline, most, threads=threads)
    if made is None:
        return _without_contradictions(context, baseline, most)
    changed = count_differing(made.routing.lft, before.routing.lft)
    reason = "columns of the baseline tables were restored"
    found = Rerouted(made, 0, changed, "rebalanced", reason, RerouteStatistics(restored=changed))
    return Candidate(found, 0, changed)


def _without_contradictions(context: RerouteContext, baseline: Published, most: int) -> Candidate | Refusal:
    """Move paths off dependencies that contradict the topological order of the baseline tables.

    Return the tables that result, or the reason why no path could be moved.  At most ``most`` entries may change.
    """
    request, now = context.request, released(context)
    allowed = union_of_proven_dependencies(request.fabric, [baseline], threads=request.options.threads)
    if now is None or allowed is None:
        return Refusal("the dependencies in use have no order")
    numbering, against = now.numbering, _against(request.fabric, allowed.order)
    usage, contradicts = edge_usage(numbering, now.tables.lft), now.dependencies.masks & against
    edges = np.flatnonzero(contradicts)
    edges = edges[np.argsort(usage[edges], kind="stable")]
    load = in_frame(numbering, request.fabric, request.before.load)
    rules = context.service_levels(numbering, now.certificate, now.tables)
    aim = Utilisation(load, goal_of(context, numbering))
    start = TablesInUse(numbering, rules, now.tables, now.dependencies, aim)
    for chosen in _sets(edges, usage, most):
        vacated = np.zeros_like(contradicts)
        vacated[chosen] = contradicts[chosen]
        made = vacate(start, vacated=vacated, forbidden=against, most=most)
        if isinstance(made, NotVacated):
            continue
        kept = kept_share(request.before, numbering.base.channels, made.load)
        statistics = replace(now.statistics, missing=0, vacated=len(chosen))
        found = verified(context, replace(now, tables=made.tables, statistics=statistics, leaves_baseline=True), kept)
        if isinstance(found, Candidate):
            return found
    return Refusal("no path can be moved off the dependencies that contradict the baseline")


def _sets(edges: npt.NDArray[np.intp], usage: npt.NDArray[np.int64], most: int) -> Iterator[npt.NDArray[np.intp]]:
    """Yield sets of CDG edges to vacate, out of ``edges``, which are sorted by ``usage``.

    ``usage`` is the number of LFT entries that use each CDG edge.  Each of the first three sets has as many of the
    least used edges as possible: the sum of their usage is at most 1/2, 1/4 or 1/8 of ``most``.  A set without edges is
    left out.  Each further set has a single edge; there are at most :data:`TRIALS` of these sets.
    """
    total = np.cumsum(usage[edges])
    for part in (2, 4, 8):
        if count := int(np.searchsorted(total, most // part, side="right")):
            yield edges[:count]
    yield from edges[usage[edges] <= most][:TRIALS, np.newaxis]


def _against(fabric: Fabric, order: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16]:
    """Return uint16[edges], the VLs on which each CDG edge contradicts a topological order (int32[V, C]), as bits."""
    edges = fabric.channels.edges
    before, after = edges.channels()
    against = np.zeros(edges.count, np.uint16)
    for vl, position in enumerate(order):
        against[edges.numbers()] |= ((position[before] >= position[after]) << vl).astype(np.uint16)
    return against


def safe_to_write(request: Request, found: Rerouted, repaired: Rerouted, *, may_leave: bool = False) -> Rerouted | None:
    """Return the tables ``found`` if they may replace the previous tables, else None.

    There are two conditions:

    1. Safe rounds lead from the previous tables to ``found``.
    2. Safe rounds lead from ``found`` to the baseline tables, which are written again when the lost links work again.

    If a condition is not met, and ``may_leave`` is true, ``found`` gets the mark :data:`.values.LEFT_BASELINE`.  The
    conditions are weaker if ``found`` or the previous tables have this mark.  Condition 2 is then waived, because
    marked tables return to the baseline in several steps.  Condition 1 is waived if the tables of a repair alone
    (``repaired``) do not meet it either.
    """
    baseline, threads = request.baseline, request.options.threads
    left = request.before.left_baseline or bool(found.routing.provenance.options.get(LEFT_BASELINE))
    returns = True
    if baseline is not None and not left:
        now = translate_tables(found.routing, request.fabric, baseline.fabric).routing
        returns = is_safe_change(baseline.fabric, now, found.proof, baseline, threads=threads)
    is_safe = (returns or may_leave) and has_safe_rounds(request, found)
    if may_leave and not (returns and is_safe):
        tables = admit(request.fabric, outside_baseline(found.routing), found.proof, found.tables.demand)
        assert not isinstance(tables, Shortfall)
        found, left = replace(found, tables=tables), True
    return found if is_safe or (left and not has_safe_rounds(request, repaired)) else None


def has_safe_rounds(request: Request, found: Rerouted, routing: Routing | None = None) -> bool:
    """Return whether safe rounds lead from the previous tables to new tables.

    The new tables are ``routing``, or the tables of ``found`` if ``routing`` is None.
    """
    return difficulty(request, found, routing) < NEVER_SAFE


def difficulty(request: Request, found: Rerouted, routing: Routing | None = None) -> int:
    """Return a number that states how hard it is to replace the previous tables without a credit loop.

    0: any order of writes is safe.  1: several rounds are necessary.  2: packets also have to leave the fabric between
    rounds.  3: some old entries are removed in one round, and their new entries are written in a later round.
    :data:`NEVER_SAFE`: no safe rounds are found.

    The new tables are ``routing``, or the tables of ``found`` if ``routing`` is None.  Replies count if the certificate
    of ``found`` covers replies.
    """
    change = installed(request.before.routing, request.before.fabric, routing or found.routing, request.fabric)
    replies, threads = found.proof.strength == "reversible", request.options.threads
    rounds = find_schedule(
        change.fabric, change.old, change.new,
        lost=change.lost, rewired=change.rewired, replies=replies, few=0, threads=threads,
    )  # fmt: skip
    if rounds is None or rounds.drained:
        return NEVER_SAFE if rounds is None else 3
    return 2 if rounds.first_draining_round else int(len(rounds) > 1)


def columns_of_baseline(before: Published, baseline: Published, most: int, *, threads: int) -> VerifiedTables | None:
    """Return the tables in force with LFT columns of the baseline restored, by a safe change of at most ``most``
    entries.  If each column differs in more than ``most`` entries, a single column is restored.

    Columns that differ in the fewest entries are tried first.  If a set of columns cannot be changed safely, its two
    halves are tried separately.  The number of tried sets is limited.

    Returns
    -------
    VerifiedTables or None
        None if no column can be changed safely, if the tables in force have no certificate, or if the SL tables of
        ``before`` and ``baseline`` have different shapes.
    """
    now, target, certificate = before.routing, baseline.routing, before.proof.certificate
    if certificate is None or target.sl.ndim > now.sl.ndim or len(target.sl) not in (len(now.sl), now.sl.shape[-1]):
        return None
    differences = np.count_nonzero(now.lft != target.lft, axis=0)
    sls = now.sl != target.sl
    lids = np.flatnonzero((differences > 0) | (sls if sls.ndim == 1 else sls.any(axis=0)))
    waiting = deque([lids[np.argsort(differences[lids], kind="stable")]])
    trials = min(TRIALS, max(2, ENTRIES_FOR_TRIALS // now.lft.size))
    taken: npt.NDArray[np.intp] = np.zeros(0, np.intp)
    found: VerifiedTables | None = None
    while waiting and trials:
        group = waiting.popleft()
        left = most - int(differences[taken].sum())
        fitting = int(np.searchsorted(np.cumsum(differences[group]), left, side="right"))
        if not fitting and len(taken):
            continue
        group, rest = np.split(group, [max(1, fitting)])
        trials -= 1
        mixed = _with_columns(before, baseline, np.concatenate([taken, group]))
        proof = prove(before.fabric, mixed, threads=threads)
        made = admit(before.fabric, mixed, proof, as_before(certificate))
        after = Published(before.fabric, mixed, proof)
        if not isinstance(made, Shortfall) and is_safe_change(before.fabric, now, before.proof, after, threads=threads):
            taken, found = np.concatenate([taken, group]), made
        elif len(group) > 1:
            waiting.extendleft(np.array_split(group, 2)[::-1])
        if len(rest):
            waiting.append(rest)
    return found


def _with_columns(before: Published, baseline: Published, lids: npt.NDArray[np.intp]) -> Routing:
    """Return the tables in force, in which the LFT columns and SLs of ``lids`` are those of the baseline."""
    now, target = before.routing, baseline.routing
    lft, sl = now.lft.copy(), now.sl.copy()
    lft[:, lids], sl[..., lids] = target.lft[:, lids], target.sl[..., lids]
    return outside_baseline(replace(now, lft=lft, sl=sl))
