"""What a ledger says, engine by engine, and what became worse since an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.sweep.ledger import Record
from routing.sweep.results import OUTCOMES

TOLERANCE = 0.05
"""Share of the all-to-all share that may be lost before that is a regression."""


@dataclass(frozen=True)
class Line:
    """The results of one engine on one fabric, or on all of them.

    Attributes
    ----------
    fabric, target, mode
        What they have in common; "" for all fabrics, and with the beginning of the digest where several have the name.
    cases
        How many.
    outcomes
        How many of each outcome.
    vls_needed
        The most that any needed.
    changed, broken
        Entries that changed and that had to, all cases together; None where there was nothing to compare with.
    a2a_least
        The least all-to-all share.
    cut_off
        The most end ports cut off by a fault.
    seconds
        All cases together.
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
    cut_off: int | None
    seconds: float


def lines(records: Iterable[Record], *, by_fabric: bool = False) -> list[Line]:
    """The summary, in the order in which engines (and fabrics) turn up.

    Fabrics of the same name are told apart by the beginning of their digest.
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
        cut_off=most("cut_off"),
        seconds=sum(record.result.seconds for record in group),
    )


@dataclass(frozen=True)
class Regression:
    """Something that became worse: the task, in what (``outcome``, ``vls``, ``a2a``, ``tables``), from what to what."""

    task: str
    about: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """Two ledgers side by side.

    Attributes
    ----------
    regressions
        What became worse.
    same, better, other_tables
        Tasks of both ledgers with the same tables; certified now and not before; with other tables, and nothing worse.
    only_before, only_now
        Tasks that only one of them has.
    """

    regressions: tuple[Regression, ...]
    same: int
    better: int
    other_tables: int
    only_before: int
    only_now: int


def compare(before: Iterable[Record], now: Iterable[Record], *, tolerance: float = TOLERANCE) -> Comparison:
    """What became worse.

    That is: certified no longer; more VLs needed; a share of all-to-all that is lower by more than ``tolerance`` (0.05:
    a twentieth); other tables although the version of ibnue is the same, which may not be.
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
