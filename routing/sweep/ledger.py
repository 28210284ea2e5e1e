"""Store the result of every task of a sweep once, in an SQLite file (ledger) that stays valid even if runs are killed.

Results are committed as they arrive, so a killed run loses only the tasks in progress.  A program that writes a ledger
locks it, so that no other program can open it.  The operating system releases the lock when that program ends for any
reason.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path

from routing import __version__
from routing.errors import EnvironmentProblem, InputError
from routing.sweep.results import AGAIN, PASSING, Result
from routing.sweep.tasks import Target, Task
from routing.sweep.version import code_version

APPLICATION = 0x49424E4C
"""Value of SQLite's application_id that identifies a ledger file: "IBNL" in ASCII."""
VERSION = 1
"""Version of the SQL tables of a ledger, stored as SQLite's user_version."""

RESULT_COLUMNS = tuple(field.name for field in fields(Result))
ADDED_COLUMNS = dict.fromkeys(("kept", "bisection_kept", "fresh_kept", "fresh_bisection_kept"), "REAL")
"""Columns that were added to the SQL table of results after its first release, with their SQL types.

A ledger of an earlier ibnue with the same :data:`VERSION` may lack such a column.  The values are then unknown.
"""
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
    a2a REAL, tables TEXT, how TEXT, seconds REAL NOT NULL, error TEXT, kept REAL,
    bisection_kept REAL, fresh_kept REAL, fresh_bisection_kept REAL
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True)
class Record:
    """Row of the ledger: a task, its result, and the version of the code that computed the result.

    The version is from :func:`~routing.sweep.version.code_version`.
    """

    task: Task
    result: Result
    version: str


