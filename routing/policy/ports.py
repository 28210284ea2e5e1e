"""A policy laid over a fabric: which rule sets what at which port."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing.deadlock.cdg import dependency_graph
from routing.deadlock.waitfor import WaitFor
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.policy.model import (
    OPENSM_HOQ,
    OPENSM_LEAF_HOQ,
    PROPERTIES,
    Breaker,
    Policy,
    Property,
    Role,
    Rule,
    Speed,
    Value,
    hoq_seconds,
    seconds_text,
)
from routing.tables import Routing

PORTS = 256


@dataclass(frozen=True, eq=False)
class PortFacts:
    """What rules can ask of the ports of switches.

    Attributes
    ----------
    exists, cabled
        bool[S, 256]: the switch has that external port; something is cabled to it.
    role
        bool[S, 256] by role, only of cabled ports.  "leaf" and "core" are of the switch (has end ports, has none),
        "ca-facing" and "switch-facing" of the cable, "loop" of the channel that leaves by the port.
    rate, lane
        float64[S, 256], data rate of the link in Gb/s and signalling rate of a lane; 0 where nothing is cabled.
    loops_known
        Whether tables were there to look for loops.
    """

    exists: npt.NDArray[np.bool_]
    cabled: npt.NDArray[np.bool_]
    role: Mapping[Role, npt.NDArray[np.bool_]]
    rate: npt.NDArray[np.float64]
    lane: npt.NDArray[np.float64]
    loops_known: bool


def loop_channels(fabric: Fabric, routing: Routing, *, threads: int = 2) -> npt.NDArray[np.bool_]:
    """bool[C]: channels that are on a credit loop of the tables on any VL (requests from or to CAs and routers)."""
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    return np.asarray(WaitFor.of_dependencies(graph).on_cycle.reshape(graph.vls, graph.channels).any(axis=0))


def port_facts(fabric: Fabric, on_loop: npt.NDArray[np.bool_] | None = None) -> PortFacts:
    """What is known of every port; ``on_loop`` is :func:`loop_channels`, where there are tables.  Cost: O(S + K)."""
    shape = (fabric.switches, PORTS)
    exists = np.arange(PORTS) <= fabric.switch_ports[:, None]
    exists[:, 0] = False
    cabled, to_switch = np.zeros(shape, bool), np.zeros(shape, bool)
    rate, lane = np.zeros(shape), np.zeros(shape)
    for near, far in ((0, 1), (1, 0)):
        cables = np.flatnonzero(fabric.link_device[:, near] < fabric.switches)
        at = fabric.link_device[cables, near], fabric.link_port[cables, near]
        cabled[at] = True
        to_switch[at] = fabric.link_device[cables, far] < fabric.switches
        rate[at], lane[at] = fabric.link_capacity[cables], fabric.link_speed[cables]
    loop, channels = np.zeros(shape, bool), fabric.channels
    if on_loop is not None:
        loop[channels.src[on_loop], channels.port[on_loop]] = True
    leaf = cabled & (fabric.terminals_at > 0)[:, None]
    role: dict[Role, npt.NDArray[np.bool_]] = {
        "leaf": leaf,
        "core": cabled & ~leaf,
        "ca-facing": cabled & ~to_switch,
        "switch-facing": cabled & to_switch,
        "loop": loop,
    }
    return PortFacts(exists, cabled, role, rate, lane, on_loop is not None)


@dataclass(frozen=True, eq=False)
class PortPolicies:
    """What holds at every port.

    Attributes
    ----------
    policy
        The rules.
    number
        int32[S, 256] by property: index of the rule that set it, -1 where none did.
    hoq_life, vl_stall_count
        int16[S, 256], -1 where no rule says anything.
    selected
        bool[R, S, 256], the ports of each rule.
    idle
        Rules that have no port, with the reason.
    """

    policy: Policy
    number: Mapping[Property, npt.NDArray[np.int32]]
    hoq_life: npt.NDArray[np.int16]
    vl_stall_count: npt.NDArray[np.int16]
    selected: npt.NDArray[np.bool_]
    idle: tuple[str, ...] = field(default=())

    @property
    def touched(self) -> npt.NDArray[np.bool_]:
        """bool[S, 256], ports of which some rule says something."""
        return np.asarray(np.stack([self.number[what] >= 0 for what in PROPERTIES]).any(axis=0))

    def rule(self, what: Property, switch: int, port: int) -> Rule | None:
        """The rule that set a property of a port."""
        number = int(self.number[what][switch, port])
        return None if number < 0 else self.policy.rules[number]

    def value(self, what: Property, switch: int, port: int) -> Value | None:
        """A property of a port, None where no rule says anything."""
        rule = self.rule(what, switch, port)
        return None if rule is None else dict(rule.values)[what]

    def breaker(self, switch: int, port: int) -> Breaker:
        """What the switch agent does at a port."""
        found = self.value("breaker", switch, port)
        return found if isinstance(found, Breaker) else Breaker("none")


def lay_over(policy: Policy, fabric: Fabric, facts: PortFacts, *, strict: bool = True) -> PortPolicies:
    """Find out what a policy sets at each port of a fabric.

    A later rule may say the same of a port as an earlier one; something else only with ``override = true``.

    Parameters
    ----------
    policy, fabric, facts
        The rules, the switches, and :func:`port_facts` of them.
    strict
        Whether a rule that fits no switch, or names a port that none of its switches has, is an error.  On a running
        fabric it is none, because a switch may be down; such rules are listed as idle.

    Raises
    ------
    OptionError
        Rules that contradict one another, unknown ports, a lifetime shorter than detection, or a rule for loops
        where there are no tables; with file, line and remedy.

    Notes
    -----
    Cost: O(rules x switches x 256).
    """
    selected, idle = np.zeros((len(policy.rules), fabric.switches, PORTS), bool), list[str]()
    for number, rule in enumerate(policy.rules):
        with contextlib.ExitStack() as stack:
            if not strict:
                stack.enter_context(_noting(idle, rule))
            selected[number] = _ports_of(rule, policy, fabric, facts)
    found = PortPolicies(policy, *_merge(policy, fabric, selected), selected, tuple(idle))
    _check_lifetimes(found, fabric, facts)
    return found


@contextlib.contextmanager
def _noting(idle: list[str], rule: Rule) -> Iterator[None]:
    """Note what is wrong with a rule instead of raising it."""
    try:
        yield
    except OptionError as error:
        idle.append(f"line {rule.line}: {error.problem}")


def _ports_of(rule: Rule, policy: Policy, fabric: Fabric, facts: PortFacts) -> npt.NDArray[np.bool_]:
    """bool[S, 256]: the cabled ports that a rule is for."""
    select = rule.select
    if "loop" in select.roles and not facts.loops_known:
        raise OptionError(
            f"{rule.name} is for ports on credit loops, but there are no tables to find them in",
            path=policy.path,
            line=rule.line_of("role"),
            remedy="give --tables",
        )
    found: npt.NDArray[np.bool_] = facts.cabled.copy()
    rows = np.ones(fabric.switches, bool)
    if select.switches:
        rows = matching_switches(fabric, select.switches)
        if not rows.any():
            raise OptionError(
                f"no switch fits {', '.join(map(repr, select.switches))}",
                path=policy.path,
                line=rule.line_of("switch"),
                remedy="a pattern is of names, or of GUIDs as 0x...",
            )
        found &= rows[:, None]
    if select.ports:
        _check_ports(rule, policy, facts, rows)
        found &= np.isin(np.arange(PORTS), select.ports)
    for role in select.roles:
        found &= facts.role[role]
    return found if select.speed is None else found & _of_speed(facts, select.speed)


def matching_switches(fabric: Fabric, patterns: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """bool[S]: switches whose name, or GUID as 0x and 16 digits, fits one of the patterns (``*``, ``?``, ``[...]``).

    A pattern of a GUID without such signs may leave out leading zeros.  What is the name of a switch as it stands is no
    pattern.
    """
    guids = [f"0x{guid:016x}" for guid in fabric.switch_guid.tolist()]
    found = np.zeros(fabric.switches, bool)
    for pattern in patterns:
        if pattern in fabric.switch_name:
            found |= np.fromiter((name == pattern for name in fabric.switch_name), bool, fabric.switches)
            continue
        lower = pattern.lower()
        if lower.startswith("0x") and lower[2:].strip("0123456789abcdef") == "" and len(lower) > 2:
            lower = f"0x{int(lower, 16):016x}"
        fits = (
            fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(guid, lower)
            for name, guid in zip(fabric.switch_name, guids, strict=True)
        )
        found |= np.fromiter(fits, bool, fabric.switches)
    return found


def _check_ports(rule: Rule, policy: Policy, facts: PortFacts, rows: npt.NDArray[np.bool_]) -> None:
    there = np.asarray(facts.exists[rows].any(axis=0))
    missing = [port for port in rule.select.ports if not there[port]]
    if missing:
        count = int(rows.sum())
        whose = f"none of its {count} switches has" if count > 1 else "its switch has not"
        raise OptionError(
            f"{rule.name} names port {missing[0]}, which {whose}",
            path=policy.path,
            line=rule.line_of("ports"),
            remedy=f"ports go up to {int(np.flatnonzero(there).max(initial=0))} there",
        )


def _of_speed(facts: PortFacts, speed: Speed) -> npt.NDArray[np.bool_]:
    """Within four percent, so that 56 means what 4xFDR carries."""
    if speed.lane is not None:
        return np.asarray(np.abs(facts.lane - speed.lane) <= 0.01 * speed.lane)
    near = np.abs(facts.rate - speed.gigabits) <= 0.04 * speed.gigabits
    below, above = facts.rate < speed.gigabits, facts.rate > speed.gigabits
    table = {"=": near, "<": below & ~near, "<=": below | near, ">": above & ~near, ">=": above | near}
    return np.asarray(table[speed.relation])


def _merge(
    policy: Policy, fabric: Fabric, selected: npt.NDArray[np.bool_]
) -> tuple[dict[Property, npt.NDArray[np.int32]], npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    shape = (fabric.switches, PORTS)
    number: dict[Property, npt.NDArray[np.int32]] = {what: np.full(shape, -1, np.int32) for what in PROPERTIES}
    plain = {what: np.full(shape, -1, np.int16) for what in PROPERTIES[:2]}
    for index, rule in enumerate(policy.rules):
        for what, value in rule.values:
            if not rule.override:
                _check_conflict(policy, fabric, number[what], (index, what), selected[index])
            number[what][selected[index]] = index
            if not isinstance(value, Breaker):
                plain[what][selected[index]] = value
    return number, plain["hoq_life"], plain["vl_stall_count"]


def _check_conflict(
    policy: Policy,
    fabric: Fabric,
    number: npt.NDArray[np.int32],
    setting: tuple[int, Property],
    ports: npt.NDArray[np.bool_],
) -> None:
    """Raise where an earlier rule has set something else."""
    index, what = setting
    rule = policy.rules[index]
    wanted = dict(rule.values)[what]
    for earlier in np.unique(number[ports]).tolist():
        if earlier < 0 or dict(policy.rules[earlier].values)[what] == wanted:
            continue
        where = np.argwhere(ports & (number == earlier))
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        switch, port = where[0].tolist()
        other = policy.rules[earlier]
        raise OptionError(
            f"{rule.name} and {other.name} (line {other.line}) set {what} of {fabric.switch_name[switch]} port {port}"
            f"{more} to different values",
            path=policy.path,
            line=rule.line_of(what, "deadlock_breaker", "loop_breaker"),
            remedy="select fewer ports, or write override = true in the later rule",
        )


def _check_lifetimes(found: PortPolicies, fabric: Fabric, facts: PortFacts) -> None:
    """Whoever drops what waits must wait longer than whoever looks for deadlocks."""
    for switch, port in np.argwhere(found.number["breaker"] >= 0).tolist():
        breaker = found.breaker(switch, port)
        own = int(found.hoq_life[switch, port])
        usual = OPENSM_LEAF_HOQ if facts.role["ca-facing"][switch, port] else OPENSM_HOQ
        lives = hoq_seconds(own if own >= 0 else usual)
        if breaker.kind == "none" or lives > breaker.detect_time:
            continue
        rule = found.rule("breaker", switch, port)
        assert rule is not None
        whose = found.rule("hoq_life", switch, port)
        by = "OpenSM's default" if whose is None else f"{whose.name}, line {whose.line}"
        raise OptionError(
            f"at {fabric.switch_name[switch]} port {port} packets are dropped after {seconds_text(lives)} ({by}), and"
            f" {rule.name} detects only after {seconds_text(breaker.detect_time)}",
            path=found.policy.path,
            line=rule.line_of("deadlock_breaker", "loop_breaker"),
            remedy="raise hoq_life there, or lower detect_time",
        )
