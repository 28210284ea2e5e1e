"""Return to the baseline tables (of the fault-free fabric) in several steps, if a single change would not be safe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, assign_vls
from routing._kernels.differing import count_differing
from routing._kernels.repair import SearchLimits, rebalance
from routing.deadlock.schedule_search import find_schedule
from routing.fabric import Fabric
from routing.publish import Shortfall, admit
from routing.reroute.base_fabric import union_of_proven_dependencies
from routing.reroute.context import Request, RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.installed import installed
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import Utilisation, in_frame, peak_in
from routing.reroute.sl_assignment import counted_paths, longest_first, path_groups, vls_of_sls
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.steps import WORK, is_safe_change, released, verified
from routing.reroute.translate import translate_tables
from routing.reroute.vacate import NotVacated, TablesInUse, edge_usage, vacate
from routing.reroute.values import LEFT_BASELINE, Published, Rerouted, outside_baseline
from routing.tables import Routing

NEVER_SAFE = 4
"""Result of :func:`difficulty` for a change to which no safe rounds are found."""
NO_GOAL = np.iinfo(np.int64).max
"""Goal of a search for which the load of the channels does not matter."""
TRIALS, ENTRIES_FOR_TRIALS = 15, 8_000_000
"""Two limits for the number of sets of CDG edges off which paths are moved in a trial: TRIALS, and ENTRIES_FOR_TRIALS
divided by the number of table entries.  Two sets may be tried in tables of any size.
"""


def step_back(context: RerouteContext, baseline: Published, most: int) -> Candidate | Refusal:
    """Change at most ``most`` entries, so that the tables come closer to the baseline tables of the same fabric.

    Three steps are tried in this order:

    1. Restore single entries of the baseline that close no cycle with the dependencies in use.  SLs stay as they are.
    2. Restore SLs of the baseline.  No entry changes.
    3. Move paths off dependencies that contradict the topological order of the baseline.  This step is made only if the
       next step can then restore more entries than the moves make different from the baseline.  So the number of
       entries that differ from the baseline falls, and steps cannot undo each other without end.
    """
    now = released(context)
    if now is None:
        return Refusal("the dependencies in use have no order")
    for step in (_restored_entries, _restored_sls, _without_contradictions):
        found = step(context, baseline, now, most)
        if isinstance(found, Candidate):
            break
    return found


def _restored_entries(context: RerouteContext, baseline: Published, now: Progress, most: int) -> Candidate | Refusal:
    """Restore up to ``most`` entries of the baseline.  SLs stay as they are."""
    tables = _with_entries(_in_use(context, baseline, now), baseline.routing.lft, most)
    if tables is None:
        return Refusal("every further entry of the baseline closes a cycle")
    return _verified_step(context, now, tables, "entries of the baseline tables were restored")


def _restored_sls(context: RerouteContext, baseline: Published, now: Progress, most: int) -> Candidate | Refusal:
    """Restore SLs of the baseline, if only SLs differ, or if the next step can then restore entries."""
    tables = _with_sls(context, baseline, now)
    same = np.array_equal(now.tables.lft, baseline.routing.lft)
    if tables is None or not (same or _leads_on(context, baseline, replace(now, tables=tables), most)):
        return Refusal("restored SLs would not allow further entries of the baseline")
    return _verified_step(context, now, tables, "SLs of the baseline tables were restored")


def _in_use(context: RerouteContext, baseline: Published, now: Progress) -> TablesInUse:
    """Return the tables of ``now`` with their load.

    The goal of the load is the higher of two utilisations: the highest utilisation with the tables in force, and the
    highest utilisation with the baseline tables.
    """
    numbering, fabric = now.numbering, context.request.fabric
    rules = context.service_levels(numbering, now.certificate, now.tables)
    load = in_frame(numbering, fabric, flow_towards(fabric, now.tables, threads=context.request.options.threads))
    highest = max(context.request.before.highest_utilisation, baseline.highest_utilisation)
    return TablesInUse(numbering, rules, now.tables, now.dependencies, Utilisation(load, peak_in(numbering, highest)))


def _with_entries(in_use: TablesInUse, baseline: npt.NDArray[np.uint8], most: int) -> Routing | None:
    """Return the tables in use with up to ``most`` entries of the baseline LFTs (``baseline``, uint8[S, L]) restored.

    A restored entry closes no cycle with the dependencies in use and with those of other restored entries, so all
    orders of writes are safe.  At first, no entry may raise a channel above the goal of the load.  If no entry can be
    restored below the goal, the load does not matter.

    The result is None if no entry can be restored.
    """
    lft, dependencies = in_use.tables.lft, in_use.dependencies
    for goal in (in_use.now.goal, NO_GOAL):
        # A search whose goal is met makes no moves.  It only gives entries their value in ``before``.
        found = rebalance(
            in_use.frame.repair_fabric, in_use.rules, lft, before=baseline, masks=dependencies.masks,
            order=dependencies.order, load=in_use.now.load,
            limits=SearchLimits(goal, budget=0, work=max(WORK, lft.size), restored=most),
        )  # fmt: skip
        if count_differing(found.lft, lft):
            return replace(in_use.tables, lft=found.lft)
    return None


def _with_sls(context: RerouteContext, baseline: Published, now: Progress) -> Routing | None:
    """Return the tables of ``now`` with as many SLs of the baseline as possible, and with unchanged LFTs.

    A path gets its baseline SL if its dependencies on the VL of this SL close no cycle with the dependencies in use.
    The result is None if no SL can be restored.
    """
    fabric, tables, certificate = context.request.fabric, now.tables, now.certificate
    if certificate is None or baseline.routing.service_levels.by_source_lid:
        return None
    target = baseline.routing.service_levels.with_rows(fabric.switches)
    sl = np.array(tables.service_levels.with_rows(fabric.switches))
    differs, vl = counted_paths(fabric, certificate) & (sl != target), vls_of_sls(context.vl_bit)[target]
    masks, order, restored = now.dependencies.masks, now.dependencies.order, 0
    for number in range(len(order)):
        at, lid = longest_first(fabric, tables, differs & (vl == number))
        groups = path_groups(fabric, at, lid, vl[at, lid], replies=certificate.strength == "reversible")
        found, masks, order, _ = assign_vls(
            fabric.channels, fabric.lids.switch, tables.lft, groups, masks=masks, order=order,
            allowed_vls=np.arange(len(order)) == number, budget=WORK,
        )  # fmt: skip
        at, lid = at[found != NO_VL], lid[found != NO_VL]
        sl[at, lid] = target[at, lid]
        restored += len(at)
    return replace(tables, sl=sl, vls_needed=tables.vls) if restored else None


def _verified_step(context: RerouteContext, now: Progress, tables: Routing, reason: str) -> Candidate | Refusal:
    """Prove the tables of a step.  Return them with ``reason``, or return a refusal if the step is not safe."""
    statistics = replace(now.statistics, missing=0, restored=count_differing(tables.lft, now.tables.lft))
    found = verified(context, replace(now, tables=tables, statistics=statistics, leaves_baseline=True), None)
    return replace(found, found=replace(found.found, reason=reason)) if isinstance(found, Candidate) else found


def _without_contradictions(
    context: RerouteContext, baseline: Published, now: Progress, most: int
) -> Candidate | Refusal:
    """Move paths off dependencies that contradict the topological order of the baseline tables, such that the next
    step can restore entries of the baseline (see :func:`step_back`).

    At most ``most`` entries may change.
    """
    request = context.request
    allowed = union_of_proven_dependencies(request.fabric, [baseline], threads=request.options.threads)
    if allowed is None:
        return Refusal("the dependencies of the baseline have no order")
    numbering, against = now.numbering, _against(request.fabric, allowed.order)
    usage, contradicts = edge_usage(numbering, now.tables.lft), now.dependencies.masks & against
    edges = np.flatnonzero(contradicts)
    edges = edges[np.argsort(usage[edges], kind="stable")]
    start, differing = _in_use(context, baseline, now), count_differing(now.tables.lft, baseline.routing.lft)
    trials = max(2, min(TRIALS, ENTRIES_FOR_TRIALS // now.tables.lft.size))
    for chosen in islice(_sets(edges, usage, most), trials):
        vacated = np.zeros_like(contradicts)
        vacated[chosen] = contradicts[chosen]
        made = vacate(start, vacated=vacated, forbidden=against, most=most)
        if isinstance(made, NotVacated):
            continue
        if not _leads_on(context, baseline, replace(now, tables=made.tables), most, differing):
            continue
        reason = "paths moved, so that the next step can restore entries of the baseline tables"
        found = _verified_step(context, now, made.tables, reason)
        if isinstance(found, Candidate):
            return found
    return Refusal("no path can be moved off the dependencies that contradict the baseline")


def _leads_on(
    context: RerouteContext, baseline: Published, step: Progress, most: int, differing: int | None = None
) -> bool:
    """Return whether, after ``step``, the next step can restore entries of the baseline.

    If ``differing`` is given, fewer than ``differing`` entries must then differ from the baseline.
    """
    target, after = baseline.routing.lft, released(context, step)
    then = None if after is None else _with_entries(_in_use(context, baseline, after), target, most)
    return then is not None and (differing is None or count_differing(then.lft, target) < differing)


def _sets(edges: npt.NDArray[np.intp], usage: npt.NDArray[np.int64], most: int) -> Iterator[npt.NDArray[np.intp]]:
    """Yield sets of CDG edges to vacate, out of ``edges``, which are sorted by ``usage``.

    ``usage`` is the number of LFT entries that use each CDG edge.  Each of the first three sets has as many of the
    least used edges as possible: the sum of their usage is at most 1/2, 1/4 or 1/8 of ``most``.  A set without edges is
    left out.  Each further set has a single edge.
    """
    total = np.cumsum(usage[edges])
    for part in (2, 4, 8):
        if count := int(np.searchsorted(total, most // part, side="right")):
            yield edges[:count]
    yield from edges[usage[edges] <= most][:, np.newaxis]


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

    The new tables are ``routing``, or the tables of ``found`` if ``routing`` is None.  Replies count if the
    certificates of the previous tables and of ``found`` cover replies.
    """
    change = installed(request.before.routing, request.before.fabric, routing or found.routing, request.fabric)
    replies = request.before.proof.strength == found.proof.strength == "reversible"
    threads = request.options.threads
    rounds = find_schedule(
        change.fabric, change.old, change.new,
        lost=change.lost, rewired=change.rewired, replies=replies, few=0, threads=threads,
    )  # fmt: skip
    if rounds is None or rounds.drained:
        return NEVER_SAFE if rounds is None else 3
    return 2 if rounds.first_draining_round else int(len(rounds) > 1)