class Ledger:
    """Open ledger file, which is locked for this program unless it is read-only.

    Parameters
    ----------
    path
        Path of the file, which is created if it does not exist.  None: a temporary ledger in memory.
    must_exist
        Whether it is an error if the file does not exist.
    read_only
        Whether to open the file for reading only, for example for a comparison.  Then the file must exist.

    Raises
    ------
    InputError
        The file is not a ledger, has another version, or does not exist although it must.
    EnvironmentProblem
        Another run has the ledger open, or the ledger cannot be read or written.
    """

    def __init__(self, path: str | Path | None, *, must_exist: bool = False, read_only: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._read_only = read_only
        self._there = self.path is not None and self.path.exists()
        if self.path is not None and (must_exist or read_only) and not self._there:
            raise InputError("no such ledger", path=path, remedy="ibnue sweep --ledger FILE makes one")
        with self._naming_file():
            folder = (
                ":memory:"
                if self.path is None
                else f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            )
            self._base = sqlite3.connect(folder, timeout=0, isolation_level=None, uri=True)
        try:
            with self._naming_file():
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
            raise InputError("is not a ledger", path=self.path, remedy="name another file")
        elif version != VERSION:
            raise InputError(
                f"is a ledger of version {version}, this is ibnue {__version__}, which reads version {VERSION}",
                path=self.path,
                remedy="use the ibnue that wrote it, or begin another ledger",
            )
        self._add_columns()
        self._base.execute("COMMIT")
        if self._read_only:
            return
        # With these settings, a commit passes the data to the operating system, which writes them to the disk later.
        # So a killed run loses nothing.
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")

    def _add_columns(self) -> None:
        """Add the columns that the file of an earlier ibnue lacks.  If the file is read-only, only remember these
        columns.
        """
        there = {row[1] for row in self._base.execute("PRAGMA table_info(results)")}
        missing = [name for name in ADDED_COLUMNS if name not in there]
        self._unknown = frozenset(missing if self._read_only else ())
        for name in () if self._read_only else missing:
            self._base.execute(f"ALTER TABLE results ADD COLUMN {name} {ADDED_COLUMNS[name]}")

    def _result_columns(self) -> str:
        """Return the list of columns for an SQL SELECT: the columns of a task and of its result.

        A column that the file lacks is replaced by NULL.
        """
        names = (*TASK_COLUMNS, *RESULT_COLUMNS)
        return ", ".join(f"NULL AS {name}" if name in self._unknown else name for name in names)

    @contextlib.contextmanager
    def _naming_file(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith("SQLITE_BUSY") or "locked" in str(error):
            problem, remedy = "another run has this ledger open", "wait for it, or use another file"
            return EnvironmentProblem(problem, path=self.path, remedy=remedy)
        if code == "SQLITE_NOTADB" or "not a database" in str(error):
            return InputError("is not a ledger", path=self.path, remedy="name another file")
        if code.startswith("SQLITE_CORRUPT") or "malformed" in str(error):
            return InputError("this ledger is damaged", path=self.path, remedy="restore a copy, or begin another one")
        return EnvironmentProblem(str(error), path=self.path, remedy="is its folder writable, and is space left?")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger and merge its write-ahead log into the file.

        A ledger that this program created is removed if the ledger has no recorded run.
        """
        with contextlib.closing(self._base), self._naming_file():
            if self._read_only:
                return
            (runs,) = self._base.execute("SELECT count(*) FROM runs").fetchone()
            self._base.execute("PRAGMA journal_mode = DELETE")
            if not self._there and not runs and self.path is not None:
                self.path.unlink(missing_ok=True)

    def begin(self, about: str, *, live: bool = False) -> int:
        """Record the start of a run, and return the number of the run.

        ``about`` describes the run in a few words.  ``live`` is true if the tasks of the run use a real OpenSM.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        row = (now, code_version(live=live), about)
        with self._naming_file():
            done = self._base.execute("INSERT INTO runs (started, version, about) VALUES (?, ?, ?)", row)
        assert done.lastrowid is not None
        return done.lastrowid

    def done(self, *, without: Iterable[str] = AGAIN) -> set[str]:
        """Return the ids of the tasks that are done.

        A result with an outcome in ``without`` (such as "timed out") does not count, so that the task will run again.
        """
        again = set(without)
        with self._naming_file():
            return {task for task, was in self._base.execute("SELECT task, outcome FROM results") if was not in again}

    def record(self, run: int, pairs: Iterable[tuple[Task, Result]]) -> int:
        """Store the results of tasks in one transaction, and return the number of results that were stored.

        A task that already has a result keeps this result.  A task may run twice if its worker seemed to have died.
        Then the first result counts.  Only a result with an outcome in :data:`~routing.sweep.results.PASSING` is
        replaced, because such an outcome may depend on the machine.

        ``run`` is the number of the run, and ``pairs`` has each task with its result.
        """
        rows = [(run, *_task_row(task), *astuple(result)) for task, result in pairs]
        return self._insert(rows)

    def _insert(self, rows: list[tuple[object, ...]]) -> int:
        columns = ("run", *TASK_COLUMNS, *RESULT_COLUMNS)
        insert = f"INSERT INTO results ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        known = ", ".join(f"{name} = excluded.{name}" for name in ("run", *RESULT_COLUMNS))
        passing = ", ".join(f"'{outcome}'" for outcome in PASSING)
        instead = f"ON CONFLICT (task) DO UPDATE SET {known} WHERE results.outcome IN ({passing})"
        with self._naming_file():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                before = self._base.total_changes
                self._base.executemany(f"{insert} {instead}", rows)
                added = self._base.total_changes - before
                self._base.execute("COMMIT")
            except BaseException:
                # If the disk is full, SQLite itself has already rolled back the transaction.  ROLLBACK would then fail.
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise
        return added

    def records(self) -> Iterator[Record]:
        """Yield every stored task with its result, sorted by fabric, engine and fault."""
        order = "fabric, engine, options, mode, seed, fault, task"
        with self._naming_file():
            rows = self._base.execute(
                f"SELECT {self._result_columns()}, version FROM results JOIN runs USING (run) ORDER BY {order}"
            )
            for row in rows:
                yield _record(row)

    def absorb(self, other: Ledger) -> int:
        """Add the results of another ledger, for example of another part of this sweep.  Return the number of results
        that were stored.
        """
        added = 0
        with other._naming_file():
            runs = other._base.execute("SELECT run, started, version, about FROM runs ORDER BY run").fetchall()
        for run, *row in runs:
            select = f"SELECT {other._result_columns()} FROM results WHERE run = ?"
            with other._naming_file():
                results = other._base.execute(select, (run,)).fetchall()
            with self._naming_file():
                new = self._base.execute("INSERT INTO runs (started, version, about) VALUES (?, ?, ?)", row).lastrowid
            added += self._insert([(new, *result) for result in results])
        return added


def _task_row(task: Task) -> tuple[object, ...]:
    options = json.dumps(dict(task.target.options))
    return task.fabric, task.digest, task.target.engine, options, task.fault, task.seed, task.mode


def _record(row: tuple[object, ...]) -> Record:
    values = dict(zip((*TASK_COLUMNS, *RESULT_COLUMNS, "version"), row, strict=True))
    options = tuple(sorted(json.loads(str(values["options"])).items()))
    task = Task(
        fabric=str(values["fabric"]),
        digest=str(values["digest"]),
        target=Target(str(values["engine"]), options),
        fault=str(values["fault"]),
        seed=int(str(values["seed"])),
        mode=str(values["mode"]),
    )
    result = Result(**{name: values[name] for name in RESULT_COLUMNS})  # type: ignore[arg-type]
    return Record(task, result, str(values["version"]))
