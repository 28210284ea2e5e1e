"""Keep the tables in force in memory and in the state file, which the file process writes."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from osm_plugin.file_keeper import FileKeeper, Reply, Stamp
from osm_plugin.state import (
    SavedTables,
    baseline_path,
    fits,
    needs_more_vls,
    read_number,
    read_state,
    save_state,
)
from routing.errors import IbnueError, TableError
from routing.fabric import Fabric

RETRY_SECONDS = 1.0
"""Number of seconds for which a sweep waits for the state file.  If this time was not enough, later sweeps do not wait
at all, until the file system has answered.
"""


class State:
    """The tables that OpenSM received last, and the baseline tables (of the fabric without faults), in memory and in
    files.

    Parameters
    ----------
    timeout
        Number of seconds for which :meth:`refresh` waits for the files.
    copies
        Descriptors of two memory files of OpenSM, for copies of the last tables and of the baseline tables.  A worker
        that replaces this one reads the copies if it gets no tables from the state file.

    Attributes
    ----------
    last
        The tables that OpenSM received last; None if unknown.
    baseline
        The baseline tables; None if unknown.
    remarks
        Lines for OpenSM's log that were not returned yet.
    start_note
        Text for the log about the last call of :meth:`before`: why the call returned None, or which failed engine
        computed the returned tables.  "" if there is nothing to report.
    """

    def __init__(self, timeout: float = RETRY_SECONDS, copies: Sequence[int] = ()) -> None:
        self.last: SavedTables | None = None
        self.baseline: SavedTables | None = None
        self.remarks: list[str] = []
        self.start_note = ""
        self._timeout, self._copies = timeout, copies
        self._files = FileKeeper()
        self._path: Path | None = None
        self._stamps: dict[Path, Stamp] = {}
        self._saved: dict[Path, SavedTables] = {}
        # The tables in each memory file.  The key is the index of the file in `copies`.
        self._copied: dict[int, SavedTables] = {}
        # Why the last read or the last write of a file failed.  The key is "look" for a read or "put" for a write,
        # together with the path of the file.
        self._problems: dict[tuple[str, str], str] = {}
        # Whether a read or write of a file takes too long, so that sweeps no longer wait for it.
        self._overdue = False
        # Whether the tables that an earlier worker has left are ignored.
        self._distrusted = False
        # Whether OpenSM has received tables while a file was being read.  The content that is read is then outdated.
        self._late = False
        # Highest number (:attr:`~osm_plugin.state.SavedTables.number`) of all state files that were read or written.
        self._number = 0

    def remark(self, line: str) -> None:
        """Add a line for OpenSM's log."""
        self.remarks.append(line)

    def take_remarks(self) -> list[str]:
        """Return the pending lines for OpenSM's log, each of them only once."""
        report, self.remarks = list(dict.fromkeys(self.remarks)), []
        return report

    def distrust(self) -> None:
        """Forget all tables, and ignore those that an earlier worker has left, until OpenSM receives new tables.

        This method is called if two workers in a row have ended while they used the same tables.
        """
        known = self.last is not None or any(os.fstat(copy).st_size for copy in self._copies)
        if known and not self._distrusted:
            self.remarks.append("the last tables are not used, because the worker has ended twice with them")
        self.last, self.baseline, self._distrusted = None, None, True

    def refresh(self, path: Path | None, *, threads: int) -> None:
        """Read the state files again if another process has written them since the last read.

        The tables in memory stay if a file does not exist, cannot be used, or does not answer in time.  A late answer
        is used in the next call, unless OpenSM has received new tables by then.
        """
        if path != self._path:
            if self._files.waiting is not None:
                self._files.end()
            self._overdue = self._late = False
        self._path = path
        if path is not None:
            if self._files.waiting is None:
                for folder in (path, baseline_path(path)):
                    self._files.inspect(folder.as_posix(), self._stamps.get(folder))
            self._collect(path, threads)
        if self._distrusted or self.last is not None:
            return
        if (found := [self._inherited(copy, threads) for copy in self._copies]) and found[0]:
            self.last, self.baseline = found[0], found[1] or self.baseline
            self.remarks.append("state read from the memory of the worker that has ended")

    def _inherited(self, copy: int, threads: int) -> SavedTables | None:
        """Return the tables that a worker before this one has left in the memory file ``copy``.  Return None if the
        file has no tables, or if that worker ended while it wrote them.
        """
        with suppress(IbnueError), open(copy, "rb", closefd=False) as file:
            file.seek(0)
            return read_state(Path("memory"), threads=threads, file=file)
        return None

    def _is_outdated(self, number: int, changed: int) -> bool:
        """Return whether the worker before this one has left tables in a memory file that are newer than a state file.

        ``number`` is the number of the state file (:func:`~osm_plugin.state.read_number`), and ``changed`` the time of
        its last change in ns.  A file without a number, which is 0, is compared by this time.
        """
        return any(
            read_number(copy) > number >= 0 and (number > 0 or os.fstat(copy).st_mtime_ns > changed)
            for copy in self._copies[:1]
        )

    @property
    def writing(self) -> socket.socket | None:
        """Return a socket that becomes readable when a write of a state file has ended; None if nothing is written."""
        return self._files.link if self._files.waiting == "put" else None

    def written(self) -> list[str]:
        """Return lines for the log about the writes of state files that have ended."""
        if self._path is not None:
            self._collect(self._path, threads=1)
        return self.take_remarks()

    def _collect(self, path: Path, threads: int) -> None:
        """Process the answers of the file process (:class:`~osm_plugin.file_keeper.FileKeeper`).

        Wait for a read in progress, unless an earlier sweep has waited for this read without success.
        """
        # Wait only for a read.  While a file is being written, the tables in memory are newer than the file.
        ask = self._files.waiting == "look" and not self._overdue
        for reply in self._files.receive(max(0.0, self._timeout - self._files.seconds) if ask else 0.0):
            self._take(reply, threads)
        doing = self._files.waiting
        silent = doing is not None and self._files.seconds >= self._timeout
        if silent and not self._overdue:
            what = "read" if doing == "look" else "written"
            self.remarks.append(f"state not {what} yet: {path} has not answered for {self._timeout:g} s")
        self._overdue = silent
        self._late = silent and self._late

    def _take(self, reply: Reply, threads: int) -> None:
        folder = Path(reply.path)
        if reply.stamp is None:
            self._stamps.pop(folder, None)
            self._saved.pop(folder, None)
        else:
            self._stamps[folder] = reply.stamp
        self._record_problem(reply)
        if reply.content is not None:
            self._read(folder, reply.content, threads)

    def _record_problem(self, reply: Reply) -> None:
        """Add a line for the log in three cases: reads or writes of a file begin to fail, they fail for a new reason,
        or writes succeed again.
        """
        request = reply.kind, reply.path
        if reply.problem and reply.problem != self._problems.get(request):
            doing = "ignored" if reply.kind == "look" else "not saved"
            remedy = "" if reply.kind == "look" else " (check its folder and the free space)"
            self.remarks.append(f"state {doing}: {reply.path}: {reply.problem}{remedy}")
        if reply.problem:
            self._problems[request] = reply.problem
        elif self._problems.pop(request, "") and reply.kind == "put":
            self.remarks.append(f"state saved again: {reply.path}")

    def _read(self, folder: Path, content: int, threads: int) -> None:
        """Replace the tables in memory by the tables in a file.  ``content`` is the descriptor of a copy of the file in
        memory.
        """
        with os.fdopen(content, "rb") as file:
            file.seek(0)
            known, number = self._saved.pop(folder, None), read_number(content)
            self._number = max(self._number, number)
            try:
                if self._distrusted:
                    raise TableError("the worker has ended twice with the last tables", path=folder)
                if self._late:
                    raise TableError("it was read only after tables had been published", path=folder)
                if known is None and folder == self._path and self._is_outdated(number, self._stamps[folder][0]):
                    raise TableError("it is older than the tables in memory", path=folder)
                kept = read_state(folder, threads=threads, file=file)
            except IbnueError as problem:
                self.remarks.append(f"state ignored: {problem}")
                return
        self._saved[folder] = kept
        if folder == self._path:
            self.last = kept
            self.remarks.append(f"state read from {folder}")
        else:
            self.baseline = kept

    def before(
        self, engine: str, options: str, fabric: Fabric, failed: Container[str] = frozenset(), *, data_vls: int
    ) -> SavedTables | None:
        """Return the tables that OpenSM received last, if new tables may be computed from them; otherwise None.

        The last tables must be for the subnet of ``fabric``.  They must be tables of ``engine`` with ``options``, or of
        one of the engines ``failed``, with any options.  These engines failed before ``engine`` was tried.  The tables
        must use at most ``data_vls`` VLs, the number that OpenSM sets up.  If there are last tables, but the result is
        None, the attribute ``start_note`` has the reason.
        """
        last, self.start_note = self.last, ""
        if last is None:
            return None
        if not fits(last, fabric):
            why = "it is for another fabric"
        elif last.engine != engine and last.engine not in failed:
            why = f"it is from engine {last.engine}"
        elif last.engine == engine and last.options != options:
            why = "the engine's options have changed"
        elif last.routing.vls > data_vls:
            why = needs_more_vls(last, data_vls)
        else:
            if last.engine != engine:
                self.start_note = f"the tables of {last.engine}, which has failed, are the starting point"
            self.last = with_classes_of(last, fabric)
            return self.last
        self.start_note = f"state ignored: {why}"
        return None

    def baseline_of(self, kept: SavedTables) -> SavedTables | None:
        """Return the baseline tables if they belong to the tables ``kept``; otherwise None.

        They belong together if both were computed for the same subnet, by the same engine with the same options.
        """
        baseline = self.baseline
        if baseline is None or (baseline.engine, baseline.options) != (kept.engine, kept.options):
            return None
        if not fits(baseline, kept.fabric):
            return None
        self.baseline = with_classes_of(baseline, kept.fabric)
        return self.baseline

    def put(self, kept: SavedTables, *, reset: bool) -> None:
        """Store tables that OpenSM has received.

        The tables also become the baseline tables in three cases: ``reset`` is set, there are no baseline tables, or
        the fabric has grown.

        ``kept`` are the tables, with their fabric, engine and options.
        """
        last = self.last
        if last is not None and _same(last, kept):
            kept = last  # Equal tables keep the old object, so that the baseline tables are not written again.
        baseline = self.baseline_of(kept)
        if reset or baseline is None or _is_extended(baseline.fabric, kept.fabric):
            self.baseline = kept
        self.last, self._distrusted = kept, False
        self._late = self._files.waiting == "look"

    def save(self) -> None:
        """Request that the tables in memory are written to the state files, unless the files already have them."""
        path, buffer, written = self._path or Path("memory"), io.BytesIO(), None
        for number, (folder, kept) in enumerate(((path, self.last), (baseline_path(path), self.baseline))):
            is_in_file, is_copied = (known is kept for known in (self._saved.get(folder), self._copied.get(number)))
            if kept is None or (is_in_file and is_copied):
                continue
            content = os.memfd_create("ibnue-state", os.MFD_CLOEXEC)
            if is_in_file or kept is not written:  # If the last tables are also the baseline, they are compressed once.
                # The number is the current time in ns, because a number that starts at 0 could be lower than the
                # numbers in state files of another OpenSM, which this worker does not know.  If the clock was set back,
                # the number is the highest known number + 1.
                known = [self._number, *map(read_number, self._copies)]
                self._number = max(os.fstat(content).st_mtime_ns, *(earlier + 1 for earlier in known))
                buffer = io.BytesIO()
                save_state(buffer, kept, kept.number if is_in_file else self._number)
            written = None if is_in_file else kept
            with os.fdopen(content, "wb", closefd=False) as file:
                file.write(buffer.getbuffer())
            for copy in self._copies[number : number + 1]:
                os.ftruncate(copy, 0)
                os.pwrite(copy, buffer.getbuffer(), 0)
            if is_in_file or self._path is None:
                os.close(content)
            else:
                self._files.put(folder.as_posix(), content)
            self._saved[folder] = self._copied[number] = kept

    def end(self) -> None:
        """End the helper process that reads and writes the state files."""
        self._files.end()


