"""Summary of a ledger by engine, and regressions since an earlier ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.sweep.ledger import Record
from routing.sweep.results import OUTCOMES

TOLERANCE = 0.05
"""Relative decrease of the all-to-all share from which a change is a regression."""


@dataclass(frozen=True)
class Line:
    """Summary of one engine's results on one fabric, or on all fabrics.

    Attributes
    ----------
    fabric, target, mode
        Common fabric, engine and mode.  The fabric is "" for all fabrics; a name that several fabrics have is followed
        by the beginning of the digest.
    cases
        Number of cases.
    outcomes
        Number of cases by outcome.
    vls_needed
        Largest number of VLs that a case needed.
    changed, broken
        Total number of entries that changed, and of those that were no longer valid; None if unknown for all cases.
    a2a_least
        Least all-to-all share.
    loss_mean, loss_most
        Mean and largest relative loss of the all-to-all rate of an end port in cases with a fault, compared with the
        intact fabric.  A gain counts as 0.  None if unknown.
    cut_off
        Largest number of CAs and routers that a fault disconnected.
    seconds
        Total time of all cases.
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
    cut_off: int | None
    seconds: float


def lines(records: Iterable[Record], *, by_fabric: bool = False) -> list[Line]:
    """Return the summary, in the order in which engines (and fabrics) occur.

    Fabrics with the same name are distinguished by the beginning of their digest.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    kept = list(records)
    called: dict[str, set[str]] = {}
    for record in kept:
        called.setdefault(record.task.fabric, set()).add(record.task.digest)
    for record in kept:
        task = record.task
        name = task.fabric if len(called[task.fabric]) == 1 else f"{task.fabric} ({task.digest[:8]})"
        groups.setdefault((name if by_fabric else "", str(task.target), task.mode), []).append(record)
    return [_line(*key, group) for key, group in groups.items()]


def _line(fabric: str, target: str, mode: str, group: list[Record]) -> Line:
    def known(name: str) -> list[float]:
        values = (getattr(record.result, name) for record in group)
        return [value for value in values if value is not None]

    def most(name: str) -> int | None:
        return int(max(known(name))) if known(name) else None

    def total(name: str) -> int | None:
        return int(sum(known(name))) if known(name) else None

    lost = [
        max(0.0, 1.0 - record.result.kept)
        for record in group
        if record.result.faults and record.result.kept is not None
    ]
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
        loss_mean=math.fsum(lost) / len(lost) if lost else None,
        loss_most=max(lost, default=None),
        cut_off=most("cut_off"),
        seconds=sum(record.result.seconds for record in group),
    )


@dataclass(frozen=True)
class Regression:
    """Regression: task, property that is worse (``outcome``, ``vls``, ``a2a``, ``tables``), old and new value."""

    task: str
    about: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """Comparison of two ledgers.

    Attributes
    ----------
    regressions
        The regressions.
    same, better, other_tables
        Number of tasks in both ledgers with equal tables; certified now but not before; with different tables and no
        regression.
    only_before, only_now
        Number of tasks that only the earlier or only the new ledger has.
    """

    regressions: tuple[Regression, ...]
    same: int
    better: int
    other_tables: int
    only_before: int
    only_now: int


def compare(before: Iterable[Record], now: Iterable[Record], *, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two ledgers and find the regressions.

    A regression is one of these: tables are no longer certified; more VLs are needed; the all-to-all share is lower by
    more than ``tolerance`` (0.05: a twentieth); tables differ although the version of ibnue is the same.
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
        yield worse("a2a", f"{was.a2a:.3f}", f"{now.a2a:.3f}")
    both = was.tables is not None and now.tables is not None
    if both and was.tables != now.tables and old.version == new.version:
        yield worse("tables", was.tables, now.tables)
