"""Summarise a ledger's results by engine, and compare them with an earlier ledger to find regressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.sweep.ledger import Record
from routing.sweep.results import OUTCOMES
from routing.sweep.tasks import Target, Task

Case = tuple[str, Target, str, int]
"""Attributes that identify a task, except its mode (method to compute tables after a fault): digest of the fabric,
engine with its options, text form of the fault case, and seed.
"""

TOLERANCE = 0.05
"""Relative decrease of the all-to-all rate above which a change counts as a regression."""


@dataclass(frozen=True)
class Line:
    """Summary of the results of one engine, on one fabric or on all fabrics.

    Attributes
    ----------
    fabric, target, mode
        Fabric, engine and mode (method to compute tables after a fault) of the results.  The fabric is "" if the line
        is for all fabrics.  If several fabrics have this name, the beginning of the digest (a hash of the fabric)
        follows the name.
    cases
        Number of cases (tasks).
    outcomes
        Number of cases for each outcome.
    vls_needed
        Largest number of VLs that any case needed.
    changed, broken
        Sum over all cases of the changed LFT entries, and of the old entries that became invalid.  None if
        unknown for all cases.
    a2a_least
        Smallest all-to-all rate of any case, as a share of a link's rate.
    loss_mean, loss_most
        Mean and largest relative loss of an end port's all-to-all rate, compared with the fault-free fabric, over all
        cases with a fault.  A gain counts as 0.  None if the loss is unknown.
    bisection_loss_mean, bisection_loss_most
        Mean and largest relative loss of the rate of random bisections, over all cases with a fault.
    over_fresh_mean, over_fresh_most
        Mean and largest value of the all-to-all loss minus the loss of tables from scratch, over all cases with a fault
        for which tables from scratch are known.  A negative difference counts as 0.  Tables from scratch are known if
        the re-route computed them, or if the ledger has the case in the mode "fresh".
    cut_off
        Largest number of CAs and routers that a fault disconnected.
    seconds
        Sum of the times of all cases, in seconds.
    """

    fabric: str
    target: str
    mode: str
    cases: int
    outcomes: Mapping[str, int]
    vls_needed: int | None
    changed: int | None
    broken: int | None
    a2a_least: float | None
    loss_mean: float | None
    loss_most: float | None
    bisection_loss_mean: float | None
    bisection_loss_most: float | None
    over_fresh_mean: float | None
    over_fresh_most: float | None
    cut_off: int | None
    seconds: float


def lines(records: Iterable[Record], *, by_fabric: bool = False) -> list[Line]:
    """Summarise results by engine (and by fabric if ``by_fabric``), in the order in which engines and fabrics occur.

    Fabrics with the same name are distinguished by the beginning of their digest (a hash of the fabric).
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    every = list(records)
    called: dict[str, set[str]] = {}
    for record in every:
        called.setdefault(record.task.fabric, set()).add(record.task.digest)
    for record in every:
        task = record.task
        name = task.fabric if len(called[task.fabric]) == 1 else f"{task.fabric} ({task.digest[:8]})"
        groups.setdefault((name if by_fabric else "", str(task.target), task.mode), []).append(record)
    fresh = {_case(record.task): record.result.kept for record in every if record.task.mode == "fresh"}
    return [_line(*key, group, fresh) for key, group in groups.items()]


def _case(task: Task) -> Case:
    """Return the attributes of a task except its mode (method to compute tables after a fault).

    By these attributes, the result of a re-route is compared with the result from scratch (mode "fresh") of the same
    case.
    """
    return task.digest, task.target, task.fault, task.seed


def _loss(kept: float) -> float:
    return max(0.0, 1.0 - kept)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _over_fresh(group: Iterable[Record], fresh: Mapping[Case, float | None]) -> list[float]:
    """Return, for each result in ``group``: the loss of all-to-all rate minus the loss with tables from scratch.

    A negative difference counts as 0.  ``fresh`` has, for each case, the rate with tables from scratch divided by the
    rate before the fault.  This value is used only if the result itself has no such value.  Results without faults are
    left out, and so are results for which one of the two losses is unknown.
    """
    found = []
    for record in group:
        kept, beside = record.result.kept, record.result.fresh_kept
        beside = fresh.get(_case(record.task)) if beside is None else beside
        if record.result.faults and kept is not None and beside is not None:
            found.append(max(0.0, _loss(kept) - _loss(beside)))
    return found


