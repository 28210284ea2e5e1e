"""Read schedules in GOAL, the format of the simulator LogGOPSim, as workloads.

A schedule has one block for each rank, with the operations of the rank (``send``, ``recv``, ``calc``).  Further lines
each state that one operation requires another operation.  Source: Hoefler, Siebert, Lumsdaine, "Group Operation
Assembly Language", ICPP 2009.  The grammar follows public descriptions, and was not tried on files of LogGOPSim.
Differences from LogGOPSim: a send is complete as soon as it is ready, before its message has left the CA.  A CA sends
its messages in the order in which they become ready.  The attributes ``cpu`` and ``nic`` have no effect, and the
overheads of the model LogGOPS are not simulated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import ParseError
from routing.fabric import Fabric
from routing.formats.text import read_text
from routing.simulate.traffic import senders
from routing.simulate.workload import Message, Workload

MOST_DEPENDENCIES = 10_000_000
"""Largest number of dependencies between the messages of a schedule."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_COUNT = re.compile(r"num_ranks (\d+)")
_RANK = re.compile(r"rank (\d+) ?\{")
_OPERATION = re.compile(
    r"(?:(\w+): )?(?:calc (\d+)|(send|recv) (\d+)b? (?:to|from) (\d+)(?: tag (\d+))?)(?: (?:cpu|nic) \d+)*"
)
_REQUIRES = re.compile(r"(\w+) (i?requires) (\w+)")


@dataclass
class _Operation:
    """Operation of a rank.

    Attributes
    ----------
    line, rank
        Line of the file, and rank that carries out the operation.
    nanoseconds
        Duration of a ``calc``.
    peer
        Kind (``send``, ``recv``), other rank and tag of a message; None for a ``calc``.
    bytes
        Size of the message.
    requires
        Operations that have to come before this operation, as pairs (number of the operation, complete).  If
        ``complete`` is true, that operation must be complete before this one starts.  Otherwise, that operation must
        only have started.
    message
        Number of the message that the operation sends or receives.
    """

    line: int
    rank: int
    nanoseconds: int = 0
    peer: tuple[str, int, int] | None = None
    bytes: int = 0
    requires: list[tuple[int, bool]] = field(default_factory=list)
    message: int = -1


@dataclass(frozen=True)
class _Start:
    """Condition for the start of an operation, with times in nanoseconds.

    The operation does not start before the time ``at``.  ``after`` has the numbers of messages, each with a delay.  The
    operation waits for the arrival of each of these messages, and then for the delay of the message.
    """

    at: int
    after: dict[int, int]

    def later(self, nanoseconds: int) -> _Start:
        """Return a copy of this start condition in which all times are later by a number of nanoseconds."""
        return _Start(self.at + nanoseconds, {number: delay + nanoseconds for number, delay in self.after.items()})


def read_goal(path: Path, fabric: Fabric) -> Workload:
    """Read a schedule in GOAL, the format of the simulator LogGOPSim.

    Rank n of the schedule is end port n, counted from 0, among the fabric's end ports that can send.

    Raises
    ------
    ParseError
        A line is wrong, a message is not received, or operations require one another in a cycle.  The message names
        the file and the line.
    """
    operations = _operations(path, len(senders(fabric)))
    sends = _match(path, operations)
    if not sends:
        raise ParseError("there is no message", path=path, remedy="write operations such as: send 4096b to 1")
    starts, rows = _starts(path, operations), senders(fabric)
    lids = fabric.endport_lid[rows].tolist()
    messages = []
    for one in sends:
        operation, start = operations[one], starts[one]
        assert operation.peer is not None
        messages.append(Message(
            rows[operation.rank], lids[operation.peer[1]], operation.bytes, tuple(start.after), start.at * 1e-9,
            delays=tuple(delay * 1e-9 for delay in start.after.values()),
        ))  # fmt: skip
    return Workload(tuple(messages))


@dataclass
class _Block:
    """Part of a GOAL file with the operations of one rank (process), while it is read.

    Attributes
    ----------
    path, rank, ranks
        The file, the rank, and the number of ranks.
    first
        Number of the first operation of the block, among all operations.
    """

    path: Path
    rank: int
    ranks: int
    first: int
    operations: list[_Operation] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    requires: list[tuple[int, str, bool, str]] = field(default_factory=list)

    def add(self, line: int, words: str) -> None:
        """Parse one line of the block of a rank.  ``words`` is its text, and ``line`` its number in the file."""
        if match := _REQUIRES.fullmatch(words):
            self.requires.append((line, match[1], match[2] == "requires", match[3]))
            return
        match = _OPERATION.fullmatch(words)
        if match is None:
            remedy = "use calc, send, recv, requires or irequires"
            raise ParseError(f"{words!r} is not a line of a schedule", path=self.path, line=line, remedy=remedy)
        label, calc, kind, size, other, tag = match.groups()
        if label:
            self.labels[label] = len(self.operations)
        peer = (kind, int(other), int(tag or 0)) if kind else None
        if peer and (peer[1] >= self.ranks or peer[1] == self.rank or int(size) == 0):
            problem = f"rank {self.rank} cannot exchange {size} bytes with rank {other}"
            raise ParseError(problem, path=self.path, line=line)
        self.operations.append(_Operation(line, self.rank, int(calc or 0), peer, int(size or 0)))

    def finished(self) -> list[_Operation]:
        """Return the operations of the block, with the numbers of the operations that they require."""
        for line, name, complete, before in self.requires:
            for each in (name, before):
                if each not in self.labels:
                    problem = f"no operation of rank {self.rank} has the label {each!r}"
                    raise ParseError(problem, path=self.path, line=line)
            self.operations[self.labels[name]].requires.append((self.first + self.labels[before], complete))
        return self.operations


