"""The ledger of a sweep: one SQLite file that holds every result once, whatever happens to the run.

Results are committed as they come in, so that a run that is killed loses what was under way and nothing else.  One
program has a ledger open at a time; the operating system lets go of it when that program ends, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType

from routing import __version__
from routing.errors import EnvironmentProblem, InputError
from routing.sweep.results import PASSING, Result
from routing.sweep.tasks import Target, Task
from routing.sweep.version import code_version

APPLICATION = 0x49424E4C
"""SQLite's application_id: "IBNL"."""
VERSION = 1
"""Of the tables below."""

RESULT_COLUMNS = tuple(field.name for field in fields(Result))
TASK_COLUMNS = ("fabric", "digest", "engine", "options", "fault", "seed", "mode")

SCHEMA = f"""
CREATE TABLE runs (run INTEGER PRIMARY KEY, started TEXT NOT NULL, version TEXT NOT NULL, about TEXT NOT NULL);
CREATE TABLE results (
    task TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    fabric TEXT NOT NULL, digest TEXT NOT NULL, engine TEXT NOT NULL, options TEXT NOT NULL,
    fault TEXT NOT NULL, seed INTEGER NOT NULL, mode TEXT NOT NULL,
    outcome TEXT NOT NULL, strength TEXT, scope TEXT, vls INTEGER, vls_needed INTEGER,
    faults INTEGER, parts INTEGER, cut_off INTEGER, entries INTEGER, changed INTEGER, broken INTEGER,
    a2a REAL, tables TEXT, how TEXT, seconds REAL NOT NULL, error TEXT
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True)
class Record:
    """A line of the ledger: a task, its result, and the :func:`~routing.sweep.version.code_version` that found it."""

    task: Task
    result: Result
    version: str


class Ledger:
    """A ledger that is open, for this program alone.

    Parameters
    ----------
    path
        The file, made if it is not there; None: in memory, gone afterwards.
    must_exist
        Refuse to make one.
    read_only
        Change nothing, as with one that is only compared with; it has to be there.

    Raises
    ------
    InputError
        The file is no ledger, or one of another version, or it has to be there and is not.
    EnvironmentProblem
        Another run has it open, or it cannot be read or written.
    """

    def __init__(self, path: str | Path | None, *, must_exist: bool = False, read_only: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._read_only = read_only
        self._there = self.path is not None and self.path.exists()
        if self.path is not None and (must_exist or read_only) and not self._there:
            raise InputError("no such ledger", path=path, remedy="ibnue sweep --ledger FILE makes one")
        with self._told():
            place = (
                ":memory:"
                if self.path is None
                else f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            )
            self._base = sqlite3.connect(place, timeout=0, isolation_level=None, uri=True)
        try:
            with self._told():
                self._open(may_be_new=not (must_exist or read_only) or self.path is None)
        except BaseException:
            self._base.close()
            raise

    def _open(self, *, may_be_new: bool) -> None:
        if not self._read_only:
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._base.execute("BEGIN" if self._read_only else "BEGIN EXCLUSIVE")
        application, version, tables = (
            self._base.execute(question).fetchone()[0]
            for question in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if (application, version, tables) == (0, 0, 0) and may_be_new:
            for statement in SCHEMA.strip().split(";\n"):
                self._base.execute(statement)
        elif application != APPLICATION:
            raise InputError("is no ledger", path=self.path, remedy="name another file")
        elif version != VERSION:
            raise InputError(
                f"is a ledger of version {version}, this is ibnue {__version__}, which reads version {VERSION}",
                path=self.path,
                remedy="use the ibnue that wrote it, or begin another ledger",
            )
        self._base.execute("COMMIT")
        if self._read_only:
            return
        # Commits then reach the operating system at once, which is what a killed run needs, and the disk in time.
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith("SQLITE_BUSY") or "locked" in str(error):
            return EnvironmentProblem(
                f"{self.path}: another run has this ledger open (wait for it, or use another file)"
            )
        if code == "SQLITE_NOTADB" or "not a database" in str(error):
            return InputError("is no ledger", path=self.path, remedy="name another file")
        if code.startswith("SQLITE_CORRUPT") or "malformed" in str(error):
            return InputError("this ledger is damaged", path=self.path, remedy="restore a copy, or begin another one")
        return EnvironmentProblem(f"{self.path}: {error} (is the folder there, writable, and the disk not full?)")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file, which is then the whole ledger again; one that was made for nothing is removed."""
        with contextlib.closing(self._base), self._told():
            if self._read_only:
                return
            (runs,) = self._base.execute("SELECT count(*) FROM runs").fetchone()
            self._base.execute("PRAGMA journal_mode = DELETE")
            if not self._there and not runs and self.path is not None:
                self.path.unlink(missing_ok=True)

    def begin(self, about: str, *, live: bool = False) -> int:
        """Note down a run, and whether its tasks are live; its number."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        row = (now, code_version(live=live), about)
        with self._told():
            done = self._base.execute("INSERT INTO runs (started, version, about) VALUES (?, ?, ?)", row)
        assert done.lastrowid is not None
        return done.lastrowid

    def done(self, *, without: Iterable[str] = ("timed out",)) -> set[str]:
        """Ids of the tasks that have a result with another outcome than those that are to be done again."""
        again = set(without)
        with self._told():
            return {task for task, was in self._base.execute("SELECT task, outcome FROM results") if was not in again}

    def record(self, run: int, pairs: Iterable[tuple[Task, Result]]) -> int:
        """Keep results, all of them or none; how many were new.

        A task that has a result keeps it: one that ran twice, since its worker seemed dead, counts once.  Only in place
        of an outcome in :data:`~routing.sweep.results.PASSING` comes what is known now.
        """
        rows = [(run, *_task_row(task), *astuple(result)) for task, result in pairs]
        return self._insert(rows)

    def _insert(self, rows: list[tuple[object, ...]]) -> int:
        columns = ("run", *TASK_COLUMNS, *RESULT_COLUMNS)
        insert = f"INSERT INTO results ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        known = ", ".join(f"{name} = excluded.{name}" for name in ("run", *RESULT_COLUMNS))
        passing = ", ".join(f"'{outcome}'" for outcome in PASSING)
        instead = f"ON CONFLICT (task) DO UPDATE SET {known} WHERE results.outcome IN ({passing})"
        with self._told():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                before = self._base.total_changes
                self._base.executemany(f"{insert} {instead}", rows)
                added = self._base.total_changes - before
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:  # SQLite itself takes it back when the disk is full
                    self._base.execute("ROLLBACK")
                raise
        return added

    def records(self) -> Iterator[Record]:
        """Every line, by fabric, engine and fault."""
        columns = ", ".join((*TASK_COLUMNS, *RESULT_COLUMNS, "version"))
        order = "fabric, engine, options, mode, seed, fault, task"
        with self._told():
            rows = self._base.execute(f"SELECT {columns} FROM results JOIN runs USING (run) ORDER BY {order}")
            for row in rows:
                yield _record(row)

    def absorb(self, other: Ledger) -> int:
        """Take over what another ledger, such as that of another shard, has and this one has not; how many results."""
        added = 0
        with other._told():
            runs = other._base.execute("SELECT run, started, version, about FROM runs ORDER BY run").fetchall()
        for run, *row in runs:
            columns = ", ".join((*TASK_COLUMNS, *RESULT_COLUMNS))
            with other._told():
                results = other._base.execute(f"SELECT {columns} FROM results WHERE run = ?", (run,)).fetchall()
            with self._told():
                new = self._base.execute("INSERT INTO runs (started, version, about) VALUES (?, ?, ?)", row).lastrowid
            added += self._insert([(new, *result) for result in results])
        return added


def _task_row(task: Task) -> tuple[object, ...]:
    options = json.dumps(dict(task.target.options))
    return task.fabric, task.digest, task.target.engine, options, task.fault, task.seed, task.mode


def _record(row: tuple[object, ...]) -> Record:
    told = dict(zip((*TASK_COLUMNS, *RESULT_COLUMNS, "version"), row, strict=True))
    options = tuple(sorted(json.loads(str(told["options"])).items()))
    task = Task(
        fabric=str(told["fabric"]),
        digest=str(told["digest"]),
        target=Target(str(told["engine"]), options),
        fault=str(told["fault"]),
        seed=int(str(told["seed"])),
        mode=str(told["mode"]),
    )
    result = Result(**{name: told[name] for name in RESULT_COLUMNS})  # type: ignore[arg-type]
    return Record(task, result, str(told["version"]))
