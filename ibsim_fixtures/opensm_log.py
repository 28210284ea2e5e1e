"""Parse OpenSM's log incrementally, to find events with their times, and sweeps."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path


class EventKind(enum.Enum):
    """Kind of a message in OpenSM's log."""

    HEAVY_SWEEP = "heavy sweep"
    ROUTING = "building routing"
    TABLES = "tables configured"
    SUBNET_UP = "subnet up"
    NO_ENGINE = "no routing engine was able"
    FAILED_SWEEP = "errors during initialization"
    TRAP = "trap"
    MASTER = "master"
    ERROR = "error"
    EXIT = "exit"
    OTHER = "other"


@dataclass(frozen=True)
class Event:
    """One message of OpenSM's log.

    Attributes
    ----------
    kind
        Kind of the message.
    text
        Text of the message without time and flags.
    seconds
        Time in seconds by OpenSM's clock.  The year is unknown, so only differences are meaningful.
    position
        Offset in the log file at which the next message begins, in bytes.
    detail
        Name of the routing engine (for ROUTING and TABLES), otherwise empty.
    """

    kind: EventKind
    text: str
    seconds: float
    position: int
    detail: str = ""


@dataclass(frozen=True)
class Sweep:
    """Heavy sweep (discovery and routing) that ended with SUBNET UP.

    Attributes
    ----------
    engine
        Engine whose tables were configured; None if the sweep kept the previous tables.
    tried
        All engines that OpenSM has called, in the order of the calls.
    routing_seconds
        Number of seconds from the first message "building routing with" to "tables configured".  None if one of these
        messages is missing.
    seconds
        Seconds from the start of the sweep to SUBNET UP.
    errors
        Errors that OpenSM logged during the sweep.
    position
        Position of the end of the sweep in the log file, in bytes, for use as the argument ``after`` of
        :func:`finished_sweep`.
    """

    engine: str | None
    tried: tuple[str, ...]
    routing_seconds: float | None
    seconds: float
    errors: tuple[str, ...]
    position: int


_HEAD = re.compile(rb"^(\w{3} [ \d]\d \d\d:\d\d:\d\d) (\d{6}) \[[0-9A-F]+\] 0x([0-9a-f]+) -> (.*)$", re.MULTILINE)
_ENGINE = re.compile(r"building routing with '([^']+)'|osm_ucast_mgr_process: (\S+) tables configured")
# OpenSM treats the keyword no_fallback as the name of an engine, too, and logs this error.  The error has no other
# effect.
_NO_ERROR = "Failed to setup routing engine 'no_fallback'"
_SIGNS = (
    ("INITIATING HEAVY SWEEP", EventKind.HEAVY_SWEEP),
    ("building routing with '", EventKind.ROUTING),
    ("tables configured on all switches", EventKind.TABLES),
    ("No routing engine able to successfully configure", EventKind.NO_ENGINE),
    ("Errors during initialization", EventKind.FAILED_SWEEP),
    ("Received Generic Notice", EventKind.TRAP),
    ("Entering MASTER state", EventKind.MASTER),
    ("Exiting SM", EventKind.EXIT),
)


def _flat(text: str) -> str:
    """Return a log message as one line, without the asterisks that OpenSM draws around some messages."""
    return " ".join(text.replace("**", " ").split())


def _kind(flags: int, text: str) -> EventKind:
    if text == "SUBNET UP":
        return EventKind.SUBNET_UP
    for sign, kind in _SIGNS:
        if sign in text:
            return kind
    return EventKind.ERROR if flags & 0x7F == 1 and _NO_ERROR not in text else EventKind.OTHER


class LogReader:
    """Reader of a growing log file.  Each call of :meth:`read` parses only the new text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self._read_to = 0

    def read(self) -> list[Event]:
        """Return all events of the log so far.  A message that is still being written is left for the next call."""
        try:
            # A wait calls this method 200 times a second, and the file has rarely grown since the call before.
            if self.path.stat().st_size == self._read_to:
                return self.events
            with self.path.open("rb") as file:
                file.seek(self._read_to)
                added = file.read()
        except FileNotFoundError:
            return self.events
        added = added[: added.rfind(b"\n") + 1]
        heads = list(_HEAD.finditer(added))
        ends = [*(head.start() for head in heads[1:]), len(added)]
        end = 0
        for head, end in zip(heads, ends, strict=False):
            text = added[head.start(4) : end].decode(errors="replace")
            # Some messages are boxes of asterisks with several lines.  Such a message is parsed only when OpenSM has
            # written all of its lines.
            if head is heads[-1] and _flat(text).endswith(("do_sweep:", "hop_0:", "up_msg:")):
                self._read_to += head.start()
                return self.events
            self._add(head, text, self._read_to + end)
        self._read_to += end
        return self.events

    def _add(self, head: re.Match[bytes], text: str, position: int) -> None:
        # The log does not state the year, and only differences of times are used.  So the year 2024 is assumed.  2024
        # is a leap year, in which 29 February is a valid date.
        stamp = datetime.strptime(f"2024 {head[1].decode()}", "%Y %b %d %H:%M:%S").replace(tzinfo=timezone.utc)
        text = _flat(text)
        kind = _kind(int(head[3], 16), text)
        engine = _ENGINE.search(text)
        detail = (engine[1] or engine[2]) if engine else ""
        self.events.append(Event(kind, text, stamp.timestamp() + int(head[2]) / 1e6, position, detail))


def finished_sweep(events: list[Event], after: int, *, any_start: bool = False) -> Sweep | None:
    """Return the first sweep that began after a position in the log and reached SUBNET UP; None if no sweep has.

    A sweep that began earlier may have missed the latest changes of the fabric.

    Parameters
    ----------
    events
        All events of the log.
    after
        Position in the log file, in bytes.
    any_start
        Whether a sweep that began before this position is accepted, too.
    """
    start: Event | None = None
    inside: list[Event] = []
    for event in events:
        if event.kind is EventKind.HEAVY_SWEEP:
            start, inside = event, []
        inside.append(event)
        if event.kind is not EventKind.SUBNET_UP or event.position <= after or start is None:
            continue
        if any_start or start.position > after:
            return _sweep(inside)
    return None


def last_sweep(events: list[Event]) -> Sweep | None:
    """Return the latest sweep that has reached SUBNET UP; None if no sweep has."""
    end = len(events)
    while end and events[end - 1].kind is not EventKind.SUBNET_UP:
        end -= 1
    start = end
    while start and events[start - 1].kind is not EventKind.HEAVY_SWEEP:
        start -= 1
    return _sweep(events[start - 1 : end]) if start else None


def _sweep(events: list[Event]) -> Sweep:
    start, end = events[0], events[-1]
    asked = [e for e in events if e.kind is EventKind.ROUTING]
    tables = [e for e in events if e.kind is EventKind.TABLES]
    return Sweep(
        engine=tables[-1].detail if tables else None,
        tried=tuple(e.detail for e in asked),
        routing_seconds=tables[-1].seconds - asked[0].seconds if tables and asked else None,
        seconds=end.seconds - start.seconds,
        errors=tuple(e.text for e in events if e.kind is EventKind.ERROR),
        position=end.position,
    )


def fruitless_sweeps(events: list[Event], after: int) -> int:
    """Return the number of sweeps after a position in the log that failed because no engine could route.

    ``events`` are all events of the log, and ``after`` is the position in bytes.
    """
    return sum(e.kind is EventKind.NO_ENGINE and e.position > after for e in events)