def _operations(path: Path, most: int) -> list[_Operation]:
    """Return the operations of all ranks.  A file may have at most ``most`` ranks."""
    found, count = list[_Operation](), 0
    block: _Block | None = None
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), read_text(path))
    for line, words in enumerate((" ".join(row.split()) for row in text.splitlines()), 1):
        if block is not None and words == "}":
            found += block.finished()
            block = None
        elif block is not None and words:
            block.add(line, words)
        elif match := _COUNT.fullmatch(words):
            count = int(match[1])
            if count > most:
                problem = f"the schedule has {count} ranks, and the fabric {most} CAs"
                raise ParseError(problem, path=path, line=line, remedy="use a larger fabric")
        elif match := _RANK.fullmatch(words):
            block = _Block(path, int(match[1]), count, len(found))
            if block.rank >= count:
                raise ParseError(f"there is no rank {block.rank}", path=path, line=line, remedy="raise num_ranks")
        elif words:
            raise ParseError(f"{words!r} is not a line of a schedule", path=path, line=line, remedy="begin a rank")
    if block is not None:
        raise ParseError(f"the block of rank {block.rank} does not end", path=path, remedy="close it by }")
    return found


def _match(path: Path, operations: list[_Operation]) -> list[int]:
    """Assign numbers to the messages of the operations, and return the sending operation of each message.

    The n-th send with some tag from one rank to another rank belongs to the n-th receive with this tag from that
    sender.
    """
    waiting, sends = defaultdict[tuple[int, int, int], list[int]](list), list[int]()
    for number, one in enumerate(operations):
        if one.peer is not None and one.peer[0] == "send":
            waiting[one.rank, one.peer[1], one.peer[2]].append(number)
            one.message = len(sends)
            sends.append(number)
    for one in operations:
        if one.peer is not None and one.peer[0] == "recv":
            queue = waiting[one.peer[1], one.rank, one.peer[2]]
            if not queue:
                raise ParseError("no rank sends this message", path=path, line=one.line)
            one.message = operations[queue.pop(0)].message
    left = min((operations[number].line for queue in waiting.values() for number in queue), default=None)
    if left is not None:
        raise ParseError("no rank receives this message", path=path, line=left)
    return sends


def _starts(path: Path, operations: list[_Operation]) -> list[_Start]:
    """Return the condition for the start of each operation."""
    waits = [len(one.requires) for one in operations]
    followers = defaultdict[int, list[int]](list)
    for number, one in enumerate(operations):
        for before, _ in one.requires:
            followers[before].append(number)
    order = [number for number, count in enumerate(waits) if not count]
    starts, total = [_Start(0, {})] * len(operations), 0
    for number in order:
        one = operations[number]
        starts[number] = _latest([
            _completion(operations[before], starts[before]) if complete else starts[before]
            for before, complete in one.requires
        ])  # fmt: skip
        total += len(starts[number].after)
        if total > MOST_DEPENDENCIES:
            raise ParseError("the messages have too many dependencies", path=path, line=one.line)
        for follower in followers[number]:
            waits[follower] -= 1
            if not waits[follower]:
                order.append(follower)
    if len(order) < len(operations):
        line = next(one.line for one, count in zip(operations, waits, strict=True) if count)
        raise ParseError("this operation requires itself", path=path, line=line)
    return starts


def _completion(operation: _Operation, start: _Start) -> _Start:
    """Return the condition under which an operation is complete, given the condition for its start."""
    if operation.peer is None:
        return start.later(operation.nanoseconds)
    if operation.peer[0] == "recv":
        return _latest([start, _Start(0, {operation.message: 0})])
    return start


def _latest(starts: list[_Start]) -> _Start:
    """Return the condition that is met when all of the given conditions are met."""
    after: dict[int, int] = {}
    for start in starts:
        for number, delay in start.after.items():
            after[number] = max(delay, after.get(number, 0))
    return _Start(max((start.at for start in starts), default=0), after)