def _line(fabric: str, target: str, mode: str, group: list[Record], fresh: Mapping[Case, float | None]) -> Line:
    def known(name: str) -> list[float]:
        values = (getattr(record.result, name) for record in group)
        return [value for value in values if value is not None]

    def most(name: str) -> int | None:
        return int(max(known(name))) if known(name) else None

    def total(name: str) -> int | None:
        return int(sum(known(name))) if known(name) else None

    def losses(name: str) -> list[float]:
        values = (getattr(record.result, name) for record in group if record.result.faults)
        return [_loss(value) for value in values if value is not None]

    lost, bisection_lost, over = losses("kept"), losses("bisection_kept"), _over_fresh(group, fresh)
    counts = {outcome: sum(record.result.outcome == outcome for record in group) for outcome in OUTCOMES}
    return Line(
        fabric=fabric,
        target=target,
        mode=mode,
        cases=len(group),
        outcomes=counts,
        vls_needed=most("vls_needed"),
        changed=total("changed"),
        broken=total("broken"),
        a2a_least=min(known("a2a"), default=None),
        loss_mean=_mean(lost),
        loss_most=max(lost, default=None),
        bisection_loss_mean=_mean(bisection_lost),
        bisection_loss_most=max(bisection_lost, default=None),
        over_fresh_mean=_mean(over),
        over_fresh_most=max(over, default=None),
        cut_off=most("cut_off"),
        seconds=sum(record.result.seconds for record in group),
    )


@dataclass(frozen=True)
class Regression:
    """Regression of one task compared with an earlier ledger.

    ``what`` is the property that is worse (``outcome``, ``vls``, ``all_to_all`` or ``tables``), with its value before
    and after.  ``about`` describes the task.
    """

    task: str
    about: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """Result of comparing the results in two ledgers, an earlier ledger and a new ledger.

    Attributes
    ----------
    regressions
        All regressions that were found.
    same
        Number of tasks in both ledgers that have equal tables in both.
    better
        Number of tasks in both ledgers that are certified in the new ledger, but not in the earlier ledger.
    other_tables
        Number of tasks in both ledgers whose tables differ, but that are not a regression.
    only_before, only_now
        Number of tasks that only the earlier ledger has, and number of tasks that only the new ledger has.
    """

    regressions: tuple[Regression, ...]
    same: int
    better: int
    other_tables: int
    only_before: int
    only_now: int


def compare(before: Iterable[Record], now: Iterable[Record], *, tolerance: float = TOLERANCE) -> Comparison:
    """Compare the results in two ledgers, and find the regressions.

    A task is a regression if its tables are no longer certified, if it needs more VLs, or if its all-to-all rate is
    lower by more than ``tolerance`` (0.05: five percent).  It is also a regression if the tables differ although the
    version of ibnue is equal.
    """
    earlier = {record.task.id: record for record in before}
    worse: list[Regression] = []
    same = better = other = only_now = 0
    for record in now:
        old = earlier.pop(record.task.id, None)
        if old is None:
            only_now += 1
            continue
        found = list(_regressions(old, record, tolerance))
        worse += found
        moved = old.result.tables != record.result.tables
        same += not moved
        better += record.result.certified and not old.result.certified
        other += moved and not found
    return Comparison(tuple(worse), same, better, other, len(earlier), only_now)


def _regressions(old: Record, new: Record, tolerance: float) -> Iterable[Regression]:
    was, now = old.result, new.result

    def worse(what: str, before: object, after: object) -> Regression:
        return Regression(new.task.id, str(new.task), what, str(before), str(after))

    if was.certified and not now.certified:
        yield worse("outcome", was.outcome, f"{now.outcome}: {now.error}" if now.error else now.outcome)
        return
    if was.vls_needed is not None and now.vls_needed is not None and now.vls_needed > was.vls_needed:
        yield worse("vls", was.vls_needed, now.vls_needed)
    if was.a2a is not None and now.a2a is not None and now.a2a < was.a2a * (1.0 - tolerance):
        yield worse("all_to_all", f"{was.a2a:.3f}", f"{now.a2a:.3f}")
    both = was.tables is not None and now.tables is not None
    if both and was.tables != now.tables and old.version == new.version:
        yield worse("tables", was.tables, now.tables)
