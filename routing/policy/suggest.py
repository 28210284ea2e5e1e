"""Compute a policy for given routing tables.

The packet lifetimes are longer than congestion alone can delay a packet, so that only deadlocked packets are dropped.
Ports on credit loops get a deadlock breaker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.policy.drain import drain_times
from routing.policy.facts import PortFacts, loop_channels, port_facts
from routing.policy.model import (
    BREAKER_TIMES,
    HOQ_NEVER,
    OPENSM_HOQ,
    OPENSM_LEAF_HOQ,
    OPENSM_STALL,
    Role,
    hoq_code,
    hoq_seconds,
    seconds_text,
)
from routing.tables import Routing

MARGIN = 2.0
"""A proposed head-of-queue lifetime is at least this number times the longest wait that congestion can cause."""
_USUAL: Mapping[Role, int] = {"ca-facing": OPENSM_LEAF_HOQ, "switch-facing": OPENSM_HOQ, "loop": 0}
"""Least proposed HOQLife value, by role of the port."""


@dataclass(frozen=True)
class Suggestion:
    """Proposed policy rule for all ports with one role.

    Attributes
    ----------
    role
        Role of the ports, such as "ca-facing" or "loop" (on a credit loop).
    ports
        Number of ports with that role.
    drain_time
        Longest time in seconds for which a packet can wait at the head of a queue of one of these ports, if there is no
        deadlock.
    hoq_life
        Proposed head-of-queue lifetime, as a HOQLife value.
    detect_time, check_period, release_period
        Times of the proposed Deadlock Breaker in seconds.  0 means that no breaker is proposed.
    """

    role: Role
    ports: int
    drain_time: float
    hoq_life: int
    detect_time: float = 0.0
    check_period: float = 0.0
    release_period: float = 0.0


def suggest(
    fabric: Fabric, routing: Routing, *, packet_bytes: int = 4096, burst_bytes: int = 65536, breaker: bool = True
) -> tuple[Suggestion, ...]:
    """Propose up to three policy rules: for ports to CAs, for ports to switches, and for ports on credit loops.

    :func:`~routing.policy.drain.drain_times` computes the longest wait of a packet without a deadlock.  The proposed
    head-of-queue lifetime is at least twice this wait.  Ports on credit loops get the lowest HOQLife value with such a
    lifetime.  Other ports cannot have a deadlock and need no short lifetime, so they get at least OpenSM's default.

    With ``breaker``, ports on credit loops get a Deadlock Breaker.  The breaker's detection time is the longest wait,
    but at least 10 packet times.  The lifetime is then also at least twice the detection time.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    packet_bytes, burst_bytes
        Size in bytes of the largest packet (MTU and headers), and number of bytes that each sender sends at once.
    breaker
        Whether to propose deadlock breakers on credit loops.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    """
    routing.check_shapes(fabric)
    facts = port_facts(fabric, loop_channels(fabric, routing))
    waits = drain_times(fabric, routing, packet_bytes=packet_bytes, burst_bytes=burst_bytes)
    return tuple(_for_roles(facts, waits, packet_bytes, breaker=breaker))


def _for_roles(
    facts: PortFacts, waits: npt.NDArray[np.float64], packet_bytes: int, *, breaker: bool
) -> Iterator[Suggestion]:
    for role, usual in _USUAL.items():
        ports = facts.role[role]
        if not ports.any():
            continue
        worst = float(waits[ports].max())
        code = max(_life(MARGIN * worst), usual)
        if role != "loop" or not breaker:
            yield Suggestion(role, int(ports.sum()), worst, code)
            continue
        slowest = 8e-9 * packet_bytes / float(facts.rate[ports].min())
        detect = _round_up(max(worst, 10 * slowest))
        yield Suggestion(
            role,
            int(ports.sum()),
            worst,
            max(code, _life(MARGIN * detect)),
            detect,
            detect / 10,
            _round_up(10 * slowest),
        )


def _life(seconds: float) -> int:
    try:
        return hoq_code(seconds)
    except OptionError:
        return HOQ_NEVER


def _round_up(seconds: float) -> float:
    """Round up to two significant digits, so that the policy file is easy to read."""
    size = 10.0 ** (np.floor(np.log10(seconds)) - 1)
    return float(np.ceil(seconds / size - 1e-9) * size)


def rules_text(found: tuple[Suggestion, ...], fabric: Fabric, *, assumed: str | None = None) -> str:
    """Return the text of a policy file with the proposed rules.  Comments in the file state reasons and assumptions.

    ``found`` lists the proposals.  ``assumed`` is the text of an assumption about unknown SLs or SL2VL tables, or None
    if all tables are known.
    """
    lines = [f"# Proposed by ibnue for {json.dumps(fabric.name)} and its tables."]
    if assumed is not None:
        lines.append(f"# Assumed: {assumed}.")
    for one in found:
        held = hoq_seconds(one.hoq_life)
        life = "never dropped" if one.hoq_life >= HOQ_NEVER else f"dropped after {seconds_text(held)}"
        waits = f"without a deadlock, a packet waits at most {seconds_text(one.drain_time)} at the head of a queue"
        lines += [
            "",
            f"# {count_noun(one.ports, 'port')}; {waits}; it is {life}",
            "[[rule]]",
            f'name = "{one.role} ports"',
            f'role = "{one.role}"',
            f"hoq_life = {one.hoq_life}",
            f"vl_stall_count = {OPENSM_STALL}",
        ]
        if one.role == "loop":
            lines.append("override = true")
        if one.detect_time:
            keys, times = list(BREAKER_TIMES), (one.detect_time, one.check_period, one.release_period)
            message = ", ".join(f'{key} = "{_unit(time)}"' for key, time in zip(keys, times, strict=True))
            lines.append(f"deadlock_breaker = {{ {message}, extra_mtus = 1 }}")
    if all(one.role != "loop" for one in found):
        lines += ["", "# These tables have no credit loop, so there is no rule for ports on a credit loop."]
    return "\n".join(lines) + "\n"


def _unit(seconds: float) -> str:
    return seconds_text(seconds).replace(" ", "")
