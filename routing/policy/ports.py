"""Application of a policy to a fabric: the value of each property at each port, and the rule that sets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.policy.facts import PORTS, PortFacts
from routing.policy.model import (
    HOQ_MOST,
    PROPERTIES,
    Breaker,
    Policy,
    Property,
    Rule,
    Value,
    hoq_seconds,
    seconds_text,
)
from routing.policy.selection import SwitchNames, ports_of


@dataclass(frozen=True, eq=False)
class PortPolicies:
    """Policy values of all ports.

    Attributes
    ----------
    policy
        The policy.
    number
        int32[S, 256] by property: index of the rule that sets it, -1 if none does.
    hoq_life, vl_stall_count
        int16[S, 256], the value, -1 if no rule sets it.
    selected
        int64[N] for each rule, its ports as ``switch * 256 + port``, ascending.
    unused
        Descriptions of patterns and ports in rules that match nothing, with the rules' lines.
    """

    policy: Policy
    number: Mapping[Property, npt.NDArray[np.int32]]
    hoq_life: npt.NDArray[np.int16]
    vl_stall_count: npt.NDArray[np.int16]
    selected: tuple[npt.NDArray[np.int64], ...]
    unused: tuple[str, ...] = field(default=())

    @property
    def touched(self) -> npt.NDArray[np.bool_]:
        """bool[S, 256], ports of which some rule sets a property."""
        return np.asarray(np.stack([self.number[what] >= 0 for what in PROPERTIES]).any(axis=0))

    def selects(self, rule: int, switch: int, port: int) -> bool:
        """Return whether the rule with an index selects a port."""
        positions, position = self.selected[rule], switch * PORTS + port
        at = int(np.searchsorted(positions, position))
        return at < len(positions) and int(positions[at]) == position

    def decides(self, rule: int) -> int:
        """Return the number of ports at which the rule with an index sets a property that no later rule sets."""
        positions, whats = self.selected[rule], [what for what, _ in self.policy.rules[rule].values]
        return int(np.stack([self.number[what].ravel()[positions] == rule for what in whats]).any(axis=0).sum())

    def rule(self, what: Property, switch: int, port: int) -> Rule | None:
        """Return the rule that sets a property of a port; None if no rule does."""
        number = int(self.number[what][switch, port])
        return None if number < 0 else self.policy.rules[number]

    def value(self, what: Property, switch: int, port: int) -> Value | None:
        """Return the value of a property of a port; None if no rule sets it."""
        rule = self.rule(what, switch, port)
        return None if rule is None else dict(rule.values)[what]

    def breaker(self, switch: int, port: int) -> Breaker:
        """Return the breaker of a port, of kind "none" if no rule sets one."""
        found = self.value("breaker", switch, port)
        return found if isinstance(found, Breaker) else Breaker("none")


def apply_rules(policy: Policy, fabric: Fabric, facts: PortFacts, *, strict: bool = True) -> PortPolicies:
    """Apply a policy to a fabric.

    A later rule may set a property of a port to the value of an earlier rule; to another value only with
    ``override = true``.

    Parameters
    ----------
    policy, fabric, facts
        The rules, the switches, and :func:`port_facts` of them.
    strict
        Whether a pattern that no switch matches, or a port that none of a rule's switches has, is an error.  On a
        running fabric it is not, because a switch may be down: it is listed in ``idle``, and the rest of the rule
        applies.

    Raises
    ------
    OptionError
        Rules contradict each other, ports are unknown, a lifetime is shorter than the detection time, or a rule selects
        ports on loops but there are no tables; with file, line and remedy.

    Notes
    -----
    Cost: O(switches x 256); for each rule O(its switches x 256), and with patterns a pass over all switches.
    """
    names, selected, idle = SwitchNames(fabric), list[npt.NDArray[np.int64]](), list[str]()
    for rule in policy.rules:
        positions, missing = ports_of(rule, policy, names, facts, strict=strict)
        selected.append(positions)
        idle += [f"line {rule.line}: {problem}" for problem in missing]
    found = PortPolicies(policy, *_merge(policy, fabric, selected), tuple(selected), tuple(idle))
    _check_lifetimes(found, fabric, facts)
    return found


def _merge(
    policy: Policy, fabric: Fabric, selected: Sequence[npt.NDArray[np.int64]]
) -> tuple[dict[Property, npt.NDArray[np.int32]], npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    shape = (fabric.switches, PORTS)
    number: dict[Property, npt.NDArray[np.int32]] = {what: np.full(shape, -1, np.int32) for what in PROPERTIES}
    plain = {what: np.full(shape, -1, np.int16) for what in PROPERTIES[:2]}
    for index, (rule, positions) in enumerate(zip(policy.rules, selected, strict=True)):
        for what, value in rule.values:
            if not rule.override:
                _check_conflict(policy, fabric, number[what].ravel()[positions], (index, what), positions)
            number[what].reshape(-1)[positions] = index
            if not isinstance(value, Breaker):
                plain[what].reshape(-1)[positions] = value
    return number, plain["hoq_life"], plain["vl_stall_count"]


def _check_conflict(
    policy: Policy,
    fabric: Fabric,
    earlier: npt.NDArray[np.int32],
    setting: tuple[int, Property],
    positions: npt.NDArray[np.int64],
) -> None:
    """Raise an error if an earlier rule has set a property of these ports to another value."""
    index, what = setting
    rule = policy.rules[index]
    wanted = dict(rule.values)[what]
    for before in np.unique(earlier).tolist():
        if before < 0 or dict(policy.rules[before].values)[what] == wanted:
            continue
        where = positions[earlier == before]
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        switch, port = divmod(int(where[0]), PORTS)
        other = policy.rules[before]
        raise OptionError(
            f"{rule.name} and {other.name} (line {other.line}) set {what} of {fabric.labels[switch]} port {port}"
            f"{more} to different values",
            path=policy.path,
            line=rule.line_of(what, "deadlock_breaker", "loop_breaker"),
            remedy="select fewer ports, or write override = true in the later rule",
        )


def _check_lifetimes(found: PortPolicies, fabric: Fabric, facts: PortFacts) -> None:
    """Check that every port with a breaker has a lifetime longer than the breaker's detection time."""
    breakers = [dict(rule.values).get("breaker") for rule in found.policy.rules]
    detect = np.array([b.detect_time if isinstance(b, Breaker) else 0.0 for b in breakers] + [0.0])  # -1: no rule
    attempts = np.array([hoq_seconds(code) for code in range(HOQ_MOST + 1)])
    life = attempts[np.where(found.hoq_life < 0, facts.opensm_hoq, found.hoq_life)]
    visits = detect[found.number["breaker"]]
    dropped = np.argwhere((visits > 0) & (life <= visits))
    if not len(dropped):
        return
    switch, port = dropped[0].tolist()
    rule, whose = found.rule("breaker", switch, port), found.rule("hoq_life", switch, port)
    assert rule is not None
    by = "OpenSM's default" if whose is None else f"{whose.name}, line {whose.line}"
    raise OptionError(
        f"at {fabric.labels[switch]} port {port} packets are dropped after"
        f" {seconds_text(float(life[switch, port]))} ({by}), and {rule.name} detects only after"
        f" {seconds_text(float(visits[switch, port]))}",
        path=found.policy.path,
        line=rule.line_of("deadlock_breaker", "loop_breaker"),
        remedy="raise hoq_life there, or lower detect_time",
    )
