"""Define workloads: messages that depend on one another, as in a collective operation or a trace of a program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import InputError, OptionError, ParseError
from routing.fabric import Fabric
from routing.formats.text import read_text
from routing.simulate.handmade import endport_of, lid_of
from routing.simulate.traffic import MOST_BYTES, Flow, Process, Traffic, senders

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Message:
    """One message of a workload.

    Attributes
    ----------
    source
        Row of the sending end port in the fabric's end-port arrays.
    lid
        Destination LID.
    bytes
        Size in bytes.
    after
        Numbers of the messages that must have arrived completely before this message is ready.
    at
        Earliest time at which the message is ready, in seconds.
    delay
        Seconds from the arrival of the last message of ``after`` until this message is ready.  If ``after`` is empty,
        the seconds count from ``at``.
    delays
        A separate delay for each message of ``after``, in seconds from the arrival of that message.  This message is
        ready when all delays have passed.  If ``delays`` is empty, ``delay`` applies.
    """

    source: int
    lid: int
    bytes: int
    after: tuple[int, ...] = ()
    at: float = 0.0
    delay: float = 0.0
    delays: tuple[float, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Messages, some of which are sent only after other messages have arrived.

    A message may also depend on messages later in the list ``messages``.  The dependencies have no cycle.
    """

    messages: tuple[Message, ...]

    def check(self) -> None:
        """Raise OptionError if a message has an impossible size, or the dependencies have a cycle."""
        for number, message in enumerate(self.messages):
            if not 1 <= message.bytes <= MOST_BYTES:
                raise OptionError(f"message {number + 1} has {message.bytes} bytes", remedy=f"use 1 to {MOST_BYTES}")
        waits = [len(message.after) for message in self.messages]
        followers: list[list[int]] = [[] for _ in self.messages]
        for number, message in enumerate(self.messages):
            for before in message.after:
                followers[before].append(number)
        free = [number for number, count in enumerate(waits) if not count]
        for number in free:
            for follower in followers[number]:
                waits[follower] -= 1
                if not waits[follower]:
                    free.append(follower)
        if len(free) < len(self.messages):
            stuck = next(number for number, count in enumerate(waits) if count)
            raise OptionError(f"message {stuck + 1} waits for itself", remedy="remove the cycle of dependencies")

    def traffic(self, mtu: int) -> Traffic:
        """Return the flows of the workload.

        Each sender has one flow, whose trace lists the sender's messages.

        ``mtu`` is the size of the largest packet in bytes.
        """
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for message in self.messages:
            rows.setdefault(message.source, []).append((0, message.lid, message.bytes))
        flows = (Flow(source, process=Process.TRACE, trace=tuple(trace)) for source, trace in rows.items())
        return Traffic(tuple(flows), mtu)


