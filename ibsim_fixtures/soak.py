"""A soak: cables, switches and CAs come and go under a running OpenSM, and after each event everything is looked at.

An event pulls something or puts something back; OpenSM sweeps; then the fabric is read by ibnetdiscover, the tables
from the switches, the service levels from the SA, and all of it is proven and held against what was planned.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibsim_fixtures.in_force import in_force
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm_log import Sweep
from ibsim_fixtures.processes import LabError, poll
from routing.deadlock.proof import prove
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.faults import Fault, apply_faults, every_ca, every_link, every_switch
from routing.formats.bundle import Bundle, bundle_routing, read_bundle
from routing.tables import Routing

MOST_AT_ONCE = 3
KINDS = (every_link, every_link, every_link, every_switch, every_ca)
"""Three of five faults are cables."""

Cable = tuple[int, int, int, int]


@dataclass(frozen=True)
class Step:
    """An event to come.

    Attributes
    ----------
    deed
        "pull" or "restore".
    fault
        What.
    active
        All faults that last afterwards.
    """

    deed: str
    fault: Fault
    active: tuple[Fault, ...]


@dataclass(frozen=True)
class Outcome:
    """What was found after an event.

    Attributes
    ----------
    number, deed, fault, active
        The event ("start" comes before the first one), what it was about, how many faults lasted.
    switches, endports, links
        What OpenSM's side of the fabric has.
    engine, routing_ms, sweep_ms
        Of the sweep.
    as_cabled
        Whether ibnetdiscover sees the cables that are left by the faults.
    as_dumped, as_planned
        Whether the tables in force are those that OpenSM dumped, and those that the plugin planned (None: not asked).
    complete, certified, strength, scope
        What was proven of them.
    changed
        Forwarding entries that differ from those before the event, where switch and LID were there before.
    opensm_kb, worker_kb
        Memory (resident set) of OpenSM, and of its worker (0: there is none).
    problem
        What went wrong otherwise, "" if nothing did.
    """

    number: int
    deed: str
    fault: str
    active: int
    switches: int
    endports: int
    links: int
    engine: str | None
    routing_ms: float | None
    sweep_ms: float
    as_cabled: bool
    as_dumped: bool
    as_planned: bool | None
    complete: bool
    certified: bool
    strength: str | None
    scope: str | None
    changed: int
    opensm_kb: int
    worker_kb: int
    problem: str = ""

    @property
    def good(self) -> bool:
        """Nothing to complain about."""
        held = self.as_cabled and self.as_dumped and self.as_planned is not False
        return held and self.complete and self.certified and not self.problem

    def as_object(self) -> dict[str, object]:
        """For a ledger."""
        return {**asdict(self), "good": self.good}


def steps(fabric: Fabric, *, seed: int, host: int, most: int = MOST_AT_ONCE) -> Iterator[Step]:
    """Events without end; the same fabric, seed and host give the same ones.

    Parameters
    ----------
    fabric
        With nothing broken.
    seed
        Of every choice.
    host
        Node GUID of the CA that OpenSM runs on, which stays, as do its cables and its switch.
    most
        Faults at the same time.
    """
    rng = random.Random(seed)
    pools = [pool for pool in ([f for f in kind(fabric) if not _cuts_off(fabric, f, host)] for kind in KINDS) if pool]
    active: list[Fault] = []
    while pools:
        fresh = [fault for fault in rng.choice(pools) if fault not in active]
        if fresh and (not active or (len(active) < most and rng.random() < 0.5)):
            fault, deed = rng.choice(fresh), "pull"
            active.append(fault)
        else:
            fault, deed = active.pop(rng.randrange(len(active))), "restore"
        yield Step(deed, fault, tuple(active))


def _cuts_off(fabric: Fabric, fault: Fault, host: int) -> bool:
    """Whether a fault takes the host away, its last cable or the switch at its other end."""
    terminal = np.flatnonzero(fabric.terminal_guid == np.uint64(host))
    left = apply_faults(fabric, [fault])
    own = left.endport_terminal if len(left.terminal_guid) else np.empty(0, np.int32)
    return not len(terminal) or not (left.terminal_guid[own] == np.uint64(host)).any()


def cables(fabric: Fabric) -> set[Cable]:
    """Every cable as (node GUID, port, node GUID, port), the smaller end first."""
    guids = np.concatenate([fabric.switch_guid, fabric.terminal_guid]).tolist()
    ends = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
    return {(*a, *b) for (s, t), (p, q) in ends for a, b in [sorted([(guids[s], p), (guids[t], q)])]}


def reached(fabric: Fabric, host: int) -> set[Cable]:
    """The cables of the part of the fabric that a host is in."""
    every = cables(fabric)
    there, grown = {host}, True
    while grown:
        ends = {end for a, _, b, _ in every if a in there or b in there for end in (a, b)}
        grown, there = bool(ends - there), there | ends
    return {cable for cable in every if cable[0] in there}


class Soak:
    """A soak of a running lab.

    Parameters
    ----------
    lab
        It runs, and nothing is pulled.
    seed
        Of the events.
    plan
        The file in which the plugin keeps its tables; None: they are not compared.
    most
        Faults at the same time.
    """

    def __init__(self, lab: Lab, *, seed: int = 1, plan: Path | None = None, most: int = MOST_AT_ONCE) -> None:
        self.lab = lab
        self.plan = plan
        self.seed, self.most = seed, most
        self.host = lab.ibsim.device(lab.ibsim.sm_host).guid
        self.whole = lab.fabric()
        self._number = 0
        self._cabled = cables(self.whole)
        self._before: tuple[Fabric, Routing] | None = None

    def run(self, *, events: int | None = None, seconds: float | None = None) -> Iterator[Outcome]:
        """The outcome at the start and after each event, until there were so many or the time is up.

        The first outcome that cannot be had (OpenSM died, no sweep came) is the last.
        """
        end = None if seconds is None else time.monotonic() + seconds
        start = self.lab.sweep
        assert start is not None
        yield self._look("start", "", 0, start, self.whole)
        for step in steps(self.whole, seed=self.seed, host=self.host, most=self.most):
            if (events is not None and self._number >= events) or (end is not None and time.monotonic() >= end):
                return
            self._number += 1
            try:
                expected = apply_faults(self.whole, step.active)
                outcome = self._look(step.deed, step.fault.name, len(step.active), self._change(expected), expected)
            except IbnueError as problem:
                yield self._failed(step, str(problem).splitlines()[0])
                return
            yield outcome

    def _change(self, wanted: Fabric) -> Sweep:
        """Pull and put back what makes the cabling that of ``wanted``; the sweep that sees all of it."""
        target = cables(wanted)
        for guid, port, _, _ in sorted(self._cabled - target):
            self.lab.ibsim.unlink(guid, port)
        for guid, port, _, _ in sorted(target - self._cabled):
            self.lab.ibsim.relink(guid, port)
        self._cabled = target
        return self.lab.opensm.resweep()

    def _look(self, deed: str, fault: str, active: int, sweep: Sweep, expected: Fabric) -> Outcome:
        fabric = self.lab.fabric()
        routing, as_dumped = in_force(self.lab, fabric, sweep.engine)
        proof = prove(fabric, routing)
        changed = 0 if self._before is None else _changed(*self._before, fabric, routing)
        self._before = fabric, routing
        return Outcome(
            number=self._number, deed=deed, fault=fault, active=active,
            switches=fabric.switches, endports=fabric.endports, links=fabric.links,
            engine=sweep.engine, sweep_ms=round(1e3 * sweep.seconds, 3),
            routing_ms=None if sweep.routing_seconds is None else round(1e3 * sweep.routing_seconds, 3),
            as_cabled=cables(fabric) == reached(expected, self.host), as_dumped=as_dumped,
            as_planned=None if self.plan is None else self._as_planned(fabric, routing),
            complete=proof.complete, certified=proof.certified, strength=proof.strength, scope=proof.scope,
            changed=changed, opensm_kb=resident_kb(self.lab.opensm.pid),
            worker_kb=sum(map(resident_kb, self._workers())), problem="; ".join(sweep.errors)[:300],
        )  # fmt: skip

    def _failed(self, step: Step, problem: str) -> Outcome:
        return Outcome(
            number=self._number, deed=step.deed, fault=step.fault.name, active=len(step.active),
            switches=0, endports=0, links=0, engine=None, sweep_ms=0.0, routing_ms=None,
            as_cabled=False, as_dumped=False, as_planned=None, complete=False, certified=False, strength=None,
            scope=None, changed=0, opensm_kb=0, worker_kb=0, problem=problem,
        )  # fmt: skip

    def _workers(self) -> list[int]:
        tasks = Path(f"/proc/{self.lab.opensm.pid}/task")
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]

    def _as_planned(self, fabric: Fabric, routing: Routing) -> bool:
        """Whether the tables in force are those of the plan, which is written a moment after OpenSM has them."""
        assert self.plan is not None
        path, found = self.plan, list[Bundle]()

        def written() -> bool:
            with contextlib.suppress(IbnueError):
                found[:] = [read_bundle(path)]
            return bool(found) and found[0].meta.get("fabric_digest") == fabric.digest

        if not poll(written, self.lab.opensm.timeout):
            raise LabError(f"{path.name} does not hold the plan for fabric {fabric.digest[:12]}")
        return same_tables(fabric, routing, bundle_routing(found[0], fabric))


def same_tables(fabric: Fabric, routing: Routing, planned: Routing) -> bool:
    """Whether forwarding tables are the same, and on more than one VL the SLs of all paths and SL-to-VL tables too."""
    if not np.array_equal(routing.lft, planned.lft):
        return False
    if planned.vls == 1:
        return True  # SLs are the administrator's then
    switch = fabric.lids.switch
    lids = np.flatnonzero(switch >= 0)
    part, port = fabric.component[switch[lids]], fabric.lids.endport[lids]
    own = (port >= 0) & (port == port[:, None])
    counts = (part == part[:, None]) & ~own & (lids != lids[:, None])
    alike = _by_pair(fabric, routing, lids) == _by_pair(fabric, planned, lids)
    return bool(alike[counts].all()) and np.array_equal(routing.sl2vl, planned.sl2vl)


def _by_pair(fabric: Fabric, routing: Routing, lids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """SL by source and destination among these LIDs."""
    if routing.sl.ndim == 1:
        return np.broadcast_to(routing.sl[lids], (len(lids), len(lids)))
    row = lids if routing.sl.shape[0] == len(fabric.lids) else fabric.lids.switch[lids]
    return np.asarray(routing.sl[np.ix_(row, lids)])


def _changed(old_fabric: Fabric, old: Routing, fabric: Fabric, new: Routing) -> int:
    _, a, b = np.intersect1d(old_fabric.switch_guid, fabric.switch_guid, return_indices=True)
    lids = min(old.lft.shape[1], new.lft.shape[1])
    there = (old_fabric.lids.switch[:lids] >= 0) & (fabric.lids.switch[:lids] >= 0)
    return int(np.count_nonzero((old.lft[a][:, :lids] != new.lft[b][:, :lids])[:, there]))


def resident_kb(pid: int) -> int:
    """Resident set of a process in KiB, 0 if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")), 0)


@dataclass(frozen=True)
class Summary:
    """What a soak came to.

    Attributes
    ----------
    events, good
        Events, and how many left nothing to complain about (the start is not counted).
    opensm_kb, worker_kb
        Median memory in the second and in the last fifth of the events.
    routing_ms, changed
        Medians of the events.
    """

    events: int
    good: int
    opensm_kb: tuple[float, float]
    worker_kb: tuple[float, float]
    routing_ms: float
    changed: float


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Figures over a soak."""
    after = [outcome for outcome in outcomes if outcome.deed != "start"]
    fifth = max(1, len(after) // 5)
    early, late = after[fifth : 2 * fifth] or after, after[-fifth:]

    def median(values: Sequence[float]) -> float:
        return float(np.median(values)) if values else 0.0

    return Summary(
        events=len(after),
        good=sum(outcome.good for outcome in after),
        opensm_kb=(median([o.opensm_kb for o in early]), median([o.opensm_kb for o in late])),
        worker_kb=(median([o.worker_kb for o in early]), median([o.worker_kb for o in late])),
        routing_ms=median([o.routing_ms for o in after if o.routing_ms is not None]),
        changed=median([o.changed for o in after]),
    )
