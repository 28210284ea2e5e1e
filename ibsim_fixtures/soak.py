"""Test OpenSM in a soak: random faults of cables, switches and CAs, with a complete check after each event.

An event adds or removes a fault, and OpenSM sweeps.  Then ibnetdiscover reads the fabric, the tables are read from the
switches, and the SLs from the SA.  These tables are proven and compared with the tables that the plugin computed.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibsim_fixtures.installed_tables import installed_routing, used_sl2vl_rows
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm_log import Sweep
from ibsim_fixtures.processes import LabError, poll
from routing.deadlock.proof import prove
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.faults import Fault, apply_faults, every_ca, every_link, every_switch
from routing.formats.bundle import Bundle, bundle_routing, read_bundle
from routing.reroute import CapacityKept, FreshRoute, Published, capacity_kept
from routing.tables import Routing

MOST_AT_ONCE = 3
KINDS = (every_link, every_link, every_link, every_switch, every_ca)
"""Functions that list possible faults.  Each function lists one kind of faults: lost cables, switches or CAs.

One of the five elements of the tuple is chosen at random for each new fault.  ``every_link`` occurs three times, so
about three of five faults are lost cables.
"""

Cable = tuple[int, int, int, int]


@dataclass(frozen=True)
class Step:
    """One planned event of a soak test.

    Attributes
    ----------
    action
        Kind of event: "pull" adds a fault, "restore" removes a fault.
    fault
        Fault that the event adds or removes.
    active
        All faults of the fabric after the event.
    """

    action: str
    fault: Fault
    active: tuple[Fault, ...]


@dataclass(frozen=True)
class Outcome:
    """Result of the checks after one event of a soak test.

    Attributes
    ----------
    number
        Number of the event, counted from 1; 0 for the check at the start.
    action
        Kind of event, as in :class:`Step`; "start" before the first event.
    fault
        Name of the fault that the event adds or removes; "" at the start.
    active
        Number of faults that the fabric has after the event.
    switches, endports, links
        Numbers of switches, end ports and links that OpenSM can reach.
    engine
        Engine that routed in the sweep.
    routing_ms
        Duration of the routing in ms.
    sweep_ms
        Duration of the whole sweep in ms.
    as_cabled
        Whether ibnetdiscover finds exactly the cables that are left after the faults.
    as_dumped
        Whether the tables in force equal the tables in OpenSM's dump.
    as_planned
        Whether the tables in force equal the tables that the plugin has saved.  None: not checked.
    complete, certified, strength, scope
        Results of the proof of the tables in force.
    changed
        Number of LFT entries that the event has changed.  Only switches and LIDs that exist both before and after the
        event count.
    kept
        Rates of an end port after the event, divided by the rates before the event.  There are values for all-to-all
        traffic and for bisections.  At the start, all values are None.
    opensm_kb
        Resident memory of OpenSM in KiB.
    worker_kb
        Resident memory of OpenSM's child processes in KiB; 0: there are none.
    look_ms
        Time in ms to read back and compare all tables.
    problem
        Errors of the sweep, or the reason why the check failed; "" if there is no problem.
    """

    number: int
    action: str
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
    kept: CapacityKept = field(default_factory=CapacityKept)
    look_ms: float = 0.0
    problem: str = ""

    @property
    def good(self) -> bool:
        """Return whether all checks after the event have passed."""
        held = self.as_cabled and self.as_dumped and self.as_planned is not False
        return held and self.complete and self.certified and not self.problem

    def as_object(self) -> dict[str, object]:
        """Return the result of the checks as plain values for JSON."""
        return {
            "number": self.number,
            "action": self.action,
            "fault": self.fault or None,
            "active_faults": self.active,
            "ok": self.good,
            "problem": self.problem or None,
            "switches": self.switches,
            "end_ports": self.endports,
            "links": self.links,
            "engine": self.engine,
            "routing_seconds": None if self.routing_ms is None else self.routing_ms / 1000,
            "sweep_seconds": self.sweep_ms / 1000,
            "check_seconds": self.look_ms / 1000,
            "as_cabled": self.as_cabled,
            "as_dumped": self.as_dumped,
            "as_planned": self.as_planned,
            "complete": self.complete,
            "certified": self.certified,
            "strength": self.strength,
            "scope": self.scope,
            "entries_changed": self.changed,
            **self.kept.as_dict(),
            "opensm_kib": self.opensm_kb,
            "worker_kib": self.worker_kb,
        }


def steps(fabric: Fabric, *, seed: int, host: int, most: int = MOST_AT_ONCE) -> Iterator[Step]:
    """Generate an endless sequence of random events, which depends only on the fabric, the seed and the host.

    Parameters
    ----------
    fabric
        Fabric without faults.
    seed
        Random seed.
    host
        Node GUID of the CA on which OpenSM runs.  No event disconnects this CA.
    most
        Largest number of faults at the same time.
    """
    rng = random.Random(seed)
    pools = [pool for pool in ([f for f in kind(fabric) if not _cuts_off(fabric, f, host)] for kind in KINDS) if pool]
    active: list[Fault] = []
    while pools:
        fresh = [fault for fault in rng.choice(pools) if fault not in active]
        if fresh and (not active or (len(active) < most and rng.random() < 0.5)):
            fault, action = rng.choice(fresh), "pull"
            active.append(fault)
        else:
            fault, action = active.pop(rng.randrange(len(active))), "restore"
        yield Step(action, fault, tuple(active))


def _cuts_off(fabric: Fabric, fault: Fault, host: int) -> bool:
    """Return whether a fault disconnects the host: by removing the host itself, its last cable, or its switch."""
    terminal = np.flatnonzero(fabric.terminal_guid == np.uint64(host))
    left = apply_faults(fabric, [fault])
    own = left.endport_terminal if len(left.terminal_guid) else np.empty(0, np.int32)
    return not len(terminal) or not (left.terminal_guid[own] == np.uint64(host)).any()


def cables(fabric: Fabric) -> set[Cable]:
    """Return all cables of a fabric as (node GUID, port, node GUID, port).  The end with the smaller GUID
    comes first.
    """
    guids = np.concatenate([fabric.switch_guid, fabric.terminal_guid]).tolist()
    ends = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
    return {(*a, *b) for (s, t), (p, q) in ends for a, b in [sorted([(guids[s], p), (guids[t], q)])]}


def reached(fabric: Fabric, host: int) -> set[Cable]:
    """Return the cables of the connected component that contains the device with node GUID ``host``."""
    every = cables(fabric)
    there, trees = {host}, True
    while trees:
        ends = {end for a, _, b, _ in every if a in there or b in there for end in (a, b)}
        trees, there = bool(ends - there), there | ends
    return {cable for cable in every if cable[0] in there}


class Soak:
    """Soak test of a running lab (ibsim and OpenSM).

    Parameters
    ----------
    lab
        Running lab without faults.
    seed
        Random seed of the events.
    plan
        State file of the plugin, with which the tables in force are compared.  None: no comparison.
    most
        Largest number of faults at the same time.
    fresh
        Function that computes tables from scratch.  After each event, the rates of tables from scratch are measured
        for a comparison with the tables in force.  None: only the tables in force are measured.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        seed: int = 1,
        plan: Path | None = None,
        most: int = MOST_AT_ONCE,
        fresh: FreshRoute | None = None,
    ) -> None:
        self.lab, self.fresh = lab, fresh
        self.plan = plan
        self.seed, self.most = seed, most
        self.host = lab.ibsim.device(lab.ibsim.sm_host).guid
        self.whole = lab.fabric()
        self._number = 0
        self._cabled = cables(self.whole)
        self._before: Published | None = None

    def run(self, *, events: int | None = None, seconds: float | None = None) -> Iterator[Outcome]:
        """Run the soak test.  Yield the result of the checks at the start and after each event, until a limit is
        reached.

        If an event cannot be checked because OpenSM ended or did not sweep, the last result describes this problem.

        Parameters
        ----------
        events
            Largest number of events; None: no limit.
        seconds
            Time limit in seconds; None: no limit.
        """
        end = None if seconds is None else time.monotonic() + seconds
        start = self.lab.sweep
        assert start is not None
        yield self._inspect("start", "", 0, start, self.whole)
        for step in steps(self.whole, seed=self.seed, host=self.host, most=self.most):
            if (events is not None and self._number >= events) or (end is not None and time.monotonic() >= end):
                return
            self._number += 1
            try:
                expected = apply_faults(self.whole, step.active)
                outcome = self._inspect(
                    step.action, step.fault.name, len(step.active), self._change(expected), expected
                )
            except IbnueError as problem:
                yield self._failed(step, str(problem).splitlines()[0])
                return
            yield outcome

    def _change(self, wanted: Fabric) -> Sweep:
        """Change the cabling in ibsim to the cabling of the fabric ``wanted``.  Return the sweep that follows all
        changes.
        """
        target = cables(wanted)
        for guid, port, _, _ in sorted(self._cabled - target):
            self.lab.ibsim.unlink(guid, port)
        for guid, port, _, _ in sorted(target - self._cabled):
            self.lab.ibsim.relink(guid, port)
        self._cabled = target
        return self.lab.opensm.resweep()

    def _inspect(self, action: str, fault: str, active: int, sweep: Sweep, expected: Fabric) -> Outcome:
        started = time.monotonic()
        fabric = self.lab.fabric()
        routing, as_dumped = installed_routing(self.lab, fabric, sweep.engine)
        proof = prove(fabric, routing)
        before, now = self._before, Published(fabric, routing, proof)
        changed = 0 if before is None else _changed(before.fabric, before.routing, fabric, routing)
        self._before = now
        as_cabled = cables(fabric) == reached(expected, self.host)
        as_planned = None if self.plan is None else self._as_planned(fabric, routing)
        look_ms = round(1e3 * (time.monotonic() - started), 3)
        beside = None if before is None or self.fresh is None else self.fresh(fabric)
        kept = CapacityKept() if before is None else capacity_kept(before, now, beside)
        return Outcome(
            number=self._number, action=action, fault=fault, active=active,
            switches=fabric.switches, endports=fabric.endports, links=fabric.links,
            engine=sweep.engine, sweep_ms=round(1e3 * sweep.seconds, 3),
            routing_ms=None if sweep.routing_seconds is None else round(1e3 * sweep.routing_seconds, 3),
            as_cabled=as_cabled, as_dumped=as_dumped, as_planned=as_planned, look_ms=look_ms,
            complete=proof.complete, certified=proof.certified, strength=proof.strength, scope=proof.scope,
            changed=changed, kept=kept, opensm_kb=resident_kb(self.lab.opensm.pid),
            worker_kb=sum(map(resident_kb, self._workers())), problem="; ".join(sweep.errors)[:300],
        )  # fmt: skip

    def _failed(self, step: Step, problem: str) -> Outcome:
        return Outcome(
            number=self._number, action=step.action, fault=step.fault.name, active=len(step.active),
            switches=0, endports=0, links=0, engine=None, sweep_ms=0.0, routing_ms=None,
            as_cabled=False, as_dumped=False, as_planned=None, complete=False, certified=False, strength=None,
            scope=None, changed=0, opensm_kb=0, worker_kb=0, problem=problem,
        )  # fmt: skip

    def _workers(self) -> list[int]:
        tasks = Path(f"/proc/{self.lab.opensm.pid}/task")
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]

    def _as_planned(self, fabric: Fabric, routing: Routing) -> bool:
        """Return whether the tables in force equal the tables in the plugin's state file.

        The plugin writes the state file only after OpenSM has received the tables.  So this method waits until the
        state file has tables of ``fabric``.
        """
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
    """Return whether two sets of tables agree in all respects that matter to packets.

    The LFTs must be equal.  If the tables use several VLs, the SLs and the SL2VL rows in use must be equal, too.

    ``routing`` has the tables in force, and ``planned`` the tables that the plugin computed.
    """
    if not np.array_equal(routing.lft, planned.lft):
        return False
    if planned.vls == 1:
        return True  # With one VL, packets can use any SL, so the SLs are not compared.
    switch = fabric.lids.switch
    lids = np.flatnonzero(switch >= 0)
    part, port = fabric.component[switch[lids]], fabric.lids.endport[lids]
    own = (port >= 0) & (port == port[:, None])
    counts = (part == part[:, None]) & ~own & (lids != lids[:, None])
    alike = _by_pair(fabric, routing, lids) == _by_pair(fabric, planned, lids)
    return bool(alike[counts].all()) and _same_sl2vl(fabric, routing.sl2vl, planned.sl2vl)


