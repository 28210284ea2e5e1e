"""Apply a policy to a fabric: compute the value of each property at each port, and the rule that sets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.policy.facts import PORTS, PortFacts
from routing.policy.model import HOQ_MOST, PROPERTIES, Breaker, Policy, Property, Rule, Value, hoq_seconds, seconds_text
from routing.policy.selection import SwitchNames, ports_of


@dataclass(frozen=True, eq=False)
class PortPolicies:
    """Values that a policy gives to all switch ports of a fabric.

    Attributes
    ----------
    policy
        Policy with its rules.
    number
        int32[S, 256] for each property: index of the rule that sets the property at the port, or -1 if no rule sets it.
    hoq_life, vl_stall_count
        int16[S, 256] for each property: value of the property, or -1 if no rule sets it.
    selected
        int64[N] for each rule: the ports that the rule selects, as ``switch * 256 + port``, ascending.
    unused
        Descriptions of the patterns and port numbers in rules that match no switch or port, with the lines of the
        rules.
    """

    policy: Policy
    number: Mapping[Property, npt.NDArray[np.int32]]
    hoq_life: npt.NDArray[np.int16]
    vl_stall_count: npt.NDArray[np.int16]
    selected: tuple[npt.NDArray[np.int64], ...]
    unused: tuple[str, ...] = field(default=())

    @property
    def touched(self) -> npt.NDArray[np.bool_]:
        """bool[S, 256]: ports for which some policy rule sets at least one property."""
        return np.asarray(np.stack([self.number[what] >= 0 for what in PROPERTIES]).any(axis=0))

    def selects(self, rule: int, switch: int, port: int) -> bool:
        """Return whether the policy rule with index ``rule`` applies to a port of a switch."""
        positions, position = self.selected[rule], switch * PORTS + port
        at = int(np.searchsorted(positions, position))
        return at < len(positions) and int(positions[at]) == position

    def decides(self, rule: int) -> int:
        """Return the number of ports at which a rule determines at least one property.

        The rule that determines a property of a port is the last rule that sets this property at the port.
        """
        positions, whats = self.selected[rule], [what for what, _ in self.policy.rules[rule].values]
        return int(np.stack([self.number[what].ravel()[positions] == rule for what in whats]).any(axis=0).sum())

    def rule(self, what: Property, switch: int, port: int) -> Rule | None:
        """Return the policy rule that determines the property ``what`` of a port, such as "hoq_life".  None if no rule
        determines the property.
        """
        number = int(self.number[what][switch, port])
        return None if number < 0 else self.policy.rules[number]

    def value(self, what: Property, switch: int, port: int) -> Value | None:
        """Return the value that the policy gives to the property ``what`` of a port, such as "hoq_life".  None if no
        rule sets the property.
        """
        rule = self.rule(what, switch, port)
        return None if rule is None else dict(rule.values)[what]

    def breaker(self, switch: int, port: int) -> Breaker:
        """Return the deadlock breaker that the policy gives to a port.  The kind of the breaker is "none" if no rule
        sets a breaker.
        """
        found = self.value("breaker", switch, port)
        return found if isinstance(found, Breaker) else Breaker("none")


def apply_rules(policy: Policy, fabric: Fabric, facts: PortFacts, *, strict: bool = True) -> PortPolicies:
    """Compute the value of each property at each port of a fabric from the rules of a policy.

    A later rule may always repeat the value of an earlier rule.  Only with ``override = true`` may a later rule set
    another value.

    Parameters
    ----------
    policy, fabric, facts
        Policy, fabric, and the fabric's ports from :func:`port_facts`.
    strict
        Whether it is an error if a pattern matches no switch, or if no selected switch has a port with a given number.
        On a running fabric such a mismatch should not be an error, because a switch may be down.  Without ``strict``,
        the mismatch is only listed in ``unused``, and the rule applies to the ports that do match.

    Raises
    ------
    OptionError
        Two rules contradict each other, or a rule selects ports on credit loops although there are no tables.  Or the
        head-of-queue lifetime of a port is not longer than the detection time of its deadlock breaker.  With
        ``strict``, a pattern or port number matches nothing.  The error names file, line and remedy.

    Notes
    -----
    Cost: O(256 S) for S switches.  Each rule costs O(256 x the number of its switches), and a pass over all switches
    for each pattern.
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
    """Raise OptionError if a rule sets a property of a port for which an earlier rule has set another value.

    ``setting`` has two elements: the index of the rule, and the property.  ``positions`` are the rule's ports, as
    ``switch * 256 + port``.  For each of these ports, ``earlier`` is the index of the last earlier rule that has set
    the property, or -1 if there is none.
    """
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
    """Check that packets may wait long enough for a deadlock to be detected.

    At each port with a deadlock breaker, the head-of-queue lifetime must be longer than the breaker's detection time.
    """
    breakers = [dict(rule.values).get("breaker") for rule in found.policy.rules]
    # `detect` has the detection time of each rule's breaker (0: no breaker), and a 0 as its last element.  A port whose
    # breaker no rule sets has the rule index -1, which selects this last element.
    detect = np.array([b.detect_time if isinstance(b, Breaker) else 0.0 for b in breakers] + [0.0])
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
