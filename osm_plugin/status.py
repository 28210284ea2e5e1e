"""Build the content of the status and metrics files from messages of the shim and reports of the worker.

The shim is the plugin's C part.  This module imports only the standard library, because it runs inside OpenSM.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "ibnue-status/2"
_REPORTED = (
    "engine", "fabric_digest", "switches", "end_ports", "certified", "strength", "scope", "vls", "description",
    "entries_broken", "entries_changed", "all_to_all_kept", "all_to_all_kept_from_scratch",
    "bisection_kept", "bisection_kept_from_scratch",
    "all_to_all", "rounds_planned", "phase_seconds",
)  # fmt: skip
"""Keys of the object "tables" of the status file whose values a worker reports.  A value is None until it is reported.
"""
MOST_REPORTS = 8
"""If more reports about answers are stored than this number, the oldest ones are dropped.  The report about the last
tables that OpenSM got from each engine is never dropped.
"""


def parse_summary(message: str) -> tuple[dict[str, str], dict[str, int]]:
    """Parse a message of the C part of the plugin (the shim) on the progress of a sweep, with lines "key value".

    Returns
    -------
    text
        Text values by key.  The values of the key "event" are "begin": a sweep begins; "routed": an engine has computed
        tables for this sweep; "served": the engine failed, and OpenSM got the last proven tables; "failed": the engine
        has no tables; "up": the sweep is over; "standby": another SM is the master.
    errors
        Number of error lines in OpenSM's log since its start, by error code.
    """
    text: dict[str, str] = {}
    errors: dict[str, int] = {}
    for line in message.splitlines():
        key, _, value = line.partition(" ")
        if key == "error":
            code, _, count = value.partition(" ")
            errors[code] = int(count)
        else:
            text[key] = value
    return text, errors


@dataclass
class EngineStatus:
    """Counters of one engine since OpenSM started, and the engine's last error."""

    routed: int = 0
    served_from_last_count: int = 0
    failed: int = 0
    failing: bool = False
    last_error: str | None = None
    sequence: int = 0

    def as_object(self) -> dict[str, Any]:
        """Return the counters and the last error as an object for JSON."""
        return {key: value for key, value in asdict(self).items() if key != "sequence"}


