"""Define the data model of a port policy: rules, the properties that they set, and how InfiniBand encodes
the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routing.errors import OptionError
from routing.numerals import count_noun

HOQ_UNIT = 4.096e-6
"""Lifetime in seconds for the HOQLife value 0.  Each further value doubles the lifetime."""
HOQ_NEVER = 20
"""Smallest HOQLife value that means "never drop a packet at the head of a queue"."""
HOQ_MOST, STALL_MOST, EXTRA_MOST = 31, 7, 255
OPENSM_HOQ, OPENSM_LEAF_HOQ, OPENSM_STALL = 18, 16, 7
"""OpenSM's defaults: HOQLife of ports to switches, HOQLife of ports to CAs and routers, and VLStallCount of all
ports.
"""

BREAKER_TIMES: Mapping[str, float] = {"detect_time": 100e-6, "check_period": 10e-6, "release_period": 10e-6}
"""Default values of the three times of a deadlock breaker in seconds, by attribute of :class:`Breaker`."""

Role = Literal["leaf", "core", "ca-facing", "switch-facing", "loop"]
ROLES: tuple[Role, ...] = ("leaf", "core", "ca-facing", "switch-facing", "loop")

BreakerKind = Literal["none", "loop", "deadlock"]
Property = Literal["hoq_life", "vl_stall_count", "breaker"]
PROPERTIES: tuple[Property, ...] = ("hoq_life", "vl_stall_count", "breaker")


def hoq_seconds(code: int) -> float:
    """Convert the HOQLife value ``code`` to seconds: 4.096 us x 2^``code``, and infinity for values of 20 or more.

    Source: IBA 14.2.5.6, HOQLife.
    """
    return math.inf if code >= HOQ_NEVER else HOQ_UNIT * float(2**code)


def hoq_code(seconds: float) -> int:
    """Return the smallest HOQLife value with a lifetime of at least the given number of seconds.

    Raises
    ------
    OptionError
        The time exceeds the longest lifetime, 2.15 s.
    """
    code = max(0, math.ceil(math.log2(seconds / HOQ_UNIT) - 1e-9)) if seconds > 0 else 0
    if code >= HOQ_NEVER:
        raise OptionError(
            f"{seconds:g} s is more than the longest HOQLife ({hoq_seconds(HOQ_NEVER - 1):.3g} s)",
            remedy='write "never" to drop nothing',
        )
    return code


@dataclass(frozen=True)
class Breaker:
    """Settings of the deadlock breaker of one port, a protocol that an agent on the switch runs.

    Attributes
    ----------
    kind
        "none", "loop" or "deadlock".  A Loop Breaker moves packets of the credit loop to other paths, and drops some
        packets if necessary.  A Deadlock Breaker adds buffer space on the credit loop.
    detect_time
        A port is suspected of a deadlock if no packet leaves a non-empty queue for this number of seconds.
    check_period
        Seconds between two control messages of a suspected port.
    release_period
        Number of seconds for which a Deadlock Breaker serves only the input on the credit loop.
    extra_mtus
        Buffer space, in MTUs, that a Deadlock Breaker adds to this input during ``release_period``.
    """

    kind: BreakerKind
    detect_time: float = 0.0
    check_period: float = 0.0
    release_period: float = 0.0
    extra_mtus: int = 1

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        summary = f"{self.kind}, detects after {seconds_text(self.detect_time)}, checks every"
        summary = f"{summary} {seconds_text(self.check_period)}"
        if self.kind == "loop":
            return summary
        mtus = count_noun(self.extra_mtus, "extra MTU")
        return f"{summary}, releases for {seconds_text(self.release_period)} with {mtus}"


Value = int | Breaker


@dataclass(frozen=True)
class Speed:
    """Condition of a rule on the speed of a port's link: data rate, or signalling rate of one physical lane.

    Attributes
    ----------
    relation, gigabits
        Comparison operator (``=``, ``<``, ``<=``, ``>``, ``>=``), and the data rate in Gb/s with which the link's data
        rate is compared.  Both are ignored if ``lane_speed`` is given.
    lane_speed
        Signalling rate of one physical lane in Gb/s that the link must have.  None: the rule compares the data rate.
    """

    relation: str = "="
    gigabits: float = 0.0
    lane_speed: float | None = None


@dataclass(frozen=True)
class Selector:
    """Conditions by which a rule selects ports.  A port must meet all conditions.

    Attributes
    ----------
    switches
        Names, GUIDs or patterns of switches.  A pattern is compared with the name and the GUID of a switch.  The switch
        of the port must match at least one element of the tuple.  An empty tuple means any switch.
    ports
        Port numbers.  An empty tuple means any port.
    roles
        Roles such as "leaf" or "ca-facing".  The port must have all of these roles.
    speed
        Condition on the speed of the link; None: any speed.
    """

    switches: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    roles: tuple[Role, ...] = ()
    speed: Speed | None = None


@dataclass(frozen=True)
class Rule:
    """One rule of a policy: the ports that it selects, and the values that it gives to their properties.

    Attributes
    ----------
    name
        Name of the rule for printing.  The name is "rule 1" and so on if the file states no name.
    line
        First line of the rule in its file.
    select
        Conditions that select the ports.
    values
        Pairs of property and value, in the order of :data:`PROPERTIES`.
    lines
        Pairs of a key of the rule and the key's line in the file, for error messages.
    override
        Whether the rule may replace values that an earlier rule sets.
    """

    name: str
    line: int
    select: Selector
    values: tuple[tuple[Property, Value], ...]
    lines: tuple[tuple[str, int], ...] = ()
    override: bool = False

    def line_of(self, *keys: str) -> int:
        """Return the number of the line at which a key of the rule stands in the policy file.

        The key is the first one of ``keys`` that the rule has.  If the rule has none of ``keys``, the result is the
        number of the rule's first line.
        """
        known = dict(self.lines)
        return next((known[key] for key in keys if key in known), self.line)


@dataclass(frozen=True)
class Policy:
    """All rules of one policy file.

    Attributes
    ----------
    path
        Path of the file.
    rules
        The rules in the order of the file.
    """

    path: str
    rules: tuple[Rule, ...]


def seconds_text(seconds: float) -> str:
    """Format a time in a suitable unit (s, ms, us or ns), for printing."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def value_text(what: Property, value: Value) -> str:
    """Format the value of a property together with its meaning, for printing."""
    if isinstance(value, Breaker):
        return str(value)
    if what == "hoq_life":
        held = hoq_seconds(value)
        return f"{value} (never drops)" if math.isinf(held) else f"{value} (drops after {seconds_text(held)})"
    return f"{value} (stalls after {count_noun(value, 'drop')} in a row)"
