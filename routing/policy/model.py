"""Data model of a policy: rules, the properties that they set, and the InfiniBand encoding of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routing.errors import OptionError
from routing.numerals import count_noun

HOQ_UNIT = 4.096e-6
"""Lifetime of HOQLife 0 in seconds; every step doubles it."""
HOQ_NEVER = 20
"""The first HOQLife with which packets at the head of a queue are never dropped."""
HOQ_MOST, STALL_MOST, EXTRA_MOST = 31, 7, 255
OPENSM_HOQ, OPENSM_LEAF_HOQ, OPENSM_STALL = 18, 16, 7
"""OpenSM's defaults: HOQLife towards switches, HOQLife towards CAs and routers, and VLStallCount for both."""

BREAKER_TIMES: Mapping[str, float] = {"detect_time": 100e-6, "check_period": 10e-6, "release_period": 10e-6}
"""Default times of a breaker in seconds."""

Role = Literal["leaf", "core", "ca-facing", "switch-facing", "loop"]
ROLES: tuple[Role, ...] = ("leaf", "core", "ca-facing", "switch-facing", "loop")

BreakerKind = Literal["none", "loop", "deadlock"]
Property = Literal["hoq_life", "vl_stall_count", "breaker"]
PROPERTIES: tuple[Property, ...] = ("hoq_life", "vl_stall_count", "breaker")


def hoq_seconds(code: int) -> float:
    """Return a head-of-queue lifetime in seconds; infinite from 20 on (IBA 14.2.5.6, HOQLife: 4.096 us x 2^code)."""
    return math.inf if code >= HOQ_NEVER else HOQ_UNIT * float(2**code)


def hoq_code(seconds: float) -> int:
    """Return the least HOQLife that is at least as long as a number of seconds.

    Raises
    ------
    OptionError
        The time exceeds the longest lifetime, 2.15 s.
    """
    code = max(0, math.ceil(math.log2(seconds / HOQ_UNIT) - 1e-9)) if seconds > 0 else 0
    if code >= HOQ_NEVER:
        raise OptionError(
            f"{seconds:g} s is more than HOQLife can say ({hoq_seconds(HOQ_NEVER - 1):.3g} s)",
            remedy='write "never" to drop nothing',
        )
    return code


@dataclass(frozen=True)
class Breaker:
    """Handling of deadlocks at a port by a switch agent.

    Attributes
    ----------
    kind
        "none", "loop" (Loop Breaker: reroutes packets, and drops some if necessary) or "deadlock" (Deadlock Breaker:
        adds buffer space).
    detect_time
        Seconds without a packet leaving a non-empty queue after which the port is suspected.
    check_period
        Seconds between the messages of a suspected port.
    release_period
        Seconds for which a Deadlock Breaker serves one input alone.
    extra_mtus
        MTUs that a Deadlock Breaker adds to the input's buffer meanwhile.
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
    """Selection of links by data rate, or by the signalling rate of a physical lane.

    Attributes
    ----------
    relation, gigabits
        Operator (``=``, ``<``, ``<=``, ``>``, ``>=``) and data rate of the link in Gb/s to compare with.
    lane
        Signalling rate of one physical lane in Gb/s; if given, the other attributes are ignored.
    """

    relation: str = "="
    gigabits: float = 0.0
    lane: float | None = None


@dataclass(frozen=True)
class Selector:
    """Selection of the ports of a rule; all conditions must be met.

    Attributes
    ----------
    switches
        Patterns of switch names, or of GUIDs if they begin with 0x; one of them must match; empty: any switch.
    ports
        Port numbers; empty: any port.
    roles
        Roles; the port must have all of them.
    speed
        Speed of the link; None: any.
    """

    switches: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    roles: tuple[Role, ...] = ()
    speed: Speed | None = None


@dataclass(frozen=True)
class Rule:
    """Rule of a policy: ports, and values of their properties.

    Attributes
    ----------
    name
        Name for printing; "rule 1" and so on if the file gives none.
    line
        First line of the rule in its file.
    select
        Selection of its ports.
    values
        Pairs of property and value, in the order of :data:`PROPERTIES`.
    lines
        Pairs of key and its line in the file.
    override
        Whether the rule may change values of an earlier rule.
    """

    name: str
    line: int
    select: Selector
    values: tuple[tuple[Property, Value], ...]
    lines: tuple[tuple[str, int], ...] = ()
    override: bool = False

    def line_of(self, *keys: str) -> int:
        """Return the line of the first of these keys that the rule has, else the line of the rule."""
        known = dict(self.lines)
        return next((known[key] for key in keys if key in known), self.line)


@dataclass(frozen=True)
class Policy:
    """Policy: the rules of a file.

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
    """Return a time with a suitable unit, for printing."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def value_text(what: Property, value: Value) -> str:
    """Return a value with its meaning, for printing."""
    if isinstance(value, Breaker):
        return str(value)
    if what == "hoq_life":
        held = hoq_seconds(value)
        return f"{value} (never drops)" if math.isinf(held) else f"{value} (drops after {seconds_text(held)})"
    return f"{value} (stalls after {count_noun(value, 'drop')} in a row)"