class Status:
    """Status of OpenSM and the plugin.  Only one thread may change it."""

    def __init__(self, about: Mapping[str, Any], now: float) -> None:
        self._about = dict(about)
        self._now = now
        self._state = "starting"
        self._opensm = ""
        self._build: str | None = None
        self._sweep = 0
        self._up_at: float | None = None
        self._in_force = "none"
        self._ours = False
        self._errors: dict[str, int] = {}
        self._last_error = ""
        self._engines: dict[str, EngineStatus] = {}
        self._reports: dict[int, dict[str, Any]] = {}
        self._worker: dict[str, Any] = {"pid": None}
        self._rounds_written: int | None = None
        self._more: dict[str, Any] = {}

    def take_summary(self, message: str, now: float | None = None) -> None:
        """Update the status from a message of the C part of the plugin.

        ``now`` is the present time in seconds since 1970; None: the time of the system's clock.
        """
        text, self._errors = parse_summary(message)
        event = text.get("event", "")
        self._now = time.time() if now is None else now
        self._opensm = text.get("opensm", self._opensm)
        self._build = text.get("build", self._build)
        self._sweep = int(text.get("sweep", self._sweep))
        self._last_error = text.get("last_error", "")
        if event == "begin":
            self._state = "sweeping"
        elif event == "standby":
            self._state = "standby"
            self._set_in_force("none", ours=False)
        elif event == "up":
            self._state, self._up_at = "up", self._now
            self._set_in_force(text.get("in_force", "none"), ours=text.get("ours") == "1")
        elif event in ("routed", "served", "failed"):
            self._count(event, text)

    def _set_in_force(self, engine: str, *, ours: bool) -> None:
        """Record the engine in force.  If it has changed, drop the report on the tables of the previous engine."""
        if engine != self._in_force:
            self._more.pop("shadow", None)
        self._in_force, self._ours = engine, ours

    def _count(self, event: str, text: Mapping[str, str]) -> None:
        """Count the result of an engine's request: ``event`` is "routed", "served" (last tables kept) or "failed"."""
        engine = self._engines.setdefault(text.get("engine", ""), EngineStatus())
        engine.routed += event == "routed"
        engine.served_from_last_count += event == "served"
        engine.failed += event == "failed"
        engine.failing = event != "routed"
        engine.sequence = int(text.get("sequence", 0))
        self._rounds_written = None
        if engine.failing:
            engine.last_error = self._last_error
            if event == "failed":
                self._state = "routing failed"

    def take_report(self, report: Mapping[str, Any]) -> None:
        """Update the status from a report of a worker.

        A report with the key "sequence" has figures about an answer.  In any other report, each key is a key of the
        status file.  The value in the report replaces the value in the status file.
        """
        if "sequence" in report:
            known = self._reports.setdefault(int(report["sequence"]), {})
            known.update({key: value for key, value in report.items() if key != "sequence"})
            outdated = sorted(self._reports.keys() - {engine.sequence for engine in self._engines.values()})
            for sequence in outdated[: max(0, len(self._reports) - MOST_REPORTS)]:
                del self._reports[sequence]
        else:
            self._more.update(report)

    def take_rounds(self, written: int) -> None:
        """Record how many rounds of the update schedule all switches have acknowledged.

        ``written`` is the number of these rounds.
        """
        self._rounds_written = written

    def take_worker(self, pid: int | None) -> None:
        """Record the process id of the worker; None if there is no worker."""
        self._worker = {"pid": pid}

    def end(self) -> None:
        """Record that OpenSM ends."""
        self._state, self._worker, self._now = "ended", {"pid": None}, time.time()

    def as_object(self) -> dict[str, Any]:
        """Return the content of the status file as an object for JSON."""
        engine = self._engines.get(self._in_force) if self._ours else None
        tables = None
        if engine is not None:
            tables = {
                **dict.fromkeys(_REPORTED),
                **self._reports.get(engine.sequence, {}),
                "served_from_last": engine.failing,
                "rounds_acknowledged": self._rounds_written,
            }
        shadow = self._more.get("shadow") or {}  # A late report may be about the previous engine, and is not used.
        engines = {name: one.as_object() for name, one in sorted(self._engines.items())}
        return {
            "schema": SCHEMA,
            "time": self._now,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now)),
            "opensm": {"version": self._opensm, "pid": self._about.get("pid"), "state": self._state},
            "plugin": {"version": self._about.get("version"), "build": self._build, "worker": self._worker},
            "sweeps": self._sweep,
            "last_subnet_up": self._up_at,
            "in_force": {"engine": self._in_force, "ours": self._ours},
            "tables": tables,
            "engines": engines,
            "errors": dict(sorted(self._errors.items())),
            "last_error": self._last_error or None,
            **self._more,
            "shadow": shadow if shadow.get("engine_in_force") == self._in_force else None,
        }