def with_classes_of(kept: SavedTables, fabric: Fabric) -> SavedTables:
    """Return the tables ``kept`` with the rules of ``fabric`` for the classes of end ports.

    Tables from a state file do not have these rules, because the file stores only a text that identifies the rules.
    """
    if kept.fabric.port_classes == fabric.port_classes:
        return kept
    return replace(kept, fabric=replace(kept.fabric, port_classes=fabric.port_classes))


def _same(one: SavedTables, other: SavedTables) -> bool:
    return (
        one.routing is other.routing
        and one.deferred is other.deferred is None
        and (one.engine, one.options, one.fabric.digest) == (other.engine, other.options, other.fabric.digest)
    )


def _is_extended(baseline: Fabric, fabric: Fabric) -> bool:
    """Return whether a fabric has grown since ``baseline``.

    A fabric counts as grown if it differs from ``baseline``, but has all switches and end ports of ``baseline``, and
    all cables that ``baseline`` has between switches.  For example, it has one more switch.
    """
    if baseline.digest == fabric.digest:
        return False
    parts = [(each.switch_guid, each.endport_guid, _cables(each)) for each in (baseline, fabric)]
    return all(np.isin(old, new).all() for old, new in zip(*parts, strict=True))


def _cables(fabric: Fabric) -> npt.NDArray[np.void]:
    """Return one record for each channel between switches, which identifies both ends by GUID and port."""
    channels = fabric.channels
    ends = np.zeros(len(channels), [("a", "u8"), ("b", "u8"), ("p", "u1"), ("q", "u1"), ("unused", "V6")])
    ends["a"], ends["b"] = fabric.switch_guid[channels.src], fabric.switch_guid[channels.dst]
    ends["p"], ends["q"] = channels.port, channels.dst_port
    return ends.view("V24").ravel()
