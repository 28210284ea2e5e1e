"""What a policy can say of a port, and how InfiniBand writes it down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routing.errors import OptionError
from routing.numerals import number_of

HOQ_UNIT = 4.096e-6
"""Seconds of HOQLife 0; every step doubles it."""
HOQ_NEVER = 20
"""The first HOQLife that means that nothing is ever dropped at the head of a queue."""
HOQ_MOST, STALL_MOST, EXTRA_MOST = 31, 7, 255
OPENSM_HOQ, OPENSM_LEAF_HOQ, OPENSM_STALL = 18, 16, 7
"""OpenSM's own: towards switches, towards CAs and routers, and VLStallCount for both."""

BREAKER_TIMES: Mapping[str, float] = {"detect_time": 100e-6, "check_period": 10e-6, "release_period": 10e-6}
"""Times of a breaker in seconds, as they are where a rule says nothing of them."""

Role = Literal["leaf", "core", "ca-facing", "switch-facing", "loop"]
ROLES: tuple[Role, ...] = ("leaf", "core", "ca-facing", "switch-facing", "loop")

BreakerKind = Literal["none", "loop", "deadlock"]
Property = Literal["hoq_life", "vl_stall_count", "breaker"]
PROPERTIES: tuple[Property, ...] = ("hoq_life", "vl_stall_count", "breaker")


def hoq_seconds(code: int) -> float:
    """Head-of-queue lifetime in seconds; infinite from 20 on (IBA 14.2.5.6, HOQLife: 4.096 us x 2^code)."""
    return math.inf if code >= HOQ_NEVER else HOQ_UNIT * float(2**code)


def hoq_code(seconds: float) -> int:
    """The least HOQLife that is no shorter than that many seconds.

    Raises
    ------
    OptionError
        More than the longest lifetime there is, 2.15 s.
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
    """What a switch agent does about deadlocks at a port.

    Attributes
    ----------
    kind
        "none", "loop" (Loop Breaker: reroutes, and drops what it must) or "deadlock" (Deadlock Breaker: lends room).
    detect_time
        Seconds for which nothing may leave a queue that is not empty before the port is suspected.
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
        told = f"{self.kind}, detects after {seconds_text(self.detect_time)}, checks every"
        told = f"{told} {seconds_text(self.check_period)}"
        if self.kind == "loop":
            return told
        mtus = number_of(self.extra_mtus, "extra MTU")
        return f"{told}, releases for {seconds_text(self.release_period)} with {mtus}"


Value = int | Breaker


@dataclass(frozen=True)
class Speed:
    """Links by data rate: an operator (``=``, ``<``, ``<=``, ``>``, ``>=``) and Gb/s; or by the name of a lane's speed.

    Attributes
    ----------
    relation, gigabits
        Of the data rate of the whole link.
    lane
        Signalling rate of one lane in Gb/s; with it the others do not count.
    """

    relation: str = "="
    gigabits: float = 0.0
    lane: float | None = None


@dataclass(frozen=True)
class Selector:
    """Which ports a rule is for: those to which all of this applies.

    Attributes
    ----------
    switches
        Patterns of switch names, or of GUIDs where they begin with 0x; one of them has to fit; empty: any switch.
    ports
        Port numbers; empty: any port.
    roles
        All of these.
    speed
        Of the link; None: any.
    """

    switches: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    roles: tuple[Role, ...] = ()
    speed: Speed | None = None


@dataclass(frozen=True)
class Rule:
    """Ports, and what is set there.

    Attributes
    ----------
    name
        For people; "rule 1" and so on where the file gives none.
    line
        Where it begins in its file.
    select
        Its ports.
    values
        What it sets, by property; pairs in the order of :data:`PROPERTIES`.
    lines
        Where each key of the rule stands, by key.
    override
        Whether it may change what an earlier rule has set.
    """

    name: str
    line: int
    select: Selector
    values: tuple[tuple[Property, Value], ...]
    lines: tuple[tuple[str, int], ...] = ()
    override: bool = False

    def line_of(self, *keys: str) -> int:
        """Line of the first of these keys that the rule has, else its own."""
        known = dict(self.lines)
        return next((known[key] for key in keys if key in known), self.line)


@dataclass(frozen=True)
class Policy:
    """A file of rules.

    Attributes
    ----------
    path
        Where it came from.
    rules
        In the order of the file.
    """

    path: str
    rules: tuple[Rule, ...]


def seconds_text(seconds: float) -> str:
    """A time with a unit that people read."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def value_text(what: Property, value: Value) -> str:
    """A value with what it means."""
    if isinstance(value, Breaker):
        return str(value)
    if what == "hoq_life":
        held = hoq_seconds(value)
        return f"{value} (never drops)" if math.isinf(held) else f"{value} (drops after {seconds_text(held)})"
    return f"{value} (stalls after {number_of(value, 'drop')} in a row)"