@dataclass(frozen=True)
class Metric:
    """A metric in the metrics file: its name, kind and meaning, and its values by their labels."""

    name: str
    kind: str
    meaning: str
    values: tuple[tuple[Mapping[str, str], float], ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the metric in Prometheus' text format."""
        yield f"# HELP ibnue_{self.name} {self.meaning}"
        yield f"# TYPE ibnue_{self.name} {self.kind}"
        for labels, value in self.values:
            inside = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
            yield f"ibnue_{self.name}{{{inside}}} {_number(value)}" if inside else f"ibnue_{self.name} {_number(value)}"


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


_TABLE_FIGURES = (
    ("certified", "Whether the tables in force are proven free of credit loops."),
    ("vls", "Number of data VLs that the tables in force use."),
    ("switches", "Number of switches in the fabric of the tables in force."),
    ("end_ports", "Number of end ports in the fabric of the tables in force."),
    ("entries_broken", "Number of previous entries that no longer led to their LID."),
    ("entries_changed", "Number of entries that differ from the previous tables."),
    ("all_to_all_kept", "All-to-all rate of the tables in force, divided by the rate of the previous tables."),
    ("bisection_kept", "Rate of random bisections with the tables in force, divided by that of the previous tables."),
    ("all_to_all", "All-to-all share: the rate of every end port when all send to all others."),
    ("served_from_last", "Whether the last proven tables stay in force because the engine had no new tables."),
)

_METRIC_NAMES = {"entries_broken": "broken", "entries_changed": "changed", "all_to_all_kept": "kept"}
"""Names of metrics by the key of their value in the status file, if name and key differ.  The names do not change,
because administrators' rules for alarms contain them.
"""


def metrics(status: Mapping[str, Any]) -> str:
    """Return the text of the metrics file, in the format of node_exporter's text file collector."""
    tables = status["tables"] or {}
    found = [
        _one("info", "Versions; the value is 1.", 1, opensm=status["opensm"]["version"],
             version=str(status["plugin"]["version"]), build=status["plugin"]["build"] or ""),
        _one("running", "Whether OpenSM runs.", status["opensm"]["state"] != "ended"),
        _one("worker_running", "Whether the worker runs.", status["plugin"]["worker"]["pid"] is not None),
        _one("routing_failed", "Whether no engine had tables in the last sweep.",
             status["opensm"]["state"] == "routing failed"),
        _one("last_subnet_up_timestamp_seconds", "Time at which the last sweep ended.", status["last_subnet_up"] or 0),
        _one("status_timestamp_seconds", "Time at which the status was written.", status["time"]),
        _one("engine_in_force", "The engine whose tables OpenSM uses; the value is 1.", 1,
             engine=status["in_force"]["engine"]),
        Metric("sweeps_total", "counter", "Number of heavy sweeps since OpenSM started.", (({}, status["sweeps"]),)),
        *(_one(_METRIC_NAMES.get(key, key), meaning, tables[key]) for key, meaning in _TABLE_FIGURES
          if tables.get(key) is not None),
        Metric("phase_seconds", "gauge", "Seconds that each phase of the last routing took.",
               tuple(({"phase": name}, value) for name, value in (tables.get("phase_seconds") or {}).items())),
        *_by_engine(status["engines"]),
        *_of_shadow(status.get("shadow")),
        Metric("errors_total", "counter", "Number of error lines in OpenSM's log since OpenSM started.",
               tuple(({"code": code}, count) for code, count in status["errors"].items())),
    ]  # fmt: skip
    return "\n".join(line for metric in found if metric.values for line in metric.lines()) + "\n"


def _one(name: str, meaning: str, value: float, **labels: str) -> Metric:
    return Metric(name, "gauge", meaning, ((labels, value),))


def _of_shadow(shadow: Mapping[str, Any] | None) -> Iterator[Metric]:
    if shadow is None:
        return
    labels = {"in_force": str(shadow["engine_in_force"]), "engine": str(shadow["engine"] or "")}
    for name, key, meaning in (
        ("shadow_certified", "certified", "Whether the shadow engine's tables are proven free of credit loops."),
        ("shadow_all_to_all", "all_to_all", "All-to-all share of the shadow engine's tables."),
        ("shadow_all_to_all_in_force", "all_to_all_in_force", "All-to-all share of the tables in force."),
        ("shadow_differing", "entries_differing", "Number of LFT entries that differ from the tables in force."),
    ):
        if shadow.get(key) is not None:
            yield _one(name, meaning, shadow[key], **labels)
    yield _one("shadow_loop_in_force", "Whether the tables in force have a credit loop.", shadow["verdict"] == "loop",
               **labels)  # fmt: skip


def _by_engine(engines: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    for name, kind, key, meaning in (
        ("engine_failing", "gauge", "failing", "Whether the engine's last request gave no new tables."),
        ("engine_routed_total", "counter", "routed", "How often the engine computed new tables."),
        ("engine_served_from_last_total", "counter", "served_from_last_count", "How often earlier tables were kept."),
        ("engine_failed_total", "counter", "failed", "How often the engine had no tables at all."),
    ):
        yield Metric(name, kind, meaning, tuple(({"engine": engine}, row[key]) for engine, row in engines.items()))