def ring_allreduce(fabric: Fabric, size: int) -> Workload:
    """Return a ring all-reduce of ``size`` bytes: 2 (n - 1) steps, in each of which CA i sends a chunk to CA i + 1.

    n is the number of CAs.  A CA sends its chunk of a step when it has received the chunk of the step before.  Each
    chunk has ``size`` / n bytes, rounded up.
    """
    rows = _ranks(fabric)
    count, chunk = len(rows), -(-size // len(rows))
    lids = fabric.endport_lid[rows].tolist()
    return Workload(tuple(
        Message(rows[i], lids[(i + 1) % count], chunk, ((step - 1) * count + (i - 1) % count,) if step else ())
        for step in range(2 * (count - 1))
        for i in range(count)
    ))  # fmt: skip


def halving_doubling(fabric: Fabric, size: int) -> Workload:
    """Return an all-reduce of ``size`` bytes by recursive halving and recursive doubling.

    The n CAs have the numbers 0 to n - 1.  In step k of the first half, pairs of CAs exchange ``size`` / 2^k bytes.
    The numbers of a pair differ only in the bit with the value n / 2^k.  The second half has the same steps in the
    opposite order.  A CA begins a step when it has received the messages of all its earlier steps.

    Raises
    ------
    OptionError
        The number of CAs is not a power of two.
    """
    rows = _ranks(fabric)
    count, rounds = len(rows), len(rows).bit_length() - 1
    if count != 1 << rounds:
        raise OptionError(f"halving-doubling needs a power of two, not {count} CAs", remedy="use ring-allreduce")
    lids = fabric.endport_lid[rows].tolist()
    steps = [*range(1, rounds + 1), *range(rounds, 0, -1)]
    return Workload(tuple(
        Message(
            rows[i], lids[i ^ (count >> k)], -(-size // (1 << k)),
            tuple(before * count + (i ^ (count >> steps[before])) for before in range(step)),
        )
        for step, k in enumerate(steps)
        for i in range(count)
    ))  # fmt: skip


def all_to_all_v(fabric: Fabric, size: int, skew: float) -> Workload:
    """Return an all-to-all exchange with messages of different sizes, and without dependencies.

    Each of the n CAs sends (n - 1) ``size`` bytes in all.  The CAs form a cycle in the order of the fabric.  The
    message to the k-th CA after the sender has a size in proportion to 1 / k^``skew``.  With ``skew`` 0 all messages
    have ``size`` bytes.
    """
    rows = _ranks(fabric)
    count, lids = len(rows), fabric.endport_lid[rows].tolist()
    weights = np.arange(1, count, dtype=float) ** -skew
    sizes = np.maximum(np.rint(weights / weights.sum() * size * (count - 1)), 1).astype(int).tolist()
    return Workload(tuple(
        Message(rows[i], lids[(i + k) % count], sizes[k - 1]) for k in range(1, count) for i in range(count)
    ))  # fmt: skip


def _ranks(fabric: Fabric) -> list[int]:
    rows = senders(fabric)
    if len(rows) < 2:
        raise OptionError(f"a collective operation needs two CAs or more, not {len(rows)}")
    return rows


def read_trace(path: Path, fabric: Fabric) -> Workload:
    """Read a trace file: one message a line, ``FROM TO BYTES`` and then options.

    Options are ``id=NAME``, ``after=NAME,NAME``, ``at=NANOSECONDS`` and ``delay=NANOSECONDS``.  FROM and TO are names,
    GUIDs or LIDs of CAs, in quotes if they contain spaces.  ``#`` begins a comment.  ``after`` may name messages of
    later lines.

    Raises
    ------
    ParseError
        A line is wrong.  The message names the file and the line.
    """
    names: dict[str, int] = {}
    found: list[tuple[int, Message, list[str]]] = []
    for line, text in enumerate(read_text(path).splitlines(), 1):
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            raise ParseError(str(error), path=path, line=line, remedy="close the quotes") from None
        if not words:
            continue
        try:
            message, name, after = _message(words, fabric)
        except InputError as error:
            raise ParseError(error.problem, path=path, line=line, remedy=error.remedy) from None
        if name in names:
            raise ParseError(f"two messages have the id {name!r}", path=path, line=line)
        if name is not None:
            names[name] = len(found)
        found.append((line, message, after))
    if not found:
        raise ParseError("there is no message", path=path, remedy="write lines such as: ca1 ca2 4096")
    for line, _, after in found:
        for name in after:
            if name not in names:
                raise ParseError(f"no message has the id {name!r}", path=path, line=line)
    return Workload(tuple(
        Message(one.source, one.lid, one.bytes, tuple(names[name] for name in after), one.at, one.delay)
        for _, one, after in found
    ))  # fmt: skip


def _message(words: Sequence[str], fabric: Fabric) -> tuple[Message, str | None, list[str]]:
    """Return the message of a line, its id, and the ids of the messages for which it waits."""
    if len(words) < 3:
        raise OptionError("a message needs FROM, TO and BYTES", remedy="write a line such as: ca1 ca2 4096")
    options = dict(word.partition("=")[::2] for word in words[3:])
    unknown = options.keys() - {"id", "after", "at", "delay"}
    if unknown:
        raise OptionError(f"there is no option {min(unknown)!r}", remedy="use id=, after=, at= or delay=")
    source, lid, size = endport_of(fabric, words[0]), lid_of(fabric, words[1]), _number(words[2], "size")
    if fabric.endport_lid[source] == lid:
        raise OptionError(f"{words[0]} sends to itself", remedy="leave the line out")
    at, delay = (_number(options.get(key, "0"), key) * 1e-9 for key in ("at", "delay"))
    after = [name for name in options.get("after", "").split(",") if name]
    return Message(source, lid, int(size), (), at, delay), options.get("id"), after


def _number(text: str, what: str) -> float:
    """Return a number of a line: digits, with a fraction if it is a time."""
    try:
        value = int(text) if what == "size" else float(text)
    except ValueError:
        value = -1
    least = 1 if what == "size" else 0
    if not least <= value <= MOST_BYTES * 1000:
        raise OptionError(f"{text!r} is not a {what}", remedy=f"use a number from {least} on")
    return value