def _same_sl2vl(fabric: Fabric, a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> bool:
    """Return whether two sets of SL2VL tables agree in every row that a packet can use."""
    used = used_sl2vl_rows(fabric)
    return np.array_equal(_rows(a, used), _rows(b, used))


def _rows(sl2vl: npt.NDArray[np.uint8], used: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.broadcast_to(sl2vl, (*used.shape, 16))[used]


def _by_pair(fabric: Fabric, routing: Routing, lids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the SL by source and destination for the given LIDs: uint8[N, N]."""
    sls = routing.service_levels
    return np.asarray(sls.matrix[np.ix_(sls.row_of(fabric.lids.switch[lids], lids), lids)])


def _changed(old_fabric: Fabric, old: Routing, fabric: Fabric, new: Routing) -> int:
    _, a, b = np.intersect1d(old_fabric.switch_guid, fabric.switch_guid, return_indices=True)
    lids = min(old.lft.shape[1], new.lft.shape[1])
    there = (old_fabric.lids.switch[:lids] >= 0) & (fabric.lids.switch[:lids] >= 0)
    return int(np.count_nonzero((old.lft[a][:, :lids] != new.lft[b][:, :lids])[:, there]))


def resident_kb(pid: int) -> int:
    """Return the resident memory of a process in KiB; 0 if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")), 0)


@dataclass(frozen=True)
class Summary:
    """Summary of all events of a soak test.

    Attributes
    ----------
    events
        Number of events, without the check at the start.
    good
        Number of events after which all checks have passed.
    opensm_kb
        Two medians of OpenSM's memory in KiB: over the second fifth and over the last fifth of the events.  Growth
        indicates a leak.
    worker_kb
        Two medians of the memory of OpenSM's child processes in KiB, over the same fifths.
    routing_ms
        Median time of routing in ms.
    changed
        Median number of LFT entries that an event has changed.
    look_ms
        Median and maximum of the time in ms to read back and compare all tables.
    """

    events: int
    good: int
    opensm_kb: tuple[float, float]
    worker_kb: tuple[float, float]
    routing_ms: float
    changed: float
    look_ms: tuple[float, float]

    def as_object(self) -> dict[str, object]:
        """Return the summary as plain values for JSON."""
        return {
            "events_total": self.events,
            "events_ok": self.good,
            "opensm_kib_second_fifth": self.opensm_kb[0],
            "opensm_kib_last_fifth": self.opensm_kb[1],
            "worker_kib_second_fifth": self.worker_kb[0],
            "worker_kib_last_fifth": self.worker_kb[1],
            "routing_seconds_median": self.routing_ms / 1000,
            "entries_changed_median": self.changed,
            "check_seconds_median": self.look_ms[0] / 1000,
            "check_seconds_max": self.look_ms[1] / 1000,
        }


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Summarise the results of a soak test."""
    after = [outcome for outcome in outcomes if outcome.action != "start"]
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
        look_ms=(median([o.look_ms for o in after]), max((o.look_ms for o in after), default=0.0)),
    )
